"""Sums of the values given to items, for the mean, EASL, counting and the win rate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from steelyard.models.inference.resampling import Units, resampled_means, row_weights
from steelyard.models.inference.student import UnitMeans
from steelyard.models.table import ALONE, Uncertainty, count_by_item
from steelyard.observations import FloatArray, Index, IntArray, Observations


class ValueTally(ABC):
    """Sums of the values that items were given, wherever the values are: in memory, or in files (engines/)."""

    items: Index
    unit: str
    """What is resampled: annotators, tasks or judgments."""
    judgments: IntArray
    annotators: IntArray | None
    """How many values each item has, and of how many annotators, where these are known."""
    total: FloatArray

    @property
    def mean(self) -> FloatArray:
        """The mean of every item's values; NaN where it has none."""
        with np.errstate(invalid="ignore"):
            return self.total / self.judgments

    @abstractmethod
    def unit_means(self) -> UnitMeans:
        """Average what each unit gave each item, and see how far these means spread."""

    @abstractmethod
    def resampled_means(self, replicates: int, seed: int) -> FloatArray:
        """Return every item's mean (columns) in every replicate (rows) of the units; NaN where none was drawn."""

    @abstractmethod
    def units_per_item(self) -> NDArray[np.int64]:
        """Count the units behind each item."""

    def uncertainty_of(self, draws: FloatArray, level: float) -> tuple[Uncertainty, tuple[str, ...]]:
        """Make intervals of resampled scores; an item judged by a single unit has none."""
        alone = self.units_per_item() < 2
        notes = (ALONE.format(units=self.unit),) if alone[self.judgments > 0].any() else ()
        return Uncertainty.from_draws(f"bootstrap({self.unit})", draws, level).without(alone), notes


@dataclass(eq=False)
class ObservedValues(ValueTally):
    """The values of observations in memory: observation `row` gives `item` the value (parallel arrays).

    With `whole_rows`, the values of one observation are resampled together even where judgments are the unit.
    """

    observations: Observations
    item: IntArray
    row: IntArray
    value: FloatArray
    whole_rows: bool = False

    def __post_init__(self) -> None:
        self.items = self.observations.items
        self.units = Units.of(self.observations)
        self.unit = self.units.kind
        self.judgments, self.annotators = count_by_item(self.observations, self.item, self.row)
        self.total = np.bincount(self.item, self.value, minlength=len(self.items)).astype(np.float64)

    def unit_means(self) -> UnitMeans:
        """Sort the values by unit and item."""
        return UnitMeans.of(self.units, self.item, self.row, self.value, len(self.items))

    def units_per_item(self) -> NDArray[np.int64]:
        """Sort the values by unit and item."""
        return self.units.per_item(self.item, self.row, len(self.items))

    def resampled_means(self, replicates: int, seed: int) -> FloatArray:
        """Weigh the units by hashes of their names; single judgments are drawn by item and value."""
        if self.whole_rows and self.unit == "judgments":
            return self._means_by_row(replicates, seed)
        return resampled_means(
            self.units, self.item, self.row, self.value, len(self.items), replicates=replicates, seed=seed
        )

    def _means_by_row(self, replicates: int, seed: int) -> FloatArray:
        shape = (len(self.units), len(self.items))
        totals = sparse.csr_array((self.value, (self.row, self.item)), shape=shape)
        counts = sparse.csr_array((np.ones(len(self.item)), (self.row, self.item)), shape=shape)
        draws = np.empty((replicates, len(self.items)))
        with np.errstate(invalid="ignore", divide="ignore"):
            for replicate, weight in enumerate(row_weights(self.units, replicates, seed)):
                draws[replicate] = (weight @ totals) / (weight @ counts)
        return draws
