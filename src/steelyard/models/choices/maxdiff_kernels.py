"""Compiled kernels of the maxdiff logit: each choice's likelihood with its derivatives, and simulated gradients."""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.models.compiled import compiled
from steelyard.observations import FloatArray, IntArray

BOTH, BEST_ONLY, WORST_ONLY = range(3)


class Tuples(NamedTuple):
    """Usable best–worst choices, one per row.

    `shown` holds item codes, short rows padded at the end. `best` and `worst` are positions within the row, and
    `kind` says which of the two were named.
    """

    shown: IntArray
    size: IntArray
    best: IntArray
    worst: IntArray
    kind: IntArray
    row: IntArray
    """The index of the observation."""


@compiled
def choice_terms(theta: FloatArray, kind: int, best: int, worst: int) -> tuple[float, FloatArray, FloatArray]:
    """Return a choice's log-likelihood, gradient and information matrix; `best` and `worst` are places in it.

    With features f = e_best − e_worst and chances q over ordered pairs, gradient and information are f − E f and
    Cov f. With one of the two unknown, the other's marginal chance counts, its gradient being E(f | known) − E f;
    the information is the expected one, Cov E(f | known), which cannot be negative.
    """
    m = len(theta)
    up, down = np.exp(theta - theta.max()), np.exp(theta.min() - theta)
    high, low = up.sum(), down.sum()
    joint = np.empty((m, m))
    total = 0.0
    for i in range(m):
        for j in range(m):
            joint[i, j] = up[i] * down[j] if i != j else 0.0
            total += joint[i, j]
    joint /= total
    as_best, as_worst = joint.sum(axis=1), joint.sum(axis=0)
    mean = as_best - as_worst
    gradient, matrix = -mean, np.empty((m, m))
    if kind == BOTH:
        # exp() of a wide tuple may underflow; its logarithm is known without it.
        value = theta[best] - theta[worst] - (theta.max() - theta.min()) - log(total)
        gradient[best] += 1
        gradient[worst] -= 1
        for i in range(m):
            for j in range(m):
                own = as_best[i] + as_worst[i] if i == j else -joint[i, j] - joint[j, i]
                matrix[i, j] = own - mean[i] * mean[j]
        return value, gradient, matrix
    sign = 1.0 if kind == BEST_ONLY else -1.0
    choice = best if kind == BEST_ONLY else worst
    chance = as_best if kind == BEST_ONLY else as_worst
    other, other_sum = (down, low) if kind == BEST_ONLY else (up, high)
    value = log(max(chance[choice], 1e-300))
    matrix[:] = 0.0
    for i in range(m):
        rest = max(other_sum - other[i], 1e-300)
        expected = np.empty(m)
        for j in range(m):
            expected[j] = sign if i == j else -sign * other[j] / rest
        if i == choice:
            gradient += expected
        for a in range(m):
            for b in range(m):
                matrix[a, b] += chance[i] * expected[a] * expected[b]
    for a in range(m):
        for b in range(m):
            matrix[a, b] -= mean[a] * mean[b]
    return value, gradient, matrix


@compiled
def choice_pass(
    theta: FloatArray, n_items: int, tuples: Tuples, pair: IntArray, row_weight: FloatArray, variance: FloatArray
) -> tuple[float, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Sum over choices: value, gradient by item, weight by pair; slope and information of each position, unweighted.

    The last array is by choice: the sum of its weights times `variance`, which is by pair. `theta` has the shape of
    `tuples.shown`, so that a score can be changed in one choice alone. `pair` holds the pair of every two positions
    of every row.
    """
    shown, size, best, worst, kind, _ = tuples
    gradient, weight = np.zeros(n_items), np.zeros(len(variance))
    trace = np.zeros(len(shown))
    slope, information = np.zeros(shown.shape), np.zeros(shown.shape)
    whole = 0.0
    for row in range(len(shown)):
        m = size[row]
        value, pull, matrix = choice_terms(theta[row, :m], kind[row], best[row], worst[row])
        whole += row_weight[row] * value
        at = 0
        for a in range(m):
            slope[row, a], information[row, a] = pull[a], matrix[a, a]
            gradient[shown[row, a]] += row_weight[row] * pull[a]
            for b in range(a + 1, m):
                weight[pair[row, at]] -= row_weight[row] * matrix[a, b]
                trace[row] -= row_weight[row] * matrix[a, b] * variance[pair[row, at]]
                at += 1
    return whole, gradient, weight, slope, information, trace


@compiled
def simulated_gradients(
    theta: FloatArray, tuples: Tuples, row_weight: FloatArray, uniform: NDArray[np.float64]
) -> FloatArray:
    """Answer every choice by the model with one uniform number each, and return the gradient of those answers."""
    gradient = np.zeros(len(theta))
    shown, size, _, _, kind, _ = tuples
    for row in range(len(shown)):
        m = size[row]
        here = np.empty(m)
        for a in range(m):
            here[a] = theta[shown[row, a]]
        up, down = np.exp(here - here.max()), np.exp(here.min() - here)
        total = up.sum() * down.sum() - (up * down).sum()
        left, best, worst = uniform[row] * total, 0, 1
        for i in range(m):
            for j in range(m):
                if i != j and left >= 0:
                    best, worst = i, j
                    left -= up[i] * down[j]
        _, pull, _ = choice_terms(here, kind[row], best, worst)
        for a in range(m):
            gradient[shown[row, a]] += np.sqrt(row_weight[row]) * pull[a]
    return gradient
