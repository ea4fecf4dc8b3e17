"""Compiled moves of many unknowns at once in the calibrated scale's sampler, and draws of the items' population.

Along some directions answers do not change: all items up and all intercepts down, or items stretched and slopes
reduced.
"""

from __future__ import annotations

from math import exp, inf, log, sqrt

import numpy as np

from steelyard.models.calibrated.chain_state import (
    COMPARED_SD,
    MEAN,
    MEAN_PRIOR,
    RATED_SD,
    SD,
    SHIFT,
    SHIFT_SD,
    Draw,
    Rows,
)
from steelyard.models.calibrated.covariate_kernels import draw_weights, set_prior_mean, squares_around, stretch_gain
from steelyard.models.calibrated.evidence import RatingRows
from steelyard.models.calibrated.gibbs_kernels import Responders
from steelyard.models.calibrated.marginal_kernels import multiply
from steelyard.models.calibrated.responder_kernels import (
    ALPHA,
    BETA,
    INTERCEPT,
    KAPPA,
    LAMBDA,
    LOG_SLOPE,
    OMEGA_A,
    OMEGA_B,
    RANDOM,
    RANDOM_SLOPE,
    RUNTIME,
    TAIL_WEIGHT,
    Crowd,
    Ladder,
    prior_density,
    slice_sd,
)
from steelyard.models.compiled import compiled_part
from steelyard.observations import FloatArray


@compiled_part
def total_of(values: FloatArray) -> float:
    """Return a sum; loops like this one compile much faster than array expressions."""
    total = 0.0
    for value in values:
        total += value
    return total


@compiled_part
def squares_of(values: FloatArray, middle: float) -> float:
    """Return the sum of squared deviations."""
    total = 0.0
    for value in values:
        total += (value - middle) ** 2
    return total


@compiled_part
def draw_item_population(rng: np.random.Generator, draw: Draw, is_rated: bool) -> None:
    """Draw the mean (of rated items), the weights of covariates, and the sd of the items."""
    x, common = draw.x, draw.common
    if is_rated:
        precision = len(x) / common[SD] ** 2 + 1.0 / MEAN_PRIOR[1] ** 2
        total = total_of(x) / common[SD] ** 2 + MEAN_PRIOR[0] / MEAN_PRIOR[1] ** 2
        common[MEAN] = total / precision + rng.standard_normal() / sqrt(precision)
    scale = RATED_SD if is_rated else COMPARED_SD
    # Covariates have mean 0 over the items, so they do not enter the draw of the mean, nor the mean theirs.
    draw_weights(rng, x, draw.columns, draw.weights, common[SD], scale)
    set_prior_mean(common[MEAN], draw.columns, draw.weights, draw.prior_mean)
    squares = squares_around(x, draw.prior_mean)
    common[SD] = slice_sd(rng, common[SD], float(len(x)), squares, scale)


@compiled_part
def move_level(rows: Rows, draw: Draw, crowd: Crowd, by: float) -> None:
    """Move all items up, and the intercepts of raters and the responses to tuples with them: no answer changes."""
    for i in range(len(draw.x)):
        draw.x[i] += by
    if crowd.rates[0]:
        draw.common[MEAN] += by
        for i in range(len(draw.x)):
            draw.prior_mean[i] += by
    for r in range(len(crowd.line)):
        if crowd.rates[crowd.group[r]]:
            crowd.line[r, INTERCEPT] -= exp(crowd.line[r, LOG_SLOPE]) * by
    tuples = rows.tuples
    for t in range(len(tuples.first) - 1):
        r = tuples.responder[t]
        if r >= 0:
            for o in range(tuples.first[t], tuples.first[t + 1]):
                draw.tuple_response[o] += exp(crowd.line[r, LOG_SLOPE]) * by


@compiled_part
def draw_level(rng: np.random.Generator, rows: Rows, draw: Draw, crowd: Crowd, rung: Ladder) -> None:
    """Draw the common level of items against intercepts, where only their priors determine it."""
    common = draw.common
    weight = pull = 0.0
    for r in range(len(crowd.line)):
        g = crowd.group[r]
        if not crowd.rates[g]:
            continue
        if not (rung.bias and crowd.own[r]):
            return
        slope = exp(crowd.line[r, LOG_SLOPE])
        pooling = crowd.line[r, TAIL_WEIGHT] / crowd.population[g, OMEGA_B] ** 2
        weight += pooling * slope * slope
        pull += pooling * slope * (crowd.line[r, INTERCEPT] - crowd.population[g, BETA])
    if crowd.rates[0]:
        weight += 1.0 / MEAN_PRIOR[1] ** 2
        pull += (MEAN_PRIOR[0] - common[MEAN]) / MEAN_PRIOR[1] ** 2
    else:
        weight += len(draw.x) / common[SD] ** 2
        pull -= total_of(draw.x) / common[SD] ** 2
    move_level(rows, draw, crowd, pull / weight + rng.standard_normal() / sqrt(weight))


@compiled_part
def stretch(rng: np.random.Generator, draw: Draw, crowd: Crowd, origin: float) -> None:
    """Stretch all items against all slopes by a random walk: no answer changes, only priors do."""
    common, population = draw.common, crowd.population
    is_rated = crowd.rates[0]
    own = crowd.first[1] - crowd.first[0]
    for r in range(crowd.first[0], crowd.first[1]):
        if not crowd.own[r]:
            return
    step = (0.1 + 0.5 * rng.random()) / sqrt(float(own)) * rng.standard_normal()
    times = exp(step)
    sd, scale = common[SD], RATED_SD if is_rated else COMPARED_SD
    gain = step - 0.5 * ((sd * times) ** 2 - sd * sd) / scale**2 + stretch_gain(draw.weights, step, times, scale)
    mean, noise_mean = common[MEAN], population[0, LAMBDA]
    if is_rated:
        mean = origin + (mean - origin) * times
        gain += step + 0.5 * ((common[MEAN] - MEAN_PRIOR[0]) ** 2 - (mean - MEAN_PRIOR[0]) ** 2) / MEAN_PRIOR[1] ** 2
        noise_mean += population[0, KAPPA] * step
        gain += prior_density(RUNTIME[LAMBDA], noise_mean, population[0]) - prior_density(
            RUNTIME[LAMBDA], population[0, LAMBDA], population[0]
        )
    for r in range(crowd.first[0], crowd.first[1]):
        slope = crowd.line[r, LOG_SLOPE]
        if crowd.line[r, RANDOM] > 0.0:
            gain -= step + 0.5 * (exp(2.0 * (slope - step)) - exp(2.0 * slope)) / RANDOM_SLOPE**2
        else:
            gain -= 0.5 * ((slope - step) ** 2 - slope * slope) / population[0, OMEGA_A] ** 2
    for g in range(1, len(population)):
        alpha = population[g, ALPHA]
        gain += prior_density(RUNTIME[ALPHA], alpha - step, population[g]) - prior_density(
            RUNTIME[ALPHA], alpha, population[g]
        )
    if log(rng.random()) < gain:
        for i in range(len(draw.x)):
            draw.x[i] = origin + (draw.x[i] - origin) * times
        common[MEAN], common[SD] = mean, sd * times
        multiply(draw.weights, times)
        set_prior_mean(mean, draw.columns, draw.weights, draw.prior_mean)
        population[0, LAMBDA] = noise_mean
        for g in range(1, len(population)):
            population[g, ALPHA] -= step
        for r in range(len(crowd.line)):
            crowd.line[r, LOG_SLOPE] -= step


@compiled_part
def stretch_shifts(
    rng: np.random.Generator, rows: RatingRows, draw: Draw, responders: Responders, origin: float
) -> None:
    """Multiply all shifts and their sd by a factor, in a random walk."""
    first, item, shift_of, lower, upper, _ = rows
    cross = square = 0.0
    for r in range(len(first) - 1):
        base = responders.intercept[r] - responders.slope[r] * origin
        for o in range(first[r], first[r + 1]):
            shift = draw.shift[shift_of[o]]
            if shift != 0.0 and not (lower[o] == -inf and upper[o] == inf):
                residual = draw.rating_response[o] - base - responders.slope[r] * draw.x[item[o]]
                cross += shift * residual / responders.noise[r]
                square += shift * shift / responders.noise[r]
    sd = draw.common[SHIFT]
    for _ in range(4):
        step = 0.7 * rng.standard_normal()
        times = exp(step)
        gain = (times - 1.0) * cross - 0.5 * (times * times - 1.0) * square
        gain += step - 0.5 * ((sd * times) ** 2 - sd * sd) / SHIFT_SD**2
        if sd * times > 1e-5 and log(rng.random()) < gain:
            multiply(draw.shift, times)
            sd *= times
            cross *= times
            square *= times * times
    draw.common[SHIFT] = sd
