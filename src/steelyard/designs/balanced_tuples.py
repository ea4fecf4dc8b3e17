"""Balanced tuples: every item equally often, with pairs of items that recur as little as possible."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, comb
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from steelyard.designs.balancing import count_additional_tuples, plan_tuples
from steelyard.designs.planned_sets import PlannedSets, PlannedSetsDesign, SetPlan
from steelyard.designs.progress import Progress
from steelyard.designs.state import DesignState
from steelyard.errors import Problem
from steelyard.observations import IntArray
from steelyard.protocols.base import Protocol


class TuplePlan(SetPlan):
    """The rows of an array as sets."""

    def __init__(self, rows: IntArray) -> None:
        self._rows = np.sort(rows, axis=1)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: int) -> tuple[int, ...]:
        return tuple(self._rows[place].tolist())


class BalancedTuplesState(PlannedSets):
    """The balanced tuples of a stage, planned at the first pick and whenever items are added."""

    def __init__(self, capacity: int, factor: float, size: int) -> None:
        super().__init__(capacity)
        self.factor = factor
        self.size = size

    def make_plan(self, progress: Progress, rng: np.random.Generator) -> SetPlan:
        """Return the missing tuples."""
        total = tuple_count(self.factor, self.n_items)
        return TuplePlan(plan_tuples(self.n_items, total, self.size, self._existing(), rng))

    @property
    def total(self) -> int:
        """Number of tuples in all."""
        if not self.needs_plan:
            return self.n_sets
        total, existing = tuple_count(self.factor, self.n_items), self._existing()
        if not existing:
            return total
        return len(existing) + count_additional_tuples(self.n_items, total, self.size, existing)

    def _existing(self) -> list[tuple[int, ...]]:
        return [*self.slot_of, *self.unassigned_sets()]


def tuple_count(factor: float, n_items: int) -> int:
    """Return the number of tuples f·N, rounded up."""
    return ceil(round(factor * n_items, 6))


@dataclass(frozen=True, slots=True)
class BalancedTuples(PlannedSetsDesign):
    """Show f·N different tuples in which every item occurs equally often (±1) and pairs recur as little as possible.

    The tuples of best–worst scaling (Kiritchenko & Mohammad 2017, §3.3). Every tuple is asked once before any is asked
    again, so that an unfinished study is balanced. With 2N tuples, three annotators each are 6N judgments; the paper's
    halves of 3N agree at ρ = .95. More annotators help as much as more tuples (its Fig. 2).
    """

    name: ClassVar[str] = "balanced_tuples"
    set_name: ClassVar[str] = "tuples"

    factor: Annotated[float, Field(gt=0, description="tuples per item: with 2, there are 2N tuples")] = 2.0
    annotators: Annotated[int, Field(ge=1, description="distinct annotators for each tuple")] = 3

    @property
    def capacity(self) -> int:
        """Number of annotators per tuple."""
        return self.annotators

    def initial_state(self, protocol: Protocol) -> DesignState:
        """Return the state before the first pick."""
        return BalancedTuplesState(self.annotators, self.factor, protocol.task_size)

    def problems(self, protocol: Protocol, n_items: int) -> list[Problem]:
        """Refuse single items, too few items for a tuple, and factors that the number of items does not allow."""
        size = protocol.task_size
        if size < 2:
            return [
                Problem(
                    "balanced_tuples shows items together, but this protocol shows one at a time.",
                    "Use the design per_item, or show more items per page.",
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
        total, possible = tuple_count(self.factor, n_items), comb(n_items, size)
        if total > possible:
            return [
                Problem(
                    f"{n_items} items make {possible:,} different tuples of {size}, but factor = {self.factor:g} needs "
                    f"{total:,}.",
                    f"Set factor to {_highest_factor(possible, n_items):g} or less, or use at least "
                    f"{self._fewest_items(size)} items.",
                    field="design.factor",
                )
            ]
        if total * size < n_items:
            return [
                Problem(
                    f"{total:,} tuples of {size} cannot show all {n_items:,} items.",
                    f"Set factor to {ceil(1000 / size) / 1000:g} or more.",
                    field="design.factor",
                )
            ]
        return []

    def _fewest_items(self, size: int) -> int:
        """Return the smallest number of items that allows the factor."""
        items = size
        while tuple_count(self.factor, items) > comb(items, size):
            items += 1
        return items


def _highest_factor(tuples: int, n_items: int) -> float:
    return int(tuples / n_items * 1000) / 1000
