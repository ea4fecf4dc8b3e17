"""What a plan is for: reliable scores, narrow intervals, the right top k, or a detected difference of two systems.

Each target measures one number in a simulated study. `evidence` turns it into a quantity that is proportional to the
judgments, so that the needed number can be interpolated: ρ/(1 − ρ) of a reliability (Spearman–Brown), 1/w² of a width,
and z² of a test.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import asin, pi, sin, sqrt
from statistics import NormalDist
from typing import ClassVar, NamedTuple

import numpy as np

from steelyard.errors import ConfigError
from steelyard.models.point_scores import PointScores
from steelyard.observations import FloatArray, Observations
from steelyard.reliability import split_half
from steelyard.reliability.correlation import spearman
from steelyard.simulate.plan_layout import ItemLayout, Layout, SystemLayout
from steelyard.simulate.population import Population

_TRIALS = 2
"""Random halves per simulated study."""
_LEVEL = 0.95
_Z = NormalDist().inv_cdf((1 + _LEVEL) / 2)
_TOP_STUDIES = 400
"""Sets of items that are drawn to compute how often noisy scores have the right top k."""


class StudySample(NamedTuple):
    """The first judgments of a simulated study.

    `without_effect` are the same judgments, with the same random numbers, of systems that do not differ: what both have
    in common is chance.
    """

    layout: Layout
    observations: Observations
    without_effect: Observations | None
    values: FloatArray
    scorer: PointScores
    seed: int


class Target(ABC):
    """What must be reached, and how a simulated study is measured."""

    measure: ClassVar[str]
    """Short name of what is measured."""
    goal: float
    """The value that must be reached, as the user gave it."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """What must be reached, in a sentence such as "for a split-half reliability of 0.9"."""

    @abstractmethod
    def check(self, layout: Layout) -> None:
        """Refuse a target that does not suit what is planned."""

    @abstractmethod
    def value(self, sample: StudySample) -> float:
        """Measure a simulated study."""

    @abstractmethod
    def evidence(self, value: FloatArray) -> FloatArray:
        """Return what grows in proportion to the judgments; 0 at none."""

    def needed_value(self, layout: Layout, populations: Sequence[Population]) -> float:
        """Return the measured value at which the goal is reached."""
        return self.goal

    def shown(self, value: FloatArray, layout: Layout, populations: Sequence[Population]) -> FloatArray:
        """Return measured values as the user reads them, in units of the goal."""
        return value


@dataclass(frozen=True, slots=True)
class Reliability(Target):
    """Split-half reliability: the correlation of scores from two halves of the judgments, not corrected."""

    goal: float
    measure: ClassVar[str] = "split-half reliability"

    @property
    def sentence(self) -> str:
        """Name the reliability."""
        return f"split-half reliability {self.goal:g}"

    def check(self, layout: Layout) -> None:
        """Refuse a correlation of 1 or more."""
        if not 0 < self.goal < 1:
            raise ConfigError(f"a reliability of {self.goal:g} cannot be reached.", "Give a target between 0 and 1.")

    def value(self, sample: StudySample) -> float:
        """Correlate two halves: of the sources, or of the judgments."""
        layout = sample.layout
        if isinstance(layout, SystemLayout):
            return layout.reliability(sample.observations, sample.seed)
        statistics = split_half(sample.observations, model=sample.scorer, trials=_TRIALS, seed=sample.seed)
        return max(statistics["split_half_spearman"].value or 0.0, 0.0)

    def evidence(self, value: FloatArray) -> FloatArray:
        """Return the odds, by Spearman and Brown."""
        return np.asarray(value / np.maximum(1 - value, 1e-6))


@dataclass(frozen=True, slots=True)
class IntervalWidth(Target):
    """Mean width of 95 % intervals of the items' values, as a fraction of the scale from 0 to 1."""

    goal: float
    measure: ClassVar[str] = "width of 95 % intervals"

    @property
    def sentence(self) -> str:
        """Name the width."""
        return f"95 % intervals {self.goal:g} of the scale wide"

    def check(self, layout: Layout) -> None:
        """Refuse widths beyond the scale, and systems."""
        if not 0 < self.goal < 1:
            raise ConfigError(f"a width of {self.goal:g} is not a fraction of the scale.", "Give one between 0 and 1.")
        _only_items(layout, "interval width")

    def value(self, sample: StudySample) -> float:
        """Return the width that covers 95 % of normal errors, given the errors of the scores."""
        return 2 * _Z * _error_sd(sample)

    def evidence(self, value: FloatArray) -> FloatArray:
        """Return the precision."""
        return np.asarray(1 / np.maximum(value, 1e-6) ** 2)


@dataclass(frozen=True, slots=True)
class TopItems(Target):
    """The k items with the highest scores are the k best items, with a given probability."""

    k: int
    goal: float
    measure: ClassVar[str] = "probability that the top items are right"

    @property
    def sentence(self) -> str:
        """Name the items and the probability."""
        return f"the correct top {self.k} with probability {self.goal:g}"

    def check(self, layout: Layout) -> None:
        """Refuse more items than there are, and systems."""
        _only_items(layout, "top items")
        if not 0 < self.goal < 1:
            raise ConfigError(f"{self.goal:g} is not a probability below 1.", "Give one between 0 and 1.")
        if not 1 <= self.k < len(layout.items):
            raise ConfigError(f"there is no top {self.k} of {len(layout.items)} items.", "Give a smaller number.")

    def value(self, sample: StudySample) -> float:
        """Return the standard deviation of the errors, which decides how often the top is right."""
        return _error_sd(sample)

    def evidence(self, value: FloatArray) -> FloatArray:
        """Return the precision."""
        return np.asarray(1 / np.maximum(value, 1e-6) ** 2)

    def needed_value(self, layout: Layout, populations: Sequence[Population]) -> float:
        """Find the error at which the top is right with this probability."""
        grid = np.geomspace(0.5, 0.0005, 40)
        return float(np.interp(self.goal, self.shown(grid, layout, populations), grid))

    def shown(self, value: FloatArray, layout: Layout, populations: Sequence[Population]) -> FloatArray:
        """Return how often scores with errors of this size have the right top k."""
        rng = np.random.default_rng(0)
        count = len(layout.items)
        right = np.zeros(np.shape(value))
        for number in range(_TOP_STUDIES):
            truth = populations[number % len(populations)].values(count, rng)
            top = np.argpartition(-truth, self.k - 1)[: self.k]
            is_top = np.zeros(count, bool)
            is_top[top] = True
            errors = rng.standard_normal(count)
            # The same errors at every size keep the curve monotone but for chance.
            scores = truth + np.multiply.outer(value, errors)
            right += scores[..., is_top].min(axis=-1) > scores[..., ~is_top].max(axis=-1)
        return np.asarray(right / _TOP_STUDIES)


@dataclass(frozen=True, slots=True)
class SystemDifference(Target):
    """A true difference between two systems is significant (two-sided, 5 %) with a given power.

    The test is the paired t test over sources. Systems are equally spaced, neighbours differing by `difference`.
    """

    difference: float
    goal: float = 0.8
    measure: ClassVar[str] = "power"

    @property
    def sentence(self) -> str:
        """Name the difference and the power."""
        return f"a difference of {self.difference:g} between two systems with power {self.goal:g}"

    def check(self, layout: Layout) -> None:
        """Refuse items without systems."""
        if not isinstance(layout, SystemLayout):
            raise ConfigError(
                "a difference between systems needs systems.", "Give --systems and --sources, or a file of outputs."
            )
        if not 0 < self.difference < 1 or not 0.05 < self.goal < 1:
            raise ConfigError(
                f"difference {self.difference:g} and power {self.goal:g} cannot be planned.",
                "Give a difference between 0 and 1 of the scale, and a power between 0.05 and 1.",
            )

    def value(self, sample: StudySample) -> float:
        """Return the mean t of neighbouring systems, less that of equal systems, which removes most of the chance."""
        if not isinstance(sample.layout, SystemLayout):
            raise ConfigError("there are no systems.")
        chance = 0.0 if sample.without_effect is None else sample.layout.neighbour_t(sample.without_effect)
        return sample.layout.neighbour_t(sample.observations) - chance

    def evidence(self, value: FloatArray) -> FloatArray:
        """Return the square, which grows with the judgments until the sources limit it."""
        return np.asarray(np.maximum(value, 0.0) ** 2)

    def needed_value(self, layout: Layout, populations: Sequence[Population]) -> float:
        """Return the noncentrality that gives the power."""
        return _Z + NormalDist().inv_cdf(self.goal)

    def shown(self, value: FloatArray, layout: Layout, populations: Sequence[Population]) -> FloatArray:
        """Return the power at a noncentrality."""
        cdf = np.vectorize(NormalDist().cdf)
        return np.asarray(cdf(np.asarray(value) - _Z))


def _only_items(layout: Layout, what: str) -> None:
    if not isinstance(layout, ItemLayout):
        raise ConfigError(
            f"a plan by {what} is for items, not for systems.", "Plan by --target-reliability or --difference."
        )


def correlation_with_truth(sample: StudySample) -> float:
    """Return Spearman's ρ of the scores from all judgments with the true values."""
    if isinstance(sample.layout, SystemLayout):
        return sample.layout.truth(sample.observations)
    return _correlation(sample.scorer.scores(sample.observations), sample.values)


def reliability_from_truth(truth: float) -> tuple[float, float]:
    """Return reliability and truth of all judgments, from the correlation of half of them with the true values.

    Two independent studies of that size correlate at r² (attenuation), and studies twice as large follow by Spearman
    and Brown; Spearman's ρ of normal variables that correlate at r is 6/π · asin(r/2).
    """
    r = 2 * sin(pi * max(truth, 0.0) / 6)
    reliability = r**2
    return 6 / pi * asin(reliability / 2), 6 / pi * asin(sqrt(2 * reliability / (1 + reliability)) / 2)


def _correlation(first: FloatArray, second: FloatArray) -> float:
    is_scored = ~(np.isnan(first) | np.isnan(second))
    correlation = spearman(first[is_scored], second[is_scored])
    return 0.0 if correlation is None else correlation.r


def _error_sd(sample: StudySample) -> float:
    """Return the standard deviation of true values around their regression on the scores."""
    scores = sample.scorer.scores(sample.observations)
    is_scored = ~np.isnan(scores)
    values, scores = sample.values[is_scored], scores[is_scored]
    if len(scores) < 3 or np.ptp(scores) == 0:
        return float(np.std(sample.values))
    r = np.corrcoef(values, scores)[0, 1]
    return float(np.std(values) * np.sqrt(max(1 - r**2, 1e-9)))
