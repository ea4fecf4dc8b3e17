"""What it is worth to know an item better, by what the study is for; and how much an answer is expected to tell."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from steelyard.designs.gain_kernels import Answers, tabulate
from steelyard.designs.information_gain import Aim
from steelyard.models.calibrated.online import LEVELS
from steelyard.observations import FloatArray

_CELLS = 256
_ROWS, _COLUMNS = 128, 24
_REACH, _MOST = 8.0, 2.0
"""No two items are further apart, in prior standard deviations; nor is the variance of a difference larger."""


class Spread(NamedTuple):
    """How the items lie, with what is not known of each: density and share below, on a grid of places."""

    place: FloatArray
    density: FloatArray
    below: FloatArray

    def quantile(self, share: float) -> float:
        """Return the place below which so large a share of the items is."""
        return float(np.interp(share, self.below, self.place))


def spread_of(mean: FloatArray, variance: FloatArray) -> Spread:
    """Add up the items' Gaussians. Those with means in one cell of the grid share their mean variance."""
    reach = 4 * float(np.sqrt(variance.max()))
    edges = np.linspace(mean.min() - reach, mean.max() + reach, _CELLS + 1)
    place = (edges[1:] + edges[:-1]) / 2
    cell = np.clip(np.searchsorted(edges, mean) - 1, 0, _CELLS - 1)
    count = np.bincount(cell, minlength=_CELLS)
    used = np.flatnonzero(count)
    centre = np.bincount(cell, mean, _CELLS)[used] / count[used]
    sd = np.sqrt(np.bincount(cell, variance, _CELLS)[used] / count[used])
    share = count[used] / len(mean)
    z = (place[:, None] - centre) / sd
    density = (np.exp(-0.5 * z**2) / (sd * np.sqrt(2 * np.pi))) @ share
    return Spread(place, density, special.ndtr(z) @ share)


def worth_of(aim: Aim, mean: FloatArray, variance: FloatArray, spread: Spread, cut: float) -> FloatArray:
    """Return what it is worth to shrink each item's variance, to first order.

    For scores, the variance itself counts. For a ranking, the squared error of the rank: a step along the scale
    passes as many items as lie there, so that variance counts by the density squared; its sum is what Spearman's ρ
    loses. For a threshold (or the top, above the `cut`), the variance of being above it.
    """
    if aim == "scores":
        return np.ones(len(mean))
    if aim == "ranking":
        return np.asarray(np.interp(mean, spread.place, spread.density) ** 2)
    # Never quite nothing: who is sure today may come near the cut when others move.
    return np.maximum(np.exp(-((mean - cut) ** 2) / variance) / (2 * np.pi), 1e-12) / variance


def expected_answers(chance: FloatArray, margin: float, *, share: float = 1.0, rated: float = 0.0) -> Answers:
    """Return what the answers of an annotator are expected to tell.

    `chance` is that of each noise level; `share` and `rated` as in `Answers`. The information of an outcome about the
    difference is the Fisher information of its predicted chance: squared slope over chance, added up over outcomes.
    """
    of_level, slope_of_level = _levels(margin)
    each = (chance @ slope_of_level) ** 2 / (chance @ of_level)
    return Answers(each.reshape(-1, _ROWS, _COLUMNS).sum(axis=0), _REACH, _MOST, share, rated)


@lru_cache(maxsize=8)
def _levels(margin: float) -> tuple[FloatArray, FloatArray]:
    """Return the chance of every outcome that there is, and its slope, on the table's grid: a row for each level."""
    shape = (3, len(LEVELS), _ROWS, _COLUMNS)
    chance, slope = np.empty(shape), np.empty(shape)
    tabulate(LEVELS, margin, _REACH, _MOST, chance, slope)
    outcomes = [0, 1, 2] if margin > 0 else [0, 2]
    by_level = [np.ascontiguousarray(each[outcomes].swapaxes(0, 1)) for each in (chance, slope)]
    return by_level[0].reshape(len(LEVELS), -1), by_level[1].reshape(len(LEVELS), -1)
