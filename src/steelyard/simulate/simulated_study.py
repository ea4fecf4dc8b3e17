"""A study simulated in memory: the real study's state, designs and events, without a database.

Tasks are picked by `pick_next` and recorded as events in a MemoryLog. With the same seed, annotators and answers, a
simulated study therefore asks exactly the tasks of a real study, checks and repeats included (tests/simulate).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from steelyard.designs import NoTask
from steelyard.errors import ConfigError, DataError
from steelyard.observations import UNKNOWN, FloatArray, Index, IntArray, Observations
from steelyard.quality.questions import Question
from steelyard.records import Item, Judgment
from steelyard.simulate.annotators import Annotators, SimulatedAnnotators, perceived_by, protocol_key
from steelyard.simulate.answers import answer_for
from steelyard.simulate.batch_answers import TaskBatch, batch_observations
from steelyard.simulate.study_driver import AnnotatorQueue, AnswerCheck
from steelyard.study import events as ev
from steelyard.study.assignment import (
    Assignment,
    check_decisions,
    pick_next,
    picked_event,
    purpose_fields,
    refusal_for,
)
from steelyard.study.config import StudyConfig
from steelyard.study.judgments import effective_judgments
from steelyard.study.log import MemoryLog
from steelyard.study.observing import collect
from steelyard.study.opening import opening_events
from steelyard.study.quality_state import question_data
from steelyard.version import __version__

_NOW = 946_684_800_000_000
"""Time of all simulated events, in microseconds since 1970: midnight (UTC) of 1 January 2000."""


@dataclass(slots=True)
class StageTasks:
    """The answered tasks of one stage in order, checks and repeats included.

    `done` is the number of earlier tasks of the annotator; `row` is the number of the task among all tasks under the
    protocol of the stage. Both are recorded for simulated annotators only.
    """

    events: list[ev.Event] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    row: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        """Return the number of tasks."""
        return len(self.events)

    @property
    def items(self) -> list[tuple[str, ...]]:
        """The item ids of each task, in display order."""
        return [event.data.items for event in self.events]

    @property
    def annotators(self) -> list[str]:
        """The annotator of each task."""
        return [str(event.annotator) for event in self.events]


class _Layout(NamedTuple):
    """The tasks of a stage as arrays: item codes padded with UNKNOWN, and the rows of the judgments that count."""

    items: IntArray
    counting_rows: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedStudy:
    """The tasks of a simulated study, and their answers.

    `log` has the events and the state of the study, `stages` the tasks by stage number. `complete` tells whether the
    designs were complete; `ended` is the reason why there were no further tasks.
    """

    config: StudyConfig
    index: Index
    annotators: Annotators
    log: MemoryLog
    stages: tuple[StageTasks, ...]
    complete: bool
    ended: str
    _answered_in_batches: bool
    _layouts: dict[int, _Layout] = field(default_factory=dict)
    _batches: dict[int, TaskBatch] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of answered tasks, checks and repeats included."""
        return sum(map(len, self.stages))

    @property
    def learns(self) -> bool:
        """Whether other answers might have led to other tasks."""
        return not self._answered_in_batches

    def answered_by(self, annotators: SimulatedAnnotators) -> SimulatedStudy:
        """Return the same tasks, answered by other annotators of the same names."""
        if self.learns:
            raise ConfigError("the tasks depend on the answers.", "Simulate the study again.")
        if annotators.names != self.annotators.names:
            raise DataError("the names of the annotators differ.", "Simulate the study again.")
        if annotators.answer_counts:
            raise DataError("these annotators have answered before.", "Create new ones.")
        return replace(self, annotators=annotators, _batches={})

    def observations(
        self, stage: int = 0, *, most: int | None = None, kind: str | None = None
    ) -> dict[str, Observations]:
        """Return the observations of a stage's judgments that count, or of the first `most` of them, by criterion.

        `kind` is the most informative kind of the protocol by default.
        """
        if not self.stages[stage]:
            raise DataError("the stage has no tasks.", "The attribute `ended` gives the reason.")
        protocol = self.config.stages[stage].protocol
        kind = kind or protocol.kinds[0]
        if kind == protocol.kinds[0] and isinstance(self.annotators, SimulatedAnnotators):
            rows = self._layout(stage).counting_rows[:most]
            by_criterion = batch_observations(protocol, self._batch(stage).subset(rows))
            if by_criterion is not None:
                return by_criterion
        judgments = [judgment for judgment in self.judgments(stage) if judgment.counts][:most]
        return collect(kind, judgments, {self.config.stages[stage].name: protocol}, self.index)

    def judgments(self, stage: int) -> list[Judgment]:
        """Return the judgments of a stage as a study lists them, checks and repeats included."""
        judgments = self._recorded_judgments(stage)
        if not self._answered_in_batches:
            return judgments
        return [replace(judgment, answer=self.answer(stage, row)) for row, judgment in enumerate(judgments)]

    def answer(self, stage: int, number: int) -> Any:
        """Return the answer to a task of a stage."""
        data: ev.Judged = self.stages[stage].events[number].data
        if not self._answered_in_batches:
            return data.answer
        batch = self._batch(stage)
        protocol = self.config.stages[stage].protocol
        perceived = perceived_by(protocol, data.items, batch.percepts[:, number, : len(data.items)])
        return answer_for(protocol, perceived, float(batch.tie_margin[number]))

    def _recorded_judgments(self, stage: int) -> list[Judgment]:
        """Return the judgments of a stage as they are in the log, where answers in batches are missing."""
        name = self.config.stages[stage].name
        return [judgment for judgment in effective_judgments(self.log, self.config.stages) if judgment.stage == name]

    def _layout(self, stage: int) -> _Layout:
        if stage not in self._layouts:
            tasks = self.stages[stage].items
            width = max(map(len, tasks))
            # Items that are shown in checks only stay UNKNOWN: checks have no observations.
            codes = self.log.state.code
            items = np.full((len(tasks), width), UNKNOWN, np.int32)
            for row, ids in enumerate(tasks):
                items[row, : len(ids)] = [codes.get(item, UNKNOWN) for item in ids]
            judgments = self._recorded_judgments(stage)
            counting_rows = np.flatnonzero([judgment.counts for judgment in judgments]).astype(np.int32)
            self._layouts[stage] = _Layout(items, counting_rows)
        return self._layouts[stage]

    def _batch(self, stage: int) -> TaskBatch:
        if stage not in self._batches:
            people, tasks = self.annotators, self.stages[stage]
            if not isinstance(people, SimulatedAnnotators):
                raise DataError("only simulated annotators can answer in batches.")
            who, items = people.people.codes(tasks.annotators), self._layout(stage).items
            # The annotators may have the items in another order, or more of them; UNKNOWN stays UNKNOWN.
            theirs = np.append(people.items.codes(self.index.ids), UNKNOWN)[items]
            percepts: FloatArray = people.percepts(
                self.config.stages[stage].protocol, who, np.array(tasks.done), theirs, np.array(tasks.row)
            )
            self._batches[stage] = TaskBatch(items, who, percepts, people.tie_margins(who), self.index, people.people)
        return self._batches[stage]


class _Simulation:
    """A study in progress: leases and answers tasks as `Study.ask` and `Study.tell` do."""

    def __init__(
        self,
        config: StudyConfig,
        items: Sequence[Item],
        annotators: Annotators,
        checks: Sequence[Question],
        answer_check: AnswerCheck | None,
    ) -> None:
        self.config = config
        self.annotators = annotators
        self.answer_check = answer_check
        self.log = MemoryLog(config.stages)
        settings = ev.ConfigChanged(config=dict(config.source or {}), items_digest="", software=__version__)
        for payload in opening_events(settings, items, question_data(checks)):
            self.log.append(payload, at=_NOW)
        self.stages = tuple(StageTasks() for _ in config.stages)
        # Failed checks exclude annotators, whose tasks then go to others.
        self.depends_on_answers = self.log.state.learns or bool(checks)
        self.answers_in_batches = isinstance(annotators, SimulatedAnnotators) and not self.depends_on_answers
        self._keys = [protocol_key(stage.protocol) for stage in config.stages]

    def run_task(self, annotator: str) -> NoTask | None:
        """Lease the next task to an annotator and record the answer; return the reason if there is no task."""
        state = self.log.state
        task = refusal_for(self.config, state, annotator) or pick_next(self.config, state, annotator, _NOW)
        if isinstance(task, NoTask):
            return task
        judgment_id = str(state.seq + 1)
        picked = picked_event(self.config, task, log_digest="", lease_end=_NOW)
        self.log.append(picked, at=_NOW, annotator=annotator, judgment_id=judgment_id)
        answer = self._answer(annotator, task)
        event = self.log.append(
            ev.Judged(stage=task.stage, items=task.items, answer=answer, **purpose_fields(state, judgment_id, answer)),
            at=_NOW,
            annotator=annotator,
            judgment_id=judgment_id,
        )
        self.stages[task.stage].events.append(event)
        if event.data.right is not None:
            for name, decision in check_decisions(self.config, state):
                self.log.append(decision, at=_NOW, annotator=name)
        return None

    def _answer(self, annotator: str, task: Assignment) -> Any:
        """Return the answer to a task; None if it is computed in a batch later."""
        people, protocol = self.annotators, self.config.stages[task.stage].protocol
        if isinstance(people, SimulatedAnnotators):
            tasks, key = self.stages[task.stage], self._keys[task.stage]
            tasks.done.append(people.done[annotator])
            tasks.row.append(people.answer_counts[key])
            if self.answers_in_batches:
                people.begin(annotator, key)
                return None
        if self.answer_check is not None and task.purpose == "check":
            question = self.log.state.quality.questions[task.about]
            return protocol.validate(task.items, self.answer_check(annotator, question, task.items))
        return protocol.validate(task.items, people.answer(annotator, protocol, task.items))


def simulate_study(
    config: StudyConfig,
    items: Sequence[Item],
    annotators: Annotators,
    rng: np.random.Generator,
    *,
    checks: Sequence[Question] = (),
    answer_check: AnswerCheck | None = None,
    on_progress: Callable[[], None] = lambda: None,
    most: int | None = None,
) -> SimulatedStudy:
    """Simulate a study in memory until no task is left, or until there are `most` judgments.

    `checks` are the questions of the file that the configuration names; without them, no checks are asked.
    `answer_check` answers them; by default annotators answer them like other tasks. If neither
    designs nor checks depend on answers, the tasks are picked one by one and answered in one batch at the end;
    otherwise each task is answered when it is picked.
    """
    simulation = _Simulation(config, items, annotators, checks, answer_check)
    queue = AnnotatorQueue(annotators.names, rng.spawn(1)[0])
    count = 0
    last_refusal = NoTask("There were no annotators.")
    while (most is None or count < most) and (annotator := queue.next()) is not None:
        no_task = simulation.run_task(annotator)
        if no_task is not None:
            last_refusal = no_task
            queue.on_no_task(annotator, no_task)
            continue
        count += 1
        queue.on_answer()
        on_progress()
    if most is not None and count >= most:
        last_refusal = NoTask("The requested number of judgments was reached.")
    return SimulatedStudy(
        config,
        Index([item.id for item in items]),
        annotators,
        simulation.log,
        simulation.stages,
        last_refusal.complete,
        last_refusal.reason,
        simulation.answers_in_batches,
    )
