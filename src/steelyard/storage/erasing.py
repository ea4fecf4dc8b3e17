"""Removing an annotator from the database: rows rewritten or deleted, and their bytes erased from the disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Engine, bindparam, delete, select, update

from steelyard.storage.events import EMPTY_DIGEST, StoredEvent, rechained
from steelyard.storage.tables import access, events, tasks

_CHUNK = 10_000
_PATIENCE_SECONDS = 5.0
_IN_USE = "deleted data remain in the database's write-ahead log (-wal) while another process has it open."
_KEPT_BY_POSTGRESQL = "PostgreSQL keeps deleted data until it is overwritten: run VACUUM FULL when nobody is working."
_REPLACE = (
    update(events)
    .where(events.c.study == bindparam("in_study"), events.c.seq == bindparam("this_seq"))
    .values(
        kind=bindparam("new_kind"),
        annotator=bindparam("new_annotator"),
        judgment_id=bindparam("new_judgment"),
        data=bindparam("new_data"),
        digest=bindparam("new_digest"),
    )
)


def erase_events(
    connection: Connection, study: int, first: int, change: Callable[[StoredEvent, str], StoredEvent]
) -> str:
    """Change the events from `first` on and chain them anew; return the digest of the last."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA secure_delete = ON")
    own = select(events).where(events.c.study == study).order_by(events.c.seq)
    before = connection.execute(own.where(events.c.seq == first - 1)).one_or_none()
    digest = EMPTY_DIGEST if before is None else str(before.digest)
    while True:
        rows = connection.execute(own.where(events.c.seq >= first).limit(_CHUNK)).all()
        if not rows:
            return digest
        changed = list(rechained((StoredEvent(*row[1:]) for row in rows), change, digest))
        connection.execute(_REPLACE, [_values(study, event) for event in changed])
        first, digest = changed[-1].seq + 1, changed[-1].digest


def _values(study: int, event: StoredEvent) -> dict[str, Any]:
    return {
        "in_study": study,
        "this_seq": event.seq,
        "new_kind": event.kind,
        "new_annotator": event.annotator,
        "new_judgment": event.judgment_id,
        "new_data": event.data,
        "new_digest": event.digest,
    }


def erase_person(connection: Connection, study: int, annotator: str) -> int:
    """Delete an annotator's tasks and tokens; return how many tokens there were."""
    connection.execute(delete(tasks).where(tasks.c.study == study, tasks.c.annotator == annotator))
    gone = connection.execute(delete(access).where(access.c.study == study, access.c.annotator == annotator))
    return int(gone.rowcount)


def wipe(engine: Engine) -> str:
    """Remove deleted bytes from the disk; return what remains to be done for that, if anything.

    SQLite leaves deleted text in free space and in its write-ahead log: the file is written anew and the log
    emptied, for which nobody else may be reading just then. PostgreSQL's VACUUM frees the space, but the bytes
    stay until they are written over; VACUUM FULL does that, and locks the tables meanwhile, so it is left to people.
    """
    connection = engine.raw_connection()
    try:
        if engine.dialect.name == "sqlite":
            return "" if _wiped_sqlite(connection.driver_connection) else _IN_USE
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


def _wiped_sqlite(connection: Any) -> bool:
    import sqlite3

    give_up = time.monotonic() + _PATIENCE_SECONDS
    done = False
    while True:
        try:
            if not done:
                connection.execute("VACUUM")
                done = True
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.OperationalError:
            busy = 1
        if not busy:
            return True
        if time.monotonic() > give_up:
            return False
        time.sleep(0.05)
