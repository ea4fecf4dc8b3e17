"""Reliability and agreement of a study's judgments, by stage and criterion."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from steelyard.observations import UNKNOWN, Index, Observations
from steelyard.reliability import agreement, position_bias, split_half_by_budget
from steelyard.reliability.cycles import GRAPHS, cycle_consistency
from steelyard.reliability.figure import Figure, figures_table
from steelyard.reliability.split_half import BY_ANNOTATORS
from steelyard.reliability.split_trials import Halves

CURVE = "split-half (Spearman)"
_CURVE_TRIALS, _CURVE_POINTS, _CURVE_ROWS = 20, 10, 500_000
ORDER_FIGURES = (*GRAPHS, "position bias (share left)")


@dataclass(frozen=True, slots=True, eq=False)
class StageReliability:
    """Reliability of one criterion of a stage: its statistics, those of order, and how it grows with judgments."""

    stage: str
    criterion: str
    kind: str
    figures: tuple[Figure, ...]
    order: tuple[Figure, ...]
    notes: tuple[str, ...]
    curve: pl.DataFrame

    def table(self) -> pl.DataFrame:
        """Return all statistics, one per row, after the columns stage and criterion."""
        named = (pl.lit(self.stage).alias("stage"), pl.lit(self.criterion).alias("criterion"), pl.all())
        return figures_table((*self.figures, *self.order)).select(named)


def stage_reliability(
    stage: str, criterion: str, observations: Observations, comparisons: Observations | None
) -> StageReliability:
    """Compute the statistics of one criterion of a stage.

    `comparisons` are those that the same answers imply, where the stage asks otherwise; cycles and position bias are
    computed from them.
    """
    result = agreement(observations)
    figures = [figure for figure in result.figures if figure.name not in ORDER_FIGURES]
    figures.sort(key=lambda figure: not figure.name.startswith("split-half"))
    order = [figure for figure in result.figures if figure.name in ORDER_FIGURES]
    if not order and comparisons is not None and len(comparisons):
        order = [*cycle_consistency(comparisons).figures, position_bias(comparisons).figure]
    curve = _curve(figures, observations)
    return StageReliability(stage, criterion, observations.kind, tuple(figures), tuple(order), result.notes, curve)


def without_tasks(observations: Observations) -> Observations:
    """Drop the task of each observation.

    A study gives every answer an id of its own, so no task is ever answered twice; what can be compared are answers
    about the same items.
    """
    return replace(observations, tasks=Index(), task=np.full(len(observations), UNKNOWN, np.int32))


def _curve(figures: Iterable[Figure], observations: Observations) -> pl.DataFrame:
    is_defined = any(f.name == CURVE and f.value is not None and BY_ANNOTATORS not in f.note for f in figures)
    if not is_defined:
        return pl.DataFrame()
    most = int(np.median(Halves.of(observations, None, "unit", 0).splitter.sizes)) // 2
    budgets = sorted({round(step) for step in np.linspace(1, max(most, 1), min(max(most, 1), _CURVE_POINTS)).tolist()})
    trials = int(np.clip(_CURVE_ROWS // len(observations), 5, _CURVE_TRIALS))
    curve = split_half_by_budget(observations, budgets, trials=trials).filter(pl.col("figure") == CURVE)
    return curve if curve.height > 1 else pl.DataFrame()
