"""Items' covariates in the sampler: x_i ~ N(m + β·z_i, s²), with the weights β drawn like everything else.

The columns z are uncorrelated, with mean 0 and variance 1 over the items (see `covariates`), so each weight is drawn
exactly, given m, s and x. Without covariates there are no columns and the prior is N(m, s²).
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

from steelyard.models.calibrated.gibbs_kernels import between
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


@compiled_part
def move_weights(
    rng: np.random.Generator, rows: Any, draw: Any, intercept: FloatArray, origin: float, scale: float
) -> None:
    """Draw each weight again with the items' distances from their prior means held, so that the items move with it.

    Where judgments are few, items keep the weights where they are and weights the items: the two draws in turn mix
    fast whether judgments are few or many (interweaving, Yu & Meng 2011).
    """
    first, item, shift_of, lower, upper, _ = rows.ratings
    pairs, tuples = rows.pairs, rows.tuples
    for k in range(len(draw.weights)):
        precision = 1.0 / weight_variance(scale, len(draw.weights))
        pull = -draw.weights[k] * precision
        for r in range(len(first) - 1):
            gain = draw.slope[r] / draw.noise[r]
            for o in range(first[r], first[r + 1]):
                if lower[o] == -inf and upper[o] == inf:
                    continue
                z = draw.columns[item[o], k]
                middle = intercept[r] + draw.slope[r] * (draw.x[item[o]] - origin) + draw.shift[shift_of[o]]
                precision += gain * draw.slope[r] * z * z
                pull += gain * z * (draw.rating_response[o] - middle)
        for m in range(len(pairs.left)):
            if not draw.lapsed[m]:
                slope = draw.slope[pairs.responder[m]]
                z = draw.columns[pairs.left[m], k] - draw.columns[pairs.right[m], k]
                difference = slope * (draw.x[pairs.left[m]] - draw.x[pairs.right[m]])
                precision += slope * slope * z * z
                pull += slope * z * (draw.pair_response[m] - difference)
        for t in range(len(tuples.first) - 1):
            if tuples.responder[t] < 0:
                continue
            slope = draw.slope[tuples.responder[t]]
            for o in range(tuples.first[t], tuples.first[t + 1]):
                z = draw.columns[tuples.item[o], k]
                precision += 2.0 * slope * slope * z * z
                pull += 2.0 * slope * z * (draw.tuple_response[o] - slope * (draw.x[tuples.item[o]] - origin))
        step = pull / precision + rng.standard_normal() / sqrt(precision)
        draw.weights[k] += step
        for i in range(len(draw.x)):
            draw.x[i] += draw.columns[i, k] * step
            draw.prior_mean[i] += draw.columns[i, k] * step


@compiled_part
def move_item_sd(
    rng: np.random.Generator, rows: Any, draw: Any, intercept: FloatArray, origin: float, scale: float, sd: float
) -> float:
    """Draw the items' sd with their standardised distances from the prior means held, and move the items with it.

    A good judge leaves little between items, which keeps the sd small, and a small sd keeps the items where the judge
    has them; this draw breaks the circle. Given the responses, the sd's density is a Gaussian above 0.
    """
    first, item, shift_of, lower, upper, _ = rows.ratings
    pairs, tuples = rows.pairs, rows.tuples
    precision, pull = 1.0 / (scale * scale), 0.0
    for r in range(len(first) - 1):
        gain = draw.slope[r] / draw.noise[r]
        for o in range(first[r], first[r + 1]):
            if lower[o] == -inf and upper[o] == inf:
                continue
            i = item[o]
            e = (draw.x[i] - draw.prior_mean[i]) / sd
            middle = intercept[r] + draw.slope[r] * (draw.prior_mean[i] - origin) + draw.shift[shift_of[o]]
            precision += gain * draw.slope[r] * e * e
            pull += gain * e * (draw.rating_response[o] - middle)
    for m in range(len(pairs.left)):
        if not draw.lapsed[m]:
            left, right, slope = pairs.left[m], pairs.right[m], draw.slope[pairs.responder[m]]
            middle = slope * (draw.prior_mean[left] - draw.prior_mean[right])
            e = (draw.x[left] - draw.x[right] - draw.prior_mean[left] + draw.prior_mean[right]) / sd
            precision += slope * slope * e * e
            pull += slope * e * (draw.pair_response[m] - middle)
    for t in range(len(tuples.first) - 1):
        if tuples.responder[t] < 0:
            continue
        slope = draw.slope[tuples.responder[t]]
        for o in range(tuples.first[t], tuples.first[t + 1]):
            i = tuples.item[o]
            e = (draw.x[i] - draw.prior_mean[i]) / sd
            precision += 2.0 * slope * slope * e * e
            pull += 2.0 * slope * e * (draw.tuple_response[o] - slope * (draw.prior_mean[i] - origin))
    middle, spread = pull / precision, 1.0 / sqrt(precision)
    other = middle + spread * between(rng, -middle / spread, inf)
    # A sd of exactly 0 would never move again.
    other = max(other, 1e-6 * scale)
    for i in range(len(draw.x)):
        draw.x[i] = draw.prior_mean[i] + (draw.x[i] - draw.prior_mean[i]) * other / sd
    return other
