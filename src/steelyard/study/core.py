"""What the parts of a study share: its folder, configuration, log and clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.quality.questions import Question, read_questions
from steelyard.records import Item, Judgment, Task
from steelyard.storage import StoredTask
from steelyard.study import events as ev
from steelyard.study.assignment import check_decisions
from steelyard.study.config import Stage, StudyConfig
from steelyard.study.leases import release_task
from steelyard.study.log import Log, Transaction, as_datetime
from steelyard.study.state import StudyState


def now_in_microseconds() -> int:
    """Return the time as the log records it."""
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True, eq=False)
class Core:
    """The shared parts of a study, and the operations that several of them need."""

    folder: Path
    config: StudyConfig
    log: Log
    clock: Callable[[], int] = field(default=now_in_microseconds)

    @property
    def items(self) -> list[Item]:
        """The items, in the order they joined."""
        with self.log.read() as state:
            return list(state.items)

    def stage_of(self, task: Task | Judgment) -> Stage:
        """Return the stage (protocol and design) a task belongs to."""
        return next(stage for stage in self.config.stages if stage.name == task.stage)

    def task(self, state: StudyState, stored: StoredTask) -> Task:
        """Return a stored task with its items."""
        stage = self.config.stages[stored.stage]
        items = tuple(state.item(name) for name in stored.items)
        lease_end = as_datetime(stored.lease_end)
        return Task(stored.judgment_id, stored.annotator, stage.name, stage.protocol.name, items, lease_end)

    def questions(self, file: str | None, items: list[Item] | None = None) -> list[Question]:
        """Read a file of questions with known answers; none where no file is named."""
        if file is None:
            return []
        return read_questions(
            self.folder / file, self.config.stages[0].protocol, self.items if items is None else items
        )

    def exclude(self, transaction: Transaction, annotator: str, exclusion: ev.Excluded, now: int) -> None:
        """Release an annotator's tasks and set their judgments aside."""
        for task in transaction.store.open_tasks(annotator):
            release_task(transaction, task, now)
        transaction.append(exclusion, at=now, annotator=annotator)
        self.apply_item_rule(transaction, None, now)

    def apply_item_rule(self, transaction: Transaction, items: Iterable[str] | None, now: int) -> None:
        """Set items aside that annotators cannot judge, and restore those that no longer qualify.

        `items` are those that something was said about; None for all.
        """
        rules, state = self.config.answers, transaction.state
        if rules.cannot_judge:
            names = [*state.unjudged.answers, *state.unjudged.set_aside] if items is None else items
            for decision in state.unjudged.decisions(rules, names, state.counts_annotator, state.count_answers):
                transaction.append(decision, at=now)

    def apply_checks(self, transaction: Transaction, now: int) -> None:
        """Exclude annotators who fail the checks; readmit those whom only a disputed check excluded."""
        for annotator, decision in check_decisions(self.config, transaction.state):
            if isinstance(decision, ev.Excluded):
                self.exclude(transaction, annotator, decision, now)
            else:
                transaction.append(decision, at=now, annotator=annotator)
