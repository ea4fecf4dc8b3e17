"""Compiled steps of the calibrated scale's online state: one comparison at a time, and whole sweeps over them.

An annotator's noise is one of a few `level`s (standard deviations of one performance, in units of the items'
standard deviation; `inf` for random answers), with a probability each. The messages of a comparison are its Gaussian
evidence about its two items and the log likelihood of each level. Computing each message once is assumed density
filtering; removing and recomputing it is expectation propagation.
"""

from __future__ import annotations

from math import erfc, exp, inf, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.models.compiled import compiled
from steelyard.observations import FloatArray, IntArray

LAPSE = 0.01
"""Lapse rate of every annotator, which limits the evidence of a single answer."""


class ItemBeliefs(NamedTuple):
    """The Gaussian of every item: precision, and precision times mean (`shift`)."""

    precision: FloatArray
    shift: FloatArray


class PairAnswers(NamedTuple):
    """Comparisons as parallel arrays. The outcome is 1, -1 or 0; an unknown annotator is -1.

    A weight below 1 is the fraction of a comparison that counts as evidence, for comparisons that share their
    performances with others of the same task.
    """

    left: IntArray
    right: IntArray
    annotator: IntArray
    outcome: NDArray[np.int8]
    weight: FloatArray


class PairMessages(NamedTuple):
    """The evidence of every comparison.

    `site` has columns for the left item and then for the right one: precision, and precision times mean.
    `log_likelihood` has a column for each noise level.
    """

    site: FloatArray
    log_likelihood: FloatArray


class NoiseLevels(NamedTuple):
    """The noise levels, the log prior of each, and the log likelihood of each for every annotator (`belief`)."""

    belief: FloatArray
    prior: FloatArray
    level: FloatArray


class RatingAnswers(NamedTuple):
    """Ratings as parallel arrays; the value is in units of the items' standard deviation."""

    item: IntArray
    annotator: IntArray
    value: FloatArray


class RaterBeliefs(NamedTuple):
    """The Gaussian of every annotator's bias, and their noise variance; entry 0 is the population."""

    bias_precision: FloatArray
    bias_shift: FloatArray
    noise: FloatArray


@compiled
def density(t: float) -> float:
    """Return the standard Gaussian's density."""
    return 0.3989422804014327 * exp(-0.5 * t * t)


@compiled
def below(t: float) -> float:
    """Return the standard Gaussian's distribution function."""
    return 0.5 * erfc(-t * 0.7071067811865476)


@compiled
def outcome_likelihood(
    difference: float, variance: float, level: float, margin: float, outcome: int
) -> tuple[float, float, float]:
    """Return the probability of an outcome, and its first two derivatives by the difference of the means.

    The difference of the two items is Gaussian; both performances add noise of sd `level`; within `margin` of each
    other they tie.
    """
    ties = margin > 0.0
    lapse = LAPSE / (3.0 if ties else 2.0)
    if level == inf:
        if not ties:
            return 0.5, 0.0, 0.0
        return 1.0 / 3.0, 0.0, 0.0
    c = sqrt(variance + 2.0 * level * level)
    if outcome == 0:
        up, down = (difference + margin) / c, (difference - margin) / c
        p = below(up) - below(down)
        first = (density(up) - density(down)) / c
        second = (down * density(down) - up * density(up)) / (c * c)
    else:
        t = (outcome * difference - margin) / c
        p = below(t)
        first = outcome * density(t) / c
        second = -t * density(t) / (c * c)
    keep = 1.0 - LAPSE
    return keep * p + lapse, keep * first, keep * second


@compiled
def update_item(
    items: ItemBeliefs, item: int, message: FloatArray, cavity: tuple[float, float], gradient: float, curvature: float
) -> float:
    """Combine an item's belief without a message (`cavity`) with new evidence; return the change of its mean.

    The evidence is the first two derivatives of a log likelihood by the item's mean. The belief and the message are
    overwritten.
    """
    precision, shift = cavity
    variance = 1.0 / precision
    new_variance = variance * max(1.0 + variance * curvature, 0.05)
    new_mean = shift * variance + variance * gradient
    before = items.shift[item] / items.precision[item]
    message[0] = 1.0 / new_variance - precision
    message[1] = new_mean / new_variance - shift
    items.precision[item] = 1.0 / new_variance
    items.shift[item] = new_mean / new_variance
    return float(abs(new_mean - before))


@compiled
def sweep(
    rows: NDArray[np.int64],
    answers: PairAnswers,
    messages: PairMessages,
    items: ItemBeliefs,
    levels: NoiseLevels,
    margin: float,
) -> float:
    """Recompute the messages of some comparisons in place; return the largest change of a mean, in prior sds."""
    site, log_likelihood = messages
    belief, prior, level = levels
    n_levels = len(level)
    log_weight = np.empty(n_levels)
    largest = 0.0
    for m in rows:
        i, j, w = answers.left[m], answers.right[m], answers.annotator[m]
        pi, pj = items.precision[i] - site[m, 0], items.precision[j] - site[m, 2]
        hi, hj = items.shift[i] - site[m, 1], items.shift[j] - site[m, 3]
        if pi <= 0.0 or pj <= 0.0:
            continue
        vi, vj = 1.0 / pi, 1.0 / pj
        difference = hi * vi - hj * vj
        top = -inf
        for k in range(n_levels):
            log_weight[k] = prior[k] if w < 0 else prior[k] + belief[w, k] - log_likelihood[m, k]
            top = max(top, log_weight[k])
        evidence = first = second = 0.0
        for k in range(n_levels):
            z, dz, ddz = outcome_likelihood(difference, vi + vj, level[k], margin, answers.outcome[m])
            q = exp(log_weight[k] - top)
            evidence += q * z
            first += q * dz
            second += q * ddz
            new_log_likelihood = answers.weight[m] * log(z)
            if w >= 0:
                belief[w, k] += new_log_likelihood - log_likelihood[m, k]
            log_likelihood[m, k] = new_log_likelihood
        gradient = first / evidence
        curvature = second / evidence - gradient * gradient
        gradient *= answers.weight[m]
        curvature = min(0.0, curvature * answers.weight[m])
        largest = max(largest, update_item(items, i, site[m, :2], (pi, hi), gradient, curvature))
        largest = max(largest, update_item(items, j, site[m, 2:], (pj, hj), -gradient, curvature))
    return largest


@compiled
def sweep_ratings(
    rows: NDArray[np.int64],
    ratings: RatingAnswers,
    site: FloatArray,
    items: ItemBeliefs,
    raters: RaterBeliefs,
    unevenness: FloatArray,
) -> float:
    """Recompute the messages of some ratings in place; return the largest change of an item's mean.

    A rating is the item, plus its annotator's bias (entry 0 is the population's, and does not change), plus noise of
    variance `raters.noise` times the item's `unevenness`. Columns of `site`: precision, and precision times mean, of
    the item and then of the bias.
    """
    largest = 0.0
    for m in rows:
        i, w = ratings.item[m], ratings.annotator[m]
        pi, hi = items.precision[i] - site[m, 0], items.shift[i] - site[m, 1]
        pb, hb = raters.bias_precision[w] - site[m, 2], raters.bias_shift[w] - site[m, 3]
        before = items.shift[i] / items.precision[i]
        noise = raters.noise[w] * unevenness[i]
        site[m, 0] = 1.0 / (noise + 1.0 / pb)
        site[m, 1] = site[m, 0] * (ratings.value[m] - hb / pb)
        site[m, 2] = 1.0 / (noise + 1.0 / pi)
        site[m, 3] = site[m, 2] * (ratings.value[m] - hi / pi)
        items.precision[i], items.shift[i] = pi + site[m, 0], hi + site[m, 1]
        if w != 0:
            raters.bias_precision[w], raters.bias_shift[w] = pb + site[m, 2], hb + site[m, 3]
        else:
            site[m, 2], site[m, 3] = 0.0, 0.0
        largest = max(largest, abs(items.shift[i] / items.precision[i] - before))
    return largest
