"""Median and mode of the ratings, which are robust against a few outlying ratings."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from steelyard.models.fit import Fit, Model
from steelyard.models.inference.resampling import Units, replicate_weights
from steelyard.models.table import ALONE, Uncertainty, aligned_draws, count_by_item, score_table
from steelyard.observations import FloatArray, Ratings


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """The distinct values of every item, in order of item and value; `start` is each item's first cell."""

    cell_of_row: NDArray[np.int64]
    value: FloatArray
    start: NDArray[np.int64]

    @classmethod
    def of(cls, ratings: Ratings) -> _Cells:
        values, code = np.unique(ratings.value, return_inverse=True)
        cells, cell_of_row = np.unique(ratings.item.astype(np.int64) * len(values) + code, return_inverse=True)
        start = np.searchsorted(cells // len(values), np.arange(len(ratings.items) + 1))
        return cls(cell_of_row, values[cells % len(values)], start)

    def count(self, weight: FloatArray) -> FloatArray:
        """Add up the rows' weights in every cell."""
        return np.asarray(np.bincount(self.cell_of_row, weight, minlength=len(self.value)), np.float64)


@dataclass(frozen=True, slots=True)
class _Typical(Model):
    """Score items by a typical rating, with an interval resampled over annotators."""

    accepts: ClassVar[tuple[str, ...]] = ("ratings",)

    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=20, description="number of posterior draws or bootstrap replicates")] = 400
    seed: Annotated[int, Field(ge=0, description="random seed")] = 0

    def fit(self, observations: Ratings) -> Fit:
        """Score every item; the score is in the ratings' own scale."""
        self.check_kind(observations)
        rows = np.arange(len(observations), dtype=np.int32)
        cells = _Cells.of(observations)
        units = Units.of(observations)
        score = self._typical(cells, cells.count(np.ones(len(observations))))
        draws = np.array(
            [
                self._typical(cells, cells.count(weight[units.of_row].astype(np.float64)))
                for weight in replicate_weights(units, self.draws, self.seed)
            ]
        )
        judgments, annotators = count_by_item(observations, observations.item, rows)
        alone = units.per_item(observations.item, rows, len(score)) < 2
        uncertainty = Uncertainty.from_draws(f"bootstrap({units.kind})", draws, self.level).without(alone)
        low, high = observations.scale
        table = score_table(
            observations.items,
            score,
            (score - low) / (high - low),
            uncertainty,
            judgments,
            annotators,
            bounds=observations.bounds,
            level=self.level,
        )
        notes = (ALONE.format(units=units.kind),) if alone[judgments > 0].any() else ()
        return Fit(
            self.name,
            self.settings(),
            table,
            notes=notes,
            draws=aligned_draws(table, observations.items, uncertainty.draws),
        )

    @staticmethod
    @abstractmethod
    def _typical(cells: _Cells, count: FloatArray) -> FloatArray:
        """Return the typical value of every item, given how often each cell counts; NaN where none does."""


@dataclass(frozen=True, slots=True)
class Median(_Typical):
    """The median rating of each item."""

    name: ClassVar[str] = "median"

    @staticmethod
    def _typical(cells: _Cells, count: FloatArray) -> FloatArray:
        running = np.concatenate([[0.0], np.cumsum(count)])
        before, after = running[cells.start[:-1]], running[cells.start[1:]]
        half = (before + after) / 2
        # The first cell that reaches half of the item's weight, and the first that exceeds it.
        lower = np.searchsorted(running[1:], half, side="left")
        upper = np.searchsorted(running[1:], half, side="right")
        last = len(cells.value) - 1
        middle = (cells.value[np.minimum(lower, last)] + cells.value[np.minimum(upper, last)]) / 2
        return np.where(after > before, middle, np.nan)


@dataclass(frozen=True, slots=True)
class Mode(_Typical):
    """The most frequent rating of each item, or the mean of equally frequent ones; for scales with few steps."""

    name: ClassVar[str] = "mode"

    @staticmethod
    def _typical(cells: _Cells, count: FloatArray) -> FloatArray:
        size = np.diff(cells.start)
        item = np.repeat(np.arange(len(size)), size)
        most = np.zeros(len(size))
        np.maximum.at(most, item, count)
        frequent = (count == most[item]) & (count > 0)
        with np.errstate(invalid="ignore"):
            return np.bincount(item[frequent], cells.value[frequent], minlength=len(size)) / np.bincount(
                item[frequent], minlength=len(size)
            )
