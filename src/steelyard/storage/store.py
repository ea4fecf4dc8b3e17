"""Reading and writing the log and the leases. All SQL of the service is in this package."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from sqlalchemy import BindParameter, Connection, Engine, Row, Select, bindparam, delete, insert, select, update
from sqlalchemy.engine import URL
from sqlalchemy.exc import IntegrityError

from steelyard.errors import StoreError
from steelyard.storage.access import Access
from steelyard.storage.engine import open_engine
from steelyard.storage.erasing import Erasure, EventErasure, events_of, unfinished_erasure, wipe
from steelyard.storage.events import EMPTY_DIGEST, TOMBSTONE, StoredEvent, new_salt, to_json
from steelyard.storage.failures import READ, WRITTEN, said_plainly
from steelyard.storage.snapshot import Snapshot
from steelyard.storage.staging import Staging, has_batches
from steelyard.storage.tables import access, events, studies, tasks

UNNAMED = ""
"""What a study is called that has a database to itself and was given no name."""

_CHUNK = 10_000
_FEW = 1_000

# Statements are built once: building one costs more than running it.
_STUDY: BindParameter[int] = bindparam("in_study")
_THIS_TASK = (tasks.c.study == _STUDY) & (tasks.c.judgment_id == bindparam("this_id"))
_LOCK = (
    select(studies.c.last_seq, studies.c.digest, studies.c.config_seq).where(studies.c.id == _STUDY).with_for_update()
)
_FINISH = (
    update(studies)
    .where(studies.c.id == _STUDY)
    .values(last_seq=bindparam("new_seq"), digest=bindparam("new_digest"), config_seq=bindparam("new_config"))
)
_EVENTS_AFTER = select(events).where(events.c.study == _STUDY, events.c.seq > bindparam("after")).order_by(events.c.seq)
_CHUNK_AFTER = _EVENTS_AFTER.limit(_CHUNK)
_ONE_DIGEST = select(events.c.digest).where(events.c.study == _STUDY, events.c.seq == bindparam("this_seq"))
_ONE_EVENT = select(events).where(events.c.study == _STUDY, events.c.seq == bindparam("this_seq"))
_CONFIG = (
    select(events)
    .join(studies, (events.c.study == studies.c.id) & (events.c.seq == studies.c.config_seq))
    .where(studies.c.id == _STUDY)
)
_ANY_TASK = select(tasks.c.judgment_id).where(tasks.c.study == _STUDY).limit(1)
_ONE_TASK = select(tasks).where(_THIS_TASK)
_OPEN = select(tasks).where(tasks.c.study == _STUDY, tasks.c.state == "open").order_by(tasks.c.picked_seq)
_OPEN_OF = _OPEN.where(tasks.c.annotator == bindparam("holder"))
_UNTIMELY = _OPEN.where((tasks.c.lease_end <= bindparam("now")) | (tasks.c.lease_end > bindparam("latest")))
_ANSWERED_BY = (
    select(tasks)
    .where(tasks.c.study == _STUDY, tasks.c.annotator == bindparam("holder"), tasks.c.state == "answered")
    .order_by(tasks.c.answer_seq.desc())
    .limit(bindparam("most"))
)
_REWRITTEN_SEQ = select(studies.c.rewritten_seq).where(studies.c.id == _STUDY)
_SET_REWRITTEN = update(studies).where(studies.c.id == _STUDY).values(rewritten_seq=bindparam("new_seq"))
_LAST_SEQ = select(studies.c.last_seq).where(studies.c.id == _STUDY)
_SET_STATE = update(tasks).where(_THIS_TASK).values(state=bindparam("new_state"))
_SET_ANSWERED = update(tasks).where(_THIS_TASK).values(state=bindparam("new_state"), answer_seq=bindparam("new_seq"))
_RENEW = update(tasks).where(_THIS_TASK).values(lease_end=bindparam("new_end"))
_KEEP_SECRET = update(studies).where(studies.c.id == _STUDY).values(secret=bindparam("new_secret"))
_ADD_EVENTS, _ADD_TASKS, _ADD_TOKENS = insert(events), insert(tasks), insert(access)


@dataclass(frozen=True, slots=True)
class StoredTask:
    """A task that was leased: to whom, which items, until when, and its present state."""

    judgment_id: str
    annotator: str
    stage: int
    items: tuple[str, ...]
    state: str
    lease_end: int
    picked_seq: int
    answer_seq: int | None = None


class Store:
    """One study's part of a database.

    Use `write()` for anything that changes it: one transaction at a time a study, all of it or nothing.
    """

    def __init__(self, engine: Engine, study: int, name: str, secret: str) -> None:
        self._engine = engine
        self._study = study
        self.name = name
        self.secret = secret

    @classmethod
    def open(cls, url: str | URL, name: str | None, *, create: bool = True) -> Store:
        """Open the study called `name`; one that is not there is created, or refused if `create` is False.

        An SQLite file belongs to one study, which needs no name; if one is given, it must be the same each time.
        """
        engine = open_engine(url, create=create)
        try:
            with said_plainly("the database cannot be used", "Check that it may be written to."):
                study, kept, secret = _find_study(engine, name, create)
            if name is not None and kept not in {name, UNNAMED}:
                raise StoreError(
                    f"the database contains another study, '{kept}', not '{name}'.",
                    "Choose another file, or the right name.",
                )
        except StoreError:
            engine.dispose()
            raise
        return cls(engine, study, kept, secret)

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def write(self) -> Iterator[Writer]:
        """Open a transaction that has the study to itself; it is on disk when the block ends."""
        with said_plainly(*WRITTEN), self._engine.begin() as connection:
            writer = Writer(connection, self._study)
            yield writer
            writer.finish()

    def last_seq(self) -> int:
        """The number of the last event."""
        with self._reading() as connection:
            return int(connection.execute(_LAST_SEQ, {"in_study": self._study}).scalar_one())

    def digest_of(self, seq: int) -> str | None:
        """Return the digest of an event, which covers all events before it; None if there is no such event."""
        with self._reading() as connection:
            digest = connection.execute(_ONE_DIGEST, {"in_study": self._study, "this_seq": seq}).scalar_one_or_none()
        return None if digest is None else str(digest)

    def rewritten_seq(self) -> int:
        """The number of the last tombstone: events before it may be others than they were when it was written."""
        with self._reading() as connection:
            return int(connection.execute(_REWRITTEN_SEQ, {"in_study": self._study}).scalar_one())

    def erasure(self) -> Erasure | None:
        """Return the annotator who is being forgotten and what was replaced so far; None if nobody is."""
        with self._reading() as connection:
            return unfinished_erasure(connection, self._study)

    def events_of(self, annotator: str) -> list[tuple[int, str | None, str]]:
        """Return the numbers of an annotator's events, each with the id of its judgment and its kind."""
        with self._reading() as connection:
            return events_of(connection, self._study, annotator)

    def has_batches(self) -> bool:
        """Whether judgments are being imported, or were when a process ended."""
        with self._reading() as connection:
            return has_batches(connection, self._study)

    def existing_tasks(self, judgment_ids: list[str]) -> set[str]:
        """Return which of these tasks exist."""
        names: set[str] = set()
        for start in range(0, len(judgment_ids), _FEW):
            few = judgment_ids[start : start + _FEW]
            query = select(tasks.c.judgment_id).where(tasks.c.study == self._study, tasks.c.judgment_id.in_(few))
            with self._reading() as connection:
                names.update(connection.scalars(query))
        return names

    def access(
        self, clock: Callable[[], int], turn: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> Access:
        """Return the tokens that let people into this study; they are written in a `turn`."""
        return Access(self._engine, self._study, clock, turn)

    def events(
        self, after: int = 0, kinds: Iterable[str] | None = None, until: int | None = None
    ) -> Iterator[StoredEvent]:
        """Yield the events after a number and up to another, in order, a chunk at a time."""
        query = _CHUNK_AFTER
        if until is not None:
            query = query.where(events.c.seq <= until)
        if kinds is not None:
            query = query.where(events.c.kind.in_(list(kinds)))
        while True:
            with self._reading() as connection:
                rows = connection.execute(query, {"in_study": self._study, "after": after}).all()
            yield from map(_stored_event, rows)
            if len(rows) < _CHUNK:
                return
            after = rows[-1].seq

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Return a snapshot of the study, while other processes continue to write to it."""
        # SQLite's readers see one moment by themselves.
        options: dict[str, Any] = {"writes": False}
        if self._engine.dialect.name == "postgresql":
            options["isolation_level"] = "REPEATABLE READ"
        with said_plainly(*READ), self._engine.connect().execution_options(**options) as connection:
            yield Snapshot(connection, self._study)

    def config_event(self) -> StoredEvent | None:
        """Return the last event of the configuration, if there is one."""
        with self._reading() as connection:
            row = connection.execute(_CONFIG, {"in_study": self._study}).one_or_none()
        return None if row is None else _stored_event(row)

    def has_tasks(self) -> bool:
        """Whether any task was ever leased, or any judgment recorded."""
        with self._reading() as connection:
            return connection.execute(_ANY_TASK, {"in_study": self._study}).first() is not None

    def task(self, judgment_id: str) -> StoredTask | None:
        """Find a task that went out."""
        with self._reading() as connection:
            return _find_task(connection, self._study, judgment_id)

    def answered_by(self, annotator: str, most: int) -> list[tuple[StoredTask, StoredEvent]]:
        """Return an annotator's last answered tasks, each with its latest answer, the last one first."""
        with self._reading() as connection:
            rows = connection.execute(_ANSWERED_BY, {"in_study": self._study, "holder": annotator, "most": most})
            answered = [_stored_task(row) for row in rows]
            numbers = [task.answer_seq for task in answered]
            query = select(events).where(events.c.study == self._study, events.c.seq.in_(numbers))
            answers = {event.seq: event for event in map(_stored_event, connection.execute(query))}
        return [(task, answers[task.answer_seq]) for task in answered if task.answer_seq is not None]

    def wipe(self, trace: str = "") -> str:
        """Take what was deleted off the disk, too; return what is left to do about that, if anything.

        `trace` is a text that must not be left; without one, the whole file is written anew.
        """
        return wipe(self._engine, trace)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with said_plainly(*READ), self._engine.connect().execution_options(writes=False) as connection:
            yield connection


def _find_study(engine: Engine, name: str | None, create: bool) -> tuple[int, str, str]:
    """Return the number, name and secret of the study, made if it is not there and may be."""
    query = select(studies.c.id, studies.c.name, studies.c.secret)
    if engine.dialect.name != "sqlite":
        if name is None:
            raise StoreError(
                "a study in a shared database needs a name.", 'Add  name = "my-study"  to study.toml.', field="name"
            )
        query = query.where(studies.c.name == name)
    new = {
        "name": name or UNNAMED,
        "last_seq": 0,
        "digest": EMPTY_DIGEST,
        "config_seq": 0,
        "secret": secrets.token_hex(32),
    }
    # Looking takes no lock: a study can be opened while others write to it.
    with engine.connect().execution_options(writes=False) as connection:
        row = connection.execute(query).first()
    if row is not None:
        return row.id, row.name, row.secret
    if not create:
        raise StoreError("the database does not contain this study.", "Check the study's name and its database.")
    try:
        with engine.begin() as connection:
            row = connection.execute(query).first()
            if row is None:
                statement = insert(studies).values(new).returning(*query.selected_columns)
                row = connection.execute(statement).one()
    except IntegrityError:
        # Another process created it between our look and our insert.
        with engine.begin() as connection:
            row = connection.execute(query).one()
    return row.id, row.name, row.secret


class Writer:
    """A transaction on one study. Nothing is kept unless the block it was opened in ends well."""

    def __init__(self, connection: Connection, study: int) -> None:
        self._connection = connection
        self._study = study
        row = connection.execute(_LOCK, {"in_study": study}).one()
        self.last_seq: int = row.last_seq
        self.digest: str = row.digest
        self._config_seq: int = row.config_seq
        self._pending: list[dict[str, Any]] = []

    def append(
        self,
        kind: str,
        data: str,
        *,
        at: int,
        annotator: str | None = None,
        judgment_id: str | None = None,
    ) -> StoredEvent:
        """Add an event to the log; `data` is JSON."""
        return self.copy(StoredEvent(0, at, kind, annotator, judgment_id, data, "", new_salt()))

    def copy(self, original: StoredEvent) -> StoredEvent:
        """Add an event to the log as it is in another, with its seal."""
        self.last_seq += 1
        event = original._replace(seq=self.last_seq).chained_to(self.digest)
        if event.kind == "config":
            self._config_seq = event.seq
        if event.kind == TOMBSTONE:
            self._connection.execute(_SET_REWRITTEN, {"in_study": self._study, "new_seq": event.seq})
        self.digest = event.digest
        self._pending.append({"study": self._study, **event._asdict()})
        if len(self._pending) >= _CHUNK:
            self._flush()
        return event

    def events(self, after: int) -> Iterator[StoredEvent]:
        """Yield the events after a number, in order, this transaction's own included."""
        self._flush()
        values = {"in_study": self._study, "after": after}
        with self._connection.execute(_EVENTS_AFTER, values, execution_options={"yield_per": _CHUNK}) as rows:
            for row in rows:
                yield _stored_event(row)

    def event(self, seq: int) -> StoredEvent:
        """Return one event by its number."""
        self._flush()
        return _stored_event(self._connection.execute(_ONE_EVENT, {"in_study": self._study, "this_seq": seq}).one())

    def task(self, judgment_id: str) -> StoredTask | None:
        """Find a task that went out."""
        return _find_task(self._connection, self._study, judgment_id)

    def open_tasks(self, annotator: str) -> list[StoredTask]:
        """List the tasks an annotator holds, the oldest first."""
        return self._tasks(_OPEN_OF, holder=annotator)

    def untimely_tasks(self, now: int, latest: int) -> list[StoredTask]:
        """List the open tasks whose lease has ended, or ends after the latest time that can be right."""
        return self._tasks(_UNTIMELY, now=now, latest=latest)

    def _tasks(self, query: Select[Any], **values: object) -> list[StoredTask]:
        return [_stored_task(row) for row in self._connection.execute(query, {"in_study": self._study, **values})]

    def add_task(self, task: StoredTask) -> None:
        """Keep a task that goes out."""
        self.add_tasks([task])

    def add_tasks(self, new: Iterable[StoredTask]) -> None:
        """Keep tasks that went out."""
        rows = [
            {
                "study": self._study,
                "judgment_id": task.judgment_id,
                "annotator": task.annotator,
                "stage": task.stage,
                "item_ids": to_json(task.items),
                "state": task.state,
                "lease_end": task.lease_end,
                "picked_seq": task.picked_seq,
                "answer_seq": task.answer_seq,
            }
            for task in new
        ]
        for start in range(0, len(rows), _CHUNK):
            self._connection.execute(_ADD_TASKS, rows[start : start + _CHUNK])

    def keep_secret(self, secret: str) -> None:
        """Make the study's pseudonyms with this from now on; who has the study open goes on with the old one."""
        self._connection.execute(_KEEP_SECRET, {"in_study": self._study, "new_secret": secret})

    def add_tokens(self, tokens: Iterable[Mapping[str, Any]]) -> None:
        """Let in who was let in before, by the digests of their tokens."""
        rows = [{**token, "study": self._study} for token in tokens]
        if rows:
            self._connection.execute(_ADD_TOKENS, rows)

    def set_state(self, judgment_id: str, state: str, answer_seq: int | None = None) -> None:
        """Note what became of a task."""
        values: dict[str, Any] = {"in_study": self._study, "this_id": judgment_id, "new_state": state}
        if answer_seq is None:
            self._connection.execute(_SET_STATE, values)
        else:
            self._connection.execute(_SET_ANSWERED, {**values, "new_seq": answer_seq})

    def renew(self, judgment_id: str, lease_end: int) -> None:
        """Keep a task for its annotator a while longer."""
        self._connection.execute(_RENEW, {"in_study": self._study, "this_id": judgment_id, "new_end": lease_end})

    def staging(self) -> Staging:
        """Return the judgments that are being imported."""
        return Staging(self._connection, self._study)

    def erasing(self) -> EventErasure:
        """Return the means to replace past events."""
        self._flush()
        return EventErasure(self._connection, self._study)

    def seal_all(self, change: Callable[[StoredEvent, str], StoredEvent]) -> None:
        """Give a seal to every event of a log begun before there were seals; all digests are computed anew."""
        self.digest = self.erasing().seal_all(change)

    def tasks(self, judgment_ids: Iterable[str]) -> dict[str, StoredTask]:
        """Find tasks by their ids."""
        query = select(tasks).where(tasks.c.study == self._study, tasks.c.judgment_id.in_(list(judgment_ids)))
        return {row.judgment_id: _stored_task(row) for row in self._connection.execute(query)}

    def replace_tasks(self, judgment_ids: Iterable[str], new: Iterable[StoredTask]) -> None:
        """Delete tasks, and keep others in their place."""
        condition = (tasks.c.study == self._study) & tasks.c.judgment_id.in_(list(judgment_ids))
        self._connection.execute(delete(tasks).where(condition))
        self.add_tasks(new)

    def finish(self) -> None:
        """Write what is pending."""
        self._flush()
        values = {
            "in_study": self._study,
            "new_seq": self.last_seq,
            "new_digest": self.digest,
            "new_config": self._config_seq,
        }
        self._connection.execute(_FINISH, values)

    def _flush(self) -> None:
        if self._pending:
            self._connection.execute(_ADD_EVENTS, self._pending)
            self._pending = []


def _stored_event(row: Row[Any]) -> StoredEvent:
    # By position rather than by name: a long log is read row by row, and the first column is the study.
    return StoredEvent(*tuple(row)[1:])


def _find_task(connection: Connection, study: int, judgment_id: str) -> StoredTask | None:
    row = connection.execute(_ONE_TASK, {"in_study": study, "this_id": judgment_id}).one_or_none()
    return None if row is None else _stored_task(row)


def _stored_task(row: Row[Any]) -> StoredTask:
    return StoredTask(
        row.judgment_id,
        row.annotator,
        row.stage,
        tuple(json.loads(row.item_ids)),
        row.state,
        row.lease_end,
        row.picked_seq,
        row.answer_seq,
    )
