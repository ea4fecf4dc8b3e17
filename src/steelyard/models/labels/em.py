"""Common parts of Dawid–Skene and MACE: labels grouped by item, EM, and the bootstrap over annotators."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import ConvergenceWarning
from steelyard.models.gold import Gold, gold_labels
from steelyard.models.inference.resampling import poisson_weights
from steelyard.models.labels.kernels import (
    LabelCells,
    annotators_by_item,
    count_confusion,
    dawid_skene_step,
    group_by_item,
    sum_by_item,
)
from steelyard.models.labels.observed import vote_counts
from steelyard.models.labels.table import Interval, share_interval, total_by, winners, with_interval
from steelyard.observations import UNKNOWN, FloatArray, Index, IntArray, Labels

FEWEST_ANNOTATORS = 5
"""With fewer, resampling annotators says next to nothing."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelGroups(ABC):
    """Labels grouped by item, in memory or in an engine, with the sums that EM needs.

    `gold` is a class code per item, or UNKNOWN. `given` counts each annotator's labels of each class; `votes` those
    of each item and class; `judgments` and `annotators` those of each item.
    """

    gold: IntArray
    given: NDArray[np.int64]
    votes: IntArray
    judgments: IntArray
    annotators: IntArray

    @property
    def n_annotators(self) -> int:
        """How many annotators there are."""
        return int(self.given.shape[0])

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return int(self.given.shape[1])

    @property
    def has_gold(self) -> NDArray[np.bool_]:
        """Whether each item has a gold label."""
        return np.asarray(self.gold != UNKNOWN)

    def vote_shares(self) -> FloatArray:
        """Return the classes' shares of every item's votes, its gold where known; 1 / classes where neither is."""
        shares = self.votes / np.maximum(self.judgments, 1)[:, None]
        shares[self.judgments == 0] = 1 / self.n_classes
        shares[self.has_gold] = np.eye(self.n_classes)[self.gold[self.has_gold]]
        return shares

    def shown(self, posterior: FloatArray) -> FloatArray:
        """Return the probabilities to report: NaN for items that have neither labels nor gold."""
        nothing = (self.judgments == 0) & ~self.has_gold
        return np.where(nothing[:, None], np.nan, posterior)

    def accuracy_columns(self, posterior: FloatArray, level: float) -> dict[str, FloatArray]:
        """Return each annotator's expected share of right labels; the interval allows for doubt about them."""
        total = self.given.sum(axis=1).astype(np.float64)
        expected, spread = self.rightness(posterior)
        with np.errstate(invalid="ignore"):
            accuracy = expected / total
        return with_interval("accuracy", accuracy, share_interval(expected, total, level, spread))

    @abstractmethod
    def drawn(self, weight: FloatArray) -> NDArray[np.bool_]:
        """Return the items with a label whose annotator has weight."""

    @abstractmethod
    def expected(self, posterior: FloatArray) -> FloatArray:
        """Add up the posteriors of the items that each annotator gave each class: (annotator, given, true)."""

    @abstractmethod
    def step(self, log_confusion: FloatArray, log_prior: FloatArray, posterior: FloatArray) -> tuple[float, FloatArray]:
        """Make Dawid–Skene's E step and the sums for its next M step; return the log-likelihood and the sums.

        `log_confusion` and the sums are (annotator, given, true). `posterior` is overwritten: items with gold keep
        their class, items without labels their row.
        """

    @abstractmethod
    def summed(self, cells: FloatArray) -> FloatArray:
        """Add up, for every item, the values (annotator, given, true) of its labels, a column for each true class."""

    @abstractmethod
    def rightness(self, posterior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how many labels of each annotator are right, by expectation, and the variance of that."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupedLabels(LabelGroups):
    """Labels in memory, in the order of their items: item i has rows start[i] to start[i + 1].

    A row's `cell` is annotator · classes + class given.
    """

    start: NDArray[np.int64]
    cell: NDArray[np.int64]

    @classmethod
    def of(cls, model: str, labels: Labels, gold: Gold | None) -> GroupedLabels:
        """Group the labels, and line the gold up with them."""
        start, order = group_by_item(labels.item, len(labels.items))
        annotator = labels.annotator[order]
        n_annotators, n_classes = len(labels.annotators), len(labels.classes)
        cell = annotator.astype(np.int64) * n_classes + labels.label[order]
        return cls(
            start=start,
            cell=cell,
            gold=gold_labels(model, labels, gold, must_overlap=False)
            if gold
            else np.full(len(labels.items), UNKNOWN, np.int32),
            given=np.bincount(cell, minlength=n_annotators * n_classes).reshape(n_annotators, n_classes),
            votes=vote_counts(labels),
            judgments=np.diff(start).astype(np.int32),
            annotators=annotators_by_item(start, annotator, n_annotators),
        )

    @property
    def cells(self) -> LabelCells:
        """The arrays, as the kernels take them."""
        return LabelCells(self.start, self.cell, self.gold)

    @property
    def item(self) -> NDArray[np.int64]:
        """The item of every row."""
        return np.repeat(np.arange(len(self.gold)), self.judgments)

    def drawn(self, weight: FloatArray) -> NDArray[np.bool_]:
        """Return the items with a label whose annotator has weight."""
        if (weight > 0).all():
            return self.judgments > 0
        of_row = np.repeat(weight, self.n_classes)[self.cell]
        return np.bincount(self.item, of_row, minlength=len(self.gold)) > 0

    def expected(self, posterior: FloatArray) -> FloatArray:
        """Go through the labels once."""
        counts = np.empty((self.n_annotators, self.n_classes, self.n_classes))
        count_confusion(self.start, self.cell, posterior, counts.reshape(-1, self.n_classes))
        return counts

    def step(self, log_confusion: FloatArray, log_prior: FloatArray, posterior: FloatArray) -> tuple[float, FloatArray]:
        """Go through the labels once, for both."""
        counts = np.empty_like(log_confusion)
        by_cell, counts_by_cell = (table.reshape(-1, self.n_classes) for table in (log_confusion, counts))
        log_likelihood = dawid_skene_step(self.cells, by_cell, log_prior, posterior, counts_by_cell)
        return log_likelihood, counts

    def summed(self, cells: FloatArray) -> FloatArray:
        """Go through the labels once."""
        values = np.ascontiguousarray(cells, np.float64).reshape(-1, self.n_classes)
        return np.asarray(sum_by_item(self.start, self.cell, values))

    def rightness(self, posterior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Look every label's probability up."""
        right = posterior[self.item, self.cell % self.n_classes]
        annotator = self.cell // self.n_classes
        expected, spread = (total_by(annotator, w, self.n_annotators) for w in (right, right * (1 - right)))
        return expected, spread


class Climber(Protocol):
    """A state of EM with the value of its objective."""

    @property
    def objective(self) -> float:
        """The bound."""


S = TypeVar("S", bound=Climber)


def climb(step: Callable[[S], S], state: S, size: int, most: int, tolerance: float) -> tuple[S, int, float]:
    """Step until the bound gains no more than `tolerance` for each of `size` labels, or `most` times.

    Returns where it ended, after how many steps, and the last gain per label.
    """
    steps, gap = 0, np.inf
    while steps < most and gap > tolerance:
        before = state.objective
        state = step(state)
        gap = (state.objective - before) / size
        steps += 1
    return state, steps, float(gap)


def check_convergence(model: str, iterations: int, gap: float, tolerance: float) -> bool:
    """Return whether EM converged; warn if it did not."""
    if gap <= tolerance:
        return True
    warnings.warn(
        f"{model} did not converge in {iterations} iterations: the last gain was {gap:.2g} per label. "
        "Raise max_iterations or tolerance.",
        ConvergenceWarning,
        stacklevel=3,
    )
    return False


def resampled_interval(
    annotators: Index,
    groups: LabelGroups,
    probabilities: FloatArray,
    refit: Callable[[FloatArray, NDArray[np.bool_]], FloatArray],
    *,
    level: float,
    replicates: int,
    seed: int,
) -> tuple[Interval, tuple[str, ...]]:
    """Return the interval of every item's winning probability over resampled annotators, and notes.

    `refit` takes a weight per annotator, and which items have any, and returns the posterior, warm-started. Draws
    are kept as 32-bit floats: they are by far the largest thing here.
    """
    n = len(groups.gold)
    present = int((groups.given.sum(axis=1) > 0).sum())
    if present < FEWEST_ANNOTATORS:
        none = np.full(n, np.nan)
        reason = f"no intervals: resampling needs at least {FEWEST_ANNOTATORS} annotators, and there are {present}"
        return Interval(none, none), (reason,)
    label = winners(probabilities).label
    draws = np.full((replicates, n), np.nan, np.float32)
    for replicate, weight in enumerate(poisson_weights(annotators.ids, replicates, seed).astype(np.float64)):
        is_drawn = groups.drawn(weight)
        if is_drawn.any():
            draws[replicate] = np.where(is_drawn, refit(weight, is_drawn)[np.arange(n), label], np.nan)
    lower, upper = _quantiles(draws, level)
    alone = groups.annotators < 2
    lower[alone], upper[alone] = np.nan, np.nan
    single = int((alone & (groups.judgments > 0) & ~groups.has_gold).sum())
    notes = (f"{single} items labelled by a single annotator have no interval",) if single else ()
    return Interval(lower, upper), notes


def _quantiles(draws: NDArray[np.float32], level: float) -> tuple[FloatArray, FloatArray]:
    """Return both ends of the middle `level` of each column, skipping NaN; NaN for columns of fewer than two."""
    draws.sort(axis=0)
    count = (~np.isnan(draws)).sum(axis=0)
    last = np.maximum(count - 1, 0)
    columns = np.arange(draws.shape[1])
    ends = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        place = tail * last
        below = np.floor(place).astype(np.int64)
        above = np.minimum(below + 1, last)
        part = place - below
        end = (1 - part) * draws[below, columns] + part * draws[above, columns]
        ends.append(np.where(count >= 2, end, np.nan))
    return ends[0], ends[1]
