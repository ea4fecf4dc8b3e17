"""Student's t interval of item means, with variances shrunk towards a pooled one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from steelyard.models.inference.resampling import Units
from steelyard.models.table import Uncertainty
from steelyard.observations import FloatArray, IntArray

NO_SPREAD = "no item was judged by two {units}, so intervals cannot be estimated"


@dataclass(frozen=True, slots=True, eq=False)
class UnitMeans:
    """The means that units (annotators, tasks or judgments) gave each item, where repeats by a unit count once.

    By item: how many units, the mean of their means (NaN where there is none), and the squares about it.
    """

    kind: str
    count: NDArray[np.int64]
    mean: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, units: Units, item: IntArray, row: IntArray, value: FloatArray, n_items: int) -> UnitMeans:
        """Average the values one unit gave one item; `item`, `row` and `value` are parallel."""
        of_cell: IntArray | NDArray[np.int64] = item
        if units.kind != "judgments":
            cells, inverse, size = np.unique(
                item.astype(np.int64) * len(units) + units.of_row[row], return_inverse=True, return_counts=True
            )
            of_cell, value = cells // len(units), np.bincount(inverse, value) / size
        count = np.bincount(of_cell, minlength=n_items)
        with np.errstate(invalid="ignore"):
            mean = np.bincount(of_cell, value, minlength=n_items) / count
        squares = np.bincount(of_cell, (value - mean[of_cell]) ** 2, minlength=n_items)
        return cls(units.kind, count, mean, squares.astype(np.float64, copy=False))

    def around(self, score: FloatArray, *, prior_df: float, level: float, draws: int, seed: int) -> Uncertainty:
        """Put the uncertainty of the means around a score that weighs repeats otherwise."""
        of_means = self.uncertainty(prior_df=prior_df, level=level, draws=draws, seed=seed)
        shift = score - self.mean
        return Uncertainty(
            of_means.how,
            of_means.draws + shift,
            of_means.sd,
            of_means.lower + shift,
            of_means.upper + shift,
        )

    def uncertainty(self, *, prior_df: float, level: float, draws: int, seed: int) -> Uncertainty:
        """Return t intervals and joint draws of the means; NaN throughout when no item has two units.

        An item's variance is drawn towards the common one, as if `prior_df` further degrees of freedom had been
        seen (Smyth 2004): an item judged twice, both times alike, is not therefore certain.
        """
        mean, count, squares = self.mean, self.count, self.squares
        df = np.maximum(count - 1, 0)
        common = squares.sum() / df.sum() if df.sum() else np.nan
        total_df = df + prior_df
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.sqrt((squares + prior_df * common) / total_df / count)
        error = np.where(count > 0, error, np.nan)
        half = special.stdtrit(total_df, (1 + level) / 2) * error
        rng = np.random.default_rng(seed)
        samples = mean + error * rng.standard_t(total_df, size=(draws, len(count)))
        return Uncertainty(f"t({self.kind})", samples, error, mean - half, mean + half)
