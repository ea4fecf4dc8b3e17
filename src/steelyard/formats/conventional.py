"""Write observations as a table with the conventional columns, which reads back as the same observations."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.errors import DataError
from steelyard.formats.winners import TIES
from steelyard.observations import (
    UNKNOWN,
    Choices,
    Comparisons,
    Index,
    IntArray,
    Labels,
    Observations,
    Rankings,
    Ratings,
)


def judgment_table(observations: Observations | Mapping[str, Observations]) -> pl.DataFrame:
    """Return observations as a table that `read_judgments` reads back as they are.

    The table has columns `annotator` and `task` if any are known, and `criterion` for a mapping of criteria.
    Rankings are written best first; the order in which their items were presented is lost.
    """
    if isinstance(observations, Mapping):
        parts = [
            judgment_table(part).insert_column(0, pl.Series("criterion", [name] * len(part), pl.String))
            for name, part in observations.items()
        ]
        return pl.concat(parts, how="diagonal")
    columns: dict[str, pl.Series] = {}
    for name, codes, index in (
        ("annotator", observations.annotator, observations.annotators),
        ("task", observations.task, observations.tasks),
    ):
        if (codes != UNKNOWN).any():
            columns[name] = _names(index, codes)
    return pl.DataFrame(columns | _COLUMNS[type(observations)](observations))


def _names(index: Index, codes: NDArray[np.int32]) -> pl.Series:
    for name in index.ids:
        if not name or name != name.strip():
            raise DataError(f"id '{name}' is empty or has spaces around it.", "Use an id without surrounding spaces.")
    names = pl.Series(index.ids, dtype=pl.String)
    return names.gather(pl.Series(codes).cast(pl.UInt32, strict=False))


def _ratings(ratings: Ratings) -> dict[str, pl.Series]:
    return {"item": _names(ratings.items, ratings.item), "value": pl.Series(ratings.value)}


def _labels(labels: Labels) -> dict[str, pl.Series]:
    return {"item": _names(labels.items, labels.item), "label": _names(labels.classes, labels.label)}


def _comparisons(comparisons: Comparisons) -> dict[str, pl.Series]:
    left = _names(comparisons.items, comparisons.left)
    right = _names(comparisons.items, comparisons.right)
    tie = pl.Series([TIES[0]]).new_from_index(0, len(left))
    for word, alternative in itertools.pairwise(TIES):
        # An item with the id 'tie' would be read as the winner.
        clash = (tie == word) & ((left == word) | (right == word))
        tie = tie.set(clash, alternative)
    outcome = pl.Series(comparisons.outcome)
    columns = {"left": left, "right": right, "winner": left.zip_with(outcome == 1, right.zip_with(outcome == -1, tie))}
    if comparisons.has_strength:
        strength = pl.Series(comparisons.strength)
        columns["strength"] = strength.set(strength == 0, None)
    return columns


def _choices(choices: Choices) -> dict[str, pl.Series]:
    items = {f"item{place}": _names(choices.items, codes) for place, codes in enumerate(choices.shown.T, 1)}
    chosen: dict[str, IntArray] = {"best": choices.best, "worst": choices.worst}
    return items | {name: _names(choices.items, codes) for name, codes in chosen.items()}


def _rankings(rankings: Rankings) -> dict[str, pl.Series]:
    places = pl.DataFrame(
        {
            "row": np.repeat(np.arange(len(rankings)), np.diff(rankings.start)),
            "rank": rankings.rank,
            "item": _names(rankings.items, rankings.item),
        }
    ).sort("row", "rank", maintain_order=True)
    tiers = places.group_by("row", "rank", maintain_order=True).agg("item")
    if any(">" in name or "=" in name or name.startswith("[") for name in rankings.items.ids):
        lists = tiers.group_by("row", maintain_order=True).agg("item")["item"].to_list()
        return {"ranking": pl.Series([json.dumps(tiers, ensure_ascii=False) for tiers in lists], dtype=pl.String)}
    text = tiers.with_columns(pl.col("item").list.join("=")).group_by("row", maintain_order=True)
    return {"ranking": text.agg(pl.col("item").str.join(">"))["item"]}


_COLUMNS: dict[type[Observations], Callable[..., dict[str, pl.Series]]] = {
    Ratings: _ratings,
    Labels: _labels,
    Comparisons: _comparisons,
    Choices: _choices,
    Rankings: _rankings,
}
