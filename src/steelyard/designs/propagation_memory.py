"""What is known of each item's adequacy: asked, or inferred from the comparisons of an earlier stage."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from steelyard.designs.graph import DominanceOrder, Pair, dominance_order
from steelyard.designs.memory import Heard, Memory
from steelyard.designs.progress import Seen
from steelyard.designs.sources import Sources, wording
from steelyard.observations import Comparison, Label, Observation, Rating
from steelyard.records import Item

How: TypeAlias = Literal["asked", "reference", "propagated"]


class AdequacyLabel(NamedTuple):
    """What an item was found to be, how, and through which item.

    `through` is the item that was asked (the item itself, or one it is identical to or tied with), the
    reference, or the inadequate item that dominates it.
    """

    item: str
    adequate: bool
    how: How
    through: str


class Effort(NamedTuple):
    """How much asking was spared (Table 2 of Pighin et al. 2012); all but `items` count vertices.

    `collapsed` are the items that are identical to, tied with, or on a cycle with another; `open` are the
    vertices without a label yet.
    """

    items: int
    collapsed: int
    reference: int
    propagated: int
    asked: int
    open: int

    @property
    def vertices(self) -> int:
        """How many are left after collapsing."""
        return self.items - self.collapsed

    @property
    def automatic(self) -> int:
        """How many were labelled without asking."""
        return self.reference + self.propagated

    @property
    def collapsed_share(self) -> float:
        """The share of items that collapsed."""
        return self.collapsed / self.items

    @property
    def automatic_share(self) -> float:
        """The share of vertices labelled without asking."""
        return self.automatic / self.vertices

    @property
    def reduction(self) -> float:
        """The share of items that nobody was asked about."""
        return 1 - self.asked / self.items


class Verdict(NamedTuple):
    """A vertex's label, and the item it comes from."""

    adequate: bool
    how: How
    through: int


@dataclass(frozen=True, slots=True)
class Judged:
    """The vertices of a graph with their labels.

    `ready` are those without one that nothing unlabelled dominates, in the order to ask them: by δ, the number
    dominated. As δ falls along every edge, asking them at once spares as much as asking one after the other.
    """

    items: list[list[int]]
    verdicts: list[Verdict | None]
    ready: list[int]


class Adequacy(Memory):
    """Items as vertices of dominance graphs, with what people said of them.

    Comparisons are heard from every stage; with several of one pair, the majority counts. Graphs that no
    comparison connects are kept apart, and one is looked at again only when something about it has changed.
    """

    def __init__(self, judgments: int, *, references: bool, inadequate: Callable[[Observation], bool]) -> None:
        self.judgments = judgments
        self.references = references
        self.inadequate = inadequate
        self.ids: list[str] = []
        self.is_reference: list[bool] = []
        self.last_item: dict[str, int] = {}
        """The item each annotator was shown last."""
        self.asked: Counter[int] = Counter()
        self.answers: defaultdict[int, dict[str, bool]] = defaultdict(dict)
        self.open_graphs: list[int] = []
        """Graphs with a vertex to ask, ascending, so that a draw from them hangs on nothing but the state."""
        self.unlabelled = 0
        self._code: dict[str, int] = {}
        self._sources = Sources()
        self._graph_of: list[int] = []
        self._members: dict[int, list[int]] = {}
        self._outcomes: defaultdict[int, dict[Pair, tuple[int, int]]] = defaultdict(dict)
        self._orders: dict[int, DominanceOrder] = {}
        self._judged: dict[int, Judged] = {}
        self._changed: set[int] = set()

    def add_items(self, items: Sequence[Item]) -> None:
        """Take in new items, each a graph of its own, or one with the item it is identical to."""
        self._sources.add(items)
        for item in items:
            code = len(self.ids)
            self.ids.append(item.id)
            self._code[item.id] = code
            self.is_reference.append(item.reference is not None and wording(item.reference) == wording(item.text))
            self._graph_of.append(code)
            self._members[code] = [code]
            self._changed.add(code)
            self._join(code, self._sources.vertex[code])

    def picked(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Note that items are out."""
        for item in items:
            self.asked[item] += 1
            self._changed.add(self._graph_of[item])
            self.last_item[annotator] = item

    def released(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Note that items came back."""
        for item in items:
            self.asked[item] -= 1
            self._changed.add(self._graph_of[item])

    def heard(self, answer: Heard) -> None:
        """Take in a comparison, or what was said of an item."""
        for said in answer.observations:
            if isinstance(said, Comparison):
                self._compare(said, 1)
            elif answer.own and isinstance(said, Label | Rating):
                self.answers[self._code[said.item]][answer.judgment_id] = self.inadequate(said)
                self._changed.add(self._graph_of[self._code[said.item]])

    def unheard(self, answer: Heard) -> None:
        """Take back what an answer said."""
        for said in answer.observations:
            if isinstance(said, Comparison):
                self._compare(said, -1)
            elif answer.own and isinstance(said, Label | Rating):
                self.answers[self._code[said.item]].pop(answer.judgment_id, None)
                self._changed.add(self._graph_of[self._code[said.item]])

    def _compare(self, said: Comparison, times: int) -> None:
        left, right = (self._sources.vertex[self._code[name]] for name in (said.left, said.right))
        if left == right:
            return
        self._join(left, right)
        graph = self._graph_of[left]
        pair = (min(left, right), max(left, right))
        total, count = self._outcomes[graph].pop(pair, (0, 0))
        if count + times:
            outcome = said.outcome if left < right else -said.outcome
            self._outcomes[graph][pair] = (total + times * outcome, count + times)
        self._orders.pop(graph, None)
        self._changed.add(graph)

    def _join(self, one: int, other: int) -> None:
        """Make two items' graphs one, called by the lower number."""
        kept, gone = sorted((self._graph_of[one], self._graph_of[other]))
        if kept == gone:
            return
        for item in self._members[gone]:
            self._graph_of[item] = kept
        self._members[kept] += self._members.pop(gone)
        self._outcomes[kept].update(self._outcomes.pop(gone, {}))
        for graph in (kept, gone):
            self._orders.pop(graph, None)
        self._forget(gone)
        self._changed.discard(gone)
        self._changed.add(kept)

    def _forget(self, graph: int) -> None:
        judged = self._judged.pop(graph, None)
        if judged is not None:
            self.unlabelled -= judged.verdicts.count(None)
        if self.is_open(graph):
            del self.open_graphs[bisect_left(self.open_graphs, graph)]

    def is_open(self, graph: int) -> bool:
        """Whether a graph has a vertex to ask."""
        place = bisect_left(self.open_graphs, graph)
        return place < len(self.open_graphs) and self.open_graphs[place] == graph

    def refresh(self) -> None:
        """Look again at the graphs about which something has changed."""
        for graph in self._changed:
            self._forget(graph)
            judged = self._judged[graph] = self._judge(graph)
            self.unlabelled += judged.verdicts.count(None)
            if any(self.has_room(judged, vertex) for vertex in judged.ready):
                insort(self.open_graphs, graph)
        self._changed.clear()

    def judged(self) -> list[Judged]:
        """All graphs, by their lowest item."""
        self.refresh()
        return [self._judged[graph] for graph in sorted(self._judged)]

    def graph_of(self, item: int) -> int:
        """Return the graph an item is in."""
        return self._graph_of[item]

    def has_room(self, judged: Judged, vertex: int) -> bool:
        """Whether a vertex is with fewer annotators than it is to have."""
        return sum(self.asked[item] for item in judged.items[vertex]) < self.judgments

    def next_item(self, graph: int, seen: Seen) -> int | None:
        """Return the item of a graph to ask next somebody who has seen these."""
        judged = self._judged[graph]
        for vertex in judged.ready:
            items = judged.items[vertex]
            if self.has_room(judged, vertex) and not any((item,) in seen for item in items):
                return items[0]
        return None

    def _judge(self, graph: int) -> Judged:
        order = self._orders.get(graph)
        members = self._members[graph]
        if order is None:
            vertices = [item for item in members if self._sources.vertex[item] == item]
            outcomes = {pair: total for pair, (total, _) in self._outcomes.get(graph, {}).items()}
            order = self._orders[graph] = dominance_order(sorted(vertices), outcomes)
        vertex_of = {item: vertex for vertex, tied in enumerate(order.members) for item in tied}
        items: list[list[int]] = [[] for _ in order.members]
        for item in sorted(members):
            items[vertex_of[self._sources.vertex[item]]].append(item)
        verdicts = self._verdicts(order, items)
        ready = [
            vertex
            for vertex, verdict in enumerate(verdicts)
            if verdict is None and all(verdicts[other] is not None for other in order.above[vertex])
        ]
        ready.sort(key=lambda vertex: (-order.dominates[vertex], items[vertex][0]))
        return Judged(items, verdicts, ready)

    def _verdicts(self, order: DominanceOrder, items: list[list[int]]) -> list[Verdict | None]:
        """Label vertices as asked, by the reference, or by what dominates them (§3.2), in this order of precedence."""
        verdicts: list[Verdict | None] = [self._asked_verdict(tied) for tied in items]
        if self.references:
            for vertex, tied in enumerate(items):
                known = next((item for item in tied if self.is_reference[item]), None)
                if known is not None:
                    _spread(order.above, vertex, Verdict(True, "reference", known), verdicts)
        for vertex in sorted(range(len(items)), key=lambda vertex: -order.dominates[vertex]):
            verdict = verdicts[vertex]
            if verdict is not None and verdict.how == "asked" and not verdict.adequate:
                _spread(order.below, vertex, Verdict(False, "propagated", verdict.through), verdicts)
        return verdicts

    def _asked_verdict(self, tied: list[int]) -> Verdict | None:
        """Return what annotators said once enough of them have: inadequate only by a majority."""
        answers = [no for item in tied for no in self.answers.get(item, {}).values()]
        if len(answers) < self.judgments:
            return None
        asked = next(item for item in tied if self.answers.get(item))
        return Verdict(2 * sum(answers) <= len(answers), "asked", asked)


def _spread(leads_to: list[list[int]], start: int, verdict: Verdict, verdicts: list[Verdict | None]) -> None:
    """Give a verdict to all unlabelled vertices that can be reached, the first one included."""
    found, waiting = {start}, [start]
    while waiting:
        vertex = waiting.pop()
        if verdicts[vertex] is None:
            verdicts[vertex] = verdict
        for other in leads_to[vertex]:
            if other not in found:
                found.add(other)
                waiting.append(other)
