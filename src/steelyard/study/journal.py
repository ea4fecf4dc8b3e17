"""The log and what it adds up to, kept in step."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

from steelyard.errors import SteelyardError, StoreError
from steelyard.store import Access, Event, Store, StoredTask, Writer
from steelyard.study.config import Stage
from steelyard.study.ledger import Ledger

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_TOGETHER = 16
"""So many answers at most share a transaction, so that the first need not wait long for the last."""
_PATIENCE_SECONDS = 0.05


def as_datetime(at: int) -> datetime:
    """Turn the log's time, in microseconds, into a datetime in UTC."""
    return _EPOCH + timedelta(microseconds=at)


@contextmanager
def _nothing_thrown_away() -> Iterator[None]:
    """Look for no garbage in the block: what a long log adds up to is none, and looking takes a third of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class _Shared:
    """A transaction that several writers may share, so that one sync to disk serves them all."""

    def __init__(self, store: Store) -> None:
        self.done = threading.Event()
        self.error: BaseException | None = None
        self.members = 0
        """How many have written to it and wait for its end."""
        self.committed = 0
        """The last event that is on disk whatever becomes of this."""
        self._stack = ExitStack()
        self.writer = self._stack.enter_context(store.write())

    def commit(self) -> None:
        """Bring it to disk; tell those who wait."""
        try:
            self._stack.close()
        except BaseException as error:
            self.error = error
            raise
        finally:
            self.done.set()

    def abandon(self, error: BaseException) -> None:
        """Take everything back, and tell those who wait; raise the error if the store says it in other words."""
        self.error = error
        try:
            self._stack.__exit__(type(error), error, error.__traceback__)
        except BaseException as said:
            self.error = said
            raise
        finally:
            self.done.set()


class Journal:
    """A study's store with its ledger. Several threads may share one; several processes, one database."""

    def __init__(self, store: Store, stages: tuple[Stage, ...]) -> None:
        self._store = store
        self._stages = stages
        self._lock = threading.RLock()
        self._ledger = Ledger(stages)
        self._shared: _Shared | None = None
        self._waiting = 0
        self._counting = threading.Lock()
        self.generation = 0
        """How often the log was found rewritten: what was kept of people before may be of somebody who is gone."""

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
        return self._store.access(clock, self._between)

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

    @property
    def secret(self) -> str:
        """What the annotators' pseudonyms are made with."""
        return self._store.secret

    def wipe(self) -> str:
        """Take what was deleted off the disk, too; return what is left to do about that, if anything."""
        return self._store.wipe()

    def _catch_up(self) -> None:
        # A log is read a chunk at a time: whoever is forgotten after this may be in some chunks still.
        known = self._ledger.seq or self._store.last_seq()
        with _nothing_thrown_away() if not self._ledger.seq else nullcontext():
            whole = self._read(self._store.events(self._ledger.seq), known)
        if not whole:
            self._catch_up()

    def _read(self, events: Iterable[Event], known: int) -> bool:
        """Take events in; say no, and begin anew, when the log before them was rewritten: somebody was forgotten."""
        for event in events:
            if event.kind == "forgotten" and event.seq > known:
                self._begin_anew()
                return False
            self._ledger.apply(event)
        return True

    def _begin_anew(self) -> None:
        settled_at = self._ledger.settled_at
        self._ledger = Ledger(self._stages)
        self._ledger.settled_at = settled_at
        self.generation += 1

    @contextmanager
    def reading(self) -> Iterator[Ledger]:
        """Look at the ledger, up to date with the log."""
        with self._lock:
            self._catch_up()
            yield self._ledger

    @contextmanager
    def writing(self, *, alone: bool = False) -> Iterator[Entry]:
        """Hold the study, with the ledger up to date; all that is written in the block is kept, or nothing.

        It is on disk when the block has ended. Threads that come while others write share a transaction with them,
        for a sync to disk takes longer than all the rest: so does a failure of the database. `alone` is for what
        takes long, or may fail halfway by itself.
        """
        with self._turn():
            shared = self._begin(alone)
            before = self._ledger.seq
            try:
                yield Entry(shared.writer, self._ledger)
            except BaseException as error:
                if isinstance(error, SteelyardError) and self._ledger.seq == before and shared.members:
                    # A mere refusal: nothing of it was written, and those who wrote before still wait.
                    self._end_turn(shared)
                    raise
                self._abandon(shared, error)
                raise
            shared.members += 1
            self._end_turn(shared, now=alone)
        self._await(shared)

    @contextmanager
    def _between(self) -> Iterator[None]:
        """Hold the study while nothing of it is half written: for what is written beside the log."""
        with self._turn():
            if self._shared is not None:
                self._commit(self._shared)
            yield

    @contextmanager
    def _turn(self) -> Iterator[None]:
        with self._counting:
            self._waiting += 1
        try:
            self._lock.acquire()
        finally:
            with self._counting:
                self._waiting -= 1
        try:
            yield
        finally:
            self._lock.release()

    def _begin(self, alone: bool) -> _Shared:
        """Join the transaction that is open, or open one."""
        if self._shared is not None and not alone:
            return self._shared
        if self._shared is not None:
            self._commit(self._shared)
        # The log may be long: read it before holding up everybody else, then only what came since.
        if self._ledger.seq == 0:
            self._catch_up()
        self._shared = shared = _Shared(self._store)
        known = self._ledger.seq
        try:
            if known != shared.writer.last_seq and not self._read(shared.writer.events(known), known):
                self._read(shared.writer.events(0), shared.writer.last_seq)
        except BaseException as error:
            shared.committed = self._ledger.seq
            self._abandon(shared, error)
            raise
        shared.committed = self._ledger.seq
        return shared

    def _end_turn(self, shared: _Shared, *, now: bool = False) -> None:
        """Leave the transaction open for who comes next, or commit it."""
        if now or not self._waiting or shared.members >= _MOST_TOGETHER:
            self._commit(shared)

    def _commit(self, shared: _Shared) -> None:
        self._shared = None
        try:
            shared.commit()
        except BaseException:
            self._drop_uncommitted(shared)
            raise

    def _abandon(self, shared: _Shared, error: BaseException) -> None:
        """Take everything back; raise the error if the store says it in other words."""
        self._shared = None
        self._drop_uncommitted(shared)
        shared.abandon(error)

    def _drop_uncommitted(self, shared: _Shared) -> None:
        # What was rolled back must not stay in the ledger; a mere refusal has not touched it.
        if self._ledger.seq != shared.committed:
            self._begin_anew()

    def _await(self, shared: _Shared) -> None:
        """Wait until what was written is on disk; raise if it could not be."""
        while not shared.done.wait(_PATIENCE_SECONDS):
            # Whoever was to come next has not: do it ourselves.
            with self._lock:
                if self._shared is shared:
                    self._commit(shared)
        if isinstance(shared.error, SteelyardError):
            raise StoreError(shared.error.problems)
        if shared.error is not None:
            raise StoreError(
                "the database could not be written: it failed while several answers were being saved.",
                "Send it again: what was saved is never counted twice.",
            )

    @contextmanager
    def rewriting(self) -> Iterator[Writer]:
        """Hold the study to change what its log says of the past; the ledger is read anew afterwards."""
        with self._lock:
            if self._shared is not None:
                self._commit(self._shared)
            try:
                with self._store.write() as writer:
                    yield writer
            finally:
                self._begin_anew()


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
