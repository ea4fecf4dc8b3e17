"""Models' comparisons as evidence about the items, and what one more comparison by a model is expected to be worth.

The models' comparisons alone give each item a score g with posterior variance w (1 before any answer, as for people).
People's judgments of an item are z with sampling variance 1/L, and z = a + b·g + e. As g is a posterior mean, a model
whose converged scores would explain b² of the items' variance V explains b²·(1 − w) of that of an item: the item is
known like one with the prior N(a + b·g, V − b²·(1 − w)) instead of N(m, V). A further comparison lowers w, and with it
the residual variance. A model that does not agree with people gets b ≈ 0: its comparisons are no evidence, and further
ones are worth nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.designs.adaptive.judge_prior import START_RESIDUAL, START_WEIGHT, ItemPrior, PeopleEvidence
from steelyard.models.calibrated.online import CalibratedState
from steelyard.observations import UNKNOWN, FloatArray

MOST_EXPLAINED = 0.98
"""No model is assumed to explain more of the items' variance than this."""
_REFIT_GROWTH = 1.15
_ROUNDS, _TOLERANCE = 60, 5e-4
_LEAST_PRECISION = 1e-9


class ModelPairs(NamedTuple):
    """The comparisons of one answer: item codes, and 1 (left won), -1 (right won) or 0 (tie)."""

    left: Sequence[int]
    right: Sequence[int]
    outcome: Sequence[int]


class ComparedJudges:
    """The models' comparisons, and how well the scores that follow from them predict people's judgments."""

    def __init__(self, *, ties: bool) -> None:
        self._scale = CalibratedState(ties=ties)
        self._models: dict[str, int] = {}
        self._handles: dict[str, range] = {}
        self._pairs: Counter[tuple[int, int]] = Counter()
        self._first: Counter[int] = Counter()
        self._refit_at = 4.0
        self.precision: FloatArray = np.zeros(0)
        """Precision of the models' evidence about each item; 0 for items without an answer."""
        self.mean: FloatArray = np.zeros(0)
        """What the models predict for each item; the items' mean for items without evidence."""
        self.explained = 1 - START_RESIDUAL
        """Proportion of the items' variance that the models' scores are expected to explain, given many answers."""
        self.both = 0
        """Number of items judged by models and by people."""

    @property
    def residual(self) -> float:
        """Proportion of the items' variance that the models leave."""
        return 1 - self.explained

    @property
    def n_answers(self) -> int:
        """Number of the models' answers."""
        return len(self._handles)

    @property
    def pairs(self) -> set[tuple[int, int]]:
        """Pairs that a model has answered, lower code first."""
        return {pair for pair, count in self._pairs.items() if count > 0}

    @property
    def scores(self) -> FloatArray:
        """The models' own posterior mean of each item."""
        return self._scale.mean

    @property
    def variance(self) -> FloatArray:
        """The models' own posterior variance of each item, 1 before any answer."""
        return self._scale.variance

    @property
    def margin(self) -> float:
        """Tie margin of the models."""
        return self._scale.margin

    def level_probabilities(self) -> FloatArray:
        """Return the probability of each noise level, averaged over the models; the population's before any answer."""
        codes: Iterable[int] = self._models.values() or (UNKNOWN,)
        return np.asarray(np.mean([self._scale.level_probabilities(code) for code in codes], axis=0))

    def grow(self, count: int) -> None:
        """Add items."""
        self._scale.grow(count, self._scale.n_annotators)

    def add(self, model: str, judgment_id: str, pairs: ModelPairs) -> None:
        """Add the comparisons of a model's answer."""
        code = self._models.setdefault(model, len(self._models))
        self._scale.grow(self._scale.n_items, len(self._models))
        if self._scale.margin == 0 and not all(pairs.outcome):
            self._scale.margin = 0.1
        self._handles[judgment_id] = self._scale.learn(
            code, pairs.left, pairs.right, np.array(pairs.outcome, np.int8), weight=1.0
        )
        self._count(pairs, 1)
        if self._scale.n_comparisons >= self._refit_at:
            self._scale.refit()
            self._refit_at = max(self._scale.n_comparisons * _REFIT_GROWTH, self._refit_at + 4)

    def remove(self, judgment_id: str, pairs: ModelPairs) -> bool:
        """Remove an answer; return whether it was there."""
        handles = self._handles.pop(judgment_id, None)
        if handles is None:
            return False
        self._scale.forget(handles)
        self._count(pairs, -1)
        return True

    def _count(self, pairs: ModelPairs, by: int) -> None:
        for left, right in zip(pairs.left, pairs.right, strict=True):
            self._pairs[min(left, right), max(left, right)] += by
            self._first[left] += by

    def ordered(self, items: Sequence[int]) -> tuple[int, ...]:
        """Return a pair with the item first that models have seen first less often, so that positions balance."""
        return tuple(sorted(items, key=lambda item: (self._first[item], item)))

    def refit(self, people: PeopleEvidence, prior: ItemPrior) -> None:
        """Estimate how well the models' scores predict people's judgments, and the evidence about every item."""
        g, known = self.scores, np.maximum(1 - self.variance, 0.0)
        rows = np.flatnonzero((known > _LEAST_PRECISION) & (people.precision > _LEAST_PRECISION))
        self.both = len(rows)
        # The models' scores should vary by 1 − w; their prior does not know how much they really do.
        has_answer = known > _LEAST_PRECISION
        unit = float(np.mean(g[has_answer] ** 2) / known[has_answer].mean()) if has_answer.any() else 1.0
        line, covariance, established, least = _fit(g[rows], unit * known[rows], _rows(people, rows), prior)
        established *= unit
        # What is expected of further answers starts from the assumption, and follows the data as they grow.
        start = (1 - START_RESIDUAL) * START_WEIGHT
        explained = (start + len(rows) * established / prior.variance) / (START_WEIGHT + len(rows))
        by_residual = (1 - least / prior.variance) / max(known[rows].mean() if len(rows) else 1.0, _LEAST_PRECISION)
        self.explained = float(min(explained, by_residual, MOST_EXPLAINED))
        uncertainty = covariance[0, 0] + 2 * g * covariance[0, 1] + g**2 * covariance[1, 1]
        left = np.maximum(prior.variance - established * known, least) + uncertainty
        self.precision = np.where(has_answer, np.maximum(1 / left - 1 / prior.variance, 0.0), 0.0)
        predicted = line[0] + line[1] * g
        with np.errstate(divide="ignore", invalid="ignore"):
            # Together with the prior it gives the prediction.
            mean = ((self.precision + 1 / prior.variance) * predicted - prior.mean / prior.variance) / self.precision
        self.mean = np.where(self.precision > 0, mean, prior.mean)

    def added_precision(self, before: FloatArray, after: FloatArray, prior: ItemPrior) -> FloatArray:
        """Return the precision that lowering the models' own variance of items is expected to add."""
        return np.asarray(1 / self._left(after, prior) - 1 / self._left(before, prior))

    def precision_slope(self, variance: FloatArray, prior: ItemPrior) -> FloatArray:
        """Return the precision expected per unit by which the models' own variance of each item falls."""
        return np.asarray(self.explained * prior.variance / self._left(variance, prior) ** 2)

    def _left(self, variance: FloatArray, prior: ItemPrior) -> FloatArray:
        return np.asarray(prior.variance * (1 - self.explained * np.maximum(1 - variance, 0.0)))


def _rows(people: PeopleEvidence, rows: NDArray[np.intp]) -> PeopleEvidence:
    return PeopleEvidence(people.mean[rows], people.precision[rows])


def _fit(
    g: FloatArray, known: FloatArray, people: PeopleEvidence, prior: ItemPrior
) -> tuple[FloatArray, FloatArray, float, float]:
    """Fit z = a + b·g + e by EM, where `known` is the variance of g.

    Returns the coefficients, their covariance, the b² that chance is not expected to produce, and the mean variance of
    e, shrunk towards the assumption: b² alone would claim too much if the items vary more than their prior says.
    """
    columns = np.column_stack([np.ones(len(g)), g])
    start = START_RESIDUAL * prior.variance
    line: FloatArray = np.array([prior.mean, 0.0])
    covariance: FloatArray = prior.variance * np.eye(2) / START_WEIGHT
    established, residual = 0.0, start
    for _ in range(_ROUNDS if len(g) else 0):
        left = np.maximum(prior.variance - established * known, residual)
        weight = 1 / (left + 1 / people.precision)
        information = columns.T @ (weight[:, None] * columns) + np.eye(2) / prior.variance
        covariance = np.asarray(np.linalg.inv(information), np.float64)
        line = covariance @ (columns.T @ (weight * people.mean) + np.array([prior.mean / prior.variance, 0.0]))
        remaining = 1 / (1 / left + people.precision)
        squares = (remaining * people.precision * (people.mean - columns @ line)) ** 2 + remaining
        before = residual
        residual = float((START_WEIGHT * start + squares.sum()) / (START_WEIGHT + len(g)))
        established = max(0.0, float(line[1] ** 2 - covariance[1, 1]))
        if abs(residual - before) < _TOLERANCE * prior.variance:
            break
    return line, covariance, established, min(residual, prior.variance)
