"""Compiled draws of the calibrated scale's Gibbs sampler, one block of unknowns each.

A responder is one annotator under one way of asking. Its answer about an item at x starts from a latent response
`point + slope · (x − origin)`, with noise: a rating is where the response falls on the scale, a comparison is which
of two responses is the higher. Given the responses everything else is Gaussian.

Rows of ratings are sorted by responder, so that `first[r]` to `first[r + 1]` are one responder's, and by answer
within a responder. Sums by item (`weight`, `pull`: precision, and precision times mean) are filled by one pass and
used up by `draw_items`.
"""

from __future__ import annotations

from math import exp, inf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from steelyard.models.calibrated.online_kernels import below, density
from steelyard.models.compiled import compiled
from steelyard.observations import FloatArray, IntArray

Starts = NDArray[np.int64]

NEAR_ENOUGH, MOST_STEPS = 1e-4, 300
"""How near conjugate gradients come to the joint draw, in standard deviations of an item given its neighbours, and
their most steps."""

LEAST_RATIO = 1.0 / 16.0
"""From a sixteenth of the usual noise variance on, less of it says no more about the use of the scale."""

MIN_NOISE_VARIANCE = 1e-3**2
"""Smallest noise variance of a rating, on [0, 1]: a slider is read to about a thousandth of its length.

Without a lower bound the posterior of the noise is improper where annotators agree exactly."""


@compiled
def beyond(rng: np.random.Generator, edge: float) -> float:
    """Draw from the standard Gaussian above an edge (Robert 1995)."""
    if edge < 0.4:
        while True:
            z = rng.standard_normal()
            if z > edge:
                return z
    rate = 0.5 * (edge + sqrt(edge * edge + 4.0))
    while True:
        z = edge + rng.standard_exponential() / rate
        if rng.random() < exp(-0.5 * (z - rate) ** 2):
            return z


@compiled
def between(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw from the standard Gaussian between two ends, either of which may be infinite."""
    z = low
    if low >= high:
        pass
    elif low == -inf and high == inf:
        z = rng.standard_normal()
    elif low == -inf:
        z = -beyond(rng, -high)
    elif high == inf:
        z = beyond(rng, low)
    elif high < 0.0:
        z = -between_above(rng, -high, -low)
    elif low > 0.0:
        z = between_above(rng, low, high)
    elif high - low > 1.5:
        z = rng.standard_normal()
        while z < low or z > high:
            z = rng.standard_normal()
    else:
        z = low + (high - low) * rng.random()
        while rng.random() > exp(-0.5 * z * z):
            z = low + (high - low) * rng.random()
    return z


@compiled
def between_above(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw between two ends that both lie above the middle."""
    if (high - low) * low < 1.0:
        while True:
            z = low + (high - low) * rng.random()
            if rng.random() < exp(0.5 * (low * low - z * z)):
                return z
    while True:
        z = beyond(rng, low)
        if z < high:
            return z


@compiled
def draw_ratings(
    rng: np.random.Generator,
    first: Starts,
    item: IntArray,
    shift_of: IntArray,
    lower: FloatArray,
    upper: FloatArray,
    response: FloatArray,
    x: FloatArray,
    origin: float,
    point: FloatArray,
    slope: FloatArray,
    variance: FloatArray,
    shift: FloatArray,
    weight: FloatArray,
    pull: FloatArray,
) -> None:
    """Draw the responses that are known only to lie between two ends, and add up what all say about the items."""
    for r in range(len(first) - 1):
        sd = sqrt(variance[r])
        base = point[r] - slope[r] * origin
        gain = slope[r] / variance[r]
        for o in range(first[r], first[r + 1]):
            level = base + shift[shift_of[o]]
            if lower[o] < upper[o]:
                middle = level + slope[r] * x[item[o]]
                response[o] = middle + sd * between(rng, (lower[o] - middle) / sd, (upper[o] - middle) / sd)
            weight[item[o]] += gain * slope[r]
            pull[item[o]] += gain * (response[o] - level)


@compiled
def draw_pairs(
    rng: np.random.Generator,
    left: IntArray,
    right: IntArray,
    responder: IntArray,
    outcome: NDArray[np.int8],
    response: FloatArray,
    slip: NDArray[np.bool_],
    x: FloatArray,
    slope: FloatArray,
    slips: FloatArray,
    margin: float,
    square: FloatArray,
    cross: FloatArray,
    slipped: FloatArray,
) -> None:
    """Draw which comparisons were slips, and by how much the left response was above the right one in the others.

    By responder, adds up the squared differences of the items and their products with the responses, for the slope.
    """
    guess = 1.0 / 3.0 if margin > 0.0 else 0.5
    for m in range(len(left)):
        r = responder[m]
        u = x[left[m]] - x[right[m]]
        middle = slope[r] * u
        if outcome[m] > 0:
            low, high = margin, inf
        elif outcome[m] < 0:
            low, high = -inf, -margin
        else:
            low, high = -margin, margin
        chance = below(high - middle) - below(low - middle)
        slip[m] = rng.random() * (slips[r] * guess + (1.0 - slips[r]) * chance) < slips[r] * guess
        if slip[m]:
            slipped[r] += 1.0
            continue
        response[m] = middle + between(rng, low - middle, high - middle)
        square[r] += u * u
        cross[r] += u * response[m]


@compiled
def draw_tuples(
    rng: np.random.Generator,
    first: Starts,
    item: IntArray,
    tier: IntArray,
    responder: IntArray,
    response: FloatArray,
    x: FloatArray,
    origin: float,
    slope: FloatArray,
    weight: FloatArray,
    pull: FloatArray,
    square: FloatArray,
    cross: FloatArray,
) -> None:
    """Draw the responses to the items of each tuple, which are sorted by tier, the best first.

    Each response has variance 1/2, so that a difference of two has 1. Within a tier they are free.
    """
    sd = sqrt(0.5)
    for t in range(len(first) - 1):
        r = responder[t]
        begin, end = first[t], first[t + 1]
        gain = 2.0 * slope[r]
        high = inf
        at = begin
        while at < end:
            stop = at
            while stop < end and tier[stop] == tier[at]:
                stop += 1
            low = -inf
            following = stop
            while following < end and tier[following] == tier[stop]:
                low = max(low, response[following])
                following += 1
            least = inf
            for o in range(at, stop):
                u = x[item[o]] - origin
                middle = slope[r] * u
                response[o] = middle + sd * between(rng, (low - middle) / sd, (high - middle) / sd)
                least = min(least, response[o])
                weight[item[o]] += gain * slope[r]
                pull[item[o]] += gain * (response[o] + slope[r] * origin)
                square[r] += 2.0 * u * u
                cross[r] += 2.0 * u * response[o]
            high = least
            at = stop


@compiled
def draw_items_jointly(
    rng: np.random.Generator,
    x: FloatArray,
    mean: float,
    variance: float,
    weight: FloatArray,
    pull: FloatArray,
    left: IntArray,
    right: IntArray,
    responder: IntArray,
    response: FloatArray,
    slip: NDArray[np.bool_],
    slope: FloatArray,
    work: FloatArray,
) -> None:
    """Draw all items at once; `work` is room for four numbers an item.

    Where comparisons tie each item to its neighbours only, as in a session that pairs the close ones, drawing one
    after the other takes for ever to move a stretch of the scale. The exact joint draw is the solution of a linear
    system with noise on its right side (Papandreou & Yuille 2010), here by conjugate gradients.
    """
    n = len(x)
    diagonal, residual, direction, image = work[0], work[1], work[2], work[3]
    for i in range(n):
        own = weight[i] + 1.0 / variance
        diagonal[i] = own
        residual[i] = pull[i] + mean / variance + sqrt(own) * rng.standard_normal() - own * x[i]
    for m in range(len(left)):
        if slip[m]:
            continue
        s = slope[responder[m]]
        diagonal[left[m]] += s * s
        diagonal[right[m]] += s * s
        by = s * (response[m] + rng.standard_normal() - s * (x[left[m]] - x[right[m]]))
        residual[left[m]] += by
        residual[right[m]] -= by
    size = 0.0
    for i in range(n):
        direction[i] = residual[i] / diagonal[i]
        size += residual[i] * direction[i]
    steps = 0
    while size > NEAR_ENOUGH**2 * n and steps < MOST_STEPS:
        steps += 1
        for i in range(n):
            image[i] = (weight[i] + 1.0 / variance) * direction[i]
        for m in range(len(left)):
            if not slip[m]:
                s = slope[responder[m]]
                by = s * s * (direction[left[m]] - direction[right[m]])
                image[left[m]] += by
                image[right[m]] -= by
        along = 0.0
        for i in range(n):
            along += direction[i] * image[i]
        step = size / along
        before, size = size, 0.0
        for i in range(n):
            x[i] += step * direction[i]
            residual[i] -= step * image[i]
            size += residual[i] * residual[i] / diagonal[i]
        for i in range(n):
            direction[i] = residual[i] / diagonal[i] + size / before * direction[i]


@compiled
def draw_items(
    rng: np.random.Generator,
    x: FloatArray,
    mean: float,
    variance: float,
    weight: FloatArray,
    pull: FloatArray,
    pair_start: Starts,
    pair_row: IntArray,
    left: IntArray,
    right: IntArray,
    responder: IntArray,
    response: FloatArray,
    slip: NDArray[np.bool_],
    slope: FloatArray,
    middle: FloatArray,
    spread: FloatArray,
    drawn: bool,
) -> None:
    """Draw the items one after the other, unless they are `drawn`; clear the sums.

    Notes the mean and variance that each has, given the others.
    """
    for i in range(len(x)):
        precision = weight[i] + 1.0 / variance
        total = pull[i] + mean / variance
        for at in range(pair_start[i], pair_start[i + 1]):
            m = pair_row[at]
            if slip[m]:
                continue
            s = slope[responder[m]]
            precision += s * s
            if left[m] == i:
                total += s * (response[m] + s * x[right[m]])
            else:
                total += s * (s * x[left[m]] - response[m])
        middle[i] = total / precision
        spread[i] = 1.0 / precision
        if not drawn:
            x[i] = middle[i] + rng.standard_normal() * sqrt(spread[i])
        weight[i] = 0.0
        pull[i] = 0.0


@compiled
def draw_shifts(
    rng: np.random.Generator,
    first: Starts,
    item: IntArray,
    shift_of: IntArray,
    response: FloatArray,
    x: FloatArray,
    origin: float,
    point: FloatArray,
    slope: FloatArray,
    variance: FloatArray,
    shift: FloatArray,
    shift_variance: float,
    precision: FloatArray,
    pull: FloatArray,
) -> None:
    """Draw the shift of every answer that holds several ratings; shift 0 is that of the others, and stays 0."""
    precision[:] = 0.0
    pull[:] = 0.0
    for r in range(len(first) - 1):
        base = point[r] - slope[r] * origin
        for o in range(first[r], first[r + 1]):
            s = shift_of[o]
            if s > 0:
                precision[s] += 1.0 / variance[r]
                pull[s] += (response[o] - base - slope[r] * x[item[o]]) / variance[r]
    for s in range(1, len(shift)):
        p = precision[s] + 1.0 / shift_variance
        shift[s] = pull[s] / p + rng.standard_normal() / sqrt(p)


@compiled
def stretched(ratio: float, stretch: float) -> float:
    """Return by how much of the usual slope is expected of one whose noise variance is so many times the usual."""
    return float(min(max(ratio, LEAST_RATIO), 1.0 / LEAST_RATIO) ** (0.5 * stretch))


@compiled
def draw_raters(
    rng: np.random.Generator,
    first: Starts,
    item: IntArray,
    shift_of: IntArray,
    response: FloatArray,
    x: FloatArray,
    origin: float,
    shift: FloatArray,
    fixed: NDArray[np.bool_],
    usual_point: FloatArray,
    usual_slope: FloatArray,
    point_variance: FloatArray,
    slope_variance: FloatArray,
    usual_variance: FloatArray,
    freedom: FloatArray,
    stretch: FloatArray,
    point: FloatArray,
    slope: FloatArray,
    variance: FloatArray,
) -> None:
    """Draw every rater's line and noise; the prior of each is given by responder.

    The slope expected of a rater is `usual_slope` times (noise / usual noise) to the power `stretch`.
    """
    for r in range(len(first) - 1):
        n = float(first[r + 1] - first[r])
        if n == 0.0:
            continue
        su = suu = sz = szu = szz = 0.0
        expected = usual_slope[r] * stretched(variance[r] / usual_variance[r], stretch[r])
        for o in range(first[r], first[r + 1]):
            u = x[item[o]] - origin
            z = response[o] - shift[shift_of[o]] - usual_point[r] - expected * u
            su += u
            suu += u * u
            sz += z
            szu += z * u
            szz += z * z
        d0 = d1 = 0.0
        if not fixed[r]:
            v = variance[r]
            p00 = n / v + 1.0 / point_variance[r]
            p11 = suu / v + 1.0 / slope_variance[r]
            p01 = su / v
            det = p00 * p11 - p01 * p01
            m0 = (p11 * sz - p01 * szu) / (det * v)
            m1 = (p00 * szu - p01 * sz) / (det * v)
            e0, e1 = rng.standard_normal(), rng.standard_normal()
            d0 = m0 + e0 * sqrt(p11 / det)
            # Given d0, the other is Gaussian with precision p11.
            d1 = m1 - p01 / p11 * (d0 - m0) + e1 / sqrt(p11)
        point[r] = usual_point[r] + d0
        slope[r] = expected + d1
        left_over = szz - 2.0 * (d0 * sz + d1 * szu) + n * d0 * d0 + 2.0 * d0 * d1 * su + d1 * d1 * suu
        half = 0.5 * (freedom[r] * usual_variance[r] + max(left_over, 0.0))
        drawn = max(half / rng.standard_gamma(0.5 * (freedom[r] + n)), MIN_NOISE_VARIANCE)
        if stretch[r] > 0.0 and not fixed[r]:
            # What the slope says of the noise: taken as often as it allows.
            other = usual_slope[r] * stretched(drawn / usual_variance[r], stretch[r])
            gain = (slope[r] - expected) ** 2 - (slope[r] - other) ** 2
            if log(rng.random()) > gain / (2.0 * slope_variance[r]):
                continue
        variance[r] = drawn


@compiled
def margin_likelihood(
    left: IntArray,
    right: IntArray,
    responder: IntArray,
    outcome: NDArray[np.int8],
    x: FloatArray,
    slope: FloatArray,
    slips: FloatArray,
    margin: float,
) -> float:
    """Return the log likelihood of all comparisons at a tie margin."""
    total = 0.0
    for m in range(len(left)):
        r = responder[m]
        middle = slope[r] * (x[left[m]] - x[right[m]])
        if outcome[m] == 0:
            chance = below(margin - middle) - below(-margin - middle)
        else:
            chance = below(outcome[m] * middle - margin)
        total += log((1.0 - slips[r]) * chance + slips[r] / 3.0)
    return total


@compiled
def typical_response(middle: FloatArray, spread: FloatArray, noise: float, edge: FloatArray, out: FloatArray) -> None:
    """Fill `out` with the mean answer to items at `middle`, with variance `spread`, on [0, 1].

    On a scale in steps, a response above `edge[k]` reaches the next step. Without steps (`edge` empty) the answer
    is the response, cut at 0 and 1.
    """
    for i in range(len(middle)):
        sd = sqrt(spread[i] + noise)
        if len(edge) == 0:
            u, v = middle[i] / sd, (middle[i] - 1.0) / sd
            out[i] = sd * (u * below(u) + density(u) - v * below(v) - density(v))
        else:
            total = 0.0
            for k in range(len(edge)):
                total += below((middle[i] - edge[k]) / sd)
            out[i] = total / len(edge)
