"""Means and shares over sources, with their 95 % intervals."""

from __future__ import annotations

import numpy as np
from scipy import stats

from steelyard.observations import FloatArray


def mean_interval(values: FloatArray) -> tuple[float, float, float]:
    """Return the mean of what is known, and its interval, Student's t."""
    present = values[~np.isnan(values)]
    mean = float(present.mean())
    half = float(stats.t.ppf(0.975, len(present) - 1) * present.std(ddof=1) / len(present) ** 0.5)
    return mean, mean - half, mean + half


def ratio_interval(part: FloatArray, whole: FloatArray) -> tuple[float, float, float]:
    """Return Σ part / Σ whole over sources, and the interval of a ratio of sums (linearised), cut to 0 and 1."""
    ratio = float(part.sum() / whole.sum())
    error = float(np.sqrt(((part - ratio * whole) ** 2).sum() * len(part) / max(len(part) - 1, 1)) / whole.sum())
    half = float(stats.norm.ppf(0.975)) * error
    return ratio, max(ratio - half, 0.0), min(ratio + half, 1.0)


def percent(interval: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return a share and its interval in per cent."""
    value, lower, upper = interval
    return 100 * value, 100 * lower, 100 * upper
