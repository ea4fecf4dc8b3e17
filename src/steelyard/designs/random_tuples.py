"""Random tuples of items, with every item in about equally many."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import ceil, comb
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from steelyard.designs.base import EXACT_PROPENSITY_ITEMS, WAITING, Design, Goal, NoTask, Pick
from steelyard.designs.level_sampling import sample_from_level
from steelyard.designs.progress import AnnotatorHistory, Levels, Progress, free_slot
from steelyard.errors import Problem
from steelyard.observations import IntArray
from steelyard.protocols.base import Protocol

_MAX_ENUMERATED_SETS = 20_000
"""Up to this many sets are enumerated when random draws keep giving sets that were already seen."""


@dataclass(frozen=True, slots=True)
class RandomTuples(Design):
    """Show items together, drawn at random from those planned least often so far.

    Each tuple is judged by `annotators` annotators, and each item gets about `judgments` judgments. No annotator sees
    the same set of items twice.
    """

    name: ClassVar[str] = "random_tuples"

    judgments: Annotated[int, Field(ge=1, description="judgments for each item, over all its tuples")] = 10
    annotators: Annotated[int, Field(ge=1, description="distinct annotators for each tuple")] = 1

    uses_slots: ClassVar[bool] = True

    @property
    def capacity(self) -> int:
        """Number of annotators per tuple."""
        return self.annotators

    @property
    def tuples_per_item(self) -> int:
        """Smallest number of tuples that contain each item."""
        return self.judgments // self.annotators

    def problems(self, protocol: Protocol, n_items: int) -> list[Problem]:
        """Refuse tuples larger than the study, single items, and judgments that are no multiple of annotators."""
        task_size = protocol.task_size
        if self.judgments % self.annotators:
            return [
                Problem(
                    f"{self.judgments} judgments per item cannot come from tuples with {self.annotators} annotators "
                    "each.",
                    f"Make judgments a multiple of {self.annotators}.",
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
                    "Show fewer at a time, or add items.",
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
        """Draw a set of the least planned items that is new to the annotator; also return the number of such sets."""
        levels = progress.planned_tasks
        certain, level = self._certain_items(levels, task_size)
        if level is None:
            return None
        members, count = levels.members(level), task_size - len(certain)
        sets = comb(len(members), count) - _count_drawable(history.sets.rows, levels, certain, level, task_size)
        if sets * 20 >= comb(len(members), count):
            while True:
                sample, _ = sample_from_level(levels, level, count, len(members), None, rng)
                items = tuple(sorted([*certain, *sample]))
                if items not in history.sets:
                    return items, sets
        return self._draw_from_all(progress, task_size, history, rng)

    def _certain_items(self, levels: Levels, task_size: int) -> tuple[list[int], int | None]:
        """Return the items of the lowest levels that all fit into the task, and the level to draw the others from."""
        lowest = range(min(self.tuples_per_item, levels.height))
        level = next((level for level in lowest if levels.members(level)), None)
        if level is None:
            return [], None
        certain: list[int] = []
        while len(certain) + len(levels.members(level)) < task_size:
            certain += levels.members(level)
            level += 1
        return certain, level

    def _draw_from_all(
        self, progress: Progress, task_size: int, history: AnnotatorHistory, rng: np.random.Generator
    ) -> tuple[tuple[int, ...], int] | None:
        """Draw from the list of all sets that are new to the annotator and contain an item that needs judgments."""
        if comb(progress.n_items, task_size) > _MAX_ENUMERATED_SETS:
            return None
        incomplete = set(np.flatnonzero(progress.planned_tasks.level < self.tuples_per_item).tolist())
        candidates = [
            items
            for items in combinations(range(progress.n_items), task_size)
            if items not in history.sets and not incomplete.isdisjoint(items)
        ]
        return (candidates[int(rng.integers(len(candidates)))], len(candidates)) if candidates else None

    def _no_task(self, progress: Progress) -> NoTask:
        is_planned = progress.planned_tasks.level.min(initial=self.tuples_per_item) >= self.tuples_per_item
        places = len(progress.slots) * self.annotators
        is_assigned = is_planned and progress.places_assigned >= places
        if is_assigned and progress.places_answered >= places:
            return NoTask(f"Every item has been shown in {self.tuples_per_item} tasks.", complete=True)
        if is_assigned:
            return WAITING
        return NoTask("You have judged every set of items that still needs judgments.")

    def goal(self, progress: Progress, task_size: int) -> Goal:
        """Count answered tasks."""
        missing = np.maximum(self.tuples_per_item - progress.planned_tasks.level, 0).sum()
        places = (len(progress.slots) + ceil(missing / task_size)) * self.annotators
        return Goal(progress.places_answered, places)


def _shuffled(items: tuple[int, ...], rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(rng.permutation(items).tolist())


def _count_drawable(seen_sets: IntArray, levels: Levels, certain: list[int], level: int, task_size: int) -> int:
    """Count the sets among those shown that the next draw could give."""
    if not len(seen_sets) or seen_sets.shape[1] < task_size:
        return 0
    # Rows of other sizes (from imports) are padded with their last code, or keep rising.
    is_rising = (np.diff(seen_sets[:, :task_size], axis=1) > 0).all(axis=1)
    is_padded = (seen_sets[:, task_size - 1 :] == seen_sets[:, task_size - 1 : task_size]).all(axis=1)
    sets = seen_sets[is_rising & is_padded, :task_size]
    is_member = (levels.level[sets] == level) | np.isin(sets, certain)
    has_certain = np.isin(sets, certain).sum(axis=1) == len(certain)
    return int((is_member.all(axis=1) & has_certain).sum())
