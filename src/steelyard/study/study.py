"""A study: items, stages and a model bound together; `ask` and `tell` are the whole of it."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, overload

import polars as pl

from steelyard.designs.base import Nothing
from steelyard.errors import DataError, StoreError, TaskError
from steelyard.models.fit import Fit, Model
from steelyard.observations import Index, Observations
from steelyard.records import Answer, Item, Judgment, Task
from steelyard.store import Event, Store, StoredTask, Writer
from steelyard.store.events import to_json
from steelyard.study.collect import collect
from steelyard.study.config import Stage, StudyConfig
from steelyard.study.ledger import Ledger, item_to_data
from steelyard.study.opening import check_protocols_unchanged, check_study, items_digest, new_items
from steelyard.study.picking import pick_next
from steelyard.study.status import Status, status_of
from steelyard.version import __version__

DATABASE_FILE = "study.db"
_ITEMS_PER_EVENT = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now_in_microseconds() -> int:
    """The time as the log writes it."""
    return time.time_ns() // 1000


def as_datetime(at: int) -> datetime:
    """Turn the log's time into a datetime in UTC."""
    return _EPOCH + timedelta(microseconds=at)


@dataclass(frozen=True, slots=True)
class ImportedAnswer:
    """A judgment made elsewhere; its id comes from its source, so that importing twice is importing once."""

    judgment_id: str
    annotator: str | None
    items: tuple[str, ...]
    answer: Answer


class Study:
    """Ask people and tell what they answered.

    Open one with `Study.open(folder)`. Several threads and processes may use the same study at once.
    """

    def __init__(
        self, folder: Path, config: StudyConfig, store: Store, clock: Callable[[], int] = now_in_microseconds
    ) -> None:
        self.folder = folder
        self.config = config
        self._store = store
        self._clock = clock
        self._lock = threading.RLock()
        self._cached: Ledger | None = None

    @classmethod
    def open(
        cls, folder: str | Path, *, database: str | None = None, clock: Callable[[], int] = now_in_microseconds
    ) -> Study:
        """Open the study in a folder, creating its database the first time.

        `database` overrides the one in study.toml. Items that were added to the items file since the last
        time join the study; items that vanished or changed are refused.
        """
        folder = Path(folder)
        config, items = check_study(folder)
        url = database or config.database or f"sqlite:///{(folder / DATABASE_FILE).resolve()}"
        store = Store.open(url, config.name or folder.resolve().name)
        study = cls(folder, config, store, clock)
        try:
            study._take_in(items, items_digest(folder, config.items))
        except BaseException:
            store.close()
            raise
        return study

    def close(self) -> None:
        """Give the database back."""
        self._store.close()

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
        with self._reading() as ledger:
            return list(ledger.items)

    @cached_property
    def _stage_by_name(self) -> dict[str, Stage]:
        return {stage.name: stage for stage in self.config.stages}

    def stage_of(self, task: Task | Judgment) -> Stage:
        """The stage (protocol and design) a task belongs to."""
        return self._stage_by_name[task.stage]

    def status(self) -> Status:
        """How far the study is."""
        with self._reading() as ledger:
            return status_of(self.config, ledger)

    def events(self) -> Iterator[Event]:
        """The whole log, in order."""
        return self._store.events()

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
        judgment_id, annotator = _identity(task, annotator)
        with self._writing() as (writer, ledger):
            stored = self._owned_task(writer, judgment_id, annotator)
            stage = self.config.stages[stored.stage]
            plain = stage.protocol.validate(stored.items, answer)
            if stored.state == "answered":
                return self._told_again(_answer_event(writer, stored), plain)
            now = self._clock()
            data = {
                "stage": stored.stage,
                "items": list(stored.items),
                "answer": plain,
                "seconds": _checked_seconds(seconds),
                "late": now > stored.lease_end or stored.state == "expired",
            }
            event = writer.append("judgment", at=now, annotator=stored.annotator, judgment_id=judgment_id, data=data)
            writer.set_state(judgment_id, "answered", event.seq)
            ledger.apply(event)
        return self._judgment(event)

    def revise(self, judgment_id: str, answer: Any, *, annotator: str | None = None) -> Judgment:
        """Replace an answer; the old one stays in the log and no longer counts."""
        with self._writing() as (writer, ledger):
            stored = self._owned_task(writer, judgment_id, annotator)
            if stored.state != "answered":
                raise TaskError(f"task {judgment_id} has no answer to revise.", "Use tell for the first answer.")
            plain = self.config.stages[stored.stage].protocol.validate(stored.items, answer)
            data = {**_answer_event(writer, stored).data, "answer": plain}
            event = writer.append(
                "revision", at=self._clock(), annotator=stored.annotator, judgment_id=judgment_id, data=data
            )
            writer.set_state(judgment_id, "answered", event.seq)
            ledger.apply(event)
        return self._judgment(event)

    def skip(self, task: Task | str, reason: str, *, annotator: str | None = None) -> None:
        """Give a task back unanswered; its annotator will not get it again."""
        judgment_id, annotator = _identity(task, annotator)
        with self._writing() as (writer, ledger):
            stored = self._owned_task(writer, judgment_id, annotator)
            if stored.state == "skipped":
                return
            if stored.state != "open":
                raise TaskError(f"task {judgment_id} is {stored.state} and cannot be skipped.", "Ask for the next one.")
            event = writer.append(
                "skip",
                at=self._clock(),
                annotator=stored.annotator,
                judgment_id=judgment_id,
                data={"reason": reason},
            )
            writer.set_state(judgment_id, "skipped")
            ledger.apply(event)

    def flag(self, task: Task | str, reason: str, *, annotator: str | None = None) -> None:
        """Note that something is odd about a task, answered or not."""
        judgment_id, annotator = _identity(task, annotator)
        with self._writing() as (writer, ledger):
            stored = self._owned_task(writer, judgment_id, annotator)
            event = writer.append(
                "flag",
                at=self._clock(),
                annotator=stored.annotator,
                judgment_id=judgment_id,
                data={"reason": reason},
            )
            ledger.apply(event)

    def renew(self, task: Task | str, *, annotator: str | None = None) -> datetime:
        """Keep a task for its annotator for another lease (a heartbeat); return the lease's new end."""
        judgment_id, annotator = _identity(task, annotator)
        with self._writing() as (writer, _):
            stored = self._owned_task(writer, judgment_id, annotator)
            if stored.state != "open":
                raise TaskError(f"task {judgment_id} is {stored.state}.", "Ask for the next one.")
            end = max(stored.lease_end, self._lease_end(self._clock()))
            writer.renew(judgment_id, end)
        return as_datetime(end)

    def take_in_answers(self, stage: int, answers: Sequence[ImportedAnswer]) -> int:
        """Add valid judgments made elsewhere, all or none; return how many (0 if they are there already)."""
        with self._writing() as (writer, ledger):
            if not answers or writer.task(answers[0].judgment_id) is not None:
                return 0
            now = self._clock()
            tasks = []
            for new in answers:
                data = {"stage": stage, "items": list(new.items), "answer": new.answer, "imported": True}
                event = writer.append(
                    "judgment", at=now, annotator=new.annotator, judgment_id=new.judgment_id, data=data
                )
                ledger.apply(event)
                tasks.append(
                    StoredTask(
                        new.judgment_id, new.annotator or "", stage, new.items, "answered", now, event.seq, event.seq
                    )
                )
            writer.add_tasks(tasks)
        return len(answers)

    # What came of it

    def judgments(self) -> pl.DataFrame:
        """Every judgment that counts, one a row; `answer` is JSON."""
        found = list(self._effective())
        return pl.DataFrame(
            {
                "judgment_id": [j.judgment_id for j in found],
                "annotator": [j.annotator for j in found],
                "stage": [j.stage for j in found],
                "protocol": [j.protocol for j in found],
                "items": [list(j.items) for j in found],
                "answer": [to_json(j.answer) for j in found],
                "at": [j.at for j in found],
                "seconds": [j.seconds for j in found],
                "late": [j.late for j in found],
                "revised": [j.revised for j in found],
                "imported": [j.imported for j in found],
            },
            schema_overrides={"items": pl.List(pl.String), "seconds": pl.Float64, "at": pl.Datetime("us", "UTC")},
        )

    def observations(self, kind: str, *, stage: str | None = None) -> dict[str, Observations]:
        """What the judgments (of one stage, or all) say, as one kind of observations, by criterion.

        The criterion is '' when there is just one.
        """
        with self._reading() as ledger:
            index = Index([item.id for item in ledger.items])
        protocols = {stage.name: stage.protocol for stage in self.config.stages}
        judgments = (j for j in self._effective() if stage is None or j.stage == stage)
        return collect(kind, judgments, protocols, index)

    def fit(self, model: Model | None = None) -> Fit:
        """Score the items from all judgments so far, with the study's model or another."""
        model = model or self.config.model
        yielded = {kind for stage in self.config.stages for kind in stage.protocol.kinds}
        kind = next((kind for kind in model.eats if kind in yielded), None)
        if kind is None:
            raise DataError(
                f"{model.name} needs {' or '.join(model.eats)}; this study gives {', '.join(sorted(yielded))}.",
                "Choose another model.",
            )
        by_criterion = self.observations(kind)
        if not by_criterion:
            raise DataError("there are no judgments yet.", "Collect some, or import them: steelyard import.")
        fits = {criterion: model.fit(observations) for criterion, observations in by_criterion.items()}
        tables = [self._decorated(criterion, fit.scores) for criterion, fit in fits.items()]
        notes = tuple(
            f"{criterion}: {note}" if criterion else note for criterion, fit in fits.items() for note in fit.notes
        )
        return Fit(
            model.name,
            model.settings(),
            pl.concat(tables, how="diagonal"),
            notes=notes,
            iterations=max(fit.iterations for fit in fits.values()),
            converged=all(fit.converged for fit in fits.values()),
        )

    def scores(self) -> pl.DataFrame:
        """The scores table: item, score, lower, upper, rank, judgments and more."""
        return self.fit().scores

    # Inside

    def _decorated(self, criterion: str, scores: pl.DataFrame) -> pl.DataFrame:
        groups = {item.id: item.group for item in self.items if item.group is not None}
        extra = []
        if criterion:
            extra.append(pl.lit(criterion).alias("criterion"))
        if groups:
            extra.append(pl.col("item").replace_strict(groups, default=None, return_dtype=pl.String).alias("group"))
        return scores.select("item", *extra, pl.exclude("item"))

    def _effective(self) -> Iterator[Judgment]:
        """The judgments that count, in the order they first came, each with its latest answer."""
        found: dict[str, Judgment] = {}
        for event in self._store.events(kinds=("judgment", "revision")):
            judgment = self._judgment(event)
            if event.kind == "revision":
                judgment = replace(judgment, at=found[judgment.judgment_id].at)
            found[judgment.judgment_id] = judgment
        return iter(found.values())

    def _judgment(self, event: Event) -> Judgment:
        stage = self.config.stages[event.data["stage"]]
        return Judgment(
            judgment_id=str(event.judgment_id),
            annotator=event.annotator or "",
            stage=stage.name,
            protocol=stage.protocol.name,
            items=tuple(event.data["items"]),
            answer=event.data["answer"],
            at=as_datetime(event.at),
            seconds=event.data.get("seconds"),
            late=bool(event.data.get("late")),
            imported=bool(event.data.get("imported")),
            revised=event.kind == "revision",
        )

    def _told_again(self, first: Event, answer: Any) -> Judgment:
        if to_json(first.data["answer"]) != to_json(answer):
            raise TaskError(f"task {first.judgment_id} already has another answer.", "Use revise to change an answer.")
        return self._judgment(first)

    def _owned_task(self, writer: Writer, judgment_id: str, annotator: str | None) -> StoredTask:
        stored = writer.task(judgment_id)
        if stored is None:
            raise TaskError(f"there is no task {judgment_id} in this study.", "Ask for a task first.")
        if annotator is not None and annotator != stored.annotator:
            raise TaskError(
                f"task {judgment_id} is leased to someone else, not to '{annotator}'.", "Ask for a task of your own."
            )
        return stored

    def _lease_end(self, now: int) -> int:
        return now + round(self.config.people.lease_minutes * 60_000_000)

    def _lease(self, annotator: str, count: int) -> tuple[list[Task], Nothing | None]:
        _check_annotator(annotator)
        if count < 1:
            raise TaskError(f"{count} tasks cannot be asked.", "Ask for at least one.")
        with self._writing() as (writer, ledger):
            now = self._clock()
            self._expire(writer, ledger, now)
            open_tasks = writer.open_tasks(annotator)[:count]
            nothing = None
            while len(open_tasks) < count and nothing is None:
                picked = self._pick(writer, ledger, annotator, now)
                if isinstance(picked, Nothing):
                    nothing = picked
                else:
                    open_tasks.append(picked)
            return [self._task(ledger, stored) for stored in open_tasks], nothing

    def _expire(self, writer: Writer, ledger: Ledger, now: int) -> None:
        for overdue in writer.overdue_tasks(now):
            event = writer.append("expired", at=now, annotator=overdue.annotator, judgment_id=overdue.judgment_id)
            writer.set_state(overdue.judgment_id, "expired")
            ledger.apply(event)

    def _pick(self, writer: Writer, ledger: Ledger, annotator: str, now: int) -> StoredTask | Nothing:
        limit = self.config.people.tasks
        if limit is not None and ledger.tasks_of[annotator] >= limit:
            return Nothing(f"You have done all your {limit} tasks.")
        chosen = pick_next(self.config, ledger, annotator)
        if isinstance(chosen, Nothing):
            return chosen
        number, pick = chosen
        design = self.config.stages[number].design
        ids = [ledger.items[code].id for code in pick.items]
        task = StoredTask(
            uuid.uuid4().hex, annotator, number, tuple(ids), "open", self._lease_end(now), writer.last_seq + 1
        )
        event = writer.append(
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
                "state": writer.digest,
                "lease_end": task.lease_end,
            },
        )
        writer.add_task(task)
        ledger.apply(event)
        return task

    def _task(self, ledger: Ledger, stored: StoredTask) -> Task:
        stage = self.config.stages[stored.stage]
        items = tuple(ledger.items[ledger.code[name]] for name in stored.items)
        return Task(
            stored.judgment_id, stored.annotator, stage.name, stage.protocol.name, items, as_datetime(stored.lease_end)
        )

    @contextmanager
    def _writing(self) -> Iterator[tuple[Writer, Ledger]]:
        """Hold the study, with the ledger up to date; if anything fails, the ledger is read anew."""
        with self._lock:
            ledger = self._ledger()
            committed = -1
            try:
                with self._store.write() as writer:
                    if ledger.seq != writer.last_seq:
                        for event in writer.events(ledger.seq):
                            ledger.apply(event)
                    committed = ledger.seq
                    yield writer, ledger
            except BaseException:
                if ledger.seq != committed:
                    self._cached = None
                raise

    @contextmanager
    def _reading(self) -> Iterator[Ledger]:
        with self._lock:
            ledger = self._ledger()
            for event in self._store.events(ledger.seq):
                ledger.apply(event)
            yield ledger

    def _ledger(self) -> Ledger:
        if self._cached is None:
            self._cached = Ledger(self.config.stages)
        return self._cached

    def _take_in(self, items: Sequence[Item], source_digest: str) -> None:
        """Bring the log up to date with study.toml and the items file."""
        config: dict[str, Any] = {
            "config": dict(self.config.source or {}),
            "items_digest": source_digest,
            "software": __version__,
        }
        with self._writing() as (writer, ledger):
            now = self._clock()
            if ledger.config.get("items_digest") != source_digest:
                new = new_items(ledger, items, self.config.items.file)
                for start in range(0, len(new), _ITEMS_PER_EVENT):
                    chunk = [item_to_data(item) for item in new[start : start + _ITEMS_PER_EVENT]]
                    ledger.apply(writer.append("items", at=now, data={"items": chunk}))
            if ledger.config != config:
                check_protocols_unchanged(ledger, config["config"])
                ledger.apply(writer.append("config", at=now, data=config))


def _identity(task: Task | str, annotator: str | None) -> tuple[str, str | None]:
    if isinstance(task, Task):
        return task.judgment_id, annotator or task.annotator
    return task, annotator


def _answer_event(writer: Writer, stored: StoredTask) -> Event:
    if stored.answer_seq is None:
        raise StoreError(f"task {stored.judgment_id} is answered, but its answer is missing.", "Restore a backup.")
    return writer.event(stored.answer_seq)


def _check_annotator(annotator: str) -> None:
    if not isinstance(annotator, str) or not annotator.strip() or len(annotator) > 200 or not annotator.isprintable():
        raise TaskError(f"{annotator!r} cannot be an annotator's name.", "Use 1 to 200 printable characters.")


def _checked_seconds(seconds: float | None) -> float | None:
    if seconds is not None and not 0 <= seconds < float("inf"):
        raise TaskError(f"{seconds!r} is not a time in seconds.", "Give a number from 0 up, or leave it out.")
    return seconds
