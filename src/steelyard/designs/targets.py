"""What a design scores: every item, or every group of items (for example a machine translation system).

A target is an item or a group. A group is represented by its items for one source: the outputs of n systems for one
sentence. Sources that were assigned least come first; the choice never scans sources that are not eligible.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import reduce
from operator import or_
from typing import NamedTuple

import numpy as np

from steelyard.designs.contexts import ItemContexts
from steelyard.designs.progress import AnnotatorHistory, ShownSets
from steelyard.observations import UNKNOWN, IntArray
from steelyard.records import Item


class TargetItems(NamedTuple):
    """The items that represent some targets, and the probability with which they were chosen."""

    items: tuple[int, ...]
    probability: float


def shown_sets(history: AnnotatorHistory, size: int) -> ShownSets:
    """Return the tasks of a size that an annotator has seen; a task of one item is that item."""
    return history.items if size == 1 else history.sets


def sets_of_size(seen_sets: ShownSets, size: int) -> IntArray:
    """Return the sets of exactly `size` items, one per row."""
    rows = seen_sets.rows
    if rows.shape[1] < size:
        return np.empty((0, size), np.int32)
    # Shorter sets repeat their last code; longer ones keep rising.
    is_rising = (np.diff(rows[:, :size], axis=1) > 0).all(axis=1)
    is_padded = (rows[:, size:] == rows[:, size - 1 : size]).all(axis=1)
    return rows[is_rising & is_padded, :size]


class Targets(ABC):
    """Targets and their items, updated by the events of a stage."""

    ids: list[str]
    """The ids of the items, by code."""

    def __init__(self) -> None:
        self.ids = []

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of targets."""

    @property
    def is_complete(self) -> bool:
        """Whether the probability of a task is known: any targets, or any of one context, can be shown together."""
        return True

    @property
    def largest_set(self) -> int:
        """The largest number of targets that can be shown together."""
        return self.count

    def round_size(self, task_size: int) -> int:
        """Return the number of tasks that show as many targets as there are: N/n."""
        return self.count // task_size

    def add_items(self, items: Sequence[Item]) -> None:
        """Add new items."""
        self.ids += [item.id for item in items]

    @property
    def withheld(self) -> Set[int]:
        """Targets that may not be shown, because their item was set aside."""
        return frozenset()

    @abstractmethod
    def withhold(self, item: int) -> None:
        """Show an item no more."""

    @abstractmethod
    def restore(self, item: int) -> None:
        """Undo `withhold`."""

    @abstractmethod
    def of_items(self, items: Iterable[int]) -> list[int]:
        """Return the target of each item, UNKNOWN where it has none."""

    @abstractmethod
    def count_assignment(self, items: tuple[int, ...], by: int) -> None:
        """Count a task with these items that was leased (1) or released (-1)."""

    @abstractmethod
    def choose_items(
        self, targets: tuple[int, ...], history: AnnotatorHistory, rng: np.random.Generator
    ) -> TargetItems | None:
        """Choose items that represent the targets in a task new to this annotator; None if there are none."""

    def companions(self, target: int) -> IntArray | None:
        """Return the targets that can be shown together with this one; None if all can."""
        return None

    @abstractmethod
    def exhausted_sets(self, target: int, size: int, history: AnnotatorHistory) -> list[tuple[int, ...]]:
        """Return the sets of targets that include this one and of which the annotator has seen every task."""


class ItemTargets(Targets):
    """Every item is a target; items are shown together with others of their context, or with any if `across`."""

    def __init__(self, *, across: bool = True) -> None:
        super().__init__()
        self.contexts = ItemContexts(across=across)

    @property
    def count(self) -> int:
        """Number of items."""
        return len(self.ids)

    @property
    def largest_set(self) -> int:
        """Number of items of the largest context."""
        return max(map(len, self.contexts.members), default=0)

    def round_size(self, task_size: int) -> int:
        """Return the number of tasks that show as many items as can be compared within their contexts."""
        return int(self.contexts.comparable(task_size).sum()) // task_size

    def add_items(self, items: Sequence[Item]) -> None:
        """Add new items with their contexts."""
        super().add_items(items)
        self.contexts.add(items)

    @property
    def withheld(self) -> Set[int]:
        """The items that were set aside."""
        return self.contexts.withheld

    def withhold(self, item: int) -> None:
        """Leave an item out of its context."""
        self.contexts.withhold(item)

    def restore(self, item: int) -> None:
        """Let an item be shown again."""
        self.contexts.restore(item)

    def companions(self, target: int) -> IntArray | None:
        """Return the other items of the same context; None if all items are in one."""
        if self.contexts.is_single:
            return None
        members = self.contexts.members[self.contexts.context_of(target)]
        return np.array([item for item in members if item != target], np.int32)

    def of_items(self, items: Iterable[int]) -> list[int]:
        """Return the items themselves."""
        return list(items)

    def count_assignment(self, items: tuple[int, ...], by: int) -> None:
        """Do nothing: there is one way to show items."""

    def choose_items(
        self, targets: tuple[int, ...], history: AnnotatorHistory, rng: np.random.Generator
    ) -> TargetItems | None:
        """Return the items themselves, unless the annotator has seen exactly these together."""
        is_seen = tuple(sorted(targets)) in shown_sets(history, len(targets))
        return None if is_seen else TargetItems(targets, 1.0)

    def exhausted_sets(self, target: int, size: int, history: AnnotatorHistory) -> list[tuple[int, ...]]:
        """Return the sets with this item that the annotator has seen."""
        rows = sets_of_size(shown_sets(history, size), size)
        return [tuple(row) for row in rows[(rows == target).any(axis=1)].tolist()]


class GroupTargets(Targets):
    """Every group is a target; items with the same context are the groups' versions of one source.

    If a group has several items for one context, the second is matched with the second of the other groups, and so on;
    items without a context are matched in their order. Items without a group are never shown.
    """

    def __init__(self) -> None:
        super().__init__()
        self._target_of: list[int] = []
        self._target_array: IntArray | None = None
        self._code: dict[str, int] = {}
        self._source_of: list[int] = []
        self._sources: dict[tuple[str | None, int], int] = {}
        self._copies: Counter[tuple[str | None, int]] = Counter()
        self._versions: list[dict[int, int]] = []
        self._pools = _SourcePools()

    @property
    def count(self) -> int:
        """Number of groups."""
        return len(self._code)

    @property
    def is_complete(self) -> bool:
        """Whether every group has an item for every source."""
        return all(mask.bit_count() == self.count for mask in self._pools.masks())

    def add_items(self, items: Sequence[Item]) -> None:
        """Add new items with their groups and sources."""
        super().add_items(items)
        self._target_array = None
        first = len(self._target_of)
        for code, item in enumerate(items, start=first):
            if item.group is None:
                self._target_of.append(UNKNOWN)
                self._source_of.append(UNKNOWN)
                continue
            target = self._code.setdefault(item.group, len(self._code))
            copy = self._copies[item.context, target]
            self._copies[item.context, target] += 1
            source = self._sources.setdefault((item.context, copy), len(self._sources))
            if source == len(self._versions):
                self._versions.append({})
                self._pools.add(source)
            self._versions[source][target] = code
            self._pools.add_group(source, target)
            self._target_of.append(target)
            self._source_of.append(source)

    def withhold(self, item: int) -> None:
        """Leave an item out: its group has no version of the source any more."""
        target, source = self._target_of[item], self._source_of[item]
        if target != UNKNOWN and self._versions[source].pop(target, None) is not None:
            self._pools.remove_group(source, target)

    def restore(self, item: int) -> None:
        """Let an item represent its group again."""
        target, source = self._target_of[item], self._source_of[item]
        if target != UNKNOWN and target not in self._versions[source]:
            self._versions[source][target] = item
            self._pools.add_group(source, target)

    def of_items(self, items: Iterable[int]) -> list[int]:
        """Return the groups of the items."""
        return [self._target_of[item] for item in items]

    def count_assignment(self, items: tuple[int, ...], by: int) -> None:
        """Count the task for the source of its items."""
        for source in {self._source_of[item] for item in items} - {UNKNOWN}:
            self._pools.move(source, by)

    def choose_items(
        self, targets: tuple[int, ...], history: AnnotatorHistory, rng: np.random.Generator
    ) -> TargetItems | None:
        """Choose a source that all groups have, at random among the least assigned that are new to the annotator."""
        seen_sources = self._seen_sources(targets, history)
        for level, pools in self._pools.by_level(targets):
            seen_here = [source for source in seen_sources if self._pools.level[source] == level]
            eligible = sum(map(len, pools)) - len(seen_here)
            if eligible == 0:
                continue
            unseen_pools = pools
            if seen_here:
                unseen_pools = [[source for pool in pools for source in pool if source not in seen_sources]]
            versions = self._versions[_nth(unseen_pools, int(rng.integers(eligible)))]
            return TargetItems(tuple(versions[target] for target in targets), 1 / eligible)
        return None

    def companions(self, target: int) -> IntArray | None:
        """Return the groups that have a source in common with this one."""
        if self.is_complete:
            return None
        mask = self._pools.companions(target)
        return np.array([other for other in range(self.count) if mask >> other & 1], np.int32)

    def exhausted_sets(self, target: int, size: int, history: AnnotatorHistory) -> list[tuple[int, ...]]:
        """Return the sets with this group of which the annotator has seen every source."""
        _, groups = self._seen_tasks(size, history)
        sets, counts = np.unique(groups[(groups == target).any(axis=1)], axis=0, return_counts=True)
        return [
            tuple(targets)
            for targets, count in zip(sets.tolist(), counts.tolist(), strict=True)
            if len(set(targets)) == size and count >= self._pools.count_common(targets)
        ]

    def _seen_sources(self, targets: tuple[int, ...], history: AnnotatorHistory) -> set[int]:
        """Return the sources for which the annotator has seen exactly these groups' items together."""
        rows, groups = self._seen_tasks(len(targets), history)
        same_groups = rows[(groups == sorted(targets)).all(axis=1)]
        sources_of_tasks = [{self._source_of[item] for item in row} for row in same_groups.tolist()]
        return {sources.pop() for sources in sources_of_tasks if len(sources) == 1}

    def _seen_tasks(self, size: int, history: AnnotatorHistory) -> tuple[IntArray, IntArray]:
        """Return the items and the sorted groups of the tasks of a size that an annotator has seen."""
        if self._target_array is None:
            self._target_array = np.array(self._target_of, np.int32)
        rows = sets_of_size(shown_sets(history, size), size)
        return rows, np.sort(self._target_array[rows], axis=1)


def _nth(lists: list[list[int]], place: int) -> int:
    """Return the member at a place of several concatenated lists."""
    for members in lists:
        if place < len(members):
            return members[place]
        place -= len(members)
    raise IndexError(place)


class _SourcePools:
    """Sources by the set of groups that have them (a bit mask) and by the number of tasks that showed them.

    Most studies have one mask: every system translated every sentence.
    """

    def __init__(self) -> None:
        self.level: list[int] = []
        self._mask: list[int] = []
        self._place: list[int] = []
        self._members: dict[int, list[list[int]]] = {}
        self._lowest: dict[int, int] = {}
        self._size: Counter[int] = Counter()

    def masks(self) -> Iterator[int]:
        """Yield the masks that some source has."""
        return (mask for mask, size in self._size.items() if size)

    def add(self, source: int) -> None:
        """Add a source that no group has yet."""
        self._mask.append(0)
        self.level.append(0)
        self._place.append(0)
        self._enter(source)

    def add_group(self, source: int, group: int) -> None:
        """Record that one more group has a source."""
        self._leave(source)
        self._mask[source] |= 1 << group
        self._enter(source)

    def remove_group(self, source: int, group: int) -> None:
        """Record that a group no longer has a source."""
        self._leave(source)
        self._mask[source] &= ~(1 << group)
        self._enter(source)

    def move(self, source: int, by: int) -> None:
        """Change the number of tasks that show a source."""
        self._leave(source)
        self.level[source] += by
        self._enter(source)

    def by_level(self, groups: tuple[int, ...]) -> Iterator[tuple[int, list[list[int]]]]:
        """Yield each level from the lowest, with the sources that all the groups have, one list per mask."""
        masks = list(self._masks_with(groups))
        pools = [self._members[mask] for mask in masks]
        lowest = min((self._lowest[mask] for mask in masks), default=0)
        for level in range(lowest, max(map(len, pools), default=0)):
            at_level = [levels[level] for levels in pools if level < len(levels) and levels[level]]
            if at_level:
                yield level, at_level

    def count_common(self, groups: Sequence[int]) -> int:
        """Return the number of sources that all the groups have."""
        return sum(self._size[mask] for mask in self._masks_with(groups))

    def companions(self, group: int) -> int:
        """Return the mask of the groups that have a source in common with a group."""
        return reduce(or_, self._masks_with((group,)), 0)

    def _masks_with(self, groups: Sequence[int]) -> Iterator[int]:
        required = sum(1 << group for group in groups)
        return (mask for mask in self.masks() if mask & required == required)

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
