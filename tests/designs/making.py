"""Items and protocols for tests of designs."""

from __future__ import annotations

from steelyard.protocols import Direct, Pairwise, Protocol, ScoredRanking
from steelyard.records import Item


def make_items(count: int, first: int = 0) -> list[Item]:
    """Return plain items, numbered from `first`."""
    return [Item(f"item-{number}", f"text {number}") for number in range(first, first + count)]


def protocol_of(size: int) -> Protocol:
    """Return a protocol that shows so many items a task."""
    if size == 1:
        return Direct()
    return Pairwise() if size == 2 else ScoredRanking(size=size)
