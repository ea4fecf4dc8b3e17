"""Common parts of the gold-based label models: cross-validation folds, and the notes of a fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.models.gold import disputed, fold_of_item
from steelyard.models.labels.majority import expected_accuracy
from steelyard.models.labels.table import annotator_table, confusion_columns, share_interval, winners, with_interval
from steelyard.models.labels.tally import LabelTally
from steelyard.observations import UNKNOWN, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class GoldSplit:
    """Gold lined up and dealt: every item's class, the fold that predicts it, and what calibrates annotators."""

    gold: IntArray
    trusted: IntArray
    fold: IntArray
    notes: tuple[str, ...]

    @classmethod
    def of(cls, labels: LabelTally, gold: IntArray, folds: int, seed: int, disputed_share: float) -> GoldSplit:
        """Deal the folds; gold contradicted by more than `disputed_share` of five labels or more is not trusted."""
        doubtful = (
            disputed(labels.votes, gold, disputed_share, 5) if disputed_share < 1 else np.zeros(len(gold), np.bool_)
        )
        trusted = np.where(doubtful, UNKNOWN, gold).astype(np.int32)
        notes: tuple[str, ...] = ()
        if doubtful.any():
            names = [labels.items[int(i)] for i in np.flatnonzero(doubtful)[:5]]
            notes = (
                f"gold labels contradicted by nearly all annotators were ignored: {', '.join(names)}"
                f"{f' and {doubtful.sum() - 5} more' if doubtful.sum() > 5 else ''}; see disputed_gold",
            )
        return cls(gold, trusted, fold_of_item(labels.items, gold != UNKNOWN, folds, seed), notes)

    def report(self, labels: LabelTally, probabilities: FloatArray, *, uses_everyone: bool = False) -> tuple[str, ...]:
        """Describe how well the items with gold were predicted, and who never met one.

        `uses_everyone`: whether annotators without gold items count as average ones, rather than not at all.
        """
        test_items = np.flatnonzero((self.gold != UNKNOWN) & ~np.isnan(probabilities).any(axis=1))
        votes = labels.votes[test_items]
        ours = label_accuracy(probabilities[test_items], self.gold[test_items])
        vote = expected_accuracy(votes, self.gold[test_items])
        unmet = int((labels.confusion(self.trusted).sum(axis=(1, 2)) == 0).sum())
        notes = (
            f"cross-validated accuracy on {len(test_items)} items with gold: {ours:.4f} (majority vote {vote:.4f})",
            *self.notes,
        )
        if unmet:
            consequence = "they count as average annotators" if uses_everyone else "their labels do not count"
            notes += (f"{unmet} annotators judged no item with gold; {consequence}",)
        return notes


def label_accuracy(probabilities: FloatArray, gold: IntArray) -> float:
    """Return the accuracy of the most probable class, over random tie-breaks."""
    label, top, tied = winners(probabilities)
    right = probabilities[np.arange(len(label)), gold] >= top - 1e-9
    return float((right / tied).mean())


def gold_annotator_table(labels: LabelTally, trusted: IntArray, level: float, smoothing: float | None) -> pl.DataFrame:
    """Report how annotators answered gold items; with the whole confusion where `smoothing` is given."""
    counts = labels.confusion(trusted)
    total = counts.sum(axis=(1, 2))
    right = counts.trace(axis1=1, axis2=2)
    with np.errstate(invalid="ignore"):
        accuracy = right / total
    columns: dict[str, FloatArray | NDArray[np.int64]] = {"gold_judgments": total.astype(np.int64)}
    columns |= with_interval("accuracy", accuracy, share_interval(right, total, level))
    if smoothing is not None:
        columns |= confusion_columns(labels.classes, counts, smoothing, level)
    return annotator_table(labels.annotators, labels.given().sum(axis=1), columns)
