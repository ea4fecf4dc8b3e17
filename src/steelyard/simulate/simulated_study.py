"""A study simulated in memory: the designs, protocols and annotators of a real study, without the store.

With the same seed, annotators and answers, a simulated study asks exactly the tasks of a real study: it draws each pick
from the generator that the study would use, and notifies the designs as the study would (tests/simulate).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil
from typing import Any

import numpy as np

from steelyard.designs import NoTask, Pick
from steelyard.designs.base import generator_for
from steelyard.designs.state import AnswerNotice, DesignState
from steelyard.errors import ConfigError, DataError
from steelyard.observations import UNKNOWN, FloatArray, Index, IntArray, Observation, Observations
from steelyard.records import Item, Judgment
from steelyard.simulate.annotators import Annotators, SimulatedAnnotators, perceived_by, protocol_key
from steelyard.simulate.answers import answer_for
from steelyard.simulate.batch_answers import TaskBatch, batch_observations
from steelyard.simulate.study_driver import AnnotatorQueue
from steelyard.study.assignment import pick_from_designs
from steelyard.study.config import StudyConfig
from steelyard.study.observing import collect

ITEMS_PER_EVENT = 1000
"""Items per event in the log of a study."""

_WHEN = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class StageTasks:
    """The tasks of one stage, in order: annotator, earlier tasks of the annotator, and items.

    `row` is the number of each task among all tasks under the protocol of the stage.
    """

    who: list[int] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    items: list[tuple[int, ...]] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    """The answers, if each task was answered when it was picked."""

    def matrix(self) -> IntArray:
        """Return the item codes, one row per task, padded with UNKNOWN."""
        width = max(map(len, self.items), default=0)
        if all(len(row) == width for row in self.items):
            return np.array(self.items, np.int32).reshape(len(self.items), width)
        padded = np.full((len(self.items), width), UNKNOWN, np.int32)
        for row, codes in enumerate(self.items):
            padded[row, : len(codes)] = codes
        return padded


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedStudy:
    """The tasks of a simulated study, and their answers.

    `stages` are by number; `ended` is the reason why there were no further tasks; `complete` tells whether the designs
    were complete.
    """

    config: StudyConfig
    index: Index
    annotators: Annotators
    stages: tuple[StageTasks, ...]
    order: tuple[int, ...]
    complete: bool
    ended: str
    _cache: dict[int, TaskBatch] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of judgments."""
        return len(self.order)

    @property
    def learns(self) -> bool:
        """Whether other answers might have led to other tasks."""
        return any(stage.answers for stage in self.stages)

    def answered_by(self, annotators: SimulatedAnnotators) -> SimulatedStudy:
        """Return the same tasks, answered by the same number of other annotators."""
        if self.learns:
            raise ConfigError("the tasks depend on the answers.", "Simulate the study again.")
        if len(annotators.names) != len(self.annotators.names):
            raise DataError("the number of annotators differs.", "Simulate the study again.")
        if annotators.answer_counts:
            raise DataError("these annotators have answered before.", "Create new ones.")
        return SimulatedStudy(self.config, self.index, annotators, self.stages, self.order, self.complete, self.ended)

    def observations(
        self, stage: int = 0, *, most: int | None = None, kind: str | None = None
    ) -> dict[str, Observations]:
        """Return the observations of a stage, or of its first `most` answers, by criterion.

        `kind` is the most informative kind of the protocol by default.
        """
        tasks = self.stages[stage]
        if not tasks.items:
            raise DataError("the stage has no tasks.", "The attribute `ended` gives the reason.")
        protocol = self.config.stages[stage].protocol
        kind = kind or protocol.kinds[0]
        if kind == protocol.kinds[0] and isinstance(self.annotators, SimulatedAnnotators):
            batch = self._batch(stage)
            if most is not None:
                batch = TaskBatch(
                    batch.items[:most],
                    batch.who[:most],
                    batch.percepts[:, :most],
                    batch.tie_margin[:most],
                    batch.index,
                    batch.people,
                )
            by_criterion = batch_observations(protocol, batch)
            if by_criterion is not None:
                return by_criterion
        judgments = self.judgments(stage)[:most]
        return collect(kind, judgments, {self.config.stages[stage].name: protocol}, self.index)

    def judgments(self, stage: int) -> list[Judgment]:
        """Return the judgments of a stage."""
        tasks, stage_config = self.stages[stage], self.config.stages[stage]
        return [
            Judgment(
                str(number),
                self.annotators.names[tasks.who[number]],
                stage_config.name,
                stage_config.protocol.name,
                tuple(self.index[code] for code in tasks.items[number]),
                self.answer(stage, number),
                _WHEN,
            )
            for number in range(len(tasks.items))
        ]

    def answer(self, stage: int, number: int) -> Any:
        """Return the answer to a task of a stage."""
        tasks = self.stages[stage]
        if tasks.answers:
            return tasks.answers[number]
        batch, codes = self._batch(stage), tasks.items[number]
        protocol = self.config.stages[stage].protocol
        perceived = perceived_by(
            protocol, [self.index[code] for code in codes], batch.percepts[:, number, : len(codes)]
        )
        return answer_for(protocol, perceived, float(batch.tie_margin[number]))

    def _batch(self, stage: int) -> TaskBatch:
        if stage not in self._cache:
            people, tasks = self.annotators, self.stages[stage]
            if not isinstance(people, SimulatedAnnotators):
                raise DataError("only simulated annotators can answer in batches.")
            who, items = np.array(tasks.who, np.int32), tasks.matrix()
            # The annotators may have the items in another order, or more of them; UNKNOWN stays UNKNOWN.
            theirs = np.append(people.items.codes(self.index.ids), UNKNOWN)[items]
            percepts: FloatArray = people.percepts(
                self.config.stages[stage].protocol, who, np.array(tasks.done), theirs, np.array(tasks.row)
            )
            self._cache[stage] = TaskBatch(items, who, percepts, people.tie_margins(who), self.index, people.people)
        return self._cache[stage]


class _StageProgress:
    """Progress of the stages, updated directly instead of by events from the store."""

    def __init__(self, config: StudyConfig, items: Sequence[Item]) -> None:
        self.config = config
        self.progress = [stage.design.new_progress(stage.protocol, items) for stage in config.stages]
        self.learns = any(progress.design_state is not None for progress in self.progress)
        self.tasks_of: Counter[str] = Counter()
        # Before the first pick, the log of a study has one event per thousand items and one for the configuration.
        self.seq = ceil(len(items) / ITEMS_PER_EVENT) + 1

    @property
    def learns_from_answers(self) -> bool:
        """Whether a design learns from answers."""
        return any(
            p.design_state is not None and type(p.design_state).on_answer is not DesignState.on_answer
            for p in self.progress
        )

    def pick(self, annotator: str) -> tuple[int, Pick] | NoTask:
        """Choose the stage and the task as a study does: stages in sequence, or by share."""
        limit = self.config.annotators.max_tasks
        if limit is not None and self.tasks_of[annotator] >= limit:
            return NoTask(f"You have done all your {limit} tasks.", reason_code="quota")
        return pick_from_designs(self.config, self.progress, self.seq, annotator)

    def on_leased(self, annotator: str, stage: int, pick: Pick) -> None:
        rng = generator_for(self.config.seed, stage, self.seq) if self.learns else None
        self.progress[stage].on_leased(annotator, pick.items, pick.slot, pick.round, rng)
        self.tasks_of[annotator] += 1
        self.seq += 1

    def on_answered_by(
        self, annotator: str, stage: int, pick: Pick, observations: Sequence[Observation] | None
    ) -> None:
        self.progress[stage].on_answered(pick.items, pick.slot)
        if observations is not None:
            for number, progress in enumerate(self.progress):
                progress.notify_answer(
                    AnswerNotice(str(self.seq), annotator, pick.items, observations, own_stage=number == stage)
                )
        self.seq += 1


def simulate_study(
    config: StudyConfig,
    items: Sequence[Item],
    annotators: Annotators,
    rng: np.random.Generator,
    *,
    on_progress: Callable[[], None] = lambda: None,
    most: int | None = None,
) -> SimulatedStudy:
    """Simulate a study in memory until no task is left, or until there are `most` judgments.

    If no design learns from answers, the tasks are picked one by one and answered in one batch at the end; otherwise
    each task is answered when it is picked. Checks and repeats are not simulated.
    """
    stage_progress = _StageProgress(config, items)
    index = Index([item.id for item in items])
    at_once = isinstance(annotators, SimulatedAnnotators) and not stage_progress.learns_from_answers
    keys = [protocol_key(stage.protocol) for stage in config.stages]
    stages = tuple(StageTasks() for _ in config.stages)
    queue = AnnotatorQueue(annotators.names, rng.spawn(1)[0])
    code = {name: number for number, name in enumerate(annotators.names)}
    order: list[int] = []
    last_refusal = NoTask("There were no annotators.")
    while (most is None or len(order) < most) and (annotator := queue.next()) is not None:
        choice = stage_progress.pick(annotator)
        if isinstance(choice, NoTask):
            last_refusal = choice
            queue.on_no_task(annotator, choice)
            continue
        number, pick = choice
        tasks, protocol = stages[number], config.stages[number].protocol
        stage_progress.on_leased(annotator, number, pick)
        tasks.who.append(code[annotator])
        tasks.items.append(pick.items)
        if isinstance(annotators, SimulatedAnnotators):
            tasks.done.append(annotators.done[annotator])
            tasks.row.append(annotators.answer_counts[keys[number]])
        observations: list[Observation] | None = None
        if isinstance(annotators, SimulatedAnnotators) and at_once:
            annotators.begin(annotator, keys[number])
        else:
            ids = [index.ids[item] for item in pick.items]
            answer = annotators.answer(annotator, protocol, ids)
            tasks.answers.append(answer)
            observations = protocol.observations(ids, answer)
        stage_progress.on_answered_by(annotator, number, pick, observations)
        order.append(number)
        queue.on_answer()
        on_progress()
    if most is not None and len(order) >= most:
        last_refusal = NoTask("The requested number of judgments was reached.")
    return SimulatedStudy(config, index, annotators, stages, tuple(order), last_refusal.complete, last_refusal.reason)
