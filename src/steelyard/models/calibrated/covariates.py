"""Covariates of the items: judges' scores, metrics, lengths and other numbers that may predict an item's score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.observations import FloatArray

MIN_IN_GROUP = 4
"""Mean number of items in a group from which groups have weights of their own."""
LEAST_VARIANCE = 1e-8
"""Directions of the covariates with less of their variance than this are dropped: they repeat the others."""


def uncorrelated(columns: FloatArray) -> FloatArray:
    """Return uncorrelated columns with mean 0 and variance 1 that span the same directions, repetitions left out."""
    centred = columns - columns.mean(axis=0)
    if not centred.size:
        return np.zeros((len(columns), 0))
    left, singular, _ = np.linalg.svd(centred, full_matrices=False)
    return np.ascontiguousarray(left[:, kept_directions(singular, len(columns))] * np.sqrt(len(columns)))


def kept_directions(singular: FloatArray, n_items: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which directions of the covariates are used: those with variance that others do not repeat."""
    is_kept = singular**2 > LEAST_VARIANCE * max(float((singular**2).sum()), 1e-300)
    # With as many columns as items the covariates would fit anything.
    is_kept[max(0, n_items - 2) :] = False
    return is_kept


@dataclass(frozen=True, slots=True, eq=False)
class Covariates:
    """Numbers of the items: `values` is items × columns in the order of the observations' items; NaN is unknown.

    `groups` are what the items belong to, such as systems. Each has a weight of its own, so that a judge who favours
    a system does not make its mean look certain.
    """

    names: tuple[str, ...]
    values: FloatArray
    groups: tuple[str | None, ...] = ()

    @classmethod
    def of(
        cls,
        items: Sequence[str],
        columns: Mapping[str, Mapping[str, float]],
        groups: Mapping[str, str] | None = None,
    ) -> Covariates:
        """Arrange columns, each a number by item id, in the order of the items."""
        values = np.array([[column.get(item, np.nan) for column in columns.values()] for item in items], np.float64)
        of_items = tuple(groups.get(item) for item in items) if groups else ()
        return cls(tuple(columns), values.reshape(len(items), len(columns)), of_items)

    def uncorrelated(self, rows: np.ndarray[Any, Any]) -> FloatArray:
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
        return uncorrelated(np.hstack([centred[:, sd > 0] / sd[sd > 0], self._indicators(rows)]))

    def projected(
        self, rows: np.ndarray[Any, Any], others: np.ndarray[Any, Any]
    ) -> tuple[FloatArray, np.ndarray[Any, np.dtype[np.bool_]]]:
        """Return columns of other items in the coordinates of `uncorrelated(rows)`, and which items can be predicted.

        An item can be predicted if a covariate of it is known, and if its group is one of those with effects.
        """
        values, own = self.values[others], self.values[rows]
        can_predict = np.isfinite(values).any(axis=1) if values.size else np.zeros(len(others), np.bool_)
        if not own.size or not len(others):
            return np.zeros((len(others), 0)), can_predict
        is_known = np.isfinite(own)
        mean = np.where(is_known, own, 0.0).sum(axis=0) / np.maximum(is_known.sum(axis=0), 1)
        centred = np.where(is_known, own - mean, 0.0)
        sd = centred.std(axis=0)
        new = np.where(np.isfinite(values), values - mean, 0.0)[:, sd > 0] / sd[sd > 0]
        indicators = self._indicators(rows)
        base = np.hstack([centred[:, sd > 0] / sd[sd > 0], indicators])
        if indicators.shape[1]:
            names = sorted({self.groups[row] or "" for row in rows.tolist()})
            of_others = [self.groups[row] or "" for row in others.tolist()]
            can_predict &= np.array([name in names for name in of_others])
            new = np.hstack([new, [[float(name == one) for one in names[1:]] for name in of_others]])
        centre = base.mean(axis=0)
        _, singular, right = np.linalg.svd(base - centre, full_matrices=False)
        is_kept = kept_directions(singular, len(base))
        return (new - centre) @ right[is_kept].T / singular[is_kept] * np.sqrt(len(base)), can_predict

    def _indicators(self, rows: np.ndarray[Any, Any]) -> FloatArray:
        """Return a column for each group but one, 1 for its items, if groups have a few items on average."""
        names = [self.groups[row] or "" for row in rows.tolist()] if self.groups else []
        group_names = sorted(set(names))
        if len(group_names) < 2 or len(names) < MIN_IN_GROUP * len(group_names):
            return np.zeros((len(rows), 0))
        return np.array([[name == one for one in group_names[1:]] for name in names], np.float64)

    @property
    def missing(self) -> int:
        """The number of unknown values."""
        return int((~np.isfinite(self.values)).sum())
