"""Sums of the values in a log, for the mean, EASL, counting and the win rate."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.engines.log import Log, by_item, coded, index_of
from steelyard.engines.weights import create_weights
from steelyard.models.inference.resampling import means_by_cell
from steelyard.models.inference.student import UnitMeans
from steelyard.models.inference.value_tally import ValueTally
from steelyard.observations import FloatArray, Index

RESULT_ROWS = 5_000_000
"""Maximum number of rows of resampled sums fetched at a time."""


def _with_empty_items(sums: pl.DataFrame, n_items: int) -> pl.DataFrame:
    """Add rows for items without values: zero sums and a NaN mean."""
    if sums.height == n_items:
        return sums
    every = pl.DataFrame({"item": pl.Series(np.arange(n_items, dtype=np.int32))})
    zero = pl.col("judgments", "total", "units", "squares").fill_null(0)
    return every.join(sums, on="item", how="left").sort("item").with_columns(zero, pl.col("mean").fill_null(np.nan))


class LogValues(ValueTally):
    """The values of a view (unit, item, value, n), summed by an engine."""

    def __init__(self, log: Log, appearances: str, items: Index | None = None) -> None:
        self._log, self._appearances = log, appearances
        self.unit = log.unit
        self._by_unit = self.unit != "judgments"
        if self._by_unit:
            self._cells = f"{appearances}_by_unit"
            log.engine.view(self._cells, log.sql("values_by_unit", appearances=appearances))
            sums = log.query("values_by_item", cells=self._cells)
        else:
            sums = log.query("values_by_judgment", appearances=appearances)
        self.items = items or index_of(sums["item"])
        self._sums = _with_empty_items(by_item(sums, self.items), len(self.items))
        self.judgments = self._sums["judgments"].to_numpy().astype(np.int32)
        self.total = self._column("total")
        self.annotators = self._sums["units"].to_numpy().astype(np.int32) if self.unit == "annotators" else None

    def _column(self, name: str) -> FloatArray:
        return self._sums[name].cast(pl.Float64).to_numpy()

    def unit_means(self) -> UnitMeans:
        """Return number, mean and squared deviations of the units' means of each item."""
        return UnitMeans(self.unit, self.units_per_item(), self._column("mean"), self._column("squares"))

    def units_per_item(self) -> NDArray[np.int64]:
        """Return the number of units of each item."""
        return self._sums["units"].cast(pl.Int64).to_numpy()

    def resampled_means(self, replicates: int, seed: int) -> FloatArray:
        """Weight the units by hashes of their names, in SQL; single judgments are resampled by item and value."""
        if not self._by_unit:
            cells = self._log.query("value_counts", appearances=self._appearances)
            cells = cells.with_columns(pl.Series("item", coded(cells["item"], self.items))).sort("item", "value")
            return means_by_cell(
                cells["item"].to_numpy(),
                cells["value"].to_numpy(),
                cells["n"].to_numpy(),
                len(self.items),
                replicates,
                np.random.default_rng(seed),
            )
        stored = f"{self._cells}_stored"
        self._log.engine.keep(stored, self._log.sql("values_by_unit", appearances=self._appearances))
        means = np.full((replicates, len(self.items)), np.nan)
        for sums in self._resampled(stored, replicates, seed):
            row, column = sums["replicate"].to_numpy(), coded(sums["item"], self.items)
            means[row, column] = sums["total"].to_numpy() / sums["n"].to_numpy()
        return means

    def _resampled(self, cells: str, replicates: int, seed: int) -> Iterator[pl.DataFrame]:
        step = max(1, RESULT_ROWS // max(1, len(self.items)))
        for start in range(0, replicates, step):
            create_weights(self._log, cells, range(start, min(start + step, replicates)), seed)
            yield self._log.query("resampled_values", cells=cells)
