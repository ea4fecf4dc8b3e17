"""Compiled draws of the annotators' parameters and their populations in the calibrated scale's Gibbs sampler.

A responder r of group g has

    intercept  b_r ~ t₄(β_g, ω_b)
    slope      log a_r ~ N(α_g, ω_a), so that slopes are positive
    noise      l_r ~ N(λ_g + κ_g (log a_r − α_g), ω_l), with variance exp(2 l_r) + floor² of a rating's response

With κ = ½ annotators' ratings have the weights of the plain mean, with κ = 1 those of standardised scores. A responder
who answers at random has a slope near 0 and a noise of its own. Slopes, noise and population parameters are drawn by
slice sampling (Neal 2003), the latter twice: given the responders' parameters, and given their standardised deviations
(Papaspiliopoulos et al. 2007), so that small population variances do not slow the chain down.
"""

from __future__ import annotations

from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.models.compiled import compiled_part
from steelyard.observations import FloatArray, IntArray

TAIL = 4.0
"""Degrees of freedom of the Student t distribution of intercepts."""

LOG_NOISE_PRIOR = (log(0.15), 0.7)
"""Prior mean and sd of the population's log noise sd, on a rating scale of length 1."""

KAPPA_PRIOR = (0.5, 0.25)
"""Prior mean and sd of κ: around the weights of the plain mean."""

INTERCEPT_SD, SLOPE_SD, NOISE_SD = 0.1, 0.25, 0.3
"""Scales of the half-normal priors of ω_b (on a scale of length 1), ω_a and ω_l."""

INTERCEPT_PRIOR = (0.5, 0.5)
"""Prior mean and sd of β of groups after the first."""

SLOPE_PRIOR_SD = 1.5
"""Prior sd of α of groups after the first."""

RANDOM_SLOPE, RANDOM_NOISE = 0.2, (log(0.3), 0.4)
"""Annotators who answer at random: scale of the half-normal prior of the slope, relative to the population's; mean
and sd of the log noise sd."""

RANDOM_PRIOR = (1.0, 19.0)
"""Beta prior of the proportion of annotators who answer at random: mean 5 %, weight of 20 annotators."""

LAPSE_PRIOR = (0.5, 24.5)
"""Beta prior of the lapse rate in comparisons: mean 2 %, weight of 25 comparisons."""

MIN_LOG_SD = -12.0
"""Smallest log of a population sd, for numerical reasons."""

STEPS_OUT = 24
"""Most steps by which slice sampling widens its interval.

They are divided between both ends at random, as Neal (2003, Fig. 3) has it: with a limit for each end the draws would
not be exact where it is reached."""

# Columns of the sums by responder: the number of responses z, and sums of u = x − origin, u², z, z·u and z².
COUNT, U, UU, Z, ZU, ZZ = 0, 1, 2, 3, 4, 5
# Columns of a line: intercept, log slope, log noise sd, tail weight, whether random.
INTERCEPT, LOG_SLOPE, LOG_NOISE, TAIL_WEIGHT, RANDOM = 0, 1, 2, 3, 4
# Columns of a population.
BETA, ALPHA, LAMBDA, KAPPA, OMEGA_B, OMEGA_A, OMEGA_L, RANDOM_RATE = 0, 1, 2, 3, 4, 5, 6, 7
# Constants of a group in the same rows: prior mean of α, floor of the noise sd, and whether it rates (1) or compares.
ALPHA_MEAN, FLOOR, RATES = 8, 9, 10
RUNTIME = np.arange(8)
"""The numbers of parameters as values of run time: with a constant as argument, numba compiles a kernel for each."""


class Ladder(NamedTuple):
    """Which differences between annotators a rung of the model has."""

    bias: bool
    slope: bool
    noise: bool
    random: bool


class Crowd(NamedTuple):
    """All responders: their sums, lines and populations, and what is fixed about them.

    `own` responders have parameters of their own; others answer as the population does. Those with `is_gold` know the
    true scores. `may_be_random` says who shares items with enough others to be classified as random. `compared` is the
    number of comparisons of each.
    """

    sums: FloatArray
    line: FloatArray
    population: FloatArray
    first: NDArray[np.int64]
    rates: NDArray[np.bool_]
    own: NDArray[np.bool_]
    is_gold: NDArray[np.bool_]
    may_be_random: NDArray[np.bool_]
    group: IntArray
    compared: FloatArray


@compiled_part
def log_likelihood(sums: FloatArray, intercept: float, slope: float, variance: float) -> float:
    """Return the log likelihood of one responder's latent responses, up to a constant."""
    squares = sums[ZZ] - 2.0 * (intercept * sums[Z] + slope * sums[ZU]) + slope * slope * sums[UU]
    squares += intercept * (sums[COUNT] * intercept + 2.0 * slope * sums[U])
    return float(-0.5 * (sums[COUNT] * log(variance) + max(squares, 0.0) / variance))


@compiled_part
def variance_of(log_noise: float, floor: float) -> float:
    """Return the noise variance of a rating's response."""
    return exp(2.0 * log_noise) + floor * floor


@compiled_part
def responder_density(parameter: int, value: float, sums: FloatArray, line: FloatArray, prior: FloatArray) -> float:
    """Return the log density of one responder's log slope (the noise follows) or log noise, given all else.

    `prior` is the group's population.
    """
    rates = prior[RATES] > 0.0
    is_random = line[RANDOM] > 0.0
    log_slope, log_noise = line[LOG_SLOPE], line[LOG_NOISE]
    if parameter == LOG_SLOPE:
        if rates and not is_random:
            log_noise += prior[KAPPA] * (value - log_slope)
        log_slope = value
    else:
        log_noise = value
    slope = exp(log_slope)
    variance = variance_of(log_noise, prior[FLOOR]) if rates else 1.0
    density = log_likelihood(sums, line[INTERCEPT], slope, variance)
    if parameter == LOG_SLOPE:
        if is_random:
            relative = exp(log_slope - prior[ALPHA]) / RANDOM_SLOPE
            return float(density + log_slope - 0.5 * relative * relative)
        return float(density - 0.5 * ((log_slope - prior[ALPHA]) / prior[OMEGA_A]) ** 2)
    if is_random:
        return float(density - 0.5 * ((log_noise - RANDOM_NOISE[0]) / RANDOM_NOISE[1]) ** 2)
    expected = prior[LAMBDA] + prior[KAPPA] * (log_slope - prior[ALPHA])
    return float(density - 0.5 * ((log_noise - expected) / prior[OMEGA_L]) ** 2)


@compiled_part
def slice_responder(
    rng: np.random.Generator, parameter: int, sums: FloatArray, line: FloatArray, prior: FloatArray
) -> None:
    """Draw one responder's log slope or log noise by slice sampling."""
    width = 0.5
    value = line[parameter]
    level = responder_density(parameter, value, sums, line, prior) - rng.standard_exponential()
    low = value - width * rng.random()
    high = low + width
    steps_down = int(STEPS_OUT * rng.random())
    for _ in range(steps_down):
        if responder_density(parameter, low, sums, line, prior) < level:
            break
        low -= width
    for _ in range(STEPS_OUT - 1 - steps_down):
        if responder_density(parameter, high, sums, line, prior) < level:
            break
        high += width
    for _ in range(60):
        other = low + (high - low) * rng.random()
        if responder_density(parameter, other, sums, line, prior) >= level:
            if parameter == LOG_SLOPE and prior[RATES] > 0.0 and line[RANDOM] == 0.0:
                line[LOG_NOISE] += prior[KAPPA] * (other - value)
            line[parameter] = other
            return
        if other < value:
            low = other
        else:
            high = other


@compiled_part
def draw_responders(rng: np.random.Generator, crowd: Crowd, rung: Ladder) -> None:
    """Draw intercept, slope and noise of every responder who has parameters of their own."""
    for r in range(len(crowd.line)):
        if not crowd.own[r]:
            continue
        g = crowd.group[r]
        line, sums, prior = crowd.line[r], crowd.sums[r], crowd.population[g]
        if crowd.rates[g] and rung.bias:
            variance = variance_of(line[LOG_NOISE], prior[FLOOR])
            pooling = line[TAIL_WEIGHT] / prior[OMEGA_B] ** 2
            precision = sums[COUNT] / variance + pooling
            total = (sums[Z] - exp(line[LOG_SLOPE]) * sums[U]) / variance + pooling * prior[BETA]
            line[INTERCEPT] = total / precision + rng.standard_normal() / sqrt(precision)
            off = (line[INTERCEPT] - prior[BETA]) / prior[OMEGA_B]
            line[TAIL_WEIGHT] = rng.standard_gamma(0.5 * (TAIL + 1.0)) / (0.5 * (TAIL + off * off))
        if rung.slope:
            slice_responder(rng, RUNTIME[LOG_SLOPE], sums, line, prior)
        if crowd.rates[g] and (rung.noise or line[RANDOM] > 0.0):
            slice_responder(rng, RUNTIME[LOG_NOISE], sums, line, prior)


@compiled_part
def line_log_prior(line: FloatArray, prior: FloatArray) -> float:
    """Return the log prior density of a responder's slope and noise with the odds of being random, on the log scale."""
    slope = line[LOG_SLOPE] - prior[ALPHA]
    if line[RANDOM] > 0.0:
        relative = exp(slope) / RANDOM_SLOPE
        # Half-normal, with the Jacobian of the log; up to 1/√2π, like the log-normal below.
        density = log(prior[RANDOM_RATE]) + log(2.0 * relative) - 0.5 * relative * relative
        if prior[RATES] > 0.0:
            off = (line[LOG_NOISE] - RANDOM_NOISE[0]) / RANDOM_NOISE[1]
            density -= 0.5 * off * off + log(RANDOM_NOISE[1])
        return density
    density = log(1.0 - prior[RANDOM_RATE]) - 0.5 * (slope / prior[OMEGA_A]) ** 2 - log(prior[OMEGA_A])
    if prior[RATES] > 0.0:
        off = (line[LOG_NOISE] - prior[LAMBDA] - prior[KAPPA] * slope) / prior[OMEGA_L]
        density -= 0.5 * off * off + log(prior[OMEGA_L])
    return float(density)


@compiled_part
def marginal_likelihood(sums: FloatArray, line: FloatArray, prior: FloatArray) -> float:
    """Return the log likelihood of a rater's responses with the intercept integrated out, up to a constant."""
    slope, beta, count = exp(line[LOG_SLOPE]), prior[BETA], sums[COUNT]
    variance = variance_of(line[LOG_NOISE], prior[FLOOR])
    pooling = prior[OMEGA_B] ** 2 / line[TAIL_WEIGHT]
    one = sums[Z] - slope * sums[U] - count * beta
    squares = sums[ZZ] - 2.0 * slope * sums[ZU] + slope * slope * sums[UU]
    squares += beta * (count * beta - 2.0 * (sums[Z] - slope * sums[U]))
    total = squares / variance - one * one * pooling / (variance * (variance + count * pooling))
    return float(-0.5 * (count * log(variance) + log(1.0 + count * pooling / variance) + total))


@compiled_part
def noise_proposal(sums: FloatArray, line: FloatArray, prior: FloatArray) -> tuple[float, float]:
    """Return mean and sd of a Gaussian near the posterior of a rater's log noise, given the slope."""
    slope, count = exp(line[LOG_SLOPE]), max(sums[COUNT], 1.0)
    mean = (sums[Z] - slope * sums[U]) / count
    squares = sums[ZZ] - 2.0 * slope * sums[ZU] + slope * slope * sums[UU] - count * mean * mean
    # Three pseudo-observations of a fifth of the scale.
    variance = (max(squares, 0.0) + 3.0 * 0.04) / (count + 3.0)
    return 0.5 * log(variance), 1.0 / sqrt(2.0 * (count + 3.0)) + 0.1


@compiled_part
def flip_random(rng: np.random.Generator, sums: FloatArray, line: FloatArray, prior: FloatArray) -> None:
    """Propose that a rater is of the other kind, regular or random, with a new slope, noise and intercept."""
    other = np.empty(5)
    for at in range(5):
        other[at] = line[at]
    other[RANDOM] = 1.0 - line[RANDOM]
    for_slope = 0.0
    for at in range(2):
        # Proposal densities of the slope: the prior of each kind, without the odds.
        each = line if at == 0 else other
        sign = 1.0 if at == 0 else -1.0
        if each[RANDOM] > 0.0:
            if at == 1:
                each[LOG_SLOPE] = prior[ALPHA] + log(RANDOM_SLOPE * abs(rng.standard_normal()) + 1e-300)
            relative = exp(each[LOG_SLOPE] - prior[ALPHA]) / RANDOM_SLOPE
            for_slope += sign * (log(2.0 * relative) - 0.5 * relative * relative)
        else:
            if at == 1:
                each[LOG_SLOPE] = prior[ALPHA] + prior[OMEGA_A] * rng.standard_normal()
            off = (each[LOG_SLOPE] - prior[ALPHA]) / prior[OMEGA_A]
            for_slope += sign * (-0.5 * off * off - log(prior[OMEGA_A]))
    mean, sd = noise_proposal(sums, other, prior)
    other[LOG_NOISE] = mean + sd * rng.standard_normal()
    forward = -0.5 * ((other[LOG_NOISE] - mean) / sd) ** 2 - log(sd)
    mean, sd = noise_proposal(sums, line, prior)
    backward = -0.5 * ((line[LOG_NOISE] - mean) / sd) ** 2 - log(sd)
    gain = line_log_prior(other, prior) - line_log_prior(line, prior) + for_slope + backward - forward
    gain += marginal_likelihood(sums, other, prior) - marginal_likelihood(sums, line, prior)
    if log(rng.random()) < gain:
        for at in range(5):
            line[at] = other[at]
        variance = variance_of(line[LOG_NOISE], prior[FLOOR])
        pooling = line[TAIL_WEIGHT] / prior[OMEGA_B] ** 2
        precision = sums[COUNT] / variance + pooling
        total = (sums[Z] - exp(line[LOG_SLOPE]) * sums[U]) / variance + pooling * prior[BETA]
        line[INTERCEPT] = total / precision + rng.standard_normal() / sqrt(precision)


@compiled_part
def draw_random(rng: np.random.Generator, crowd: Crowd, g: int) -> None:
    """Draw which responders of a group answer at random, from their slopes and noise, and the proportion.

    Intercepts are not used: a strict annotator must not be classified as random. At least two responders are not
    random, since otherwise items could lie anywhere.
    """
    prior = crowd.population[g]
    regular = eligible = count = 0
    for r in range(crowd.first[g], crowd.first[g + 1]):
        regular += int(crowd.line[r, RANDOM] == 0.0)
    for r in range(crowd.first[g], crowd.first[g + 1]):
        if not (crowd.own[r] and crowd.may_be_random[r]):
            continue
        line = crowd.line[r]
        eligible += 1
        was_random = line[RANDOM] > 0.0
        if was_random or regular > 2:
            if crowd.rates[g]:
                flip_random(rng, crowd.sums[r], line, prior)
            regular += int(was_random) - int(line[RANDOM] > 0.0)
        was_random = line[RANDOM] > 0.0
        if was_random or regular > 2:
            now = line_log_prior(line, prior)
            line[RANDOM] = 1.0 - line[RANDOM]
            odds = line_log_prior(line, prior) - now
            if rng.random() >= 1.0 / (1.0 + exp(min(-odds, 700.0))):
                line[RANDOM] = 1.0 - line[RANDOM]
            regular += int(was_random) - int(line[RANDOM] > 0.0)
        count += int(line[RANDOM] > 0.0)
    one = rng.standard_gamma(RANDOM_PRIOR[0] + count)
    other = rng.standard_gamma(RANDOM_PRIOR[1] + eligible - count)
    prior[RANDOM_RATE] = min(max(one / (one + other), 1e-6), 1.0 - 1e-6)


@compiled_part
def prior_density(parameter: int, value: float, prior: FloatArray) -> float:
    """Return the log prior density of a population parameter; of standard deviations, on the log scale."""
    if parameter == LAMBDA:
        return -0.5 * ((value - LOG_NOISE_PRIOR[0]) / LOG_NOISE_PRIOR[1]) ** 2
    if parameter == KAPPA:
        return -0.5 * ((value - KAPPA_PRIOR[0]) / KAPPA_PRIOR[1]) ** 2
    if parameter == ALPHA:
        return float(-0.5 * ((value - prior[ALPHA_MEAN]) / SLOPE_PRIOR_SD) ** 2)
    if parameter == BETA:
        return -0.5 * ((value - INTERCEPT_PRIOR[0]) / INTERCEPT_PRIOR[1]) ** 2
    scale = INTERCEPT_SD if parameter == OMEGA_B else (SLOPE_SD if parameter == OMEGA_A else NOISE_SD)
    return value - 0.5 * (exp(value) / scale) ** 2


@compiled_part
def moved_line(  # noqa: PLR0911  # one for each parameter
    parameter: int, value: float, line: FloatArray, prior: FloatArray
) -> tuple[float, float, float]:
    """Return a responder's intercept, log slope and log noise if a population parameter had another value.

    Their standardised deviations from the population stay.
    """
    intercept, log_slope, log_noise = line[INTERCEPT], line[LOG_SLOPE], line[LOG_NOISE]
    if parameter == BETA:
        return intercept + value - prior[BETA], log_slope, log_noise
    if parameter == OMEGA_B:
        return prior[BETA] + (intercept - prior[BETA]) * exp(value) / prior[OMEGA_B], log_slope, log_noise
    if parameter == ALPHA:
        return intercept, log_slope + value - prior[ALPHA], log_noise
    if line[RANDOM] > 0.0:
        return intercept, log_slope, log_noise
    slope = log_slope - prior[ALPHA]
    if parameter == OMEGA_A:
        change = slope * (exp(value) / prior[OMEGA_A] - 1.0)
        return intercept, log_slope + change, log_noise + prior[KAPPA] * change
    if parameter == LAMBDA:
        return intercept, log_slope, log_noise + value - prior[LAMBDA]
    if parameter == KAPPA:
        return intercept, log_slope, log_noise + (value - prior[KAPPA]) * slope
    expected = prior[LAMBDA] + prior[KAPPA] * slope
    return intercept, log_slope, expected + (log_noise - expected) * exp(value) / prior[OMEGA_L]


@compiled_part
def shared_density(parameter: int, value: float, crowd: Crowd, g: int) -> float:
    """Return the log density of a population parameter, given the responders' standardised deviations."""
    prior = crowd.population[g]
    total = prior_density(parameter, value, prior)
    for r in range(crowd.first[g], crowd.first[g + 1]):
        if crowd.is_gold[r] and not crowd.own[r]:
            continue
        intercept, log_slope, log_noise = moved_line(parameter, value, crowd.line[r], prior)
        variance = variance_of(log_noise, prior[FLOOR]) if crowd.rates[g] else 1.0
        total += log_likelihood(crowd.sums[r], intercept, exp(log_slope), variance)
    return total


@compiled_part
def slice_shared(rng: np.random.Generator, parameter: int, width: float, crowd: Crowd, g: int) -> None:
    """Draw a population parameter by slice sampling, and move the responders with it.

    `width` is that of the first interval for up to twenty responders; more of them make the posterior narrower.
    """
    prior = crowd.population[g]
    is_sd = parameter >= OMEGA_B
    width *= max(sqrt(20.0 / max(crowd.first[g + 1] - crowd.first[g], 20)), 0.1 if is_sd else 0.0)
    value = log(prior[parameter]) if is_sd else prior[parameter]
    level = shared_density(parameter, value, crowd, g) - rng.standard_exponential()
    low = value - width * rng.random()
    high = low + width
    steps_down = int(STEPS_OUT * rng.random())
    for _ in range(steps_down):
        if shared_density(parameter, low, crowd, g) < level:
            break
        low -= width
    for _ in range(STEPS_OUT - 1 - steps_down):
        if shared_density(parameter, high, crowd, g) < level:
            break
        high += width
    for _ in range(60):
        other = low + (high - low) * rng.random()
        if not (is_sd and other < MIN_LOG_SD) and shared_density(parameter, other, crowd, g) >= level:
            for r in range(crowd.first[g], crowd.first[g + 1]):
                if crowd.is_gold[r] and not crowd.own[r]:
                    continue
                line = crowd.line[r]
                line[INTERCEPT], line[LOG_SLOPE], line[LOG_NOISE] = moved_line(parameter, other, line, prior)
            prior[parameter] = exp(other) if is_sd else other
            return
        if other < value:
            low = other
        else:
            high = other


@compiled_part
def slice_sd(rng: np.random.Generator, sd: float, count: float, squares: float, scale: float) -> float:
    """Draw a standard deviation with a half-normal prior, given a sum of squares: a slice on the log scale."""
    width = 1.0
    value = log(sd)
    level = value - 0.5 * (sd / scale) ** 2 - count * value - 0.5 * squares / (sd * sd) - rng.standard_exponential()
    low = value - width * rng.random()
    high = low + width
    steps_down = int(STEPS_OUT * rng.random())
    for end in range(2):
        for _ in range(steps_down if end == 0 else STEPS_OUT - 1 - steps_down):
            at = low if end == 0 else high
            other = exp(at)
            if at - 0.5 * (other / scale) ** 2 - count * at - 0.5 * squares / (other * other) < level:
                break
            if end == 0:
                low -= width
            else:
                high += width
    for _ in range(60):
        at = low + (high - low) * rng.random()
        other = exp(at)
        density = at - 0.5 * (other / scale) ** 2 - count * at - 0.5 * squares / (other * other)
        if at >= MIN_LOG_SD and density >= level:
            return other
        if at < value:
            low = at
        else:
            high = at
    return sd


@compiled_part
def draw_population(rng: np.random.Generator, crowd: Crowd, rung: Ladder, g: int) -> None:
    """Draw the population parameters of a group, given the responders' parameters, then given their deviations."""
    prior, rates = crowd.population[g], crowd.rates[g]
    count = regular = intercepts = slopes = noises = 0.0
    for r in range(crowd.first[g], crowd.first[g + 1]):
        if not crowd.own[r]:
            continue
        line = crowd.line[r]
        count += 1.0
        intercepts += line[TAIL_WEIGHT] * (line[INTERCEPT] - prior[BETA]) ** 2
        if line[RANDOM] == 0.0:
            slope = line[LOG_SLOPE] - prior[ALPHA]
            regular += 1.0
            slopes += slope * slope
            noises += (line[LOG_NOISE] - prior[LAMBDA] - prior[KAPPA] * slope) ** 2
    if count > 0.0 and rates and rung.bias:
        prior[OMEGA_B] = slice_sd(rng, prior[OMEGA_B], count, intercepts, INTERCEPT_SD)
        slice_shared(rng, RUNTIME[OMEGA_B], 1.0, crowd, g)
    if count > 0.0 and rates and rung.noise:
        prior[OMEGA_L] = slice_sd(rng, prior[OMEGA_L], regular, noises, NOISE_SD)
        draw_noise_line(rng, crowd, g)
        slice_shared(rng, RUNTIME[OMEGA_L], 1.0, crowd, g)
    if count > 0.0 and rung.slope:
        prior[OMEGA_A] = slice_sd(rng, prior[OMEGA_A], regular, slopes, SLOPE_SD)
        slice_shared(rng, RUNTIME[OMEGA_A], 1.0, crowd, g)
        if rates:
            slice_shared(rng, RUNTIME[KAPPA], 0.3, crowd, g)
    if rates:
        slice_shared(rng, RUNTIME[LAMBDA], 0.1, crowd, g)
    if g > 0:
        draw_means(rng, crowd, rung, g)
        slice_shared(rng, RUNTIME[ALPHA], 0.3, crowd, g)
        if rates:
            slice_shared(rng, RUNTIME[BETA], 0.1, crowd, g)


@compiled_part
def draw_noise_line(rng: np.random.Generator, crowd: Crowd, g: int) -> None:
    """Draw λ, then κ, given the responders' slopes and noise: a regression of log noise on log slope."""
    prior = crowd.population[g]
    count = slope_sum = slope_squares = noise_sum = product_sum = 0.0
    for r in range(crowd.first[g], crowd.first[g + 1]):
        if crowd.is_gold[r] and not crowd.own[r]:
            continue
        if not crowd.own[r]:
            # Ratings without a name have the population's noise itself, so that λ is not free given the others.
            return
        if crowd.line[r, RANDOM] == 0.0:
            slope = crowd.line[r, LOG_SLOPE] - prior[ALPHA]
            count += 1.0
            slope_sum += slope
            slope_squares += slope * slope
            noise_sum += crowd.line[r, LOG_NOISE]
            product_sum += slope * crowd.line[r, LOG_NOISE]
    variance = prior[OMEGA_L] ** 2
    precision = count / variance + 1.0 / LOG_NOISE_PRIOR[1] ** 2
    total = (noise_sum - prior[KAPPA] * slope_sum) / variance + LOG_NOISE_PRIOR[0] / LOG_NOISE_PRIOR[1] ** 2
    prior[LAMBDA] = total / precision + rng.standard_normal() / sqrt(precision)
    precision = slope_squares / variance + 1.0 / KAPPA_PRIOR[1] ** 2
    total = (product_sum - prior[LAMBDA] * slope_sum) / variance + KAPPA_PRIOR[0] / KAPPA_PRIOR[1] ** 2
    prior[KAPPA] = total / precision + rng.standard_normal() / sqrt(precision)


@compiled_part
def draw_means(rng: np.random.Generator, crowd: Crowd, rung: Ladder, g: int) -> None:
    """Draw the mean intercept and mean log slope of a group after the first, given its responders' parameters."""
    prior, rates = crowd.population[g], crowd.rates[g]
    weight, pull = 1.0 / INTERCEPT_PRIOR[1] ** 2, INTERCEPT_PRIOR[0] / INTERCEPT_PRIOR[1] ** 2
    precision, total = 1.0 / SLOPE_PRIOR_SD**2, prior[ALPHA_MEAN] / SLOPE_PRIOR_SD**2
    for r in range(crowd.first[g], crowd.first[g + 1]):
        if not crowd.own[r]:
            return
        line = crowd.line[r]
        pooling = line[TAIL_WEIGHT] / prior[OMEGA_B] ** 2
        weight += pooling
        pull += pooling * line[INTERCEPT]
        if line[RANDOM] > 0.0:
            # The slope of a random responder is relative to the mean slope.
            return
        precision += 1.0 / prior[OMEGA_A] ** 2
        total += line[LOG_SLOPE] / prior[OMEGA_A] ** 2
    if rates and rung.bias:
        prior[BETA] = pull / weight + rng.standard_normal() / sqrt(weight)
    if rung.slope:
        alpha = total / precision + rng.standard_normal() / sqrt(precision)
        # The expected noise of each stays if λ moves along; what changes is the prior of λ.
        other = prior[LAMBDA] + prior[KAPPA] * (alpha - prior[ALPHA]) if rates else prior[LAMBDA]
        gain = prior_density(RUNTIME[LAMBDA], other, prior) - prior_density(RUNTIME[LAMBDA], prior[LAMBDA], prior)
        if log(rng.random()) < gain:
            prior[ALPHA], prior[LAMBDA] = alpha, other
