"""Adequate or not, asked from the top of a dominance graph down (Pighin et al. 2012, §3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, cast

import numpy as np
from pydantic import Field

from steelyard.designs.base import EXACT_PROPENSITY_ITEMS, WAITING, Design, Goal, Nothing, Pick
from steelyard.designs.memory import Memory
from steelyard.designs.progress import Person, Progress
from steelyard.designs.propagation_memory import Adequacy, AdequacyLabel, Effort
from steelyard.errors import Problem
from steelyard.observations import Label, Observation, Rating
from steelyard.protocols.base import Protocol


def is_inadequate(labels: frozenset[str], below: float | None, said: Observation) -> bool:
    """Read an answer about one item as yes or no."""
    if isinstance(said, Rating):
        return below is not None and said.value < below
    return isinstance(said, Label) and said.label in labels


@dataclass(frozen=True, slots=True)
class Propagation(Design):
    """Ask whether items are adequate, those that dominate most first, and spare what follows from the answers.

    A stage after one that compares items (tournament). What an inadequate item dominates is inadequate. A
    reference is adequate, and so is all that dominates it or ties with it. Items that are identical, tied or on
    a cycle are asked once. `effort` counts what was spared, `labels` gives every item's label.
    """

    name: ClassVar[str] = "propagation"

    inadequate: Annotated[tuple[str, ...], Field(description="the labels that mean inadequate, for choice")] = ("no",)
    below: Annotated[float | None, Field(description="values below this mean inadequate, for direct and likert")] = None
    annotators: Annotated[
        int, Field(ge=1, description="distinct annotators for each item that is asked; the majority decides")
    ] = 1
    references: Annotated[
        bool, Field(description="whether items whose text is their reference's count as adequate unasked")
    ] = True

    def memory(self, protocol: Protocol) -> Memory:
        """Return what is known at the start of a stage."""
        reading = partial(is_inadequate, frozenset(self.inadequate), self.below)
        return Adequacy(self.annotators, references=self.references, inadequate=reading)

    def problems(self, protocol: Protocol, n_items: int) -> list[Problem]:
        """Refuse protocols that do not ask about one item, once, or whose answers are not said how to read."""
        if not protocol.takes_short_pages:
            return [
                Problem(
                    f"propagation asks about items one by one, but {protocol.name} sets them against each other.",
                    "Use the protocol choice with the labels yes and no, likert or direct.",
                    field="design.name",
                )
            ]
        if protocol.task_size > 1:
            return [
                Problem(
                    "propagation asks one item at a time, as the answer may spare the next.",
                    "Set items_per_page to 1.",
                    field="protocol.items_per_page",
                )
            ]
        criteria = protocol.classes() or protocol.scales()
        if len(criteria) > 1:
            return [
                Problem(
                    f"propagation needs one answer an item, but there are {len(criteria)} criteria.",
                    "Ask for one criterion, and for the others in a stage of their own.",
                    field="protocol.criteria",
                )
            ]
        if protocol.classes():
            return self._label_problems(*protocol.classes().values())
        return self._threshold_problems(*protocol.scales().values())

    def _label_problems(self, labels: tuple[str, ...]) -> list[Problem]:
        unknown = [label for label in self.inadequate if label not in labels]
        if not unknown and 0 < len(self.inadequate) < len(labels):
            return []
        what = (
            f"'{unknown[0]}' is not one of the labels {', '.join(labels)}."
            if unknown
            else "some of the labels, but not all, must mean inadequate."
        )
        remedy = f'Say which of them mean inadequate, e.g. inadequate = ["{labels[-1]}"].'
        return [Problem(what, remedy, field="design.inadequate")]

    def _threshold_problems(self, scale: tuple[float, float]) -> list[Problem]:
        low, high = scale
        if self.below is not None and low < self.below <= high:
            return []
        what = (
            "nothing says which ratings mean inadequate."
            if self.below is None
            else f"below = {self.below:g} does not part the scale {low:g} to {high:g}."
        )
        return [Problem(what, f"Set below, e.g. below = {(low + high) / 2:g}.", field="design.below")]

    def pick(self, progress: Progress, task_size: int, annotator: str, rng: np.random.Generator) -> Pick | Nothing:
        """Stay with the source the annotator was shown last, else go to any that has something to ask."""
        adequacy = cast("Adequacy", progress.memory)
        adequacy.refresh()
        person = progress.person(annotator)
        here = adequacy.last_item.get(annotator)
        if here is not None:
            item = adequacy.next_item(adequacy.graph_of(here), person.items)
            if item is not None:
                return Pick((item,), propensity=1.0)
        drawn = _draw(adequacy, person, rng)
        if drawn is None:
            return self._nothing(adequacy)
        item, graphs = drawn
        return Pick((item,), propensity=1 / graphs if progress.n_items <= EXACT_PROPENSITY_ITEMS else None)

    def _nothing(self, adequacy: Adequacy) -> Nothing:
        if adequacy.unlabelled == 0:
            effort = _effort(adequacy)
            return Nothing(
                f"All {effort.items:,} items are labelled, {effort.asked:,} of them by asking.", complete=True
            )
        if not adequacy.open_graphs:
            return WAITING
        return Nothing("You have judged every item that can be asked now.")

    def goal(self, progress: Progress, task_size: int) -> Goal:
        """Count judgments of vertices; the total is what is needed if nothing more can be inferred, and may fall."""
        adequacy = cast("Adequacy", progress.memory)
        done = total = 0
        for judged in adequacy.judged():
            for tied, verdict in zip(judged.items, judged.verdicts, strict=True):
                answers = sum(len(adequacy.answers.get(item, ())) for item in tied)
                done += min(answers, self.annotators)
                total += self.annotators if verdict is None else min(answers, self.annotators)
        return Goal(done, total)

    def effort(self, progress: Progress) -> Effort:
        """Count how much was collapsed, inferred and asked (Table 2 of the paper)."""
        return _effort(cast("Adequacy", progress.memory))

    def labels(self, progress: Progress) -> list[AdequacyLabel]:
        """Return every label there is, asked or inferred, in the order of the items."""
        adequacy = cast("Adequacy", progress.memory)
        found = {
            item: AdequacyLabel(adequacy.ids[item], verdict.adequate, verdict.how, adequacy.ids[verdict.through])
            for judged in adequacy.judged()
            for tied, verdict in zip(judged.items, judged.verdicts, strict=True)
            if verdict is not None
            for item in tied
        }
        return [found[item] for item in sorted(found)]


def _effort(adequacy: Adequacy) -> Effort:
    graphs = adequacy.judged()
    hows = [verdict.how if verdict else "open" for judged in graphs for verdict in judged.verdicts]
    items = len(adequacy.ids)
    return Effort(
        items=items,
        collapsed=items - len(hows),
        reference=hows.count("reference"),
        propagated=hows.count("propagated"),
        asked=hows.count("asked"),
        open=hows.count("open"),
    )


def _draw(adequacy: Adequacy, person: Person, rng: np.random.Generator) -> tuple[int, int] | None:
    """Draw a graph with something for this person, each as likely, and the item to ask; say among how many."""
    graphs = adequacy.open_graphs
    known = {adequacy.graph_of(item) for item in person.items.rows[:, 0].tolist()}
    spent = {graph for graph in known if adequacy.is_open(graph) and adequacy.next_item(graph, person.items) is None}
    left = len(graphs) - len(spent)
    if left == 0:
        return None
    if left * 10 < len(graphs):
        graphs = [graph for graph in graphs if graph not in spent]
    while True:
        item = adequacy.next_item(graphs[int(rng.integers(len(graphs)))], person.items)
        if item is not None:
            return item, left
