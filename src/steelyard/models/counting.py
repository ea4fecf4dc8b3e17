"""Counting: how often an item was chosen as best less how often as worst, over how often it was shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from steelyard.models.fit import Fit, Model
from steelyard.models.resampling import Units, resampled_means
from steelyard.models.student import NO_SPREAD, UnitMeans
from steelyard.models.table import ALONE, Uncertainty, count_by_item, score_table
from steelyard.observations import UNKNOWN, Choices, Comparisons, FloatArray, IntArray, Rankings


@dataclass(frozen=True, slots=True)
class Counting(Model):
    """(times best − times worst) / times shown, from −1 to 1 (Kiritchenko & Mohammad 2017).

    A pair counts as a tuple of two: the winner is best, the loser worst, and a tie is neither. A ranking
    counts as its pairs. The interval is Student's t over annotators: a resampled one would call an item that
    was best four times out of four certain.
    """

    name: ClassVar[str] = "counting"
    eats: ClassVar[tuple[str, ...]] = ("choices", "comparisons", "rankings")

    interval: Annotated[Literal["t", "bootstrap"], Field(description="how intervals are made")] = "t"
    prior_df: Annotated[float, Field(gt=0, description="weight of the common variance, in degrees of freedom")] = 8.0
    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    replicates: Annotated[int, Field(ge=20, description="joint draws or resamples")] = 400
    seed: Annotated[int, Field(ge=0, description="seed of those draws")] = 0

    def fit(self, observations: Choices | Comparisons | Rankings) -> Fit:
        """Score every item on [−1, 1]."""
        self.accept(observations)
        if isinstance(observations, Rankings):
            observations = observations.comparisons()
        item, row, value = appearances(observations)
        n_items = len(observations.items)
        judgments, annotators = count_by_item(observations, item, row)
        with np.errstate(invalid="ignore"):
            score = np.bincount(item, value, minlength=n_items) / judgments
        units = Units.of(observations)
        if self.interval == "t":
            uncertainty = UnitMeans.of(units, item, row, value, n_items).around(
                score, prior_df=self.prior_df, level=self.level, draws=self.replicates, seed=self.seed
            )
            notes = (NO_SPREAD.format(units=units.kind),) if np.isnan(uncertainty.sd).all() else ()
        else:
            draws = resampled_means(units, item, row, value, n_items, replicates=self.replicates, seed=self.seed)
            alone = units.per_item(item, row, n_items) < 2
            uncertainty = Uncertainty.from_draws(f"bootstrap({units.kind})", draws, self.level).without(alone)
            notes = (ALONE.format(units=units.kind),) if alone[judgments > 0].any() else ()
        table = score_table(
            observations.items,
            score,
            (score + 1) / 2,
            uncertainty,
            judgments,
            annotators,
            bounds=(-1, 1),
            level=self.level,
        )
        return Fit(self.name, self.settings(), table, notes=notes)


def appearances(observations: Choices | Comparisons) -> tuple[IntArray, IntArray, FloatArray]:
    """List every showing of an item: the item, the row it was shown in, and 1 (best), −1 (worst) or 0."""
    if isinstance(observations, Comparisons):
        rows = np.arange(len(observations), dtype=np.int32)
        outcome = observations.outcome.astype(np.float64)
        return (
            np.concatenate([observations.left, observations.right]),
            np.concatenate([rows, rows]),
            np.concatenate([outcome, -outcome]),
        )
    row, place = np.nonzero(observations.shown != UNKNOWN)
    item = observations.shown[row, place]
    value = (item == observations.best[row]).astype(np.float64) - (item == observations.worst[row])
    return item, row.astype(np.int32), value
