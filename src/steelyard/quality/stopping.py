"""When enough has been asked: looks at a growing study that do not fool themselves by peeking.

Each look may err with probability α/looks, so that all of them together err with probability α at most,
however the judgments were chosen and however the looks hang together (Bonferroni's inequality is the
simplest α-spending). A look decides by a bound, not by the estimate: that the reliability is surely above the
target, that intervals which hold at every look are narrow enough, that the top k are surely the top k.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from steelyard.errors import ConfigError, DataError
from steelyard.models.fit import Model
from steelyard.observations import FloatArray, Mixed, Observations

Measure = Literal["split_half", "interval_width", "top_k"]


@dataclass(frozen=True, slots=True)
class StopRule:
    """When to stop: `measure` reaches `target`, judged at so many looks, wrongly with probability `alpha` at most."""

    measure: Measure
    target: float
    looks: int = 10
    alpha: float = 0.05
    spearman_brown: bool = False

    @property
    def alpha_per_look(self) -> float:
        """How often one look may err."""
        return self.alpha / self.looks


@dataclass(frozen=True, slots=True)
class Look:
    """What one look saw. `bound` is what was held against `target`."""

    number: int
    judgments: int
    value: float | None
    bound: float | None
    target: float
    reached: bool
    said: str


def take_look(rule: StopRule, number: int, observations: Observations, model: Model) -> Look:
    """Look at the judgments so far, and decide."""
    measure = {"split_half": _split_half, "interval_width": _interval_width, "top_k": _top_k}[rule.measure]
    try:
        value, bound, reached, said = measure(rule, observations, model)
    except DataError as error:
        value, bound, reached, said = None, None, False, f"nothing to measure yet: {error.problems[0].what}"
    return Look(number, len(observations), value, bound, rule.target, reached, said)


def _split_half(
    rule: StopRule, observations: Observations, model: Model
) -> tuple[float | None, float | None, bool, str]:
    from steelyard.reliability import split_half

    name = "split_half_spearman_corrected" if rule.spearman_brown else "split_half_spearman"
    if isinstance(observations, Mixed):
        # Halves of several ways of asking are not alike: the way with the most answers speaks for all.
        observations = max(observations.parts, key=len)
    found = split_half(observations, level=1 - 2 * rule.alpha_per_look)[name]
    if found.value is None or found.lower is None:
        return found.value, None, False, found.note
    stepped = ", stepped up" if rule.spearman_brown else ""
    said = f"split-half reliability{stepped} {found.value:.3f}, surely above {found.lower:.3f}"
    return found.value, found.lower, found.lower >= rule.target, said


def _interval_width(
    rule: StopRule, observations: Observations, model: Model
) -> tuple[float | None, float | None, bool, str]:
    scores = _at_level(model, 1 - rule.alpha_per_look).fit(observations).scores
    width = (scores["upper"] - scores["lower"]).to_numpy()
    known = width[np.isfinite(width)]
    if len(known) < scores.height:
        return None, None, False, f"{scores.height - len(known)} items have no interval yet"
    mean = float(known.mean())
    said = f"the intervals are {mean:.3g} wide on average, at a level that holds over all looks"
    return mean, mean, mean <= rule.target, said


def _top_k(rule: StopRule, observations: Observations, model: Model) -> tuple[float | None, float | None, bool, str]:
    scores = model.fit(observations).scores.sort("score", descending=True, nulls_last=True)
    k = round(rule.target)
    if k >= scores.height:
        raise ConfigError(f"there are no more than {scores.height} items.", f"Set a target below {scores.height}.")
    error = misplaced(scores, k)
    if error is None:
        return None, None, False, "some items have no standard error yet"
    said = f"the top {k} are others with probability {error:.3g} at most"
    return error, rule.alpha_per_look, error <= rule.alpha_per_look, said


def misplaced(scores: pl.DataFrame, k: int) -> float | None:
    """Bound the probability that an item below the first k belongs among them.

    It is the sum, over every pair across the border, of the probability that the two stand the other way
    round. `scores` are sorted, best first; None if an item has no standard error.
    """
    # Most studies never look; scipy.stats takes a while to import.
    from scipy import stats

    score, sd = (scores[name].to_numpy().astype(float) for name in ("score", "sd"))
    if not (np.isfinite(score).all() and np.isfinite(sd).all()):
        return None
    spread: FloatArray = np.sqrt(sd[:k, None] ** 2 + sd[None, k:] ** 2)
    gap = score[:k, None] - score[None, k:]
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.where(spread > 0, gap / spread, np.where(gap > 0, np.inf, 0.0))
    degrees = np.minimum(_degrees(scores)[:k, None], _degrees(scores)[None, k:])
    return float(min(1.0, np.asarray(stats.t.sf(apart, degrees)).sum()))


def _degrees(scores: pl.DataFrame) -> FloatArray:
    """Few judgments estimate their own spread badly: as many degrees of freedom as judgments, less one."""
    degrees: FloatArray = np.maximum(scores["judgments"].to_numpy().astype(float) - 1, 1)
    return degrees


def _at_level(model: Model, level: float) -> Model:
    known = {field.name for field in fields(model)}  # type: ignore[arg-type]
    if "level" not in known:
        raise ConfigError(
            f"{model.name} has no intervals to watch.", "Stop by split_half, or choose another model.", field="stop"
        )
    changes: dict[str, Any] = {"level": level}
    return replace(model, **changes)  # type: ignore[type-var]
