"""Win rate: the proportion of an item's comparisons that it won."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from steelyard.errors import NoEvidenceError
from steelyard.models.comparisons.latent import appearances
from steelyard.models.comparisons.online import NOT_COMPARABLE, warn_of_gaps, won_and_lost
from steelyard.models.comparisons.paired import pairs_of
from steelyard.models.fit import Fit, Model
from steelyard.models.inference.value_tally import ObservedValues, ValueTally
from steelyard.models.table import aligned_draws, score_table
from steelyard.models.unscored import null_without_evidence
from steelyard.observations import Choices, Comparisons, IntArray, Rankings


@dataclass(frozen=True, slots=True)
class WinRate(Model):
    """(wins + ties / 2) / comparisons, from 0 to 1; the strength of the opponents is ignored.

    Choices and rankings count as the pairs they imply.
    """

    name: ClassVar[str] = "win_rate"
    accepts: ClassVar[tuple[str, ...]] = ("comparisons", "choices", "rankings")

    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=20, description="number of posterior draws or bootstrap replicates")] = 400
    seed: Annotated[int, Field(ge=0, description="random seed")] = 0

    @null_without_evidence
    def fit(self, observations: Comparisons | Choices | Rankings) -> Fit:
        """Score every item on [0, 1]."""
        self.check_kind(observations)
        left, right, outcome, row = pairs_of(observations)
        if len(left) == 0:
            raise NoEvidenceError("no two items are compared in these judgments.", "Collect comparisons between items.")
        rows = np.arange(len(left), dtype=np.int32) if row is None else row
        won = (outcome.astype(np.float64) + 1) / 2
        values = ObservedValues(
            observations,
            np.concatenate([left, right]),
            np.concatenate([rows, rows]),
            np.concatenate([won, 1 - won]),
            whole_rows=row is not None,
        )
        beats = None
        if observations.has_comparisons:
            beats = won_and_lost(left, right, outcome)
        return self.solve(values, appearances(observations, None), beats)

    def solve(
        self,
        values: ValueTally,
        counts: tuple[IntArray, IntArray | None],
        beats: tuple[IntArray, IntArray] | None,
    ) -> Fit:
        """Score every item from sums of 1 for a win and ½ for a tie.

        `counts` are the judgments and annotators of each item; `beats` winners and losers, to be looked over for
        what cannot be compared.
        """
        score = values.mean
        uncertainty, notes = values.uncertainty_of(values.resampled_means(self.draws, self.seed), self.level)
        table = score_table(values.items, score, score, uncertainty, *counts, bounds=(0, 1), level=self.level)
        if beats is not None:
            notes = (*notes, *warn_of_gaps(self.name, values.items, *beats, NOT_COMPARABLE))
        draws = aligned_draws(table, values.items, uncertainty.draws)
        return Fit(self.name, self.settings(), table, notes=notes, draws=draws)
