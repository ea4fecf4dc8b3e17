"""Brackets: the comparisons that connect the items of one source (§3.1 of Pighin et al. 2012)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import ceil

import numpy as np

from steelyard.designs.dominance_graph import Pair


def draw_bracket(groups: Sequence[Collection[int]], existing: Collection[Pair], rng: np.random.Generator) -> list[Pair]:
    """Draw the comparisons that connect groups of items, pass by pass.

    In each pass the groups merge in pairs, in random order; with an odd number, the last group merges with one that has
    merged already. For each merge a pair across the two groups is drawn that is not in `existing`; if there is none,
    the groups merge without a comparison.
    """
    remaining = [sorted(group) for group in groups]
    used_pairs = set(existing)
    bracket: list[Pair] = []
    while len(remaining) > 1:
        order = rng.permutation(len(remaining)).tolist()
        if len(order) % 2:
            order.append(order[int(rng.integers(len(order) - 1))])
        merged_groups = []
        for one, other in zip(order[::2], order[1::2], strict=True):
            pair = _draw_pair(remaining[one], remaining[other], used_pairs, rng)
            if pair is not None:
                used_pairs.add(pair)
                bracket.append(pair)
            merged_groups.append(sorted({*remaining[one], *remaining[other]}))
        remaining = merged_groups
    return bracket


def _draw_pair(one: list[int], other: list[int], used_pairs: set[Pair], rng: np.random.Generator) -> Pair | None:
    """Draw a new pair across two groups, all with equal probability."""
    for _ in range(20):
        a, b = one[int(rng.integers(len(one)))], other[int(rng.integers(len(other)))]
        if a != b and (min(a, b), max(a, b)) not in used_pairs:
            return min(a, b), max(a, b)
    new_pairs = sorted({(min(a, b), max(a, b)) for a in one for b in other if a != b} - used_pairs)
    return new_pairs[int(rng.integers(len(new_pairs)))] if new_pairs else None


def connected_groups(vertices: Sequence[int], pairs: Iterable[Pair]) -> list[list[int]]:
    """Return the vertices in groups that the pairs connect."""
    group_of = {vertex: [vertex] for vertex in vertices}
    for one, other in pairs:
        if group_of[one] is not group_of[other]:
            group_of[one] += group_of[other]
            for vertex in group_of[other]:
                group_of[vertex] = group_of[one]
    return list({id(group): group for group in group_of.values()}.values())


def first_pairs(vertices: Sequence[int], seed: Sequence[int]) -> list[Pair]:
    """Return the bracket of single items that a seed gives."""
    return draw_bracket([[vertex] for vertex in vertices], (), np.random.default_rng(list(seed)))


def comparisons_for(n: int) -> int:
    """Return the number of comparisons in a tournament of n distinct items: ⌈n/2⌉, then half of that, down to 1."""
    count = 0
    while n > 1:
        n = ceil(n / 2)
        count += n
    return count
