"""The recorded judgments of Snow et al. (2008), with the experts' answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from steelyard.formats import read_gold, read_judgments
from steelyard.observations import Labels, Ratings

PAPER = "Snow et al., 2008"
EMOTIONS = ("anger", "disgust", "fear", "joy", "sadness", "surprise")
"""The emotions; `valence` comes beside them, and runs from -100 to 100."""
AFFECT = (*EMOTIONS, "valence")

_Pointwise = TypeVar("_Pointwise", Labels, Ratings)


def read_labels(data: Path, name: str) -> tuple[Labels, dict[str, str]]:
    """Read the labels of a task (rte, temp or wsd), and each item's expert label."""
    file = data / f"snow2008/{name}.csv.gz"
    return cast("Labels", read_judgments(file, kind="labels").observations), read_gold(file)[""]


def read_similarities(data: Path) -> tuple[Ratings, dict[str, float]]:
    """Read the ratings of word pairs on 0 to 10, and the gold of Miller and Charles on 0 to 4."""
    file = data / "snow2008/wordsim.csv.gz"
    ratings = cast("Ratings", read_judgments(file, scale=(0, 10)).observations)
    return ratings, {item: float(value) for item, value in read_gold(file)[""].items()}


def read_affect(data: Path) -> dict[str, tuple[Ratings, dict[str, float]]]:
    """Read the ratings of headlines by emotion, and the mean of the six experts."""
    file = data / "snow2008/affect.csv.gz"
    columns = {"criterion": "emotion"}
    gold = read_gold(file, columns=columns)
    judged = read_judgments(file, columns=columns, scale=(-100, 100)).by_criterion
    by_emotion = {}
    for name in AFFECT:
        ratings = cast("Ratings", judged[name])
        if name in EMOTIONS:
            ratings = replace(ratings, scale=(0.0, 100.0))
        by_emotion[name] = ratings, {item: float(value) for item, value in gold[name].items()}
    return by_emotion


def few_of_each(observations: _Pointwise, count: int, rng: np.random.Generator) -> _Pointwise:
    """Keep `count` annotations of every item, at random; all, where it has no more."""
    shuffled = np.lexsort((rng.random(len(observations)), observations.item))
    item = observations.item[shuffled]
    sample = np.sort(shuffled[np.arange(len(item)) - np.searchsorted(item, item) < count])
    columns = ("item", "annotator", "task", "label" if observations.kind == Labels.kind else "value")
    chosen: dict[str, Any] = {name: getattr(observations, name)[sample] for name in columns}
    return replace(observations, **chosen)
