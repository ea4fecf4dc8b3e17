"""Which items are heads next, for match_quality: frozen for a round, or from the current state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from heapq import heapify, heappop, heappush, merge

import numpy as np
from numpy.typing import NDArray

from steelyard.designs.beliefs import Beliefs
from steelyard.designs.match_quality_sampling import Snapshot, head_count, top_heads
from steelyard.models.comparisons.match_quality import Located
from steelyard.observations import IntArray


class Plan(ABC):
    """Who is next, and who may be asked beside them. Units are items, or groups."""

    @property
    @abstractmethod
    def state(self) -> Located:
        """What is known of every unit."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many units it knows."""

    @property
    @abstractmethod
    def least(self) -> float:
        """A variance that no unit is below."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether a new plan is due."""

    @abstractmethod
    def heads(self) -> Iterator[int]:
        """Go through the units that may be heads now, the next one first."""

    @abstractmethod
    def may_join(self, units: NDArray[np.integer], head: int) -> NDArray[np.bool_]:
        """Say which units may stand beside a head."""

    @abstractmethod
    def planned(self, units: list[int]) -> None:
        """Note that a new task with these units goes out."""

    @abstractmethod
    def moved(self, units: list[int]) -> None:
        """Note that some units' state has changed, or how many people look at them."""


class Round(Plan):
    """One iteration of Algorithm 1: the state at its opening, and the k heads of highest variance.

    A round of more than N/n tasks goes through the heads again. Partners come from outside the heads.
    """

    def __init__(self, beliefs: Beliefs, task_size: int, tasks: int, rng: np.random.Generator) -> None:
        live = beliefs.state
        self._state = Snapshot(np.array(live.mode), np.array(live.variance))
        n = len(self._state.mode)
        self._heads = top_heads(self._state.variance, head_count(n, task_size, tasks), rng)
        self._rank: IntArray = np.full(n, -1, np.int32)
        self._rank[self._heads] = np.arange(len(self._heads))
        self._least = float(self._state.variance.min())
        self._taken = bytearray(tasks)
        self._next = 0

    @property
    def state(self) -> Located:
        """What was known at the opening."""
        return self._state

    @property
    def count(self) -> int:
        """How many units there were at the opening."""
        return len(self._rank)

    @property
    def least(self) -> float:
        """The lowest variance at the opening."""
        return self._least

    @property
    def done(self) -> bool:
        """Whether every task of the round went out."""
        return self._next >= len(self._taken)

    def heads(self) -> Iterator[int]:
        """Go through the heads of the tasks that have not gone out."""
        for place in range(self._next, len(self._taken)):
            if not self._taken[place]:
                yield int(self._heads[place % len(self._heads)])

    def may_join(self, units: NDArray[np.integer], head: int) -> NDArray[np.bool_]:
        """Say which units are outside the heads."""
        outside: NDArray[np.bool_] = self._rank[units] < 0
        return outside

    def planned(self, units: list[int]) -> None:
        """Cross the head off: it is the one that is no partner."""
        for unit in units:
            # Tasks picked by another design, before the study's configuration changed, may be of anything.
            rank = int(self._rank[unit]) if unit < self.count else -1
            places = range(rank, len(self._taken), len(self._heads)) if rank >= 0 else ()
            free = next((place for place in places if not self._taken[place]), None)
            if free is not None:
                self._taken[free] = 1
        while not self.done and self._taken[self._next]:
            self._next += 1

    def moved(self, units: list[int]) -> None:
        """Stay as it was at the opening."""


_Key = tuple[int, float, int, int]
"""What heads are sorted by: how many people look at the unit, its variance (negative), a random number; the unit."""


class Running(Plan):
    """The current state: the head is the unit of highest variance among those that fewest people look at now.

    So nobody gets a head that is already with somebody, as long as there are others. Units stand in order as
    they were at the start; those that changed since are in a heap, with what is out of date left in it until
    it comes to the top. Equals are in an order drawn at the start. `out` says how many look at each unit.
    """

    def __init__(self, beliefs: Beliefs, out: list[int], rng: np.random.Generator) -> None:
        self._beliefs = beliefs
        self._out = out
        falling = -beliefs.state.variance
        self._priority = rng.permutation(beliefs.count).astype(np.int32)
        self._order = np.lexsort((self._priority, falling)).astype(np.int32)
        self._falling = falling[self._order]
        self._first = 0
        self._stamp: dict[int, int] = {}
        self._heap: list[tuple[_Key, int]] = []
        self._stamps = 0
        self.moved([unit for unit, people in enumerate(out) if people])

    @property
    def state(self) -> Located:
        """What is known now."""
        return self._beliefs.state

    @property
    def count(self) -> int:
        """How many units there were at the start."""
        return len(self._order)

    @property
    def least(self) -> float:
        """A variance that none was ever below."""
        return self._beliefs.least

    @property
    def done(self) -> bool:
        """Whether units joined since: they need a place among their equals."""
        return self._beliefs.count > self.count

    def heads(self) -> Iterator[int]:
        """Go through all units in order, changing nothing."""
        return (key[3] for key in merge(self._unchanged(), self._changed()))

    def may_join(self, units: NDArray[np.integer], head: int) -> NDArray[np.bool_]:
        """Say which units are not the head."""
        others: NDArray[np.bool_] = units != head
        return others

    def planned(self, units: list[int]) -> None:
        """Leave it at `moved`: a unit that somebody looks at comes after the others."""

    def moved(self, units: list[int]) -> None:
        """Give units their new places."""
        if self.done:
            return
        for unit, variance in zip(units, self._beliefs.variances(np.array(units, np.int32)).tolist(), strict=True):
            self._stamps += 1
            self._stamp[unit] = self._stamps
            heappush(self._heap, ((self._out[unit], -variance, int(self._priority[unit]), unit), self._stamps))
        while self._first < len(self._order) and int(self._order[self._first]) in self._stamp:
            self._first += 1
        while self._heap and not self._holds(self._heap[0]):
            heappop(self._heap)
        if len(self._heap) > 2 * len(self._stamp) + 64:
            self._heap = [entry for entry in self._heap if self._holds(entry)]
            heapify(self._heap)

    def _holds(self, entry: tuple[_Key, int]) -> bool:
        return self._stamp[entry[0][3]] == entry[1]

    def _unchanged(self) -> Iterator[_Key]:
        for place in range(self._first, len(self._order)):
            unit = int(self._order[place])
            if unit not in self._stamp:
                yield 0, float(self._falling[place]), int(self._priority[unit]), unit

    def _changed(self) -> Iterator[_Key]:
        """Go through a heap in order without taking it apart: an entry's children come after it."""
        frontier = [(entry, 0) for entry in self._heap[:1]]
        while frontier:
            entry, place = heappop(frontier)
            if self._holds(entry):
                yield entry[0]
            for child in range(2 * place + 1, min(2 * place + 3, len(self._heap))):
                heappush(frontier, (self._heap[child], child))
