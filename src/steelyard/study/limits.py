"""Limits on the leases and notes of one annotator, so that no annotator can block a study."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable

from steelyard.errors import LimitError, TaskError
from steelyard.study import events as ev
from steelyard.study.events import Event

EXTRA_LEASES = 3
"""Open tasks beyond the prefetch for an annotator without answers: enough for a second tab and answers under way."""
EARNED_LEASES = 12
"""Further open tasks, one for each answer: a page on a poor connection fetches ten ahead."""
RENEWALS = 12
"""Renewals of a task without any answer by its annotator; the page renews at half time: 3 h for leases of 30 min."""
LAPSES = 4
"""Leases that may run out in a row, without an answer, before an annotator has to wait while tasks are scarce."""
SCARCE_LEASE = 1 / 6
"""Lease length while tasks are scarce, as a fraction of the configured length."""
SHORTEST_LEASE = 2 * 60_000_000
"""Shortest lease that scarcity leads to, in microseconds."""
FLAGS_PER_TASK = 3
NOTES_PER_MINUTE = 20
"""Flags and skips of one annotator within a minute."""
_MINUTE = 60_000_000


class Activity:
    """What the log says about how annotators use their leases, flags and skips; a part of the study's state."""

    def __init__(self) -> None:
        self._answers: Counter[str] = Counter()
        self._lapses: Counter[str] = Counter()
        self._renewals: dict[str, Counter[str]] = {}
        self._notes: dict[str, deque[int]] = {}
        self._flags: dict[str, set[bytes]] = {}

    def apply(self, event: Event) -> None:
        """Fold an event into the counts; most kinds change nothing."""
        annotator, task = event.annotator or "", event.judgment_id or ""
        data = event.data
        if type(data) is ev.Judged:
            self._answers[annotator] += 1
            self._lapses.pop(annotator, None)
            self._renewals.pop(annotator, None)
        elif isinstance(data, ev.Renewed):
            self._renewals.setdefault(annotator, Counter())[task] += 1
        elif isinstance(data, ev.Expired):
            self._lapses[annotator] += 1
            self._renewals.get(annotator, Counter()).pop(task, None)
        elif isinstance(data, ev.Flagged | ev.Skipped):
            self._notes.setdefault(annotator, deque(maxlen=NOTES_PER_MINUTE)).append(event.at)
            if isinstance(data, ev.Flagged):
                self._flags.setdefault(task, set()).add(_digest(data.reason))

    def most_leases(self, annotator: str, prefetch: int) -> int:
        """Return how many tasks an annotator may hold: more with every answer, fewer with every lease that ran out."""
        earned = min(self._answers[annotator], EARNED_LEASES)
        return max(1, prefetch + EXTRA_LEASES + earned - self._lapses[annotator])

    def lets_leases_lapse(self, annotator: str) -> bool:
        """Whether an annotator has let several leases run out since their last answer."""
        return self._lapses[annotator] >= LAPSES

    def may_renew(self, annotator: str, judgment_id: str) -> bool:
        """Whether a task may be kept for longer."""
        return self._renewals.get(annotator, Counter())[judgment_id] < RENEWALS

    def has_flag(self, judgment_id: str, reason: str) -> bool:
        """Whether a task already has this flag."""
        return _digest(reason) in self._flags.get(judgment_id, ())

    def check_flag(self, judgment_id: str) -> None:
        """Refuse more flags on one task than anybody needs."""
        if len(self._flags.get(judgment_id, ())) >= FLAGS_PER_TASK:
            raise TaskError(
                f"task {judgment_id} already has {FLAGS_PER_TASK} flags.",
                "They are stored. Continue with the next task.",
            )

    def check_pace(self, annotator: str, now: int) -> None:
        """Refuse more flags and skips within a minute than anybody who reads the tasks would send."""
        times = self._notes.get(annotator)
        if times is None or len(times) < NOTES_PER_MINUTE:
            return
        # A clock that was set back must not make anybody wait for longer than the minute.
        wait = min(_MINUTE, times[0] + _MINUTE - now)
        if wait > 0 and now >= times[0] - _MINUTE:
            raise LimitError(
                f"'{annotator}' has flagged or skipped {NOTES_PER_MINUTE} tasks within a minute.",
                f"Wait {max(1, wait // 1_000_000)} seconds and send it again.",
                seconds=wait / 1e6,
            )


class Scarcity:
    """Whether so few tasks are left that they have to be shared out one at a time."""

    def __init__(self) -> None:
        self._free = 0
        self._counted_at = -1

    def is_scarce(self, seq: int, count_free: Callable[[], int], leased_to_others: int) -> bool:
        """Whether fewer tasks are free than the other annotators hold; `seq` is the number of the last event.

        Counting what is left takes some designs a while. An event uses up one task at most, so an old count
        less the events since is a lower bound, and usually enough.
        """
        if leased_to_others <= 0:
            return False
        if not 0 <= self._counted_at <= seq or self._free - (seq - self._counted_at) < leased_to_others:
            self._free, self._counted_at = count_free(), seq
        return self._free < leased_to_others


def short_lease(usual: int) -> int:
    """Return the length of a lease while tasks are scarce, in microseconds."""
    return min(usual, max(SHORTEST_LEASE, round(usual * SCARCE_LEASE)))


def _digest(reason: str) -> bytes:
    return hashlib.blake2b(reason.encode("utf-8", "surrogatepass"), digest_size=8).digest()
