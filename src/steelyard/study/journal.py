"""The log and what it adds up to, kept in step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from steelyard.store import Access, Event, Store, StoredTask, Writer
from steelyard.study.config import Stage
from steelyard.study.ledger import Ledger

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_datetime(at: int) -> datetime:
    """Turn the log's time, in microseconds, into a datetime in UTC."""
    return _EPOCH + timedelta(microseconds=at)


class Journal:
    """A study's store with its ledger. Several threads may share one; several processes, one database."""

    def __init__(self, store: Store, stages: tuple[Stage, ...]) -> None:
        self._store = store
        self._stages = stages
        self._lock = threading.RLock()
        self._ledger = Ledger(stages)

    def close(self) -> None:
        """Give the database back."""
        self._store.close()

    def config_event(self) -> Event | None:
        """The last event of the configuration, if there is one."""
        return self._store.config_event()

    def has_tasks(self) -> bool:
        """Whether anybody was ever asked anything."""
        return self._store.has_tasks()

    def last_seq(self) -> int:
        """The number of the log's last event."""
        return self._store.last_seq()

    def access(self, clock: Callable[[], int]) -> Access:
        """The tokens that let people into the study."""
        return self._store.access(clock)

    def answered_by(self, annotator: str, most: int) -> list[tuple[StoredTask, Event]]:
        """An annotator's last answered tasks with their answers, the last one first."""
        return self._store.answered_by(annotator, most)

    def task(self, judgment_id: str) -> StoredTask | None:
        """Find a task that went out."""
        return self._store.task(judgment_id)

    def events(self, kinds: Iterable[str] | None = None) -> Iterator[Event]:
        """The log, in order."""
        return self._store.events(kinds=kinds)

    def answers(self) -> Iterator[tuple[int, Event]]:
        """Every judgment in the order they first came: when, and its latest answer."""
        return self._store.answers()

    def answered(self) -> int:
        """How many judgments there are."""
        return self._store.answered()

    def settle(self, seq: int) -> None:
        """Hold on to the configuration: from its event on, one changed by another process is an error."""
        self._ledger.settled_at = seq

    def _catch_up(self) -> None:
        for event in self._store.events(self._ledger.seq):
            self._ledger.apply(event)

    @contextmanager
    def reading(self) -> Iterator[Ledger]:
        """Look at the ledger, up to date with the log."""
        with self._lock:
            self._catch_up()
            yield self._ledger

    @contextmanager
    def writing(self) -> Iterator[Entry]:
        """Hold the study, with the ledger up to date; all that is written in the block is kept, or nothing."""
        with self._lock:
            # The log may be long: read it before holding up everybody else, then only what came since.
            if self._ledger.seq == 0:
                self._catch_up()
            ledger = self._ledger
            committed = ledger.seq
            try:
                with self._store.write() as writer:
                    if ledger.seq != writer.last_seq:
                        for event in writer.events(ledger.seq):
                            ledger.apply(event)
                            committed = event.seq
                    yield Entry(writer, ledger)
            except BaseException:
                # What was rolled back must not stay in the ledger; a mere refusal has not touched it.
                if ledger.seq != committed:
                    self._ledger = Ledger(self._stages)
                    self._ledger.settled_at = ledger.settled_at
                raise


class Entry:
    """A transaction on the log: what `append` writes, the ledger knows at once."""

    def __init__(self, writer: Writer, ledger: Ledger) -> None:
        self.store = writer
        self.ledger = ledger

    def append(
        self,
        kind: str,
        *,
        at: int,
        annotator: str | None = None,
        judgment_id: str | None = None,
        data: dict[str, Any] | None = None,
    ) -> Event:
        """Write an event and take it into the ledger."""
        event = self.store.append(kind, at=at, annotator=annotator, judgment_id=judgment_id, data=data)
        self.ledger.apply(event)
        return event
