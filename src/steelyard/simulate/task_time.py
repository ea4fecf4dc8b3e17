"""Estimated time of a task: reading each item, and making each mark."""

from __future__ import annotations

from steelyard.protocols import BestWorst, ErrorSpans, Pairwise, Protocol, Ranking
from steelyard.protocols.per_item import PerItemProtocol

SECONDS_PER_ITEM, SECONDS_PER_MARK = 5.0, 4.0
"""Seconds to read an item of about one line, and to decide on a mark and make it. Recorded medians: 12.5 s per slider
for two sentences (Pavlick & Kwiatkowski 2019), 11 to 22 s per pair (four sessions of comparative judgement)."""


SECONDS_PER_MARKED_TEXT = 20.0
"""Seconds to mark the errors of a text of some sentences and score it. Recorded medians: 9 to 20 s (eight campaigns of
Kocmi et al. 2024, English–German, half of the texts longer than 280 characters)."""


def marks(protocol: Protocol) -> int:
    """Return the number of marks in one task: sliders, labels, clicks."""
    if isinstance(protocol, Pairwise):
        return 1
    if isinstance(protocol, BestWorst):
        return 2
    if isinstance(protocol, Ranking):
        return protocol.size - 1
    each = len(protocol.criterion_names()) if isinstance(protocol, PerItemProtocol) else 1
    return protocol.task_size * each


def task_seconds(protocol: Protocol) -> float:
    """Return the estimated seconds per task: five per item, four per mark; twenty per text whose errors are marked."""
    if isinstance(protocol, ErrorSpans):
        return SECONDS_PER_MARKED_TEXT * protocol.task_size
    return SECONDS_PER_ITEM * protocol.task_size + SECONDS_PER_MARK * marks(protocol)
