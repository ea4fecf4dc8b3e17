"""How far a stage has come: what a design looks at to pick the next task.

It is a fold over the stage's events and knows nothing of clocks or databases, so that a log replays to the
same state anywhere. Every step costs the same however long the log has grown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from steelyard.designs.memory import Heard, Memory
from steelyard.observations import IntArray
from steelyard.records import Item


class Seen:
    """Sets of items that an annotator has been shown, each a row of sorted codes in one growing array.

    A set may have been shown more than once (a lease ran out, a late answer came); it is forgotten only when
    every showing is.
    """

    __slots__ = ("_row", "_rows", "_times", "_unwritten")

    def __init__(self) -> None:
        self._row: dict[tuple[int, ...], int] = {}
        self._times: dict[tuple[int, ...], int] = {}
        self._rows: IntArray = np.empty((8, 1), np.int32)
        self._unwritten: list[tuple[int, ...]] = []
        """The last sets, not yet in the array: a long log is read without anybody looking at it in between."""

    def __contains__(self, codes: tuple[int, ...]) -> bool:
        return codes in self._row

    @property
    def rows(self) -> IntArray:
        """The sets seen so far, one a row; shorter ones are padded with their last code."""
        if self._unwritten:
            self._write()
        return self._rows[: len(self._row)]

    def add(self, codes: tuple[int, ...]) -> None:
        """Remember a showing of a set."""
        times = self._times.get(codes, 0)
        self._times[codes] = times + 1
        if codes not in self._row:
            self._row[codes] = len(self._row)
            self._unwritten.append(codes)

    def _write(self) -> None:
        first = len(self._row) - len(self._unwritten)
        size, width = self._rows.shape
        needed = max(width, *map(len, self._unwritten))
        if len(self._row) > size or needed > width:
            larger = np.empty((max(size * 2, len(self._row)), needed), np.int32)
            larger[:size] = np.pad(self._rows, ((0, 0), (0, needed - width)), mode="edge")
            self._rows = larger
        full = [
            codes if len(codes) == needed else (*codes, *codes[-1:] * (needed - len(codes)))
            for codes in self._unwritten
        ]
        self._rows[first : len(self._row)] = full
        self._unwritten = []

    def discard(self, codes: tuple[int, ...]) -> None:
        """Take one showing of a set back."""
        self._times[codes] = self._times.get(codes, 0) - 1
        if self._times[codes] > 0:
            return
        del self._times[codes]
        if self._unwritten:
            self._write()
        place = self._row.pop(codes, None)
        if place is not None and place != len(self._row):
            last = next(key for key, row in self._row.items() if row == len(self._row))
            self._rows[place] = self._rows[len(self._row)]
            self._row[last] = place


class Levels:
    """Items by level (how often asked, or planned), with a member of a level drawn or moved in O(1)."""

    __slots__ = ("_level", "_members", "_place", "level")

    def __init__(self) -> None:
        self.level: IntArray = np.zeros(0, np.int32)
        self._level: list[int] = []
        """The same: single values are read much faster from a list, and all of them from an array."""
        self._members: list[list[int]] = [[]]
        self._place: list[int] = []

    def add_items(self, count: int) -> None:
        """Add new items at level 0."""
        first = len(self.level)
        self.level = np.concatenate([self.level, np.zeros(count, np.int32)])
        self._level += [0] * count
        self._place += range(len(self._members[0]), len(self._members[0]) + count)
        self._members[0] += range(first, first + count)

    @property
    def height(self) -> int:
        """One more than the highest level ever reached."""
        return len(self._members)

    def members(self, level: int) -> list[int]:
        """The items at a level, in an order that depends on the past alone."""
        return self._members[level] if level < len(self._members) else []

    def move(self, item: int, by: int) -> None:
        """Raise or lower an item by some levels."""
        level = self._level[item]
        old = self._members[level]
        last = old.pop()
        place = self._place[item]
        if last != item:
            old[place] = last
            self._place[last] = place
        level += by
        self._level[item] = self.level[item] = level
        while len(self._members) <= level:
            self._members.append([])
        new = self._members[level]
        self._place[item] = len(new)
        new.append(item)


@dataclass(slots=True)
class Slot:
    """A planned task: a set of items that some number of annotators are to judge."""

    items: tuple[int, ...]
    asked: int = 0
    answered: int = 0
    queued_at: int = -1
    """Where in the queue it stands; earlier entries are stale."""


@dataclass(slots=True)
class Person:
    """What one annotator has been shown in this stage."""

    items: Seen = field(default_factory=Seen)
    """Single items."""
    sets: Seen = field(default_factory=Seen)
    """Sets of two and more that were shown together."""
    queue_read: int = 0
    """How far into the queue there is nothing for this annotator: a bookmark that spares time, nothing else."""


class Progress:
    """A stage's state.

    `asked` holds, for each item, how many tasks with it are answered or out with somebody; `answered` how many
    are answered. `slots` are the planned tasks, by number, each for `capacity` annotators; `planned` says how
    many slots (or tasks without one) each item is in; `queue` holds the slots with room, in order: a slot that
    is given back joins its end. `places_asked` and `places_answered` count the slots' places that are taken.
    `memory` is what the design remembers besides; `version` changes with every event.
    """

    def __init__(self, capacity: int = 1, memory: Memory | None = None) -> None:
        self.capacity = capacity
        self.memory = memory
        self.version = 0
        self.asked = Levels()
        self.planned = Levels()
        self.answered: IntArray = np.zeros(0, np.int32)
        self.slots: dict[int, Slot] = {}
        self.queue: list[int] = []
        self.tasks_asked = 0
        self.tasks_answered = 0
        self.places_asked = 0
        self.places_answered = 0
        self._next_slot = 0
        self._slot_of_set: dict[tuple[int, ...], int] = {}
        self._people: dict[str, Person] = {}

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return len(self.answered)

    @property
    def tasks_out(self) -> int:
        """How many tasks are with annotators right now."""
        return self.tasks_asked - self.tasks_answered

    @property
    def next_slot(self) -> int:
        """The number of the next new slot."""
        return self._next_slot

    def tick(self, now: int) -> None:
        """Tell the design's memory what time it is, in microseconds."""
        if self.memory is not None:
            self.memory.now = now

    def person(self, annotator: str) -> Person:
        """Return what an annotator has been shown."""
        person = self._people.get(annotator)
        if person is None:
            person = self._people[annotator] = Person()
        return person

    def add_items(self, items: Sequence[Item]) -> None:
        """Take in new items, at any time."""
        self.version += 1
        self.asked.add_items(len(items))
        self.planned.add_items(len(items))
        self.answered = np.concatenate([self.answered, np.zeros(len(items), np.int32)])
        if self.memory is not None:
            self.memory.add_items(items)

    def slot_for(self, items: tuple[int, ...]) -> int:
        """Return the slot of a set of items that has room, or the number of the next new one."""
        slot = self._slot_of_set.get(tuple(sorted(items)))
        return slot if slot is not None and self.slots[slot].asked < self.capacity else self.next_slot

    def picked(
        self,
        annotator: str,
        items: tuple[int, ...],
        slot: int | None,
        round_number: int = 0,
        rng: np.random.Generator | None = None,
    ) -> None:
        """Note that a task went out; `slot` is the one it fills, a new one if there is none of that number.

        `rng` is a generator like the one it was picked with, from which the plan of a new round is drawn; none
        for judgments made elsewhere.
        """
        if self.memory is not None and rng is not None:
            self.memory.open_round(round_number, self, rng)
        key = tuple(sorted(items))
        if slot is None:
            self._plan(key, 1)
        elif slot not in self.slots:
            self.slots[slot] = Slot(key)
            self._next_slot = max(self._next_slot, slot + 1)
            self._slot_of_set[key] = slot
            self._plan(key, 1)
            if self.capacity > 1:
                self._enqueue(slot)
        self._went_out(annotator, items, slot)

    def answer(self, items: tuple[int, ...], slot: int | None) -> None:
        """Note that a task that is out was answered (`hear` says what)."""
        self.version += 1
        for item in items:
            self.answered[item] += 1
        self.tasks_answered += 1
        if slot is not None:
            self.slots[slot].answered += 1
            self.places_answered += self.slots[slot].answered <= self.capacity

    def hear(self, answer: Heard) -> None:
        """Let the design learn from an answer, to this stage or another."""
        if self.memory is not None:
            self.version += 1
            self.memory.heard(answer)

    def unhear(self, answer: Heard) -> None:
        """Let the design unlearn an answer."""
        if self.memory is not None:
            self.version += 1
            self.memory.unheard(answer)

    def set_aside(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Note that an answer no longer counts: its task may go to somebody else."""
        for item in items:
            self.answered[item] -= 1
        self.tasks_answered -= 1
        if slot is not None:
            self.places_answered -= self.slots[slot].answered <= self.capacity
            self.slots[slot].answered -= 1
        self.released(annotator, items, slot)

    def restored(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Note that an answer that had been set aside counts again."""
        self.reclaimed(annotator, items, slot)
        # Nobody sees it once more: what was set aside had not been forgotten.
        self.forget(annotator, items)
        self.answer(items, slot)

    def released(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Note that a task came back without an answer: it may go to somebody else."""
        self.version += 1
        for item in items:
            self.asked.move(item, -1)
        self.tasks_asked -= 1
        if slot is None:
            self._plan(items, -1)
        else:
            self.places_asked -= self.slots[slot].asked <= self.capacity
            self.slots[slot].asked -= 1
            self._enqueue(slot)
        if self.memory is not None:
            self.memory.released(annotator, items, slot)

    def forget(self, annotator: str, items: tuple[int, ...]) -> None:
        """Let an annotator whose task ran out be asked the same again."""
        self.version += 1
        person = self.person(annotator)
        if len(items) > 1:
            person.sets.discard(tuple(sorted(items)))
        for item in items:
            person.items.discard((item,))

    def reclaimed(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Note that an answer is coming, late, for a task that had been given back."""
        if slot is None:
            self._plan(items, 1)
        self._went_out(annotator, items, slot)

    def restart(self) -> None:
        """Drop plans that were made under another configuration."""
        if self.memory is not None:
            self.version += 1
            self.memory.restart()

    def _went_out(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        self.version += 1
        key = tuple(sorted(items))
        person = self.person(annotator)
        if len(key) > 1:
            person.sets.add(key)
        for item in key:
            person.items.add((item,))
            self.asked.move(item, 1)
        self.tasks_asked += 1
        if slot is not None:
            self.slots[slot].asked += 1
            self.places_asked += self.slots[slot].asked <= self.capacity
        if self.memory is not None:
            self.memory.picked(annotator, items, slot)

    def _plan(self, items: tuple[int, ...], by: int) -> None:
        for item in items:
            self.planned.move(item, by)

    def _enqueue(self, slot: int) -> None:
        self.slots[slot].queued_at = len(self.queue)
        self.queue.append(slot)
