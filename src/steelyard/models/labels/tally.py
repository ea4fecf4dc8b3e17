"""Counts of labels that majority, gold calibration and Dawid–Skene need, computed in memory or by an engine."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from steelyard.observations import FloatArray, Index, IntArray


class LeftOut(ABC):
    """How annotators answered gold items, for every label without the gold of its own item's fold.

    `counts[key]` is a confusion (true, given). The first keys are the annotators, with all their gold; the further
    ones are an annotator without one fold. `annotator` and `fold` are those of every key, UNKNOWN for all folds.
    """

    counts: FloatArray
    annotator: IntArray
    fold: IntArray

    @abstractmethod
    def summed(self, values: FloatArray) -> FloatArray:
        """Add up, for every item, the values (key, column, given) of its labels; a column is usually a true class."""


class LabelTally(ABC):
    """Labels counted by item, class and annotator."""

    items: Index
    classes: Index
    annotators: Index
    knows_annotators: bool
    votes: IntArray
    """Labels of every item (rows) and class (columns)."""

    @property
    def counts(self) -> tuple[IntArray, IntArray | None]:
        """How many labels each item has, and of how many annotators, where these are known."""
        return self.votes.sum(axis=1).astype(np.int32), self.annotators_by_item()

    @abstractmethod
    def annotators_by_item(self) -> IntArray | None:
        """Count each item's annotators; None where they are not known."""

    @abstractmethod
    def given(self) -> NDArray[np.int64]:
        """Count the labels of every annotator (rows) and class (columns)."""

    @abstractmethod
    def confusion(self, gold: IntArray) -> FloatArray:
        """Count (annotator, true, given) over the items with gold (class codes, else UNKNOWN)."""

    @abstractmethod
    def left_out(self, gold: IntArray, fold: IntArray) -> LeftOut:
        """Count the same with each item's own fold left out; `fold` is each item's, or UNKNOWN."""
