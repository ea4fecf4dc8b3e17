"""Which targets are the heads of the next tasks: fixed for a round, or from the current state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush, merge
from math import comb

import numpy as np
from numpy.typing import NDArray

from steelyard.designs.match_quality.online_models import OnlineModel
from steelyard.designs.match_quality.selection import Snapshot, head_count, top_heads, top_heads_by_context
from steelyard.models.comparisons.match_quality import Located
from steelyard.observations import IntArray


class HeadPlan(ABC):
    """The order of the heads, and the targets that may be their partners. Targets are items or groups."""

    @property
    @abstractmethod
    def state(self) -> Located:
        """Posterior of every target."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of targets in the plan."""

    @property
    @abstractmethod
    def least_variance(self) -> float:
        """A lower bound on all variances."""

    @property
    @abstractmethod
    def is_done(self) -> bool:
        """Whether a new plan is due."""

    @abstractmethod
    def heads(self) -> Iterator[int]:
        """Yield the targets that may be heads now, the next one first."""

    def open_tasks(self) -> Iterator[tuple[int, ...]]:
        """Yield the tasks that may be assigned now: all their targets, or the head if partners are drawn."""
        return ((head,) for head in self.heads())

    def probability_of_planned(self, targets: tuple[int, ...]) -> float | None:
        """Return the probability with which a new plan begins with this task; None if it is unknown."""
        return 1.0

    @abstractmethod
    def may_join(self, targets: NDArray[np.integer], head: int) -> NDArray[np.bool_]:
        """Return which targets may be partners of a head."""

    @abstractmethod
    def on_task_leased(self, targets: list[int]) -> None:
        """Record that a new task with these targets was leased."""

    @abstractmethod
    def on_change(self, targets: list[int]) -> None:
        """Record that the posterior of some targets, or the number of leases with them, has changed."""


class CoveringTasks(HeadPlan):
    """A first round that shows every target: a random partition into tasks.

    Targets are repeated only to fill the last task of a context. A round of more tasks than that goes through the
    targets again. `contexts` are the sets of targets that may be shown together, each at least as large as a task.
    """

    def __init__(
        self,
        model: OnlineModel,
        task_size: int,
        tasks: int,
        rng: np.random.Generator,
        contexts: Sequence[Sequence[int]],
    ) -> None:
        live = model.state
        self._state = Snapshot(np.array(live.mode), np.array(live.variance))
        partition = _random_partition(contexts, task_size, rng)
        parts = [partition]
        while sum(map(len, parts)) < tasks:
            parts.append(_random_partition(contexts, task_size, rng))
        self._tasks = np.concatenate(parts)[: max(tasks, len(partition))]
        self._contexts = contexts
        self._sorted = np.sort(self._tasks, axis=1)
        # Tasks by their smallest target, to find the task of a lease without going through all.
        self._order = np.argsort(self._sorted[:, 0], kind="stable")
        self._smallest = self._sorted[self._order, 0]
        self._is_leased = bytearray(len(self._tasks))
        self._next = 0

    @property
    def state(self) -> Located:
        """Posterior at the start of the round."""
        return self._state

    @property
    def count(self) -> int:
        """Number of targets at the start of the round."""
        return len(self._state.mode)

    @property
    def least_variance(self) -> float:
        """The lowest variance at the start of the round."""
        return float(self._state.variance.min())

    @property
    def is_done(self) -> bool:
        """Whether every task of the round was leased."""
        return self._next >= len(self._is_leased)

    def heads(self) -> Iterator[int]:
        """Yield the first target of every task that has not been leased."""
        return (task[0] for task in self.open_tasks())

    def open_tasks(self) -> Iterator[tuple[int, ...]]:
        """Yield the tasks that have not been leased."""
        for place in range(self._next, len(self._is_leased)):
            if not self._is_leased[place]:
                yield tuple(self._tasks[place].tolist())

    def probability_of_planned(self, targets: tuple[int, ...]) -> float | None:
        """Return the probability of the first task: each of a context's tasks is a random set of its targets."""
        size = len(targets)
        members = next(members for members in self._contexts if targets[0] in members)
        is_first = targets == tuple(self._tasks[0].tolist())
        share = covering_size([members], size) / covering_size(self._contexts, size)
        return share / comb(len(members), size) if is_first else None

    def may_join(self, targets: NDArray[np.integer], head: int) -> NDArray[np.bool_]:
        """Return which targets are not the head; whole tasks are planned, so no partners are drawn."""
        is_partner: NDArray[np.bool_] = targets != head
        return is_partner

    def on_task_leased(self, targets: list[int]) -> None:
        """Mark the task with these targets as leased."""
        key = np.sort(np.array(targets, self._tasks.dtype))
        first = np.searchsorted(self._smallest, key[0], "left")
        last = np.searchsorted(self._smallest, key[0], "right")
        for place in self._order[first:last].tolist():
            if not self._is_leased[place] and np.array_equal(self._sorted[place], key):
                self._is_leased[place] = 1
                break
        while not self.is_done and self._is_leased[self._next]:
            self._next += 1

    def on_change(self, targets: list[int]) -> None:
        """Do nothing: the round uses the state at its start."""


def covering_size(contexts: Sequence[Sequence[int]], task_size: int) -> int:
    """Return the number of tasks that show every target at least once."""
    return sum(-(-len(members) // task_size) for members in contexts)


def _random_partition(contexts: Sequence[Sequence[int]], task_size: int, rng: np.random.Generator) -> IntArray:
    """Return tasks that show every target of every context once, filled up with targets that were shown before."""
    tasks: list[IntArray] = []
    for members in contexts:
        order = rng.permutation(np.array(members, np.int32))
        missing = -len(order) % task_size
        # The last task is filled from the targets of all other tasks, so none of its own is repeated.
        others = order[: len(order) - (task_size - missing)] if missing else order[:0]
        fillers = rng.choice(others, size=missing, replace=False) if missing else others
        tasks.append(np.concatenate([order, fillers]).reshape(-1, task_size))
    rows = np.concatenate(tasks)
    return rows[rng.permutation(len(rows))] if len(contexts) > 1 else rows


class RoundHeads(HeadPlan):
    """One iteration of Algorithm 1: the state at the start of the round, and the k heads of highest variance.

    A round of more than N/n tasks uses the heads again. Partners are never heads. With `context` (of each target), the
    heads are the items of highest variance within each context, so that every head has partners in its own. `eligible`
    marks the targets that can be heads, all if None.
    """

    def __init__(
        self,
        model: OnlineModel,
        task_size: int,
        tasks: int,
        rng: np.random.Generator,
        context: IntArray | None = None,
        eligible: NDArray[np.bool_] | None = None,
    ) -> None:
        live = model.state
        self._state = Snapshot(np.array(live.mode), np.array(live.variance))
        n = len(self._state.mode)
        targets = np.arange(n, dtype=np.int32) if eligible is None else np.flatnonzero(eligible).astype(np.int32)
        variance = self._state.variance[targets]
        if context is None:
            self._heads = targets[top_heads(variance, head_count(len(targets), task_size, tasks), rng)]
        else:
            self._heads = targets[top_heads_by_context(variance, context[targets], task_size, tasks, rng)]
        self._rank: IntArray = np.full(n, -1, np.int32)
        self._rank[self._heads] = np.arange(len(self._heads))
        self._least_variance = float(self._state.variance.min())
        self._is_leased = bytearray(tasks)
        self._next = 0

    @property
    def state(self) -> Located:
        """Posterior at the start of the round."""
        return self._state

    @property
    def count(self) -> int:
        """Number of targets at the start of the round."""
        return len(self._rank)

    @property
    def least_variance(self) -> float:
        """The lowest variance at the start of the round."""
        return self._least_variance

    @property
    def is_done(self) -> bool:
        """Whether every task of the round was leased."""
        return self._next >= len(self._is_leased)

    def heads(self) -> Iterator[int]:
        """Yield the heads of the tasks that have not been leased."""
        for place in range(self._next, len(self._is_leased)):
            if not self._is_leased[place]:
                yield int(self._heads[place % len(self._heads)])

    def may_join(self, targets: NDArray[np.integer], head: int) -> NDArray[np.bool_]:
        """Return which targets are not heads."""
        is_partner: NDArray[np.bool_] = self._rank[targets] < 0
        return is_partner

    def on_task_leased(self, targets: list[int]) -> None:
        """Mark the task of its head as leased; all other targets of the task are partners."""
        for target in targets:
            # Tasks picked by another design, before the configuration changed, may contain any targets.
            rank = int(self._rank[target]) if target < self.count else -1
            places = range(rank, len(self._is_leased), len(self._heads)) if rank >= 0 else ()
            free = next((place for place in places if not self._is_leased[place]), None)
            if free is not None:
                self._is_leased[free] = 1
        while not self.is_done and self._is_leased[self._next]:
            self._next += 1

    def on_change(self, targets: list[int]) -> None:
        """Do nothing: the round uses the state at its start."""


_Key = tuple[int, float, int, int]
"""Sort key of heads: number of leases, negative variance, random number; then the target itself."""


class ContinuousHeads(HeadPlan):
    """The current state: the head is the target of highest variance among those with the fewest leases.

    No annotator gets a head that is leased already while there are others. Targets are sorted once at the start; those
    that changed since are in a heap, whose stale entries are dropped when they reach the top. Ties are broken by a
    random order drawn at the start. `leases` counts the leases with each target; `eligible` marks the targets that can
    be heads, all if None.
    """

    def __init__(
        self,
        model: OnlineModel,
        leases: list[int],
        rng: np.random.Generator,
        eligible: NDArray[np.bool_] | None = None,
    ) -> None:
        self._model = model
        self._leases = leases
        negative_variance = -model.state.variance
        self._priority = rng.permutation(model.count).astype(np.int32)
        self._count = model.count
        self._order = np.lexsort((self._priority, negative_variance)).astype(np.int32)
        self._eligible = eligible
        if eligible is not None:
            self._order = self._order[eligible[self._order]]
        self._sorted_variance = negative_variance[self._order]
        self._first = 0
        self._stamp: dict[int, int] = {}
        self._heap: list[tuple[_Key, int]] = []
        self._stamps = 0
        self.on_change([target for target, count in enumerate(leases) if count])

    @property
    def state(self) -> Located:
        """The current posterior."""
        return self._model.state

    @property
    def count(self) -> int:
        """Number of targets at the start of the plan."""
        return self._count

    @property
    def least_variance(self) -> float:
        """A lower bound on all variances so far."""
        return self._model.least_variance

    @property
    def is_done(self) -> bool:
        """Whether targets were added since the start of the plan, which need a place among their ties."""
        return self._model.count > self.count

    def heads(self) -> Iterator[int]:
        """Yield all targets in order without changing anything."""
        return (key[3] for key in merge(self._unchanged(), self._changed()))

    def may_join(self, targets: NDArray[np.integer], head: int) -> NDArray[np.bool_]:
        """Return which targets are not the head."""
        is_partner: NDArray[np.bool_] = targets != head
        return is_partner

    def on_task_leased(self, targets: list[int]) -> None:
        """Do nothing: `on_change` moves leased targets behind the others."""

    def on_change(self, targets: list[int]) -> None:
        """Give targets their new places."""
        if self.is_done:
            return
        variances = self._model.variances(np.array(targets, np.int32)).tolist()
        for target, variance in zip(targets, variances, strict=True):
            if self._eligible is not None and not self._eligible[target]:
                continue
            self._stamps += 1
            self._stamp[target] = self._stamps
            key = (self._leases[target], -variance, int(self._priority[target]), target)
            heappush(self._heap, (key, self._stamps))
        while self._first < len(self._order) and int(self._order[self._first]) in self._stamp:
            self._first += 1
        while self._heap and not self._is_current(self._heap[0]):
            heappop(self._heap)
        if len(self._heap) > 2 * len(self._stamp) + 64:
            self._heap = [entry for entry in self._heap if self._is_current(entry)]
            heapify(self._heap)

    def _is_current(self, entry: tuple[_Key, int]) -> bool:
        return self._stamp[entry[0][3]] == entry[1]

    def _unchanged(self) -> Iterator[_Key]:
        for place in range(self._first, len(self._order)):
            target = int(self._order[place])
            if target not in self._stamp:
                yield 0, float(self._sorted_variance[place]), int(self._priority[target]), target

    def _changed(self) -> Iterator[_Key]:
        """Yield the entries of the heap in order without popping them: the children of an entry come after it."""
        frontier = [(entry, 0) for entry in self._heap[:1]]
        while frontier:
            entry, place = heappop(frontier)
            if self._is_current(entry):
                yield entry[0]
            for child in range(2 * place + 1, min(2 * place + 3, len(self._heap))):
                heappush(frontier, (self._heap[child], child))
