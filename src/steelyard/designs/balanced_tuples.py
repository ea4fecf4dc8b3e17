"""Balanced tuples: every item equally often, with pairs of items that recur as little as possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, comb
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from steelyard.designs.balancing import count_additional_tuples, plan_tuples
from steelyard.designs.contexts import AcrossContexts, context_sizes
from steelyard.designs.planned_sets import InterleavedPlan, PlannedSets, PlannedSetsDesign, SetPlan
from steelyard.designs.progress import Progress
from steelyard.designs.state import DesignState
from steelyard.errors import Problem
from steelyard.observations import IntArray
from steelyard.protocols.base import Protocol
from steelyard.records import Item


class TuplePlan(SetPlan):
    """The rows of an array as sets."""

    def __init__(self, rows: IntArray) -> None:
        self._rows = np.sort(rows, axis=1)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: int) -> tuple[int, ...]:
        return tuple(self._rows[place].tolist())


class BalancedTuplesState(PlannedSets):
    """The balanced tuples of each context of a stage, planned at the first pick and whenever items are added."""

    def __init__(self, capacity: int, factor: float, size: int, *, across: bool = True) -> None:
        super().__init__(capacity, across=across)
        self.factor = factor
        self.size = size

    def count_sets(self, context: int) -> int:
        """Return the number of tuples in the first plan of a context: f·n, or all if there are fewer."""
        n_items = len(self.contexts.members[context])
        return min(tuple_count(self.factor, n_items), comb(n_items, self.size))

    def make_plan(self, progress: Progress, rng: np.random.Generator) -> SetPlan:
        """Return the missing tuples; contexts take turns in random order."""
        existing = self._existing_by_context()
        templates: dict[int, IntArray] = {}
        plans: list[SetPlan] = []
        for context in rng.permutation(len(self.contexts.members)).tolist():
            items, total = np.array(self.contexts.members[context], np.int32), self.count_sets(context)
            if not total:
                continue
            if existing[context]:
                place = {item: number for number, item in enumerate(items.tolist())}
                rows = [tuple(place[item] for item in tuple_items) for tuple_items in existing[context]]
                plans.append(TuplePlan(items[plan_tuples(len(items), total, self.size, rows, rng)]))
                continue
            # Contexts of the same size share a plan, each with its items in random order: planning takes a search.
            if len(items) not in templates:
                templates[len(items)] = plan_tuples(len(items), total, self.size, (), rng)
            order = items if len(self.contexts.members) == 1 else rng.permutation(items)
            plans.append(TuplePlan(order[templates[len(items)]]))
        return plans[0] if len(plans) == 1 else InterleavedPlan(plans)

    @property
    def total(self) -> int:
        """Number of tuples in all."""
        if not self.needs_plan:
            return self.n_sets
        existing = self._existing_by_context()
        total = len(self.slot_of) + sum(1 for _ in self.unassigned_sets()) - sum(map(len, existing))
        for context, items in enumerate(self.contexts.members):
            planned, tuples = self.count_sets(context), existing[context]
            if planned and tuples:
                planned_items = {item: number for number, item in enumerate(items)}
                rows = [tuple(planned_items[item] for item in tuple_items) for tuple_items in tuples]
                planned = len(tuples) + count_additional_tuples(len(items), planned, self.size, rows)
            total += max(planned, len(tuples))
        return total

    def _existing_by_context(self) -> list[list[tuple[int, ...]]]:
        """Return the tuples assigned or planned, without imported ones that mix contexts."""
        existing: list[list[tuple[int, ...]]] = [[] for _ in self.contexts.members]
        for items in (*self.slot_of, *self.unassigned_sets()):
            context = self.contexts.context_of(items[0])
            if all(self.contexts.context_of(item) == context for item in items):
                existing[context].append(items)
        return existing


def tuple_count(factor: float, n_items: int) -> int:
    """Return the number of tuples f·N, rounded up."""
    return ceil(round(factor * n_items, 6))


@dataclass(frozen=True, slots=True)
class BalancedTuples(PlannedSetsDesign):
    """Show f·N different tuples in which every item occurs equally often (±1) and pairs recur as little as possible.

    The tuples of best–worst scaling (Kiritchenko & Mohammad 2017, §3.3). Every tuple is asked once before any is asked
    again, so that an unfinished study is balanced. With 2N tuples, three annotators each are 6N judgments; the paper's
    halves of 3N agree at ρ = .95. More annotators help as much as more tuples (its Fig. 2). With contexts, each has
    tuples of its own items only: f·n, or all different ones if there are fewer.
    """

    name: ClassVar[str] = "balanced_tuples"
    set_name: ClassVar[str] = "tuples"

    factor: Annotated[float, Field(gt=0, description="ratio of tuples to items: with 2, N items give 2N tuples")] = 2.0
    annotators_per_task: Annotated[int, Field(ge=1, description="distinct annotators per task")] = 3
    across_contexts: AcrossContexts = False

    @property
    def capacity(self) -> int:
        """Number of annotators per tuple."""
        return self.annotators_per_task

    def initial_state(self, protocol: Protocol) -> DesignState:
        """Return the state before the first pick."""
        return BalancedTuplesState(
            self.annotators_per_task, self.factor, protocol.task_size, across=not self.within_contexts(protocol)
        )

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
                    "Show fewer items per task, or add items.",
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

    def plan_warnings(self, protocol: Protocol, items: Sequence[Item]) -> list[str]:
        """Name contexts with fewer different tuples than the factor asks for."""
        size = protocol.task_size
        sizes = [count for count in context_sizes(items).values() if count >= size]
        short = sum(tuple_count(self.factor, count) > comb(count, size) for count in sizes)
        if not short:
            return []
        return [
            f"{short:,} of {len(sizes):,} sources have fewer distinct tuples than factor requires; all of them are "
            "used, so raise annotators_per_task for more judgments"
        ]

    def _fewest_items(self, size: int) -> int:
        """Return the smallest number of items that allows the factor."""
        items = size
        while tuple_count(self.factor, items) > comb(items, size):
            items += 1
        return items


def _highest_factor(tuples: int, n_items: int) -> float:
    return int(tuples / n_items * 1000) / 1000
