"""A study's log, and the state folded from it, kept in step; in a database, or in memory for simulated studies."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from itertools import islice

from steelyard.errors import SteelyardError, StoreError
from steelyard.storage import Store, Writer
from steelyard.study.checkpoints import Checkpoints, stages_digest
from steelyard.study.config import Stage
from steelyard.study.events import Event, Forgotten, Payload, decode_own
from steelyard.study.state import StudyState

logger = logging.getLogger("steelyard.study")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_SHARED_ANSWERS = 16
"""At most this many answers share a transaction, so that the first does not wait long for the last."""
_PATIENCE_SECONDS = 0.05
_CHECKPOINT = "state"
_EVENTS_BETWEEN_CHECKPOINTS = 10_000
"""Replaying this many events takes about 0.2 s."""
_REPLAYED_AT_ONCE = 20_000
"""After a tombstone, a log of up to this many events is replayed while writers wait, a longer one in the background."""
_CHECKPOINT_WAIT_SECONDS = 30.0
"""A process that forgets an annotator saves a checkpoint afterwards; others wait for it before they replay the log."""
_POLL_SECONDS = 0.2
_SLICE = 2_000
"""Events that are replayed in the background before other threads get a turn."""
_SLICE_PAUSE_SECONDS = 0.002


def as_datetime(at: int) -> datetime:
    """Turn the log's time, in microseconds, into a datetime in UTC."""
    return _EPOCH + timedelta(microseconds=at)


def as_microseconds(at: datetime) -> int:
    """Turn a datetime in UTC into the log's time, in microseconds."""
    return (at - _EPOCH) // timedelta(microseconds=1)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Suspend garbage collection: folding a long log allocates much, frees little, and would spend a third of its time
    in collections.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class _SharedTransaction:
    """A database transaction that several writers may share, so that one sync to disk serves them all."""

    def __init__(self, store: Store) -> None:
        self.done = threading.Event()
        self.error: BaseException | None = None
        self.members = 0
        """How many writers have appended to it and wait for its commit."""
        self.committed = 0
        """The last event that was on disk before this transaction."""
        self._stack = ExitStack()
        self.writer = self._stack.enter_context(store.write())

    def commit(self) -> None:
        """Commit to disk and wake the writers that wait."""
        try:
            self._stack.close()
        except BaseException as error:
            self.error = error
            raise
        finally:
            self.done.set()

    def abandon(self, error: BaseException) -> None:
        """Roll back and wake the writers that wait; raise the error as the store translates it."""
        self.error = error
        try:
            self._stack.__exit__(type(error), error, error.__traceback__)
        except BaseException as translated:
            self.error = translated
            raise
        finally:
            self.done.set()


class Log:
    """A study's store with its state. Threads may share one Log; processes may share one database."""

    def __init__(self, store: Store, stages: tuple[Stage, ...], checkpoints: Checkpoints | None = None) -> None:
        self.store = store
        self.checkpoints = checkpoints
        self._stages = stages
        self._checkpoint_seq = 0
        self._lock = threading.RLock()
        self._state = StudyState(stages)
        self._shared: _SharedTransaction | None = None
        self._waiting = 0
        self._counting = threading.Lock()
        self._behind = 0
        """The last tombstone that the state does not take into account yet; 0 if there is none."""
        self._refreshing: threading.Thread | None = None
        self._closing = threading.Event()
        self.generation = 0
        """How often the log was rewritten: caches about annotators may then describe one who was forgotten."""

    def close(self) -> None:
        """Close the database."""
        self._closing.set()
        if self._refreshing is not None:
            self._refreshing.join()
        self.store.close()

    def digest_of(self, seq: int) -> str | None:
        """Return the digest of an event if nothing was replaced since it was written, else None."""
        return None if seq < self.store.rewritten_seq() else self.store.digest_of(seq)

    def save_checkpoint(self, *, least: int = _EVENTS_BETWEEN_CHECKPOINTS) -> bool:
        """Save the state if it is `least` events ahead of the last checkpoint; return whether it was saved."""
        if self.checkpoints is None or self._state.seq - self._checkpoint_seq < least or self._behind:
            return False
        with self._lock:
            if self._shared is not None:
                self._commit(self._shared)
            state = self._state
            settings = stages_digest(self._stages)
            latest = self.checkpoints.seq(_CHECKPOINT, settings=settings)
            # Another process may have saved one meanwhile.
            if 0 <= state.seq - latest < least:
                self._checkpoint_seq = min(latest, state.seq)
                return False
            self._checkpoint_seq = state.seq
            is_written = self.checkpoints.write(
                _CHECKPOINT, state.to_checkpoint(), seq=state.seq, digest=state.digest, settings=settings
            )
        # Somebody may have been forgotten whom the state still contains.
        self.checkpoints.delete_if_rewritten(state.seq, state.digest, self.digest_of)
        return is_written

    def _initial_state(self) -> StudyState:
        """Return the state of the last checkpoint if there is a valid one, else an empty state."""
        config_fixed_at = self._state.config_fixed_at
        state = StudyState(self._stages)
        state.config_fixed_at = config_fixed_at
        if self.checkpoints is None:
            return state
        saved = self.checkpoints.read(_CHECKPOINT, settings=stages_digest(self._stages), digest_of=self.digest_of)
        # A change of the configuration by another process must be noticed, and it is noticed while folding.
        if saved is not None and saved["config_seq"] <= config_fixed_at:
            state = StudyState.of_checkpoint(self._stages, saved, config_fixed_at)
        return state

    def events(
        self, kinds: Iterable[str] | None = None, *, after: int = 0, until: int | None = None
    ) -> Iterator[Event]:
        """Yield the events of these kinds, or all of them, in order, after event `after` and up to event `until`."""
        return map(decode_own, self.store.events(after, kinds=kinds, until=until))

    def last_seq(self) -> int:
        """Return the number of the last event."""
        return self.store.last_seq()

    def fix_config(self, seq: int) -> None:
        """Hold on to the configuration: if another process changes it after event `seq`, that is an error."""
        self._state.config_fixed_at = seq

    def _catch_up(self) -> None:
        # The log is read in chunks: somebody forgotten meanwhile may still be in the chunks read before.
        last_seq = self._state.seq or self.store.last_seq()
        with _without_garbage_collection() if not self._state.seq else nullcontext():
            if not self._state.seq:
                self._state = self._initial_state()
                self._checkpoint_seq = self._state.seq
            is_consistent = self._fold(map(decode_own, self.store.events(self._state.seq)), last_seq)
        if not is_consistent:
            self._catch_up()

    def _fold(self, events: Iterable[Event], last_seq: int) -> bool:
        """Apply events; return False, with an empty state, when the log was rewritten because of a `forget`.

        The state of a long log is kept until another one was computed in the background.
        """
        for event in events:
            if event.seq > last_seq and isinstance(event.data, Forgotten):
                if self.checkpoints is not None:
                    self.checkpoints.delete(before=event.seq)
                if last_seq <= _REPLAYED_AT_ONCE:
                    self._reset()
                    return False
                self._fall_behind(event.seq)
            self._state.apply(event)
        return True

    def _fall_behind(self, tombstone: int) -> None:
        """Continue with a state in which somebody still counts who was forgotten, until there is another."""
        self._behind = tombstone
        self.generation += 1
        if self._refreshing is None:
            self._refreshing = threading.Thread(target=self._refresh_in_background, daemon=True)
            self._refreshing.start()

    def _refresh_in_background(self) -> None:
        give_up = time.monotonic() + _CHECKPOINT_WAIT_SECONDS
        settings = stages_digest(self._stages)
        while self.checkpoints is not None and time.monotonic() < give_up and self._behind:
            if self.checkpoints.seq(_CHECKPOINT, settings=settings) >= self._behind or self._closing.is_set():
                break
            time.sleep(_POLL_SECONDS)
        try:
            self.refresh()
        except SteelyardError as error:
            # The next request meets the same error and reports it.
            logger.warning("the state could not be computed again: %s", error)
        finally:
            self._refreshing = None

    def refresh(self) -> None:
        """Compute the state anew if somebody was forgotten, while others go on reading and writing."""
        with _without_garbage_collection():
            while self._behind and not self._closing.is_set():
                state = self._replayed()
                if state is None:
                    continue
                with self._turn():
                    if self._shared is not None:
                        self._commit(self._shared)
                    tail = list(map(decode_own, self.store.events(state.seq)))
                    if any(isinstance(event.data, Forgotten) for event in tail):
                        continue
                    for event in tail:
                        state.apply(event)
                    self._state, self._checkpoint_seq, self._behind = state, 0, 0
                    self.generation += 1

    def _replayed(self) -> StudyState | None:
        """Fold the log into a new state, a few events at a time; None if somebody was forgotten meanwhile."""
        last_seq = self.store.last_seq()
        state = self._initial_state()
        for number, event in enumerate(map(decode_own, self.store.events(state.seq))):
            if event.seq > last_seq and isinstance(event.data, Forgotten):
                return None
            state.apply(event)
            if number % _SLICE == 0:
                time.sleep(_SLICE_PAUSE_SECONDS)
                if self._closing.is_set():
                    return None
        return state

    def _reset(self) -> None:
        config_fixed_at = self._state.config_fixed_at
        self._state = StudyState(self._stages)
        self._state.config_fixed_at = config_fixed_at
        self._checkpoint_seq = 0
        self._behind = 0
        self.generation += 1

    @contextmanager
    def read(self) -> Iterator[StudyState]:
        """Give access to the state, up to date with the log."""
        with self._lock:
            self._catch_up()
            yield self._state

    @contextmanager
    def peek(self) -> Iterator[StudyState]:
        """Give access to the state as it was after the last read or write, without looking for newer events.

        It contains everything that this process has written; events of other processes may be missing.
        """
        with self._lock:
            if not self._state.seq:
                self._catch_up()
            yield self._state

    @contextmanager
    def write(self, *, alone: bool = False) -> Iterator[Transaction]:
        """Lock the study, with the state up to date; all events appended in the block are kept, or none.

        They are on disk when the block has ended. Threads that arrive while others write share a transaction with
        them, because the sync to disk takes longer than everything else; a database failure hits all of them.
        Pass `alone` for long operations and for those that may fail halfway.
        """
        with self._turn():
            shared = self._begin(alone)
            before = self._state.seq
            try:
                yield Transaction(shared.writer, self._state, self._behind)
            except BaseException as error:
                if isinstance(error, SteelyardError) and self._state.seq == before and shared.members:
                    # A refusal: nothing of it was written, and earlier writers still wait for their commit.
                    self._end_turn(shared)
                    raise
                self._abandon(shared, error)
                raise
            shared.members += 1
            self._end_turn(shared, now=alone)
        self._await(shared)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Lock the study while no transaction is open, to write tables other than the log."""
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

    def _begin(self, alone: bool) -> _SharedTransaction:
        """Join the open transaction, or open one."""
        if self._shared is not None and not alone:
            return self._shared
        if self._shared is not None:
            self._commit(self._shared)
        # The log may be long: read it before locking out other processes, then only what was added since.
        if self._state.seq == 0:
            self._catch_up()
        self._shared = shared = _SharedTransaction(self.store)
        first = self._state.seq
        try:
            if first != shared.writer.last_seq and not self._fold(map(decode_own, shared.writer.events(first)), first):
                self._fold(map(decode_own, shared.writer.events(0)), shared.writer.last_seq)
        except BaseException as error:
            shared.committed = self._state.seq
            self._abandon(shared, error)
            raise
        shared.committed = self._state.seq
        return shared

    def _end_turn(self, shared: _SharedTransaction, *, now: bool = False) -> None:
        """Leave the transaction open for the next writer, or commit it."""
        if now or not self._waiting or shared.members >= _MAX_SHARED_ANSWERS:
            self._commit(shared)

    def _commit(self, shared: _SharedTransaction) -> None:
        self._shared = None
        try:
            shared.commit()
        except BaseException:
            self._drop_uncommitted(shared)
            raise

    def _abandon(self, shared: _SharedTransaction, error: BaseException) -> None:
        """Roll back; raise the error as the store translates it."""
        self._shared = None
        self._drop_uncommitted(shared)
        shared.abandon(error)

    def _drop_uncommitted(self, shared: _SharedTransaction) -> None:
        # What was rolled back must not stay in the state; a refusal has not touched it.
        if self._state.seq != shared.committed:
            self._reset()

    def _await(self, shared: _SharedTransaction) -> None:
        """Wait until the transaction is on disk; raise if it failed."""
        while not shared.done.wait(_PATIENCE_SECONDS):
            # No other writer has come to commit it: do it here.
            with self._lock:
                if self._shared is shared:
                    self._commit(shared)
        if isinstance(shared.error, SteelyardError):
            raise StoreError(shared.error.problems)
        if shared.error is not None:
            raise StoreError(
                "the database could not be written: it failed while several answers were being saved.",
                "Send the answer again: saved answers are never counted twice.",
            )

    @contextmanager
    def rewrite(self) -> Iterator[Writer]:
        """Lock the study to replace past events; a tombstone must follow, at which the state is folded again."""
        with self._turn():
            if self._shared is not None:
                self._commit(self._shared)
            with self.store.write() as writer:
                yield writer


class Transaction:
    """A transaction on the log: an event that is appended is in the state at once."""

    def __init__(self, writer: Writer, state: StudyState, behind: int = 0) -> None:
        self.store = writer
        self.state = state
        self.behind = behind
        """The last tombstone that the state does not take into account yet; 0 if there is none."""

    def append(
        self, payload: Payload, *, at: int, annotator: str | None = None, judgment_id: str | None = None
    ) -> Event:
        """Write an event and fold it into the state."""
        event = append_event(self.store, payload, at=at, annotator=annotator, judgment_id=judgment_id)
        self.state.apply(event)
        return event

    def event(self, seq: int) -> Event:
        """Return one event by its number."""
        return decode_own(self.store.event(seq))


def append_event(
    writer: Writer, payload: Payload, *, at: int, annotator: str | None = None, judgment_id: str | None = None
) -> Event:
    """Write an event with this payload."""
    stored = writer.append(payload.kind, payload.text(), at=at, annotator=annotator, judgment_id=judgment_id)
    return Event(stored.seq, at, annotator, judgment_id, payload, stored.data, stored.digest, stored.seal)


class MemoryLog:
    """Events in a list, with the study's state. Its events have no stored text and no digest."""

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        self.state = StudyState(stages)
        self._events: list[Event] = []

    def append(
        self, payload: Payload, *, at: int, annotator: str | None = None, judgment_id: str | None = None
    ) -> Event:
        """Add an event and fold it into the state."""
        event = Event(len(self._events) + 1, at, annotator, judgment_id, payload, "", "")
        self.state.apply(event)
        self._events.append(event)
        return event

    def last_seq(self) -> int:
        """Return the number of the last event."""
        return len(self._events)

    def events(self, kinds: Iterable[str] | None = None, *, until: int | None = None) -> Iterator[Event]:
        """Yield the events of these kinds, or all of them, in order, up to event `until`."""
        events = islice(self._events, until)
        if kinds is None:
            return events
        names = frozenset(kinds)
        return (event for event in events if event.kind in names)
