"""Every item judged by the same number of distinct annotators, items with the fewest judgments first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from steelyard.designs.base import EXACT_PROPENSITY_ITEMS, WAITING, Design, Goal, NoTask, Pick
from steelyard.designs.documents import DocumentState
from steelyard.designs.level_sampling import sample_unseen
from steelyard.designs.progress import Progress
from steelyard.designs.state import DesignState
from steelyard.errors import Problem, did_you_mean
from steelyard.protocols.base import Protocol
from steelyard.records import Item


@dataclass(frozen=True, slots=True)
class PerItem(Design):
    """Show single items, or pages of them, until each is judged by enough distinct annotators.

    Items with the fewest judgments come first, in random order among equals, so that an unfinished study is balanced.

    With `document`, every annotator gets whole documents: all texts of one document and system (group) in the order of
    the items file, before the next document begins. Documents with the fewest annotators come first. A document that
    its annotator leaves is handed on: somebody else gets the texts that still need judgments. Where several outputs for
    one source are shown side by side, a document comprises the systems of a page. Overlap ([quality] overlap_rate)
    gives whole documents to everybody.
    """

    name: ClassVar[str] = "per_item"

    judgments: Annotated[int, Field(ge=1, description="judgments per item, by distinct annotators")] = 10
    document: Annotated[
        str,
        Field(
            description="column of the items with the document: annotators get whole documents, in order; empty: "
            "single items"
        ),
    ] = ""
    hold_minutes: Annotated[
        float, Field(gt=0, description="minutes for which a document stays reserved for an inactive annotator")
    ] = 30.0

    @property
    def shares_sources(self) -> bool:
        """Overlap gives whole documents to everybody."""
        return bool(self.document)

    def initial_state(self, protocol: Protocol) -> DesignState | None:
        """Return the state of the documents; None for single items."""
        if not self.document:
            return None
        return DocumentState(self.document, self.judgments, protocol, self.hold_minutes)

    def item_problems(self, protocol: Protocol, items: Sequence[Item]) -> list[Problem]:
        """Refuse a document column that no item has."""
        columns = {name for item in items for name in item.metadata}
        if not self.document or self.document in columns:
            return []
        remedy = did_you_mean(self.document, sorted(columns))
        return [Problem(f"no item has a column '{self.document}'.", remedy, field="design.document")]

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
        """Choose the least assigned items that the annotator has not seen, or the next page of a document."""
        if self.document:
            return self._pick_page(progress, annotator, rng)
        seen_sets = progress.history(annotator).items
        items, sets = sample_unseen(progress.assignments, self.judgments, task_size, seen_sets, rng)
        if not items:
            return self._no_task(progress)
        rng.shuffle(items)
        propensity = 1 / sets if progress.n_items <= EXACT_PROPENSITY_ITEMS else None
        return Pick(tuple(items), propensity=propensity)

    def _pick_page(self, progress: Progress, annotator: str, rng: np.random.Generator) -> Pick | NoTask:
        state, seen_sets = _state_of(progress), progress.history(annotator).items
        items = state.continued(annotator, seen_sets)
        if items is not None:
            return Pick(state.ordered(items, rng), propensity=1.0)
        page = state.draw(annotator, seen_sets, rng)
        if page is None:
            return self._no_task(progress)
        is_exact = progress.n_items <= EXACT_PROPENSITY_ITEMS
        return Pick(state.ordered(page.items, rng), propensity=1 / page.n_documents if is_exact else None)

    def shared_pick(self, progress: Progress, annotator: str, rng: np.random.Generator) -> Pick | None:
        """Choose the first page of a document that everybody gets and this annotator has not begun."""
        state, seen_sets = _state_of(progress), progress.history(annotator).items
        for document in state.shared:
            items = None
            if not state.has_begun(annotator, document):
                items = state.next_items(annotator, document, seen_sets)
            if items is not None:
                return Pick(state.ordered(items, rng), propensity=1.0)
        return None

    def is_continued(self, progress: Progress, annotator: str, items: tuple[int, ...]) -> bool:
        """Whether the annotator has begun the document of these items."""
        state = _state_of(progress)
        return state.has_begun(annotator, state.document_of[items[0]])

    def is_overlap(self, progress: Progress, annotator: str, items: tuple[int, ...]) -> bool:
        """Whether the annotator judges the document of these items because everybody does."""
        state = _state_of(progress)
        return state.is_overlap(annotator, state.document_of[items[0]])

    def _no_task(self, progress: Progress) -> NoTask:
        available = _available(progress)
        if progress.n_items and progress.answers[available].min(initial=self.judgments) >= self.judgments:
            return NoTask(f"All items have {self.judgments} judgments.", complete=True)
        if progress.assignments.level[available].min(initial=self.judgments) >= self.judgments:
            return WAITING
        if self.document and _state_of(progress).is_taken:
            return WAITING
        return NoTask("You have judged every item that still needs judgments.")

    def goal(self, progress: Progress, task_size: int) -> Goal:
        """Count judgments of single items, without those beyond the quota."""
        answers = np.minimum(progress.answers, self.judgments)
        planned = np.where(_available(progress), self.judgments, answers)
        return Goal(int(answers.sum()), int(planned.sum()))


def _state_of(progress: Progress) -> DocumentState:
    return cast("DocumentState", progress.design_state)


def _available(progress: Progress) -> NDArray[np.bool_]:
    """Return for each item whether it may be asked about."""
    is_available = np.ones(progress.n_items, np.bool_)
    is_available[list(progress.set_aside)] = False
    return is_available
