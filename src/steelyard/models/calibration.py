"""What the gold-based label models share: counts with the item's own fold left out, and the report of a fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.models.gold import disputed, fold_of_item
from steelyard.models.label_table import annotator_table, confusion_columns, share_interval, winners, with_interval
from steelyard.models.majority import expected_accuracy, vote_counts
from steelyard.observations import UNKNOWN, FloatArray, IntArray, Labels


@dataclass(frozen=True, slots=True, eq=False)
class LeftOutCounts:
    """How annotators answered gold items, for every label without the gold of its own item's fold.

    `counts[key]` is a confusion (true, given). The first keys are the annotators, with all their gold; the further
    ones are an annotator without one fold. `key` is that of every label. Only folds that an annotator met get a
    key, so that memory stays linear in the labels.
    """

    counts: FloatArray
    key: NDArray[np.int64]

    @classmethod
    def of(cls, labels: Labels, gold: IntArray, fold: IntArray) -> LeftOutCounts:
        """Count the labels of items with gold (class codes, else UNKNOWN); `fold` is each item's, or UNKNOWN."""
        n, k = len(labels.annotators), len(labels.classes)
        total = confusion_counts(labels, gold)
        left_out = np.flatnonzero(fold[labels.item] != UNKNOWN)
        pair = fold[labels.item[left_out]].astype(np.int64) * n + labels.annotator[left_out]
        pairs, inverse = np.unique(pair, return_inverse=True)
        true = gold[labels.item[left_out]]
        counted = true != UNKNOWN
        cell = (inverse * k + true) * k + labels.label[left_out]
        own = np.bincount(cell[counted], minlength=len(pairs) * k * k).reshape(len(pairs), k, k)
        key = labels.annotator.astype(np.int64)
        key[left_out] = n + inverse
        return cls(np.concatenate([total, total[pairs % n] - own]), key)


def confusion_counts(labels: Labels, gold: IntArray) -> FloatArray:
    """Count (annotator, true, given) over the items with gold."""
    n, k = len(labels.annotators), len(labels.classes)
    true = gold[labels.item]
    cell = (labels.annotator.astype(np.int64) * k + true) * k + labels.label
    return np.bincount(cell[true != UNKNOWN], minlength=n * k * k).reshape(n, k, k).astype(np.float64)


def sum_by_item(labels: Labels, values: FloatArray) -> FloatArray:
    """Add up the rows of `values` (one for each label, a column for each class) by item."""
    n = len(labels.items)
    return np.stack([np.bincount(labels.item, column, minlength=n) for column in values.T], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class GoldSplit:
    """Gold lined up and dealt: every item's class, the fold that predicts it, and what calibrates annotators."""

    gold: IntArray
    trusted: IntArray
    fold: IntArray
    notes: tuple[str, ...]

    @classmethod
    def of(cls, labels: Labels, gold: IntArray, folds: int, seed: int, disputed_share: float) -> GoldSplit:
        """Deal the folds; gold contradicted by more than `disputed_share` of five labels or more is not trusted."""
        doubtful = disputed(labels, gold, disputed_share, 5) if disputed_share < 1 else np.zeros(len(gold), np.bool_)
        trusted = np.where(doubtful, UNKNOWN, gold).astype(np.int32)
        notes: tuple[str, ...] = ()
        if doubtful.any():
            names = [labels.items[int(i)] for i in np.flatnonzero(doubtful)[:5]]
            notes = (
                f"gold contradicted by nearly all labels, and so not held against annotators: {', '.join(names)}"
                f"{f' and {doubtful.sum() - 5} more' if doubtful.sum() > 5 else ''}; see disputed_gold",
            )
        return cls(gold, trusted, fold_of_item(labels.items, gold != UNKNOWN, folds, seed), notes)

    def report(self, labels: Labels, probabilities: FloatArray) -> tuple[str, ...]:
        """Say how well the items with gold were predicted, and who never met one."""
        judged = np.flatnonzero((self.gold != UNKNOWN) & ~np.isnan(probabilities).any(axis=1))
        votes = vote_counts(labels)[judged]
        ours = label_accuracy(probabilities[judged], self.gold[judged])
        vote = expected_accuracy(votes, self.gold[judged])
        unmet = len(labels.annotators) - len(np.unique(labels.annotator[self.trusted[labels.item] != UNKNOWN]))
        notes = (
            f"cross-validated accuracy on {len(judged)} items with gold: {ours:.4f} (majority vote {vote:.4f})",
            *self.notes,
        )
        if unmet:
            notes += (f"{unmet} annotators met no item with gold; their labels do not count",)
        return notes


def label_accuracy(probabilities: FloatArray, gold: IntArray) -> float:
    """Return the accuracy of the most probable class, over random tie-breaks."""
    label, top, tied = winners(probabilities)
    right = probabilities[np.arange(len(label)), gold] >= top - 1e-9
    return float((right / tied).mean())


def gold_annotator_table(labels: Labels, trusted: IntArray, level: float, smoothing: float | None) -> pl.DataFrame:
    """Report how annotators answered gold items; with the whole confusion where `smoothing` is given."""
    counts = confusion_counts(labels, trusted)
    total = counts.sum(axis=(1, 2))
    right = counts.trace(axis1=1, axis2=2)
    with np.errstate(invalid="ignore"):
        accuracy = right / total
    columns: dict[str, FloatArray | NDArray[np.int64]] = {"gold_judgments": total.astype(np.int64)}
    columns |= with_interval("accuracy", accuracy, share_interval(right, total, level))
    if smoothing is not None:
        columns |= confusion_columns(labels, counts, smoothing, level)
    return annotator_table(labels, columns)
