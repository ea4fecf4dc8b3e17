"""Models' answers as evidence about the items, and what one more answer by a model is expected to be worth.

People's judgments of an item are z with sampling variance 1/L, and z = a + b·f + e, where f is the models' answer and
the residual e has the variance s². An item that a model has answered is therefore known like one with the prior
N(a + b·f, s²) instead of N(m, V). The variance s² is estimated for fifths of f and for groups of items, because models
are often better for some items than for others. A model that knows nothing gets b ≈ 0 and s² ≈ V: no evidence.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from steelyard.observations import FloatArray, IntArray

START_RESIDUAL, START_WEIGHT = 0.75, 10.0
"""Before people have judged a model's items, it is assumed to leave 3/4 of the variance (a correlation of .5), with the
weight of ten items: enough to ask a cheap model, and soon overruled by data."""
FIFTHS = 5
_ROUNDS, _TOLERANCE = 30, 2e-3
_LEAST_PRECISION = 1e-9


class PeopleEvidence(NamedTuple):
    """The estimate of each item from people's judgments alone: mean and precision (0 without judgments)."""

    mean: FloatArray
    precision: FloatArray


class ItemPrior(NamedTuple):
    """Mean and variance of the items before any answer."""

    mean: float
    variance: float


class JudgePrior:
    """The models' answers, on [0, 1], and how well they predict people's."""

    def __init__(self) -> None:
        self._answers: dict[str, dict[int, dict[str, float]]] = {}
        """By model, item and judgment."""
        self.precision: FloatArray = np.zeros(0)
        """Precision of the models' evidence about each item; 0 for items without an answer."""
        self.mean: FloatArray = np.zeros(0)
        """What the models predict for each item; the items' mean for items without an answer."""
        self.expected: FloatArray = np.zeros(0)
        """Precision that the first answer of a model about each item is expected to add."""
        self.residual = START_RESIDUAL
        """Proportion of the items' variance that the models leave."""
        self.both = 0
        """Number of items judged by models and by people."""

    def add(self, model: str, item: int, judgment_id: str, value: float) -> None:
        """Add a model's answer about an item."""
        self._answers.setdefault(model, {}).setdefault(item, {})[judgment_id] = value

    def remove(self, model: str, item: int, judgment_id: str) -> bool:
        """Remove an answer; return whether it was there."""
        answers = self._answers.get(model, {})
        if answers.get(item, {}).pop(judgment_id, None) is None:
            return False
        if not answers[item]:
            del answers[item]
        return True

    @property
    def judged_items(self) -> set[int]:
        """Items that a model has answered."""
        return {item for answers in self._answers.values() for item in answers}

    @property
    def n_answers(self) -> int:
        """Number of items that a model has answered."""
        return len(self.judged_items)

    def scores(self, count: int) -> FloatArray:
        """Return the mean over models of their latest answer about each item, each model around its own mean."""
        parts: defaultdict[int, list[float]] = defaultdict(list)
        for answers in self._answers.values():
            latest = {item: list(values.values())[-1] for item, values in answers.items()}
            centre = sum(latest.values()) / max(1, len(latest))
            for item, value in latest.items():
                parts[item].append(value - centre)
        scores = np.full(count, np.nan)
        for item, values in parts.items():
            scores[item] = sum(values) / len(values)
        return scores

    def refit(self, people: PeopleEvidence, prior: ItemPrior, groups: IntArray) -> None:
        """Estimate how well the models predict people's judgments, and the evidence about every item."""
        f = self.scores(len(people.mean))
        has_answer = np.isfinite(f)
        sd = float(f[has_answer].std()) if has_answer.any() else 0.0
        g = np.where(has_answer, (f - (f[has_answer].mean() if has_answer.any() else 0.0)) / (sd or 1.0), 0.0)
        fifth: IntArray = np.zeros(len(f), np.int32)
        if sd:
            cuts = np.quantile(g[has_answer], np.arange(1, FIFTHS) / FIFTHS)
            fifth = np.searchsorted(cuts, g, side="right").astype(np.int32)
        rows = np.flatnonzero(has_answer & (people.precision > _LEAST_PRECISION))
        self.both = len(rows)
        line, covariance, common, factors = _fit(
            g[rows], PeopleEvidence(people.mean[rows], people.precision[rows]), prior, (fifth[rows], groups[rows])
        )
        by_fifth, by_group = (
            np.append(part, np.ones(max(0, int(codes.max(initial=-1)) + 1 - len(part))))
            for part, codes in zip(factors, (fifth, groups), strict=True)
        )
        uncertainty = covariance[0, 0] + 2 * g * covariance[0, 1] + g**2 * covariance[1, 1]
        own = common * by_fifth[fifth] * by_group[groups] + uncertainty
        # Without the uncertainty of a and b: a few answers would make it large, and only further answers reduce it.
        new = common * by_group[groups]
        # Evidence never widens what is known of an item.
        added = np.maximum(1 / np.maximum(own, 1e-9) - 1 / prior.variance, 0.0)
        self.precision = np.where(has_answer, added, 0.0)
        # Together with the prior it gives N(a + b·f, s²).
        predicted = line[0] + line[1] * g
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = ((self.precision + 1 / prior.variance) * predicted - prior.mean / prior.variance) / self.precision
        self.mean = np.where(self.precision > 0, mean, prior.mean)
        self.expected = np.maximum(1 / np.maximum(new, 1e-9) - 1 / prior.variance, 0.0)
        self.residual = float(min(1.0, common / prior.variance))


def _fit(
    g: FloatArray, people: PeopleEvidence, prior: ItemPrior, strata: tuple[IntArray, IntArray]
) -> tuple[FloatArray, FloatArray, float, list[FloatArray]]:
    """Fit z = a + b·g + e by EM: coefficients, their covariance, the variance of e, and factors of it by stratum."""
    columns = np.column_stack([np.ones(len(g)), g])
    start = START_RESIDUAL * prior.variance
    common, factors = start, [np.ones(int(codes.max(initial=-1)) + 1) for codes in strata]
    line: FloatArray = np.array([prior.mean, 0.0])
    covariance: FloatArray = prior.variance * np.eye(2) / START_WEIGHT
    for _ in range(_ROUNDS if len(g) else 0):
        variance = common * factors[0][strata[0]] * factors[1][strata[1]]
        weight = 1 / (variance + 1 / people.precision)
        information = columns.T @ (weight[:, None] * columns) + np.eye(2) / prior.variance
        covariance = np.asarray(np.linalg.inv(information), np.float64)
        line = covariance @ (columns.T @ (weight * people.mean) + np.array([prior.mean / prior.variance, 0.0]))
        remaining = 1 / (1 / variance + people.precision)
        residual = remaining * people.precision * (people.mean - columns @ line)
        squares = residual**2 + remaining
        relative = squares / (variance / common)
        before, common = common, float((START_WEIGHT * start + relative.sum()) / (START_WEIGHT + len(g)))
        for place, codes in enumerate(strata):
            other = squares / (common * factors[1 - place][strata[1 - place]])
            count = np.bincount(codes, minlength=len(factors[place]))
            total = np.bincount(codes, other, minlength=len(factors[place]))
            factor = (START_WEIGHT + total) / (START_WEIGHT + count)
            factors[place] = factor / np.average(factor, weights=count)
        if abs(common - before) < _TOLERANCE * prior.variance:
            break
    # With one rating per item, the noise of ratings and hence the residuals are hardly known, but the slope is: the
    # models explain b² of the variance, less what chance explains.
    explained = max(0.0, line[1] ** 2 - covariance[1, 1])
    left = max(0.0, prior.variance - explained)
    common = max(common, float((START_WEIGHT * start + len(g) * left) / (START_WEIGHT + len(g))))
    return line, covariance, common, factors
