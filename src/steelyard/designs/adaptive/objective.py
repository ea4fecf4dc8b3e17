"""The two factors of the adaptive objective: the information expected of an answer, and the weight of each variance."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from steelyard.designs.adaptive.kernels import InformationTable, tabulate_outcomes
from steelyard.designs.adaptive.settings import Objective, ObjectiveSettings
from steelyard.models.calibrated.online import LEVELS
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


_ROWS, _COLUMNS = 128, 24
_MAX_DISTANCE, _MAX_VARIANCE = 8.0, 2.0
"""Largest distance of two items, in prior standard deviations, and largest variance of their difference."""


def information_table(
    level_probability: FloatArray, tie_margin: float, *, pair_weight: float = 1.0, rating_precision: float = 0.0
) -> InformationTable:
    """Return the expected information of an annotator's answers.

    `level_probability` is the posterior over the annotator's noise levels; the other parameters are fields of
    `InformationTable`. The information about a difference is the Fisher information of the predicted outcome: squared
    slope over probability, summed over outcomes.
    """
    probability, slope = _outcomes_by_level(tie_margin)
    by_outcome = (level_probability @ slope) ** 2 / (level_probability @ probability)
    table = by_outcome.reshape(-1, _ROWS, _COLUMNS).sum(axis=0)
    return InformationTable(table, _MAX_DISTANCE, _MAX_VARIANCE, pair_weight, rating_precision)


@lru_cache(maxsize=8)
def _outcomes_by_level(tie_margin: float) -> tuple[FloatArray, FloatArray]:
    """Return the probability of each possible outcome and its slope on the table's grid, one row per noise level."""
    shape = (3, len(LEVELS), _ROWS, _COLUMNS)
    probability, slope = np.empty(shape), np.empty(shape)
    tabulate_outcomes(LEVELS, tie_margin, _MAX_DISTANCE, _MAX_VARIANCE, probability, slope)
    outcomes = [0, 1, 2] if tie_margin > 0 else [0, 2]
    by_level = [np.ascontiguousarray(array[outcomes].swapaxes(0, 1)) for array in (probability, slope)]
    return by_level[0].reshape(len(LEVELS), -1), by_level[1].reshape(len(LEVELS), -1)
