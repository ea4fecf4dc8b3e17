"""Conditions that a correct answer must meet, for any protocol.

They are tested on the observations that an answer yields, so they do not depend on the form of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol as Interface

from steelyard.observations import Choice, Comparison, Label, MarkedText, Observation, RankedItems, Rating


class Demand(Interface):
    """A condition on an answer."""

    def holds(self, observations: Sequence[Observation]) -> bool:
        """Whether the observations meet the condition."""

    def description(self) -> str:
        """Describe the condition to an annotator."""


@dataclass(frozen=True, slots=True)
class Within:
    """A rating lies between two values, ends included; for every criterion unless one is given."""

    item: str
    low: float
    high: float
    criterion: str | None = None

    def holds(self, observations: Sequence[Observation]) -> bool:
        """Whether every such rating lies in the range."""
        values = [
            o.value
            for o in observations
            if isinstance(o, Rating) and o.item == self.item and self.criterion in {None, o.criterion}
        ]
        return bool(values) and all(self.low <= value <= self.high for value in values)

    def description(self) -> str:
        """Return the range."""
        span = f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"
        return f"{self.criterion}: {span}" if self.criterion else span


@dataclass(frozen=True, slots=True)
class Marked:
    """Some mark of a text overlaps given words, from `start` to `end`; for `words` = "", nothing is marked."""

    item: str
    words: str
    start: int = 0
    end: int = 0

    def holds(self, observations: Sequence[Observation]) -> bool:
        """Whether a mark overlaps the words, or there is none where there should be none."""
        spans = [span for o in observations if isinstance(o, MarkedText) and o.item == self.item for span in o.spans]
        if not self.words:
            return not spans
        return any(
            span.start is not None and span.end is not None and span.start < self.end and span.end > self.start
            for span in spans
        )

    def description(self) -> str:
        """Return the words."""
        return f"“{self.words}” marked" if self.words else "nothing marked"


@dataclass(frozen=True, slots=True)
class HasLabel:
    """An item has one of several labels."""

    item: str
    labels: tuple[str, ...]
    criterion: str | None = None

    def holds(self, observations: Sequence[Observation]) -> bool:
        """Whether every label of the item is one of them."""
        labels = [
            o.label
            for o in observations
            if isinstance(o, Label) and o.item == self.item and self.criterion in {None, o.criterion}
        ]
        return bool(labels) and all(label in self.labels for label in labels)

    def description(self) -> str:
        """Return the labels."""
        span = " or ".join(self.labels)
        return f"{self.criterion}: {span}" if self.criterion else span


@dataclass(frozen=True, slots=True)
class Above:
    """One item is ranked above another, or tied with it."""

    item: str
    other: str
    is_tie: bool = False

    def holds(self, observations: Sequence[Observation]) -> bool:
        """Whether there is a comparison or ranking of the two, and all of them agree."""
        outcomes = [outcome for o in observations for outcome in _outcomes(o, self.item, self.other)]
        return bool(outcomes) and all(outcome == (0 if self.is_tie else 1) for outcome in outcomes)

    def description(self) -> str:
        """Return both items in order."""
        return f"{self.item} and {self.other} tied" if self.is_tie else f"{self.item} above {self.other}"


@dataclass(frozen=True, slots=True)
class ChosenAs:
    """An item is chosen as the best, or as the worst."""

    item: str
    end: str

    def holds(self, observations: Sequence[Observation]) -> bool:
        """Whether a choice names it."""
        return any(isinstance(o, Choice) and getattr(o, self.end) == self.item for o in observations)

    def description(self) -> str:
        """Return the end and the item."""
        return f"{self.end}: {self.item}"


def _outcomes(observation: Observation, item: str, other: str) -> list[int]:
    if isinstance(observation, Comparison):
        if (observation.left, observation.right) == (item, other):
            return [observation.outcome]
        if (observation.left, observation.right) == (other, item):
            return [-observation.outcome]
    if isinstance(observation, RankedItems):
        rank = {name: place for place, tier in enumerate(observation.tiers) for name in tier}
        if item in rank and other in rank:
            return [(rank[other] > rank[item]) - (rank[other] < rank[item])]
    return []


def order_demands(tiers: Sequence[Sequence[str]]) -> list[Demand]:
    """Return the conditions for an order of items; the items of one tier are tied."""
    demands: list[Demand] = [Above(a, b, is_tie=True) for tier in tiers for a, b in combinations(tier, 2)]
    for above, below in combinations(tiers, 2):
        demands += [Above(a, b) for a in above for b in below]
    return demands
