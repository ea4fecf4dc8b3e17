"""Win rate: the share of its comparisons an item won."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field
from scipy import sparse

from steelyard.models.fit import Fit, Model
from steelyard.models.latent import appearances
from steelyard.models.newton import row_weights
from steelyard.models.online import NOT_COMPARABLE, gap_notes
from steelyard.models.paired import pairs_of
from steelyard.models.resampling import Units, resampled_means
from steelyard.models.table import ALONE, Uncertainty, score_table
from steelyard.observations import Choices, Comparisons, FloatArray, IntArray, Rankings


@dataclass(frozen=True, slots=True)
class WinRate(Model):
    """Wins plus half the ties, over comparisons: from 0 to 1, and blind to who the opponents were.

    Choices and rankings count by the pairs they say.
    """

    name: ClassVar[str] = "win_rate"
    eats: ClassVar[tuple[str, ...]] = ("comparisons", "choices", "rankings")

    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    replicates: Annotated[int, Field(ge=20, description="resamples for the intervals")] = 400
    seed: Annotated[int, Field(ge=0, description="seed of the resamples")] = 0

    def fit(self, observations: Comparisons | Choices | Rankings) -> Fit:
        """Score every item on [0, 1]."""
        self.accept(observations)
        left, right, outcome, row = pairs_of(observations)
        rows = np.arange(len(left), dtype=np.int32) if row is None else row
        item, row = np.concatenate([left, right]), np.concatenate([rows, rows])
        won = (outcome.astype(np.float64) + 1) / 2
        value = np.concatenate([won, 1 - won])
        n_items = len(observations.items)
        with np.errstate(invalid="ignore"):
            score = np.bincount(item, value, minlength=n_items) / np.bincount(item, minlength=n_items)
        units = Units.of(observations)
        if units.kind == "judgments" and len(item) > 2 * len(observations):
            draws = self._by_answer(units, item, row, value, n_items)
        else:
            draws = resampled_means(units, item, row, value, n_items, replicates=self.replicates, seed=self.seed)
        alone = units.per_item(item, row, n_items) < 2
        uncertainty = Uncertainty.from_draws(f"bootstrap({units.kind})", draws, self.level).without(alone)
        judgments, annotators = appearances(observations, None)
        table = score_table(
            observations.items, score, score, uncertainty, judgments, annotators, bounds=(0, 1), level=self.level
        )
        notes = (ALONE.format(units=units.kind),) if alone[~np.isnan(score)].any() else ()
        if not isinstance(observations, Choices):
            compared = observations.comparisons() if isinstance(observations, Rankings) else observations
            notes = (*notes, *gap_notes(self.name, compared, NOT_COMPARABLE))
        return Fit(self.name, self.settings(), table, notes=notes)

    def _by_answer(self, units: Units, item: IntArray, row: IntArray, value: FloatArray, n_items: int) -> FloatArray:
        """Resample whole choices or rankings: the pairs of one hang together."""
        shape = (len(units), n_items)
        totals = sparse.csr_array((value, (row, item)), shape=shape)
        counts = sparse.csr_array((np.ones(len(item)), (row, item)), shape=shape)
        draws = np.empty((self.replicates, n_items))
        with np.errstate(invalid="ignore", divide="ignore"):
            for replicate, weight in enumerate(row_weights(units, self.replicates, self.seed)):
                draws[replicate] = (weight @ totals) / (weight @ counts)
        return draws
