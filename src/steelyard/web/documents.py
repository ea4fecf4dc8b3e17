"""Documents: the texts before and after an item, in the order of the items file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from steelyard.records import Item


class Documents:
    """The items of each document and system, in order."""

    def __init__(self, items: Sequence[Item], column: str) -> None:
        self.count = len(items)
        """Number of items that were read."""
        self._column = column
        self._texts: dict[tuple[str, str | None], list[Item]] = defaultdict(list)
        self._place: dict[str, int] = {}
        for item in items:
            if name := item.metadata.get(column):
                texts = self._texts[name, item.group]
                self._place[item.id] = len(texts)
                texts.append(item)

    def around(self, item: Item, count: int) -> tuple[list[Item], list[Item]]:
        """Return up to `count` items before and after an item, of the same document and system."""
        place = self._place.get(item.id)
        if place is None:
            return [], []
        texts = self._texts[item.metadata[self._column], item.group]
        return texts[max(0, place - count) : place], texts[place + 1 : place + 1 + count]
