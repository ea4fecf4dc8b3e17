"""Stopping rules: interim analyses of a growing study with a controlled error probability.

Each of K interim analyses may err with probability α/K, so all of them together err with probability α at most, however
the judgments were chosen and however the analyses depend on each other (Bonferroni, the simplest α-spending). An
analysis decides by a bound, not by the estimate: the lower bound of the reliability is above the target, simultaneous
intervals are narrow enough, or the top k items are the top k with high probability.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from steelyard.errors import ConfigError, DataError, ModelFailedError
from steelyard.models.fit import Model, failures_reported
from steelyard.observations import FloatArray, Observations

Measure = Literal["split_half", "interval_width", "top_k"]


@dataclass(frozen=True, slots=True)
class StopRule:
    """Stop when `measure` reaches `target`; over all `interim_analyses`, the error probability is at most `alpha`."""

    measure: Measure
    target: float
    interim_analyses: int = 10
    alpha: float = 0.05
    spearman_brown: bool = False

    @property
    def alpha_per_analysis(self) -> float:
        """Error probability of one interim analysis."""
        return self.alpha / self.interim_analyses


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


def run_interim_analysis(rule: StopRule, number: int, observations: Observations, model: Model) -> InterimAnalysis:
    """Analyse the judgments so far, and decide whether to stop."""
    measure = {"split_half": _split_half, "interval_width": _interval_width, "top_k": _top_k}[rule.measure]
    try:
        with failures_reported(model):
            value, bound, reached, summary = measure(rule, observations, model)
    except (DataError, ModelFailedError) as error:
        value, bound, reached, summary = None, None, False, f"not measurable yet: {error.problems[0].what}"
    return InterimAnalysis(number, len(observations), value, bound, rule.target, reached, summary)


def _split_half(
    rule: StopRule, observations: Observations, model: Model
) -> tuple[float | None, float | None, bool, str]:
    from steelyard.reliability import split_half

    name = "split_half_spearman_corrected" if rule.spearman_brown else "split_half_spearman"
    # Halves of different observation kinds cannot be compared: use the kind with the most observations.
    observations = max(observations.components(), key=len)
    statistic = split_half(observations, level=1 - 2 * rule.alpha_per_analysis)[name]
    if statistic.value is None or statistic.lower is None:
        return statistic.value, None, False, statistic.note
    suffix = ", Spearman–Brown corrected" if rule.spearman_brown else ""
    summary = f"split-half reliability{suffix} {statistic.value:.3f}, lower bound {statistic.lower:.3f}"
    return statistic.value, statistic.lower, statistic.lower >= rule.target, summary


def _interval_width(
    rule: StopRule, observations: Observations, model: Model
) -> tuple[float | None, float | None, bool, str]:
    scores = _at_level(model, 1 - rule.alpha_per_analysis).fit(observations).scores
    width = (scores["upper"] - scores["lower"]).to_numpy()
    widths = width[np.isfinite(width)]
    if len(widths) < scores.height:
        return None, None, False, f"{scores.height - len(widths)} items have no interval yet"
    mean = float(widths.mean())
    summary = f"mean interval width {mean:.3g}, at a level adjusted for all interim analyses"
    return mean, mean, mean <= rule.target, summary


def _top_k(rule: StopRule, observations: Observations, model: Model) -> tuple[float | None, float | None, bool, str]:
    scores = model.fit(observations).scores.sort("score", descending=True, nulls_last=True)
    k = round(rule.target)
    if k >= scores.height:
        raise ConfigError(f"there are only {scores.height} items.", f"Set a target below {scores.height}.")
    error = misplaced(scores, k)
    if error is None:
        return None, None, False, "some items have no standard error yet"
    summary = f"probability that the top {k} are wrong: at most {error:.3g}"
    return error, rule.alpha_per_analysis, error <= rule.alpha_per_analysis, summary


def misplaced(scores: pl.DataFrame, k: int) -> float | None:
    """Return an upper bound on the probability that an item below the first k belongs among them.

    It is the sum, over every pair across the border, of the probability that the two are in reverse order. `scores` are
    sorted, best first; None if an item has no standard error.
    """
    # Most studies have no stopping rule, and scipy.stats takes long to import.
    from scipy import stats

    score, sd = (scores[name].to_numpy().astype(float) for name in ("score", "sd"))
    if not (np.isfinite(score).all() and np.isfinite(sd).all()):
        return None
    sd_of_difference: FloatArray = np.sqrt(sd[:k, None] ** 2 + sd[None, k:] ** 2)
    difference = score[:k, None] - score[None, k:]
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(sd_of_difference > 0, difference / sd_of_difference, np.where(difference > 0, np.inf, 0.0))
    degrees = np.minimum(_degrees(scores)[:k, None], _degrees(scores)[None, k:])
    return float(min(1.0, np.asarray(stats.t.sf(z, degrees)).sum()))


def _degrees(scores: pl.DataFrame) -> FloatArray:
    """Return the degrees of freedom of each standard error: number of judgments minus one."""
    degrees: FloatArray = np.maximum(scores["judgments"].to_numpy().astype(float) - 1, 1)
    return degrees


def _at_level(model: Model, level: float) -> Model:
    names = {field.name for field in fields(model)}  # type: ignore[arg-type]
    if "level" not in names:
        raise ConfigError(
            f"the model {model.name} has no intervals.", "Stop by split_half, or choose another model.", field="stop"
        )
    changes: dict[str, Any] = {"level": level}
    return replace(model, **changes)  # type: ignore[type-var]
