"""Elo: ratings that move by a fixed share of the surprise (Elo 1978)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from steelyard.models.comparisons.online import (
    ORDER_MATTERS,
    Matches,
    as_comparisons,
    both_sides,
    gap_notes,
    resampled_uncertainty,
)
from steelyard.models.comparisons.online_kernels import elo_pass
from steelyard.models.comparisons.paired import expected_share
from steelyard.models.fit import Fit, Model
from steelyard.models.inference.resampling import Weights
from steelyard.models.table import count_by_item, score_table
from steelyard.models.unscored import null_without_evidence
from steelyard.observations import Comparisons, FloatArray, IntArray, Rankings


class EloState(NamedTuple):
    """The rating of every item."""

    rating: FloatArray


@dataclass(frozen=True, slots=True)
class Elo(Model):
    """Add k · (result − expected result) to a rating after every comparison; a tie is half a win.

    The expected result is 1 / (1 + base^(−d/scale)) for a lead of d points. Ratings follow the latest
    comparisons and never settle, so their order matters: for judgments that do not change with time, a batch
    model such as bradley_terry uses the same evidence better. The interval is resampled over annotators, each
    with its updates multiplied by its Poisson weight.

    Where tasks are known, the comparisons of one answer are a mini-batch, computed from the ratings before it.
    """

    name: ClassVar[str] = "elo"
    accepts: ClassVar[tuple[str, ...]] = ("comparisons", "rankings")

    k: Annotated[float, Field(gt=0, allow_inf_nan=False, description="points at stake in a comparison")] = 32.0
    scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="points of lead that multiply the odds of winning by base")
    ] = 400.0
    base: Annotated[
        float, Field(gt=1, allow_inf_nan=False, description="what a lead of `scale` points multiplies the odds by")
    ] = 10.0
    initial: Annotated[float, Field(allow_inf_nan=False, description="rating of every item at the start")] = 1500.0
    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=20, description="number of posterior draws or bootstrap replicates")] = 200
    seed: Annotated[int, Field(ge=0, description="seed of the resamples")] = 0

    def start(self, n_items: int) -> EloState:
        """Return the state before any comparison."""
        return EloState(np.full(n_items, float(self.initial)))

    def update(self, state: EloState, comparisons: Comparisons) -> EloState:
        """Return the state after more comparisons; item codes index the state."""
        matches = Matches.of(comparisons)
        is_seen = np.zeros(len(state.rating), np.bool_)
        return EloState(self._pass(state, matches, *matches.equally(), is_seen))

    @null_without_evidence
    def fit(self, observations: Comparisons | Rankings) -> Fit:
        """Rate every item, in one pass over the comparisons in their order."""
        self.check_kind(observations)
        comparisons = as_comparisons(observations)
        matches = Matches.of(comparisons)
        judgments, annotators = count_by_item(comparisons, *both_sides(comparisons))
        start = self.start(len(comparisons.items))
        rating = self._pass(start, matches, *matches.equally(), judgments > 0)
        score = np.where(judgments > 0, rating, np.nan)
        uncertainty, more = resampled_uncertainty(
            lambda unit, weight, seen: self._pass(start, matches, unit, weight, seen),
            comparisons,
            matches,
            judgments,
            replicates=self.draws,
            seed=self.seed,
            level=self.level,
        )
        notes = (ORDER_MATTERS, *gap_notes(self.name, comparisons), *more)
        share = np.full(len(score), np.nan)
        share[judgments > 0] = expected_share(score[judgments > 0], self.win_probability)
        table = score_table(comparisons.items, score, share, uncertainty, judgments, annotators, level=self.level)
        return Fit(self.name, self.settings(), table, notes=notes)

    def win_probability(self, difference: FloatArray) -> FloatArray:
        """Return the expected result of an item that leads by `difference` points."""
        return np.asarray(1 / (1 + self.base ** (-difference / self.scale)))

    def _pass(
        self, start: EloState, matches: Matches, unit: IntArray, weight: Weights, seen: NDArray[np.bool_]
    ) -> FloatArray:
        rating = start.rating.copy()
        elo_pass(
            rating,
            seen,
            matches.left,
            matches.right,
            matches.outcome,
            matches.start,
            unit,
            weight,
            self.k,
            self.scale,
            self.base,
        )
        return rating
