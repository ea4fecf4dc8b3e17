"""Test of whether differences between annotators are due to the items that they were given.

Subtracting an annotator's bias is right if items were assigned to annotators at random. If one annotator was given the
best items, their high ratings are not a bias, and correcting them makes the scores worse than means. Items rated by
several annotators distinguish the two cases: biases estimated from differences within items do not depend on the
assignment of items, those estimated from all ratings do. The two are compared as in Hausman's test (1978).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.sparse import csgraph
from scipy.sparse.linalg import LinearOperator, cg

from steelyard.models.calibrated.evidence import Evidence
from steelyard.observations import UNKNOWN, FloatArray

SIGNIFICANCE = 1e-3
"""One-sided significance at which the two estimates of the biases differ."""

LEAST_CONFIRMED = 0.5
"""Fraction of the biases that must show within items. Below, means without correction have the smaller error."""

WIDEST = 0.5
"""Half-width of the 95 % interval of `confirmed` up to which shared items can tell 1 from LEAST_CONFIRMED."""

SMALLEST_CORRELATION = 0.95
"""Correlation of mean ratings with and without bias from which it matters little whether biases are real."""

LEAST_FREEDOM = 5
"""Degrees of freedom within items from which their noise is known well enough."""

PRECISION = 1e-8
"""Relative tolerance of the linear systems."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """How far the differences between annotators' ratings also show on the items that they share.

    `confirmed` is the slope of the biases within items on those from all ratings: 1 on average if items were assigned
    at random, and 0 if annotators do not differ but their items do. `p_value` is one-sided, against 1, and `half_width`
    that of its 95 % interval.
    """

    confirmed: float = 1.0
    p_value: float = 1.0
    half_width: float = 0.0

    @property
    def is_confounded(self) -> bool:
        """Whether most of the differences are differences between the items that annotators were given."""
        return self.p_value < SIGNIFICANCE and self.confirmed < LEAST_CONFIRMED

    def warnings(self, evidence: Evidence, bias: FloatArray, *, is_corrected: bool) -> tuple[str, ...]:
        """Return a sentence if the biases by responder are wrong, or if they matter and cannot be checked."""
        if self.is_confounded:
            remedy = "set annotator_effects to none" if is_corrected else "the scores are not corrected for bias"
            return (
                f"annotators with high ratings were given better items: only {max(0.0, 100 * self.confirmed):.0f} % of "
                f"the differences between annotators show on items that they share; {remedy}",
            )
        correlation = _effect_of(bias, evidence) if self.half_width > WIDEST else 1.0
        if correlation > SMALLEST_CORRELATION:
            return ()
        return (
            "annotators share too few items to tell their bias from differences between their items: the correction "
            f"for bias (r = {correlation:.2f} with mean ratings) holds only if items were assigned at random",
        )


def check_assignment(evidence: Evidence) -> Assignment:
    """Compare biases within items with biases from all ratings, for the ratings that set the scale."""
    design = _Design.of(evidence)
    return Assignment() if design is None else design.check()


@dataclass(frozen=True, slots=True, eq=False)
class _Design:
    """One mean rating for each item and named annotator, both numbered without gaps."""

    item: NDArray[np.integer]
    who: NDArray[np.integer]
    value: FloatArray
    incidence: sparse.csr_array

    @classmethod
    def of(cls, evidence: Evidence) -> _Design | None:
        """Take the ratings that set the scale; None if there are not several annotators who share items."""
        first = evidence.groups[0]
        last = int(evidence.ratings.first[first.last]) if first.rates else 0
        who = np.repeat(np.arange(len(evidence.annotator)), np.diff(evidence.ratings.first))[:last]
        is_used = (evidence.annotator[who] != UNKNOWN) & ~evidence.gold[who]
        n_items = len(evidence.item)
        key = who[is_used].astype(np.int64) * n_items + evidence.ratings.item[:last][is_used]
        cells, cell = np.unique(key, return_inverse=True)
        if len(cells) == 0:
            return None
        value = np.bincount(cell, evidence.ratings.value[:last][is_used]) / np.bincount(cell)
        item = np.unique(cells % n_items, return_inverse=True)[1]
        annotator = np.unique(cells // n_items, return_inverse=True)[1]
        return cls(item, annotator, value - value.mean(), sparse.csr_array((np.ones(len(cells)), (annotator, item))))

    @property
    def by_annotator(self) -> FloatArray:
        """Number of ratings of each annotator."""
        return np.bincount(self.who).astype(np.float64)

    @property
    def by_item(self) -> FloatArray:
        """Number of ratings of each item."""
        return np.bincount(self.item).astype(np.float64)

    def check(self) -> Assignment:
        """Compare the two estimates of the biases along the one that the scores are corrected by."""
        n_annotators, by_item = len(self.by_annotator), self.by_item
        shape = (n_annotators + len(by_item), n_annotators + len(by_item))
        links = sparse.coo_array((np.ones(len(self.value)), (self.who, n_annotators + self.item)), shape=shape)
        count = int(csgraph.connected_components(links, directed=False)[0])
        freedom = len(self.value) - len(by_item) - n_annotators + count
        # Where items fall into parts, there is a warning anyway.
        if count > 1 or n_annotators < 2:
            return Assignment()
        within = self._biases(1 / by_item)
        location = np.bincount(self.item, self.value - within[self.who]) / by_item
        residual = self.value - within[self.who] - location[self.item]
        deviation = self.value - (np.bincount(self.who, self.value) / self.by_annotator)[self.who]
        spread = float(deviation @ deviation) / max(len(self.value) - n_annotators, 1)
        # With little freedom, all of the variance may be noise.
        noise = float(residual @ residual) / freedom if freedom >= LEAST_FREEDOM else spread
        between = max(spread - noise, PRECISION * spread)
        if noise <= 0:
            return Assignment()
        weight = between / (noise + by_item * between)
        overall = self._biases(weight)
        contrast = self.by_annotator * (overall - (self.by_annotator @ overall) / self.by_annotator.sum())
        size = float(contrast @ overall)
        variance = noise * float(contrast @ (self._solve(1 / by_item, contrast) - self._solve(weight, contrast)))
        if not (np.isfinite(variance) and size > 0 and variance > 0):
            return Assignment()
        error, confirmed = np.sqrt(variance) / size, float(contrast @ within) / size
        if freedom < LEAST_FREEDOM:
            return Assignment(confirmed, half_width=np.inf)
        p_value = float(stats.t.cdf((confirmed - 1) / error, freedom))
        return Assignment(confirmed, p_value, float(stats.t.ppf(0.975, freedom) * error))

    def _biases(self, weight: FloatArray) -> FloatArray:
        """Estimate biases, the sum of an item's ratings being subtracted with a weight."""
        total = np.bincount(self.item, self.value)
        return self._solve(weight, np.bincount(self.who, self.value) - self.incidence @ (weight * total))

    def _solve(self, weight: FloatArray, right: FloatArray) -> FloatArray:
        """Solve for biases by conjugate gradients; the system may be singular, but has a solution."""
        count, incidence = self.by_annotator, self.incidence
        matrix = LinearOperator(
            (len(count), len(count)), lambda b: count * b - incidence @ (weight * (incidence.T @ b)), dtype=np.float64
        )
        # At an exact solution of a singular system, the next step is 0/0.
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(cg(matrix, right, rtol=PRECISION, maxiter=500)[0])


def _effect_of(bias: FloatArray, evidence: Evidence) -> float:
    """Return the correlation of mean ratings with mean ratings less bias, over items."""
    last = int(evidence.ratings.first[evidence.groups[0].last])
    item, value = evidence.ratings.item[:last], evidence.ratings.value[:last]
    who = np.repeat(np.arange(len(evidence.annotator)), np.diff(evidence.ratings.first))[:last]
    count = np.bincount(item)
    plain, corrected = (np.bincount(item, each)[count > 0] / count[count > 0] for each in (value, value - bias[who]))
    return float(np.corrcoef(plain, corrected)[0, 1]) if min(np.ptp(plain), np.ptp(corrected)) > 0 else 1.0
