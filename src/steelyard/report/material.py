"""What a report is made of, worked out once and shared by its sections."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from steelyard.errors import DataError
from steelyard.models.fit import Fit
from steelyard.observations import UNKNOWN, Index, Observations
from steelyard.records import Judgment
from steelyard.reliability import agreement, position_bias, split_half_by_budget
from steelyard.reliability.cycles import GRAPHS, cycle_consistency
from steelyard.reliability.split_half import BY_ANNOTATORS
from steelyard.reliability.split_trials import Halves
from steelyard.reliability.statistic import Statistic
from steelyard.report.history import History, history_of, judgments_of, observations_of
from steelyard.report.people import annotator_table
from steelyard.study import Stage, Study
from steelyard.study.pseudonyms import Names
from steelyard.study.results import kind_for

CURVE = "split_half_spearman"
_CURVE_TRIALS, _CURVE_POINTS, _CURVE_ROWS = 20, 10, 500_000
ORDER_STATISTICS = (*GRAPHS, "position_bias")


@dataclass(frozen=True, slots=True, eq=False)
class Trust:
    """Reliability of one criterion of a stage: its statistics, those of order, and how it grows with judgments."""

    stage: str
    criterion: str
    kind: str
    statistics: tuple[Statistic, ...]
    order: tuple[Statistic, ...]
    notes: tuple[str, ...]
    curve: pl.DataFrame


@dataclass(eq=False)
class Material:
    """A study with all that its report says of it."""

    study: Study
    history: History
    names: Names
    _observed: dict[tuple[str, str | None], dict[str, Observations]] = field(default_factory=dict)

    @classmethod
    def of(cls, study: Study, *, real_ids: bool = False) -> Material:
        """Read a study's log; annotators go by pseudonyms unless `real_ids`."""
        return cls(study, history_of(study, picks=False), study.names(real=real_ids))

    @cached_property
    def judgments(self) -> list[Judgment]:
        """Every judgment of the history, as the study's own records."""
        return list(judgments_of(self.history, self.study))

    def observations(self, stage: Stage, kind: str | None = None) -> dict[str, Observations]:
        """Return what the judgments of a stage that count say, by criterion, without the tasks."""
        found = self._collected(kind or stage.protocol.kinds[0], stage.name)
        return {name: without_tasks(part) for name, part in found.items()}

    def _collected(self, kind: str, stage: str | None) -> dict[str, Observations]:
        # All stages are the one stage, if there is just one: the scores rest on the same observations.
        key = (kind, stage if len(self.study.config.stages) > 1 else None)
        if key not in self._observed:
            counted = (judgment for judgment in self.judgments if judgment.counts)
            self._observed[key] = observations_of(self.history, self.study, *key, judgments=counted)
        return self._observed[key]

    @cached_property
    def fit(self) -> Fit | str:
        """The scores, or why there are none."""
        stages = self.study.config.stages
        try:
            kind = kind_for(self.study.config.model, stages)
            return self.study.fit(observations=self._collected(kind, None))
        except DataError as error:
            return error.problems[0].what

    @cached_property
    def annotators(self) -> pl.DataFrame:
        """The table of annotators, under their names in the report."""
        return self.names.frame(annotator_table(self.history, self.study, self.judgments))

    @cached_property
    def trust(self) -> list[Trust]:
        """Reliability and order, by stage and criterion."""
        return [
            _trust(self, stage, criterion, part)
            for stage in self.study.config.stages
            for criterion, part in self.observations(stage).items()
            if len(part)
        ]


def without_tasks(observations: Observations) -> Observations:
    """Forget which task an observation was made in.

    A study names every answer by itself, so that its tasks are never answered twice; what can be compared is
    what was said of the same items.
    """
    return replace(observations, tasks=Index(), task=np.full(len(observations), UNKNOWN, np.int32))


def _trust(material: Material, stage: Stage, criterion: str, part: Observations) -> Trust:
    found = agreement(part)
    statistics = [statistic for statistic in found.statistics if statistic.key not in ORDER_STATISTICS]
    statistics.sort(key=lambda statistic: not statistic.key.startswith("split_half"))
    order = [statistic for statistic in found.statistics if statistic.key in ORDER_STATISTICS]
    if not order and "comparisons" in stage.protocol.kinds and not criterion:
        pairs = material.observations(stage, "comparisons").get("")
        if pairs is not None and len(pairs):
            order = [*cycle_consistency(pairs).statistics, position_bias(pairs).statistic]
    return Trust(
        stage.name, criterion, part.kind, tuple(statistics), tuple(order), found.notes, _curve(statistics, part)
    )


def _curve(statistics: Iterable[Statistic], part: Observations) -> pl.DataFrame:
    known = any(f.key == CURVE and f.value is not None and BY_ANNOTATORS not in f.note for f in statistics)
    if not known:
        return pl.DataFrame()
    most = int(np.median(Halves.of(part, None, "unit", 0).splitter.sizes)) // 2
    budgets = sorted({round(step) for step in np.linspace(1, max(most, 1), min(max(most, 1), _CURVE_POINTS)).tolist()})
    trials = int(np.clip(_CURVE_ROWS // len(part), 5, _CURVE_TRIALS))
    curve = split_half_by_budget(part, budgets, trials=trials).filter(pl.col("statistic") == CURVE)
    return curve if curve.height > 1 else pl.DataFrame()
