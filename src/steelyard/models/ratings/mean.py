"""Mean of the ratings: the usual score in direct assessment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from steelyard.models.fit import Fit, Model
from steelyard.models.inference.student import NO_SPREAD
from steelyard.models.inference.value_tally import ObservedValues, ValueTally
from steelyard.models.table import aligned_draws, score_table
from steelyard.observations import Ratings


@dataclass(frozen=True, slots=True)
class Mean(Model):
    """Average the ratings of each item.

    The interval is Student's t over annotators, where repeats by one annotator count once.
    """

    name: ClassVar[str] = "mean"
    accepts: ClassVar[tuple[str, ...]] = ("ratings",)

    prior_df: Annotated[float, Field(gt=0, description="weight of the pooled variance, in degrees of freedom")] = 8.0
    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=20, description="number of posterior draws or bootstrap replicates")] = 400
    seed: Annotated[int, Field(ge=0, description="random seed")] = 0

    def fit(self, observations: Ratings) -> Fit:
        """Score every item; the score is in the ratings' own scale."""
        self.check_kind(observations)
        rows = np.arange(len(observations), dtype=np.int32)
        values = ObservedValues(observations, observations.item, rows, observations.value)
        return self.solve(values, observations.scale, observations.bounds)

    def solve(self, values: ValueTally, scale: tuple[float, float], bounds: tuple[float, float] | None) -> Fit:
        """Score every item from sums of its ratings; `bounds` are the scale's ends where they are known."""
        score, means = values.mean, values.unit_means()
        uncertainty = means.around(score, prior_df=self.prior_df, level=self.level, draws=self.draws, seed=self.seed)
        low, high = scale
        table = score_table(
            values.items,
            score,
            (score - low) / (high - low),
            uncertainty,
            values.judgments,
            values.annotators,
            bounds=bounds,
            level=self.level,
        )
        notes = (NO_SPREAD.format(units=means.kind),) if np.isnan(uncertainty.sd).all() else ()
        draws = aligned_draws(table, values.items, uncertainty.draws)
        return Fit(self.name, self.settings(), table, notes=notes, draws=draws)
