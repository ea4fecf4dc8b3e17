"""Elo: ratings updated by a fixed multiple of the prediction error (Elo 1978)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from steelyard.models.comparisons.elo_bootstrap import EloBootstrap
from steelyard.models.comparisons.online import (
    ORDER_MATTERS,
    Matches,
    as_comparisons,
    both_sides,
    gap_notes,
    uncertainty_of_draws,
)
from steelyard.models.comparisons.online_kernels import MatchCounts, elo_pass
from steelyard.models.comparisons.paired import expected_share
from steelyard.models.fit import Fit, Model
from steelyard.models.inference.resampling import Units
from steelyard.models.table import aligned_draws, count_by_item, score_table
from steelyard.models.unscored import null_without_evidence
from steelyard.observations import Comparisons, FloatArray, Rankings


class EloState(NamedTuple):
    """The rating of every item."""

    rating: FloatArray


@dataclass(frozen=True, slots=True)
class Elo(Model):
    """Add k · (result − expected result) to a rating after every comparison; a tie is half a win.

    The expected result is 1 / (1 + base^(−d/scale)) for a lead of d points. Ratings follow the latest comparisons and
    do not converge, so the order of the comparisons matters. For judgments that do not change with time, a batch model
    such as bradley_terry uses the same evidence better. The interval is a Poisson bootstrap over annotators.

    If tasks are known, the comparisons of one answer form a mini-batch, computed from the ratings before it.
    """

    name: ClassVar[str] = "elo"
    accepts: ClassVar[tuple[str, ...]] = ("comparisons", "rankings")

    k: Annotated[
        float,
        Field(
            gt=0, allow_inf_nan=False, description="update step: largest change of a rating per comparison, in points"
        ),
    ] = 32.0
    scale: Annotated[
        float,
        Field(
            gt=0,
            allow_inf_nan=False,
            description="rating difference, in points, that multiplies the odds of winning by `base`",
        ),
    ] = 400.0
    base: Annotated[
        float,
        Field(
            gt=1,
            allow_inf_nan=False,
            description="factor by which a difference of `scale` points multiplies the odds of winning",
        ),
    ] = 10.0
    initial: Annotated[float, Field(allow_inf_nan=False, description="initial rating of every item")] = 1500.0
    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=20, description="number of posterior draws or bootstrap replicates")] = 200
    seed: Annotated[int, Field(ge=0, description="random seed")] = 0

    def start(self, n_items: int) -> EloState:
        """Return the state before any comparison."""
        return EloState(np.full(n_items, float(self.initial)))

    def update(self, state: EloState, comparisons: Comparisons) -> EloState:
        """Return the state after more comparisons; item codes index the state."""
        matches = Matches.of(comparisons)
        is_compared = np.zeros(len(state.rating), np.bool_)
        return EloState(self._pass(state, matches, matches.count_once(), is_compared))

    @null_without_evidence
    def fit(self, observations: Comparisons | Rankings) -> Fit:
        """Rate every item, in one pass over the comparisons in their order."""
        self.check_kind(observations)
        comparisons = as_comparisons(observations)
        matches = Matches.of(comparisons)
        judgments, annotators = count_by_item(comparisons, *both_sides(comparisons))
        start = self.start(len(comparisons.items))
        rating = self._pass(start, matches, matches.count_once(), judgments > 0)
        score = np.where(judgments > 0, rating, np.nan)
        units = Units.of(comparisons)
        bootstrap = EloBootstrap(matches, units, start.rating, self.k, self._rate, self.seed)
        draws = bootstrap.draws(self.draws, judgments > 0)
        uncertainty, more = uncertainty_of_draws(draws, units, comparisons, judgments, self.level)
        notes = (ORDER_MATTERS, *gap_notes(self.name, comparisons), *more)
        share = np.full(len(score), np.nan)
        share[judgments > 0] = expected_share(score[judgments > 0], self.win_probability)
        table = score_table(comparisons.items, score, share, uncertainty, judgments, annotators, level=self.level)
        aligned = aligned_draws(table, comparisons.items, uncertainty.draws)
        return Fit(self.name, self.settings(), table, notes=notes, draws=aligned)

    def win_probability(self, difference: FloatArray) -> FloatArray:
        """Return the expected result of an item that leads by `difference` points."""
        return np.asarray(1 / (1 + self.base ** (-difference / self.scale)))

    def _pass(
        self, start: EloState, matches: Matches, counts: MatchCounts, is_compared: NDArray[np.bool_]
    ) -> FloatArray:
        rating = start.rating.copy()
        elo_pass(rating, is_compared, matches.batches, counts, self.k, self._rate)
        return rating

    @property
    def _rate(self) -> float:
        """The log odds of winning per point of lead."""
        return float(np.log(self.base)) / self.scale
