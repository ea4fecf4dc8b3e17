"""Residuals of answers from a model of all answers, and the fit statistics infit and outfit that they give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import cg

from steelyard.observations import UNKNOWN, FloatArray, IntArray, Observations, Ratings
from steelyard.reliability.annotators import ordered_pairs
from steelyard.reliability.separation import EPSILON
from steelyard.reliability.severity import fit_facets

MIN_ANSWERS = 4
"""Minimum number of answers for a fit statistic; fewer are too weak as evidence."""

FLAG_SD = 2.0
"""An annotator or item is flagged if its infit is above the mean by more than this many standard deviations."""

_ITERATIONS, _TOLERANCE, _STIFFNESS = 100, 1e-9, 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """Answers as a model expects them, by row: a rating, or a pair of items that an answer orders.

    For ratings, `observed` and `expected` are on [0, 1], and `other` is UNKNOWN. For pairs, `observed` is 1 if
    `item` was preferred to `other` (½ for a tie) and `expected` its probability. `loo` is the residual from what is
    expected without the rating itself, in standard deviations (the standardised residual for pairs).
    """

    observations: Observations
    annotator: IntArray
    task: IntArray
    item: IntArray
    other: IntArray
    observed: FloatArray
    expected: FloatArray
    variance: FloatArray
    loo: FloatArray

    @property
    def standardised(self) -> FloatArray:
        """The residuals in standard deviations."""
        return (self.observed - self.expected) / np.sqrt(self.variance)

    def by_annotator(self) -> pl.DataFrame:
        """Return infit and outfit of each annotator: annotator, answers, infit, outfit, misfit."""
        return _statistics(self, self.annotator, "annotator", self.observations.annotators.ids)

    def by_item(self) -> pl.DataFrame:
        """Return infit and outfit of each item: item, answers, infit, outfit, misfit."""
        if (self.other == UNKNOWN).all():
            return _statistics(self, self.item, "item", self.observations.items.ids)
        return _statistics(self, np.concatenate([self.item, self.other]), "item", self.observations.items.ids)


def residuals(observations: Observations) -> Residuals | None:
    """Return the residuals of ratings or of ordered pairs; None for labels and other kinds, or without answers.

    Ratings: the many-facet model of `steelyard.reliability.severity` without drift. Comparisons, and the pairs that
    choices and rankings order: a Bradley–Terry scale as comparative judgement fits it (`scale_separation`), for each
    connected set of items.
    """
    if isinstance(observations, Ratings):
        return _of_ratings(observations) if len(observations) else None
    if not (observations.has_comparisons or observations.kind == "choices") or not len(observations):
        return None
    return _of_pairs(observations)


def _of_ratings(ratings: Ratings) -> Residuals:
    fit = fit_facets(ratings)
    value = ratings.unit_value
    plain = fit.dispersion * fit.expected * (1 - fit.expected)
    own_share = np.clip(fit.leverage, 0, 0.95)
    loo = (value - fit.expected) / (1 - own_share) / np.sqrt(plain / (1 - own_share))
    other = np.full(len(value), UNKNOWN, np.int32)
    return Residuals(
        ratings, ratings.annotator, ratings.task, ratings.item, other, value, fit.expected, fit.variance, loo
    )


def _of_pairs(observations: Observations) -> Residuals:
    pairs = ordered_pairs(observations)
    winner, loser = pairs["winner"].to_numpy(), pairs["loser"].to_numpy()
    tied = pairs["tied"].to_numpy()
    won = np.where(tied, 0.5, 1.0)
    # Each pair in the order of the items, not of the outcome: residuals then have both signs.
    turned = winner > loser
    first, second = np.where(turned, loser, winner), np.where(turned, winner, loser)
    observed = np.where(turned, 1 - won, won)
    expected = expected_outcomes(first, second, observed)
    decided = expected * (1 - expected)
    # A tie is nearer to any expectation than a decision. If a pair ties with probability 4c·p(1 − p), the variance
    # is (1 − c)·p(1 − p).
    tie_rate = min(float(tied.sum() / max(4 * decided.sum(), 1e-300)), 0.9)
    variance = np.maximum((1 - tie_rate) * decided, 1e-12)
    names = observations.annotators
    return Residuals(
        observations,
        np.array([UNKNOWN if name is None else names.code(name) for name in pairs["annotator"]], np.int32),
        pairs["task"].to_numpy().astype(np.int32),
        first.astype(np.int32),
        second.astype(np.int32),
        observed,
        expected,
        variance,
        (observed - expected) / np.sqrt(variance),
    )


def expected_outcomes(
    first: NDArray[Any], second: NDArray[Any], won: FloatArray, epsilon: float = EPSILON
) -> FloatArray:
    """Return the probability that the first item of each pair wins under the Bradley–Terry scale of all pairs.

    The scale is that of `scale_separation`, with its correction ε; items that are not connected by comparisons have
    scales of their own.
    """
    items, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    a, b, n = codes[: len(first)], codes[len(first) :], len(items)

    def by_item(left: FloatArray, right: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(a, left, n) + np.bincount(b, right, n))

    def matrix(value: FloatArray) -> Any:
        cells = (np.concatenate([a, b]), np.concatenate([b, a]))
        return sparse.csr_array((np.concatenate([value, value]), cells), shape=(n, n))

    ones = np.ones(len(a))
    island = csgraph.connected_components(matrix(ones), directed=False)[1]
    sizes = np.bincount(island)
    appearances = by_item(ones, ones)
    score = epsilon + (appearances - 2 * epsilon) * by_item(won, 1 - won) / appearances
    theta = 0.8 * np.log(score / (appearances - score))
    for _ in range(_ITERATIONS):
        theta -= (np.bincount(island, theta) / sizes)[island]
        p = 1 / (1 + np.exp(theta[b] - theta[a]))
        q = p * (1 - p)
        information = by_item(q, q)
        gap = score - by_item(p, 1 - p)
        surplus = np.bincount(island, gap) / np.bincount(island, information)
        gap = gap - surplus[island] * information
        if float(np.abs(gap).max()) < _TOLERANCE:
            break
        # The matrix is singular along every island; a trace of stiffness keeps rounding errors from growing there.
        laplacian = sparse.diags_array(information * (1 + _STIFFNESS)) - matrix(q)
        step, _ = cg(laplacian, gap, rtol=1e-8, atol=1e-12, maxiter=1000, M=sparse.diags_array(1 / information))
        step -= (np.bincount(island, step) / sizes)[island]
        largest = float(np.abs(step).max())
        # Far from the solution Newton steps may overshoot, so no θ moves by more than 1 in one step.
        theta = theta + step * min(1.0, 1.0 / max(largest, 1e-300))
        if largest < _TOLERANCE:
            break
    return np.asarray(1 / (1 + np.exp(theta[b] - theta[a])))


def _statistics(parts: Residuals, codes: IntArray, name: str, ids: Any) -> pl.DataFrame:
    """Return the unweighted (outfit) and the information-weighted (infit) mean squares by annotator or item."""
    repeats = len(codes) // max(len(parts.observed), 1)
    square = np.tile((parts.observed - parts.expected) ** 2, repeats)
    variance = np.tile(parts.variance, repeats)
    table = (
        pl.DataFrame({"code": codes, "square": square, "variance": variance})
        .filter(pl.col("code") != UNKNOWN)
        .group_by("code")
        .agg(
            pl.len().cast(pl.Int64).alias("answers"),
            (pl.col("square").sum() / pl.col("variance").sum()).alias("infit"),
            (pl.col("square") / pl.col("variance")).mean().alias("outfit"),
        )
        .sort("code")
    )
    enough = pl.col("answers") >= MIN_ANSWERS
    table = table.with_columns(pl.when(enough).then(pl.col(key)).alias(key) for key in ("infit", "outfit"))
    limit = pl.col("infit").mean() + FLAG_SD * pl.col("infit").std()
    names = pl.Series(name, [ids[int(code)] for code in table["code"]], dtype=pl.String)
    return table.with_columns((pl.col("infit") > limit).fill_null(False).alias("misfit")).select(
        names, "answers", "infit", "outfit", "misfit"
    )
