"""Random tuples of items, every item in about equally many."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import ceil, comb
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from steelyard.designs.base import EXACT_PROPENSITY_ITEMS, WAITING, Design, Goal, Nothing, Pick
from steelyard.designs.drawing import draw_from_level
from steelyard.designs.progress import Levels, Person, Progress
from steelyard.errors import Problem
from steelyard.observations import IntArray
from steelyard.protocols.base import Protocol

_ENUMERABLE = 20_000
"""Up to this many sets are listed when drawing at random keeps finding ones already seen."""


@dataclass(frozen=True, slots=True)
class RandomTuples(Design):
    """Show items together, drawn at random from those planned least often so far.

    Each tuple is judged by `annotators` people, and each item ends up with about `judgments` judgments.
    Nobody sees one set of items twice.
    """

    name: ClassVar[str] = "random_tuples"

    judgments: Annotated[int, Field(ge=1, description="judgments for each item, over all its tuples")] = 10
    annotators: Annotated[int, Field(ge=1, description="distinct annotators for each tuple")] = 1

    plans: ClassVar[bool] = True

    @property
    def capacity(self) -> int:
        """How many annotators a tuple is for."""
        return self.annotators

    @property
    def tuples_per_item(self) -> int:
        """In how many tuples each item is shown, at least."""
        return self.judgments // self.annotators

    def problems(self, protocol: Protocol, n_items: int) -> list[Problem]:
        """Refuse tuples larger than the study, pages of one item, and a number of judgments that cannot come out."""
        task_size = protocol.task_size
        if self.judgments % self.annotators:
            return [
                Problem(
                    f"{self.judgments} judgments an item cannot come from tuples of {self.annotators} annotators each.",
                    f"Make judgments a multiple of {self.annotators}.",
                    field="design.judgments",
                )
            ]
        if task_size < 2:
            return [
                Problem(
                    "random_tuples shows items together, but this protocol shows one at a time.",
                    "Use the design redundant, or show more items a page.",
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

    def pick(self, progress: Progress, task_size: int, annotator: str, rng: np.random.Generator) -> Pick | Nothing:
        """Fill a tuple that still needs people, else draw a new one."""
        person = progress.person(annotator)
        joined = self._join(progress, person)
        if joined is not None:
            return Pick(_shuffled(progress.slots[joined].items, rng), slot=joined, propensity=1.0)
        drawn = self._draw(progress, task_size, person, rng)
        if drawn is None:
            return self._nothing(progress)
        items, sets = drawn
        exact = 1 / sets if progress.n_items <= EXACT_PROPENSITY_ITEMS else None
        return Pick(_shuffled(items, rng), slot=progress.next_slot, propensity=exact)

    def _join(self, progress: Progress, person: Person) -> int | None:
        for place in range(person.queue_read, len(progress.queue)):
            number = progress.queue[place]
            slot = progress.slots[number]
            if slot.queued_at == place and slot.asked < self.annotators and slot.items not in person.sets:
                return number
            # Full or seen: it cannot become right for this annotator again without joining the queue anew.
            person.queue_read = place + 1
        return None

    def _draw(
        self, progress: Progress, task_size: int, person: Person, rng: np.random.Generator
    ) -> tuple[tuple[int, ...], int] | None:
        """Draw a set of the least planned items that this annotator has not seen; say from how many."""
        levels = progress.planned
        certain, level = self._certain(levels, task_size)
        if level is None:
            return None
        members, count = levels.members(level), task_size - len(certain)
        sets = comb(len(members), count) - _drawable(person.sets.rows, levels, certain, level, task_size)
        if sets * 20 >= comb(len(members), count):
            while True:
                drawn, _ = draw_from_level(levels, level, count, len(members), None, rng)
                items = tuple(sorted([*certain, *drawn]))
                if items not in person.sets:
                    return items, sets
        return self._draw_from_all(progress, task_size, person, rng)

    def _certain(self, levels: Levels, task_size: int) -> tuple[list[int], int | None]:
        """Return the items of the lowest levels that fit whole, and the level to draw the rest from."""
        lowest = range(min(self.tuples_per_item, levels.height))
        needy = next((level for level in lowest if levels.members(level)), None)
        if needy is None:
            return [], None
        certain: list[int] = []
        while len(certain) + len(levels.members(needy)) < task_size:
            certain += levels.members(needy)
            needy += 1
        return certain, needy

    def _draw_from_all(
        self, progress: Progress, task_size: int, person: Person, rng: np.random.Generator
    ) -> tuple[tuple[int, ...], int] | None:
        """Few sets are left for this annotator: list every one that holds an item in need."""
        if comb(progress.n_items, task_size) > _ENUMERABLE:
            return None
        needy = set(np.flatnonzero(progress.planned.level < self.tuples_per_item).tolist())
        candidates = [
            items
            for items in combinations(range(progress.n_items), task_size)
            if items not in person.sets and not needy.isdisjoint(items)
        ]
        return (candidates[int(rng.integers(len(candidates)))], len(candidates)) if candidates else None

    def _nothing(self, progress: Progress) -> Nothing:
        planned_out = progress.planned.level.min(initial=self.tuples_per_item) >= self.tuples_per_item
        places = len(progress.slots) * self.annotators
        filled = planned_out and progress.places_asked >= places
        if filled and progress.places_answered >= places:
            return Nothing(f"Every item has been shown in {self.tuples_per_item} tasks.", complete=True)
        if filled:
            return WAITING
        return Nothing("You have judged every set of items that still needs judgments.")

    def goal(self, progress: Progress, task_size: int) -> Goal:
        """Count answered tasks."""
        missing = np.maximum(self.tuples_per_item - progress.planned.level, 0).sum()
        places = (len(progress.slots) + ceil(missing / task_size)) * self.annotators
        return Goal(progress.places_answered, places)


def _shuffled(items: tuple[int, ...], rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(rng.permutation(items).tolist())


def _drawable(seen: IntArray, levels: Levels, certain: list[int], level: int, task_size: int) -> int:
    """Count the seen sets that the next draw could come up with."""
    if not len(seen) or seen.shape[1] < task_size:
        return 0
    # Rows of other sizes (from imports) are padded with their last code, or rise further.
    rising = (np.diff(seen[:, :task_size], axis=1) > 0).all(axis=1)
    seen = seen[rising & (seen[:, task_size - 1 :] == seen[:, task_size - 1 : task_size]).all(axis=1), :task_size]
    fits = (levels.level[seen] == level) | np.isin(seen, certain)
    whole = fits.all(axis=1) & (np.isin(seen, certain).sum(axis=1) == len(certain))
    return int(whole.sum())
