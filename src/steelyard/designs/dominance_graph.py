"""The dominance graph of compared items: ties collapsed, dominators counted (Pighin et al. 2012, §3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Pair: TypeAlias = tuple[int, int]
"""Two items, the lower code first."""

_BLOCK = 4096
"""Number of vertices whose dominators are counted in one sweep, which keeps memory linear in the vertices."""


@dataclass(frozen=True, slots=True)
class DominanceOrder:
    """Vertices, each one item or several that are tied or on a cycle, and the edges between them.

    Edges point from a vertex to vertices of lower number. `dominates` is δ, the number of vertices reachable from a
    vertex; `dominators` is φ, the number of vertices from which it can be reached.
    """

    members: list[list[int]]
    below: list[list[int]]
    above: list[list[int]]
    dominates: list[int]
    dominators: list[int]


def dominance_order(items: Sequence[int], outcomes: Mapping[Pair, int]) -> DominanceOrder:
    """Collapse ties and cycles, and count the vertices reachable from each vertex.

    An outcome is positive if the first item of the pair won, negative if the second won, and 0 for a tie. A tie is an
    edge in both directions, so tied items and items on a cycle both are strongly connected components.
    """
    beats: dict[int, list[int]] = {item: [] for item in items}
    for (one, other), outcome in outcomes.items():
        if outcome >= 0:
            beats[one].append(other)
        if outcome <= 0:
            beats[other].append(one)
    members = _components(beats)
    vertex = {item: number for number, component_items in enumerate(members) for item in component_items}
    below: list[list[int]] = [
        sorted({vertex[loser] for item in component_items for loser in beats[item]} - {number})
        for number, component_items in enumerate(members)
    ]
    above: list[list[int]] = [[] for _ in members]
    for number, losers in enumerate(below):
        for loser in losers:
            above[loser].append(number)
    upwards, downwards = range(len(members)), range(len(members) - 1, -1, -1)
    return DominanceOrder(members, below, above, _reach(below, upwards), _reach(above, downwards))


def _components(beats: Mapping[int, list[int]]) -> list[list[int]]:
    """Return the strongly connected components in reverse topological order (Tarjan 1972)."""
    components: list[list[int]] = []
    index: dict[int, int] = {}
    lowest: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    for root in beats:
        if root in index:
            continue
        calls = [(root, iter(beats[root]))]
        while calls:
            item, losers = calls[-1]
            if item not in index:
                index[item] = lowest[item] = len(index)
                path.append(item)
                on_path.add(item)
            for loser in losers:
                if loser not in index:
                    calls.append((loser, iter(beats[loser])))
                    break
                if loser in on_path:
                    lowest[item] = min(lowest[item], lowest[loser])
            else:
                calls.pop()
                if calls:
                    before = calls[-1][0]
                    lowest[before] = min(lowest[before], lowest[item])
                if lowest[item] == index[item]:
                    component: list[int] = []
                    while not component or component[-1] != item:
                        component.append(path.pop())
                    on_path.difference_update(component)
                    components.append(sorted(component))
    return components


def _reach(edges: Sequence[Sequence[int]], order: range) -> list[int]:
    """Count the vertices reachable from each vertex; `order` lists a vertex after all that it can reach."""
    counts = [0] * len(order)
    for first in range(0, len(order), _BLOCK):
        reached = [0] * len(order)
        for vertex in order:
            bits = 0
            for target in edges[vertex]:
                bits |= reached[target]
                if 0 <= target - first < _BLOCK:
                    bits |= 1 << (target - first)
            reached[vertex] = bits
            counts[vertex] += bits.bit_count()
    return counts
