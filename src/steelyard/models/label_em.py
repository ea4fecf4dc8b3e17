"""What Dawid–Skene and MACE share: labels grouped by item, the climb of EM, and resampling over annotators."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import ConvergenceWarning
from steelyard.models.gold import Gold, gold_labels
from steelyard.models.label_kernels import annotators_by_item, group_by_item
from steelyard.models.label_table import Interval, share_interval, total_by, winners, with_interval
from steelyard.models.resampling import poisson_weights
from steelyard.observations import UNKNOWN, FloatArray, IntArray, Labels

FEWEST_ANNOTATORS = 5
"""With fewer, resampling annotators says next to nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupedLabels:
    """Labels in the order of their items: item i has rows start[i] to start[i + 1].

    A row's `cell` is annotator · classes + class given; `gold` is a class code per item, or UNKNOWN. `given` counts
    each annotator's labels of each class; `judgments` and `annotators` count those of each item.
    """

    start: NDArray[np.int64]
    cell: NDArray[np.int64]
    gold: IntArray
    given: NDArray[np.int64]
    judgments: IntArray
    annotators: IntArray
    n_annotators: int
    n_classes: int

    @classmethod
    def of(cls, model: str, labels: Labels, gold: Gold | None) -> GroupedLabels:
        """Group the labels, and line the gold up with them."""
        start, order = group_by_item(labels.item, len(labels.items))
        annotator = labels.annotator[order]
        n_annotators, n_classes = len(labels.annotators), len(labels.classes)
        cell = annotator.astype(np.int64) * n_classes + labels.label[order]
        return cls(
            start,
            cell,
            gold_labels(model, labels, gold) if gold else np.full(len(labels.items), UNKNOWN, np.int32),
            np.bincount(cell, minlength=n_annotators * n_classes).reshape(n_annotators, n_classes),
            np.diff(start).astype(np.int32),
            annotators_by_item(start, annotator, n_annotators),
            n_annotators,
            n_classes,
        )

    @property
    def item(self) -> NDArray[np.int64]:
        """The item of every row."""
        return np.repeat(np.arange(len(self.gold)), self.judgments)

    @property
    def settled(self) -> NDArray[np.bool_]:
        """Items whose class is known by gold."""
        return np.asarray(self.gold != UNKNOWN)

    def vote_shares(self) -> FloatArray:
        """Return the classes' shares of every item's votes, its gold where known; 1 / classes where neither is."""
        n = len(self.gold)
        votes = np.bincount(
            self.item * self.n_classes + self.cell % self.n_classes, minlength=n * self.n_classes
        ).reshape(n, self.n_classes)
        shares = votes / np.maximum(self.judgments, 1)[:, None]
        shares[self.judgments == 0] = 1 / self.n_classes
        shares[self.settled] = np.eye(self.n_classes)[self.gold[self.settled]]
        return shares

    def drawn(self, weight: FloatArray) -> NDArray[np.bool_]:
        """Return the items with a label whose annotator has weight."""
        if (weight > 0).all():
            return self.judgments > 0
        of_row = np.repeat(weight, self.n_classes)[self.cell]
        return np.bincount(self.item, of_row, minlength=len(self.gold)) > 0

    def shown(self, posterior: FloatArray) -> FloatArray:
        """Return the probabilities to report: NaN for items that have neither labels nor gold."""
        nothing = (self.judgments == 0) & ~self.settled
        return np.where(nothing[:, None], np.nan, posterior)

    def accuracy_columns(self, posterior: FloatArray, level: float) -> dict[str, FloatArray]:
        """Return each annotator's expected share of right labels; the interval allows for doubt about them."""
        right = posterior[self.item, self.cell % self.n_classes]
        annotator = self.cell // self.n_classes
        total, expected, spread = (
            total_by(annotator, weights, self.n_annotators)
            for weights in (np.ones(len(right)), right, right * (1 - right))
        )
        with np.errstate(invalid="ignore"):
            accuracy = expected / total
        return with_interval("accuracy", accuracy, share_interval(expected, total, level, spread))


class Climber(Protocol):
    """Anything with a bound that rises."""

    @property
    def objective(self) -> float:
        """The bound."""


S = TypeVar("S", bound=Climber)


def climb(step: Callable[[S], S], state: S, size: int, most: int, tolerance: float) -> tuple[S, int, float]:
    """Step until the bound gains no more than `tolerance` for each of `size` labels, or `most` times.

    Returns where it ended, after how many steps, and the last gain per label.
    """
    taken, gap = 0, np.inf
    while taken < most and gap > tolerance:
        before = state.objective
        state = step(state)
        gap = (state.objective - before) / size
        taken += 1
    return state, taken, float(gap)


def settled(model: str, taken: int, gap: float, tolerance: float) -> bool:
    """Say whether the climb ended; warn if it was cut short."""
    if gap <= tolerance:
        return True
    warnings.warn(
        f"{model} had not settled after {taken} iterations: its bound still rose by {gap:.2g} a label. "
        "Raise max_iterations or tolerance.",
        ConvergenceWarning,
        stacklevel=3,
    )
    return False


def resampled_interval(
    labels: Labels,
    groups: GroupedLabels,
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
    present = len(np.unique(labels.annotator))
    if present < FEWEST_ANNOTATORS:
        none = np.full(n, np.nan)
        reason = f"no intervals: resampling needs at least {FEWEST_ANNOTATORS} annotators, and there are {present}"
        return Interval(none, none), (reason,)
    label = winners(probabilities).label
    draws = np.full((replicates, n), np.nan, np.float32)
    for replicate, weight in enumerate(poisson_weights(labels.annotators.ids, replicates, seed).astype(np.float64)):
        drawn = groups.drawn(weight)
        if drawn.any():
            draws[replicate] = np.where(drawn, refit(weight, drawn)[np.arange(n), label], np.nan)
    lower, upper = _quantiles(draws, level)
    alone = groups.annotators < 2
    lower[alone], upper[alone] = np.nan, np.nan
    single = int((alone & (groups.judgments > 0) & ~groups.settled).sum())
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
