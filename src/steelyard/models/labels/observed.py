"""Labels in memory, counted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steelyard.models.labels.tally import LabelTally, LeftOut
from steelyard.models.table import count_by_item
from steelyard.observations import UNKNOWN, FloatArray, IntArray, Labels


def vote_counts(observations: Labels) -> IntArray:
    """Count the votes of every item (rows) for every class (columns)."""
    n_items, n_classes = len(observations.items), len(observations.classes)
    cells = observations.item.astype(np.int64) * n_classes + observations.label
    return np.bincount(cells, minlength=n_items * n_classes).reshape(n_items, n_classes).astype(np.int32)


class ObservedLabels(LabelTally):
    """The labels of observations in memory."""

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.items, self.classes, self.annotators = labels.items, labels.classes, labels.annotators
        self.knows_annotators = labels.knows_annotators
        self.votes = vote_counts(labels)

    def annotators_by_item(self) -> IntArray | None:
        """Sort the labels by item and annotator."""
        return count_by_item(self.labels, self.labels.item, np.arange(len(self.labels), dtype=np.int32))[1]

    def given(self) -> NDArray[np.int64]:
        """Count the labels."""
        n, k = len(self.annotators), len(self.classes)
        cell = self.labels.annotator.astype(np.int64) * k + self.labels.label
        return np.bincount(cell, minlength=n * k).reshape(n, k)

    def confusion(self, gold: IntArray) -> FloatArray:
        """Count the labels of items with gold."""
        n, k = len(self.annotators), len(self.classes)
        true = gold[self.labels.item]
        cell = (self.labels.annotator.astype(np.int64) * k + true) * k + self.labels.label
        return np.bincount(cell[true != UNKNOWN], minlength=n * k * k).reshape(n, k, k).astype(np.float64)

    def left_out(self, gold: IntArray, fold: IntArray) -> LeftOutLabels:
        """Give every label the key of its annotator, or of its annotator without its item's fold.

        Only folds that an annotator met get a key, so that memory stays linear in the labels.
        """
        labels = self.labels
        n, k = len(self.annotators), len(self.classes)
        total = self.confusion(gold)
        left_out = np.flatnonzero(fold[labels.item] != UNKNOWN)
        pair = fold[labels.item[left_out]].astype(np.int64) * n + labels.annotator[left_out]
        pairs, inverse = np.unique(pair, return_inverse=True)
        true = gold[labels.item[left_out]]
        counted = true != UNKNOWN
        cell = (inverse * k + true) * k + labels.label[left_out]
        own = np.bincount(cell[counted], minlength=len(pairs) * k * k).reshape(len(pairs), k, k)
        key = labels.annotator.astype(np.int64)
        key[left_out] = n + inverse
        return LeftOutLabels(
            labels,
            np.concatenate([total, total[pairs % n] - own]),
            key,
            np.concatenate([np.arange(n), pairs % n]).astype(np.int32),
            np.concatenate([np.full(n, UNKNOWN), pairs // n]).astype(np.int32),
        )


class LeftOutLabels(LeftOut):
    """The counts, the key of every label, and the annotator and fold of every key."""

    def __init__(
        self, labels: Labels, counts: FloatArray, key: NDArray[np.int64], annotator: IntArray, fold: IntArray
    ) -> None:
        self.labels, self.counts, self.key, self.annotator, self.fold = labels, counts, key, annotator, fold

    def summed(self, values: FloatArray) -> FloatArray:
        """Look every label's values up."""
        return sum_by_item(self.labels, values[self.key, :, self.labels.label])


def sum_by_item(labels: Labels, values: FloatArray) -> FloatArray:
    """Add up the rows of `values` (one for each label, a column for each class) by item."""
    n = len(labels.items)
    return np.stack([np.bincount(labels.item, column, minlength=n) for column in values.T], axis=1)
