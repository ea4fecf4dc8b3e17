"""Compiled sweeps of the calibrated scale's Gibbs sampler: one chain of joint draws of items and annotators.

Item locations are x_i ~ N(m, s²). `gibbs_kernels` draws latent responses and items, `responder_kernels` annotators
and their populations; here these are put together, with moves that change many unknowns at once.
"""

from __future__ import annotations

from math import exp, inf, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.models.calibrated.covariate_kernels import (
    draw_weights,
    move_item_sd,
    move_weights,
    set_prior_mean,
    squares_around,
    stretch_gain,
)
from steelyard.models.calibrated.evidence import PairRows, RatingRows, TupleRows
from steelyard.models.calibrated.gibbs_kernels import (
    HELD_OUT,
    LEAST_CHANCE,
    Items,
    PairAnswers,
    Responders,
    ShiftSums,
    chance_below,
    draw_items,
    draw_items_jointly,
    draw_pairs,
    draw_ratings,
    draw_shifts,
    draw_tuples,
    pair_chance,
    pair_log_likelihood,
    typical_response,
)
from steelyard.models.calibrated.online_kernels import below, density
from steelyard.models.calibrated.responder_kernels import (
    ALPHA,
    BETA,
    COUNT,
    FLOOR,
    INTERCEPT,
    KAPPA,
    LAMBDA,
    LAPSE_PRIOR,
    LOG_NOISE,
    LOG_SLOPE,
    MIN_LOG_SD,
    OMEGA_A,
    OMEGA_B,
    RANDOM,
    RANDOM_SLOPE,
    RUNTIME,
    TAIL_WEIGHT,
    UU,
    ZU,
    ZZ,
    Crowd,
    Ladder,
    U,
    Z,
    draw_population,
    draw_random,
    draw_responders,
    prior_density,
    slice_sd,
    variance_of,
)
from steelyard.models.compiled import compiled, compiled_part, inlined
from steelyard.observations import FloatArray

MEAN_PRIOR = (0.5, 0.5)
"""Prior mean and sd of the items' mean m on a rating scale of length 1. Of compared items, m is 0."""

RATED_SD, COMPARED_SD = 0.3, 2.5
"""Scales of the half-normal priors of the items' sd s: on a rating scale of length 1, and of compared items."""

SHIFT_SD = 0.05
"""Scale of the half-normal prior of the sd of shifts."""

MARGIN_PRIOR = (log(0.4), 1.0)
"""Prior mean and sd of the log tie margin."""

MANY_PAIRS = 100_000
"""Above this many comparisons, moves that pass over all of them several times are made in every tenth sweep only."""

ITEM_MOVES = 3
"""Every how many sweeps items are drawn with responses integrated out, which costs as much as one or two sweeps."""

RANDOM_AFTER = 20
"""Sweeps before anybody is classified as random: at first, items are not where annotators see them."""

SLOPE_SD_MOVES = 3
"""Steps of the random walk of the sd of slopes in a sweep, with responses integrated out."""

STRETCHES = 4
"""Steps of the random walk of the items' scale against the slopes in a sweep."""

# Entries of the common unknowns, and steps of their random walks.
MEAN, SD, SHIFT, MARGIN, MARGIN_STEP, FACTOR_STEP, SWEEP = 0, 1, 2, 3, 4, 5, 6


class Rows(NamedTuple):
    """All judgments, by how the model reads them."""

    ratings: RatingRows
    pairs: PairRows
    tuples: TupleRows


class EndRows(NamedTuple):
    """Items with many ratings at an end of the scale, and all ratings of each: `row[start[k]:start[k + 1]]`."""

    item: NDArray[np.int64]
    start: NDArray[np.int64]
    row: NDArray[np.int64]
    responder: NDArray[np.int64]


class Problem(NamedTuple):
    """What a chain draws from: the rows to use, all rows, the rung of the model, and the origin of the scale.

    `moved` are the compared items that are drawn with responses integrated out, too. By group: whether ratings are
    bounded, the number of steps above the lowest, and the `edges` between steps.
    """

    rows: Rows
    whole: Rows
    ends: EndRows
    moved: NDArray[np.int64]
    rung: Ladder
    origin: float
    bounded: NDArray[np.bool_]
    steps: NDArray[np.int64]
    edges: FloatArray


class Draw(NamedTuple):
    """The latest draw of everything but the responders; changed in place."""

    x: FloatArray
    prior_mean: FloatArray
    columns: FloatArray
    """Covariates of the items, uncorrelated; no columns where there are none."""
    weights: FloatArray
    rating_response: FloatArray
    pair_response: FloatArray
    lapsed: NDArray[np.bool_]
    tuple_response: FloatArray
    shift: FloatArray
    slope: FloatArray
    noise: FloatArray
    lapse_rate: FloatArray
    common: FloatArray
    work: FloatArray
    shift_work: FloatArray
    responder_work: FloatArray


class Trace(NamedTuple):
    """Records of the draws: locations, population parameters, common unknowns and weights of covariates by draw.

    `line` has sums and sums of squares, by responder, of intercept, slope, noise sd, lapse rate and whether random.
    `score` has sums for the rows that are held out: predictive densities of ratings, comparisons and tuples, and
    expected answers of ratings; empty if no rows are held out.
    """

    x: FloatArray
    population: FloatArray
    common: FloatArray
    weights: FloatArray
    line: FloatArray
    score: tuple[FloatArray, FloatArray, FloatArray, FloatArray]


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
def multiply(values: FloatArray, factor: float) -> None:
    """Multiply in place."""
    for at in range(len(values)):
        values[at] *= factor


@compiled_part
def items_of(draw: Draw, origin: float) -> Items:
    """Return the items as the draws of `gibbs_kernels` take them."""
    return Items(draw.x, origin, draw.prior_mean, draw.common[SD] ** 2, draw.work[0], draw.work[1])


@compiled_part
def set_lines(crowd: Crowd, draw: Draw, intercept: FloatArray) -> None:
    """Copy intercepts, slopes and noise variances to where the draws of responses read them."""
    for r in range(len(crowd.line)):
        line = crowd.line[r]
        intercept[r] = line[INTERCEPT]
        draw.slope[r] = exp(line[LOG_SLOPE])
        draw.noise[r] = variance_of(line[LOG_NOISE], crowd.population[crowd.group[r], FLOOR])


@compiled_part
def move_pairs(rng: np.random.Generator, rows: PairRows, draw: Draw, is_free: bool) -> None:
    """Update the tie margin and, if items are free to stretch, their scale, with the responses integrated out."""
    common = draw.common
    margin = common[MARGIN]
    now = pair_log_likelihood(rows, draw.x, draw.slope, draw.lapse_rate, margin, 1.0)
    if margin > 0.0:
        other = margin * exp(common[MARGIN_STEP] * rng.standard_normal())
        then = pair_log_likelihood(rows, draw.x, draw.slope, draw.lapse_rate, other, 1.0)
        gain = then - now + 0.5 * ((log(margin) - MARGIN_PRIOR[0]) / MARGIN_PRIOR[1]) ** 2
        gain -= 0.5 * ((log(other) - MARGIN_PRIOR[0]) / MARGIN_PRIOR[1]) ** 2
        is_accepted = log(rng.random()) < gain
        if is_accepted:
            common[MARGIN] = margin = other
            now = then
        common[MARGIN_STEP] *= exp((0.6 if is_accepted else -0.4) / (1.0 + common[SWEEP]) ** 0.6)
    if is_free:
        step = common[FACTOR_STEP] * rng.standard_normal()
        then = pair_log_likelihood(rows, draw.x, draw.slope, draw.lapse_rate, margin, exp(step))
        sd = common[SD]
        gain = then - now + step - 0.5 * ((sd * exp(step)) ** 2 - sd * sd) / COMPARED_SD**2
        gain += stretch_gain(draw.weights, step, exp(step), COMPARED_SD)
        is_accepted = log(rng.random()) < gain
        if is_accepted:
            multiply(draw.x, exp(step))
            multiply(draw.weights, exp(step))
            multiply(draw.prior_mean, exp(step))
            common[SD] *= exp(step)
        common[FACTOR_STEP] *= exp((0.6 if is_accepted else -0.4) / (1.0 + common[SWEEP]) ** 0.6)


@compiled_part
def item_density(rows: PairRows, draw: Draw, i: int, location: float) -> float:
    """Return the log density of a compared item's location given the other items, with responses integrated out."""
    left, right, responder, outcome, start, row = rows
    margin = draw.common[MARGIN]
    guess = 1.0 / 3.0 if margin > 0.0 else 0.5
    total: float = -0.5 * ((location - draw.prior_mean[i]) / draw.common[SD]) ** 2
    product = 1.0
    for at in range(start[i], start[i + 1]):
        m = row[at]
        if outcome[m] == HELD_OUT:
            continue
        difference = location - draw.x[right[m]] if left[m] == i else draw.x[left[m]] - location
        r = responder[m]
        chance = pair_chance(draw.slope[r] * difference, outcome[m], margin)
        product *= max((1.0 - draw.lapse_rate[r]) * chance + draw.lapse_rate[r] * guess, LEAST_CHANCE)
        if product < LEAST_CHANCE:
            total += log(product)
            product = 1.0
    return total + log(product)


@compiled_part
def move_items(rng: np.random.Generator, items: NDArray[np.int64], rows: PairRows, draw: Draw) -> None:
    """Draw some compared items one after the other by slice sampling, with the responses integrated out.

    Given the responses, an item that won or lost all its comparisons hardly moves.
    """
    for i in items:
        value = draw.x[i]
        level = item_density(rows, draw, i, value) - rng.standard_exponential()
        # About three posterior sds; a comparison has an information of about .3.
        width = 3.0 / sqrt(1.0 / draw.common[SD] ** 2 + 0.3 * (rows.start[i + 1] - rows.start[i]))
        low = value - width * rng.random()
        high = low + width
        while item_density(rows, draw, i, low) > level:
            low -= width
        while item_density(rows, draw, i, high) > level:
            high += width
        for _ in range(60):
            other = low + (high - low) * rng.random()
            if item_density(rows, draw, i, other) >= level:
                draw.x[i] = other
                break
            if other < value:
                low = other
            else:
                high = other


@compiled_part
def end_density(
    problem: Problem, responders: Responders, k: int, location: float, precision: float, pull: float
) -> float:
    """Return the log density of the location of item k of `ends`, with the responses integrated out.

    `precision` and `pull` are those of its prior and its exact ratings.
    """
    ends, ratings = problem.ends, problem.rows.ratings
    total = location * (pull - 0.5 * precision * location)
    product = 1.0
    for at in range(ends.start[k], ends.start[k + 1]):
        o, r = ends.row[at], ends.responder[at]
        lower, upper = ratings.lower[o], ratings.upper[o]
        if lower == upper or (lower == -inf and upper == inf):
            continue
        sd = sqrt(responders.noise[r])
        middle = responders.intercept[r] + responders.slope[r] * (location - problem.origin)
        middle += responders.shift[ratings.shift[o]]
        low, high = (lower - middle) / sd, (upper - middle) / sd
        # In the lower tail, where differences of small probabilities are exact.
        chance = chance_below(high) - chance_below(low) if low < 0.0 else chance_below(-low) - chance_below(-high)
        product *= max(chance, LEAST_CHANCE)
        if product < LEAST_CHANCE:
            total += log(product)
            product = 1.0
    return total + log(product)


@compiled_part
def move_end_items(rng: np.random.Generator, problem: Problem, draw: Draw, responders: Responders) -> None:
    """Draw items with many ratings at an end by slice sampling, with the responses integrated out.

    Given responses beyond the end of the scale, such an item hardly moves.
    """
    ends, ratings = problem.ends, problem.rows.ratings
    for k in range(len(ends.item)):
        precision = 1.0 / draw.common[SD] ** 2
        pull = draw.prior_mean[ends.item[k]] * precision
        information = 0.0
        for at in range(ends.start[k], ends.start[k + 1]):
            o, r = ends.row[at], ends.responder[at]
            gain = responders.slope[r] / responders.noise[r]
            information += 0.3 * gain * responders.slope[r]
            if ratings.lower[o] == ratings.upper[o]:
                level = responders.intercept[r] - responders.slope[r] * problem.origin
                precision += gain * responders.slope[r]
                pull += gain * (ratings.lower[o] - level - responders.shift[ratings.shift[o]])
        width = 3.0 / sqrt(precision + information)
        value = draw.x[ends.item[k]]
        height = end_density(problem, responders, k, value, precision, pull) - rng.standard_exponential()
        low = value - width * rng.random()
        high = low + width
        while end_density(problem, responders, k, low, precision, pull) > height:
            low -= width
        while end_density(problem, responders, k, high, precision, pull) > height:
            high += width
        for _ in range(60):
            other = low + (high - low) * rng.random()
            if end_density(problem, responders, k, other, precision, pull) >= height:
                draw.x[ends.item[k]] = other
                break
            if other < value:
                low = other
            else:
                high = other


@compiled_part
def slope_density(rows: PairRows, draw: Draw, r: int, span: NDArray[np.int64], log_slope: float) -> float:
    """Return the log likelihood of one responder's comparisons at a slope, with the responses integrated out."""
    left, right, _, outcome, _, _ = rows
    margin, lapse, slope = draw.common[MARGIN], draw.lapse_rate[r], exp(log_slope)
    guess = 1.0 / 3.0 if margin > 0.0 else 0.5
    total, product = 0.0, 1.0
    for m in range(span[0], span[1]):
        if outcome[m] != HELD_OUT:
            chance = pair_chance(slope * (draw.x[left[m]] - draw.x[right[m]]), outcome[m], margin)
            product *= max((1.0 - lapse) * chance + lapse * guess, LEAST_CHANCE)
            if product < LEAST_CHANCE:
                total += log(product)
                product = 1.0
    return total + log(product)


@compiled_part
def slope_prior(line: FloatArray, prior: FloatArray, log_slope: float) -> float:
    """Return the log prior density of a responder's log slope."""
    if line[RANDOM] > 0.0:
        relative = exp(log_slope - prior[ALPHA]) / RANDOM_SLOPE
        return log_slope - 0.5 * relative * relative
    off = (log_slope - prior[ALPHA]) / prior[OMEGA_A]
    return -0.5 * float(off * off)


@compiled_part
def move_slopes(rng: np.random.Generator, rows: PairRows, draw: Draw, crowd: Crowd) -> None:
    """Draw the slopes of responders who compare by slice sampling, with the responses integrated out."""
    span = np.zeros(2, np.int64)
    while span[0] < len(rows.left):
        r = rows.responder[span[0]]
        span[1] = span[0]
        while span[1] < len(rows.left) and rows.responder[span[1]] == r:
            span[1] += 1
        if crowd.own[r]:
            line, prior = crowd.line[r], crowd.population[crowd.group[r]]
            value = line[LOG_SLOPE]
            level = slope_density(rows, draw, r, span, value) + slope_prior(line, prior, value)
            level -= rng.standard_exponential()
            width = 3.0 * min(prior[OMEGA_A], 0.5)
            low = value - width * rng.random()
            high = low + width
            while slope_density(rows, draw, r, span, low) + slope_prior(line, prior, low) > level:
                low -= width
            while slope_density(rows, draw, r, span, high) + slope_prior(line, prior, high) > level:
                high += width
            for _ in range(60):
                other = low + (high - low) * rng.random()
                if slope_density(rows, draw, r, span, other) + slope_prior(line, prior, other) >= level:
                    line[LOG_SLOPE] = other
                    break
                if other < value:
                    low = other
                else:
                    high = other
            draw.slope[r] = exp(line[LOG_SLOPE])
        span[0] = span[1]


@compiled_part
def stretched_density(rows: PairRows, draw: Draw, crowd: Crowd, g: int, times: float) -> float:
    """Return the log likelihood of a group's comparisons if deviations of slopes were `times` as large."""
    alpha, total = crowd.population[g, ALPHA], 0.0
    span = np.zeros(2, np.int64)
    while span[0] < len(rows.left):
        r = rows.responder[span[0]]
        span[1] = span[0]
        while span[1] < len(rows.left) and rows.responder[span[1]] == r:
            span[1] += 1
        if crowd.group[r] == g and crowd.own[r] and crowd.line[r, RANDOM] == 0.0:
            total += slope_density(rows, draw, r, span, alpha + (crowd.line[r, LOG_SLOPE] - alpha) * times)
        span[0] = span[1]
    return total


@compiled_part
def move_slope_sd(rng: np.random.Generator, rows: PairRows, draw: Draw, crowd: Crowd, g: int) -> None:
    """Stretch the deviations of the slopes of a group that compares, with their sd, by a random walk.

    The responses are integrated out.
    """
    prior = crowd.population[g]
    now = stretched_density(rows, draw, crowd, g, 1.0)
    for _ in range(SLOPE_SD_MOVES):
        # Steps of many sizes: a small sd varies by orders of magnitude, a large one by little.
        step = (0.1 + 1.2 * rng.random()) * rng.standard_normal()
        value = log(prior[OMEGA_A])
        then = stretched_density(rows, draw, crowd, g, exp(step))
        gain = prior_density(RUNTIME[OMEGA_A], value + step, prior) - prior_density(RUNTIME[OMEGA_A], value, prior)
        if log(rng.random()) < gain + then - now and value + step > MIN_LOG_SD:
            now = then
            prior[OMEGA_A] = exp(value + step)
            for r in range(crowd.first[g], crowd.first[g + 1]):
                line = crowd.line[r]
                if crowd.own[r] and line[RANDOM] == 0.0:
                    line[LOG_SLOPE] = prior[ALPHA] + (line[LOG_SLOPE] - prior[ALPHA]) * exp(step)
                    draw.slope[r] = exp(line[LOG_SLOPE])


@compiled_part
def move_lapses(rng: np.random.Generator, rows: PairRows, draw: Draw, compared: FloatArray, work: FloatArray) -> None:
    """Update every responder's lapse rate by a random walk on the log scale, with lapses integrated out."""
    left, right, responder, outcome, _, _ = rows
    margin = draw.common[MARGIN]
    guess = 1.0 / 3.0 if margin > 0.0 else 0.5
    other, gain = work[0], work[1]
    for r in range(len(compared)):
        rate = draw.lapse_rate[r]
        other[r] = rate * exp(1.2 / sqrt(1.0 + 0.05 * compared[r] * rate) * rng.standard_normal())
        gain[r] = -inf
        if compared[r] > 0.0 and 1e-8 < other[r] < 0.999:
            gain[r] = LAPSE_PRIOR[0] * log(other[r] / rate)
            gain[r] += (LAPSE_PRIOR[1] - 1.0) * log((1.0 - other[r]) / (1.0 - rate))
            # The proposal's width depends on the rate: the ratio of its densities there and back.
            forward_sd = 1.2 / sqrt(1.0 + 0.05 * compared[r] * rate)
            backward_sd = 1.2 / sqrt(1.0 + 0.05 * compared[r] * other[r])
            step = log(other[r] / rate)
            gain[r] += log(forward_sd / backward_sd) + 0.5 * step * step * (1.0 / forward_sd**2 - 1.0 / backward_sd**2)
    for m in range(len(left)):
        r = responder[m]
        if outcome[m] == HELD_OUT or gain[r] == -inf:
            continue
        chance = pair_chance(draw.slope[r] * (draw.x[left[m]] - draw.x[right[m]]), outcome[m], margin)
        gain[r] += log(
            ((1.0 - other[r]) * chance + other[r] * guess) / (chance + draw.lapse_rate[r] * (guess - chance))
        )
    for r in range(len(compared)):
        if gain[r] > -inf and log(rng.random()) < gain[r]:
            draw.lapse_rate[r] = other[r]


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


@compiled_part
def add_up(rows: Rows, draw: Draw, crowd: Crowd, origin: float) -> None:
    """Fill the sums by responder from the latent responses."""
    sums = crowd.sums
    for r in range(len(sums)):
        for column in range(sums.shape[1]):
            sums[r, column] = 0.0
    first, item, shift_of, lower, upper, _ = rows.ratings
    for r in range(len(first) - 1):
        for o in range(first[r], first[r + 1]):
            if lower[o] == -inf and upper[o] == inf:
                continue
            u, z = draw.x[item[o]] - origin, draw.rating_response[o] - draw.shift[shift_of[o]]
            sums[r, COUNT] += 1.0
            sums[r, U] += u
            sums[r, UU] += u * u
            sums[r, Z] += z
            sums[r, ZU] += z * u
            sums[r, ZZ] += z * z
    pairs = rows.pairs
    for m in range(len(pairs.left)):
        if not draw.lapsed[m]:
            u = draw.x[pairs.left[m]] - draw.x[pairs.right[m]]
            sums[pairs.responder[m], UU] += u * u
            sums[pairs.responder[m], ZU] += u * draw.pair_response[m]
            sums[pairs.responder[m], ZZ] += draw.pair_response[m] ** 2
    tuples = rows.tuples
    for t in range(len(tuples.first) - 1):
        r = tuples.responder[t]
        if r < 0:
            continue
        for o in range(tuples.first[t], tuples.first[t + 1]):
            u = draw.x[tuples.item[o]] - origin
            sums[r, UU] += 2.0 * u * u
            sums[r, ZU] += 2.0 * u * draw.tuple_response[o]
            sums[r, ZZ] += 2.0 * draw.tuple_response[o] ** 2


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


@inlined
def sweep(rng: np.random.Generator, problem: Problem, draw: Draw, crowd: Crowd) -> None:  # noqa: PLR0912, PLR0915  # a step each
    """Draw every unknown once, given all others."""
    rows, rung, origin = problem.rows, problem.rung, problem.origin
    common = draw.common
    intercept = draw.responder_work[2]
    set_lines(crowd, draw, intercept)
    has_pairs = len(rows.pairs.left) > 0
    passes_over_pairs = has_pairs and (len(rows.pairs.left) <= MANY_PAIRS or int(common[SWEEP]) % 10 == 0)
    is_free = len(rows.ratings.item) == 0 and len(rows.tuples.item) == 0
    if has_pairs:
        move_pairs(rng, rows.pairs, draw, is_free)
        if is_free and int(common[SWEEP]) % ITEM_MOVES == 0:
            move_items(rng, problem.moved, rows.pairs, draw)
    if passes_over_pairs:
        if rung.slope:
            move_slopes(rng, rows.pairs, draw, crowd)
            for g in range(len(crowd.rates)):
                # The likelihood of choices and rankings is not integrated out: their groups keep their slopes.
                if crowd.compared[crowd.first[g]] > 0.0:
                    move_slope_sd(rng, rows.pairs, draw, crowd, g)
        if rung.random:
            move_lapses(rng, rows.pairs, draw, crowd.compared, draw.responder_work[:2])
    responders = Responders(intercept, draw.slope, draw.noise, draw.lapse_rate, draw.shift)
    if len(rows.ratings.item):
        if int(common[SWEEP]) % ITEM_MOVES == 0:
            move_end_items(rng, problem, draw, responders)
        draw_ratings(rng, rows.ratings, draw.rating_response, items_of(draw, origin), responders)
    answers = PairAnswers(draw.pair_response, draw.lapsed, common[MARGIN])
    if has_pairs:
        draw_pairs(rng, rows.pairs, answers, items_of(draw, origin), responders)
    if len(rows.tuples.item):
        draw_tuples(rng, rows.tuples, draw.tuple_response, items_of(draw, origin), responders)
    if has_pairs:
        draw_items_jointly(rng, items_of(draw, origin), rows.pairs, answers, responders, draw.work[2:])
    else:
        draw_items(rng, items_of(draw, origin), rows.pairs, answers, responders)
    if len(draw.shift) > 1:
        sums = ShiftSums(common[SHIFT] ** 2, draw.shift_work[0], draw.shift_work[1])
        draw_shifts(rng, rows.ratings, draw.rating_response, items_of(draw, origin), responders, sums)
        squares = squares_of(draw.shift, 0.0)
        common[SHIFT] = slice_sd(rng, common[SHIFT], float(len(draw.shift) - 1), squares, SHIFT_SD)
        stretch_shifts(rng, rows.ratings, draw, responders, origin)
    if len(draw.weights):
        scale = RATED_SD if crowd.rates[0] else COMPARED_SD
        move_weights(rng, rows, draw, intercept, origin, scale)
        common[SD] = move_item_sd(rng, rows, draw, intercept, origin, scale, common[SD])
    add_up(rows, draw, crowd, origin)
    draw_responders(rng, crowd, rung)
    for g in range(len(crowd.rates)):
        if rung.random and common[SWEEP] >= RANDOM_AFTER:
            draw_random(rng, crowd, g)
        draw_population(rng, crowd, rung, g)
    draw_item_population(rng, draw, crowd.rates[0])
    draw_level(rng, rows, draw, crowd, rung)
    if rung.slope:
        for _ in range(STRETCHES):
            stretch(rng, draw, crowd, origin)
    common[SWEEP] += 1.0


@compiled_part
def record(crowd: Crowd, draw: Draw, trace: Trace, at: int) -> None:
    """Keep the latest draw."""
    for i in range(len(draw.x)):
        trace.x[at, i] = draw.x[i]
    for g in range(len(crowd.population)):
        for parameter in range(crowd.population.shape[1]):
            trace.population[at, g, parameter] = crowd.population[g, parameter]
    for entry in range(4):
        trace.common[at, entry] = draw.common[entry]
    for k in range(len(draw.weights)):
        trace.weights[at, k] = draw.weights[k]
    for r in range(len(crowd.line)):
        line, prior = crowd.line[r], crowd.population[crowd.group[r]]
        noise = sqrt(variance_of(line[LOG_NOISE], prior[FLOOR]))
        values = (line[INTERCEPT] - prior[BETA], exp(line[LOG_SLOPE]), noise, draw.lapse_rate[r], line[RANDOM])
        for row in range(5):
            trace.line[0, row, r] += values[row]
            trace.line[1, row, r] += values[row] * values[row]


@compiled_part
def predict_ratings(problem: Problem, draw: Draw, crowd: Crowd, answer: FloatArray, chance: FloatArray) -> None:
    """Add up the expected answers, on [0, 1], and the predictive densities of the ratings that are held out."""
    first, item, shift_of, lower, upper, _ = problem.rows.ratings
    whole = problem.whole.ratings
    at, out, spread = np.empty(1), np.empty(1), np.zeros(1)
    for r in range(len(first) - 1):
        line, g = crowd.line[r], crowd.group[r]
        noise = variance_of(line[LOG_NOISE], crowd.population[g, FLOOR])
        slope, sd = exp(line[LOG_SLOPE]), sqrt(noise)
        for o in range(first[r], first[r + 1]):
            if not (lower[o] == -inf and upper[o] == inf):
                continue
            at[0] = line[INTERCEPT] + slope * (draw.x[item[o]] - problem.origin) + draw.shift[shift_of[o]]
            low, high = (whole.lower[o] - at[0]) / sd, (whole.upper[o] - at[0]) / sd
            chance[o] += density(low) / sd if low == high else below(high) - below(low)
            if problem.bounded[g]:
                typical_response(at, spread, noise, problem.edges[g, : problem.steps[g]], out)
                answer[o] += out[0]
            else:
                answer[o] += at[0]


@compiled_part
def score_pairs(problem: Problem, draw: Draw, crowd: Crowd, score: FloatArray) -> None:
    """Add up the predictive probabilities of the comparisons that are held out."""
    left, right, responder, outcome, _, _ = problem.rows.pairs
    margin = draw.common[MARGIN]
    guess = 1.0 / 3.0 if margin > 0.0 else 0.5
    for m in range(len(left)):
        if outcome[m] == HELD_OUT:
            r = responder[m]
            middle = exp(crowd.line[r, LOG_SLOPE]) * (draw.x[left[m]] - draw.x[right[m]])
            chance = pair_chance(middle, problem.whole.pairs.outcome[m], margin)
            score[m] += (1.0 - draw.lapse_rate[r]) * chance + draw.lapse_rate[r] * guess


@compiled_part
def score_tuples(problem: Problem, draw: Draw, crowd: Crowd, score: FloatArray) -> None:
    """Add up scores of held-out tuples: the geometric mean of the probabilities of the pairs that each orders."""
    first, item, tier, responder = problem.rows.tuples
    for t in range(len(first) - 1):
        if responder[t] >= 0:
            continue
        slope = exp(crowd.line[problem.whole.tuples.responder[t], LOG_SLOPE])
        total, count = 0.0, 0
        for i in range(first[t], first[t + 1]):
            for j in range(i + 1, first[t + 1]):
                if tier[j] > tier[i]:
                    total += log(max(below(slope * (draw.x[item[i]] - draw.x[item[j]])), 1e-300))
                    count += 1
        score[t] += exp(total / count) if count else 1.0


@compiled
def run(rng: np.random.Generator, problem: Problem, draw: Draw, crowd: Crowd, trace: Trace, burn_in: int) -> None:
    """Discard `burn_in` sweeps, then keep one draw for every row of the trace."""
    for at in range(-burn_in, len(trace.x)):
        sweep(rng, problem, draw, crowd)
        if at < 0:
            continue
        record(crowd, draw, trace, at)
        if len(trace.score[0]):
            predict_ratings(problem, draw, crowd, trace.score[3], trace.score[0])
        if len(trace.score[1]):
            score_pairs(problem, draw, crowd, trace.score[1])
        if len(trace.score[2]):
            score_tuples(problem, draw, crowd, trace.score[2])
