"""Comparison of calibrated scores with a simple estimate from the same judgments.

The simple estimate is the mean rating less annotators' mean deviations or, for comparisons, choices and rankings, a
Bradley–Terry fit. A model that says something else, beyond the uncertainty of both, must be looked at.
"""

from __future__ import annotations

import numpy as np

from steelyard.models.calibrated.evidence import Evidence
from steelyard.observations import UNKNOWN, FloatArray

MOST_OUTSIDE = 0.2
"""Largest fraction of the items whose simple estimate may lie more than two standard errors from the score."""

PRIOR_RATINGS = 1.0
"""Number of average ratings with which an annotator's mean deviation is pooled."""


def disagreement(evidence: Evidence, score: FloatArray, sd: FloatArray) -> tuple[str, ...]:
    """Return a sentence if the scores disagree with the simple estimate more than both are uncertain."""
    if len(score) < 3 or not np.isfinite(score).all():
        return ()
    is_rated = evidence.groups[0].rates
    simple, error = _mean_rating(evidence) if is_rated else _strength(evidence)
    is_finite = np.isfinite(simple) & np.isfinite(error)
    if is_finite.sum() < 3 or np.ptp(simple[is_finite]) == 0 or np.ptp(score[is_finite]) == 0:
        return ()
    name = "mean ratings" if is_rated else "a Bradley–Terry fit"
    correlation = float(np.corrcoef(score[is_finite], simple[is_finite])[0, 1])
    slope = correlation * float(score[is_finite].std() / simple[is_finite].std())
    fitted = score[is_finite].mean() + slope * (simple[is_finite] - simple[is_finite].mean())
    off = np.abs(score[is_finite] - fitted) / np.sqrt(sd[is_finite] ** 2 + (slope * error[is_finite]) ** 2 + 1e-24)
    outside = float((off > 2).mean())
    if correlation > 0 and outside <= MOST_OUTSIDE:
        return ()
    return (
        f"the scores disagree with {name} of the same judgments (r = {correlation:.2f}; {100 * outside:.0f} % of the "
        "items differ by more than their standard errors explain): compare both before you use them",
    )


def _mean_rating(evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """Return the mean of the first group's ratings of each item less annotators' mean deviations, and its error."""
    first = evidence.groups[0]
    last = int(evidence.ratings.first[first.last])
    item, value = evidence.ratings.item[:last], evidence.ratings.value[:last]
    who = np.repeat(np.arange(len(evidence.annotator)), np.diff(evidence.ratings.first))[:last]
    n_items = len(evidence.item)
    # Repeated ratings of one item by one annotator count once, as they share that annotator's opinion of it.
    key = np.where(evidence.annotator[who] == UNKNOWN, -1 - np.arange(last), who.astype(np.int64) * n_items + item)
    _, first_row, cell = np.unique(key, return_index=True, return_inverse=True)
    item, who, value = item[first_row], who[first_row], np.bincount(cell, value) / np.bincount(cell)
    count, rows = np.bincount(item, minlength=n_items), np.bincount(who, minlength=len(evidence.annotator))
    bias, location = np.zeros(len(evidence.annotator)), np.zeros(n_items)
    named = evidence.annotator != UNKNOWN
    for _ in range(10):
        location = np.bincount(item, value - bias[who], minlength=n_items) / np.maximum(count, 1)
        bias = np.bincount(who, value - location[item], minlength=len(bias)) / (rows + PRIOR_RATINGS) * named
    residual = value - bias[who] - location[item]
    variance = float((residual**2).sum()) / max(len(value) - n_items, 1)
    return np.where(count > 0, location, np.nan), np.sqrt(variance / np.maximum(count, 1))


def _strength(evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """Return Bradley–Terry strengths with a weak Gaussian prior, by diagonal Newton steps, and their errors."""
    left, right, win = _pairs(evidence)
    n_items = len(evidence.item)
    strength: FloatArray = np.zeros(n_items)
    curvature: FloatArray = np.ones(n_items)
    for _ in range(60):
        chance = 1 / (1 + np.exp(-(strength[left] - strength[right])))
        weight, excess = chance * (1 - chance), win - chance
        gradient = np.bincount(left, excess, minlength=n_items) - np.bincount(right, excess, minlength=n_items)
        total = np.bincount(left, weight, minlength=n_items) + np.bincount(right, weight, minlength=n_items)
        curvature = np.asarray(total + 0.05, np.float64)
        strength = np.asarray(strength + 0.5 * (gradient - 0.05 * strength) / curvature)
    return strength - strength.mean(), 1 / np.sqrt(curvature)


def _pairs(evidence: Evidence) -> tuple[FloatArray, ...]:
    """Return all comparisons, with those that choices and rankings imply: left, right, and 1, ½ or 0 for the left."""
    pairs, tuples = evidence.pairs, evidence.tuples
    left, right, win = [pairs.left], [pairs.right], [(np.sign(pairs.outcome) + 1) / 2]
    size = np.diff(tuples.first)
    for gap in range(1, int(size.max(initial=0))):
        one = np.arange(len(tuples.item) - gap)
        number = np.repeat(np.arange(len(size)), size)
        ordered = (number[one] == number[one + gap]) & (tuples.tier[one] < tuples.tier[one + gap])
        left.append(tuples.item[one[ordered]])
        right.append(tuples.item[one[ordered] + gap])
        win.append(np.ones(int(ordered.sum())))
    return np.concatenate(left), np.concatenate(right), np.concatenate(win)
