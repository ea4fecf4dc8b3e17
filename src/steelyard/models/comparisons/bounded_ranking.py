"""Bounded ranking: a Beta distribution for every item, updated by comparisons (Sakaguchi & Van Durme 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

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
from steelyard.models.comparisons.online_kernels import MatchCounts, bounded_pass
from steelyard.models.fit import Fit, Model
from steelyard.models.ratings.easl import BetaState, highest_density
from steelyard.models.table import Uncertainty, aligned_draws, count_by_item, score_table
from steelyard.models.unscored import null_without_evidence
from steelyard.observations import Comparisons, FloatArray, IntArray, Rankings


@dataclass(frozen=True, slots=True)
class BoundedRanking(Model):
    """Update the Betas of both items by the surprisal of the outcome (Eq. 12–22); scores are between 0 and 1.

    A win adds to the winner's α and the loser's β; a tie moves unequal items towards each other and lowers the
    variance of close ones. The probabilities of win and tie are Rao & Kupper's, with π = exp(mode) and θ = exp(ε).
    The model is a heuristic: its scores cover a narrow range, and the variance of the Beta is not the error of the
    score. The default interval therefore is a Poisson bootstrap over annotators. `interval = "model"` gives the
    highest-density interval of the Beta.

    If tasks are known, the comparisons of one answer form a mini-batch, computed from the state before it.
    """

    name: ClassVar[str] = "bounded_ranking"
    accepts: ClassVar[tuple[str, ...]] = ("comparisons", "rankings")

    alpha: Annotated[float, Field(ge=1, description="initial α of every item")] = 1.0
    beta: Annotated[float, Field(ge=1, description="initial β of every item")] = 1.0
    gamma: Annotated[
        float,
        Field(
            gt=0,
            allow_inf_nan=False,
            description="γ, standard deviation of the noise of a comparison, on the scale from 0 to 1",
        ),
    ] = 0.1
    epsilon: Annotated[
        float,
        Field(ge=0, allow_inf_nan=False, description="ε, tie margin: ties are likely for score differences below it"),
    ] = 0.1
    interval: Annotated[Literal["bootstrap", "model"], Field(description="interval method")] = "bootstrap"
    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=20, description="number of posterior draws or bootstrap replicates")] = 200
    seed: Annotated[int, Field(ge=0, description="random seed")] = 0

    def start(self, n_items: int) -> BetaState:
        """Return the state before any comparison."""
        return BetaState(np.full(n_items, float(self.alpha)), np.full(n_items, float(self.beta)))

    def update(self, state: BetaState, comparisons: Comparisons) -> BetaState:
        """Return the state after more comparisons; item codes index the state."""
        matches = Matches.of(comparisons)
        is_compared = np.zeros(len(state.alpha), np.bool_)
        return self._pass(state, matches, matches.count_once(), is_compared)

    @null_without_evidence
    def fit(self, observations: Comparisons | Rankings) -> Fit:
        """Score every item by the mode of its Beta, in one pass over the comparisons in their order."""
        self.check_kind(observations)
        comparisons = as_comparisons(observations)
        matches = Matches.of(comparisons)
        judgments, annotators = count_by_item(comparisons, *both_sides(comparisons))
        start = self.start(len(comparisons.items))
        state = self._pass(start, matches, matches.count_once(), judgments > 0)
        score = np.where(judgments > 0, state.mode, np.nan)
        notes: tuple[str, ...] = (ORDER_MATTERS, *gap_notes(self.name, comparisons))
        if self.interval == "model":
            uncertainty = self._model(state, judgments)
        else:
            uncertainty, more = resampled_uncertainty(
                lambda counts, is_compared: self._pass(start, matches, counts, is_compared).mode,
                comparisons,
                matches,
                judgments,
                replicates=self.draws,
                seed=self.seed,
                level=self.level,
            )
            notes = (*notes, *more)
        table = score_table(
            comparisons.items, score, score, uncertainty, judgments, annotators, bounds=(0, 1), level=self.level
        )
        draws = aligned_draws(table, comparisons.items, uncertainty.draws)
        return Fit(self.name, self.settings(), table, notes=notes, draws=draws)

    def _pass(
        self, start: BetaState, matches: Matches, counts: MatchCounts, is_compared: NDArray[np.bool_]
    ) -> BetaState:
        state = BetaState(start.alpha.copy(), start.beta.copy())
        bounded_pass(state, is_compared, matches.batches, counts, self.gamma, self.epsilon)
        return state

    def _model(self, state: BetaState, judgments: IntArray) -> Uncertainty:
        rng = np.random.default_rng(self.seed)
        draws = rng.beta(state.alpha, state.beta, size=(self.draws, len(state.alpha)))
        lower, upper = highest_density(state, self.level)
        sd = np.where(judgments > 0, np.sqrt(state.variance), np.nan)
        return Uncertainty("model", draws, sd, lower, upper)


def outcome_probabilities(
    score: FloatArray, other: FloatArray, epsilon: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the chances of win, tie and loss against `other` (Eq. 20–22), by Rao & Kupper with π = exp(score)."""
    theta, ratio = np.exp(epsilon), np.exp(np.asarray(other) - score)
    win, loss = 1 / (1 + theta * ratio), ratio / (theta + ratio)
    tie = (theta**2 - 1) * ratio / ((1 + theta * ratio) * (theta + ratio))
    return win, tie, loss
