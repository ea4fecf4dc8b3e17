"""What a known answer demands of an annotator's, in any protocol.

A demand is held against the observations that an answer yields, so it need not know the answer's shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol as Interface

from steelyard.observations import Choice, Comparison, Label, Observation, RankedItems, Rating


class Demand(Interface):
    """Something that must hold of an answer."""

    def holds(self, said: Sequence[Observation]) -> bool:
        """Whether it does."""

    def words(self) -> str:
        """Say it to an annotator."""


@dataclass(frozen=True, slots=True)
class Within:
    """A rating lies between two values, ends included; of every criterion, if none is named."""

    item: str
    low: float
    high: float
    criterion: str | None = None

    def holds(self, said: Sequence[Observation]) -> bool:
        """Whether every such rating does."""
        values = [
            o.value
            for o in said
            if isinstance(o, Rating) and o.item == self.item and self.criterion in {None, o.criterion}
        ]
        return bool(values) and all(self.low <= value <= self.high for value in values)

    def words(self) -> str:
        """Name the range."""
        span = f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"
        return f"{self.criterion}: {span}" if self.criterion else span


@dataclass(frozen=True, slots=True)
class Labelled:
    """An item has one of some labels."""

    item: str
    labels: tuple[str, ...]
    criterion: str | None = None

    def holds(self, said: Sequence[Observation]) -> bool:
        """Whether it has."""
        given = [
            o.label
            for o in said
            if isinstance(o, Label) and o.item == self.item and self.criterion in {None, o.criterion}
        ]
        return bool(given) and all(label in self.labels for label in given)

    def words(self) -> str:
        """Name the labels."""
        span = " or ".join(self.labels)
        return f"{self.criterion}: {span}" if self.criterion else span


@dataclass(frozen=True, slots=True)
class Above:
    """One item is placed above another, or level with it."""

    item: str
    other: str
    tied: bool = False

    def holds(self, said: Sequence[Observation]) -> bool:
        """Whether any comparison or ranking says so, and none otherwise."""
        outcomes = [outcome for o in said for outcome in _outcomes(o, self.item, self.other)]
        return bool(outcomes) and all(outcome == (0 if self.tied else 1) for outcome in outcomes)

    def words(self) -> str:
        """Name both."""
        return f"{self.item} and {self.other} alike" if self.tied else f"{self.item} above {self.other}"


@dataclass(frozen=True, slots=True)
class Chosen:
    """An item is chosen as the best, or as the worst."""

    item: str
    end: str

    def holds(self, said: Sequence[Observation]) -> bool:
        """Whether it is."""
        return any(isinstance(o, Choice) and getattr(o, self.end) == self.item for o in said)

    def words(self) -> str:
        """Name it."""
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
    """Demand that items stand in an order, those of one tier level."""
    demands: list[Demand] = [Above(a, b, tied=True) for tier in tiers for a, b in combinations(tier, 2)]
    for above, below in combinations(tiers, 2):
        demands += [Above(a, b) for a in above for b in below]
    return demands
