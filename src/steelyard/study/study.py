"""A study: items, stages and a model bound together; `ask` and `tell` are the whole of it."""

from __future__ import annotations

import time
import unicodedata
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from numbers import Real
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, overload

import polars as pl

from steelyard.designs.base import Nothing
from steelyard.errors import StoreError, TaskError
from steelyard.grouping import by_group
from steelyard.models.fit import Fit, Model
from steelyard.observations import Index, Observations
from steelyard.records import Answer, Item, Judgment, Task
from steelyard.store import Event, Store, StoredTask
from steelyard.store.engine import database_url, sqlite_url
from steelyard.study.collect import collect
from steelyard.study.config import Stage, StudyConfig
from steelyard.study.journal import Entry, Journal, as_datetime
from steelyard.study.ledger import Ledger, item_to_data
from steelyard.study.opening import changed_items, check_same_questions, check_study, items_digest
from steelyard.study.picking import pick_next
from steelyard.study.results import effective_judgments, fit_by_criterion, judgment_frame, judgment_of, kind_for
from steelyard.study.status import Status, status_of
from steelyard.version import __version__

DATABASE_FILE = "study.db"
_ITEMS_PER_EVENT = 1000


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


class Study:
    """Ask people and tell what they answered.

    Open one with `Study.open(folder)`. Several threads and processes may use the same study at once.
    """

    def __init__(
        self, folder: Path, config: StudyConfig, store: Store, clock: Callable[[], int] = now_in_microseconds
    ) -> None:
        self.folder = folder
        self.config = config
        self._journal = Journal(store, config.stages)
        self._clock = clock

    @classmethod
    def open(
        cls, folder: str | Path, *, database: str | None = None, clock: Callable[[], int] = now_in_microseconds
    ) -> Study:
        """Open the study in a folder, creating its database the first time.

        `database` overrides the one in study.toml; one that several studies share needs their names. Items that
        were added to the items file since the last time join the study; items that vanished, or show annotators
        something else than before, are refused.
        """
        folder = Path(folder)
        config, items = check_study(folder)
        if database is not None:
            url = database_url(database, Path.cwd())
        elif config.database is not None:
            url = database_url(config.database, folder)
        else:
            url = sqlite_url(folder / DATABASE_FILE)
        study = cls(folder, config, Store.open(url, config.name), clock)
        try:
            study._take_in(items, items_digest(folder, config.items))
        except BaseException:
            study.close()
            raise
        return study

    def close(self) -> None:
        """Give the database back."""
        self._journal.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Study({self.config.title!r}, {len(self.items)} items, {self.status().judgments} judgments)"

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

    def offer(self, annotator: str) -> Task | Nothing:
        """Like `ask`, but say why when there is nothing to ask."""
        tasks, nothing = self._lease(annotator, 1)
        return tasks[0] if tasks else nothing or Nothing("There is nothing to ask.")

    def tell(
        self, task: Task | str, answer: Any, *, annotator: str | None = None, seconds: float | None = None
    ) -> Judgment:
        """Record an answer; when this returns, it is on disk.

        `task` is the one asked, or its judgment_id. Sending the same answer again is harmless. `annotator`
        defaults to the task's; another one's task is refused. `seconds` is the active time it took.
        """
        with self._journal.writing() as entry:
            stored = _owned_task(entry, task, annotator)
            plain = self.config.stages[stored.stage].protocol.validate(stored.items, answer)
            if stored.state == "answered":
                return self._told_again(entry, stored, plain)
            now = self._clock()
            if stored.state == "expired":
                _close_twins(entry, stored, now)
            event = entry.append(
                "judgment",
                at=now,
                annotator=stored.annotator,
                judgment_id=stored.judgment_id,
                data={
                    "stage": stored.stage,
                    "items": list(stored.items),
                    "answer": plain,
                    "seconds": _checked_seconds(seconds),
                    "late": now > stored.lease_end or stored.state == "expired",
                },
            )
            entry.store.set_state(stored.judgment_id, "answered", event.seq)
        return judgment_of(event, self.config.stages)

    def revise(self, judgment_id: str, answer: Any, *, annotator: str | None = None) -> Judgment:
        """Replace an answer; the old one stays in the log and no longer counts."""
        with self._journal.writing() as entry:
            stored = _owned_task(entry, judgment_id, annotator)
            if stored.state != "answered":
                raise TaskError(f"task {judgment_id} has no answer to revise.", "Use tell for the first answer.")
            plain = self.config.stages[stored.stage].protocol.validate(stored.items, answer)
            latest = _answer_event(entry, stored)
            data = {**latest.data, "answer": plain, "revises": latest.seq}
            event = entry.append(
                "revision", at=self._clock(), annotator=stored.annotator, judgment_id=judgment_id, data=data
            )
            entry.store.set_state(judgment_id, "answered", event.seq)
        return judgment_of(event, self.config.stages)

    def skip(self, task: Task | str, reason: str, *, annotator: str | None = None) -> None:
        """Give a task back unanswered; its annotator will not get it again."""
        with self._journal.writing() as entry:
            stored = _owned_task(entry, task, annotator)
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
            stored = _owned_task(entry, task, annotator)
            if stored.state == "open":
                _give_back(entry, stored, self._clock())

    def flag(self, task: Task | str, reason: str, *, annotator: str | None = None) -> None:
        """Note that something is odd about a task, answered or not."""
        with self._journal.writing() as entry:
            self._note(entry, "flag", _owned_task(entry, task, annotator), reason)

    def renew(self, task: Task | str, *, annotator: str | None = None) -> datetime:
        """Keep a task for its annotator for another lease (a heartbeat); return the lease's new end."""
        with self._journal.writing() as entry:
            stored = _owned_task(entry, task, annotator)
            if stored.state != "open":
                raise TaskError(f"task {stored.judgment_id} is {stored.state}.", "Ask for the next one.")
            return as_datetime(self._renew(entry, stored, self._clock()).lease_end)

    def take_in_answers(self, stage: int, answers: Sequence[ImportedAnswer]) -> int:
        """Add valid judgments made elsewhere that are not there yet, all or none; return how many."""
        plans = self.config.stages[stage].design.plans
        with self._journal.writing() as entry:
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

    # What came of it

    def judgments(self) -> pl.DataFrame:
        """Every judgment that counts, one a row; `answer` is JSON."""
        return judgment_frame(self._effective())

    def observations(self, kind: str, *, stage: str | None = None) -> dict[str, Observations]:
        """What the judgments (of one stage, or all) say, as one kind of observations, by criterion.

        The criterion is '' when there is just one.
        """
        index = Index([item.id for item in self.items])
        protocols = {stage.name: stage.protocol for stage in self.config.stages}
        judgments = (j for j in self._effective() if stage is None or j.stage == stage)
        return collect(kind, judgments, protocols, index)

    def fit(self, model: Model | None = None, *, by: Literal["item", "group"] = "item") -> Fit:
        """Score the items, or the groups they belong to, with the study's model or another.

        The items' gold goes to models that take it.
        """
        model = model or self.config.model
        observations = self.observations(kind_for(model, self.config.stages))
        items = self.items
        gold = {"": {item.id: item.gold for item in items if item.gold is not None}}
        groups = {item.id: item.group for item in items if item.group is not None}
        if by == "item":
            return fit_by_criterion(model, observations, gold, groups)
        return fit_by_criterion(model, {name: by_group(part, groups)[0] for name, part in observations.items()})

    def scores(self, *, by: Literal["item", "group"] = "item") -> pl.DataFrame:
        """The scores table: item (or group), score, lower, upper, rank, judgments and more."""
        return self.fit(by=by).scores

    # Inside

    def _effective(self) -> Iterator[Judgment]:
        return effective_judgments(self._journal.events(("judgment", "revision")), self.config.stages)

    def _told_again(self, entry: Entry, stored: StoredTask, answer: Any) -> Judgment:
        """Return the judgment that counts, if this answer was given before; refuse a new one."""
        latest = given = _answer_event(entry, stored)
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
            data={"reason": _checked_reason(reason)},
        )

    def _renew(self, entry: Entry, stored: StoredTask, now: int) -> StoredTask:
        renewed = replace(stored, lease_end=max(stored.lease_end, self._lease_end(now)))
        entry.append(
            "renewed",
            at=now,
            annotator=stored.annotator,
            judgment_id=stored.judgment_id,
            data={"lease_end": renewed.lease_end},
        )
        entry.store.renew(stored.judgment_id, renewed.lease_end)
        return renewed

    def _lease_end(self, now: int) -> int:
        return now + round(self.config.people.lease_minutes * 60_000_000)

    def _lease(self, annotator: str, count: int) -> tuple[list[Task], Nothing | None]:
        annotator = annotator_name(annotator)
        if not isinstance(count, int) or count < 1:
            raise TaskError(f"{count!r} tasks cannot be asked.", "Ask for one or more.")
        with self._journal.writing() as entry:
            now = self._clock()
            _expire(entry, now)
            tasks = [self._kept(entry, stored, now) for stored in entry.store.open_tasks(annotator)[:count]]
            nothing = None
            while len(tasks) < count and nothing is None:
                picked = self._pick(entry, annotator, now)
                if isinstance(picked, Nothing):
                    nothing = picked
                else:
                    tasks.append(picked)
            return [self._task(entry.ledger, stored) for stored in tasks], nothing

    def _kept(self, entry: Entry, stored: StoredTask, now: int) -> StoredTask:
        """Hand a task out again with time enough to answer it."""
        enough = (self._lease_end(now) - now) // 2
        return stored if stored.lease_end - now >= enough else self._renew(entry, stored, now)

    def _pick(self, entry: Entry, annotator: str, now: int) -> StoredTask | Nothing:
        limit = self.config.people.tasks
        if limit is not None and entry.ledger.tasks_of[annotator] >= limit:
            return Nothing(f"You have done all your {limit} tasks.")
        chosen = pick_next(self.config, entry.ledger, annotator)
        if isinstance(chosen, Nothing):
            return chosen
        number, pick = chosen
        design = self.config.stages[number].design
        ids = [entry.ledger.items[code].id for code in pick.items]
        seq = entry.store.last_seq + 1
        task = StoredTask(uuid.uuid4().hex, annotator, number, tuple(ids), "open", self._lease_end(now), seq)
        entry.append(
            "picked",
            at=now,
            annotator=annotator,
            judgment_id=task.judgment_id,
            data={
                "stage": number,
                "items": ids,
                "slot": pick.slot,
                "design": design.name,
                "settings": design.settings(),
                "seed": self.config.seed,
                "round": pick.round,
                "weight": pick.weight,
                "propensity": pick.propensity,
                "state": entry.store.digest,
                "lease_end": task.lease_end,
            },
        )
        entry.store.add_task(task)
        return task

    def _task(self, ledger: Ledger, stored: StoredTask) -> Task:
        stage = self.config.stages[stored.stage]
        items = tuple(ledger.items[ledger.code[name]] for name in stored.items)
        return Task(
            stored.judgment_id, stored.annotator, stage.name, stage.protocol.name, items, as_datetime(stored.lease_end)
        )

    def _take_in(self, items: Sequence[Item], source_digest: str) -> None:
        """Bring the log up to date with study.toml and the items file; usually there is nothing to do."""
        # Where the database is, and with which password, is nobody's business who reads the log.
        config = {key: value for key, value in (self.config.source or {}).items() if key != "database"}
        data: dict[str, Any] = {"config": config, "items_digest": source_digest, "software": __version__}
        last = self._journal.config_event()
        if last is not None and last.data == data:
            self._journal.settle(last.seq)
            return
        if last is not None and self._journal.has_tasks():
            check_same_questions(last.data["config"], self.config)
        with self._journal.writing() as entry:
            now = self._clock()
            if entry.ledger.config.get("items_digest") != source_digest:
                new = changed_items(entry.ledger, items, self.config.items.file)
                for start in range(0, len(new), _ITEMS_PER_EVENT):
                    chunk = [item_to_data(item) for item in new[start : start + _ITEMS_PER_EVENT]]
                    entry.append("items", at=now, data={"items": chunk})
            if entry.ledger.config != data:
                entry.append("config", at=now, data=data)
            self._journal.settle(entry.ledger.seq)


def _expire(entry: Entry, now: int) -> None:
    """Put the tasks whose lease has ended back into the pool."""
    for overdue in entry.store.overdue_tasks(now):
        _give_back(entry, overdue, now)


def _give_back(entry: Entry, task: StoredTask, now: int) -> None:
    entry.append("expired", at=now, annotator=task.annotator, judgment_id=task.judgment_id)
    entry.store.set_state(task.judgment_id, "expired")


def _close_twins(entry: Entry, late: StoredTask, now: int) -> None:
    """Take back a task that repeats one whose late answer just came: nobody is asked the same twice."""
    for other in entry.store.open_tasks(late.annotator):
        if other.stage == late.stage and set(other.items) == set(late.items):
            _give_back(entry, other, now)


def _owned_task(entry: Entry, task: Task | str, annotator: str | None) -> StoredTask:
    """Find a task that went out, and refuse anybody but the one it went to."""
    judgment_id = task.judgment_id if isinstance(task, Task) else task
    if annotator is None and isinstance(task, Task):
        annotator = task.annotator
    annotator = None if annotator is None else annotator_name(annotator)
    stored = entry.store.task(judgment_id)
    if stored is None:
        raise TaskError(f"there is no task {judgment_id} in this study.", "Ask for a task first.")
    if annotator is not None and annotator != stored.annotator:
        raise TaskError(
            f"task {judgment_id} is leased to someone else, not to '{annotator}'.", "Ask for a task of your own."
        )
    return stored


def _answer_event(entry: Entry, stored: StoredTask) -> Event:
    if stored.answer_seq is None:
        raise StoreError(f"task {stored.judgment_id} is answered, but its answer is missing.", "Restore a backup.")
    return entry.store.event(stored.answer_seq)


def annotator_name(given: str) -> str:
    """Return an annotator's name in the one form it is kept in: é is é, however it was typed."""
    name = unicodedata.normalize("NFC", given).strip() if isinstance(given, str) else ""
    if not name or len(name) > 200 or not name.isprintable():
        raise TaskError(f"{given!r} cannot be an annotator's name.", "Use 1 to 200 printable characters.")
    return name


def _checked_seconds(seconds: float | None) -> float | None:
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or not 0 <= float(seconds) < float("inf"):
        raise TaskError(f"{seconds!r} is not a time in seconds.", "Give a number from 0 up, or leave it out.")
    return float(seconds)


def _checked_reason(reason: str) -> str:
    if not isinstance(reason, str) or len(reason) > 2000 or any("\ud800" <= sign <= "\udfff" for sign in reason):
        raise TaskError("the reason is not a text of up to 2,000 characters.", "Say it in fewer words.")
    return reason
