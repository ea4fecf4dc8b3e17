"""Reliability and agreement of a study's judgments, by stage and criterion."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from steelyard.observations import UNKNOWN, Index, Observations
from steelyard.reliability import MarkAgreement, agreement, position_bias, split_half_by_budget
from steelyard.reliability.cycles import GRAPHS, cycle_consistency
from steelyard.reliability.split_half import BY_ANNOTATORS
from steelyard.reliability.split_trials import Halves
from steelyard.reliability.statistic import Statistic, statistics_table

CURVE = "split_half_spearman"
_CURVE_TRIALS, _CURVE_POINTS, _CURVE_ROWS = 20, 10, 500_000
ORDER_STATISTICS = (*GRAPHS, "position_bias")


@dataclass(frozen=True, slots=True, eq=False)
class StageReliability:
    """Reliability of one criterion of a stage: its statistics, those of order, and how it grows with judgments."""

    stage: str
    criterion: str
    kind: str
    statistics: tuple[Statistic, ...]
    order: tuple[Statistic, ...]
    notes: tuple[str, ...]
    curve: pl.DataFrame

    def table(self) -> pl.DataFrame:
        """Return all statistics, one per row, after the columns stage and criterion."""
        named = (pl.lit(self.stage).alias("stage"), pl.lit(self.criterion).alias("criterion"), pl.all())
        return statistics_table((*self.statistics, *self.order)).select(named)


def stage_reliability(
    stage: str, criterion: str, observations: Observations, comparisons: Observations | None
) -> StageReliability:
    """Compute the statistics of one criterion of a stage.

    `comparisons` are those that the same answers imply, where the stage asks otherwise; cycles and position bias are
    computed from them.
    """
    result = agreement(observations)
    statistics = [statistic for statistic in result.statistics if statistic.key not in ORDER_STATISTICS]
    statistics.sort(key=lambda statistic: not statistic.key.startswith("split_half"))
    order = [statistic for statistic in result.statistics if statistic.key in ORDER_STATISTICS]
    if not order and comparisons is not None and len(comparisons):
        order = [*cycle_consistency(comparisons).statistics, position_bias(comparisons).statistic]
    curve = _curve(statistics, observations)
    return StageReliability(stage, criterion, observations.kind, tuple(statistics), tuple(order), result.notes, curve)


def with_marks(result: StageReliability, marks: MarkAgreement) -> StageReliability:
    """Add the agreement on marks to the statistics of the scores."""
    return replace(result, statistics=(*result.statistics, *marks.statistics), notes=(*result.notes, *marks.notes))


def without_tasks(observations: Observations) -> Observations:
    """Drop the task of each observation.

    A study gives every answer an id of its own, so no task is ever answered twice; what can be compared are answers
    about the same items.
    """
    return replace(observations, tasks=Index(), task=np.full(len(observations), UNKNOWN, np.int32))


def _curve(statistics: Iterable[Statistic], observations: Observations) -> pl.DataFrame:
    is_defined = any(f.key == CURVE and f.value is not None and BY_ANNOTATORS not in f.note for f in statistics)
    if not is_defined:
        return pl.DataFrame()
    most = int(np.median(Halves.of(observations, None, "unit", 0).splitter.sizes)) // 2
    budgets = sorted({round(step) for step in np.linspace(1, max(most, 1), min(max(most, 1), _CURVE_POINTS)).tolist()})
    trials = int(np.clip(_CURVE_ROWS // len(observations), 5, _CURVE_TRIALS))
    curve = split_half_by_budget(observations, budgets, trials=trials).filter(pl.col("statistic") == CURVE)
    return curve if curve.height > 1 else pl.DataFrame()
