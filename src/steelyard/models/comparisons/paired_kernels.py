"""Compiled kernels of the paired models: counting pairs, and each pair's likelihood with its derivatives.

A family is a way to turn d = θᵢ − θⱼ and a tie parameter τ into the chances of a win, a loss and a tie:

| code | win | tie |
|---|---|---|
| LOGIT | σ(d) | none |
| PROBIT | Φ(d) | none |
| RAO_KUPPER | σ(d − τ) | the rest (Rao & Kupper 1967, τ = log θ) |
| GLENN_DAVID | Φ(d − τ) | the rest (Glenn & David 1960) |
| DAVIDSON | e^{d/2} / (e^{d/2} + e^{−d/2} + e^τ) | e^τ / (same) (Davidson 1970, τ = log ν) |

All five log-likelihoods are concave in (θ, τ).
"""

from __future__ import annotations

from math import erfc, exp, log, log1p, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.models.compiled import compiled
from steelyard.observations import FloatArray, IntArray

LOGIT, PROBIT, RAO_KUPPER, GLENN_DAVID, DAVIDSON = range(5)

_HALF_LOG_2PI = 0.5 * log(2 * pi)
_FAR = -20.0
"""Below this, Φ is taken from its asymptotic series: erfc loses its last digits near −38."""


class PairCounts(NamedTuple):
    """Pairs of items, and how often `first` won, lost and tied."""

    first: IntArray
    second: IntArray
    wins: FloatArray
    losses: FloatArray
    ties: FloatArray


class PairAnswers(NamedTuple):
    """Single comparisons; the outcome is 1, -1 or 0."""

    left: IntArray
    right: IntArray
    outcome: NDArray[np.int8]


@compiled
def count_outcomes(left: IntArray, right: IntArray, outcome: NDArray[np.int8], n: int) -> NDArray[np.uint32]:
    """Count right's wins, ties and left's wins in three dense tables of left · n + right, one after another.

    Unsigned arithmetic and no branches: outcomes are a coin to the processor, too.
    """
    cells, width = np.uint64(n * n), np.uint64(n)
    counts = np.zeros(3 * n * n, np.uint32)
    for row in range(len(left)):
        at = np.uint64(outcome[row] + 1) * cells + np.uint64(left[row]) * width + np.uint64(right[row])
        counts[at] += np.uint32(1)
    return counts


@compiled
def poisson_by_inversion(code: IntArray, mean: FloatArray, cumulative: FloatArray, uniform: FloatArray) -> FloatArray:
    """Draw a Poisson for every cell by walking from its mean along the distribution of its kind.

    Kind k has mean[k] and the distribution function cumulative[k]; a cell's kind is `code`.
    """
    counts = np.empty(len(code))
    for cell in range(len(code)):
        kind, u = code[cell], uniform[cell]
        value = int(mean[kind])
        while value > 0 and u < cumulative[kind, value - 1]:
            value -= 1
        while u >= cumulative[kind, value]:
            value += 1
        counts[cell] = value
    return counts


@compiled
def log_sigmoid(x: float) -> float:
    """Return log σ(x) without overflow."""
    return -log1p(exp(-x)) if x > 0 else x - log1p(exp(x))


@compiled
def sigmoid(x: float) -> float:
    """Return 1 / (1 + e^{−x}) without overflow."""
    if x >= 0:
        return 1.0 / (1.0 + exp(-x))
    small = exp(x)
    return small / (1.0 + small)


@compiled
def log_normal_cdf(x: float) -> float:
    """Return log Φ(x), accurate in the lower tail."""
    if x > _FAR:
        return log(0.5 * erfc(-x / sqrt(2.0)))
    s = 1.0 / (x * x)
    return -0.5 * x * x - _HALF_LOG_2PI - log(-x) + log1p(-s * (1 - s * (3 - s * (15 - s * (105 - 945 * s)))))


@compiled
def logit_threshold(
    d: float,
    tau: float,
    won: float,
    lost: float,
    tied: float,
) -> tuple[float, float, float, float, float, float]:
    """Rao–Kupper: win σ(d − τ), loss σ(−d − τ), tie σ(d + τ) σ(τ − d) (1 − e^{−2τ})."""
    win, loss = sigmoid(d - tau), sigmoid(-d - tau)
    value = won * log_sigmoid(d - tau) + lost * log_sigmoid(-d - tau)
    slope = won * (1 - win) - lost * (1 - loss) + tied * (loss - win)
    steep_w, steep_l = win * (1 - win), loss * (1 - loss)
    bend = (won + tied) * steep_w + (lost + tied) * steep_l
    tau_slope = -won * (1 - win) - lost * (1 - loss)
    cross = -(won + tied) * steep_w + (lost + tied) * steep_l
    tau_bend = bend
    if tied > 0:
        gap = -np.expm1(-2 * tau)
        value += tied * (log_sigmoid(d + tau) + log_sigmoid(tau - d) + log(gap))
        shrink = exp(-2 * tau)
        tau_slope += tied * (loss + win + 2 * shrink / gap)
        tau_bend += tied * 4 * shrink / (gap * gap)
    return value, slope, bend, tau_slope, cross, tau_bend


@compiled
def probit_threshold(
    d: float,
    tau: float,
    won: float,
    lost: float,
    tied: float,
) -> tuple[float, float, float, float, float, float]:
    """Glenn–David: win Φ(d − τ), loss Φ(−d − τ), tie the rest; τ = 0 without ties is Thurstone's Case V."""
    value = slope = bend = tau_slope = cross = tau_bend = 0.0
    if won > 0:
        x = d - tau
        cdf = log_normal_cdf(x)
        ratio = exp(-0.5 * x * x - _HALF_LOG_2PI - cdf)
        curve = won * ratio * (ratio + x)
        value += won * cdf
        slope += won * ratio
        tau_slope -= won * ratio
        bend += curve
        cross -= curve
        tau_bend += curve
    if lost > 0:
        x = -d - tau
        cdf = log_normal_cdf(x)
        ratio = exp(-0.5 * x * x - _HALF_LOG_2PI - cdf)
        curve = lost * ratio * (ratio + x)
        value += lost * cdf
        slope -= lost * ratio
        tau_slope -= lost * ratio
        bend += curve
        cross += curve
        tau_bend += curve
    if tied > 0:
        # Both ends in the lower tail, where differences of Φ keep their digits.
        sign = 1.0 if d >= 0 else -1.0
        u, v = tau - abs(d), -tau - abs(d)
        high, low = log_normal_cdf(u), log_normal_cdf(v)
        mass = high + log(-np.expm1(low - high))
        at_u = exp(-0.5 * u * u - _HALF_LOG_2PI - mass)
        at_v = exp(-0.5 * v * v - _HALF_LOG_2PI - mass)
        down, wide = at_v - at_u, at_u + at_v
        value += tied * mass
        slope += tied * sign * down
        tau_slope += tied * wide
        bend += tied * (u * at_u - v * at_v + down * down)
        tau_bend += tied * (u * at_u - v * at_v + wide * wide)
        cross += tied * sign * (down * wide - u * at_u - v * at_v)
    return value, slope, bend, tau_slope, cross, tau_bend


@compiled
def davidson(
    d: float,
    tau: float,
    won: float,
    lost: float,
    tied: float,
) -> tuple[float, float, float, float, float, float]:
    """Davidson: win, loss and tie in proportion to e^{d/2}, e^{−d/2} and e^τ."""
    n = won + lost + tied
    top = max(abs(d) / 2, tau)
    a, b, c = exp(d / 2 - top), exp(-d / 2 - top), exp(tau - top)
    total = a + b + c
    win, loss, tie = a / total, b / total, c / total
    lean = (win - loss) / 2
    value = (won - lost) * d / 2 + tied * tau - n * (top + log(total))
    slope = (won - lost) / 2 - n * lean
    bend = n * ((win + loss) / 4 - lean * lean)
    return value, slope, bend, tied - n * tie, -n * tie * lean, n * tie * (1 - tie)


@compiled
def pair_terms(
    family: int,
    d: float,
    tau: float,
    won: float,
    lost: float,
    tied: float,
) -> tuple[float, float, float, float, float, float]:
    """Return a pair's log-likelihood, its slope in d, −curvature in d; slope in τ, −mixed, −curvature in τ."""
    if family == LOGIT:
        p = sigmoid(d)
        value = won * log_sigmoid(d) + lost * log_sigmoid(-d)
        return value, won * (1 - p) - lost * p, (won + lost) * p * (1 - p), 0.0, 0.0, 0.0
    if family == DAVIDSON:
        return davidson(d, tau, won, lost, tied)
    if family == RAO_KUPPER:
        return logit_threshold(d, tau, won, lost, tied)
    if family == GLENN_DAVID:
        return probit_threshold(d, tau, won, lost, tied)
    value, slope, bend, _, _, _ = probit_threshold(d, 0.0, won, lost, 0.0)
    return value, slope, bend, 0.0, 0.0, 0.0


@compiled
def pair_pass(
    family: int,
    theta: FloatArray,
    tau: float,
    counts: PairCounts,
) -> tuple[float, FloatArray, FloatArray, float, FloatArray, float]:
    """Sum the terms of all pairs: value, gradient by item, weight by pair; τ's slope, mixed by item, curvature."""
    first, second, wins, losses, ties = counts
    gradient, mixed = np.zeros(len(theta)), np.zeros(len(theta))
    weight = np.empty(len(first))
    total = tau_slope = tau_bend = 0.0
    if family == LOGIT:
        # The common case with one exponential a pair: log σ(d) = min(d, 0) − log(1 + e^{−|d|}).
        for pair in range(len(first)):
            i, j, w, n = first[pair], second[pair], wins[pair], wins[pair] + losses[pair]
            d = theta[i] - theta[j]
            small = exp(-abs(d))
            p = (1.0 if d >= 0 else small) / (1.0 + small)
            total += (w if d < 0 else w - n) * d - n * log(1.0 + small)
            slope = w - n * p
            gradient[i] += slope
            gradient[j] -= slope
            weight[pair] = n * p * (1 - p)
        return total, gradient, weight, tau_slope, mixed, tau_bend
    for pair in range(len(first)):
        i, j = first[pair], second[pair]
        value, slope, weight[pair], by_tau, cross, bend = pair_terms(
            family, theta[i] - theta[j], tau, wins[pair], losses[pair], ties[pair]
        )
        total += value
        gradient[i] += slope
        gradient[j] -= slope
        tau_slope += by_tau
        mixed[i] += cross
        mixed[j] -= cross
        tau_bend += bend
    return total, gradient, weight, tau_slope, mixed, tau_bend


@compiled
def skew_pass(
    family: int,
    theta: FloatArray,
    tau: float,
    counts: PairCounts,
    variance: FloatArray,
) -> FloatArray:
    """Return −½ of the gradient of Σ −curvature(d) · variance over the pairs, by differences of 1e-3 in d."""
    first, second, wins, losses, ties = counts
    out = np.zeros(len(theta))
    h = 1e-3
    for pair in range(len(first)):
        i, j = first[pair], second[pair]
        d = theta[i] - theta[j]
        up = pair_terms(family, d + h, tau, wins[pair], losses[pair], ties[pair])[2]
        down = pair_terms(family, d - h, tau, wins[pair], losses[pair], ties[pair])[2]
        push = -0.5 * variance[pair] * (up - down) / (2 * h)
        out[i] += push
        out[j] -= push
    return out


@compiled
def row_pass(
    family: int, theta: FloatArray, tau: float, answers: PairAnswers, half: bool
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return each single comparison's slope and −curvature in d = θ_left − θ_right, and the same in τ."""
    left, right, outcome = answers
    n = len(left)
    slope, bend, tau_slope, tau_bend = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for row in range(n):
        won = 1.0 if outcome[row] > 0 else 0.0
        lost = 1.0 if outcome[row] < 0 else 0.0
        tied = 1.0 - won - lost
        if half:
            won, lost, tied = won + tied / 2, lost + tied / 2, 0.0
        _, slope[row], bend[row], tau_slope[row], _, tau_bend[row] = pair_terms(
            family, theta[left[row]] - theta[right[row]], tau, won, lost, tied
        )
    return slope, bend, tau_slope, tau_bend


@compiled
def ranking_pairs(
    start: NDArray[np.int64], item: IntArray, rank: IntArray
) -> tuple[IntArray, IntArray, NDArray[np.int8], IntArray]:
    """List every pair within each ranking: left, right, outcome and the ranking's row."""
    total = 0
    for row in range(len(start) - 1):
        size = start[row + 1] - start[row]
        total += size * (size - 1) // 2
    left, right, of_row = np.empty(total, np.int32), np.empty(total, np.int32), np.empty(total, np.int32)
    outcome = np.empty(total, np.int8)
    at = 0
    for row in range(len(start) - 1):
        for a in range(start[row], start[row + 1]):
            for b in range(a + 1, start[row + 1]):
                left[at], right[at], of_row[at] = item[a], item[b], row
                outcome[at] = 1 if rank[a] < rank[b] else (-1 if rank[a] > rank[b] else 0)
                at += 1
    return left, right, outcome, of_row
