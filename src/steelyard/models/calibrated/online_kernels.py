"""Compiled steps of the calibrated scale's online state: one comparison at a time, and whole sweeps over them.

An annotator's noise is one of a few `level`s (standard deviations of one performance, in units of the items'
spread; `inf` for an answer at random), with a probability each. Comparison m has left its mark as a `site` on
its two items (precision, precision times mean; left, then right) and as `told`, the log likelihood of each level.
Taking the mark off before it is made anew is expectation propagation; making it once is assumed density filtering.
"""

from __future__ import annotations

from math import erf, exp, inf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from steelyard.models.compiled import compiled
from steelyard.observations import FloatArray, IntArray

LAPSE = 0.01
"""Lapse rate of every annotator, which limits the evidence of a single answer."""


@compiled
def density(t: float) -> float:
    """Return the standard Gaussian's density."""
    return 0.3989422804014327 * exp(-0.5 * t * t)


@compiled
def below(t: float) -> float:
    """Return the standard Gaussian's distribution function."""
    return 0.5 * (1.0 + erf(t * 0.7071067811865476))


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
def sweep(
    rows: NDArray[np.int64],
    left: IntArray,
    right: IntArray,
    annotator: IntArray,
    outcome: NDArray[np.int8],
    weight: FloatArray,
    site: FloatArray,
    told: FloatArray,
    precision: FloatArray,
    shift: FloatArray,
    belief: FloatArray,
    prior: FloatArray,
    level: FloatArray,
    margin: float,
) -> float:
    """Make the marks of some comparisons anew, in place; return the largest move of a mean, in prior sds.

    `precision` and `shift` (precision times mean) are the items'; `belief` has the log weight of each level of each
    annotator, without the `prior` (log). A weight below 1 is the share of a comparison that counts as evidence, for
    those that share their performances with others of the same task.
    """
    n_levels = len(level)
    here = np.empty(n_levels)
    moved = 0.0
    for m in rows:
        i, j, w = left[m], right[m], annotator[m]
        share = weight[m]
        pi, pj = precision[i] - site[m, 0], precision[j] - site[m, 2]
        hi, hj = shift[i] - site[m, 1], shift[j] - site[m, 3]
        if pi <= 0.0 or pj <= 0.0:
            continue
        vi, vj = 1.0 / pi, 1.0 / pj
        difference = hi * vi - hj * vj
        top = -inf
        for k in range(n_levels):
            here[k] = prior[k] if w < 0 else prior[k] + belief[w, k] - told[m, k]
            top = max(top, here[k])
        total = evidence = first = second = 0.0
        for k in range(n_levels):
            z, dz, ddz = outcome_likelihood(difference, vi + vj, level[k], margin, outcome[m])
            q = exp(here[k] - top)
            total += q
            evidence += q * z
            first += q * dz
            second += q * ddz
            fresh = share * log(z)
            if w >= 0:
                belief[w, k] += fresh - told[m, k]
            told[m, k] = fresh
        gradient = first / evidence
        curve = second / evidence - gradient * gradient
        gradient *= share
        curve = min(0.0, curve * share)
        for side in range(2):
            item, v, h, p = (i, vi, hi, pi) if side == 0 else (j, vj, hj, pj)
            sign = 1.0 if side == 0 else -1.0
            new_v = v * max(1.0 + v * curve, 0.05)
            new_m = h * v + sign * v * gradient
            at = 2 * side
            before = shift[item] / precision[item]
            site[m, at] = 1.0 / new_v - p
            site[m, at + 1] = new_m / new_v - h
            precision[item] = 1.0 / new_v
            shift[item] = new_m / new_v
            moved = max(moved, abs(new_m - before))
    return moved


@compiled
def sweep_ratings(
    rows: NDArray[np.int64],
    item: IntArray,
    annotator: IntArray,
    value: FloatArray,
    site: FloatArray,
    precision: FloatArray,
    shift: FloatArray,
    bias_precision: FloatArray,
    bias_shift: FloatArray,
    noise: FloatArray,
    unevenness: FloatArray,
) -> float:
    """Make the marks of some ratings anew, in place; return the largest move of an item's mean.

    `value` is in units of the items' spread. A rating is the item, plus its annotator's bias (entry 0 is that of
    anybody, and stays), plus noise of variance `noise` times the item's `unevenness`; its site holds what it says of
    the item and of the bias.
    """
    moved = 0.0
    for m in rows:
        i, w = item[m], annotator[m]
        pi, hi = precision[i] - site[m, 0], shift[i] - site[m, 1]
        pb, hb = bias_precision[w] - site[m, 2], bias_shift[w] - site[m, 3]
        before = shift[i] / precision[i]
        own = noise[w] * unevenness[i]
        site[m, 0] = 1.0 / (own + 1.0 / pb)
        site[m, 1] = site[m, 0] * (value[m] - hb / pb)
        site[m, 2] = 1.0 / (own + 1.0 / pi)
        site[m, 3] = site[m, 2] * (value[m] - hi / pi)
        precision[i], shift[i] = pi + site[m, 0], hi + site[m, 1]
        if w != 0:
            bias_precision[w], bias_shift[w] = pb + site[m, 2], hb + site[m, 3]
        else:
            site[m, 2], site[m, 3] = 0.0, 0.0
        moved = max(moved, abs(shift[i] / precision[i] - before))
    return moved
