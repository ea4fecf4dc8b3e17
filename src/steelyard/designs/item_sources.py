"""Items grouped by source, with duplicates merged."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.records import Item


def normalized_text(text: str) -> str:
    """Return a text without letter case and extra spaces; items with equal results count as duplicates."""
    return " ".join(text.casefold().split())


class ItemSources:
    """Items grouped by source: those with the same context, or all items with `one_source`.

    Items that differ only in letter case and spacing are one vertex, identified by the first of them.
    """

    def __init__(self, *, one_source: bool = False) -> None:
        self._one_source = one_source
        self._number: dict[str | None, int] = {}
        self._first: dict[tuple[str | None, str, str | None], int] = {}
        self.vertices: list[list[int]] = []
        """The distinct items of each source, by code."""
        self.source: list[int] = []
        """The source of each item."""
        self.vertex: list[int] = []
        """The first duplicate of each item, usually the item itself."""

    def withhold(self, item: int) -> int | None:
        """Remove an item from the vertices of its source; return its source, None if the item is no vertex."""
        vertices = self.vertices[self.source[item]]
        if item not in vertices:
            return None
        vertices.remove(item)
        return self.source[item]

    def restore(self, item: int) -> int | None:
        """Make an item the last vertex of its source; return its source, None if the item is a duplicate."""
        if self.vertex[item] != item or item in self.vertices[self.source[item]]:
            return None
        self.vertices[self.source[item]].append(item)
        return self.source[item]

    def add(self, items: Sequence[Item]) -> list[int]:
        """Add new items; return the sources that have new vertices."""
        changed: dict[int, None] = {}
        for code, item in enumerate(items, start=len(self.source)):
            context = None if self._one_source else item.context
            number = self._number.setdefault(context, len(self.vertices))
            if number == len(self.vertices):
                self.vertices.append([])
            # The context is displayed with the item, so items with different contexts are never duplicates.
            first = self._first.setdefault((item.context, normalized_text(item.text), item.media), code)
            self.source.append(number)
            self.vertex.append(first)
            if first == code:
                self.vertices[number].append(code)
                changed[number] = None
        return list(changed)
