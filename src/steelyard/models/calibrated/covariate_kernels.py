"""Items' covariates in the sampler: x_i ~ N(m + β·z_i, s²), with the weights β drawn like everything else.

The columns z are uncorrelated, with mean 0 and variance 1 over the items (see `covariates`), so each weight is drawn
exactly, given m, s and x. Without covariates there are no columns and the prior is N(m, s²).
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from steelyard.models.compiled import compiled_part
from steelyard.observations import FloatArray


@compiled_part
def weight_variance(scale: float, n_columns: int) -> float:
    """Return the prior variance of each weight: together they have that of the items' sd."""
    return scale * scale / max(n_columns, 1)


@compiled_part
def set_prior_mean(mean: float, columns: FloatArray, weights: FloatArray, out: FloatArray) -> None:
    """Fill `out` with the prior mean of each item."""
    for i in range(len(out)):
        total = mean
        for k in range(len(weights)):
            total += columns[i, k] * weights[k]
        out[i] = total


@compiled_part
def draw_weights(
    rng: np.random.Generator, x: FloatArray, columns: FloatArray, weights: FloatArray, sd: float, scale: float
) -> None:
    """Draw the weights given the items; columns are uncorrelated, so one does not depend on another."""
    precision = len(x) / (sd * sd) + 1.0 / weight_variance(scale, len(weights))
    for k in range(len(weights)):
        total = 0.0
        for i in range(len(x)):
            total += columns[i, k] * x[i]
        weights[k] = total / (sd * sd) / precision + rng.standard_normal() / sqrt(precision)


@compiled_part
def squares_around(x: FloatArray, middle: FloatArray) -> float:
    """Return the sum of squared deviations from the prior means."""
    total = 0.0
    for i in range(len(x)):
        total += (x[i] - middle[i]) ** 2
    return total


@compiled_part
def stretch_gain(weights: FloatArray, step: float, times: float, scale: float) -> float:
    """Return the change of the log density, Jacobian included, if the weights are stretched with the items."""
    squares = 0.0
    for weight in weights:
        squares += weight * weight
    return len(weights) * step - 0.5 * squares * (times * times - 1.0) / weight_variance(scale, len(weights))
