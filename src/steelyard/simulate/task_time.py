"""How long a task takes, for plans: reading each item, and setting each mark."""

from __future__ import annotations

from steelyard.protocols import BestWorst, Pairwise, Protocol, Ranking
from steelyard.protocols.per_item import PerItemProtocol

READING, MARKING = 5.0, 4.0
"""Seconds to read an item of a line or so, and to decide on a mark and set it. Recorded medians: 12.5 seconds a slider
for two sentences (Pavlick & Kwiatkowski 2019), 11 to 22 a pair (four sessions of comparative judgement)."""


def marks(protocol: Protocol) -> int:
    """Count the marks a person sets in one task: sliders, labels, clicks."""
    if isinstance(protocol, Pairwise):
        return 1
    if isinstance(protocol, BestWorst):
        return 2
    if isinstance(protocol, Ranking):
        return protocol.size - 1
    each = len(protocol.criterion_names()) if isinstance(protocol, PerItemProtocol) else 1
    return protocol.task_size * each


def task_seconds(protocol: Protocol) -> float:
    """Return the seconds one task takes: five for each item read, four for each mark set."""
    return READING * protocol.task_size + MARKING * marks(protocol)
