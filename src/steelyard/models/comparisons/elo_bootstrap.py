"""Bootstrap of Elo ratings: many replicates in one pass, over the comparisons that still affect the ratings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.models.comparisons.online import Matches
from steelyard.models.comparisons.online_kernels import ReplicateCounts, elo_pass, elo_replicates, fill_with_weights
from steelyard.models.inference.resampling import Units, poisson_quantiles, poisson_weights
from steelyard.observations import FloatArray, IntArray

REPLICATES_PER_PASS = 40
"""A row of ratings of so many replicates fills five cache lines; the kernel is as fast with more."""
CHUNK = 8192
"""Judgments whose weights are drawn at once: they fit into the processor's cache."""
TAILS = (64, 32, 16, 8, 4, 2)
"""Parts of the comparisons that may suffice: the last 64th to the last half."""
LEAST_COMPARISONS = 20_000
"""With fewer comparisons, whole passes are fast enough."""
TOLERANCE = 1e-3
"""Largest effect of the ratings before the tail on those after it, in update steps (k)."""


@dataclass(frozen=True, slots=True, eq=False)
class EloBootstrap:
    """Passes over resampled comparisons, in their order; a unit that is drawn m times counts m times.

    Elo forgets: after some hundred comparisons of an item, its rating no longer depends on where it started. If the
    replicates of the first pass end at the same ratings from the initial ratings and from those that the comparisons
    before the tail gave, the tail determines the ratings, and all replicates start there.
    """

    matches: Matches
    units: Units
    initial: FloatArray
    step_size: float
    rate: float
    seed: int

    def draws(self, replicates: int, is_judged: NDArray[np.bool_]) -> FloatArray:
        """Return the rating of every item (columns) in every replicate (rows); NaN where it was not drawn."""
        first, before = self._tail(replicates, is_judged)
        weights = self._unit_weights(first, replicates)
        ratings = np.empty((replicates, len(self.initial)))
        for at in range(0, replicates, REPLICATES_PER_PASS):
            rating, is_compared = self._pass(first, before, at, weights)
            part = slice(at, at + REPLICATES_PER_PASS)
            scores = np.where(is_compared > 0, rating, np.nan)
            ratings[part] = scores.T[: len(ratings[part])]
        return ratings

    def _tail(self, replicates: int, is_judged: NDArray[np.bool_]) -> tuple[int, FloatArray]:
        """Return the first mini-batch that still matters, and the ratings before it."""
        batches, n = self.matches.batches, len(self.matches.batches.start) - 1
        if n < LEAST_COMPARISONS:
            return 0, self.initial
        for divisor in TAILS:
            first = (n - n // divisor) // CHUNK * CHUNK
            before = self._rated(self.initial, batches.start[: first + 1])
            starts = (before, self.initial)
            # One pass that counts everything once is much cheaper, and shows most tails that are too short.
            if not self._forgets(*(self._rated(start, batches.start[first:])[is_judged] for start in starts)):
                continue
            weights = self._unit_weights(first, min(replicates, REPLICATES_PER_PASS))
            (rating, is_compared), (other, _) = (self._pass(first, start, 0, weights) for start in starts)
            if is_compared[is_judged].all() and self._forgets(rating[is_judged], other[is_judged]):
                return first, before
        return 0, self.initial

    def _forgets(self, rating: FloatArray, other: FloatArray) -> bool:
        return bool(np.abs(rating - other).max() <= TOLERANCE * self.step_size)

    def _rated(self, before: FloatArray, start: NDArray[np.int64]) -> FloatArray:
        """Return the ratings after some mini-batches that count once."""
        rating = before.copy()
        batches = self.matches.batches._replace(start=start)
        elo_pass(rating, np.zeros(len(rating), np.bool_), batches, self.matches.count_once(), self.step_size, self.rate)
        return rating

    def _pass(
        self, first: int, before: FloatArray, at: int, weights: tuple[IntArray, NDArray[np.uint8]] | None
    ) -> tuple[FloatArray, NDArray[np.uint8]]:
        """Run some replicates, from number `at` on; return their ratings, and in which each item was drawn."""
        rating = np.repeat(before[:, None], REPLICATES_PER_PASS, axis=1)
        is_compared = np.zeros(rating.shape, np.uint8)
        batches = self.matches.batches
        if weights is not None:
            unit, weight = weights
            part = np.zeros((weight.shape[1], REPLICATES_PER_PASS), np.uint8)
            chosen = weight[at : at + REPLICATES_PER_PASS].T
            part[:, : chosen.shape[1]] = chosen
            tail = batches._replace(start=batches.start[first:])
            elo_replicates(rating, is_compared, tail, ReplicateCounts(unit, part), self.step_size, self.rate)
            return rating, is_compared
        place = np.arange(len(self.matches.row), dtype=np.int32) % CHUNK
        part = np.empty((CHUNK, REPLICATES_PER_PASS), np.uint8)
        for start in range(first, len(place), CHUNK):
            seed = np.random.SeedSequence([self.seed, at, start]).generate_state(1, np.uint64)[0]
            fill_with_weights(part, poisson_quantiles(), seed)
            chunk = batches._replace(start=batches.start[start : start + CHUNK + 1])
            elo_replicates(rating, is_compared, chunk, ReplicateCounts(place, part), self.step_size, self.rate)
        return rating, is_compared

    def _unit_weights(self, first: int, replicates: int) -> tuple[IntArray, NDArray[np.uint8]] | None:
        """Return the unit of each comparison and the units' weights (replicate, unit); none for single judgments."""
        if self.units.kind == "judgments":
            return None
        of_match = self.units.of_row[self.matches.row]
        is_used = np.zeros(len(self.units), np.bool_)
        is_used[of_match[self.matches.batches.start[first] :]] = True
        code = np.cumsum(is_used, dtype=np.int32) - 1
        names = tuple(name for name, used in zip(self.units.names, is_used, strict=True) if used)
        return code[of_match], poisson_weights(names, replicates, self.seed)
