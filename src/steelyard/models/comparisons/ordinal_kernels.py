"""Compiled kernels of the cumulative link model: log-likelihood of graded comparisons with its derivatives.

An answer says that a latent difference d + ε lies between two cuts. The cuts are 0 < τ₁ < τ₂ … and −τ₁, −τ₂ …; ε is
logistic or Gaussian. Both densities are log-concave, and so is the likelihood in (θ, τ).
"""

from __future__ import annotations

from math import exp, expm1, inf, log, pi
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.models.comparisons.paired_kernels import log_normal_cdf, log_sigmoid, sigmoid
from steelyard.models.compiled import compiled
from steelyard.observations import FloatArray, IntArray

LOGISTIC, GAUSSIAN = 0, 1

_HALF_LOG_2PI = 0.5 * log(2 * pi)
_SMALL_STEP = 1e-3
"""Step of the numerical third derivative."""


class GradedCells(NamedTuple):
    """Equal answers about a pair, counted.

    `sign` is 1 where the pair's first item won, -1 where the second did, and 1 for ties. The winner's latent difference
    lies between the cuts number `low` (-1: the negative of the first) and `high` (the number of cuts: infinity).
    """

    pair: IntArray
    sign: NDArray[np.int8]
    low: NDArray[np.int8]
    high: NDArray[np.int8]
    times: FloatArray


@compiled
def interval_terms(link: int, a: float, b: float) -> tuple[float, float, float, float, float, float]:
    """Return the log-probability of a < ε < b, its slopes in a and b, and minus its second derivatives aa, bb, ab."""
    if link == LOGISTIC:
        at_a = sigmoid(a)
        if b == inf:
            return log_sigmoid(-a), -at_a, 0.0, at_a * (1 - at_a), 0.0, 0.0
        width, at_b = b - a, sigmoid(b)
        log_gap = log(-expm1(-width))
        odds = exp(-width - log_gap)
        curve = odds * exp(-log_gap)
        return (
            log_sigmoid(-a) + log_sigmoid(b) + log_gap,
            -at_a - odds,
            1 - at_b + odds,
            at_a * (1 - at_a) + curve,
            at_b * (1 - at_b) + curve,
            -curve,
        )
    if b == inf:
        value = log_normal_cdf(-a)
        ratio = exp(-0.5 * a * a - _HALF_LOG_2PI - value)
        return value, -ratio, 0.0, ratio * (ratio - a), 0.0, 0.0
    # Both ends in the lower tail, where differences of Φ keep their digits.
    low, high = (a, b) if a + b <= 0 else (-b, -a)
    top = log_normal_cdf(high)
    value = top + log(-expm1(log_normal_cdf(low) - top))
    at_a, at_b = exp(-0.5 * a * a - _HALF_LOG_2PI - value), exp(-0.5 * b * b - _HALF_LOG_2PI - value)
    return value, -at_a, at_b, at_a * (at_a - a), at_b * (at_b + b), -at_a * at_b


@compiled
def ends_of(cuts: FloatArray, low: int, high: int) -> tuple[float, float]:
    """Return the ends of a category."""
    return (-cuts[0] if low < 0 else cuts[low]), (inf if high == len(cuts) else cuts[high])


@compiled
def cell_terms(
    link: int, d: float, cuts: FloatArray, low: int, high: int
) -> tuple[float, float, float, float, float, float, float, float]:
    """Return value, slope and −curvature in d, slopes in the two cuts, and −second derivatives aa, bb, ab."""
    start, end = ends_of(cuts, low, high)
    value, by_a, by_b, aa, bb, ab = interval_terms(link, start - d, end - d)
    return value, -by_a - by_b, aa + bb + 2 * ab, by_a, by_b, aa, bb, ab


@compiled
def graded_pass(
    link: int, theta: FloatArray, cuts: FloatArray, first: IntArray, second: IntArray, cells: GradedCells
) -> tuple[float, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the log-likelihood, its gradient, the pairs' weights, and the cuts' slopes, mixed terms and curvature."""
    n, m = len(theta), len(cuts)
    total = 0.0
    gradient, weight = np.zeros(n), np.zeros(len(first))
    cut_slope, mixed, bend = np.zeros(m), np.zeros((n, m)), np.zeros((m, m))
    for cell in range(len(cells.pair)):
        pair, sign, low, high, count = (
            cells.pair[cell],
            cells.sign[cell],
            cells.low[cell],
            cells.high[cell],
            cells.times[cell],
        )
        i, j = first[pair], second[pair]
        value, slope, curve, by_a, by_b, aa, bb, ab = cell_terms(link, sign * (theta[i] - theta[j]), cuts, low, high)
        total += count * value
        gradient[i] += count * sign * slope
        gradient[j] -= count * sign * slope
        weight[pair] += count * curve
        # The cuts at the two ends, and how they move with their parameter.
        start, toward = (0, -1.0) if low < 0 else (low, 1.0)
        cut_slope[start] += count * toward * by_a
        bend[start, start] += count * aa
        cross = -count * sign * toward * (aa + ab)
        mixed[i, start] += cross
        mixed[j, start] -= cross
        if high < m:
            cut_slope[high] += count * by_b
            bend[high, high] += count * bb
            bend[start, high] += count * toward * ab
            bend[high, start] += count * toward * ab
            cross = -count * sign * (bb + ab)
            mixed[i, high] += cross
            mixed[j, high] -= cross
    return total, gradient, weight, cut_slope, mixed, bend


@compiled
def graded_skew(
    link: int,
    theta: FloatArray,
    cuts: FloatArray,
    ends: tuple[IntArray, IntArray],
    cells: GradedCells,
    variance: FloatArray,
) -> FloatArray:
    """Return −½ of the gradient of Σ −curvature(d) · variance over the cells, by differences in d."""
    first, second = ends
    out = np.zeros(len(theta))
    h = _SMALL_STEP
    for cell in range(len(cells.pair)):
        pair, low, high = cells.pair[cell], cells.low[cell], cells.high[cell]
        i, j = first[pair], second[pair]
        d = cells.sign[cell] * (theta[i] - theta[j])
        up = cell_terms(link, d + h, cuts, low, high)[2]
        down = cell_terms(link, d - h, cuts, low, high)[2]
        push = -0.5 * variance[pair] * cells.times[cell] * cells.sign[cell] * (up - down) / (2 * h)
        out[i] += push
        out[j] -= push
    return out


@compiled
def graded_cells(
    link: int, theta: FloatArray, cuts: FloatArray, first: IntArray, second: IntArray, cells: GradedCells
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return one answer's slope and −curvature in θ_first − θ_second, and in every cut (cells × cuts)."""
    n, m = len(cells.pair), len(cuts)
    slope, bend = np.empty(n), np.empty(n)
    cut_slope, cut_bend = np.zeros((n, m)), np.zeros((n, m))
    for cell in range(n):
        sign, low, high = cells.sign[cell], cells.low[cell], cells.high[cell]
        d = sign * (theta[first[cells.pair[cell]]] - theta[second[cells.pair[cell]]])
        _, by_d, bend[cell], by_a, by_b, aa, bb, ab = cell_terms(link, d, cuts, low, high)
        slope[cell] = sign * by_d
        if low < 0:
            # A tie has the first cut at both ends.
            cut_slope[cell, 0], cut_bend[cell, 0] = by_b - by_a, aa + bb - 2 * ab
            continue
        cut_slope[cell, low], cut_bend[cell, low] = by_a, aa
        if high < m:
            cut_slope[cell, high], cut_bend[cell, high] = by_b, bb
    return slope, bend, cut_slope, cut_bend
