"""Asking and telling: leases, answers, revisions, and what is said about tasks."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, overload

from steelyard.designs.base import NoTask
from steelyard.errors import TaskError
from steelyard.records import Answer, Item, Judgment, Task
from steelyard.store import Event, Store, StoredTask
from steelyard.study.config import Stage, StudyConfig
from steelyard.study.journal import Entry, Journal, as_datetime
from steelyard.study.ledger import Ledger
from steelyard.study.picking import pick_next
from steelyard.study.results import judgment_of
from steelyard.study.status import Status, status_of
from steelyard.study.tasks import (
    annotator_name,
    answer_event,
    checked_reason,
    checked_seconds,
    close_twins,
    expire,
    give_back,
    owned_task,
    set_lease,
)


def now_in_microseconds() -> int:
    """The time as the log writes it."""
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class ImportedAnswer:
    """A judgment made elsewhere; its id comes from its source, so that importing twice is importing once."""

    judgment_id: str
    annotator: str | None
    items: tuple[str, ...]
    answer: Answer
    seconds: float | None = None


class Asking:
    """The part of a study that hands out tasks and takes in answers."""

    def __init__(
        self, folder: Path, config: StudyConfig, store: Store, clock: Callable[[], int] = now_in_microseconds
    ) -> None:
        self.folder = folder
        self.config = config
        self._journal = Journal(store, config.stages)
        self._clock = clock

    # What is there

    @property
    def items(self) -> list[Item]:
        """The items, in the order they joined."""
        with self._journal.reading() as ledger:
            return list(ledger.items)

    def stage_of(self, task: Task | Judgment) -> Stage:
        """The stage (protocol and design) a task belongs to."""
        return next(stage for stage in self.config.stages if stage.name == task.stage)

    def status(self) -> Status:
        """How far the study is."""
        with self._journal.reading() as ledger:
            return status_of(self.config, ledger)

    def events(self, kinds: Iterable[str] | None = None) -> Iterator[Event]:
        """The whole log, or the events of some kinds, in order."""
        return self._journal.events(kinds)

    # Ask and tell

    @overload
    def ask(self, annotator: str) -> Task | None: ...
    @overload
    def ask(self, annotator: str, count: int) -> list[Task]: ...
    def ask(self, annotator: str, count: int | None = None) -> Task | list[Task] | None:
        """Lease the next task to an annotator, or None when there is nothing to ask (see `offer` for why).

        Until a task is told, skipped or runs out, asking again gives the same one: a reloaded page or a
        restarted script wastes nothing. With `count`, a list of up to that many open tasks.
        """
        tasks, _ = self._lease(annotator, 1 if count is None else count)
        if count is not None:
            return tasks
        return tasks[0] if tasks else None

    def offer(self, annotator: str) -> Task | NoTask:
        """Like `ask`, but say why when there is nothing to ask."""
        tasks, nothing = self._lease(annotator, 1)
        return tasks[0] if tasks else nothing or NoTask("There is nothing to ask.")

    def offer_several(self, annotator: str, count: int) -> tuple[list[Task], NoTask | None]:
        """Like `ask` with a count, and say why when there are fewer."""
        return self._lease(annotator, count)

    def tell(
        self, task: Task | str, answer: Any, *, annotator: str | None = None, seconds: float | None = None
    ) -> Judgment:
        """Record an answer; when this returns, it is on disk.

        `task` is the one asked, or its judgment_id. Sending the same answer again is harmless. `annotator`
        defaults to the task's; another one's task is refused. `seconds` is the active time it took.
        """
        with self._journal.writing() as entry:
            stored = owned_task(entry, task, annotator)
            plain = self.config.stages[stored.stage].protocol.validate(stored.items, answer)
            if stored.state == "answered":
                return self._told_again(entry, stored, plain)
            if stored.state == "withdrawn":
                raise TaskError(f"task {stored.judgment_id} was withdrawn.", "Ask for a task of your own.")
            took = checked_seconds(seconds)
            now = self._clock()
            if stored.state == "expired":
                close_twins(entry, stored, now)
            event = entry.append(
                "judgment",
                at=now,
                annotator=stored.annotator,
                judgment_id=stored.judgment_id,
                data={
                    "stage": stored.stage,
                    "items": list(stored.items),
                    "answer": plain,
                    "seconds": took,
                    "late": now > stored.lease_end or stored.state == "expired",
                    **self._about_people(entry, stored, plain),
                },
            )
            entry.store.set_state(stored.judgment_id, "answered", event.seq)
            if "right" in event.data:
                self._apply_checks(entry, now)
        return judgment_of(event, self.config.stages)

    def revise(self, judgment_id: str, answer: Any, *, annotator: str | None = None) -> Judgment:
        """Replace an answer; the old one stays in the log and no longer counts."""
        with self._journal.writing() as entry:
            stored = owned_task(entry, judgment_id, annotator)
            if stored.state != "answered":
                raise TaskError(f"task {judgment_id} has no answer to revise.", "Use tell for the first answer.")
            plain = self.config.stages[stored.stage].protocol.validate(stored.items, answer)
            latest = answer_event(entry, stored)
            data = {**latest.data, "answer": plain, "revises": latest.seq}
            checks = self.config.quality.checks
            if checks is not None and not checks.loud:
                # Once told what is right, anybody can say it: after a loud check the first answer stands.
                data |= self._about_people(entry, stored, plain)
            now = self._clock()
            event = entry.append("revision", at=now, annotator=stored.annotator, judgment_id=judgment_id, data=data)
            entry.store.set_state(judgment_id, "answered", event.seq)
            if "right" in event.data:
                self._apply_checks(entry, now)
        return judgment_of(event, self.config.stages)

    def skip(self, task: Task | str, reason: str, *, annotator: str | None = None) -> None:
        """Give a task back unanswered; its annotator will not get it again."""
        with self._journal.writing() as entry:
            stored = owned_task(entry, task, annotator)
            if stored.state == "skipped":
                return
            if stored.state != "open":
                raise TaskError(
                    f"task {stored.judgment_id} is {stored.state} and cannot be skipped.", "Ask for the next one."
                )
            self._note(entry, "skip", stored, reason)
            entry.store.set_state(stored.judgment_id, "skipped")

    def release(self, task: Task | str, *, annotator: str | None = None) -> None:
        """Give a task back for others at once, as if its lease had ended; its annotator may get it again."""
        with self._journal.writing() as entry:
            stored = owned_task(entry, task, annotator)
            if stored.state == "open":
                give_back(entry, stored, self._clock())

    def flag(self, task: Task | str, reason: str, *, annotator: str | None = None) -> None:
        """Note that something is odd about a task, answered or not."""
        with self._journal.writing() as entry:
            self._note(entry, "flag", owned_task(entry, task, annotator), reason)

    def renew(self, task: Task | str, *, annotator: str | None = None) -> datetime:
        """Keep a task for its annotator for another lease (a heartbeat); return the lease's new end."""
        with self._journal.writing() as entry:
            stored = owned_task(entry, task, annotator)
            if stored.state != "open":
                raise TaskError(f"task {stored.judgment_id} is {stored.state}.", "Ask for the next one.")
            return as_datetime(self._renew(entry, stored, self._clock()).lease_end)

    def take_in_answers(self, stage: int, answers: Sequence[ImportedAnswer]) -> int:
        """Add valid judgments made elsewhere that are not there yet, all or none; return how many."""
        plans = self.config.stages[stage].design.uses_slots
        with self._journal.writing(alone=True) as entry:
            now = self._clock()
            tasks = []
            for new in answers:
                if entry.store.task(new.judgment_id) is not None:
                    continue
                codes = tuple(entry.ledger.code[item] for item in new.items)
                event = entry.append(
                    "judgment",
                    at=now,
                    annotator=None if new.annotator is None else annotator_name(new.annotator),
                    judgment_id=new.judgment_id,
                    data={
                        "stage": stage,
                        "items": list(new.items),
                        "answer": new.answer,
                        "seconds": new.seconds,
                        "imported": True,
                        "slot": entry.ledger.progress[stage].slot_for(codes) if plans else None,
                    },
                )
                tasks.append(
                    StoredTask(
                        new.judgment_id, event.annotator or "", stage, new.items, "answered", now, event.seq, event.seq
                    )
                )
            entry.store.add_tasks(tasks)
        return len(tasks)

    # Inside

    def _about_people(self, entry: Entry, stored: StoredTask, answer: Answer) -> dict[str, Any]:
        """Return what the log says of an answer to a check or a repeat, beyond the answer."""
        out = entry.ledger.out_task(stored.judgment_id)
        if out is None or out.purpose == "judgment":
            return {}
        said: dict[str, Any] = {"purpose": out.purpose}
        if out.about:
            said["about"] = out.about
        question = entry.ledger.vetting.questions.get(out.about)
        if out.purpose == "check":
            # A check that was taken out of the file meanwhile is held against nobody.
            said["right"] = question is None or question.grade(answer)
        return said

    def _apply_checks(self, entry: Entry, now: int) -> None:
        """Exclude who fails the checks; readmit whom only a check excluded that is now in doubt."""
        rule = self.config.quality.checks
        if rule is None:
            return
        ledger = entry.ledger
        failing = ledger.vetting.failing(rule)
        for annotator, reason in failing.items():
            if annotator not in ledger.excluded:
                self._exclude(entry, annotator, {"reason": reason, "by": "checks"}, now)
        if any(check.disputed or check.settled == "wrong" for check in ledger.vetting.checks()):
            for annotator in sorted(ledger.vetting.by_checks - set(failing)):
                data = {"reason": "checks that they failed are in doubt", "by": "checks"}
                entry.append("readmission", at=now, annotator=annotator, data=data)

    def _exclude(self, entry: Entry, annotator: str, data: dict[str, Any], now: int) -> None:
        for task in entry.store.open_tasks(annotator):
            give_back(entry, task, now)
        entry.append("exclusion", at=now, annotator=annotator, data=data)

    def _told_again(self, entry: Entry, stored: StoredTask, answer: Any) -> Judgment:
        """Return the judgment that counts, if this answer was given before; refuse a new one."""
        latest = given = answer_event(entry, stored)
        while given.data["answer"] != answer:
            if "revises" not in given.data:
                raise TaskError(
                    f"task {stored.judgment_id} already has another answer.", "Use revise to change an answer."
                )
            given = entry.store.event(given.data["revises"])
        return judgment_of(latest, self.config.stages)

    def _note(self, entry: Entry, kind: str, stored: StoredTask, reason: str) -> None:
        entry.append(
            kind,
            at=self._clock(),
            annotator=stored.annotator,
            judgment_id=stored.judgment_id,
            data={"reason": checked_reason(reason)},
        )

    def _renew(self, entry: Entry, stored: StoredTask, now: int) -> StoredTask:
        return set_lease(entry, stored, max(stored.lease_end, self._lease_end(now)), now)

    def _lease_end(self, now: int) -> int:
        return now + round(self.config.people.lease_minutes * 60_000_000)

    def _lease(self, annotator: str, count: int) -> tuple[list[Task], NoTask | None]:
        annotator = annotator_name(annotator)
        if not isinstance(count, int) or count < 1:
            raise TaskError(f"{count!r} tasks cannot be asked.", "Ask for one or more.")
        with self._journal.writing() as entry:
            now = self._clock()
            expire(entry, now, self._lease_end(now))
            tasks = [self._kept(entry, stored, now) for stored in entry.store.open_tasks(annotator)[:count]]
            nothing = None
            while len(tasks) < count and nothing is None:
                picked = self._pick(entry, annotator, now)
                if isinstance(picked, NoTask):
                    nothing = picked
                else:
                    tasks.append(picked)
            return [self._task(entry.ledger, stored) for stored in tasks], nothing

    def _kept(self, entry: Entry, stored: StoredTask, now: int) -> StoredTask:
        """Hand a task out again with time enough to answer it."""
        enough = (self._lease_end(now) - now) // 2
        return stored if stored.lease_end - now >= enough else self._renew(entry, stored, now)

    def _pick(self, entry: Entry, annotator: str, now: int) -> StoredTask | NoTask:
        refused = entry.ledger.refusal(annotator)
        if refused is not None:
            return refused
        limit = entry.ledger.recruits.quotas.get(annotator, self.config.people.tasks)
        if limit is not None and entry.ledger.tasks_of[annotator] >= limit:
            return NoTask(f"You have done all your {limit} tasks.", reason_code="quota")
        chosen = pick_next(self.config, entry.ledger, annotator, now)
        if isinstance(chosen, NoTask):
            return chosen
        design, pick = self.config.stages[chosen.stage].design, chosen.pick
        seq = entry.store.last_seq + 1
        task = StoredTask(uuid.uuid4().hex, annotator, chosen.stage, chosen.items, "open", self._lease_end(now), seq)
        # Only what is out of the ordinary is said, so that the usual event stays short.
        special = {
            key: value
            for key, value in (("purpose", chosen.purpose), ("about", chosen.about), ("shared", chosen.shared))
            if value and value != "judgment"
        }
        entry.append(
            "picked",
            at=now,
            annotator=annotator,
            judgment_id=task.judgment_id,
            data={
                "stage": chosen.stage,
                "items": list(chosen.items),
                "slot": pick.slot,
                "design": design.name,
                "settings": design.settings(),
                "seed": self.config.seed,
                "round": pick.round,
                "weight": pick.weight,
                "propensity": pick.propensity,
                "state": entry.store.digest,
                "lease_end": task.lease_end,
                **special,
            },
        )
        entry.store.add_task(task)
        return task

    def _task(self, ledger: Ledger, stored: StoredTask) -> Task:
        stage = self.config.stages[stored.stage]
        items = tuple(ledger.item(name) for name in stored.items)
        return Task(
            stored.judgment_id, stored.annotator, stage.name, stage.protocol.name, items, as_datetime(stored.lease_end)
        )
