"""Leases of tasks: who holds a task and until when; and validation of names, times and remarks."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real

from steelyard.errors import StoreError, TaskError
from steelyard.records import Effort, Task
from steelyard.storage import StoredTask
from steelyard.study import events as ev
from steelyard.study.events import Event
from steelyard.study.log import Transaction

MAX_ACTIVE_SECONDS = 86_400.0
"""A day: nobody works on one task for longer without a pause."""
_MOST_CHANGES = 1_000_000
_CLOCKS_APART = 60_000_000
"""So far (a minute) may the clocks of several machines that serve one study be apart."""


def expire(transaction: Transaction, now: int, lease_end: int) -> None:
    """Release the tasks whose lease has ended; `lease_end` is when a lease that begins now will end.

    A lease that ends much later was given out by a clock that has been set back since: it is cut to the usual
    length, or its task would be kept for nobody until that clock is caught up with.
    """
    for task in transaction.store.untimely_tasks(now, lease_end + _CLOCKS_APART):
        if task.lease_end <= now:
            release_task(transaction, task, now)
        else:
            set_lease(transaction, task, lease_end, now)


def set_lease(transaction: Transaction, task: StoredTask, lease_end: int, now: int) -> StoredTask:
    """Let a task's lease end at another time."""
    changed = replace(task, lease_end=lease_end)
    transaction.append(ev.Renewed(lease_end=lease_end), at=now, annotator=task.annotator, judgment_id=task.judgment_id)
    transaction.store.renew(task.judgment_id, lease_end)
    return changed


def release_task(transaction: Transaction, task: StoredTask, now: int) -> None:
    transaction.append(ev.Expired(), at=now, annotator=task.annotator, judgment_id=task.judgment_id)
    transaction.store.set_state(task.judgment_id, "expired")


def release_duplicates(transaction: Transaction, late: StoredTask, now: int) -> None:
    """Withdraw a task that repeats one whose late answer has just arrived."""
    for other in transaction.store.open_tasks(late.annotator):
        if other.stage == late.stage and set(other.items) == set(late.items):
            release_task(transaction, other, now)


def owned_task(transaction: Transaction, task: Task | str, annotator: str | None) -> StoredTask:
    """Find a task that went out, and refuse anybody but the one it went to."""
    judgment_id = task.judgment_id if isinstance(task, Task) else task
    if annotator is None and isinstance(task, Task):
        annotator = task.annotator
    annotator = None if annotator is None else annotator_name(annotator)
    stored = transaction.store.task(judgment_id)
    if stored is None:
        raise TaskError(f"there is no task {judgment_id} in this study.", "Ask for a task first.")
    if annotator is not None and annotator != stored.annotator:
        raise TaskError(
            f"task {judgment_id} is leased to someone else, not to '{annotator}'.", "Ask for a task of your own."
        )
    return stored


def answer_event(transaction: Transaction, stored: StoredTask) -> Event:
    if stored.answer_seq is None:
        raise StoreError(f"task {stored.judgment_id} is answered, but its answer is missing.", "Restore a backup.")
    return transaction.event(stored.answer_seq)


_STATE_AFTER: dict[type[ev.Payload], str] = {
    ev.Skipped: "skipped",
    ev.Expired: "expired",
    ev.Judged: "answered",
    ev.Revised: "answered",
    ev.Withdrawn: "withdrawn",
}


def task_after(event: Event, task: StoredTask | None) -> StoredTask:
    """Return the row of the table of tasks after an event about a task; `task` is the row before."""
    data = event.data
    if task is None:
        lease_end = data.lease_end if isinstance(data, ev.Picked) else event.at
        task = StoredTask(
            str(event.judgment_id), event.annotator or "", data.stage, data.items, "open", lease_end, event.seq
        )
    return replace(
        task,
        state=_STATE_AFTER.get(type(data), task.state),
        lease_end=data.lease_end if isinstance(data, ev.Renewed) else task.lease_end,
        answer_seq=event.seq if isinstance(data, ev.Judged) else task.answer_seq,
    )


def annotator_name(given: str) -> str:
    """Return an annotator's name in the one form it is kept in: é is é, however it was typed."""
    name = unicodedata.normalize("NFC", given).strip() if isinstance(given, str) else ""
    if not name or len(name) > 200 or not name.isprintable():
        raise TaskError(f"{given!r} cannot be an annotator's name.", "Use 1 to 200 printable characters.")
    return name


def checked_seconds(seconds: float | None) -> float | None:
    """Return an active time as a float; refuse values that are not finite or negative."""
    if seconds is None:
        return None
    try:
        value = float(seconds) if isinstance(seconds, Real) and not isinstance(seconds, bool) else math.nan
    except OverflowError:
        value = math.inf
    if not 0 <= value < math.inf:
        description = repr(seconds) if isinstance(seconds, float) else type(seconds).__name__
        raise TaskError(f"{description} is not a time in seconds.", "Give a number of 0 or more, or leave it out.")
    return value


def checked_effort(effort: Effort | None, items: Sequence[str]) -> Effort | None:
    """Return the effort of an answer, with valid times of the task's own items only."""
    if effort is None:
        return None
    for name in ("changes", "untrusted", "pastes"):
        count = getattr(effort, name)
        if not 0 <= count <= _MOST_CHANGES:
            raise TaskError(f"{count} {name} of one answer.", "Give a number from 0, or leave it out.")
    times = {item: checked_seconds(effort.items[item]) for item in items if item in effort.items}
    plain = {item: seconds for item, seconds in times.items() if seconds is not None}
    played = {item: min(1.0, max(0.0, effort.played[item])) for item in items if item in effort.played}
    return Effort(checked_seconds(effort.first_action), plain, effort.changes, played, effort.untrusted, effort.pastes)


def seconds_limit(leased_at: int, lease_end: int, now: int) -> float:
    """Return the longest active time, in seconds, that an answer sent now can have taken.

    It is the wall-clock time since the task was leased, and no more than its lease with all renewals. All times
    are in microseconds.
    """
    # If the clock was set back since, only the lease is known.
    end = min(now, lease_end) if now >= leased_at else lease_end
    return max(0, end - leased_at) / 1_000_000


def active_seconds(data: ev.Judged) -> float | None:
    """Return the active time of a judgment for cost, pay and speed.

    The log keeps `seconds` as it was sent. Browsers can send anything, so it counts up to `seconds_limit`, which
    the server measured; no answer counts for more than MAX_ACTIVE_SECONDS.
    """
    if data.seconds is None or not 0 <= data.seconds < math.inf:
        return None
    limit = MAX_ACTIVE_SECONDS if data.seconds_limit is None else min(data.seconds_limit, MAX_ACTIVE_SECONDS)
    return min(data.seconds, limit)


def checked_reason(reason: str) -> str:
    if not isinstance(reason, str) or len(reason) > 2000 or any("\ud800" <= sign <= "\udfff" for sign in reason):
        raise TaskError("the reason is not a text of up to 2,000 characters.", "Shorten it.")
    return reason
