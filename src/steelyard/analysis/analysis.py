"""The analysis of a study: everything that dashboard, report, command line and exports show, computed once."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from steelyard.analysis.annotators import AnnotatorReader, annotator_table
from steelyard.analysis.carelessness import careless_signals
from steelyard.analysis.history import History, HistoryReader, history_of, observations_of
from steelyard.analysis.kinds import KindAgreement, agreement_by_kind, people_and_models
from steelyard.analysis.marked_errors import error_counts, severity_order
from steelyard.analysis.rater_effects import RaterEffects, rater_effects
from steelyard.analysis.reliability import StageReliability, stage_reliability, with_marks, without_tasks
from steelyard.analysis.tournaments import TournamentAnalysis, has_tournaments, tournament_analysis
from steelyard.analysis.verdict import Verdict, verdict_of
from steelyard.designs.tournament import Tournament
from steelyard.errors import DataError, ModelFailedError
from steelyard.models.fit import Fit
from steelyard.observations import Index, Mixed, Observations, Spans
from steelyard.records import Judgment
from steelyard.reliability import MarkAgreement, answer_distributions, mark_agreement, soft_labels
from steelyard.reliability.distributions import SCHEMA
from steelyard.study import Stage, Study
from steelyard.study.fitting import kind_for
from steelyard.study.judge_scores import latest_judgments
from steelyard.study.judges import ScoreBasis
from steelyard.study.marks import marking_stages
from steelyard.study.observing import ObservationCollector
from steelyard.study.pseudonyms import Names
from steelyard.study.systems import has_systems, kind_of_systems

if TYPE_CHECKING:
    from steelyard.models.systems.comparison import SystemComparison


class Collectors:
    """Observations of a study's judgments, by kind and stage; each judgment is turned into observations once.

    `restart` when judgments that were read before have changed.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._protocols = {stage.name: stage.protocol for stage in study.config.stages}
        self._by_key: dict[tuple[str, str | None], tuple[ObservationCollector, int]] = {}
        self._annotators: AnnotatorReader | None = None

    def restart(self) -> None:
        """Forget all observations."""
        self._by_key.clear()
        self._annotators = None

    @property
    def annotators(self) -> AnnotatorReader:
        """What the table of annotators needs of each judgment."""
        if self._annotators is None:
            # Not at the beginning: it imports modules that the first figures do not need.
            self._annotators = AnnotatorReader(self._study)
        return self._annotators

    def observations(self, judgments: Sequence[Judgment], kind: str, stage: str | None) -> dict[str, Observations]:
        """Return the observations of the judgments that count, which continue those of the last call."""
        if kind == Mixed.kind:
            return observations_of(self._study, (one for one in judgments if one.counts), kind, stage)
        collector, start = self._by_key.get((kind, stage)) or (ObservationCollector(kind, self._protocols), 0)
        new = (one for one in judgments[start:] if one.counts and stage in {None, one.stage})
        collector.add(new)
        self._by_key[kind, stage] = (collector, len(judgments))
        return collector.observations(Index([item.id for item in self._study.items]))


class AnalysisReader:
    """Analyses of a running study: each reads only the events that were added since the last."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._reader = HistoryReader(study)
        self._collectors = Collectors(study)
        self._changes = self._reader.changes
        self.digest: str | None = None
        """Digest of the last event that was read; None if the log was rewritten meanwhile."""

    def read(self) -> Analysis:
        """Return an analysis as of the last event, with picks, under the annotators' real ids."""
        history = self._reader.read()
        if self._reader.changes != self._changes:
            self._changes = self._reader.changes
            self._collectors.restart()
        digest = self._study.core.log.store.digest_of(history.seq)
        self.digest = digest if self._reader.is_current() else None
        return Analysis(self._study, history, self._study.privacy.names(real=True), _collectors=self._collectors)


@dataclass(eq=False)
class Analysis:
    """A study, as of one event of its log, with everything that is computed from it. Each result is computed once."""

    study: Study
    history: History
    names: Names
    failure: str = ""
    """The traceback, if `fit` found that the model fails on these judgments."""
    _observed: dict[tuple[str, str | None, bool], dict[str, Observations]] = field(default_factory=dict)
    _collectors: Collectors | None = None

    @classmethod
    def of(cls, study: Study, *, real_ids: bool = False, picks: bool = False) -> Analysis:
        """Read a study's log; annotators have pseudonyms unless `real_ids`. `picks` reads how tasks were chosen."""
        return cls(study, history_of(study, picks=picks), study.privacy.names(real=real_ids))

    @property
    def seq(self) -> int:
        """The last event that the analysis includes."""
        return self.history.seq

    @cached_property
    def judgments(self) -> list[Judgment]:
        """Every judgment by people, and by models if the study counts them in the scores."""
        counted = [judgment for judgment in self.history.model_records if judgment.in_scores]
        if not counted:
            return list(self.history.records)
        return sorted([*self.history.records, *counted], key=lambda judgment: judgment.seq)

    def observations(self, stage: Stage, kind: str | None = None) -> dict[str, Observations]:
        """Return people's judgments of a stage that count as observations, by criterion, without their tasks.

        Reliability and agreement are computed from these: models' answers are never pooled with people's there.
        """
        collected = self._collected(kind or stage.protocol.kinds[0], stage.name, people=True)
        return {name: without_tasks(part) for name, part in collected.items()}

    def model_observations(self, stage: Stage) -> dict[str, Observations]:
        """Return models' judgments of a stage as observations, by criterion, whether or not the scores use them.

        Repeated calls are included: statistics average an annotator's answers to one question.
        """
        excluded = self.history.excluded
        names = [name for name in self.study.judges.names() if name not in excluded]
        judgments = (judgment for name in names for judgment in latest_judgments(self.study, name))
        counted = (judgment for judgment in judgments if judgment.purpose != "check")
        collected = observations_of(self.study, counted, stage.protocol.kinds[0], stage.name)
        return {name: without_tasks(part) for name, part in collected.items()}

    def _collected(self, kind: str, stage: str | None, *, people: bool = False) -> dict[str, Observations]:
        # In a study with one stage, the scores and the stage's statistics use the same observations.
        is_pooled = not people and any(judgment.in_scores for judgment in self.history.model_records)
        key = (kind, stage if len(self.study.config.stages) > 1 else None, is_pooled)
        if key not in self._observed:
            # Judgments by models are in another order than those by people, so these are not collected bit by bit.
            collectors = self._collectors if self._collectors is not None and not is_pooled else Collectors(self.study)
            judgments = self.judgments if is_pooled else self.history.records
            self._observed[key] = collectors.observations(judgments, *key[:2])
        return self._observed[key]

    @cached_property
    def fit(self) -> Fit | str:
        """The scores, or a sentence that says why there are none."""
        stages = self.study.config.stages
        try:
            kind = kind_for(self.study.config.model, stages)
            return self.study.fit(observations=self._collected(kind, None))
        except DataError as error:
            return error.problems[0].what
        except ModelFailedError as error:
            # Everything else does not need the model and is still computed.
            self.failure = "".join(traceback.format_exception(error))
            return error.problems[0].what

    @cached_property
    def systems(self) -> SystemComparison | str | None:
        """The comparison of the systems, or a sentence that says why there is none; None without systems."""
        study = self.study
        if not has_systems(study.items):
            return None
        try:
            kind = kind_of_systems(study.config.stages)
            return study.systems(observations=self._collected(kind, None))
        except DataError as error:
            return error.problems[0].what

    def system_table(self, *, differences: bool = False) -> pl.DataFrame:
        """Return the systems' scores, or their differences; refuse a study without systems."""
        comparison = self.systems
        if comparison is None or isinstance(comparison, str):
            raise DataError(
                comparison or "the items do not belong to two or more systems.",
                "Name each item's system in the column 'system' of the items file.",
            )
        return comparison.differences if differences else comparison.scores

    @property
    def model_failed(self) -> bool:
        """Whether the model raises an exception on these judgments."""
        return isinstance(self.fit, str) and bool(self.failure)

    @cached_property
    def annotators(self) -> pl.DataFrame:
        """The table of annotators, people and models, under their names outside the study."""
        reader = None if self._collectors is None else self._collectors.annotators
        table = annotator_table(self.history, self.study, reader)
        for extra in (self.rater_effects.by_annotator(), self._careless_signals()):
            table = table.join(extra, on="annotator", how="left", maintain_order="left")
        return self.names.frame(table).with_columns(self.names.column("copies"))

    def _careless_signals(self) -> pl.DataFrame:
        has_models = bool(self.history.model_records)
        stages = self.study.config.stages if has_models else ()
        parts = [(stage.name, self.model_observations(stage)) for stage in stages]
        return careless_signals(self.history, self.rater_effects.answers, parts)

    @cached_property
    def rater_effects(self) -> RaterEffects:
        """Infit, outfit, severity and drift from people's judgments that count, under the annotators' real ids."""
        stages = self.study.config.stages
        return rater_effects(
            self.history,
            [(stage.name, self._collected(stage.protocol.kinds[0], stage.name, people=True)) for stage in stages],
        )

    @cached_property
    def agreement_by_kind(self) -> list[KindAgreement]:
        """Agreement among people, among models, and between them, by stage and criterion; empty without models."""
        if not self.history.model_records:
            return []
        return [
            row
            for stage in self.study.config.stages
            for row in agreement_by_kind(stage.name, self.observations(stage), self.model_observations(stage))
        ]

    @property
    def basis(self) -> ScoreBasis:
        """How much of the scores rests on people and how much on models."""
        return self.study.judges.basis()

    @property
    def people_and_models(self) -> str:
        """How much of the scores rests on models, and how well they agree with people; empty without models."""
        return people_and_models(self.basis, self.agreement_by_kind)

    @cached_property
    def reliability(self) -> list[StageReliability]:
        """Reliability, agreement and order, by stage and criterion."""
        return [
            self._with_marks(
                stage,
                self._with_whole_tournaments(
                    stage,
                    stage_reliability(stage.name, criterion, part, None if criterion else self._comparisons(stage)),
                ),
            )
            for stage in self.study.config.stages
            for criterion, part in self.observations(stage).items()
            if len(part)
        ]

    def _with_marks(self, stage: Stage, result: StageReliability) -> StageReliability:
        agreement = self.mark_agreement.get(stage.name)
        return result if agreement is None else with_marks(result, agreement)

    @cached_property
    def mark_agreement(self) -> dict[str, MarkAgreement]:
        """The agreement of people on marked errors, by stage; only of stages that ask for them."""
        lengths = {item.id: len(item.text) for item in self.study.items}
        return {
            stage.name: mark_agreement(spans, lengths=lengths, severity_order=severity_order(stage.protocol))
            for stage in marking_stages(self.study)
            if isinstance(spans := self.observations(stage, Spans.kind).get(""), Spans) and len(spans)
        }

    @cached_property
    def error_counts(self) -> pl.DataFrame:
        """How many errors were marked by system, severity and category, and per judged text."""
        return error_counts(self.study, self.judgments)

    def _with_whole_tournaments(self, stage: Stage, result: StageReliability) -> StageReliability:
        """Replace the cycle statistics of a tournament by those of whole tournaments."""
        if not isinstance(stage.design, Tournament) or self.tournaments is None:
            return result
        cycles = {statistic.key: statistic for statistic in self.tournaments.statistics}
        return replace(result, order=tuple(cycles.get(statistic.key, statistic) for statistic in result.order))

    def _comparisons(self, stage: Stage) -> Observations | None:
        if "comparisons" not in stage.protocol.kinds[1:]:
            return None
        return self.observations(stage, "comparisons").get("")

    def reliability_table(self) -> pl.DataFrame:
        """Return every statistic of reliability, agreement and order: stage, criterion, statistic, value, interval …"""
        tables = [part.table() for part in self.reliability]
        tables += [row.table() for row in self.agreement_by_kind]
        schema = {"stage": pl.String, "criterion": pl.String, "statistic": pl.String}
        return pl.concat(tables) if tables else pl.DataFrame(schema=schema)

    @cached_property
    def distributions(self) -> pl.DataFrame:
        """How many people gave each answer to an item, by stage and criterion; see `answer_distributions`."""
        tables = [
            answer_distributions(part).select(
                pl.lit(stage.name).alias("stage"), pl.lit(criterion).alias("criterion"), pl.all()
            )
            for stage in self.study.config.stages
            for criterion, part in self.observations(stage).items()
            if len(part)
        ]
        schema = {"stage": pl.String, "criterion": pl.String, **SCHEMA}
        return pl.concat(tables) if tables else pl.DataFrame(schema=schema).drop("group")

    @property
    def soft_labels(self) -> pl.DataFrame:
        """The distributions with one row per item: the proportion of each answer, and their entropy."""
        return soft_labels(self.distributions)

    @cached_property
    def verdict(self) -> Verdict:
        """Whether the scores are reliable enough, and how many judgments are missing."""
        return verdict_of(self)

    @cached_property
    def tournaments(self) -> TournamentAnalysis | None:
        """The tournaments of the study, source by source; None if it has none."""
        if not has_tournaments(self.study):
            return None
        collected = self._collected("comparisons", None)
        return tournament_analysis(self.study, next((part.to_comparisons() for part in collected.values()), None))

    @property
    def split_half_target(self) -> float | None:
        """The plain split-half reliability at which the study stops, if that is its rule."""
        stop = self.study.config.stop
        if stop is None or stop.measure != "split_half":
            return None
        # The inverse of the Spearman–Brown formula.
        return stop.target / (2 - stop.target) if stop.spearman_brown else stop.target
