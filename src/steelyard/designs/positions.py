"""Positions of groups on the screen, balanced so that no system has an advantage from being shown first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from steelyard.observations import UNKNOWN
from steelyard.records import Item


class PositionCounts:
    """How often the items of each group (system) were shown at each position of a task.

    Tasks of two items are counted by the ordered pair of groups, so that each group is first as often as second
    against every other group. Larger tasks are counted by group and position.
    """

    def __init__(self) -> None:
        self._code: dict[str, int] = {}
        self._group: list[int] = []
        self._counts: Counter[tuple[int, int, int]] = Counter()
        """Times shown, by group, position, and the other group of a pair (UNKNOWN in larger tasks)."""

    def add_items(self, items: Sequence[Item]) -> None:
        """Add new items with their groups."""
        self._group += [
            UNKNOWN if item.group is None else self._code.setdefault(item.group, len(self._code)) for item in items
        ]

    def count(self, items: tuple[int, ...], by: int) -> None:
        """Count a task that was leased (1) or released (-1); `items` are in display order."""
        for key in self._keys(items):
            self._counts[key] += by

    def balance(self, items: tuple[int, ...]) -> tuple[int, ...]:
        """Return the items in an order that shows groups where they were shown least.

        The order given decides between orders that are equally good, so it should be random. Items are left as they
        are if one of them has no group.
        """
        order = list(items)
        if UNKNOWN in (self._group[item] for item in items):
            return items
        is_improved = True
        while is_improved:
            is_improved = False
            for i, j in combinations(range(len(order)), 2):
                exchanged = order.copy()
                exchanged[i], exchanged[j] = order[j], order[i]
                if self._cost(exchanged) < self._cost(order):
                    order, is_improved = exchanged, True
        return tuple(order)

    def _cost(self, items: Sequence[int]) -> int:
        return sum(self._counts[key] for key in self._keys(items))

    def _keys(self, items: Sequence[int]) -> list[tuple[int, int, int]]:
        groups = [self._group[item] for item in items]
        if len(groups) == 2:
            return [(groups[0], 0, groups[1]), (groups[1], 1, groups[0])]
        return [(group, position, UNKNOWN) for position, group in enumerate(groups)]
