"""Random tuples of items, with every item in about equally many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Annotated, ClassVar, NamedTuple, cast

import numpy as np
from pydantic import Field

from steelyard.designs.base import EXACT_PROPENSITY_ITEMS, WAITING, Design, Goal, NoTask, Pick
from steelyard.designs.contexts import AcrossContexts, ItemContexts
from steelyard.designs.progress import AnnotatorHistory, Levels, Progress, free_slot
from steelyard.designs.state import DesignState
from steelyard.designs.targets import sets_of_size
from steelyard.errors import Problem
from steelyard.observations import IntArray
from steelyard.protocols.base import Protocol
from steelyard.records import Item

_MAX_ENUMERATED_SETS = 20_000
"""Up to this many sets are enumerated when random draws keep giving sets that were already seen."""

_STEPS_PER_TUPLE = 16
"""Levels of a context per planned tuple of its items: fine enough to tell contexts of 32 items apart by one pair."""


class RandomTuplesState(DesignState):
    """Contexts by how many tuples are planned for their items.

    The level of a context grows with the mean number of planned tuples per item. It is 0 once every item of the
    context has enough of them, and for contexts with too few items for a tuple.
    """

    def __init__(self, size: int, tuples_per_item: int, *, across: bool) -> None:
        self.contexts = ItemContexts(across=across)
        self.context_levels = Levels()
        self._size = size
        self._tuples_per_item = tuples_per_item
        self._planned: list[int] = []
        self._planned_in: list[int] = []
        """Sum of the planned tuples over the items of each context."""
        self._incomplete_in: list[int] = []
        """Number of items of each context that need more tuples."""
        self._slots: set[int] = set()

    def add_items(self, items: Sequence[Item]) -> None:
        """Add new items."""
        first = len(self._planned)
        self.contexts.add(items)
        self._planned += [0] * len(items)
        n_new = len(self.contexts.members) - len(self._planned_in)
        self._planned_in += [0] * n_new
        self._incomplete_in += [0] * n_new
        self.context_levels.add_items(n_new)
        changed = [self.contexts.context_of(item) for item in range(first, len(self._planned))]
        for context in changed:
            self._incomplete_in[context] += 1
        for context in dict.fromkeys(changed):
            self._update_level(context)

    def on_item_set_aside(self, item: int) -> None:
        """Leave an item out of its context."""
        self.contexts.withhold(item)
        self._count_item(item, -1)

    def on_item_restored(self, item: int) -> None:
        """Let an item be drawn again."""
        self.contexts.restore(item)
        self._count_item(item, 1)

    def _count_item(self, item: int, by: int) -> None:
        context = self.contexts.context_of(item)
        self._planned_in[context] += by * self._planned[item]
        self._incomplete_in[context] += by * (self._planned[item] < self._tuples_per_item)
        self._update_level(context)

    def on_leased(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Count a new tuple."""
        if slot is None or slot not in self._slots:
            self._slots |= set() if slot is None else {slot}
            self._plan(items, 1)

    def on_released(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Take back a task that fills no slot; a slot stays planned."""
        if slot is None:
            self._plan(items, -1)

    def _plan(self, items: tuple[int, ...], by: int) -> None:
        for item in items:
            context = self.contexts.context_of(item)
            was_incomplete = self._planned[item] < self._tuples_per_item
            self._planned[item] += by
            if item in self.contexts.withheld:
                continue
            self._planned_in[context] += by
            self._incomplete_in[context] += (self._planned[item] < self._tuples_per_item) - was_incomplete
        for context in {self.contexts.context_of(item) for item in items}:
            self._update_level(context)

    def _update_level(self, context: int) -> None:
        n_items = len(self.contexts.members[context])
        level = 0
        if n_items >= self._size and self._incomplete_in[context]:
            level = 1 + self._planned_in[context] * _STEPS_PER_TUPLE // n_items
        self.context_levels.move(context, level - int(self.context_levels.level[context]))


class _Draw(NamedTuple):
    """Items that are certainly in the next tuple, and those, all at one level, that its other places are drawn from."""

    certain: list[int]
    candidates: Sequence[int]
    level: int
    places: int


@dataclass(frozen=True, slots=True)
class RandomTuples(Design):
    """Show items together, drawn at random from those planned least often so far.

    Each tuple is judged by `annotators_per_task` annotators, and each item gets about `judgments` judgments. No
    annotator sees the same set of items twice. Items are compared within their context, the contexts with the fewest
    tuples per item first.
    """

    name: ClassVar[str] = "random_tuples"

    judgments: Annotated[int, Field(ge=1, description="judgments per item (tasks answered that show the item)")] = 10
    annotators_per_task: Annotated[int, Field(ge=1, description="distinct annotators per task")] = 1
    across_contexts: AcrossContexts = False

    uses_slots: ClassVar[bool] = True

    @property
    def capacity(self) -> int:
        """Number of annotators per tuple."""
        return self.annotators_per_task

    @property
    def tuples_per_item(self) -> int:
        """Smallest number of tuples that contain each item."""
        return self.judgments // self.annotators_per_task

    def initial_state(self, protocol: Protocol) -> DesignState:
        """Return the state before the first tuple."""
        across = not self.within_contexts(protocol)
        return RandomTuplesState(protocol.task_size, self.tuples_per_item, across=across)

    def problems(self, protocol: Protocol, n_items: int) -> list[Problem]:
        """Refuse tuples larger than the study, single items, and judgments that are no multiple of annotators."""
        task_size = protocol.task_size
        if self.judgments % self.annotators_per_task:
            return [
                Problem(
                    f"{self.judgments} judgments per item are not a multiple of {self.annotators_per_task} "
                    f"annotators per task.",
                    f"Make judgments a multiple of {self.annotators_per_task}.",
                    field="design.judgments",
                )
            ]
        if task_size < 2:
            return [
                Problem(
                    "random_tuples shows items together, but this protocol shows one at a time.",
                    "Use the design per_item, or show more items per page.",
                    field="design.name",
                )
            ]
        if task_size > n_items:
            return [
                Problem(
                    f"a task shows {task_size} items, but there are only {n_items}.",
                    "Show fewer items per task, or add items.",
                    field="protocol.size",
                )
            ]
        return []

    def pick(self, progress: Progress, task_size: int, annotator: str, rng: np.random.Generator) -> Pick | NoTask:
        """Choose a tuple that needs more annotators, else draw a new one."""
        history = progress.history(annotator)
        slot = free_slot(progress, history)
        if slot is not None:
            return Pick(_shuffled(progress.slots[slot].items, rng), slot=slot, propensity=1.0)
        sample = self._draw(progress, task_size, history, rng)
        if sample is None:
            return self._no_task(progress)
        items, sets = sample
        propensity = 1 / sets if progress.n_items <= EXACT_PROPENSITY_ITEMS else None
        return Pick(_shuffled(items, rng), slot=progress.next_slot, propensity=propensity)

    def _draw(
        self, progress: Progress, task_size: int, history: AnnotatorHistory, rng: np.random.Generator
    ) -> tuple[tuple[int, ...], int] | None:
        """Draw a context, then a set of its least planned items that is new to the annotator.

        Also return the number of sets that were equally likely: those of the context times the number of contexts.
        """
        state = cast("RandomTuplesState", progress.design_state)
        maybe_seen = _contexts_seen_often(state.contexts, history, task_size)
        for level in range(1, state.context_levels.height):
            members = state.context_levels.members(level)
            closed = {
                context
                for context in maybe_seen
                if state.context_levels.level[context] == level
                and self._draw_within(progress, context, task_size, history, rng) is None
            }
            eligible = len(members) - len(closed)
            if not eligible:
                continue
            if eligible * 10 < len(members):
                members = [context for context in members if context not in closed]
            while True:
                context = members[int(rng.integers(len(members)))] if len(members) > 1 else members[0]
                sample = None if context in closed else self._draw_within(progress, context, task_size, history, rng)
                if sample is not None:
                    return sample[0], sample[1] * eligible
                if context not in closed:
                    # Too many sets to enumerate, and all that could be drawn were seen.
                    closed.add(context)
                    eligible -= 1
                    if not eligible:
                        break
        return None

    def _draw_within(
        self, progress: Progress, context: int, task_size: int, history: AnnotatorHistory, rng: np.random.Generator
    ) -> tuple[tuple[int, ...], int] | None:
        """Draw a set of a context that is new to the annotator; also return the number of such sets."""
        draw = self._next_draw(progress, context, task_size)
        if draw is None:
            return None
        n_seen = self._count_drawable(progress, context, draw, sets_of_size(history.sets, task_size))
        sets = comb(len(draw.candidates), draw.places)
        if (sets - n_seen) * 20 >= sets:
            while True:
                sample = rng.choice(len(draw.candidates), size=draw.places, replace=False)
                items = tuple(sorted([*draw.certain, *(draw.candidates[place] for place in sample.tolist())]))
                if items not in history.sets:
                    return items, sets - n_seen
        return self._draw_from_all(progress, context, task_size, history, rng)

    def _next_draw(self, progress: Progress, context: int, task_size: int) -> _Draw | None:
        """Return the items of the lowest levels that all fit into the tuple, and those of the next level."""
        state = cast("RandomTuplesState", progress.design_state)
        levels = progress.planned_tasks
        by_level: Iterator[tuple[int, Sequence[int]]]
        if state.contexts.is_single:
            by_level = ((level, levels.members(level)) for level in range(levels.height))
        else:
            members = np.array(state.contexts.members[context])
            level_of = levels.level[members]
            by_level = ((level, members[level_of == level].tolist()) for level in np.unique(level_of).tolist())
        certain: list[int] = []
        for level, items in by_level:
            if len(certain) + len(items) >= task_size:
                return _Draw(certain, items, level, task_size - len(certain))
            certain += items
        return None

    def _count_drawable(self, progress: Progress, context: int, draw: _Draw, seen_sets: IntArray) -> int:
        """Count the sets among those shown that a draw could give."""
        if not len(seen_sets):
            return 0
        contexts = cast("RandomTuplesState", progress.design_state).contexts
        seen_sets = seen_sets[contexts.of_item[seen_sets[:, 0]] == context]
        is_certain = np.isin(seen_sets, draw.certain)
        is_candidate = (progress.planned_tasks.level[seen_sets] == draw.level) & (
            contexts.of_item[seen_sets] == context
        )
        if contexts.withheld:
            is_candidate &= ~np.isin(seen_sets, list(contexts.withheld))
        has_certain = is_certain.sum(axis=1) == len(draw.certain)
        return int(((is_certain | is_candidate).all(axis=1) & has_certain).sum())

    def _draw_from_all(
        self, progress: Progress, context: int, task_size: int, history: AnnotatorHistory, rng: np.random.Generator
    ) -> tuple[tuple[int, ...], int] | None:
        """Draw from the list of all sets that are new to the annotator and contain an item that needs judgments."""
        state = cast("RandomTuplesState", progress.design_state)
        members = state.contexts.members[context]
        if comb(len(members), task_size) > _MAX_ENUMERATED_SETS:
            return None
        incomplete = {item for item in members if progress.planned_tasks.level[item] < self.tuples_per_item}
        candidates = [
            items
            for items in combinations(members, task_size)
            if items not in history.sets and not incomplete.isdisjoint(items)
        ]
        return (candidates[int(rng.integers(len(candidates)))], len(candidates)) if candidates else None

    def _no_task(self, progress: Progress) -> NoTask:
        state = cast("RandomTuplesState", progress.design_state)
        is_planned = len(state.context_levels.members(0)) == len(state.contexts.members)
        places = len(progress.slots) * self.annotators_per_task
        is_assigned = is_planned and progress.places_assigned >= places - progress.closed_places("assignments")
        if is_assigned and progress.places_answered >= places - progress.closed_places("answers"):
            return NoTask(f"Every item has been shown in {self.tuples_per_item} tasks.", complete=True)
        if is_assigned:
            return WAITING
        return NoTask("You have judged every set of items that still needs judgments.")

    def goal(self, progress: Progress, task_size: int) -> Goal:
        """Count answered tasks."""
        contexts = cast("RandomTuplesState", progress.design_state).contexts
        missing = np.maximum(self.tuples_per_item - progress.planned_tasks.level, 0)
        missing[list(contexts.withheld)] = 0
        needed = np.bincount(contexts.of_item, missing, minlength=len(contexts.members))
        needed[contexts.sizes < task_size] = 0
        places = (len(progress.slots) + int(np.ceil(needed / task_size).sum())) * self.annotators_per_task
        return Goal(progress.places_answered, places - progress.closed_places("answers"))


def _shuffled(items: tuple[int, ...], rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(rng.permutation(items).tolist())


def _contexts_seen_often(contexts: ItemContexts, history: AnnotatorHistory, task_size: int) -> list[int]:
    """Return the contexts of which an annotator may have seen every set that contains some item."""
    seen_sets = sets_of_size(history.sets, task_size)
    if not len(seen_sets):
        return []
    context, count = np.unique(contexts.of_item[seen_sets[:, 0]], return_counts=True)
    return [
        number
        for number, seen in zip(context.tolist(), count.tolist(), strict=True)
        if seen >= comb(len(contexts.members[number]) - 1, task_size - 1)
    ]
