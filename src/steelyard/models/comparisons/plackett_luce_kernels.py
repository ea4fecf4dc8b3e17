"""Compiled kernel of Plackett–Luce with ties: each ranking's likelihood with its derivatives."""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.models.compiled import compiled
from steelyard.observations import FloatArray, IntArray

EXACT_TIES = 6
"""Up to this many tied items every order is counted (63 subsets); above, Efron's average is used."""


class SortedRankings(NamedTuple):
    """Rankings whose items are sorted best first; ranking r has places `start[r]` to `start[r + 1]`.

    `pair` holds the pair of every two places of every ranking, those of ranking r from `pair_start[r]`.
    """

    start: NDArray[np.int64]
    item: IntArray
    rank: IntArray
    pair_start: NDArray[np.int64]
    pair: IntArray


@compiled
def tier_terms(alpha: FloatArray, below: float) -> tuple[float, float, FloatArray, float, FloatArray, FloatArray]:
    """Average −log of the denominators over the orders of one tier, `alpha`, with the sum `below` left after it.

    Returns that value; Σ ω/D over the sets of items still there, in all and by member present; and Σ ω/D² in all,
    by member present and by pair present, from which gradient and curvature follow.
    """
    m = len(alpha)
    value = one = two = 0.0
    one_by, two_by, two_pair = np.zeros(m), np.zeros(m), np.zeros((m, m))
    if m <= EXACT_TIES:
        # With ℓ of the m placed, each of the C(m, ℓ) sets of them is as likely as the next.
        choose = np.ones(m + 1)
        for k in range(1, m + 1):
            choose[k] = choose[k - 1] * (m - k + 1) / k
        for subset in range(1, 1 << m):
            total, size = below, 0
            for i in range(m):
                if subset >> i & 1:
                    total += alpha[i]
                    size += 1
            weight = 1.0 / choose[size]
            value -= weight * log(total)
            single, double = weight / total, weight / (total * total)
            one += single
            two += double
            for i in range(m):
                if subset >> i & 1:
                    one_by[i] += single
                    two_by[i] += double
                    for j in range(i + 1, m):
                        if subset >> j & 1:
                            two_pair[i, j] += double
        return value, one, one_by, two, two_by, two_pair
    tier = alpha.sum()
    for placed in range(m):
        part = 1.0 - placed / m
        total = below + part * tier
        value -= log(total)
        one += 1 / total
        two += 1 / (total * total)
        one_by += part / total
        two_by += part / (total * total)
        two_pair += part * part / (total * total)
    return value, one, one_by, two, two_by, two_pair


@compiled
def relative_strengths(theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Return the largest score of a ranking, e^{θ − largest}, and the sums of that from each position to the end."""
    size = len(theta)
    top = theta[0]
    for a in range(size):
        top = max(top, theta[a])
    alpha = np.empty(size)
    left = np.zeros(size + 1)
    for a in range(size - 1, -1, -1):
        # A floor keeps the sums positive 700 units below the best.
        alpha[a] = max(exp(theta[a] - top), 1e-300)
        left[a] = left[a + 1] + alpha[a]
    return top, alpha, left


@compiled
def ranking_pass(
    theta: FloatArray, n_items: int, rankings: SortedRankings, row_weight: FloatArray, variance: FloatArray
) -> tuple[float, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Sum over rankings: value, gradient by item, weight by pair; slope and information of each position, unweighted.

    `theta` is parallel to `rankings.item`, so that a score can be changed in one ranking alone. The last array is by
    ranking: the sum of its weights times `variance`, which is by pair.
    """
    start, item, rank, pair_start, pair = rankings
    gradient, weight = np.zeros(n_items), np.zeros(len(variance))
    trace = np.zeros(len(start) - 1)
    slope, information = np.zeros(len(item)), np.zeros(len(item))
    whole = 0.0
    for row in range(len(start) - 1):
        begin, size = start[row], start[row + 1] - start[row]
        if size < 2:
            continue
        top, alpha, left = relative_strengths(theta[begin : begin + size])
        value = sum_one = sum_two = 0.0
        a = 0
        while a < size:
            end = a + 1
            while end < size and rank[begin + end] == rank[begin + a]:
                end += 1
            part, one, one_by, two, two_by, two_pair = tier_terms(alpha[a:end], left[end])
            value += part
            for i in range(a, end):
                value += theta[begin + i] - top
                share = alpha[i] * (sum_one + one_by[i - a])
                slope[begin + i] = 1 - share
                for j in range(i + 1, size):
                    in_tier = two_pair[i - a, j - a] if j < end else two_by[i - a]
                    bond = alpha[i] * alpha[j] * (sum_two + in_tier)
                    # Row by row above the diagonal, as the pairs were listed.
                    at = pair_start[row] + i * size - i * (i + 1) // 2 + j - i - 1
                    weight[pair[at]] += row_weight[row] * bond
                    trace[row] += row_weight[row] * bond * variance[pair[at]]
                    information[begin + i] += bond
                    information[begin + j] += bond
            sum_one += one
            sum_two += two
            a = end
        whole += row_weight[row] * value
        for i in range(begin, begin + size):
            gradient[item[i]] += row_weight[row] * slope[i]
    return whole, gradient, weight, slope, information, trace
