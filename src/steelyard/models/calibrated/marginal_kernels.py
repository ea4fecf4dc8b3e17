"""Compiled moves of the calibrated scale's sampler with the latent responses integrated out.

Given the responses, the draws of `gibbs_kernels` are exact but can be slow: an item that won all its comparisons, or
whose ratings all lie at an end of the scale, hardly moves.
"""

from __future__ import annotations

from math import exp, inf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from steelyard.models.calibrated.chain_state import (
    COMPARED_SD,
    FACTOR_STEP,
    MARGIN,
    MARGIN_PRIOR,
    MARGIN_STEP,
    SD,
    SWEEP,
    Draw,
    ItemRows,
    Problem,
)
from steelyard.models.calibrated.covariate_kernels import stretch_gain
from steelyard.models.calibrated.evidence import PairRows
from steelyard.models.calibrated.gibbs_kernels import (
    HELD_OUT,
    LEAST_CHANCE,
    TABLE_END,
    Responders,
    chance_and_density,
    chance_below,
    cut_interval,
    guessing_chance,
    log_chance_curve,
    pair_chance,
    pair_log_likelihood,
)
from steelyard.models.calibrated.responder_kernels import (
    ALPHA,
    LAPSE_PRIOR,
    LOG_SLOPE,
    MIN_LOG_SD,
    OMEGA_A,
    RANDOM,
    RANDOM_SLOPE,
    RUNTIME,
    Crowd,
    prior_density,
)
from steelyard.models.compiled import compiled_part
from steelyard.observations import FloatArray

SLOPE_SD_MOVES = 3
"""Steps of the random walk of the sd of slopes in a sweep, with responses integrated out."""


PROPOSAL_SD = 1.2
"""Sd of the proposal of an item's location, in sds of a Gaussian with the curvature there: wider, since chains would
stay long in tails that are heavier than the proposal's."""


@compiled_part
def multiply(values: FloatArray, factor: float) -> None:
    """Multiply in place."""
    for at in range(len(values)):
        values[at] *= factor


@compiled_part
def move_cuts(rng: np.random.Generator, rows: PairRows, draw: Draw, now: float) -> float:
    """Update the distances between the cuts of strengths; return the log likelihood of the comparisons."""
    cuts, proposal, steps = draw.cuts[0], draw.cuts[1], draw.cuts[2]
    for k in range(1, len(cuts)):
        gap = cuts[k] - cuts[k - 1]
        other = gap * exp(steps[k] * rng.standard_normal())
        for j in range(len(cuts)):
            proposal[j] = cuts[j] + (other - gap if j >= k else 0.0)
        then = pair_log_likelihood(rows, draw.x, draw.slope, draw.lapse_rate, proposal, 1.0)
        gain = then - now + 0.5 * ((log(gap) - MARGIN_PRIOR[0]) / MARGIN_PRIOR[1]) ** 2
        gain -= 0.5 * ((log(other) - MARGIN_PRIOR[0]) / MARGIN_PRIOR[1]) ** 2
        is_accepted = log(rng.random()) < gain
        if is_accepted:
            cuts[:] = proposal
            now = then
        steps[k] *= exp((0.6 if is_accepted else -0.4) / (1.0 + draw.common[SWEEP]) ** 0.6)
    return now


@compiled_part
def move_pairs(rng: np.random.Generator, rows: PairRows, draw: Draw, is_free: bool) -> None:
    """Update the tie margin and, if items are free to stretch, their scale, with the responses integrated out."""
    common, cuts, proposal = draw.common, draw.cuts[0], draw.cuts[1]
    margin = common[MARGIN]
    now = pair_log_likelihood(rows, draw.x, draw.slope, draw.lapse_rate, cuts, 1.0)
    if margin > 0.0:
        other = margin * exp(common[MARGIN_STEP] * rng.standard_normal())
        for k in range(len(cuts)):
            proposal[k] = cuts[k] + (other - margin)
        proposal[0] = other
        then = pair_log_likelihood(rows, draw.x, draw.slope, draw.lapse_rate, proposal, 1.0)
        gain = then - now + 0.5 * ((log(margin) - MARGIN_PRIOR[0]) / MARGIN_PRIOR[1]) ** 2
        gain -= 0.5 * ((log(other) - MARGIN_PRIOR[0]) / MARGIN_PRIOR[1]) ** 2
        is_accepted = log(rng.random()) < gain
        if is_accepted:
            common[MARGIN] = other
            cuts[:] = proposal
            now = then
        common[MARGIN_STEP] *= exp((0.6 if is_accepted else -0.4) / (1.0 + common[SWEEP]) ** 0.6)
    if len(cuts) > 1:
        now = move_cuts(rng, rows, draw, now)
    if is_free:
        step = common[FACTOR_STEP] * rng.standard_normal()
        then = pair_log_likelihood(rows, draw.x, draw.slope, draw.lapse_rate, cuts, exp(step))
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
def item_density(rows: ItemRows, draw: Draw, i: int, location: float) -> float:
    """Return the log density of a compared item's location given the other items, with responses integrated out."""
    cuts = draw.cuts[0]
    guess = guessing_chance(cuts)
    total: float = -0.5 * ((location - draw.prior_mean[i]) / draw.common[SD]) ** 2
    product = 1.0
    for at in range(rows.start[i], rows.start[i + 1]):
        r, won = rows.responder[at], rows.won[at]
        ahead = draw.slope[r] * (location - draw.x[rows.other[at]])
        low, high = cut_interval(won, cuts)
        margin = (-ahead if won < 0 else ahead) - low
        if high == inf and draw.lapse_rate[r] == 0.0 and -TABLE_END < margin < TABLE_END:
            total += log_chance_curve(margin)[0]
            continue
        chance = pair_chance(ahead, won, cuts)
        product *= max((1.0 - draw.lapse_rate[r]) * chance + draw.lapse_rate[r] * guess, LEAST_CHANCE)
        if product < LEAST_CHANCE:
            total += log(product)
            product = 1.0
    return total + log(product)


@compiled_part
def slice_item(rng: np.random.Generator, rows: ItemRows, draw: Draw, i: int) -> None:
    """Draw a compared item by slice sampling, with the responses integrated out."""
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
def item_curve(rows: ItemRows, draw: Draw, i: int, location: float) -> tuple[float, float, float]:
    """Return `item_density` at a location, its slope, and about its curvature with the sign reversed."""
    cuts = draw.cuts[0]
    guess = guessing_chance(cuts)
    curvature = 1.0 / draw.common[SD] ** 2
    off = location - draw.prior_mean[i]
    total, rise, product = -0.5 * off * off * curvature, -off * curvature, 1.0
    for at in range(rows.start[i], rows.start[i + 1]):
        r, won = rows.responder[at], rows.won[at]
        slope = draw.slope[r]
        ahead = slope * (location - draw.x[rows.other[at]])
        sign = -1.0 if won < 0 else 1.0
        low, high = cut_interval(won, cuts)
        margin = sign * ahead - low
        if high == inf and draw.lapse_rate[r] == 0.0 and -TABLE_END < margin < TABLE_END:
            gain, growth, bend = log_chance_curve(margin)
            total += gain
            rise += sign * slope * growth
            curvature += slope * slope * bend
            continue
        if high == inf:
            chance, change = chance_and_density(margin)
            change *= sign
        else:
            upper, upper_density = chance_and_density(high - sign * ahead)
            lower, lower_density = chance_and_density(low - sign * ahead)
            chance, change = upper - lower, sign * (lower_density - upper_density)
        chance = max((1.0 - draw.lapse_rate[r]) * chance + draw.lapse_rate[r] * guess, LEAST_CHANCE)
        score = slope * (1.0 - draw.lapse_rate[r]) * change / chance
        rise += score
        # -(log Φ)'' = h (h + z) of responses above a cut. Of others, and with lapses, a proposal need not be exact.
        curvature += max(score * (score + slope * (ahead - sign * low)), 0.0) if high == inf else slope * slope
        product *= chance
        if product < LEAST_CHANCE:
            total += log(product)
            product = 1.0
    return total + log(product), rise, curvature


@compiled_part
def step_item(rng: np.random.Generator, rows: ItemRows, draw: Draw, i: int) -> None:
    """Update a compared item by a Metropolis step, with the responses integrated out.

    The proposal is a Gaussian around a Newton step: mostly accepted where the density is nearly Gaussian, at a third of
    the cost of slice sampling.
    """
    now, rise, curvature = item_curve(rows, draw, i, draw.x[i])
    noise = rng.standard_normal()
    other = draw.x[i] + rise / curvature + PROPOSAL_SD * noise / sqrt(curvature)
    then, other_rise, other_curvature = item_curve(rows, draw, i, other)
    back = (draw.x[i] - other - other_rise / other_curvature) * sqrt(other_curvature) / PROPOSAL_SD
    gain = then - now + 0.5 * (noise * noise - back * back) + 0.5 * log(other_curvature / curvature)
    if log(rng.random()) < gain:
        draw.x[i] = other


@compiled_part
def move_items(rng: np.random.Generator, rows: ItemRows, draw: Draw) -> None:
    """Update all compared items one after the other, with the responses integrated out.

    Given the responses, an item that won or lost nearly all its comparisons hardly moves. Items with several wins and
    several losses have a density that is nearly Gaussian.
    """
    for i in range(len(draw.x)):
        if rows.is_even[i]:
            step_item(rng, rows, draw, i)
        else:
            slice_item(rng, rows, draw, i)


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
    cuts, lapse, slope = draw.cuts[0], draw.lapse_rate[r], exp(log_slope)
    guess = guessing_chance(cuts)
    total, product = 0.0, 1.0
    for m in range(span[0], span[1]):
        if outcome[m] != HELD_OUT:
            chance = pair_chance(slope * (draw.x[left[m]] - draw.x[right[m]]), outcome[m], cuts)
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
    cuts = draw.cuts[0]
    guess = guessing_chance(cuts)
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
        chance = pair_chance(draw.slope[r] * (draw.x[left[m]] - draw.x[right[m]]), outcome[m], cuts)
        gain[r] += log(
            ((1.0 - other[r]) * chance + other[r] * guess) / (chance + draw.lapse_rate[r] * (guess - chance))
        )
    for r in range(len(compared)):
        if gain[r] > -inf and log(rng.random()) < gain[r]:
            draw.lapse_rate[r] = other[r]
