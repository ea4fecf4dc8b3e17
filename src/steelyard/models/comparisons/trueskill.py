"""TrueSkill: Gaussian skills, updated after every comparison (Herbrich et al. 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from pydantic import Field
from scipy import special

from steelyard.models.comparisons.online import ORDER_MATTERS, Matches, as_comparisons, both_sides, gap_notes, islands
from steelyard.models.comparisons.online_kernels import trueskill_pass
from steelyard.models.comparisons.paired import expected_share
from steelyard.models.fit import Fit, Model
from steelyard.models.table import Uncertainty, aligned_draws, count_by_item, score_table
from steelyard.models.unscored import null_without_evidence
from steelyard.observations import Comparisons, FloatArray, IntArray, Rankings


class SkillState(NamedTuple):
    """Mean and variance of every item's Gaussian."""

    mu: FloatArray
    variance: FloatArray

    @property
    def mode(self) -> FloatArray:
        """The most likely skill, which for a Gaussian is its mean; match quality reads it."""
        return self.mu


@dataclass(frozen=True, slots=True)
class TrueSkill(Model):
    """Gaussian beliefs about skills, updated by the surprise of each outcome (Eq. 3–10).

    Performances have noise of standard deviation γ around the skills. The better performance wins; performances
    within ε of each other tie. γ, ε and σ are in units of μ, whose origin and unit are arbitrary. The defaults are
    Herbrich's on a unit scale: γ = σ/2, and ε such that equal items tie in one of nine comparisons.

    If tasks are known, the comparisons of one answer form a mini-batch: all updates are computed from the state
    before it, so that their order does not matter. Answers, and comparisons without tasks, are processed in order.
    """

    name: ClassVar[str] = "trueskill"
    accepts: ClassVar[tuple[str, ...]] = ("comparisons", "rankings")

    mu: Annotated[float, Field(allow_inf_nan=False, description="prior mean of every skill")] = 0.0
    sigma: Annotated[float, Field(gt=0, allow_inf_nan=False, description="prior standard deviation of every skill")] = (
        1.0
    )
    gamma: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="γ, standard deviation of a performance (TrueSkill's β)")
    ] = 0.5
    epsilon: Annotated[
        float, Field(ge=0, allow_inf_nan=False, description="ε, tie margin: performances closer than this tie")
    ] = 0.1
    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=20, description="number of posterior draws or bootstrap replicates")] = 400
    seed: Annotated[int, Field(ge=0, description="random seed")] = 0

    def start(self, n_items: int) -> SkillState:
        """Return the state before any comparison."""
        return SkillState(np.full(n_items, float(self.mu)), np.full(n_items, float(self.sigma) ** 2))

    def update(self, state: SkillState, comparisons: Comparisons) -> SkillState:
        """Return the state after more comparisons; item codes index the state."""
        mu, variance = state.mu.copy(), state.variance.copy()
        trueskill_pass(mu, variance, Matches.of(comparisons).batches, self.gamma, self.epsilon)
        return SkillState(mu, variance)

    @null_without_evidence
    def fit(self, observations: Comparisons | Rankings) -> Fit:
        """Score every item by the mean of its skill, in one pass over the comparisons in their order."""
        self.check_kind(observations)
        comparisons = as_comparisons(observations)
        n_items = len(comparisons.items)
        state = self.update(self.start(n_items), comparisons)
        judgments, annotators = count_by_item(comparisons, *both_sides(comparisons))
        score = np.where(judgments > 0, state.mu, np.nan)
        island = islands(comparisons)
        uncertainty = self._posterior(state, score, island)
        share = np.full(len(score), np.nan)
        share[judgments > 0] = expected_share(score[judgments > 0], self.win_probability)
        notes = (ORDER_MATTERS, *gap_notes(self.name, comparisons), *self._margin_notes(comparisons))
        table = score_table(comparisons.items, score, share, uncertainty, judgments, annotators, level=self.level)
        draws = aligned_draws(table, comparisons.items, uncertainty.draws)
        return Fit(self.name, self.settings(), table, notes=notes, draws=draws)

    def _posterior(self, state: SkillState, score: FloatArray, island: IntArray) -> Uncertainty:
        """Add the variance of the common level to each skill's own.

        Comparisons say nothing about the mean of the n skills of an island: it keeps its prior variance σ²/n,
        which the updates, taking skills as independent, wear away with the rest. Without it, intervals of 10
        items compared 200 times each cover 37 % of skills drawn from the prior, not 95 %.
        """
        size = np.maximum(np.bincount(island, ~np.isnan(score)), 1)
        level_variance = (self.sigma**2 - state.variance) / size[island]
        sd = np.where(np.isnan(score), np.nan, np.sqrt(state.variance + level_variance))
        half = special.ndtri((1 + self.level) / 2) * sd
        rng = np.random.default_rng(self.seed)
        own = np.sqrt(state.variance) * rng.standard_normal((self.draws, len(score)))
        common = np.sqrt(level_variance) * rng.standard_normal((self.draws, len(size)))[:, island]
        return Uncertainty("posterior", state.mu + own + common, sd, score - half, score + half)

    def win_probability(self, difference: FloatArray) -> FloatArray:
        """Return the chance that an item better by `difference` wins, with half of the ties."""
        width = np.sqrt(2) * self.gamma
        return np.asarray(
            (special.ndtr((difference - self.epsilon) / width) + special.ndtr((difference + self.epsilon) / width)) / 2
        )

    def _margin_notes(self, comparisons: Comparisons) -> tuple[str, ...]:
        tied = bool((comparisons.outcome == 0).any())
        if tied and self.epsilon == 0:
            return (
                "there are ties but epsilon is 0, so each tie is treated as exactly equal performances; set "
                "epsilon > 0",
            )
        if not tied and self.epsilon > 0:
            return (
                f"no comparison is a tie, yet wins are treated as wins by more than epsilon = {self.epsilon:g}; set "
                "epsilon = 0 if ties were not allowed",
            )
        return ()
