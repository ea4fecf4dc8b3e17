"""Covariates of the items: judges' scores, metrics, lengths, any numbers that may tell where an item lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.observations import FloatArray

LEAST_VARIANCE = 1e-8
"""Directions of the covariates with less of their variance than this are dropped: they repeat the others."""


def uncorrelated(columns: FloatArray) -> FloatArray:
    """Return uncorrelated columns with mean 0 and variance 1 that span the same directions, repetitions left out."""
    centred = columns - columns.mean(axis=0)
    if not centred.size:
        return np.zeros((len(columns), 0))
    left, singular, _ = np.linalg.svd(centred, full_matrices=False)
    is_kept = singular**2 > LEAST_VARIANCE * max(float((singular**2).sum()), 1e-300)
    # With as many columns as items the covariates would fit anything.
    is_kept[max(0, len(columns) - 2) :] = False
    return np.ascontiguousarray(left[:, is_kept] * np.sqrt(len(columns)))


@dataclass(frozen=True, slots=True, eq=False)
class Covariates:
    """Numbers of the items: `values` is items × columns in the order of the observations' items; NaN is unknown."""

    names: tuple[str, ...]
    values: FloatArray

    @classmethod
    def of(cls, items: Sequence[str], columns: Mapping[str, Mapping[str, float]]) -> Covariates:
        """Arrange columns, each a number by item id, in the order of the items."""
        values = np.array([[column.get(item, np.nan) for column in columns.values()] for item in items], np.float64)
        return cls(tuple(columns), values.reshape(len(items), len(columns)))

    def uncorrelated(self, rows: np.ndarray) -> FloatArray:  # type: ignore[type-arg]
        """Return uncorrelated columns with mean 0 and variance 1 over some items, spanning the covariates.

        Unknown values get the column's mean. Constant columns, and those that repeat others, are dropped.
        """
        values = self.values[rows]
        if not values.size:
            return np.zeros((len(rows), 0))
        is_known = np.isfinite(values)
        count = np.maximum(is_known.sum(axis=0), 1)
        mean = np.where(is_known, values, 0.0).sum(axis=0) / count
        centred = np.where(is_known, values - mean, 0.0)
        sd = centred.std(axis=0)
        return uncorrelated(centred[:, sd > 0] / sd[sd > 0])

    @property
    def missing(self) -> int:
        """The number of unknown values."""
        return int((~np.isfinite(self.values)).sum())
