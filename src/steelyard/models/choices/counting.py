"""Counting: (times chosen as best − times chosen as worst) / times shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from steelyard.models.fit import Fit, Model
from steelyard.models.inference.student import NO_SPREAD
from steelyard.models.inference.value_tally import ObservedValues, ValueTally
from steelyard.models.table import aligned_draws, score_table
from steelyard.observations import Choices, Comparisons, Rankings


@dataclass(frozen=True, slots=True)
class Counting(Model):
    """(times best − times worst) / times shown, from −1 to 1 (Kiritchenko & Mohammad 2017).

    A pair counts as a tuple of two: the winner is best, the loser worst, and a tie is neither. A ranking
    counts as its pairs. The interval is Student's t over annotators: a bootstrap interval would have zero
    width for an item that was best four times out of four.
    """

    name: ClassVar[str] = "counting"
    accepts: ClassVar[tuple[str, ...]] = ("choices", "comparisons", "rankings")

    interval: Annotated[Literal["t", "bootstrap"], Field(description="interval method")] = "t"
    prior_df: Annotated[float, Field(gt=0, description="weight of the pooled variance, in degrees of freedom")] = 8.0
    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=20, description="number of posterior draws or bootstrap replicates")] = 400
    seed: Annotated[int, Field(ge=0, description="random seed")] = 0

    def fit(self, observations: Choices | Comparisons | Rankings) -> Fit:
        """Score every item on [−1, 1]."""
        self.check_kind(observations)
        pairs = observations.to_comparisons() if observations.has_comparisons else observations
        return self.solve(ObservedValues(pairs, *pairs.preferences()))

    def solve(self, values: ValueTally) -> Fit:
        """Score every item from sums of 1 for best, −1 for worst and 0."""
        score = values.mean
        notes: tuple[str, ...] = ()
        if self.interval == "t":
            means = values.unit_means()
            uncertainty = means.around(
                score, prior_df=self.prior_df, level=self.level, draws=self.draws, seed=self.seed
            )
            if np.isnan(uncertainty.sd).all():
                notes = (NO_SPREAD.format(units=means.kind),)
        else:
            draws = values.resampled_means(self.draws, self.seed)
            uncertainty, notes = values.uncertainty_of(draws, self.level)
        table = score_table(
            values.items,
            score,
            (score + 1) / 2,
            uncertainty,
            values.judgments,
            values.annotators,
            bounds=(-1, 1),
            level=self.level,
        )
        in_order = aligned_draws(table, values.items, uncertainty.draws)
        return Fit(self.name, self.settings(), table, notes=notes, draws=in_order)
