"""Comparisons of every two systems: simultaneous intervals, corrected p-values, rank ranges and clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from steelyard.models.compiled import compiled
from steelyard.models.systems.clustered import Covariance, spread
from steelyard.models.table import competition_ranks
from steelyard.observations import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Pairwise:
    """Differences of every two scores (systems × systems, row minus column)."""

    difference: FloatArray
    sd: FloatArray
    lower: FloatArray
    upper: FloatArray
    """Ends of intervals that hold all true differences at once with probability `level`."""
    p_value: FloatArray
    """Two-sided, of each difference by itself."""
    p_holm: FloatArray
    """Corrected for the number of pairs by Holm's (1979) method."""
    probability: FloatArray
    """That the system of the row is better than that of the column."""
    is_better: NDArray[np.bool_]
    """Whether the row is significantly better than the column, after the correction."""


def compare_pairs(score: FloatArray, covariance: Covariance, level: float) -> Pairwise:
    """Compare every two systems by Student's t.

    The simultaneous intervals are those of Tukey and Kramer, with the degrees of freedom of each difference. They are
    conservative for correlated scores of unequal variance. An estimated correlation matrix would narrow them, but few
    sources or annotators do not determine it, and coverage was 90 % with ten sources.
    """
    variance, freedom = covariance.of_differences()
    sd = np.sqrt(variance)
    difference = score[:, None] - score
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = difference / sd
    single = np.asarray(2 * scipy.stats.t.sf(np.abs(ratio), freedom))
    count = max(int((~np.isnan(score)).sum()), 2)
    tail = 2 * scipy.stats.norm.sf(scipy.stats.studentized_range.ppf(level, count, np.inf) / np.sqrt(2))
    half = scipy.stats.t.isf(tail / 2, freedom) * sd
    adjusted = holm(single)
    return Pairwise(
        difference,
        sd,
        difference - half,
        difference + half,
        single,
        adjusted,
        np.asarray(scipy.stats.t.cdf(ratio, freedom)),
        (adjusted < 1 - level) & (difference > 0),
    )


def pairs_from_draws(score: FloatArray, draws: FloatArray, level: float) -> Pairwise:
    """Compare every two systems by joint draws (draws × systems) of their scores.

    The simultaneous intervals are those of the largest standardised deviation. p-values are normal, with the draws'
    standard deviation: counting draws could not give less than 1/draws, too much for Holm's correction of many pairs.
    """
    n = len(score)
    deviation = draws - score
    sd = np.sqrt(spread(np.cov(deviation, rowvar=False).reshape(n, n)))
    difference = score[:, None] - score
    half = np.quantile(largest_differences(deviation, sd), level) * sd
    first, second = np.triu_indices(n, 1)
    above = np.full((n, n), 0.5)
    for i, j in zip(first.tolist(), second.tolist(), strict=True):
        gap = draws[:, i] - draws[:, j]
        above[i, j] = np.mean(gap > 0) + np.mean(gap == 0) / 2
        above[j, i] = 1 - above[i, j]
    with np.errstate(divide="ignore", invalid="ignore"):
        single = np.asarray(2 * scipy.stats.norm.sf(np.abs(difference) / sd))
    adjusted = holm(single)
    return Pairwise(
        difference,
        sd,
        difference - half,
        difference + half,
        single,
        adjusted,
        above,
        (adjusted < 1 - level) & (difference > 0),
    )


def holm(p_value: FloatArray) -> FloatArray:
    """Correct the p-values of all pairs (a symmetric matrix) by Holm's method; NaN on the diagonal."""
    n = len(p_value)
    first, second = np.triu_indices(n, 1)
    values = p_value[first, second]
    adjusted = np.full((n, n), np.nan)
    is_tested = ~np.isnan(values)
    first, second, values = first[is_tested], second[is_tested], values[is_tested]
    order = np.argsort(values)
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    adjusted[first[order], second[order]] = adjusted[second[order], first[order]] = np.minimum(steps, 1.0)
    return adjusted


def rank_ranges(is_better: NDArray[np.bool_], is_scored: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest rank that the significant differences leave open for every system.

    If no true difference is called wrong, all true ranks are in their ranges (Mogstad et al. 2024).
    """
    lowest = 1.0 + is_better.sum(axis=0)
    highest = float(is_scored.sum()) - is_better.sum(axis=1)
    return np.where(is_scored, lowest, np.nan), np.where(is_scored, highest, np.nan)


def ranges_of_draws(score: FloatArray, draws: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Return the middle `level` of each system's rank over joint draws, as WMT does for comparisons."""
    ranks = np.array([competition_ranks(draw) for draw in draws], np.float64)
    lower, upper = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=0, method="nearest")
    own = competition_ranks(score)
    is_scored = ~np.isnan(score)
    return (
        np.where(is_scored, np.minimum(lower, own), np.nan),
        np.where(is_scored, np.maximum(upper, own), np.nan),
    )


def clusters_of_differences(score: FloatArray, is_better: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Number the clusters from 1, best first: the finest partition in which every system beats all of lower clusters.

    Systems are in the order of their scores; 0 for those without one.
    """
    scored = np.flatnonzero(~np.isnan(score))
    order = scored[np.lexsort((scored, -score[scored]))]
    beats = is_better[np.ix_(order, order)]
    cluster = np.zeros(len(score), np.int64)
    ends = [bool(beats[: place + 1, place + 1 :].all()) for place in range(len(order) - 1)]
    cluster[order] = 1 + np.r_[0, np.cumsum(ends)][: len(order)]
    return cluster


def clusters_of_ranges(score: FloatArray, lowest: FloatArray, highest: FloatArray) -> NDArray[np.int64]:
    """Number the clusters from 1, best first: the finest partition in which rank ranges do not overlap.

    0 for systems without a score.
    """
    scored = np.flatnonzero(~np.isnan(score))
    order = scored[np.lexsort((scored, -score[scored]))]
    cluster = np.zeros(len(score), np.int64)
    if len(order):
        reach = np.maximum.accumulate(highest[order])
        # What follows must start after everything before it ends.
        least = np.minimum.accumulate(lowest[order][::-1])[::-1]
        cluster[order] = 1 + np.r_[0, np.cumsum(least[1:] > reach[:-1])]
    return cluster


def normal_draws(covariance: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """Draw from a normal distribution with a positive semi-definite covariance."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(rng.standard_normal((count, len(covariance))) @ root.T)


def largest_differences(draws: FloatArray, sd: FloatArray) -> FloatArray:
    """Return the largest |xᵢ − xⱼ| / sdᵢⱼ of every draw; pairs without a standard deviation are left out."""
    with np.errstate(divide="ignore"):
        weight = np.where(sd > 1e-12 * np.nanmax(sd, initial=0.0), 1 / sd, 0.0)
    return _largest(np.nan_to_num(draws), np.nan_to_num(weight))


@compiled
def _largest(draws: FloatArray, weight: FloatArray) -> FloatArray:
    count, n = draws.shape
    largest = np.zeros(count)
    for row in range(count):
        top = 0.0
        for i in range(n):
            for j in range(i + 1, n):
                top = max(top, abs(draws[row, i] - draws[row, j]) * weight[i, j])
        largest[row] = top
    return largest
