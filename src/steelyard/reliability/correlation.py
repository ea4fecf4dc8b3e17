"""Correlations of two scorings of the same items, with the influence of each item."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from steelyard.observations import FloatArray
from steelyard.reliability.bootstrap import Bootstrap
from steelyard.reliability.statistic import Statistic

MIN_ITEMS = 3
"""Minimum number of items with two scores for a correlation."""

_FLAT = 1e-18
_SAME = 1e-12


class Correlation(NamedTuple):
    """A correlation, and its derivative with respect to each item's weight (as in the infinitesimal jackknife).

    Σ influence² · n/(n − 1) estimates the variance of `r` over samples of items, as a bootstrap would.
    """

    r: float
    influence: FloatArray


Correlate: TypeAlias = Callable[[FloatArray, FloatArray], Correlation | None]


def pearson(x: FloatArray, y: FloatArray) -> Correlation | None:
    """Return Pearson's r of two vectors, or None if one of them does not vary."""
    if len(x) < MIN_ITEMS:
        return None
    x, y = x - x.mean(), y - y.mean()
    x_variance, y_variance = float(x @ x) / len(x), float(y @ y) / len(y)
    if x_variance < _FLAT or y_variance < _FLAT:
        return None
    x, y = x / np.sqrt(x_variance), y / np.sqrt(y_variance)
    r = min(max(float(x @ y) / len(x), -1.0), 1.0)
    return Correlation(r, (x * y - r * (x * x + y * y) / 2) / len(x))


def spearman(x: FloatArray, y: FloatArray) -> Correlation | None:
    """Return Spearman's ρ, ties sharing their mean rank, or None if one of the vectors does not vary.

    With U and V the midranks over n, ρ = cov(U, V)/√(var U · var V). Another item at (x, y) changes not only
    the mean of UV but also the ranks of all others, hence the terms E[h(x, X)·V], where h is 1 for X above x
    and 1/2 for X = x. Leaving them out, as resampling fixed ranks does, makes the interval wrong.
    """
    if len(x) < MIN_ITEMS:
        return None
    by_x, by_y = _Ranks(x), _Ranks(y)
    u, v = by_x.midrank, by_y.midrank
    u_variance, v_variance = float((u * u).mean()) - 0.25, float((v * v).mean()) - 0.25
    if u_variance < _SAME or v_variance < _SAME:
        return None
    scale = float(np.sqrt(u_variance * v_variance))
    both = float((u * v).mean())
    r = min(max((both - 0.25) / scale, -1.0), 1.0)
    moves_both = u * v + by_x.above(v) + by_y.above(u) - 3 * both
    moves_u = u * u + 2 * by_x.above(u) - 3 * (u_variance + 0.25)
    moves_v = v * v + 2 * by_y.above(v) - 3 * (v_variance + 0.25)
    influence: FloatArray = moves_both / scale - r / 2 * (moves_u / u_variance + moves_v / v_variance)
    return Correlation(r, influence / len(x))


class _Ranks:
    """The order of a vector, with its ties."""

    def __init__(self, x: FloatArray) -> None:
        self.order = np.argsort(x, kind="stable")
        ordered = x[self.order]
        first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        size = np.diff(np.r_[first, len(x)])
        self._first, self._end = np.repeat(first, size), np.repeat(first + size, size)
        self.midrank = self._back((self._first + self._end) / 2 / len(x))

    def _back(self, ordered: FloatArray) -> FloatArray:
        values = np.empty(len(ordered))
        values[self.order] = ordered
        return values

    def above(self, v: FloatArray) -> FloatArray:
        """Return, for each item, the sum of v over the items above it plus half of its ties, divided by n."""
        total = np.concatenate([[0.0], np.cumsum(v[self.order])])
        return self._back(total[-1] - (total[self._end] + total[self._first]) / 2) / len(v)


def midranks(x: FloatArray) -> FloatArray:
    """Return ranks from 1, the lowest first, ties sharing their mean rank."""
    return _Ranks(x).midrank * len(x) + 0.5


def jackknife_variance(influence: FloatArray, units: int) -> float:
    """Return the variance of a statistic from the influence of each unit."""
    return float(influence @ influence) * units / max(units - 1, 1)


def correlation_statistic(
    key: str,
    r: float,
    variance: float,
    items: int,
    bootstrap: Bootstrap,
    *,
    note: str,
    unit: str = "items",
) -> Statistic:
    """Return a correlation with its interval, which is symmetric on Fisher's scale (z = atanh r)."""
    why = ""
    sd = float(np.sqrt(variance))
    if bootstrap.replicates < 2:
        why = "no interval was requested"
    elif sd < _SAME or abs(r) > 1 - _SAME:
        why = f"no interval: all {unit} give the same value, so its uncertainty cannot be estimated"
    if why:
        return Statistic(key, r, n=items, note=f"{note}; {why}" if note else why)
    reach = float(scipy.special.stdtrit(items - 1, 0.5 + bootstrap.level / 2)) * sd / (1 - r * r)
    lower, upper = (float(end) for end in np.tanh(np.arctanh(r) + np.array([-reach, reach])))
    return Statistic(key, r, min(lower, r), max(upper, r), f"jackknife({unit})", items, note)


def both_present(x: FloatArray, y: FloatArray) -> NDArray[np.bool_]:
    """Return which items have both scores."""
    return ~(np.isnan(x) | np.isnan(y))
