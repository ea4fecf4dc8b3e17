"""Compiled draws of latent responses and item locations for the calibrated scale's Gibbs sampler.

A responder is one annotator under one way of asking. Its answer about an item at x starts from a latent response
`intercept + slope · (x − origin)`, with noise: a rating is where the response falls on the scale, a comparison is which
of two responses is the higher. Given the responses, items are Gaussian.

Rows of ratings are sorted by responder, so that `first[r]` to `first[r + 1]` are one responder's, and by answer
within a responder. Sums by item (`weight`, `pull`: precision, and precision times mean) are filled by the draws of
responses and cleared by the draw of items. Rows that are held out for validation are skipped.
"""

from __future__ import annotations

from math import exp, inf, log, pi, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from steelyard.models.calibrated.online_kernels import below, density
from steelyard.models.compiled import compiled, compiled_part
from steelyard.observations import FloatArray

if TYPE_CHECKING:
    from steelyard.models.calibrated.evidence import PairRows, RatingRows, TupleRows

CG_TOLERANCE, CG_STEPS = 1e-4, 300
"""Tolerance of conjugate gradients, in standard deviations of an item given its neighbours, and the most steps."""

LEAST_CHANCE = 1e-150
"""Smallest probability of an answer; two of them can be multiplied before the logarithm is taken."""

TABLE_END, TABLE_STEPS = 6.0, 64
"""Where the table of the Gaussian distribution function ends, and its number of steps to a unit."""

_NODES = np.arange(-TABLE_END, TABLE_END + 1 / TABLE_STEPS, 1 / TABLE_STEPS)
TABLE: FloatArray = np.column_stack([special.ndtr(_NODES), np.exp(-0.5 * _NODES**2) / sqrt(2 * pi) / TABLE_STEPS])
"""Values of the distribution function and its slopes from node to node; comparisons need it very often."""


def _log_table() -> FloatArray:
    """Return the four coefficients, between nodes, of cubics with the values and slopes of log Φ at the nodes."""
    value = special.log_ndtr(_NODES)
    slope = np.exp(-0.5 * _NODES**2 - value) / sqrt(2 * pi) / TABLE_STEPS
    rise = np.diff(value)
    curve = 3.0 * rise - 2.0 * slope[:-1] - slope[1:]
    return np.column_stack([value[:-1], slope[:-1], curve, slope[:-1] + slope[1:] - 2.0 * rise])


LOG_TABLE: FloatArray = _log_table()

HELD_OUT = 127
"""Outcome of a comparison that is held out."""


class Items(NamedTuple):
    """Item locations x, their prior means and variance, and the sums of what the responses say of each."""

    x: FloatArray
    origin: float
    mean: FloatArray
    variance: float
    weight: FloatArray
    pull: FloatArray


class Responders(NamedTuple):
    """Intercept, slope, noise variance and lapse rate of every responder, and the shift of every answer."""

    intercept: FloatArray
    slope: FloatArray
    noise: FloatArray
    lapse_rate: FloatArray
    shift: FloatArray


class PairAnswers(NamedTuple):
    """The latent differences behind comparisons, which comparisons were lapses, and the cuts: tie margin, strengths.

    Comparisons that are held out count as lapses: they say nothing of the items.
    """

    response: FloatArray
    lapsed: NDArray[np.bool_]
    cuts: FloatArray


class ShiftSums(NamedTuple):
    """The variance of shifts, and room for the precision of each and precision times mean."""

    variance: float
    precision: FloatArray
    pull: FloatArray


@compiled_part
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


@compiled_part
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


@compiled_part
def draw_ratings(
    rng: np.random.Generator,
    rows: RatingRows,
    response: FloatArray,
    items: Items,
    responders: Responders,
) -> None:
    """Draw the responses that are known only to lie between two ends, and add up what all say about the items."""
    first, item, shift_of, lower, upper, _ = rows
    x, origin, weight, pull = items.x, items.origin, items.weight, items.pull
    intercept, slope, variance, _, shift = responders
    for r in range(len(first) - 1):
        sd = sqrt(variance[r])
        base = intercept[r] - slope[r] * origin
        gain = slope[r] / variance[r]
        for o in range(first[r], first[r + 1]):
            if lower[o] == -inf and upper[o] == inf:
                continue
            level = base + shift[shift_of[o]]
            if lower[o] < upper[o]:
                middle = level + slope[r] * x[item[o]]
                response[o] = middle + sd * between(rng, (lower[o] - middle) / sd, (upper[o] - middle) / sd)
            weight[item[o]] += gain * slope[r]
            pull[item[o]] += gain * (response[o] - level)


@compiled_part
def chance_below(z: float) -> float:
    """Return the probability of a standard Gaussian below z, by cubic interpolation: exact to 3e-7 of its value."""
    if not -TABLE_END < z < TABLE_END:
        return below(z)
    position = (z + TABLE_END) * TABLE_STEPS
    at = int(position)
    part = position - at
    value, slope, next_slope = TABLE[at, 0], TABLE[at, 1], TABLE[at + 1, 1]
    rise = TABLE[at + 1, 0] - value
    curve = 3.0 * rise - 2.0 * slope - next_slope + part * (slope + next_slope - 2.0 * rise)
    return float(value + part * (slope + part * curve))


@compiled_part
def chance_and_density(z: float) -> tuple[float, float]:
    """Return `chance_below` and the density, interpolated linearly (exact to 3e-5 of the peak)."""
    if not -TABLE_END < z < TABLE_END:
        return below(z), density(z)
    position = (z + TABLE_END) * TABLE_STEPS
    at = int(position)
    slope = TABLE[at, 1]
    return chance_below(z), TABLE_STEPS * (slope + (position - at) * (TABLE[at + 1, 1] - slope))


@compiled_part
def log_chance_curve(z: float) -> tuple[float, float, float]:
    """Return log Φ by cubic interpolation (exact to 1e-9), its slope, and its curvature with the sign reversed.

    Only for z inside the table.
    """
    position = (z + TABLE_END) * TABLE_STEPS
    at = int(position)
    part = position - at
    value, slope, curve, twist = LOG_TABLE[at, 0], LOG_TABLE[at, 1], LOG_TABLE[at, 2], LOG_TABLE[at, 3]
    return (
        value + part * (slope + part * (curve + part * twist)),
        TABLE_STEPS * (slope + part * (2.0 * curve + part * 3.0 * twist)),
        -(TABLE_STEPS**2) * (2.0 * curve + 6.0 * part * twist),
    )


@compiled_part
def cut_interval(outcome: int, cuts: FloatArray) -> tuple[float, float]:
    """Return the ends of the winner's latent difference; an outcome beyond the number of cuts has no known strength."""
    level = abs(outcome)
    if level == 0:
        return -cuts[0], cuts[0]
    if level > len(cuts):
        return cuts[0], inf
    return cuts[level - 1], (inf if level == len(cuts) else cuts[level])


@compiled_part
def pair_chance(middle: float, outcome: int, cuts: FloatArray) -> float:
    """Return the probability of an outcome, without lapses, where the expected difference is `middle`."""
    low, high = cut_interval(outcome, cuts)
    ahead = middle if outcome >= 0 else -middle
    if high == inf:
        return chance_below(ahead - low)
    if outcome != 0 and low > ahead:
        # In the lower tail, where differences of small probabilities are exact.
        return chance_below(ahead - low) - chance_below(ahead - high)
    return chance_below(high - ahead) - chance_below(low - ahead)


@compiled_part
def guessing_chance(cuts: FloatArray) -> float:
    """Return the probability of each answer in a lapse: all are equally likely."""
    return 1.0 / (2.0 * len(cuts) + (1.0 if cuts[0] > 0.0 else 0.0))


@compiled_part
def draw_pairs(
    rng: np.random.Generator, rows: PairRows, answers: PairAnswers, items: Items, responders: Responders
) -> None:
    """Draw which comparisons were lapses, and by how much the left response was above the right one in the others."""
    left, right, responder, outcome, _, _ = rows
    response, lapsed, cuts = answers
    x, slope, lapse_rate = items.x, responders.slope, responders.lapse_rate
    guess = guessing_chance(cuts)
    for m in range(len(left)):
        if outcome[m] == HELD_OUT:
            lapsed[m] = True
            continue
        r = responder[m]
        middle = slope[r] * (x[left[m]] - x[right[m]])
        lapsed[m] = False
        if lapse_rate[r] > 0.0:
            lapse = lapse_rate[r] * guess
            chance = (1.0 - lapse_rate[r]) * pair_chance(middle, outcome[m], cuts)
            if rng.random() * (lapse + chance) < lapse:
                lapsed[m] = True
                continue
        low, high = cut_interval(outcome[m], cuts)
        if outcome[m] < 0:
            low, high = -high, -low
        response[m] = middle + between(rng, low - middle, high - middle)


@compiled_part
def draw_tuples(
    rng: np.random.Generator, rows: TupleRows, response: FloatArray, items: Items, responders: Responders
) -> None:
    """Draw the responses to the items of each tuple, which are sorted by tier, the best first.

    Each response has variance 1/2, so that a difference of two has 1. Within a tier they are free.
    """
    first, item, tier, responder = rows
    x, origin, weight, pull = items.x, items.origin, items.weight, items.pull
    slope = responders.slope
    sd = sqrt(0.5)
    for t in range(len(first) - 1):
        r = responder[t]
        if r < 0:
            continue
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
                middle = slope[r] * (x[item[o]] - origin)
                response[o] = middle + sd * between(rng, (low - middle) / sd, (high - middle) / sd)
                least = min(least, response[o])
                weight[item[o]] += gain * slope[r]
                pull[item[o]] += gain * (response[o] + slope[r] * origin)
            high = least
            at = stop


@compiled
def draw_items_jointly(
    rng: np.random.Generator,
    items: Items,
    pairs: PairRows,
    answers: PairAnswers,
    responders: Responders,
    work: FloatArray,
) -> None:
    """Draw all items at once, and clear the sums; `work` is room for four numbers an item.

    Where comparisons link each item only to its neighbours, as in a session that pairs close items, drawing one item
    after the other mixes very slowly. The exact joint draw is the solution of a linear system with noise on its right
    side (Papandreou & Yuille 2010), here by conjugate gradients.
    """
    x, _, mean, variance, weight, pull = items
    left, right, responder, _, _, _ = pairs
    response, lapsed, _ = answers
    slope = responders.slope
    n = len(x)
    diagonal, residual, direction, image = work[0], work[1], work[2], work[3]
    for i in range(n):
        own = weight[i] + 1.0 / variance
        diagonal[i] = own
        residual[i] = pull[i] + mean[i] / variance + sqrt(own) * rng.standard_normal() - own * x[i]
    for m in range(len(left)):
        if lapsed[m]:
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
    while size > CG_TOLERANCE**2 * n and steps < CG_STEPS:
        steps += 1
        for i in range(n):
            image[i] = (weight[i] + 1.0 / variance) * direction[i]
        for m in range(len(left)):
            if not lapsed[m]:
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
    for i in range(n):
        weight[i] = 0.0
        pull[i] = 0.0


@compiled
def draw_items(
    rng: np.random.Generator, items: Items, pairs: PairRows, answers: PairAnswers, responders: Responders
) -> None:
    """Draw the items one after the other, and clear the sums."""
    x, _, mean, variance, weight, pull = items
    left, right, responder, _, pair_start, pair_row = pairs
    response, lapsed, _ = answers
    slope = responders.slope
    for i in range(len(x)):
        precision = weight[i] + 1.0 / variance
        total = pull[i] + mean[i] / variance
        for at in range(pair_start[i], pair_start[i + 1]):
            m = pair_row[at]
            if lapsed[m]:
                continue
            s = slope[responder[m]]
            precision += s * s
            if left[m] == i:
                total += s * (response[m] + s * x[right[m]])
            else:
                total += s * (s * x[left[m]] - response[m])
        x[i] = total / precision + rng.standard_normal() / sqrt(precision)
        weight[i] = 0.0
        pull[i] = 0.0


@compiled_part
def draw_shifts(
    rng: np.random.Generator,
    rows: RatingRows,
    response: FloatArray,
    items: Items,
    responders: Responders,
    sums: ShiftSums,
) -> None:
    """Draw the shift of every answer that holds several ratings; shift 0 is that of the others, and stays 0."""
    first, item, shift_of, lower, upper, _ = rows
    x, origin = items.x, items.origin
    intercept, slope, variance, _, shift = responders
    shift_variance, precision, pull = sums
    for s in range(len(precision)):
        precision[s] = 0.0
        pull[s] = 0.0
    for r in range(len(first) - 1):
        base = intercept[r] - slope[r] * origin
        for o in range(first[r], first[r + 1]):
            s = shift_of[o]
            if s > 0 and not (lower[o] == -inf and upper[o] == inf):
                precision[s] += 1.0 / variance[r]
                pull[s] += (response[o] - base - slope[r] * x[item[o]]) / variance[r]
    for s in range(1, len(shift)):
        p = precision[s] + 1.0 / shift_variance
        shift[s] = pull[s] / p + rng.standard_normal() / sqrt(p)


@compiled_part
def pair_log_likelihood(
    rows: PairRows, x: FloatArray, slope: FloatArray, lapse_rate: FloatArray, cuts: FloatArray, factor: float
) -> float:
    """Return the log likelihood of all comparisons with every location multiplied by `factor`."""
    left, right, responder, outcome, _, _ = rows
    guess = guessing_chance(cuts)
    total, product = 0.0, 1.0
    for m in range(len(left)):
        if outcome[m] == HELD_OUT:
            continue
        r = responder[m]
        chance = pair_chance(factor * slope[r] * (x[left[m]] - x[right[m]]), outcome[m], cuts)
        product *= max((1.0 - lapse_rate[r]) * chance + lapse_rate[r] * guess, LEAST_CHANCE)
        if product < LEAST_CHANCE:
            total += log(product)
            product = 1.0
    return total + log(product)


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
