"""Every pair of items, so ordered that at any time each item has been shown about equally often."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from steelyard.designs.memory import Memory
from steelyard.designs.progress import Progress
from steelyard.designs.turns import InTurn, SetPlan, Turns
from steelyard.errors import Problem
from steelyard.observations import IntArray
from steelyard.protocols.base import Protocol


class PairPlan(SetPlan):
    """The pairs of new items with old ones, then those among the new, each made up from its number.

    Both parts are round-robins: a round pairs every item with a different one, and the rounds together make
    every pair once. So a hundred thousand items, with their five thousand million pairs, start at once.
    """

    def __init__(self, old: IntArray, new: IntArray) -> None:
        self._fewer, self._more = sorted((old, new), key=len)
        self._new = new
        self._across = len(old) * len(new)

    def __len__(self) -> int:
        return self._across + comb(len(self._new), 2)

    def __getitem__(self, place: int) -> tuple[int, ...]:
        if place < self._across:
            turn, number = divmod(place, len(self._fewer))
            one, other = self._fewer[number], self._more[(number + turn) % len(self._more)]
        else:
            a, b = round_robin(place - self._across, len(self._new))
            one, other = self._new[a], self._new[b]
        return (int(min(one, other)), int(max(one, other)))


def round_robin(number: int, n: int) -> tuple[int, int]:
    """Return the pair of that number among n: n // 2 of them make a round, in which nobody is twice.

    With n odd, round r pairs r + i with r - i (mod n) and leaves r out; with n even, one more sits at the centre
    and meets r.
    """
    turn, i = divmod(number, n // 2)
    if n % 2:
        return (turn + i + 1) % n, (turn - i - 1) % n
    return (turn, n - 1) if i == 0 else ((turn + i) % (n - 1), (turn - i) % (n - 1))


class PairTurns(Turns):
    """All pairs of a stage; those of items that join later come as a plan of their own."""

    @property
    def total(self) -> int:
        """How many pairs there are."""
        return comb(self.n_items, 2)

    def make_plan(self, progress: Progress, rng: np.random.Generator) -> SetPlan:
        """Return the pairs of the items that are in no plan yet, in random order of the items."""
        items = np.arange(self.n_items, dtype=np.int32)
        return PairPlan(rng.permutation(items[: self.covered]), rng.permutation(items[self.covered :]))


@dataclass(frozen=True, slots=True)
class AllPairs(InTurn):
    """Compare every item with every other, N(N-1)/2 pairs, each by `annotators` people.

    All pairs are asked once before any is asked again, round by round: a round shows every item once.
    """

    name: ClassVar[str] = "all_pairs"
    what: ClassVar[str] = "pairs"

    annotators: Annotated[int, Field(ge=1, description="distinct annotators for each pair")] = 1

    @property
    def capacity(self) -> int:
        """How many annotators a pair is for."""
        return self.annotators

    def memory(self, protocol: Protocol) -> Memory:
        """Return the turns of a stage that has not begun."""
        return PairTurns(self.annotators)

    def problems(self, protocol: Protocol, n_items: int) -> list[Problem]:
        """Refuse tasks that do not show two items."""
        if protocol.task_size != 2:
            return [
                Problem(
                    f"all_pairs shows two items at a time, but this protocol shows {protocol.task_size}.",
                    "Use the protocol pairwise, or another design.",
                    field="design.name",
                )
            ]
        if n_items < 2:
            return [Problem(f"{n_items} item makes no pair.", "Add items.", field="design.name")]
        return []
