"""Which items stand for the same source, and which are the same thing twice."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.records import Item


def wording(text: str) -> str:
    """Return a text without letter case and extra spacing: what is left when two are called identical."""
    return " ".join(text.casefold().split())


class Sources:
    """Items by source. Items that differ in letter case and spacing alone are one vertex, named by the first.

    Items with the same context are a source; with `one` all items are.
    """

    def __init__(self, *, one: bool = False) -> None:
        self._one = one
        self._number: dict[str | None, int] = {}
        self._first: dict[tuple[str | None, str, str | None], int] = {}
        self.vertices: list[list[int]] = []
        """The different items of each source, by code."""
        self.source: list[int] = []
        """The source of each item."""
        self.vertex: list[int] = []
        """The first item that is identical to each item: itself, for most."""

    def add(self, items: Sequence[Item]) -> list[int]:
        """Take in new items; return the sources that have new vertices."""
        touched: dict[int, None] = {}
        for code, item in enumerate(items, start=len(self.source)):
            context = None if self._one else item.context
            number = self._number.setdefault(context, len(self.vertices))
            if number == len(self.vertices):
                self.vertices.append([])
            # What is shown beside an item is part of it, also where all items are one source.
            first = self._first.setdefault((item.context, wording(item.text), item.media), code)
            self.source.append(number)
            self.vertex.append(first)
            if first == code:
                self.vertices[number].append(code)
                touched[number] = None
        return list(touched)
