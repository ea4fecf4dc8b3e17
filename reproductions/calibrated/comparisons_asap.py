"""ASAP (Mikhailiuk et al. 2020), written from its paper as a benchmark: nothing else uses it.

Posterior of Gaussian scores by message passing over all comparisons, one noise for everybody; the expected information
gain of a pair is the expected Kullback–Leibler divergence between the posterior after its outcome and before; a batch
is the spanning tree of least 1/gain. The full version makes the whole posterior anew for every pair and outcome; the
approximate one moves the two items alone. Gains are worked out for all pairs, where the paper's code leaves out
some that are unlikely to be chosen.
"""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import NDArray

from steelyard.models.calibrated.online_kernels import (
    ItemBeliefs,
    NoiseLevels,
    PairAnswers,
    PairMessages,
    outcome_likelihood,
    sweep,
)
from steelyard.models.compiled import compiled
from steelyard.observations import FloatArray, IntArray

_SWEEPS = 6
_EXACT_SWEEPS = 2
"""Sweeps for a supposed outcome: the messages start from those of the posterior."""


class Asap:
    """The state of ASAP: messages of every comparison, and the scores they add up to (prior N(0, 1))."""

    def __init__(self, n_items: int, noise: float, *, full: bool) -> None:
        self.n_items = n_items
        self._full = full
        self._level: FloatArray = np.array([noise])
        self._left: IntArray = np.empty(0, np.int32)
        self._right: IntArray = np.empty(0, np.int32)
        self._outcome: NDArray[np.int8] = np.empty(0, np.int8)
        self._site: FloatArray = np.empty((0, 4))
        self._precision: FloatArray = np.ones(n_items)
        self._shift: FloatArray = np.zeros(n_items)

    @property
    def mean(self) -> FloatArray:
        """Posterior means of the scores."""
        return self._shift / self._precision

    def batch(self, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Return the next n − 1 pairs: a spanning tree."""
        gain = np.zeros((self.n_items, self.n_items))
        quick_gains(self.mean, 1 / self._precision, self._level[0], gain)
        if self._full:
            full_gains(
                self._left,
                self._right,
                self._outcome,
                self._site,
                self._precision,
                self._shift,
                self._level,
                _EXACT_SWEEPS,
                gain,
            )
        first, second = np.triu_indices(self.n_items, 1)
        # Equals in random order: at the start all pairs are.
        order = np.lexsort((rng.random(len(first)), -gain[first, second].round(9)))
        chosen = spanning_tree(first[order], second[order], self.n_items)
        return first[order][chosen].astype(np.int32), second[order][chosen].astype(np.int32)

    def learn(self, left: IntArray, right: IntArray, outcome: NDArray[np.int8]) -> None:
        """Take in the answers to a batch, and pass messages over all there are."""
        self._left, self._right = np.r_[self._left, left], np.r_[self._right, right]
        self._outcome = np.r_[self._outcome, outcome]
        self._site = np.r_[self._site, np.zeros((len(left), 4))]
        for _ in range(_SWEEPS):
            pass_messages(self._left, self._right, self._outcome, self._site, self._precision, self._shift, self._level)


@compiled
def pass_messages(
    left: IntArray,
    right: IntArray,
    outcome: NDArray[np.int8],
    site: FloatArray,
    precision: FloatArray,
    shift: FloatArray,
    level: FloatArray,
) -> None:
    """Update the messages of all comparisons once, in place."""
    rows = np.arange(len(left))
    nobody = np.full(len(left), -1, np.int32)
    answers = PairAnswers(left, right, nobody, outcome, np.ones(len(left)))
    messages = PairMessages(site, np.zeros((len(left), 1)))
    levels = NoiseLevels(np.zeros((0, 1)), np.zeros(1), level)
    sweep(rows, answers, messages, ItemBeliefs(precision, shift), levels, 0.0)


@compiled
def divergence(mean: float, variance: float, mean_before: float, variance_before: float) -> float:
    """Return the Kullback–Leibler divergence of one Gaussian from another."""
    gap = mean - mean_before
    return 0.5 * (log(variance_before / variance) + (variance + gap * gap) / variance_before - 1.0)


@compiled
def quick_gains(mean: FloatArray, variance: FloatArray, noise: float, gain: FloatArray) -> None:
    """Fill in the gain of every pair when only its two items move (ASAP-approx)."""
    n = len(mean)
    for i in range(n):
        for j in range(i + 1, n):
            total = 0.0
            for outcome in (-1, 1):
                p, first, second = outcome_likelihood(mean[i] - mean[j], variance[i] + variance[j], noise, 0.0, outcome)
                slope = first / p
                curve = second / p - slope * slope
                for item in (i, j):
                    v = variance[item]
                    # The sign of the step does not matter to the divergence.
                    total += p * divergence(mean[item] + v * slope, v * (1.0 + v * curve), mean[item], v)
            gain[i, j] = total


@compiled
def full_gains(
    left: IntArray,
    right: IntArray,
    outcome: NDArray[np.int8],
    site: FloatArray,
    precision: FloatArray,
    shift: FloatArray,
    level: FloatArray,
    sweeps: int,
    gain: FloatArray,
) -> None:
    """Compute the gain of every pair with the full posterior recomputed for each outcome (ASAP)."""
    n, count = len(precision), len(left)
    mean, variance = shift / precision, 1.0 / precision
    more_left = np.empty(count + 1, np.int32)
    more_right = np.empty(count + 1, np.int32)
    more_outcome = np.empty(count + 1, np.int8)
    more_left[:count], more_right[:count], more_outcome[:count] = left, right, outcome
    more_site = np.empty((count + 1, 4))
    for i in range(n):
        for j in range(i + 1, n):
            more_left[count], more_right[count] = i, j
            total = 0.0
            for supposed in (-1, 1):
                p, _, _ = outcome_likelihood(mean[i] - mean[j], variance[i] + variance[j], level[0], 0.0, supposed)
                more_outcome[count] = supposed
                more_site[:count] = site
                more_site[count] = 0.0
                new_precision, new_shift = precision.copy(), shift.copy()
                for _ in range(sweeps):
                    pass_messages(more_left, more_right, more_outcome, more_site, new_precision, new_shift, level)
                for item in range(n):
                    v = 1.0 / new_precision[item]
                    total += p * divergence(new_shift[item] * v, v, mean[item], variance[item])
            gain[i, j] = total


@compiled
def spanning_tree(first: NDArray[np.int64], second: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return the places of the edges that Kruskal's algorithm takes, given edges in order."""
    parent = np.arange(n)
    chosen = np.empty(n - 1, np.int64)
    count = 0
    for edge in range(len(first)):
        a, b = first[edge], second[edge]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a != b:
            parent[a] = b
            chosen[count] = edge
            count += 1
    return chosen[:count]
