"""Compiled reachability in many acyclic graphs at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steelyard.models.compiled import compiled

_BLOCK = 64  # words of 64 targets looked at in one sweep, so that memory stays linear in the vertices


@compiled
def _weight_of(word: np.uint64, weight: NDArray[np.int64], first: int) -> int:
    """Sum the weights of the targets whose bits are set; bit b stands for target `first` + b."""
    total = 0
    target = first
    while word != np.uint64(0):
        if word & np.uint64(1):
            total += weight[target]
        word >>= np.uint64(1)
        target += 1
    return total


@compiled
def _from_the_top(
    first: int,
    size: int,
    edge_start: NDArray[np.int64],
    target: NDArray[np.int64],
    incoming: NDArray[np.int64],
    order: NDArray[np.int64],
) -> None:
    """Fill `order` with the graph's vertices so that edges lead forwards; uses up `incoming`."""
    filled = 0
    for v in range(first, first + size):
        if incoming[v] == 0:
            order[filled] = v
            filled += 1
    for place in range(size):
        v = order[place]
        for edge in range(edge_start[v], edge_start[v + 1]):
            incoming[target[edge]] -= 1
            if incoming[target[edge]] == 0:
                order[filled] = target[edge]
                filled += 1


@compiled
def reachable_counts(
    graph_start: NDArray[np.int64],
    edge_start: NDArray[np.int64],
    target: NDArray[np.int64],
    weight: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the total weight of the vertices that can be reached from each one, not counting itself.

    Vertices `graph_start[g]` to `graph_start[g + 1]` are graph g, and the edges from vertex v lead to
    `target[edge_start[v]:edge_start[v + 1]]`, within its graph. There must be no cycles.
    """
    n = graph_start[-1]
    counts = np.zeros(n, np.int64)
    incoming = np.bincount(target, minlength=n)
    order = np.empty(n, np.int64)
    for graph in range(len(graph_start) - 1):
        first, size = graph_start[graph], graph_start[graph + 1] - graph_start[graph]
        _from_the_top(first, size, edge_start, target, incoming, order)
        words = (size + 63) // 64
        for block in range(0, words, _BLOCK):
            width = min(_BLOCK, words - block)
            reach = np.zeros((size, width), np.uint64)
            for place in range(size - 1, -1, -1):
                v = order[place]
                row = reach[v - first]
                for edge in range(edge_start[v], edge_start[v + 1]):
                    u = target[edge] - first
                    for word in range(width):
                        row[word] |= reach[u, word]
                    column = u // 64 - block
                    if 0 <= column < width:
                        row[column] |= np.uint64(1) << np.uint64(u % 64)
                for word in range(width):
                    counts[v] += _weight_of(row[word], weight, first + (block + word) * 64)
    return counts
