"""The propagation design: adequacy labels, asked from the top of a dominance graph down (Pighin et al. 2012, §3.2)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, ClassVar, cast

import numpy as np
from pydantic import Field

from steelyard.designs.base import EXACT_PROPENSITY_ITEMS, WAITING, Design, Goal, NoTask, Pick
from steelyard.designs.progress import AnnotatorHistory, Progress
from steelyard.designs.propagation.state import AdequacyLabel, Effort, PropagationState
from steelyard.designs.state import DesignState
from steelyard.errors import Problem
from steelyard.observations import Label, Observation, Rating
from steelyard.protocols.base import Protocol


@dataclass(frozen=True, slots=True)
class InadequacyRule:
    """Tells whether an observation of one item means that it is inadequate."""

    labels: tuple[str, ...]
    below: float | None

    def __call__(self, observation: Observation) -> bool:
        if isinstance(observation, Rating):
            return self.below is not None and observation.value < self.below
        return isinstance(observation, Label) and observation.label in self.labels


@dataclass(frozen=True, slots=True)
class Propagation(Design):
    """Ask whether items are adequate, those that dominate most items first, and infer the labels that follow.

    For a stage after one that compares items (tournament). Items dominated by an inadequate item are inadequate. A
    reference is adequate, and so are the items that dominate it or tie with it. Of items that are identical or tied one
    is asked; items on a cycle contradict each other, so each is asked. `effort` counts the questions saved, `labels`
    returns the label of every item, and whether it was asked or inferred.
    """

    name: ClassVar[str] = "propagation"

    inadequate: Annotated[tuple[str, ...], Field(description="labels that mean inadequate; for choice")] = ("no",)
    below: Annotated[float | None, Field(description="values below this mean inadequate; for direct and likert")] = None
    annotators_per_task: Annotated[
        int,
        Field(ge=1, description="distinct annotators per task (item); the majority decides"),
    ] = 1
    references: Annotated[
        bool, Field(description="whether items whose text equals their reference count as adequate without being asked")
    ] = True

    def initial_state(self, protocol: Protocol) -> DesignState:
        """Return the state before the first answer."""
        rule = InadequacyRule(self.inadequate, self.below)
        return PropagationState(self.annotators_per_task, references=self.references, is_inadequate=rule)

    def problems(self, protocol: Protocol, n_items: int) -> list[Problem]:
        """Refuse protocols that do not ask about one item at a time, and labels or thresholds that do not fit."""
        if not protocol.takes_short_pages:
            return [
                Problem(
                    f"propagation asks for one item at a time, but {protocol.name} compares them.",
                    "Use the protocol choice with the labels yes and no, likert or direct.",
                    field="design.name",
                )
            ]
        if protocol.task_size > 1:
            return [
                Problem(
                    "propagation asks for one item at a time, because an answer may determine other items.",
                    "Set items_per_page to 1.",
                    field="protocol.items_per_page",
                )
            ]
        criteria = protocol.classes() or protocol.scales()
        if len(criteria) > 1:
            return [
                Problem(
                    f"propagation needs one answer per item, but there are {len(criteria)} criteria.",
                    "Use one criterion here, and the other criteria in another stage.",
                    field="protocol.criteria",
                )
            ]
        if protocol.classes():
            return self._label_problems(*protocol.classes().values())
        return self._threshold_problems(*protocol.scales().values())

    def _label_problems(self, labels: tuple[str, ...]) -> list[Problem]:
        unknown_labels = [label for label in self.inadequate if label not in labels]
        if not unknown_labels and 0 < len(self.inadequate) < len(labels):
            return []
        what = (
            f"'{unknown_labels[0]}' is not one of the labels {', '.join(labels)}."
            if unknown_labels
            else "at least one label, but not all, must mean inadequate."
        )
        remedy = f'List the labels that mean inadequate, e.g. inadequate = ["{labels[-1]}"].'
        return [Problem(what, remedy, field="design.inadequate")]

    def _threshold_problems(self, scale: tuple[float, float]) -> list[Problem]:
        low, high = scale
        if self.below is not None and low < self.below <= high:
            return []
        what = (
            "the setting below is missing, so no rating means inadequate."
            if self.below is None
            else f"below = {self.below:g} does not divide the scale {low:g} to {high:g}."
        )
        return [Problem(what, f"Set below, e.g. below = {(low + high) / 2:g}.", field="design.below")]

    def pick(self, progress: Progress, task_size: int, annotator: str, rng: np.random.Generator) -> Pick | NoTask:
        """Continue with the graph the annotator was shown last, else draw one with an open question."""
        state = cast("PropagationState", progress.design_state)
        state.refresh()
        history = progress.history(annotator)
        last_item = state.last_item.get(annotator)
        if last_item is not None:
            item = state.next_item(state.graph_of(last_item), history.items)
            if item is not None:
                return Pick((item,), propensity=1.0)
        question = _draw(state, history, rng)
        if question is None:
            return self._no_task(state)
        item, n_graphs = question
        return Pick((item,), propensity=1 / n_graphs if progress.n_items <= EXACT_PROPENSITY_ITEMS else None)

    def _no_task(self, state: PropagationState) -> NoTask:
        if state.n_unlabelled == 0:
            effort = _effort(state)
            items = f"All {effort.items:,} items are labelled" if not effort.open else "All other items are labelled"
            return NoTask(f"{items}, {effort.asked:,} of them by asking.", complete=True)
        if not state.open_graphs:
            return WAITING
        return NoTask("You have judged every item that can be asked now.")

    def goal(self, progress: Progress, task_size: int) -> Goal:
        """Count judgments of vertices; the total assumes that no more labels can be inferred, and may fall."""
        state = cast("PropagationState", progress.design_state)
        done = total = 0
        for graph in state.labelled_graphs():
            for members, verdict in zip(graph.items, graph.verdicts, strict=True):
                answers = sum(len(state.answers.get(item, ())) for item in members)
                is_open = verdict is None and not state.set_aside.issuperset(members)
                done += min(answers, self.annotators_per_task)
                total += self.annotators_per_task if is_open else min(answers, self.annotators_per_task)
        return Goal(done, total)

    def effort(self, progress: Progress) -> Effort:
        """Count the items that were collapsed, inferred and asked (Table 2 of the paper)."""
        return _effort(cast("PropagationState", progress.design_state))

    def labels(self, progress: Progress) -> list[AdequacyLabel]:
        """Return every label, asked or inferred, in the order of the items."""
        state = cast("PropagationState", progress.design_state)
        labels = {
            item: state.label(item, verdict)
            for graph in state.labelled_graphs()
            for members, verdict in zip(graph.items, graph.verdicts, strict=True)
            if verdict is not None
            for item in members
        }
        return [labels[item] for item in sorted(labels)]


def _effort(state: PropagationState) -> Effort:
    verdicts = [verdict for graph in state.labelled_graphs() for verdict in graph.verdicts]
    counts = Counter(verdict.how if verdict else "open" for verdict in verdicts)
    items = len(state.ids)
    return Effort(
        items=items,
        collapsed=items - len(verdicts),
        reference=counts["reference"],
        propagated=counts["propagated"],
        asked=counts["asked"],
        open=counts["open"],
    )


def _draw(state: PropagationState, history: AnnotatorHistory, rng: np.random.Generator) -> tuple[int, int] | None:
    """Draw a graph with a question for this annotator, uniformly; return the item and the number of such graphs."""
    graphs = state.open_graphs
    seen_graphs = {state.graph_of(item) for item in history.items.rows[:, 0].tolist()}
    exhausted = {
        graph for graph in seen_graphs if state.is_open(graph) and state.next_item(graph, history.items) is None
    }
    eligible = len(graphs) - len(exhausted)
    if eligible == 0:
        return None
    if eligible * 10 < len(graphs):
        graphs = [graph for graph in graphs if graph not in exhausted]
    while True:
        item = state.next_item(graphs[int(rng.integers(len(graphs)))], history.items)
        if item is not None:
            return item, eligible
