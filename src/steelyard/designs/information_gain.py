"""Ask what is expected to teach most about what the study is for."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, comb
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from pydantic import Field

from steelyard.designs.base import EXACT_PROPENSITY_ITEMS, WAITING, Design, Goal, Nothing, Pick
from steelyard.designs.progress import Progress
from steelyard.errors import Problem
from steelyard.protocols.base import Protocol

if TYPE_CHECKING:
    # They load the compiler, which studies with other designs do without.
    from steelyard.designs.information_gain_memory import GainMemory
    from steelyard.designs.information_gain_search import Found, Search

Aim: TypeAlias = Literal["ranking", "top", "threshold", "scores"]
"""What a study is for: the order of all items, which are the best, which are above a point, or all scores."""

_BATCH_WINDOW = 64
"""So many neighbours on either side are looked at for a batch."""


@dataclass(frozen=True, slots=True)
class InformationGain(Design):
    """Give each annotator the task whose answer is expected to teach most, given all answers so far.

    What counts is what the study is for (`aim`). Beliefs are those of the model calibrated_scale: every item's place
    with its uncertainty, every annotator's noise. What is with somebody already counts as if it were answered, so
    that many people who ask at once get different tasks.

    Every pick records as `weight` what the task was expected to teach, and up to 10,000 items as `propensity` the
    probability with which it was chosen: that of the best one is 1 less the share that is drawn at random.
    """

    name: ClassVar[str] = "information_gain"

    judgments: Annotated[int, Field(ge=1, description="judgments an item, on average")] = 10
    aim: Annotated[
        Aim,
        Field(
            description="what the answers are for: the ranking of all items, which are the top ones, which are above a "
            "threshold, or the precision of all scores"
        ),
    ] = "ranking"
    top: Annotated[int | None, Field(ge=1, description="how many top items are sought; for aim top")] = None
    threshold: Annotated[
        float | None,
        Field(gt=0, lt=1, description="the share of the items that lie below the threshold; for aim threshold"),
    ] = None
    explore: Annotated[
        float, Field(ge=0, le=1, description="share of tasks drawn at random from all, whatever they teach")
    ] = 0.05
    first_looks: Annotated[
        int | None,
        Field(
            ge=0,
            description="how often every item is shown before what is learnt alone decides; twice for ratings if "
            "absent, else once",
        ),
    ] = None
    annotators: Annotated[
        int | None, Field(ge=1, description="most annotators who are asked the same task; any number if absent")
    ] = None
    same_item_again: Annotated[
        bool, Field(description="whether an annotator may meet an item again, in another task with other items")
    ] = True
    by: Annotated[
        Literal["item", "group"],
        Field(description="whether each item is placed, or each group, shown by its items for one context"),
    ] = "item"
    together: Annotated[
        Literal["anything", "same_context", "other_groups"],
        Field(description="which items may stand in one task: any, those of one context, or those of different groups"),
    ] = "anything"

    def memory(self, protocol: Protocol) -> GainMemory:
        """Return a memory that has heard nothing."""
        from steelyard.designs.information_gain_memory import GainMemory, Purpose

        return GainMemory(
            protocol,
            Purpose(self.aim, self.top, self.threshold),
            by_group=self.by == "group",
            together=self.together,
            limit=self.annotators,
        )

    def looks(self, *, rates: bool) -> int:
        """How often every item is shown at first: one rating alone can seem to settle an item."""
        return self.first_looks if self.first_looks is not None else 2 if rates else 1

    def problems(self, protocol: Protocol, n_items: int) -> list[Problem]:
        """Refuse answers that cannot be learnt from, tasks larger than the study, and settings that do not fit."""
        found = []
        if not {"comparisons", "ratings"} & set(protocol.kinds):
            found.append(
                Problem(
                    f"information_gain learns from comparisons or ratings, but {protocol.name} gives "
                    f"{', '.join(protocol.kinds)}.",
                    "Use the design redundant.",
                    field="design.name",
                )
            )
        if protocol.task_size > n_items:
            found.append(
                Problem(
                    f"a task shows {protocol.task_size} items, but there are only {n_items}.",
                    "Show fewer at a time, or add items.",
                    field="protocol.items_per_page" if protocol.takes_short_pages else "protocol.size",
                )
            )
        for aim, needed in (("top", self.top), ("threshold", self.threshold)):
            if (self.aim == aim) != (needed is not None):
                what = "needs" if self.aim == aim else "is the only one that takes"
                remedy = f"Set {aim} in [design]." if self.aim == aim else f'Leave {aim} out, or set aim = "{aim}".'
                found.append(Problem(f'aim = "{aim}" {what} {aim}.', remedy, field=f"design.{aim}"))
        if self.top is not None and self.top >= n_items:
            found.append(
                Problem(f"the top {self.top} of {n_items} items are all of them.", "Seek fewer.", field="design.top")
            )
        if self.by == "group" and (self.together != "anything" or not self.same_item_again):
            found.append(
                Problem(
                    "together and same_item_again are for single items, not for groups.",
                    'Leave them out, or set by = "item".',
                    field="design.by",
                )
            )
        return found

    def budget(self, progress: Progress) -> int:
        """How many tasks there are in all; items that join bring more."""
        memory = _memory(progress)
        count, size = memory.units.count, memory.task_size
        if count < size:
            return 0
        wanted = ceil(self.judgments * count / size)
        simple = self.by == "item" and self.together == "anything"
        return wanted if self.annotators is None or not simple else min(wanted, comb(count, size) * self.annotators)

    def pick(self, progress: Progress, task_size: int, annotator: str, rng: np.random.Generator) -> Pick | Nothing:
        """Choose the task that teaches most, or now and then any."""
        memory, budget = _memory(progress), self.budget(progress)
        if memory.units.count < task_size:
            return Nothing(
                f"A task shows {task_size} {self.by}s, but there are {memory.units.count}: add items"
                f"{' and fill their column group' if self.by == 'group' else ''}, or show fewer at a time."
            )
        if progress.tasks_answered >= budget:
            return Nothing(f"All {progress.tasks_answered:,} tasks have been answered.", complete=True)
        if progress.tasks_asked >= budget:
            return WAITING
        only_new = not self.same_item_again or (memory.short_pages and self.by == "item")
        from steelyard.designs.information_gain_search import Search

        looks = self.looks(rates=memory.rates)
        search = Search(memory, progress.person(annotator), annotator, looks=looks, only_new=only_new)
        found = search.any(rng) if rng.random() < self.explore else None
        best = search.best(rng)
        found = found or best
        if found is None:
            return Nothing("You have judged everything that can be asked of you.")
        return Pick(
            tuple(rng.permutation(found.items).tolist()),
            weight=found.gain,
            propensity=self._propensity(search, found, best),
        )

    def _propensity(self, search: Search, found: Found, best: Found | None) -> float | None:
        sets = search.count() if search.memory.units.count <= EXACT_PROPENSITY_ITEMS else None
        if sets is None:
            return None
        chosen = best is not None and sorted(found.items) == sorted(best.items)
        return self.explore / max(sets, 1) + (1 - self.explore) * chosen

    def batch(self, progress: Progress, count: int) -> list[tuple[int, ...]]:
        """Choose many tasks at once, for anybody: as they would be asked if nothing were answered in between.

        Returns the items' codes; fewer tasks than asked for where there are no more. Only for single items.
        """
        memory = _memory(progress)
        n = memory.units.count
        tasks, gains = np.empty((count, memory.task_size), np.int64), np.empty(count)
        standing = memory.standing(np.zeros(n, np.bool_), np.empty(0, np.int64))
        from steelyard.designs.gain_kernels import best_batch

        found = best_batch(min(_BATCH_WINDOW, n), standing, memory.answers_of(""), tasks, gains)
        return [tuple(row) for row in tasks[:found].tolist()]

    def goal(self, progress: Progress, task_size: int) -> Goal:
        """Count answered tasks."""
        return Goal(progress.tasks_answered, max(self.budget(progress), progress.tasks_asked))


def _memory(progress: Progress) -> GainMemory:
    memory = progress.memory
    from steelyard.designs.information_gain_memory import GainMemory

    if not isinstance(memory, GainMemory):
        raise TypeError("information_gain needs the progress that its own `progress` makes")
    return memory
