"""All pairs of items, in an order that shows every item about equally often at any time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import comb
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from steelyard.designs.contexts import AcrossContexts
from steelyard.designs.planned_sets import InterleavedPlan, PlannedSets, PlannedSetsDesign, SetPlan
from steelyard.designs.progress import Progress
from steelyard.designs.state import DesignState
from steelyard.errors import Problem
from steelyard.observations import IntArray
from steelyard.protocols.base import Protocol


class PairPlan(SetPlan):
    """The pairs of new items with old ones, then the pairs among the new items, each computed from its number.

    Both parts are round-robins: a round pairs every item with a different one, and the rounds together contain every
    pair once. A study of 100,000 items (5 · 10⁹ pairs) therefore starts at once.
    """

    def __init__(self, old: IntArray, new: IntArray) -> None:
        self._smaller, self._larger = sorted((old, new), key=len)
        self._new = new
        self._n_mixed = len(old) * len(new)

    def __len__(self) -> int:
        return self._n_mixed + comb(len(self._new), 2)

    def __getitem__(self, place: int) -> tuple[int, ...]:
        if place < self._n_mixed:
            round_number, number = divmod(place, len(self._smaller))
            one, other = self._smaller[number], self._larger[(number + round_number) % len(self._larger)]
        else:
            a, b = round_robin(place - self._n_mixed, len(self._new))
            one, other = self._new[a], self._new[b]
        return (int(min(one, other)), int(max(one, other)))


def round_robin(number: int, n: int) -> tuple[int, int]:
    """Return pair `number` of a round-robin of n; each n // 2 consecutive pairs are a round without repetition.

    With n odd, round r pairs r + i with r - i (mod n) and leaves r out; with n even, the last member is paired with r.
    """
    round_number, i = divmod(number, n // 2)
    if n % 2:
        return (round_number + i + 1) % n, (round_number - i - 1) % n
    return (round_number, n - 1) if i == 0 else ((round_number + i) % (n - 1), (round_number - i) % (n - 1))


class AllPairsState(PlannedSets):
    """All pairs of each context of a stage; the pairs of items that are added later form a plan of their own."""

    @property
    def total(self) -> int:
        """Number of pairs, without those of items that were set aside before they were assigned."""
        n_closed = Counter(self.contexts.context_of(item) for item in self.set_aside)
        sizes = (len(items) - n_closed[context] for context, items in enumerate(self.contexts.members))
        return sum(comb(size, 2) for size in sizes) + self.n_closed_sets

    def count_sets(self, context: int) -> int:
        """Return the number of pairs of a context."""
        return comb(len(self.contexts.members[context]), 2)

    def make_plan(self, progress: Progress, rng: np.random.Generator) -> SetPlan:
        """Return the pairs of the items that are in no plan yet, with items and contexts in random order."""
        plans = []
        for context in rng.permutation(len(self.contexts.members)).tolist():
            items = np.array(self.contexts.members[context], np.int32)
            n_old = int(np.searchsorted(items, self.n_planned_items))
            plans.append(PairPlan(rng.permutation(items[:n_old]), rng.permutation(items[n_old:])))
        return plans[0] if len(plans) == 1 else InterleavedPlan(plans)


@dataclass(frozen=True, slots=True)
class AllPairs(PlannedSetsDesign):
    """Compare all items of a context with each other: n(n-1)/2 pairs, each by `annotators_per_task` annotators.

    Every pair is asked once before any is asked again, round by round. A round shows every item once; contexts take
    turns, one pair each.
    """

    name: ClassVar[str] = "all_pairs"
    set_name: ClassVar[str] = "pairs"

    annotators_per_task: Annotated[int, Field(ge=1, description="distinct annotators per task (pair)")] = 1
    across_contexts: AcrossContexts = False

    @property
    def capacity(self) -> int:
        """Number of annotators per pair."""
        return self.annotators_per_task

    def initial_state(self, protocol: Protocol) -> DesignState:
        """Return the state before the first pick."""
        return AllPairsState(self.annotators_per_task, across=not self.within_contexts(protocol))

    def problems(self, protocol: Protocol, n_items: int) -> list[Problem]:
        """Refuse protocols that do not show two items."""
        if protocol.task_size != 2:
            return [
                Problem(
                    f"all_pairs shows two items at a time, but this protocol shows {protocol.task_size}.",
                    "Use the protocol pairwise, or another design.",
                    field="design.name",
                )
            ]
        if n_items < 2:
            return [Problem(f"{n_items} item is too few for pairs.", "Add items.", field="design.name")]
        return []
