"""How much a reduction of each item's variance is worth for the objective of the study."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from steelyard.designs.adaptive.settings import Objective, ObjectiveSettings
from steelyard.observations import FloatArray

_CELLS = 256
_MIN_WEIGHT = 1e-12
"""An item far from the cut today may come near it when other items move, so its weight is never 0."""


class ScoreDensity(NamedTuple):
    """Distribution of the items' scores, uncertainty included: density and cumulative probability on a grid."""

    grid: FloatArray
    density: FloatArray
    cumulative: FloatArray

    def quantile(self, fraction: float) -> float:
        """Return the score below which this fraction of the items lies."""
        return float(np.interp(fraction, self.cumulative, self.grid))


def score_density(mean: FloatArray, variance: FloatArray) -> ScoreDensity:
    """Add up the items' Gaussians. Items whose means fall into one grid cell share their average variance."""
    margin = 4 * float(np.sqrt(variance.max()))
    edges = np.linspace(mean.min() - margin, mean.max() + margin, _CELLS + 1)
    grid = (edges[1:] + edges[:-1]) / 2
    cell = np.clip(np.searchsorted(edges, mean) - 1, 0, _CELLS - 1)
    count = np.bincount(cell, minlength=_CELLS)
    occupied = np.flatnonzero(count)
    centre = np.bincount(cell, mean, _CELLS)[occupied] / count[occupied]
    sd = np.sqrt(np.bincount(cell, variance, _CELLS)[occupied] / count[occupied])
    fraction = count[occupied] / len(mean)
    z = (grid[:, None] - centre) / sd
    density = (np.exp(-0.5 * z**2) / (sd * np.sqrt(2 * np.pi))) @ fraction
    return ScoreDensity(grid, density, special.ndtr(z) @ fraction)


def objective_cut(settings: ObjectiveSettings, density: ScoreDensity, count: int) -> float:
    """Return the score that separates the selected items from the others; 0 for objectives without a cut."""
    if settings.objective == "top" and settings.top is not None:
        return density.quantile(1 - settings.top / count)
    if settings.objective == "threshold" and settings.threshold is not None:
        return density.quantile(settings.threshold)
    return 0.0


def variance_weights(
    objective: Objective, mean: FloatArray, variance: FloatArray, density: ScoreDensity, cut: float
) -> FloatArray:
    """Return the first-order gain in the objective per unit of variance removed, for each item.

    `scores`: the variance itself, so 1. `ranking`: the squared error of the rank; moving along the scale passes as
    many items as lie there, so the weight is the squared density, and the weighted sum is the loss of Spearman's ρ.
    `threshold` and `top`: the variance of the indicator of lying above the `cut`.
    """
    if objective == "scores":
        return np.ones(len(mean))
    if objective == "ranking":
        return np.asarray(np.interp(mean, density.grid, density.density) ** 2)
    return np.maximum(np.exp(-((mean - cut) ** 2) / variance) / (2 * np.pi), _MIN_WEIGHT) / variance
