"""Compiled passes over comparisons for the online models."""

from __future__ import annotations

from math import exp, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.models.comparisons.truncated_gaussian import tie_moments, win_moments
from steelyard.models.compiled import compiled
from steelyard.models.ratings.easl import BetaState
from steelyard.observations import FloatArray, IntArray


class MiniBatches(NamedTuple):
    """Comparisons cut into mini-batches; the outcome is 1 (left won), -1 (right won) or 0 (tie).

    Mini-batch b holds comparisons `start[b]` to `start[b + 1]`. Their updates are computed from the state before the
    mini-batch, and added up.
    """

    left: IntArray
    right: IntArray
    outcome: NDArray[np.int8]
    start: NDArray[np.int64]


class MatchCounts(NamedTuple):
    """Comparison m counts `weight[unit[m]]` times, each time as one more member of its mini-batch."""

    unit: IntArray
    weight: NDArray[np.uint8]


@compiled
def trueskill_pass(
    mu: FloatArray,
    variance: FloatArray,
    batches: MiniBatches,
    gamma: float,
    epsilon: float,
) -> None:
    """Update Gaussian skills in place (Eq. 3–10).

    Within a mini-batch, precisions and precisions times means are added up, because the sum of the reductions of a
    variance could exceed the variance. For a single comparison this is Eq. 3–8.
    """
    left, right, outcome, start = batches
    shift = np.zeros(len(mu))
    precision = np.zeros(len(mu))
    noise = 2.0 * gamma * gamma
    for batch in range(len(start) - 1):
        for m in range(start[batch], start[batch + 1]):
            i, j = left[m], right[m]
            if outcome[m] < 0:
                i, j = j, i
            c2 = noise + variance[i] + variance[j]
            c = sqrt(c2)
            t = (mu[i] - mu[j]) / c
            if outcome[m] == 0:
                v, w = tie_moments(t, epsilon / c)
            else:
                v, w = win_moments(t - epsilon / c)
            ri = variance[i] / c2 * w
            rj = variance[j] / c2 * w
            if start[batch + 1] - start[batch] == 1:
                mu[i] += variance[i] / c * v
                mu[j] -= variance[j] / c * v
                variance[i] *= 1.0 - ri
                variance[j] *= 1.0 - rj
            else:
                shift[i] += v / c / (1.0 - ri)
                shift[j] -= v / c / (1.0 - rj)
                precision[i] += w / c2 / (1.0 - ri)
                precision[j] += w / c2 / (1.0 - rj)
        if start[batch + 1] - start[batch] > 1:
            for m in range(start[batch], start[batch + 1]):
                for item in (left[m], right[m]):
                    variance[item] /= 1.0 + variance[item] * precision[item]
                    mu[item] += variance[item] * shift[item]
                    shift[item] = precision[item] = 0.0


@compiled
def _mode(alpha: float, beta: float) -> float:
    """Return the mode of a Beta (Eq. 12); 0.5 while nothing is known."""
    above, beside = alpha - 1.0, beta - 1.0
    return above / (above + beside) if above + beside > 0.0 else 0.5


@compiled
def bounded_pass(
    betas: BetaState,
    is_compared: NDArray[np.bool_],
    batches: MiniBatches,
    counts: MatchCounts,
    gamma: float,
    epsilon: float,
) -> None:
    """Update Beta scores in place (Eq. 14–22)."""
    alpha, beta = betas
    left, right, outcome, start = batches
    unit, weight = counts
    add_alpha = np.zeros(len(alpha))
    add_beta = np.zeros(len(alpha))
    theta = exp(epsilon)
    noise = 2.0 * gamma * gamma
    for batch in range(len(start) - 1):
        for m in range(start[batch], start[batch + 1]):
            times = float(weight[unit[m]])
            if times == 0.0:
                continue
            i, j = left[m], right[m]
            is_compared[i] = is_compared[j] = True
            if outcome[m] < 0:
                i, j = j, i
            total_i, total_j = alpha[i] + beta[i], alpha[j] + beta[j]
            variance_i = alpha[i] * beta[i] / (total_i * total_i * (total_i + 1.0))
            variance_j = alpha[j] * beta[j] / (total_j * total_j * (total_j + 1.0))
            mode_i = _mode(alpha[i], beta[i])
            mode_j = _mode(alpha[j], beta[j])
            c = sqrt(noise + variance_i + variance_j)
            ratio = exp(mode_j - mode_i)
            win = 1.0 / (1.0 + theta * ratio)
            if outcome[m] != 0:
                add_alpha[i] += times * variance_i / c * (1.0 - win)
                add_beta[j] += times * variance_j / c * (1.0 - win)
            else:
                surprise = 1.0 - (theta * theta - 1.0) * ratio / ((1.0 + theta * ratio) * (theta + ratio))
                step_i, step_j = times * variance_i / c * surprise, times * variance_j / c * surprise
                if mode_i - mode_j > epsilon:
                    add_beta[i] += step_i
                    add_alpha[j] += step_j
                elif mode_j - mode_i > epsilon:
                    add_alpha[i] += step_i
                    add_beta[j] += step_j
                else:
                    add_alpha[i] += step_i
                    add_beta[i] += step_i
                    add_alpha[j] += step_j
                    add_beta[j] += step_j
        for m in range(start[batch], start[batch + 1]):
            for item in (left[m], right[m]):
                alpha[item] += add_alpha[item]
                beta[item] += add_beta[item]
                add_alpha[item] = add_beta[item] = 0.0


@compiled
def elo_pass(
    rating: FloatArray,
    is_compared: NDArray[np.bool_],
    batches: MiniBatches,
    counts: MatchCounts,
    step_size: float,
    rate: float,
) -> None:
    """Update Elo ratings in place; the expected result of a lead of d points is 1 / (1 + e^{−rate · d})."""
    left, right, outcome, start = batches
    unit, weight = counts
    add = np.zeros(len(rating))
    for batch in range(len(start) - 1):
        first, last = start[batch], start[batch + 1]
        for m in range(first, last):
            times = float(weight[unit[m]])
            if times == 0.0:
                continue
            i, j = left[m], right[m]
            is_compared[i] = is_compared[j] = True
            expected = 1.0 / (1.0 + exp(rate * (rating[j] - rating[i])))
            step = times * step_size * (0.5 * (1.0 + outcome[m]) - expected)
            if last - first == 1:
                rating[i] += step
                rating[j] -= step
            else:
                add[i] += step
                add[j] -= step
        if last - first > 1:
            for m in range(first, last):
                for item in (left[m], right[m]):
                    rating[item] += add[item]
                    add[item] = 0.0


class ReplicateCounts(NamedTuple):
    """In replicate r, comparison m counts `weight[unit[m], r]` times."""

    unit: IntArray
    weight: NDArray[np.uint8]


@compiled
def elo_replicates(
    rating: FloatArray,
    is_compared: NDArray[np.uint8],
    batches: MiniBatches,
    counts: ReplicateCounts,
    step_size: float,
    rate: float,
) -> None:
    """Update the Elo ratings of several replicates (columns) in place, as `elo_pass` does for one.

    The loops over replicates are plain enough to become vector instructions: six times as fast as one pass after the
    other. To that end, the exponential is a polynomial, squared six times; its relative error is below 1e-6.
    """
    left, right, outcome, start = batches
    unit, weight = counts
    has_groups = (start[1:] - start[:-1]).max() > 1
    add = np.zeros((len(rating) if has_groups else 0, rating.shape[1]))
    step = np.empty(rating.shape[1])
    for batch in range(len(start) - 1):
        first, last = start[batch], start[batch + 1]
        for m in range(first, last):
            times = weight[unit[m]]
            on_left, on_right = rating[left[m]], rating[right[m]]
            result = 0.5 * (1.0 + outcome[m])
            for r in range(len(step)):
                x = min(max(rate * (on_right[r] - on_left[r]), -32.0), 32.0) / 64.0
                odds = 1 + x * (
                    1
                    + x
                    * (1 / 2 + x * (1 / 6 + x * (1 / 24 + x * (1 / 120 + x * (1 / 720 + x * (1 / 5040 + x / 40320))))))
                )
                odds *= odds
                odds *= odds
                odds *= odds
                odds *= odds
                odds *= odds
                odds *= odds
                step[r] = times[r] * (step_size * (result - np.reciprocal(1.0 + odds)))
            change_left, change_right = (on_left, on_right) if last - first == 1 else (add[left[m]], add[right[m]])
            for r in range(len(step)):
                change_left[r] += step[r]
            for r in range(len(step)):
                change_right[r] -= step[r]
            for item in (left[m], right[m]):
                mark = is_compared[item]
                for r in range(len(step)):
                    mark[r] |= times[r]
        if last - first > 1:
            for m in range(first, last):
                for item in (left[m], right[m]):
                    rating[item] += add[item]
                    add[item] = 0.0


@compiled
def fill_with_weights(weight: NDArray[np.uint8], quantiles: NDArray[np.uint8], seed: np.uint64) -> None:
    """Fill an array with independent weights: four of 16 bits each from one number of splitmix64 (Steele et al. 2014).

    The number of columns is a multiple of four. `quantiles` has the weight of each of 2^16 equally likely cases.
    """
    state = seed
    for row in range(weight.shape[0]):
        for column in range(0, weight.shape[1], 4):
            state += np.uint64(0x9E3779B97F4A7C15)
            bits = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            bits = bits ^ (bits >> np.uint64(31))
            for part in range(4):
                weight[row, column + part] = quantiles[(bits >> np.uint64(16 * part)) & np.uint64(0xFFFF)]
