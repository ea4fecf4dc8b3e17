"""Balanced tuples: every item equally often, in company that changes as much as it can."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, comb
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from steelyard.designs.balancing import later_tuples, plan_tuples
from steelyard.designs.memory import Memory
from steelyard.designs.progress import Progress
from steelyard.designs.turns import InTurn, SetPlan, Turns
from steelyard.errors import Problem
from steelyard.observations import IntArray
from steelyard.protocols.base import Protocol


class Rows(SetPlan):
    """The rows of an array as sets."""

    def __init__(self, rows: IntArray) -> None:
        self._rows = np.sort(rows, axis=1)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: int) -> tuple[int, ...]:
        return tuple(self._rows[place].tolist())


class TupleTurns(Turns):
    """The balanced tuples of a stage, planned at the first pick and whenever items are lacking in them."""

    def __init__(self, capacity: int, factor: float, size: int) -> None:
        super().__init__(capacity)
        self.factor = factor
        self.size = size

    def make_plan(self, progress: Progress, rng: np.random.Generator) -> SetPlan:
        """Return the tuples that are lacking."""
        wanted = tuples_wanted(self.factor, self.n_items)
        return Rows(plan_tuples(self.n_items, wanted, self.size, self._there(), rng))

    @property
    def total(self) -> int:
        """How many tuples there are to ask."""
        if not self.lacks:
            return self.sets
        wanted, there = tuples_wanted(self.factor, self.n_items), self._there()
        return len(there) + later_tuples(self.n_items, wanted, self.size, there) if there else wanted

    def _there(self) -> list[tuple[int, ...]]:
        return [*self.opened, *self.coming()]


def tuples_wanted(factor: float, n_items: int) -> int:
    """Return how many tuples f·N are; a fraction counts whole."""
    return ceil(round(factor * n_items, 6))


@dataclass(frozen=True, slots=True)
class BalancedTuples(InTurn):
    """Show f·N different tuples in which every item is equally often (±1) and pairs recur as little as possible.

    The tuples of best–worst scaling (Kiritchenko & Mohammad 2017, §3.3). All of them are asked once before any is
    asked again, so that an unfinished study is even. With 2N tuples, three annotators each are 6N judgments, with
    which the paper's halves (3N each) agree at ρ = .95; more judgments help as much by more annotators as by
    more tuples (its Fig. 2).
    """

    name: ClassVar[str] = "balanced_tuples"
    what: ClassVar[str] = "tuples"

    factor: Annotated[float, Field(gt=0, description="tuples for each item: 2 makes 2N of them")] = 2.0
    annotators: Annotated[int, Field(ge=1, description="distinct annotators for each tuple")] = 3

    @property
    def capacity(self) -> int:
        """How many annotators a tuple is for."""
        return self.annotators

    def memory(self, protocol: Protocol) -> Memory:
        """Return the turns of a stage that has not begun."""
        return TupleTurns(self.annotators, self.factor, protocol.task_size)

    def problems(self, protocol: Protocol, n_items: int) -> list[Problem]:
        """Refuse single items, too few items for a tuple, and more tuples than there are."""
        size = protocol.task_size
        if size < 2:
            return [
                Problem(
                    "balanced_tuples shows items together, but this protocol shows one at a time.",
                    "Use the design redundant, or show more items a page.",
                    field="design.name",
                )
            ]
        if size > n_items:
            return [
                Problem(
                    f"a task shows {size} items, but there are only {n_items}.",
                    "Show fewer at a time, or add items.",
                    field="protocol.size",
                )
            ]
        wanted, there = tuples_wanted(self.factor, n_items), comb(n_items, size)
        if wanted > there:
            return [
                Problem(
                    f"{n_items} items make {there:,} different tuples of {size}, but factor = {self.factor:g} asks "
                    f"for {wanted:,}.",
                    f"Set factor to {_highest_factor(there, n_items):g} or less, or have {self._enough(size)} items.",
                    field="design.factor",
                )
            ]
        if wanted * size < n_items:
            return [
                Problem(
                    f"{wanted:,} tuples of {size} cannot show all {n_items:,} items.",
                    f"Set factor to {ceil(1000 / size) / 1000:g} or more.",
                    field="design.factor",
                )
            ]
        return []

    def _enough(self, size: int) -> int:
        """Return the fewest items that make as many tuples as the factor asks for."""
        items = size
        while tuples_wanted(self.factor, items) > comb(items, size):
            items += 1
        return items


def _highest_factor(tuples: int, n_items: int) -> float:
    return int(tuples / n_items * 1000) / 1000
