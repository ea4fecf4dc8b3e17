"""What residuals against gold say of annotators' bias and noise, with partial pooling, by Gibbs sampling.

d_w | μ_w, σ_w ~ N(μ_w, σ_w²) for every residual of annotator w; μ_w ~ N(m, ω²); σ_w² ~ scaled-inverse-χ²(ν, s²).
Hyperpriors, weak on a scale of width L: m flat, ω half-Cauchy(L / 10), s half-normal(L / 4), p(ν) ∝ 1/ν over `DEGREES`.
Several sets of residuals (the folds of a cross-validation) are sampled side by side, a row of each array for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from steelyard.observations import FloatArray, IntArray

DEGREES = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0])
"""The values that ν, how alike annotators are in noise, may take."""

BURN_IN = 200


class ResidualSums(NamedTuple):
    """Number, mean and sum of squares about the mean of the residuals, by set (rows) and annotator (columns)."""

    n: FloatArray
    mean: FloatArray
    squares: FloatArray

    @classmethod
    def leaving_out(
        cls, annotator: IntArray, residual: FloatArray, part: IntArray, n_annotators: int, n_parts: int
    ) -> ResidualSums:
        """Sum the residuals without each part in turn; the last set is all of them."""
        shape = (n_parts, n_annotators)
        cell = part.astype(np.int64) * n_annotators + annotator
        # Centred first, so that the sums of squares do not cancel.
        centre = residual.mean() if len(residual) else 0.0
        value = residual - centre
        own = [
            np.bincount(cell, weights, minlength=n_parts * n_annotators).reshape(shape)
            for weights in (np.ones(len(value)), value, value**2)
        ]
        n, total, squares = (np.concatenate([o.sum(axis=0) - o, o.sum(axis=0, keepdims=True)]) for o in own)
        mean = total / np.maximum(n, 1)
        return cls(n, np.where(n > 0, mean + centre, 0.0), np.maximum(squares - n * mean**2, 0.0))


class Draw(NamedTuple):
    """One draw of every annotator's bias and noise variance, by set and annotator."""

    bias: FloatArray
    variance: FloatArray


@dataclass(slots=True, eq=False)
class Sampler:
    """A Gibbs sampler over the sets side by side; `sweeps` yields one draw after another.

    Parameters
    ----------
    sums
        The residuals; every set has at least one.
    width
        The ratings' scale's; noise under a hundred-thousandth of it is taken for that.
    rng
        Source of the draws.
    """

    sums: ResidualSums
    width: float
    rng: np.random.Generator

    def sweeps(self, count: int) -> Iterator[Draw]:
        """Yield `count` draws after the burn-in; their arrays are new each time."""
        n, mean, squares = self.sums
        has_ratings = n > 0
        floor = (1e-5 * self.width) ** 2
        # Start from pooled moments: exact values do not matter after the burn-in.
        pooled = squares.sum(axis=1, keepdims=True) / np.maximum((n - 1).clip(0).sum(axis=1, keepdims=True), 1)
        noise = np.maximum(pooled, floor)
        variance = np.broadcast_to(noise, n.shape).copy()
        centre = (n * mean).sum(axis=1, keepdims=True) / np.maximum(n.sum(axis=1, keepdims=True), 1)
        among = np.full_like(centre, (self.width / 10) ** 2)
        degrees = np.full_like(centre, 4.0)
        for sweep in range(BURN_IN + count):
            precision = n / variance + 1 / among
            bias = (n * mean / variance + centre / among) / precision
            bias += self.rng.standard_normal(n.shape) / np.sqrt(precision)
            scale = degrees * noise + squares + n * (mean - bias) ** 2
            variance = np.maximum(scale / self.rng.chisquare(np.broadcast_to(degrees, n.shape) + n), floor)
            centre, among = self._biases(bias, has_ratings, among)
            noise, degrees = self._noises(variance, has_ratings, degrees, floor)
            if sweep >= BURN_IN:
                yield Draw(bias, variance)

    def _biases(self, bias: FloatArray, seen: NDArray[np.bool_], among: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Draw m and ω² given the biases of annotators with residuals."""
        k = np.maximum(seen.sum(axis=1, keepdims=True), 1)
        mean = (bias * seen).sum(axis=1, keepdims=True) / k
        centre = mean + np.sqrt(among / k) * self.rng.standard_normal(k.shape)
        # Half-Cauchy as a mixture of inverse gammas (Wand et al. 2011).
        mixing = (1 / among + (10 / self.width) ** 2) / self.rng.standard_gamma(1.0, k.shape)
        squares = ((bias - centre) ** 2 * seen).sum(axis=1, keepdims=True)
        return centre, (1 / mixing + squares / 2) / self.rng.standard_gamma((k + 1) / 2)

    def _noises(
        self, variance: FloatArray, seen: NDArray[np.bool_], degrees: FloatArray, floor: float
    ) -> tuple[FloatArray, FloatArray]:
        """Draw s² and ν given the noise of annotators with residuals."""
        k = np.maximum(seen.sum(axis=1, keepdims=True), 1)
        inverse = (seen / variance).sum(axis=1, keepdims=True)
        logs = (seen * np.log(variance)).sum(axis=1, keepdims=True)
        rate = degrees / 2 * inverse + 8 / self.width**2
        noise = np.maximum(self.rng.standard_gamma(k * degrees / 2 + 0.5) / rate, floor)
        half = DEGREES / 2
        log_weight = k * (half * np.log(half * noise) - special.gammaln(half)) - half * logs - half * noise * inverse
        log_weight -= np.log(DEGREES)
        # The largest of weight plus Gumbel noise is a draw in proportion to exp(weight).
        chosen = (log_weight + self.rng.gumbel(size=log_weight.shape)).argmax(axis=1)
        return noise, DEGREES[chosen][:, None]
