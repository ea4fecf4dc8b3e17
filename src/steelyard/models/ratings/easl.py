"""EASL: a Beta distribution for every item, updated by each rating (Sakaguchi & Van Durme 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import polars as pl
import scipy
from pydantic import Field

from steelyard.models.fit import Fit, Model
from steelyard.models.inference.student import NO_SPREAD
from steelyard.models.inference.value_tally import ObservedValues, ValueTally
from steelyard.models.table import Uncertainty, aligned_draws, score_table
from steelyard.observations import FloatArray, Index, IntArray, Ratings


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

    With initial α = β = 1 the mode is the mean of the ratings; the gain over direct assessment comes from the choice of
    the next items. The interval of the Beta (`interval = "model"`, highest density) is far too wide for fractional
    ratings, and the bootstrap far too narrow for few ratings. The default is Student's t over annotators, as for the
    mean.
    """

    name: ClassVar[str] = "easl"
    accepts: ClassVar[tuple[str, ...]] = ("ratings",)
    parameter_columns: ClassVar[tuple[str, ...]] = ("alpha", "beta", "mode", "variance")

    alpha: Annotated[float, Field(ge=1, description="initial α of every item")] = 1.0
    beta: Annotated[float, Field(ge=1, description="initial β of every item")] = 1.0
    estimate: Annotated[
        Literal["mode", "mean"], Field(description="location of the Beta distribution used as score")
    ] = "mode"
    interval: Annotated[Literal["t", "bootstrap", "model"], Field(description="interval method")] = "t"
    prior_df: Annotated[float, Field(gt=0, description="weight of the pooled variance, in degrees of freedom")] = 8.0
    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=20, description="number of posterior draws or bootstrap replicates")] = 400
    seed: Annotated[int, Field(ge=0, description="random seed")] = 0

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
        self.check_kind(observations)
        rows = np.arange(len(observations), dtype=np.int32)
        values = ObservedValues(observations, observations.item, rows, observations.unit_value)
        return self.solve(values, observations.scale, observations.bounds)

    def solve(self, values: ValueTally, scale: tuple[float, float], bounds: tuple[float, float] | None) -> Fit:
        """Score every item from sums of its ratings on [0, 1]; `bounds` are the scale's ends where they are known."""
        low, high = scale
        start = self.start(len(values.items))
        # The ratings add up to no more than their number, but for rounding.
        rest = np.maximum(values.judgments - values.total, 0.0)
        state = BetaState(start.alpha + values.total, start.beta + rest)
        unit_score = np.where(values.judgments > 0, self._point(state), np.nan)
        if self.interval == "t":
            uncertainty, notes = self._student(values, bounds is not None)
        elif self.interval == "bootstrap":
            draws = self._from_mean(values.resampled_means(self.draws, self.seed), values.judgments)
            uncertainty, notes = values.uncertainty_of(draws, self.level)
        else:
            uncertainty, notes = self._model(state, values.judgments), ()
        uncertainty = uncertainty.scaled(low, high)
        table = score_table(
            values.items,
            low + unit_score * (high - low),
            unit_score,
            uncertainty,
            values.judgments,
            values.annotators,
            bounds=bounds,
            level=self.level,
        )
        in_order = aligned_draws(table, values.items, uncertainty.draws)
        table = table.join(_parameters(values.items, state), on="item", how="left", maintain_order="left")
        return Fit(self.name, self.settings(), table, notes=notes, draws=in_order)

    def _point(self, state: BetaState) -> FloatArray:
        return state.mode if self.estimate == "mode" else state.mean

    def _from_mean(self, mean: FloatArray, judgments: IntArray) -> FloatArray:
        """Return the score of items with this mean over as many ratings as there were; NaN stays NaN."""
        total = judgments * mean
        return np.where(
            np.isnan(mean), np.nan, self._point(BetaState(self.alpha + total, self.beta + judgments - total))
        )

    def _student(self, values: ValueTally, bounded: bool) -> tuple[Uncertainty, tuple[str, ...]]:
        means, judgments = values.unit_means(), values.judgments
        of_mean = means.around(values.mean, prior_df=self.prior_df, level=self.level, draws=self.draws, seed=self.seed)
        samples, lower, upper = (
            self._from_mean(np.clip(value, 0, 1) if bounded else value, judgments)
            for value in (of_mean.draws, of_mean.lower, of_mean.upper)
        )
        # The score is a straight line in the mean, flatter the more the start weighs.
        slope = self._from_mean(np.ones(len(judgments)), judgments) - self._from_mean(
            np.zeros(len(judgments)), judgments
        )
        notes = (NO_SPREAD.format(units=means.kind),) if np.isnan(of_mean.sd).all() else ()
        return Uncertainty(of_mean.how, samples, slope * of_mean.sd, lower, upper), notes

    def _model(self, state: BetaState, judgments: IntArray) -> Uncertainty:
        rng = np.random.default_rng(self.seed)
        draws = rng.beta(state.alpha, state.beta, size=(self.draws, len(state.alpha)))
        lower, upper = highest_density(state, self.level)
        is_judged = judgments > 0
        sd = np.where(is_judged, np.sqrt(state.variance), np.nan)
        return Uncertainty("model", draws, sd, lower, upper)


def _parameters(items: Index, state: BetaState) -> pl.DataFrame:
    """Return α, β, mode and variance of every item's Beta, on [0, 1], as the authors' code exports them."""
    return pl.DataFrame(
        {"item": list(items.ids)} | {name: getattr(state, name) for name in EASL.parameter_columns},
    )


def highest_density(state: BetaState, level: float) -> tuple[FloatArray, FloatArray]:
    """Return the shortest interval that holds `level` of each Beta.

    Needs α, β ≥ 1, so that the density has one hump: the shortest interval has the same density at both ends, or
    begins or ends where the density does. The lower tail is found by bisection.
    """
    low, high = np.zeros(len(state.alpha)), np.full(len(state.alpha), 1 - level)

    def quantile(probability: FloatArray) -> FloatArray:
        return np.asarray(scipy.stats.beta.ppf(probability, *state))

    for _ in range(50):
        tail = (low + high) / 2
        rises = scipy.stats.beta.logpdf(quantile(tail), *state) < scipy.stats.beta.logpdf(
            quantile(tail + level), *state
        )
        low, high = np.where(rises, tail, low), np.where(rises, high, tail)
    return quantile(high), quantile(np.minimum(high + level, 1.0))
