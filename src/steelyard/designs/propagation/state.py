"""State of the propagation design: the adequacy of each item, asked or inferred from earlier comparisons."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from steelyard.designs.dominance_graph import DominanceOrder, Pair, dominance_order
from steelyard.designs.item_sources import ItemSources, normalized_text
from steelyard.designs.progress import ShownSets
from steelyard.designs.state import AnswerNotice, DesignState
from steelyard.observations import Comparison, Label, Observation, Rating
from steelyard.records import Item

How: TypeAlias = Literal["asked", "identical", "tied", "reference", "propagated"]


class AdequacyLabel(NamedTuple):
    """The label of an item, how it was obtained, and through which item.

    `how` is "asked" for an answer about the item itself. All other labels are inferred: from an item with the same
    text ("identical"), from one that annotators called equal ("tied"), because the item is a reference or dominates or
    ties with one ("reference"), or because an inadequate item dominates it ("propagated"). `through` is the item that
    the label comes from.
    """

    item: str
    adequate: bool
    how: How
    through: str

    @property
    def is_inferred(self) -> bool:
        """Whether the label was inferred, not asked."""
        return self.how != "asked"


class Effort(NamedTuple):
    """How many questions were saved (Table 2 of Pighin et al. 2012); all counts except `items` are of vertices.

    `collapsed` counts the items that are identical to or tied with another item; `open` the vertices without a label.
    Items on a cycle contradict each other and are vertices of their own here, each with its own question.
    """

    items: int
    collapsed: int
    reference: int
    propagated: int
    asked: int
    open: int

    @property
    def vertices(self) -> int:
        """Number of vertices after collapsing."""
        return self.items - self.collapsed

    @property
    def automatic(self) -> int:
        """Number of vertices labelled without a question."""
        return self.reference + self.propagated

    @property
    def collapsed_share(self) -> float:
        """Fraction of items that collapsed."""
        return self.collapsed / self.items

    @property
    def automatic_share(self) -> float:
        """Fraction of vertices labelled without a question."""
        return self.automatic / self.vertices

    @property
    def reduction(self) -> float:
        """Fraction of items without a question of their own."""
        return 1 - self.asked / self.items


class Verdict(NamedTuple):
    """The label of a vertex, and the item it comes from."""

    adequate: bool
    how: Literal["asked", "reference", "propagated"]
    through: int


@dataclass(frozen=True, slots=True)
class LabelledGraph:
    """The vertices of a graph with their labels. A vertex is a set of items that are identical or tied.

    `ready` lists the unlabelled vertices that no unlabelled vertex dominates, in the order to ask them: by δ, the
    number of vertices they dominate. As δ falls along every edge, asking them in parallel saves as many questions as
    asking them one by one. `n_unlabelled` counts the unlabelled vertices, without those of which all items were set
    aside.
    """

    items: list[list[int]]
    verdicts: list[Verdict | None]
    ready: list[int]
    n_unlabelled: int


class PropagationState(DesignState):
    """Items as vertices of dominance graphs, with the answers about them.

    Comparisons of every stage are used; the majority counts if a pair has several. Graphs that no comparison connects
    are separate, and a graph is evaluated again only after a change.
    """

    def __init__(self, judgments: int, *, references: bool, is_inadequate: Callable[[Observation], bool]) -> None:
        self.judgments = judgments
        self.references = references
        self.is_inadequate = is_inadequate
        self.ids: list[str] = []
        self.is_reference: list[bool] = []
        self.last_item: dict[str, int] = {}
        """The item each annotator was shown last."""
        self.assignments: Counter[int] = Counter()
        self.unjudged: Counter[int] = Counter()
        """Answers that an item cannot be judged: they take no place."""
        self.set_aside: set[int] = set()
        self.answers: defaultdict[int, dict[str, bool]] = defaultdict(dict)
        self.open_graphs: list[int] = []
        """Graphs with a vertex to ask, ascending, so that a draw from them depends only on the state."""
        self.n_unlabelled = 0
        self._code: dict[str, int] = {}
        self._sources = ItemSources()
        self._graph_of: list[int] = []
        self._members: dict[int, list[int]] = {}
        self._outcomes: defaultdict[int, dict[Pair, tuple[int, int]]] = defaultdict(dict)
        self._orders: dict[int, DominanceOrder] = {}
        self._evaluations: dict[int, LabelledGraph] = {}
        self._changed: set[int] = set()

    def add_items(self, items: Sequence[Item]) -> None:
        """Add new items, each as a new graph, or in the graph of an identical item."""
        self._sources.add(items)
        for item in items:
            code = len(self.ids)
            self.ids.append(item.id)
            self._code[item.id] = code
            self.is_reference.append(
                item.reference is not None and normalized_text(item.reference) == normalized_text(item.text)
            )
            self._graph_of.append(code)
            self._members[code] = [code]
            self._changed.add(code)
            self._join(code, self._sources.vertex[code])

    def on_item_set_aside(self, item: int) -> None:
        """Ask no more about an item; items below it are asked without its label."""
        self.set_aside.add(item)
        self._changed.add(self._graph_of[item])

    def on_item_restored(self, item: int) -> None:
        """Ask about an item again."""
        self.set_aside.discard(item)
        self._changed.add(self._graph_of[item])

    def on_leased(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Count the lease of an item."""
        for item in items:
            self.assignments[item] += 1
            self._changed.add(self._graph_of[item])
            self.last_item[annotator] = item

    def on_released(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Take back the lease of an item."""
        for item in items:
            self.assignments[item] -= 1
            self._changed.add(self._graph_of[item])

    def on_answer(self, answer: AnswerNotice) -> None:
        """Record a comparison, or the adequacy of an item."""
        self._count_unjudged(answer, 1)
        for observation in answer.observations:
            if isinstance(observation, Comparison):
                self._compare(observation, 1)
            elif answer.own_stage and isinstance(observation, Label | Rating):
                self.answers[self._code[observation.item]][answer.judgment_id] = self.is_inadequate(observation)
                self._changed.add(self._graph_of[self._code[observation.item]])

    def on_retract(self, answer: AnswerNotice) -> None:
        """Remove the comparison or adequacy of an answer."""
        self._count_unjudged(answer, -1)
        for observation in answer.observations:
            if isinstance(observation, Comparison):
                self._compare(observation, -1)
            elif answer.own_stage and isinstance(observation, Label | Rating):
                self.answers[self._code[observation.item]].pop(answer.judgment_id, None)
                self._changed.add(self._graph_of[self._code[observation.item]])

    def _count_unjudged(self, answer: AnswerNotice, times: int) -> None:
        if answer.own_stage and not answer.observations:
            for item in answer.items:
                self.unjudged[item] += times
                self._changed.add(self._graph_of[item])

    def _compare(self, comparison: Comparison, times: int) -> None:
        left, right = (self._sources.vertex[self._code[name]] for name in (comparison.left, comparison.right))
        if left == right:
            return
        self._join(left, right)
        graph = self._graph_of[left]
        pair = (min(left, right), max(left, right))
        total, count = self._outcomes[graph].pop(pair, (0, 0))
        if count + times:
            outcome = comparison.outcome if left < right else -comparison.outcome
            self._outcomes[graph][pair] = (total + times * outcome, count + times)
        self._orders.pop(graph, None)
        self._changed.add(graph)

    def _join(self, one: int, other: int) -> None:
        """Merge the graphs of two items under the lower number."""
        merged_graph, removed_graph = sorted((self._graph_of[one], self._graph_of[other]))
        if merged_graph == removed_graph:
            return
        for item in self._members[removed_graph]:
            self._graph_of[item] = merged_graph
        self._members[merged_graph] += self._members.pop(removed_graph)
        self._outcomes[merged_graph].update(self._outcomes.pop(removed_graph, {}))
        for graph in (merged_graph, removed_graph):
            self._orders.pop(graph, None)
        self._discard_labels(removed_graph)
        self._changed.discard(removed_graph)
        self._changed.add(merged_graph)

    def _discard_labels(self, graph: int) -> None:
        evaluation = self._evaluations.pop(graph, None)
        if evaluation is not None:
            self.n_unlabelled -= evaluation.n_unlabelled
        if self.is_open(graph):
            del self.open_graphs[bisect_left(self.open_graphs, graph)]

    def is_open(self, graph: int) -> bool:
        """Whether a graph has a vertex to ask."""
        place = bisect_left(self.open_graphs, graph)
        return place < len(self.open_graphs) and self.open_graphs[place] == graph

    def refresh(self) -> None:
        """Evaluate the graphs that have changed."""
        for graph in self._changed:
            self._discard_labels(graph)
            evaluation = self._evaluations[graph] = self._evaluate(graph)
            self.n_unlabelled += evaluation.n_unlabelled
            if any(self.has_free_place(evaluation, vertex) for vertex in evaluation.ready):
                insort(self.open_graphs, graph)
        self._changed.clear()

    def labelled_graphs(self) -> list[LabelledGraph]:
        """Return all graphs, ordered by their lowest item."""
        self.refresh()
        return [self._evaluations[graph] for graph in sorted(self._evaluations)]

    def graph_of(self, item: int) -> int:
        """Return the graph of an item."""
        return self._graph_of[item]

    def has_free_place(self, evaluation: LabelledGraph, vertex: int) -> bool:
        """Whether a vertex has fewer leases and answers than it needs."""
        return sum(self.assignments[item] - self.unjudged[item] for item in evaluation.items[vertex]) < self.judgments

    def next_item(self, graph: int, seen_sets: ShownSets) -> int | None:
        """Return the next item of a graph to ask an annotator who was shown these items."""
        evaluation = self._evaluations[graph]
        for vertex in evaluation.ready:
            items = evaluation.items[vertex]
            if self.has_free_place(evaluation, vertex) and not any((item,) in seen_sets for item in items):
                return next(item for item in items if item not in self.set_aside)
        return None

    def _evaluate(self, graph: int) -> LabelledGraph:
        order = self._orders.get(graph)
        members = self._members[graph]
        if order is None:
            vertices = [item for item in members if self._sources.vertex[item] == item]
            outcomes = {pair: total for pair, (total, _) in self._outcomes.get(graph, {}).items()}
            order = self._orders[graph] = dominance_order(sorted(vertices), outcomes)
        tied = _tied_items(order, self._outcomes.get(graph, {}))
        units = _Units(
            order,
            [component for component, classes in enumerate(tied) for _ in classes],
            [
                sorted(item for item in members if self._sources.vertex[item] in vertex_items)
                for classes in tied
                for vertex_items in classes
            ],
        )
        verdicts = self._verdicts(units)
        is_done = [
            verdict is not None or self.set_aside.issuperset(items)
            for verdict, items in zip(verdicts, units.items, strict=True)
        ]
        is_component_done = [True] * len(order.members)
        for component, is_vertex_done in zip(units.component, is_done, strict=True):
            is_component_done[component] &= is_vertex_done
        ready = [
            vertex
            for vertex, is_vertex_done in enumerate(is_done)
            if not is_vertex_done and all(is_component_done[other] for other in order.above[units.component[vertex]])
        ]
        ready.sort(key=lambda vertex: (-order.dominates[units.component[vertex]], units.items[vertex][0]))
        return LabelledGraph(units.items, verdicts, ready, is_done.count(False))

    def _verdicts(self, units: _Units) -> list[Verdict | None]:
        """Label vertices by answers, by the reference, or by a dominating vertex (§3.2), in this order."""
        order = units.order
        verdicts: list[Verdict | None] = [self._asked_verdict(vertex_items) for vertex_items in units.items]
        if self.references:
            for vertex, vertex_items in enumerate(units.items):
                reference = next((item for item in vertex_items if self.is_reference[item]), None)
                if reference is not None:
                    units.propagate(order.above, vertex, Verdict(True, "reference", reference), verdicts)
        for vertex in sorted(range(len(units.items)), key=lambda vertex: -order.dominates[units.component[vertex]]):
            verdict = verdicts[vertex]
            if verdict is not None and verdict.how == "asked" and not verdict.adequate:
                units.propagate(order.below, vertex, Verdict(False, "propagated", verdict.through), verdicts)
        return verdicts

    def label(self, item: int, verdict: Verdict) -> AdequacyLabel:
        """Return the label of an item from that of its vertex."""
        how: How = verdict.how
        through = verdict.through
        if how == "asked":
            if self.answers.get(item):
                through = item
            else:
                is_identical = self._sources.vertex[item] == self._sources.vertex[through]
                how = "identical" if is_identical else "tied"
        return AdequacyLabel(self.ids[item], verdict.adequate, how, self.ids[through])

    def _asked_verdict(self, vertex_items: list[int]) -> Verdict | None:
        """Return the verdict of the annotators once there are enough answers; inadequate needs a majority."""
        answers = [no for item in vertex_items for no in self.answers.get(item, {}).values()]
        if len(answers) < self.judgments:
            return None
        source = next(item for item in vertex_items if self.answers.get(item))
        return Verdict(2 * sum(answers) <= len(answers), "asked", source)


class _Units(NamedTuple):
    """The vertices that are asked: the tied or identical items of each component of a dominance graph.

    A component has several vertices if its items are on a cycle. `component` and `items` are by vertex.
    """

    order: DominanceOrder
    component: list[int]
    items: list[list[int]]

    def propagate(self, edges: list[list[int]], start: int, verdict: Verdict, verdicts: list[Verdict | None]) -> None:
        """Give a verdict to the vertex `start` and to all unlabelled ones of components reachable from its own."""
        reached, stack = set(), [self.component[start]]
        while stack:
            for other in edges[stack.pop()]:
                if other not in reached:
                    reached.add(other)
                    stack.append(other)
        for vertex, component in enumerate(self.component):
            if verdicts[vertex] is None and (vertex == start or component in reached):
                verdicts[vertex] = verdict


def _tied_items(order: DominanceOrder, outcomes: Mapping[Pair, tuple[int, int]]) -> list[list[list[int]]]:
    """Return for each component of the graph its items in sets that ties connect, in order of their lowest item."""
    tied: list[list[list[int]]] = []
    for members in order.members:
        parent = {item: item for item in members}

        def root(item: int, parent: dict[int, int] = parent) -> int:
            while parent[item] != item:
                item = parent[item]
            return item

        if len(members) > 1:
            for (one, other), (total, _) in outcomes.items():
                if total == 0 and one in parent and other in parent:
                    low, high = sorted((root(one), root(other)))
                    parent[high] = low
        classes: dict[int, list[int]] = {}
        for item in members:
            classes.setdefault(root(item), []).append(item)
        tied.append(list(classes.values()))
    return tied
