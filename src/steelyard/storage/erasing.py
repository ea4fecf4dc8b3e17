"""Removing an annotator from the database: rows replaced or deleted, and their bytes erased from the disk."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, bindparam, delete, insert, select, update

from steelyard.storage.events import EMPTY_DIGEST, StoredEvent, new_salt
from steelyard.storage.processes import is_abandoned, now, this_process
from steelyard.storage.tables import access, erasures, events, tasks

_CHUNK = 10_000
_PATIENCE_SECONDS = 5.0
_PAUSE_SECONDS = 0.02
_READ_BYTES = 1 << 20
_IN_USE = "deleted data remain in the database's write-ahead log (-wal) while another process has it open."
_KEPT_BY_POSTGRESQL = "PostgreSQL keeps deleted data until it is overwritten: run VACUUM FULL when nobody is working."
_NAME_INDEXES = ("tasks_by_annotator", "access_by_kind")
"""Indexes that contain annotators' names."""
_THIS_EVENT = (events.c.study == bindparam("in_study")) & (events.c.seq == bindparam("this_seq"))
_REPLACE = (
    update(events)
    .where(_THIS_EVENT)
    .values(
        kind=bindparam("new_kind"),
        annotator=bindparam("new_annotator"),
        judgment_id=bindparam("new_judgment"),
        data=bindparam("new_data"),
        digest=bindparam("new_digest"),
        seal=bindparam("new_seal"),
    )
)


@dataclass(frozen=True, slots=True)
class Erasure:
    """An annotator who is being forgotten, and what was replaced so far."""

    annotator: str
    stand_in: str
    """Name under which their tasks stay in the log."""
    first: int = 0
    """The first event that was replaced; 0 if none was."""
    events: int = 0
    judgments: int = 0
    replaced: str = ""
    """Change of the sum of hashes of replaced events."""
    before: str = ""
    """Mark of the log's former digest, if the digests were computed anew."""
    member: str = ""
    is_replaced: bool = False
    """Whether all events are replaced; former bytes may still be in the file."""
    process: str = ""
    touched: int = 0

    @property
    def is_abandoned(self) -> bool:
        """Whether the process that erases has ended."""
        return is_abandoned(self.process, self.touched)


def unfinished_erasure(connection: Connection, study: int) -> Erasure | None:
    """Return the erasure that has begun and not ended, if there is one."""
    row = connection.execute(select(erasures).where(erasures.c.study == study)).one_or_none()
    return None if row is None else Erasure(*tuple(row)[1:])


def events_of(connection: Connection, study: int, annotator: str) -> list[tuple[int, str | None, str]]:
    """Return the numbers of an annotator's events, each with the id of its judgment and its kind."""
    columns = (events.c.seq, events.c.judgment_id, events.c.kind)
    query = select(*columns).where(events.c.study == study, events.c.annotator == annotator)
    return [(row.seq, row.judgment_id, row.kind) for row in connection.execute(query.order_by(events.c.seq))]


class EventErasure:
    """Replaces past events of one study, within a transaction."""

    def __init__(self, connection: Connection, study: int) -> None:
        self._connection = connection
        self._study = study

    def unfinished(self) -> Erasure | None:
        """Return the erasure that has begun and not ended, if there is one."""
        return unfinished_erasure(self._connection, self._study)

    def keep(self, erasure: Erasure) -> None:
        """Note how far an erasure is."""
        self.end()
        row = asdict(erasure) | {"process": this_process(), "touched": now()}
        self._connection.execute(insert(erasures).values(study=self._study, **row))

    def end(self) -> None:
        """Record that no annotator is being forgotten."""
        self._connection.execute(delete(erasures).where(erasures.c.study == self._study))

    def events(self, numbers: Sequence[int]) -> list[StoredEvent]:
        """Return events by their numbers, in order."""
        query = select(events).where(events.c.study == self._study, events.c.seq.in_(list(numbers)))
        return [StoredEvent(*tuple(row)[1:]) for row in self._connection.execute(query.order_by(events.c.seq))]

    def replace(self, new: Iterable[StoredEvent]) -> None:
        """Write events in the place of those with the same numbers."""
        rows = [_values(self._study, event) for event in new]
        if rows:
            self._connection.execute(_REPLACE, rows)

    def delete_tokens(self, annotator: str) -> None:
        """Delete the tokens and sessions of an annotator."""
        self._connection.execute(delete(access).where(access.c.study == self._study, access.c.annotator == annotator))

    def is_sealed(self) -> bool:
        """Whether the log has seals, so that events can be replaced without changing any digest."""
        query = select(events.c.seal).where(events.c.study == self._study, events.c.seq == 1)
        row = self._connection.execute(query).one_or_none()
        return row is None or row.seal is not None

    def seal_all(self, change: Callable[[StoredEvent, str], StoredEvent]) -> str:
        """Give every event a new seal and chain all anew, changed; return the digest of the last."""
        own = select(events).where(events.c.study == self._study).order_by(events.c.seq)
        seq, digest = 0, EMPTY_DIGEST
        while True:
            rows = self._connection.execute(own.where(events.c.seq > seq).limit(_CHUNK)).all()
            if not rows:
                return digest
            changed = []
            for row in rows:
                event = change(StoredEvent(*tuple(row)[1:]), digest)
                changed.append(event._replace(seal=new_salt()).chained_to(digest))
                seq, digest = event.seq, changed[-1].digest
            self.replace(changed)


def _values(study: int, event: StoredEvent) -> dict[str, Any]:
    return {
        "in_study": study,
        "this_seq": event.seq,
        "new_kind": event.kind,
        "new_annotator": event.annotator,
        "new_judgment": event.judgment_id,
        "new_data": event.data,
        "new_digest": event.digest,
        "new_seal": event.seal,
    }


def wipe(engine: Engine, trace: str = "") -> str:
    """Remove deleted bytes from the disk; return what remains to be done for that, if anything.

    SQLite overwrites what is deleted (secure_delete), but copies may remain in its write-ahead log, which is emptied,
    and in free space of indexes, which are written anew if `trace` is still in the file. Without a `trace` the whole
    file is written anew. Nobody else may be reading just then, so this is tried repeatedly, without making
    others wait. PostgreSQL's VACUUM frees the space, but the bytes stay until they are written over; VACUUM FULL does
    that, and locks the tables meanwhile, so it is left to people.
    """
    if engine.dialect.name == "sqlite":
        with _impatient(engine) as connection:
            return "" if _wiped_sqlite(connection, Path(str(engine.url.database)), trace) else _IN_USE
    connection = engine.raw_connection()
    try:
        # VACUUM runs outside a transaction.
        driver: Any = connection.driver_connection
        driver.rollback()
        driver.autocommit = True
        try:
            for table in (events, tasks, access):
                driver.execute(f"VACUUM {table.name}")
        finally:
            driver.autocommit = False
        return _KEPT_BY_POSTGRESQL
    finally:
        connection.close()


@contextmanager
def _impatient(engine: Engine) -> Iterator[Any]:
    """Open a connection that gives up at once where others are writing or reading, instead of making them wait."""
    connection = engine.raw_connection()
    driver: Any = connection.driver_connection
    (patience,) = driver.execute("PRAGMA busy_timeout").fetchone()
    try:
        driver.execute("PRAGMA busy_timeout = 0")
        yield driver
    finally:
        driver.execute(f"PRAGMA busy_timeout = {patience}")
        connection.close()


def _wiped_sqlite(connection: Any, path: Path, trace: str) -> bool:
    if not trace and not _is_done(connection, "VACUUM"):
        return False
    if not _is_done(connection, "PRAGMA wal_checkpoint(TRUNCATE)"):
        return False
    if trace and _contains(path, trace.encode()):
        done = all(_is_done(connection, f"REINDEX {name}") for name in _NAME_INDEXES)
        return done and _is_done(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
    return True


def _is_done(connection: Any, statement: str) -> bool:
    """Run a statement as soon as nobody else is in its way; return whether it succeeded in time."""
    give_up = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            # The first column of a checkpoint says whether somebody was in its way.
            row = connection.execute(statement).fetchone()
            if row is None or not row[0]:
                return True
        except sqlite3.OperationalError:
            pass
        if time.monotonic() > give_up:
            return False
        time.sleep(_PAUSE_SECONDS)


def _contains(path: Path, trace: bytes) -> bool:
    with path.open("rb") as file:
        end = b""
        while block := file.read(_READ_BYTES):
            if trace in end + block:
                return True
            end = block[-len(trace) :]
    return False
