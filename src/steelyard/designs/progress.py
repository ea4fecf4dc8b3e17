"""Progress of a stage: everything a design reads to pick the next task.

It is a function of the stage's events and uses neither clocks nor databases, so that a log replays to the same state
anywhere. Each event takes constant time, however long the log is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from steelyard.designs.positions import PositionCounts
from steelyard.designs.saved_state import SavedRecords
from steelyard.designs.state import AnswerNotice, DesignState
from steelyard.observations import IntArray
from steelyard.records import Item


def pack_sets(sets: Sequence[tuple[int, ...]]) -> tuple[IntArray, IntArray]:
    """Return sets of codes as two arrays: the sizes of the sets, and all codes."""
    sizes = np.array([len(codes) for codes in sets], np.int32)
    return sizes, np.array([code for codes in sets for code in codes], np.int32)


def unpack_sets(packed: tuple[IntArray, IntArray]) -> list[tuple[int, ...]]:
    """Return the sets of codes that `pack_sets` has packed."""
    sizes, codes = packed
    if len(sizes) and (sizes == sizes[0]).all() and sizes[0]:
        return list(map(tuple, codes.reshape(len(sizes), -1).tolist()))
    ends = np.cumsum(sizes).tolist()
    flat = codes.tolist()
    return [tuple(flat[end - size : end]) for end, size in zip(ends, sizes.tolist(), strict=True)]


class ShownSets:
    """Sets of items that an annotator has been shown, each a row of sorted codes in one growing array.

    A set may be shown more than once (an expired lease, a late answer); it is removed when every showing is.
    """

    __slots__ = ("_pending", "_row", "_rows", "_showings")

    def __init__(self) -> None:
        self._row: dict[tuple[int, ...], int] = {}
        self._showings: dict[tuple[int, ...], int] = {}
        self._rows: IntArray = np.empty((8, 1), np.int32)
        self._pending: list[tuple[int, ...]] = []
        """Sets that are not in the array yet: replaying a long log never reads the array in between."""

    def __contains__(self, codes: tuple[int, ...]) -> bool:
        return codes in self._row

    def __getstate__(self) -> tuple[Any, IntArray]:
        """Return the sets in the order of their rows, and how often each was shown."""
        ordered = sorted(self._row, key=self._row.__getitem__)
        return pack_sets(ordered), np.array([self._showings[codes] for codes in ordered], np.int32)

    def __setstate__(self, state: tuple[Any, IntArray]) -> None:
        packed, showings = state
        self._pending = unpack_sets(packed)
        self._row = {codes: row for row, codes in enumerate(self._pending)}
        self._showings = dict(zip(self._pending, showings.tolist(), strict=True))
        self._rows = np.empty((8, 1), np.int32)

    @property
    def rows(self) -> IntArray:
        """The sets, one per row; shorter ones are padded with their last code."""
        if self._pending:
            self._write()
        return self._rows[: len(self._row)]

    def add(self, codes: tuple[int, ...]) -> None:
        """Record a showing of a set."""
        self._showings[codes] = self._showings.get(codes, 0) + 1
        if codes not in self._row:
            self._row[codes] = len(self._row)
            self._pending.append(codes)

    def _write(self) -> None:
        first = len(self._row) - len(self._pending)
        size, width = self._rows.shape
        new_width = max(width, *map(len, self._pending))
        if len(self._row) > size or new_width > width:
            larger = np.empty((max(size * 2, len(self._row)), new_width), np.int32)
            larger[:size] = np.pad(self._rows, ((0, 0), (0, new_width - width)), mode="edge")
            self._rows = larger
        padded = [
            codes if len(codes) == new_width else (*codes, *codes[-1:] * (new_width - len(codes)))
            for codes in self._pending
        ]
        self._rows[first : len(self._row)] = padded
        self._pending = []

    def discard(self, codes: tuple[int, ...]) -> None:
        """Remove one showing of a set."""
        self._showings[codes] = self._showings.get(codes, 0) - 1
        if self._showings[codes] > 0:
            return
        del self._showings[codes]
        if self._pending:
            self._write()
        place = self._row.pop(codes, None)
        if place is not None and place != len(self._row):
            last = next(key for key, row in self._row.items() if row == len(self._row))
            self._rows[place] = self._rows[len(self._row)]
            self._row[last] = place


class Levels:
    """Items by level (how often they were assigned or planned); drawing or moving an item takes constant time.

    An item that is withheld keeps its level, but is not a member of it.
    """

    __slots__ = ("_level", "_members", "_place", "level", "withheld")

    def __init__(self) -> None:
        self.level: IntArray = np.zeros(0, np.int32)
        self._level: list[int] = []
        """A copy of `level` as a list, from which single values are read much faster."""
        self._members: list[list[int]] = [[]]
        self._place: list[int] = []
        self.withheld: set[int] = set()

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
        """Return the items at a level, in an order that depends only on past moves."""
        return self._members[level] if level < len(self._members) else []

    def move(self, item: int, by: int) -> None:
        """Raise or lower an item by some levels."""
        is_member = item not in self.withheld
        if is_member:
            self._leave(item)
        self._level[item] += by
        self.level[item] = self._level[item]
        if is_member:
            self._join(item)

    def withhold(self, item: int) -> None:
        """Remove an item from the members of its level, so that it is not drawn."""
        if item not in self.withheld:
            self._leave(item)
            self.withheld.add(item)

    def restore(self, item: int) -> None:
        """Undo `withhold`."""
        if item in self.withheld:
            self.withheld.remove(item)
            self._join(item)

    def _leave(self, item: int) -> None:
        members, place = self._members[self._level[item]], self._place[item]
        last = members.pop()
        if last != item:
            members[place] = last
            self._place[last] = place

    def _join(self, item: int) -> None:
        level = self._level[item]
        while len(self._members) <= level:
            self._members.append([])
        members = self._members[level]
        self._place[item] = len(members)
        members.append(item)


@dataclass(slots=True)
class Slot:
    """A planned task: a set of items to be judged by `capacity` annotators.

    `assignments` counts leases and answers, `answers` the answers alone.
    """

    items: tuple[int, ...]
    assignments: int = 0
    answers: int = 0
    queue_position: int = -1
    """Its position in the queue; earlier entries are stale."""


@dataclass(slots=True)
class AnnotatorHistory:
    """The items that one annotator has been shown in this stage."""

    items: ShownSets = field(default_factory=ShownSets)
    """Single items."""
    sets: ShownSets = field(default_factory=ShownSets)
    """Sets of two or more items that were shown together."""
    queue_position: int = 0
    """No entry of the queue before this position suits the annotator; saves time and has no other effect."""


class _Histories(SavedRecords[AnnotatorHistory]):
    """What each annotator has been shown."""

    __slots__ = ()

    def new(self) -> AnnotatorHistory:
        return AnnotatorHistory()


class Progress:
    """Counts and history of a stage.

    `assignments` counts for each item the tasks that are answered or leased, `answers` those that are answered.
    `slots` are the planned tasks by number, each for `capacity` annotators; `planned_tasks` counts for each item the
    slots, or tasks without one, that contain it. `queue` lists the slots with free places in order; a released slot
    joins its end. `positions` counts where on the screen the items of each group were shown. `places_assigned` and
    `places_answered` count the places of all slots. `set_aside` are the items that nobody is asked about any more.
    `design_state` is the state of the design, and `version` changes with every event.
    """

    def __init__(self, capacity: int = 1, design_state: DesignState | None = None) -> None:
        self.capacity = capacity
        self.design_state = design_state
        self.version = 0
        self.assignments = Levels()
        self.planned_tasks = Levels()
        self.positions = PositionCounts()
        self.answers: IntArray = np.zeros(0, np.int32)
        self.slots: dict[int, Slot] = {}
        self.queue: list[int] = []
        self.tasks_assigned = 0
        self.tasks_answered = 0
        self.places_assigned = 0
        self.places_answered = 0
        self.set_aside: set[int] = set()
        self._next_slot = 0
        self._slot_of_set: dict[tuple[int, ...], int] = {}
        self._slots_of_item: dict[int, list[int]] | None = None
        """Slots by item, from the first item that is set aside on."""
        self._histories = _Histories()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a checkpoint keeps: slots as columns, because there may be as many as judgments."""
        slots = self.slots.values()
        counts = [(slot.assignments, slot.answers, slot.queue_position) for slot in slots]
        columns = np.array(counts, np.int64).reshape(-1, 3)
        packed = (np.fromiter(self.slots, np.int64), pack_sets([slot.items for slot in slots]), columns)
        queue = np.array(self.queue, np.int64)
        return {**self.__dict__, "slots": packed, "queue": queue, "_slot_of_set": None, "_slots_of_item": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        numbers, sets, columns = state["slots"]
        rows = zip(numbers.tolist(), unpack_sets(sets), columns.tolist(), strict=True)
        self.slots = {number: Slot(items, *counts) for number, items, counts in rows}
        self._slot_of_set = {slot.items: number for number, slot in self.slots.items()}
        self.queue = state["queue"].tolist()

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.answers)

    @property
    def tasks_leased(self) -> int:
        """Number of tasks that are leased now."""
        return self.tasks_assigned - self.tasks_answered

    @property
    def next_slot(self) -> int:
        """The number of the next new slot."""
        return self._next_slot

    def set_time(self, now: int) -> None:
        """Set the time that the design's state uses, in microseconds."""
        if self.design_state is not None:
            self.design_state.now = now

    def history(self, annotator: str) -> AnnotatorHistory:
        """Return what an annotator has been shown."""
        return self._histories[annotator]

    def add_items(self, items: Sequence[Item]) -> None:
        """Add new items, at any time."""
        self.version += 1
        self.assignments.add_items(len(items))
        self.planned_tasks.add_items(len(items))
        self.positions.add_items(items)
        self.answers = np.concatenate([self.answers, np.zeros(len(items), np.int32)])
        if self.design_state is not None:
            self.design_state.add_items(items)

    def on_item_set_aside(self, item: int) -> None:
        """Record that nobody is asked about an item any more; answers to leased tasks still count."""
        self.version += 1
        self.set_aside.add(item)
        self.assignments.withhold(item)
        self.planned_tasks.withhold(item)
        if self.design_state is not None:
            self.design_state.on_item_set_aside(item)

    def on_item_restored(self, item: int) -> None:
        """Record that an item that was set aside is asked about again."""
        self.version += 1
        self.set_aside.discard(item)
        self.assignments.restore(item)
        self.planned_tasks.restore(item)
        for slot in self._slots_with(item):
            if self.slots[slot].assignments < self.capacity:
                self._enqueue(slot)
        if self.design_state is not None:
            self.design_state.on_item_restored(item)

    def is_available(self, items: Iterable[int]) -> bool:
        """Whether none of the items is set aside."""
        return self.set_aside.isdisjoint(items)

    def closed_places(self, status: Literal["assignments", "answers"], ignored: Collection[int] = ()) -> int:
        """Return how many places of slots with an item that was set aside are not assigned, or not answered.

        Slots in `ignored` are not counted.
        """
        numbers = {slot for item in self.set_aside for slot in self._slots_with(item)}.difference(ignored)
        return sum(max(self.capacity - getattr(self.slots[slot], status), 0) for slot in numbers)

    def _slots_with(self, item: int) -> list[int]:
        if self._slots_of_item is None:
            self._slots_of_item = {}
            for number, slot in self.slots.items():
                self._index_slot(number, slot.items)
        return self._slots_of_item.get(item, [])

    def _index_slot(self, number: int, items: tuple[int, ...]) -> None:
        if self._slots_of_item is not None:
            for item in items:
                self._slots_of_item.setdefault(item, []).append(number)

    def slot_for(self, items: tuple[int, ...]) -> int:
        """Return the slot of a set of items if it has a free place, else the number of the next new slot."""
        slot = self._slot_of_set.get(tuple(sorted(items)))
        return slot if slot is not None and self.slots[slot].assignments < self.capacity else self.next_slot

    def on_leased(
        self,
        annotator: str,
        items: tuple[int, ...],
        slot: int | None,
        round_number: int = 0,
        rng: np.random.Generator | None = None,
    ) -> None:
        """Record a leased task; `slot` is the slot it fills, created if it does not exist.

        `rng` is a copy of the generator of the pick, from which the plan of a new round is drawn; None for imported
        judgments.
        """
        if self.design_state is not None and rng is not None:
            self.design_state.start_round(round_number, self, rng)
        key = tuple(sorted(items))
        if slot is None:
            self._plan(key, 1)
        elif slot not in self.slots:
            self.slots[slot] = Slot(key)
            self._next_slot = max(self._next_slot, slot + 1)
            self._slot_of_set[key] = slot
            self._index_slot(slot, key)
            self._plan(key, 1)
            if self.capacity > 1:
                self._enqueue(slot)
        self._assign(annotator, items, slot)

    def on_shared(self, items: tuple[int, ...]) -> None:
        """Record that every annotator gets a task with these items."""
        if self.design_state is not None:
            self.version += 1
            self.design_state.on_shared(items)

    def on_answered(self, items: tuple[int, ...], slot: int | None) -> None:
        """Count the answer to a leased task; `notify_answer` passes its content to the design."""
        self.version += 1
        for item in items:
            self.answers[item] += 1
        self.tasks_answered += 1
        if slot is not None:
            self.slots[slot].answers += 1
            self.places_answered += self.slots[slot].answers <= self.capacity

    def notify_answer(self, answer: AnswerNotice) -> None:
        """Let the design learn from an answer to this stage or another."""
        if self.design_state is not None:
            self.version += 1
            self.design_state.on_answer(answer)

    def notify_retraction(self, answer: AnswerNotice) -> None:
        """Let the design unlearn an answer."""
        if self.design_state is not None:
            self.version += 1
            self.design_state.on_retract(answer)

    def notify_model_answer(self, answer: AnswerNotice, *, retract: bool = False) -> None:
        """Let the design learn, or unlearn, a model's answer that does not count as a judgment."""
        if self.design_state is not None:
            self.version += 1
            state = self.design_state
            (state.on_model_retract if retract else state.on_model_answer)(answer)

    def on_excluded(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Stop counting an answer whose annotator was excluded: its task may be reassigned."""
        for item in items:
            self.answers[item] -= 1
        self.tasks_answered -= 1
        if slot is not None:
            self.places_answered -= self.slots[slot].answers <= self.capacity
            self.slots[slot].answers -= 1
        self.on_released(annotator, items, slot)

    def on_readmitted(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Count an answer again whose annotator was readmitted."""
        self.on_late_answer(annotator, items, slot)
        # The showing was never removed when the annotator was excluded, so it must not be counted twice.
        self.allow_again(annotator, items)
        self.on_answered(items, slot)

    def on_released(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Record that a task was released without an answer: it may be reassigned."""
        self.version += 1
        for item in items:
            self.assignments.move(item, -1)
        self.positions.count(items, -1)
        self.tasks_assigned -= 1
        if slot is None:
            self._plan(items, -1)
        else:
            self.places_assigned -= self.slots[slot].assignments <= self.capacity
            self.slots[slot].assignments -= 1
            self._enqueue(slot)
        if self.design_state is not None:
            self.design_state.on_released(annotator, items, slot)

    def allow_again(self, annotator: str, items: tuple[int, ...]) -> None:
        """Let an annotator whose lease expired get the same task again."""
        self.version += 1
        history = self.history(annotator)
        if len(items) > 1:
            history.sets.discard(tuple(sorted(items)))
        for item in items:
            history.items.discard((item,))

    def on_late_answer(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Assign a released task again because its answer arrived late."""
        if slot is None:
            self._plan(items, 1)
        self._assign(annotator, items, slot)

    def on_config_change(self) -> None:
        """Discard plans made under the previous configuration."""
        if self.design_state is not None:
            self.version += 1
            self.design_state.on_config_change()

    def _assign(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        self.version += 1
        key = tuple(sorted(items))
        history = self.history(annotator)
        if len(key) > 1:
            history.sets.add(key)
        for item in key:
            history.items.add((item,))
            self.assignments.move(item, 1)
        self.tasks_assigned += 1
        self.positions.count(items, 1)
        if slot is not None:
            self.slots[slot].assignments += 1
            self.places_assigned += self.slots[slot].assignments <= self.capacity
        if self.design_state is not None:
            self.design_state.on_leased(annotator, items, slot)

    def _plan(self, items: tuple[int, ...], by: int) -> None:
        for item in items:
            self.planned_tasks.move(item, by)

    def _enqueue(self, slot: int) -> None:
        self.slots[slot].queue_position = len(self.queue)
        self.queue.append(slot)


def free_slot(progress: Progress, history: AnnotatorHistory) -> int | None:
    """Return the first queued slot with a free place whose items the annotator has not seen together."""
    for position in range(history.queue_position, len(progress.queue)):
        number = progress.queue[position]
        slot = progress.slots[number]
        seen_sets = history.items if len(slot.items) == 1 else history.sets
        has_place = slot.queue_position == position and slot.assignments < progress.capacity
        if has_place and slot.items not in seen_sets and progress.is_available(slot.items):
            return number
        # A slot that is full, seen or set aside must join the queue again before it can suit this annotator.
        history.queue_position = position + 1
    return None
