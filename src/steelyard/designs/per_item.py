"""Every item judged by the same number of distinct annotators, items with the fewest judgments first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from steelyard.designs.base import EXACT_PROPENSITY_ITEMS, WAITING, Design, Goal, NoTask, Pick
from steelyard.designs.level_sampling import sample_unseen
from steelyard.designs.progress import Progress
from steelyard.errors import Problem
from steelyard.protocols.base import Protocol


@dataclass(frozen=True, slots=True)
class PerItem(Design):
    """Show single items, or pages of them, until each is judged by enough distinct annotators.

    Items with the fewest judgments come first, in random order among equals, so that an unfinished study is balanced.
    """

    name: ClassVar[str] = "per_item"

    judgments: Annotated[int, Field(ge=1, description="judgments per item, by distinct annotators")] = 10

    def problems(self, protocol: Protocol, n_items: int) -> list[Problem]:
        """Refuse protocols that compare items, and pages larger than the study."""
        if not protocol.takes_short_pages:
            return [
                Problem(
                    f"per_item shows items one by one, but {protocol.name} compares them.",
                    "Use the design random_tuples.",
                    field="design.name",
                )
            ]
        if protocol.task_size > n_items:
            return [
                Problem(
                    f"a page shows {protocol.task_size} items, but there are only {n_items}.",
                    "Show fewer items per page, or add items.",
                    field="protocol.items_per_page",
                )
            ]
        return []

    def pick(self, progress: Progress, task_size: int, annotator: str, rng: np.random.Generator) -> Pick | NoTask:
        """Choose the least assigned items that the annotator has not seen."""
        seen_sets = progress.history(annotator).items
        items, sets = sample_unseen(progress.assignments, self.judgments, task_size, seen_sets, rng)
        if not items:
            return self._no_task(progress)
        rng.shuffle(items)
        propensity = 1 / sets if progress.n_items <= EXACT_PROPENSITY_ITEMS else None
        return Pick(tuple(items), propensity=propensity)

    def _no_task(self, progress: Progress) -> NoTask:
        if progress.n_items and int(progress.answers.min()) >= self.judgments:
            return NoTask(f"All items have {self.judgments} judgments.", complete=True)
        if progress.assignments.level.min(initial=self.judgments) >= self.judgments:
            return WAITING
        return NoTask("You have judged every item that still needs judgments.")

    def goal(self, progress: Progress, task_size: int) -> Goal:
        """Count judgments of single items, without those beyond the quota."""
        done = int(np.minimum(progress.answers, self.judgments).sum())
        return Goal(done, progress.n_items * self.judgments)
