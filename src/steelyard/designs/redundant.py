"""Every item judged by r distinct annotators, the least-judged first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from steelyard.designs.base import EXACT_PROPENSITY_ITEMS, WAITING, Design, Goal, Nothing, Pick
from steelyard.designs.drawing import draw_unseen
from steelyard.designs.progress import Progress
from steelyard.errors import Problem
from steelyard.protocols.base import Protocol


@dataclass(frozen=True, slots=True)
class Redundant(Design):
    """Ask about single items (or pages of them) until each has `judgments` from different people.

    Items with the fewest judgments come first, at random among equals, so that an unfinished study is even.
    """

    name: ClassVar[str] = "redundant"

    judgments: Annotated[int, Field(ge=1, description="distinct annotators for each item")] = 10

    def problems(self, protocol: Protocol, n_items: int) -> list[Problem]:
        """Refuse protocols that set items against each other, and pages larger than the study."""
        if not protocol.takes_short_pages:
            return [
                Problem(
                    f"redundant asks about items one by one, but {protocol.name} sets them against each other.",
                    "Use the design random_tuples.",
                    field="design.name",
                )
            ]
        if protocol.task_size > n_items:
            return [
                Problem(
                    f"a page shows {protocol.task_size} items, but there are only {n_items}.",
                    "Show fewer items a page, or add items.",
                    field="protocol.items_per_page",
                )
            ]
        return []

    def pick(self, progress: Progress, task_size: int, annotator: str, rng: np.random.Generator) -> Pick | Nothing:
        """Choose the items this annotator has not seen that have been asked least."""
        seen = progress.person(annotator).items
        chosen, sets = draw_unseen(progress.asked, self.judgments, task_size, seen, rng)
        if not chosen:
            return self._nothing(progress)
        rng.shuffle(chosen)
        exact = 1 / sets if progress.n_items <= EXACT_PROPENSITY_ITEMS else None
        return Pick(tuple(chosen), propensity=exact)

    def _nothing(self, progress: Progress) -> Nothing:
        if progress.n_items and int(progress.answered.min()) >= self.judgments:
            return Nothing(f"All items have {self.judgments} judgments.", complete=True)
        if progress.asked.level.min(initial=self.judgments) >= self.judgments:
            return WAITING
        return Nothing("You have judged every item that still needs judgments.")

    def goal(self, progress: Progress, task_size: int) -> Goal:
        """Count judgments of single items, those beyond the quota left out."""
        done = int(np.minimum(progress.answered, self.judgments).sum())
        return Goal(done, progress.n_items * self.judgments)
