"""Contexts: the sets of items that may be compared, such as the outputs of several systems for one source.

Items with the same context are compared with each other. Items without a context form a set of their own: they are
compared with one another, and never with an item that has a context. With `across`, all items are one set.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import numpy as np
from pydantic import Field

from steelyard.observations import IntArray
from steelyard.records import Item

AcrossContexts: TypeAlias = Annotated[
    bool, Field(description="whether items of different contexts (sources) may be compared with each other")
]
"""The setting that every design of comparisons has."""


class ItemContexts:
    """Items by context, in the order in which the contexts appear."""

    def __init__(self, *, across: bool = False) -> None:
        self._across = across
        self._number: dict[str | None, int] = {}
        self.members: list[list[int]] = []
        """The items of each context, by code, without those withheld."""
        self.withheld: set[int] = set()
        self._of_item: list[int] = []
        self._array: IntArray | None = None

    @property
    def of_item(self) -> IntArray:
        """The context of each item."""
        if self._array is None:
            self._array = np.array(self._of_item, np.int32)
        return self._array

    @property
    def is_single(self) -> bool:
        """Whether all items may be compared with each other."""
        return len(self.members) < 2

    @property
    def sizes(self) -> IntArray:
        """Number of items of each context."""
        return np.array([len(items) for items in self.members], np.int32)

    def add(self, items: Sequence[Item]) -> None:
        """Add new items; their codes continue those of the existing items."""
        self._array = None
        for code, item in enumerate(items, start=len(self._of_item)):
            number = self._number.setdefault(None if self._across else item.context, len(self.members))
            if number == len(self.members):
                self.members.append([])
            self.members[number].append(code)
            self._of_item.append(number)

    def withhold(self, item: int) -> None:
        """Remove an item from the members of its context."""
        if item not in self.withheld:
            self.withheld.add(item)
            self.members[self.context_of(item)].remove(item)

    def restore(self, item: int) -> None:
        """Undo `withhold`."""
        if item in self.withheld:
            self.withheld.remove(item)
            insort(self.members[self.context_of(item)], item)

    def context_of(self, item: int) -> int:
        """Return the context of an item."""
        return self._of_item[item]

    def comparable(self, task_size: int) -> IntArray:
        """Return the number of items of each context that tasks of this size can show: all of them, or none."""
        sizes = self.sizes
        return np.where(sizes >= task_size, sizes, 0).astype(np.int32)

    def is_comparable(self, task_size: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Return for each item whether its context has enough items for a task; False for those withheld."""
        is_large_enough: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = self.sizes >= task_size
        is_comparable = is_large_enough[self.of_item] if len(self._of_item) else np.zeros(0, np.bool_)
        is_comparable[list(self.withheld)] = False
        return is_comparable


def context_sizes(items: Sequence[Item]) -> Counter[str | None]:
    """Count the items of each context; None counts those without one."""
    return Counter(item.context for item in items)
