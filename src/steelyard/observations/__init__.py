"""Observations, which models accept: typed, integer-coded arrays of ratings, comparisons, choices, rankings, labels or
spans.

A protocol turns one answer into single observations (`Rating`, `Comparison`, `Choice`, `RankedItems`, `Label`,
`MarkedText`); the columnar classes hold many of them, with an `Index` between ids and codes.
"""

from __future__ import annotations

from steelyard.observations.base import Observations
from steelyard.observations.choices import Choices
from steelyard.observations.comparisons import Comparisons
from steelyard.observations.index import UNKNOWN, FloatArray, Index, IntArray
from steelyard.observations.labels import Labels
from steelyard.observations.mixed import Mixed
from steelyard.observations.rankings import Rankings
from steelyard.observations.ratings import Ratings
from steelyard.observations.single import (
    Choice,
    Comparison,
    Label,
    MarkedText,
    Observation,
    RankedItems,
    Rating,
    Span,
)
from steelyard.observations.spans import Spans

KINDS: dict[str, type[Observations]] = {cls.kind: cls for cls in (Ratings, Comparisons, Choices, Rankings, Labels)}
"""The kinds that models accept and that a file can hold alone; spans come with the scores of the same answers."""

__all__ = [
    "Choice",
    "Choices",
    "Comparison",
    "Comparisons",
    "FloatArray",
    "Index",
    "IntArray",
    "KINDS",
    "Label",
    "Labels",
    "MarkedText",
    "Mixed",
    "Observation",
    "Observations",
    "RankedItems",
    "Rankings",
    "Rating",
    "Ratings",
    "Span",
    "Spans",
    "UNKNOWN",
]
