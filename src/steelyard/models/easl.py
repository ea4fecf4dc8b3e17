"""EASL: a Beta distribution for every item, moved by each rating (Sakaguchi & Van Durme 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field
from scipy import stats

from steelyard.models.fit import Fit, Model
from steelyard.models.resampling import Units, resampled_means
from steelyard.models.student import NO_SPREAD, UnitMeans
from steelyard.models.table import ALONE, Uncertainty, count_by_item, score_table
from steelyard.observations import FloatArray, IntArray, Ratings


class BetaState(NamedTuple):
    """The two parameters of every item's Beta distribution."""

    alpha: FloatArray
    beta: FloatArray

    @property
    def mode(self) -> FloatArray:
        """The most likely value; 0.5 while nothing is known (α = β = 1, where the formula is 0/0)."""
        # Not α + β − 2 below, whose rounding can take the quotient past 1.
        above, beside = self.alpha - 1, self.beta - 1
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(above + beside > 0, above / (above + beside), 0.5)

    @property
    def mean(self) -> FloatArray:
        """The expected value."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def variance(self) -> FloatArray:
        """The variance (Eq. 13), by which match quality chooses what to ask next."""
        total = self.alpha + self.beta
        return self.alpha * self.beta / (total**2 * (total + 1))


@dataclass(frozen=True, slots=True)
class EASL(Model):
    """Add each rating s in [0, 1] to its item's Beta: α += s, β += 1 − s (Eq. 24–25).

    With α = β = 1 at the start the mode is the plain mean of the ratings; the gain over direct assessment
    comes from what is asked next. The Beta's own interval is far too wide for fractional ratings (`interval =
    "model"` shows it, as the highest-density one), and a resampled one (`"bootstrap"`) far too narrow for few of
    them; the default is Student's t over annotators, as for the mean.
    """

    name: ClassVar[str] = "easl"
    eats: ClassVar[tuple[str, ...]] = ("ratings",)

    alpha: Annotated[float, Field(ge=1, description="α of every item at the start")] = 1.0
    beta: Annotated[float, Field(ge=1, description="β of every item at the start")] = 1.0
    estimate: Annotated[Literal["mode", "mean"], Field(description="which of the Beta's is the score")] = "mode"
    interval: Annotated[Literal["t", "bootstrap", "model"], Field(description="how intervals are made")] = "t"
    prior_df: Annotated[float, Field(gt=0, description="weight of the common variance, in degrees of freedom")] = 8.0
    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    replicates: Annotated[int, Field(ge=20, description="resamples for the intervals")] = 400
    seed: Annotated[int, Field(ge=0, description="seed of the resamples")] = 0

    def start(self, n_items: int) -> BetaState:
        """Return the state before any rating."""
        return BetaState(np.full(n_items, float(self.alpha)), np.full(n_items, float(self.beta)))

    def update(self, state: BetaState, item: IntArray, unit_value: FloatArray) -> BetaState:
        """Return the state after more ratings on [0, 1] (one, or a task's worth: order does not matter)."""
        n = len(state.alpha)
        return BetaState(
            state.alpha + np.bincount(item, unit_value, minlength=n),
            state.beta + np.bincount(item, 1 - unit_value, minlength=n),
        )

    def fit(self, observations: Ratings) -> Fit:
        """Score every item by the mode (or mean) of its Beta, in the ratings' own scale."""
        self.accept(observations)
        low, high = observations.scale
        rows = np.arange(len(observations), dtype=np.int32)
        judgments, annotators = count_by_item(observations, observations.item, rows)
        state = self.update(self.start(len(observations.items)), observations.item, observations.unit_value)
        unit_score = np.where(judgments > 0, self._point(state), np.nan)
        if self.interval == "t":
            uncertainty, notes = self._student(observations, rows, judgments)
        elif self.interval == "bootstrap":
            uncertainty, notes = self._bootstrap(observations, rows, judgments)
        else:
            uncertainty, notes = self._model(state, judgments), ()
        table = score_table(
            observations.items,
            low + unit_score * (high - low),
            unit_score,
            uncertainty.scaled(low, high),
            judgments,
            annotators,
            bounds=observations.bounds,
            level=self.level,
        )
        return Fit(self.name, self.settings(), table, notes=notes)

    def _point(self, state: BetaState) -> FloatArray:
        return state.mode if self.estimate == "mode" else state.mean

    def _from_mean(self, mean: FloatArray, judgments: IntArray) -> FloatArray:
        """Return the score of items with this mean over as many ratings as there were; NaN stays NaN."""
        total = judgments * mean
        return np.where(
            np.isnan(mean), np.nan, self._point(BetaState(self.alpha + total, self.beta + judgments - total))
        )

    def _student(self, ratings: Ratings, rows: IntArray, judgments: IntArray) -> tuple[Uncertainty, tuple[str, ...]]:
        means = UnitMeans.of(Units.of(ratings), ratings.item, rows, ratings.unit_value, len(ratings.items))
        with np.errstate(invalid="ignore"):
            plain = np.bincount(ratings.item, ratings.unit_value, minlength=len(judgments)) / judgments
        of_mean = means.around(plain, prior_df=self.prior_df, level=self.level, draws=self.replicates, seed=self.seed)
        drawn, lower, upper = (
            self._from_mean(np.clip(value, 0, 1) if ratings.scale_known else value, judgments)
            for value in (of_mean.draws, of_mean.lower, of_mean.upper)
        )
        # The score is a straight line in the mean, flatter the more the start weighs.
        slope = self._from_mean(np.ones(len(judgments)), judgments) - self._from_mean(
            np.zeros(len(judgments)), judgments
        )
        notes = (NO_SPREAD.format(units=means.kind),) if np.isnan(of_mean.sd).all() else ()
        return Uncertainty(of_mean.how, drawn, slope * of_mean.sd, lower, upper), notes

    def _bootstrap(self, ratings: Ratings, rows: IntArray, judgments: IntArray) -> tuple[Uncertainty, tuple[str, ...]]:
        units = Units.of(ratings)
        n = len(ratings.items)
        means = resampled_means(
            units, ratings.item, rows, ratings.unit_value, n, replicates=self.replicates, seed=self.seed
        )
        draws = self._from_mean(means, judgments)
        alone = units.per_item(ratings.item, rows, n) < 2
        notes = (ALONE.format(units=units.kind),) if alone[judgments > 0].any() else ()
        return Uncertainty.from_draws(f"bootstrap({units.kind})", draws, self.level).without(alone), notes

    def _model(self, state: BetaState, judgments: IntArray) -> Uncertainty:
        rng = np.random.default_rng(self.seed)
        draws = rng.beta(state.alpha, state.beta, size=(self.replicates, len(state.alpha)))
        lower, upper = highest_density(state, self.level)
        asked = judgments > 0
        sd = np.where(asked, np.sqrt(state.variance), np.nan)
        return Uncertainty("model", draws, sd, lower, upper)


def highest_density(state: BetaState, level: float) -> tuple[FloatArray, FloatArray]:
    """Return the shortest interval that holds `level` of each Beta.

    Needs α, β ≥ 1, so that the density has one hump and the width as a function of the lower tail has one dip,
    found by golden-section search.
    """
    golden = (np.sqrt(5) - 1) / 2
    low = np.zeros(len(state.alpha))
    high = np.full(len(state.alpha), 1 - level)

    def quantile(probability: FloatArray) -> FloatArray:
        return np.asarray(stats.beta.ppf(probability, *state))

    def width(tail: FloatArray) -> FloatArray:
        return quantile(tail + level) - quantile(tail)

    for _ in range(40):
        left, right = high - golden * (high - low), low + golden * (high - low)
        shorter = width(left) < width(right)
        low, high = np.where(shorter, low, left), np.where(shorter, right, high)
    tail = (low + high) / 2
    return quantile(tail), quantile(tail + level)
