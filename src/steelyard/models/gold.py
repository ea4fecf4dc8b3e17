"""Gold: align it with the observations, split it for cross-validation, and find disputed gold."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.errors import DataError, NoEvidenceError, Problem, did_you_mean
from steelyard.models.labels.observed import vote_counts
from steelyard.models.labels.table import nullable, winners
from steelyard.models.labels.tally import LabelTally
from steelyard.observations import UNKNOWN, FloatArray, Index, IntArray, Labels, Ratings

Gold: TypeAlias = Mapping[str, str | float]
"""The known class, or the known score, of some items."""

MAX_SHOWN = 5


def gold_labels(model: str, labels: Labels | LabelTally, gold: Gold, *, must_overlap: bool = True) -> IntArray:
    """Return the known class code of every item, UNKNOWN where there is none.

    With `must_overlap`, gold of which no item was judged is refused: for models that need gold.
    """
    problems: list[Problem] = []
    codes = np.full(len(labels.items), UNKNOWN, np.int32)
    for item, value in _within(model, labels.items, gold, problems).items():
        name = _class_name(value)
        if name is None:
            problems.append(Problem(f"the gold label of item '{item}' is missing.", "Leave that item out of the gold."))
        elif name not in labels.classes:
            remedy = did_you_mean(name, labels.classes.ids[:1000])
            problems.append(
                Problem(f"gold gives item '{item}' the class '{name}', which does not occur among the labels.", remedy)
            )
        else:
            codes[labels.items.code(item)] = labels.classes.code(name)
    _refuse(problems)
    if must_overlap:
        judged_items = np.flatnonzero(labels.votes.sum(axis=1)) if isinstance(labels, LabelTally) else labels.item
        _must_overlap(codes != UNKNOWN, judged_items)
    return codes


def with_gold_classes(labels: Labels, gold: Gold | None) -> Labels:
    """Add the classes that gold has and no annotator has chosen yet.

    A class that resembles an existing one is left for `gold_labels` to refuse: it is probably misspelt.
    """
    names = dict.fromkeys(name for value in (gold or {}).values() if (name := _class_name(value)) is not None)
    unused = [
        name
        for name in names
        if name not in labels.classes and not did_you_mean(name, labels.classes.ids[:1000]).startswith("Did")
    ]
    return replace(labels, classes=Index([*labels.classes.ids, *unused])) if unused else labels


def gold_scores(model: str, ratings: Ratings, gold: Gold) -> FloatArray:
    """Return the known score of every item, in the ratings' scale; NaN where there is none."""
    scores = gold_values(model, ratings.items, gold, ratings.scale)
    _must_overlap(~np.isnan(scores), ratings.item)
    return scores


def gold_values(model: str, items: Index, gold: Gold, scale: tuple[float, float] | None) -> FloatArray:
    """Return the known score of every item, NaN where there is none; `scale` is the one they must lie on, if any."""
    problems: list[Problem] = []
    low, high = scale or (-math.inf, math.inf)
    scores = np.full(len(items), np.nan)
    for item, value in _within(model, items, gold, problems).items():
        try:
            score = float(value)
        except (TypeError, ValueError):
            score = math.nan
        if not math.isfinite(score):
            problems.append(Problem(f"the gold score of item '{item}' is not a number ({value!r}).", "Leave it out."))
        elif not low <= score <= high:
            what = f"the gold score of item '{item}', {score:g}, is outside the ratings' scale {low:g} to {high:g}."
            problems.append(Problem(what, "Give gold on the scale of the ratings."))
        else:
            scores[items.code(item)] = score
    _refuse(problems)
    return scores


def _class_name(value: object) -> str | None:
    """Read a class as the labels would have it: a file's 1 may come as the number 1 or 1.0."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def need_gold(model: str, gold: Gold | None) -> Gold:
    """Refuse to fit without gold."""
    if not gold:
        raise DataError(f"{model} needs gold: give --gold FILE", "(in Python, fit(observations, gold={item: value})).")
    return gold


def _within(model: str, items: Index, gold: Gold, problems: list[Problem]) -> Gold:
    """Return the gold of known items; note the others as problems."""
    need_gold(model, gold)
    gold_of_items = {item: value for item, value in gold.items() if item in items}
    if not gold_of_items:
        example = next(iter(gold))
        raise DataError(
            f"gold and judgments have no items in common: none of its {len(gold)} items was judged "
            f"(gold has '{example}', the judgments have '{items[0]}').",
            "Use the same item ids in both.",
        )
    problems.extend(
        Problem(f"gold contains the item '{item}', which has no judgments.", _closest(str(item), items))
        for item in gold
        if item not in items
    )
    return gold_of_items


def _closest(item: str, items: Index) -> str:
    """Suggest an id, but never list them all: there may be thousands."""
    few = items.ids[:1000]
    suggestion = did_you_mean(item, few)
    return suggestion if len(few) <= 20 or suggestion.startswith("Did") else "Leave it out, or correct its id."


def _refuse(problems: list[Problem]) -> None:
    if problems:
        more = [Problem(f"… and {len(problems) - MAX_SHOWN} more like these.")] if len(problems) > MAX_SHOWN else []
        raise DataError([*problems[:MAX_SHOWN], *more])


def _must_overlap(has_gold: NDArray[np.bool_], item: NDArray[np.signedinteger]) -> None:
    if not has_gold[item].any():
        raise NoEvidenceError(
            f"gold and judgments have no items in common: none of the {int(has_gold.sum())} items with gold was "
            "judged.",
            "Collect judgments of some of them, or give gold for items that were judged.",
        )


def fold_of_item(items: Index, has_gold: NDArray[np.bool_], folds: int, seed: int) -> IntArray:
    """Deal the items with gold into folds of like size; UNKNOWN for the others.

    They are dealt in the order of md5("seed:item"), so that the order of the judgments does not matter.
    """
    with_gold = np.flatnonzero(has_gold)
    digests = [hashlib.md5(f"{seed}:{items[int(i)]}".encode(), usedforsecurity=False).digest() for i in with_gold]
    order = sorted(range(len(with_gold)), key=digests.__getitem__)
    fold = np.full(len(items), UNKNOWN, np.int32)
    fold[with_gold[order]] = np.arange(len(with_gold)) % max(1, min(folds, len(with_gold)))
    return fold


def disputed(votes: IntArray, gold: IntArray, share: float, judgments: int) -> NDArray[np.bool_]:
    """Return which items have gold that at least `share` of at least `judgments` labels contradict, as one class."""
    total = votes.sum(axis=1)
    contrary = votes.copy()
    has_gold = gold != UNKNOWN
    contrary[has_gold, gold[has_gold]] = 0
    return np.asarray(has_gold & (total >= judgments) & (contrary.max(axis=1) >= share * total - 1e-9))


def disputed_gold(labels: Labels, gold: Gold, *, share: float = 0.8, judgments: int = 5) -> pl.DataFrame:
    """List the items whose gold a large majority contradicts, the most contradicted first.

    Snow et al. (2008, §4.5) found a wrong gold label so. `share` of an item's labels must agree on one other
    class, out of at least `judgments`. Columns: item, gold, label (the majority's), share (its part of the
    votes), votes, gold_votes, judgments.
    """
    codes = gold_labels("disputed_gold", labels, gold)
    votes = vote_counts(labels)
    rows = np.flatnonzero(disputed(votes, codes, share, judgments))
    names = np.array(labels.classes.ids, dtype=object)
    total = votes[rows].sum(axis=1)
    label, top, _ = winners(votes[rows] / total[:, None])
    return pl.DataFrame(
        {
            "item": pl.Series([labels.items[int(row)] for row in rows], dtype=pl.String),
            "gold": pl.Series(names[codes[rows]].tolist(), dtype=pl.String),
            "label": pl.Series(names[label].tolist(), dtype=pl.String),
            "share": nullable(top),
            "votes": pl.Series(votes[rows, label], dtype=pl.Int64),
            "gold_votes": pl.Series(votes[rows, codes[rows]], dtype=pl.Int64),
            "judgments": pl.Series(total, dtype=pl.Int64),
        }
    ).sort("share", "judgments", "item", descending=[True, True, False])
