"""Stopping rules: interim analyses of a growing study with a controlled error probability.

The judgments of an earlier analysis are among those of a later one, so the errors of the analyses are correlated. The
critical value of a group-sequential test (Pocock 1977) uses that: all analyses together err with probability α at most,
but each may err more often than α/K. An analysis decides by a bound, not by the estimate, and with the study's model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import polars as pl

from steelyard.errors import ConfigError, DataError, ModelFailedError
from steelyard.models.fit import Fit, Model, failures_reported
from steelyard.models.point_scores import PointScores
from steelyard.observations import FloatArray, Observations
from steelyard.records import Item

Measure = Literal["split_half", "interval_width", "top_k", "systems"]

_GROWING = ("split_half", "interval_width")
_CLOSE_ANALYSES = 2
"""Measures that improve with every judgment, and the analyses that can be close to their target but below it."""
_TRIALS, _GROUP_TRIALS = 20, 10
"""Random halves for the estimate of a reliability, and for each group left out."""
_TOP_DRAWS = 4000
_GRID = 401
"""Points at which the density of a test statistic is tabulated."""


@dataclass(frozen=True, slots=True)
class StopRule:
    """Stop when `measure` reaches `target`; over all `interim_analyses`, the error probability is at most `alpha`."""

    measure: Measure
    target: float
    interim_analyses: int = 10
    alpha: float = 0.05
    spearman_brown: bool = False

    @property
    def critical_value(self) -> float:
        """Standard errors by which an estimate must exceed the target, at every analysis.

        Reliability and precision grow with the judgments. Only the last analyses before the target is reached can
        therefore stop a study falsely: at earlier ones, the true value is several standard errors away. They count as
        two.
        """
        analyses = self.interim_analyses
        if self.measure in _GROWING:
            analyses = min(analyses, _CLOSE_ANALYSES)
        return critical_value(analyses, self.alpha)

    @property
    def alpha_per_analysis(self) -> float:
        """One-sided error probability of one interim analysis."""
        from scipy import special

        return float(special.ndtr(-self.critical_value))


@cache
def critical_value(analyses: int, alpha: float) -> float:
    """Return Pocock's one-sided critical value for equally spaced analyses, found by bisection."""
    from scipy import optimize, special

    if analyses == 1:
        return float(-special.ndtri(alpha))
    bonferroni = float(-special.ndtri(alpha / analyses))
    return float(
        optimize.brentq(
            lambda c: crossing_probability(c, analyses) - alpha, -special.ndtri(alpha), bonferroni, xtol=1e-6
        )
    )


def crossing_probability(critical: float, analyses: int) -> float:
    """Return the probability that z exceeds a critical value at any of some equally spaced analyses, under the null.

    Sums of k independent standard normal increments are tabulated as long as none was above critical · √k (Armitage,
    McPherson & Rowe 1969).
    """
    from scipy import special

    lowest = -8.0 * np.sqrt(analyses)
    x, step = np.linspace(lowest, critical, _GRID, retstep=True)
    density: FloatArray = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    crossed = float(special.ndtr(-critical))
    for number in range(2, analyses + 1):
        weights = np.full(_GRID, step)
        weights[[0, -1]] /= 2
        end = critical * np.sqrt(number)
        crossed += float((special.ndtr(x - end) * density * weights).sum())
        y, next_step = np.linspace(lowest, end, _GRID, retstep=True)
        kernel = np.exp(-((y[:, None] - x[None, :]) ** 2) / 2) / np.sqrt(2 * np.pi)
        density, x, step = kernel @ (density * weights), y, next_step
    return crossed


@dataclass(frozen=True, slots=True)
class InterimAnalysis:
    """Result of one interim analysis. `bound` is the value that was compared with `target`."""

    number: int
    judgments: int
    value: float | None
    bound: float | None
    target: float
    reached: bool
    summary: str


_Result = tuple[float | None, float | None, bool, str]
"""Value, bound, whether the target is reached, and a summary."""


def run_interim_analysis(
    rule: StopRule, number: int, observations: Observations, model: Model, items: Sequence[Item] = ()
) -> InterimAnalysis:
    """Analyse the judgments so far, and decide whether to stop; `items` have the systems to compare."""
    try:
        with failures_reported(model):
            if rule.measure == "split_half":
                value, bound, reached, summary = _split_half(rule, observations, model)
            elif rule.measure == "interval_width":
                value, bound, reached, summary = _interval_width(rule, observations, model)
            elif rule.measure == "top_k":
                value, bound, reached, summary = _top_k(rule, observations, model)
            else:
                value, bound, reached, summary = _systems(rule, observations, items)
    except (DataError, ModelFailedError) as error:
        value, bound, reached, summary = None, None, False, f"not measurable yet: {error.problems[0].what}"
    return InterimAnalysis(number, len(observations), value, bound, rule.target, reached, summary)


def _split_half(rule: StopRule, observations: Observations, model: Model) -> _Result:
    """Bound the split-half reliability of these items: what other judgments of them would give."""
    from steelyard.reliability import split_half
    from steelyard.reliability.fixed_items import GROUPS, group_variance, jackknife_groups
    from steelyard.reliability.split_trials import Halves, spearman_brown

    # Halves of different observation kinds cannot be compared: use the kind with the most observations.
    observations = max(observations.components(), key=len)
    scorer = PointScores(model) if observations.kind in model.accepts else None
    statistic = split_half(observations, model=scorer, trials=_TRIALS)["split_half_spearman"]
    if statistic.value is None:
        return None, None, False, statistic.note
    # The items are fixed: the bound is for other annotators, or judgments, of the same items.
    group = jackknife_groups(observations, least=GROUPS).group
    estimates = Halves.of(observations, scorer, "unit", 0).without_groups(group, _GROUP_TRIALS)["spearman"]
    if len(estimates) < GROUPS:
        return statistic.value, None, False, "too few judgments to estimate the uncertainty of the reliability"
    variance = group_variance(estimates)
    centre = float(np.arctanh(min(statistic.value, 0.999999)))
    bound = float(np.tanh(centre - rule.critical_value * variance**0.5))
    value, suffix = statistic.value, ""
    if rule.spearman_brown:
        value, bound, suffix = spearman_brown(value), spearman_brown(bound), ", Spearman–Brown corrected"
    summary = f"split-half reliability{suffix} {value:.3f}, lower bound {bound:.3f}"
    return value, bound, bound >= rule.target, summary


def _interval_width(rule: StopRule, observations: Observations, model: Model) -> _Result:
    """Bound the mean width of the intervals at the model's level: what other judgments would give on average."""
    if "level" not in model.settings():
        raise ConfigError(
            f"the model {model.name} has no intervals.", "Stop by split_half, or choose another model.", field="stop"
        )
    scores = model.fit(observations).scores
    width = (scores["upper"] - scores["lower"]).to_numpy()
    widths = width[np.isfinite(width)]
    if len(widths) < scores.height:
        return None, None, False, f"{scores.height - len(widths)} items have no interval yet"
    mean = float(widths.mean())
    bound = mean + rule.critical_value * float(widths.std(ddof=1)) / len(widths) ** 0.5 if len(widths) > 1 else mean
    summary = f"mean interval width {mean:.3g}, upper bound {bound:.3g}"
    return mean, bound, bound <= rule.target, summary


def _top_k(rule: StopRule, observations: Observations, model: Model) -> _Result:
    fit = model.fit(observations)
    k = round(rule.target)
    if k >= fit.scores.height:
        raise ConfigError(f"there are only {fit.scores.height} items.", f"Set a target below {fit.scores.height}.")
    error = misplaced(fit, k)
    if error is None:
        return None, None, False, "some items have no standard error yet"
    summary = f"probability that the top {k} are wrong: {error:.3g}"
    return error, rule.alpha_per_analysis, error <= rule.alpha_per_analysis, summary


def misplaced(fit: Fit, k: int) -> float | None:
    """Return the probability that the k highest scores are not those of the k best items.

    From the joint draws of the scores, or from a t distribution of each score; None if an item has no standard error.
    """
    score, sd = (fit.scores[name].to_numpy().astype(float) for name in ("score", "sd"))
    if not (np.isfinite(score).all() and np.isfinite(sd).all()):
        return None
    order = np.argsort(-score, kind="stable")
    rng = np.random.default_rng(0)
    draws: FloatArray
    if fit.draws is not None and np.isfinite(fit.draws).all() and len(fit.draws) >= _TOP_DRAWS // 10:
        draws = fit.draws
    else:
        draws = score + sd * rng.standard_t(_degrees(fit.scores), (_TOP_DRAWS, len(score)))
    is_right = draws[:, order[:k]].min(axis=1) > draws[:, order[k:]].max(axis=1)
    # One more wrong draw: no finite number of draws makes an error impossible.
    return float((1 + (~is_right).sum()) / (1 + len(draws)))


def _degrees(scores: pl.DataFrame) -> FloatArray:
    """Return the degrees of freedom of each standard error: number of judgments minus one."""
    degrees: FloatArray = np.maximum(scores["judgments"].to_numpy().astype(float) - 1, 1)
    return degrees


def _systems(rule: StopRule, observations: Observations, items: Sequence[Item]) -> _Result:
    """Return the fraction of the pairs of systems that differ significantly, corrected for the number of pairs."""
    from steelyard.models.systems.compare_systems import of_items
    from steelyard.models.systems.comparison import SystemOptions, compare

    level = 2 * StopRule(rule.measure, rule.target, rule.interim_analyses, rule.alpha / 2).alpha_per_analysis
    pairs = compare(of_items(observations, items), SystemOptions()).differences
    p_values = pairs["p_holm"].drop_nulls().to_numpy()
    if len(p_values) < pairs.height or not len(p_values):
        return None, None, False, "some systems cannot be compared yet"
    decided = int((p_values <= level).sum())
    fraction = decided / len(p_values)
    summary = f"{decided} of {len(p_values)} pairs of systems differ significantly (adjusted p ≤ {level:.3g})"
    return fraction, fraction, fraction >= rule.target, summary
