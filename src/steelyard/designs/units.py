"""What a design keeps a score of: every item, or every group of items (an MT system).

A unit is an item or a group. Groups are shown by their items for one source: the n systems' outputs for one
sentence. Sources asked about least come first, and none is looked at that cannot be chosen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

import numpy as np

from steelyard.designs.progress import Person, Seen
from steelyard.observations import UNKNOWN, IntArray
from steelyard.records import Item


class Shown(NamedTuple):
    """The items that stand for some units, and the chance with which they were chosen to."""

    items: tuple[int, ...]
    chance: float


def seen_sets(person: Person, size: int) -> Seen:
    """Return the tasks of a size that a person has seen; a task of one item is that item."""
    return person.items if size == 1 else person.sets


def sets_of_size(seen: Seen, size: int) -> IntArray:
    """Return the sets of exactly so many items, one a row."""
    rows = seen.rows
    if rows.shape[1] < size:
        return np.empty((0, size), np.int32)
    # Shorter sets repeat their last code; longer ones go on rising.
    rising = (np.diff(rows[:, :size], axis=1) > 0).all(axis=1)
    over = (rows[:, size:] == rows[:, size - 1 : size]).all(axis=1)
    return rows[rising & over, :size]


class Units(ABC):
    """Units and their items. Everything here is a fold over the stage's events."""

    ids: list[str]
    """The items' ids, by code."""

    def __init__(self) -> None:
        self.ids = []

    @property
    @abstractmethod
    def count(self) -> int:
        """How many units there are."""

    @property
    def complete(self) -> bool:
        """Whether any units can be shown together."""
        return True

    def add_items(self, items: Sequence[Item]) -> None:
        """Take in new items."""
        self.ids += [item.id for item in items]

    @abstractmethod
    def of_items(self, items: Iterable[int]) -> list[int]:
        """Return the unit of each item, UNKNOWN where it has none."""

    @abstractmethod
    def asked(self, items: tuple[int, ...], by: int) -> None:
        """Note that a task with these items went out (1) or came back unanswered (-1)."""

    @abstractmethod
    def show(self, units: tuple[int, ...], person: Person, rng: np.random.Generator) -> Shown | None:
        """Choose items that stand for the units in a task this person has not seen; None if there are none."""

    def companions(self, unit: int) -> IntArray | None:
        """Return the units that can be shown together with this one; None if all can."""
        return None

    @abstractmethod
    def exhausted(self, unit: int, size: int, person: Person) -> list[tuple[int, ...]]:
        """List the sets of units with this one in them of which the person has seen every task."""


class ItemUnits(Units):
    """Every item is a unit."""

    @property
    def count(self) -> int:
        """How many items there are."""
        return len(self.ids)

    def of_items(self, items: Iterable[int]) -> list[int]:
        """Return the items themselves."""
        return list(items)

    def asked(self, items: tuple[int, ...], by: int) -> None:
        """Keep no count: there is one way to show items."""

    def show(self, units: tuple[int, ...], person: Person, rng: np.random.Generator) -> Shown | None:
        """Return the items themselves, unless this person has seen just these together."""
        return None if tuple(sorted(units)) in seen_sets(person, len(units)) else Shown(units, 1.0)

    def exhausted(self, unit: int, size: int, person: Person) -> list[tuple[int, ...]]:
        """List the sets with this item that the person has seen."""
        rows = sets_of_size(seen_sets(person, size), size)
        return [tuple(row) for row in rows[(rows == unit).any(axis=1)].tolist()]


class GroupUnits(Units):
    """Every group is a unit; items with the same context are its groups' versions of one source.

    The second item of a group for one context stands with the other groups' second ones, and so on; items
    without context are lined up in their order. Items without group are never asked.
    """

    def __init__(self) -> None:
        super().__init__()
        self._unit_of: list[int] = []
        self._unit_array: IntArray | None = None
        self._code: dict[str, int] = {}
        self._source_of: list[int] = []
        self._sources: dict[tuple[str | None, int], int] = {}
        self._copies: Counter[tuple[str | None, int]] = Counter()
        self._versions: list[dict[int, int]] = []
        self._pools = _Pools()

    @property
    def count(self) -> int:
        """How many groups there are."""
        return len(self._code)

    @property
    def complete(self) -> bool:
        """Whether every group has an item for every source."""
        return all(mask.bit_count() == self.count for mask in self._pools.masks())

    def add_items(self, items: Sequence[Item]) -> None:
        """Take in new items, and the groups and sources they bring."""
        super().add_items(items)
        self._unit_array = None
        first = len(self._unit_of)
        for code, item in enumerate(items, start=first):
            if item.group is None:
                self._unit_of.append(UNKNOWN)
                self._source_of.append(UNKNOWN)
                continue
            unit = self._code.setdefault(item.group, len(self._code))
            copy = self._copies[item.context, unit]
            self._copies[item.context, unit] += 1
            source = self._sources.setdefault((item.context, copy), len(self._sources))
            if source == len(self._versions):
                self._versions.append({})
                self._pools.add(source)
            self._versions[source][unit] = code
            self._pools.widen(source, unit)
            self._unit_of.append(unit)
            self._source_of.append(source)

    def of_items(self, items: Iterable[int]) -> list[int]:
        """Return the items' groups."""
        return [self._unit_of[item] for item in items]

    def asked(self, items: tuple[int, ...], by: int) -> None:
        """Move the items' source by a task."""
        for source in {self._source_of[item] for item in items} - {UNKNOWN}:
            self._pools.move(source, by)

    def show(self, units: tuple[int, ...], person: Person, rng: np.random.Generator) -> Shown | None:
        """Choose a source that all the groups have, at random among those asked least that are new to the person."""
        seen = self._seen_sources(units, person)
        for level, sources in self._pools.by_level(units):
            known = [source for source in seen if self._pools.level[source] == level]
            eligible = sum(map(len, sources)) - len(known)
            if eligible == 0:
                continue
            parts = [[source for part in sources for source in part if source not in seen]] if known else sources
            versions = self._versions[_nth(parts, int(rng.integers(eligible)))]
            return Shown(tuple(versions[unit] for unit in units), 1 / eligible)
        return None

    def companions(self, unit: int) -> IntArray | None:
        """Return the groups that have a source in common with this one."""
        if self.complete:
            return None
        common = self._pools.companions(unit)
        return np.array([other for other in range(self.count) if common >> other & 1], np.int32)

    def exhausted(self, unit: int, size: int, person: Person) -> list[tuple[int, ...]]:
        """List the sets with this group of which the person has seen every source."""
        _, groups = self._seen(size, person)
        sets, times = np.unique(groups[(groups == unit).any(axis=1)], axis=0, return_counts=True)
        return [
            tuple(units)
            for units, number in zip(sets.tolist(), times.tolist(), strict=True)
            if len(set(units)) == size and number >= self._pools.shared_by(units)
        ]

    def _seen_sources(self, units: tuple[int, ...], person: Person) -> set[int]:
        """Return the sources of which the person has seen just these groups' items together."""
        rows, groups = self._seen(len(units), person)
        same = rows[(groups == sorted(units)).all(axis=1)]
        found = [{self._source_of[item] for item in row} for row in same.tolist()]
        return {sources.pop() for sources in found if len(sources) == 1}

    def _seen(self, size: int, person: Person) -> tuple[IntArray, IntArray]:
        """Return the tasks of a size that a person has seen: their items, and their groups in rising order."""
        if self._unit_array is None:
            self._unit_array = np.array(self._unit_of, np.int32)
        rows = sets_of_size(seen_sets(person, size), size)
        return rows, np.sort(self._unit_array[rows], axis=1)


def _nth(parts: list[list[int]], place: int) -> int:
    """Return the member at a place of several lists put end to end."""
    for part in parts:
        if place < len(part):
            return part[place]
        place -= len(part)
    raise IndexError(place)


class _Pools:
    """Sources by the set of groups that have them (a bit mask) and by how many tasks showed them.

    In the usual study there is one mask: every system translated every sentence.
    """

    def __init__(self) -> None:
        self.level: list[int] = []
        self._mask: list[int] = []
        self._place: list[int] = []
        self._members: dict[int, list[list[int]]] = {}
        self._lowest: dict[int, int] = {}
        self._size: Counter[int] = Counter()

    def masks(self) -> Iterator[int]:
        """Go through the masks that some source has."""
        return (mask for mask, size in self._size.items() if size)

    def add(self, source: int) -> None:
        """Add a source that no group has yet."""
        self._mask.append(0)
        self.level.append(0)
        self._place.append(0)
        self._enter(source)

    def widen(self, source: int, unit: int) -> None:
        """Note that one more group has a source."""
        self._leave(source)
        self._mask[source] |= 1 << unit
        self._enter(source)

    def move(self, source: int, by: int) -> None:
        """Note that a source is in more or fewer tasks."""
        self._leave(source)
        self.level[source] += by
        self._enter(source)

    def by_level(self, units: tuple[int, ...]) -> Iterator[tuple[int, list[list[int]]]]:
        """Go up the levels, each with its sources that all the groups have, in parts by mask."""
        masks = list(self._having(units))
        pools = [self._members[mask] for mask in masks]
        lowest = min((self._lowest[mask] for mask in masks), default=0)
        for level in range(lowest, max(map(len, pools), default=0)):
            parts = [levels[level] for levels in pools if level < len(levels) and levels[level]]
            if parts:
                yield level, parts

    def shared_by(self, units: Sequence[int]) -> int:
        """How many sources all the groups have."""
        return sum(self._size[mask] for mask in self._having(units))

    def companions(self, unit: int) -> int:
        """Return the mask of all that have a source in common with a group."""
        return reduce(or_, self._having((unit,)), 0)

    def _having(self, units: Sequence[int]) -> Iterator[int]:
        wanted = sum(1 << unit for unit in units)
        return (mask for mask in self.masks() if mask & wanted == wanted)

    def _enter(self, source: int) -> None:
        mask, level = self._mask[source], self.level[source]
        levels = self._members.setdefault(mask, [])
        while len(levels) <= level:
            levels.append([])
        self._place[source] = len(levels[level])
        levels[level].append(source)
        self._size[mask] += 1
        self._lowest[mask] = min(self._lowest.get(mask, level), level)

    def _leave(self, source: int) -> None:
        mask, level, place = self._mask[source], self.level[source], self._place[source]
        levels = self._members[mask]
        self._size[mask] -= 1
        members = levels[level]
        last = members.pop()
        if last != source:
            members[place] = last
            self._place[last] = place
        while self._lowest[mask] < len(levels) and not levels[self._lowest[mask]]:
            self._lowest[mask] += 1
