"""Mean of the ratings: direct assessment's own estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy import stats

from steelyard.models.fit import Fit, Model
from steelyard.models.resampling import Units
from steelyard.models.table import Uncertainty, count_by_item, score_table
from steelyard.observations import FloatArray, IntArray, Ratings


@dataclass(frozen=True, slots=True)
class Mean(Model):
    """Average the ratings of each item.

    The interval is Student's t over annotators (repeats by one annotator are averaged first). The variance of
    an item is drawn towards the study's common one, as if `prior_df` further degrees of freedom had been seen
    (Smyth 2004): an item rated twice, both times alike, is not therefore certain.
    """

    name: ClassVar[str] = "mean"
    eats: ClassVar[tuple[str, ...]] = ("ratings",)

    prior_df: Annotated[float, Field(gt=0, description="weight of the common variance, in degrees of freedom")] = 2.0
    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=20, description="joint draws for the rank intervals")] = 400
    seed: Annotated[int, Field(ge=0, description="seed of those draws")] = 0

    def fit(self, observations: Ratings) -> Fit:
        """Score every item; the score is in the ratings' own scale."""
        self.accept(observations)
        n_items = len(observations.items)
        units = Units.of(observations)
        cell_item, cell_value = _mean_by_unit(units, observations)
        count = np.bincount(cell_item, minlength=n_items).astype(np.int64)
        with np.errstate(invalid="ignore"):
            score = np.bincount(cell_item, cell_value, minlength=n_items) / count
        error, df, sure = self._standard_error(cell_item, cell_value, score, count)
        half = stats.t.ppf((1 + self.level) / 2, df) * error
        draws = score + error * stats.t.rvs(
            df, size=(self.draws, n_items), random_state=np.random.default_rng(self.seed)
        )
        uncertainty = Uncertainty(f"t({units.kind})", draws, error, score - half, score + half)
        low, high = observations.scale
        judgments, annotators = count_by_item(
            observations, observations.item, np.arange(len(observations), dtype=np.int32)
        )
        return Fit(
            self.name,
            self.settings(),
            score_table(
                observations.items,
                score,
                (score - low) / (high - low),
                uncertainty,
                judgments,
                annotators,
                bounds=observations.scale,
            ),
            notes=() if sure else ("no item was rated twice, so there is no spread to make intervals from",),
        )

    def _standard_error(
        self, cell_item: IntArray, cell_value: FloatArray, score: FloatArray, count: NDArray[np.int64]
    ) -> tuple[FloatArray, FloatArray, bool]:
        squares = np.bincount(cell_item, (cell_value - score[cell_item]) ** 2, minlength=len(score))
        df = np.maximum(count - 1, 0)
        if df.sum() == 0:
            return np.full(len(score), np.nan), np.ones(len(score)), False
        common = squares.sum() / df.sum()
        total_df = df + self.prior_df
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.sqrt((squares + self.prior_df * common) / total_df / count)
        return np.where(count > 0, error, np.nan), total_df, True


def _mean_by_unit(units: Units, ratings: Ratings) -> tuple[IntArray, FloatArray]:
    """Average the values that one unit gave one item; return the item and the mean of each such cell."""
    cells, inverse, size = np.unique(
        ratings.item.astype(np.int64) * len(units) + units.of_row, return_inverse=True, return_counts=True
    )
    return (cells // len(units)).astype(np.int32), np.bincount(inverse, ratings.value) / size
