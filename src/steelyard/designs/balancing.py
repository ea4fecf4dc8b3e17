"""Tuples that show every item equally often, with pairs that recur as little as possible."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import ceil, comb

import numpy as np
from numpy.typing import NDArray

from steelyard.observations import UNKNOWN, IntArray

_DENSE = 10
"""Where more than one in this many of all possible tuples is wanted, they are drawn from the list of all."""
_ATTEMPTS = 100
"""Exchanges tried for each place of a tuple that has a pair too many, between two looks at what is left."""
_WORK = 2_000_000
"""Most comparisons of items between two looks: some 15,000 exchanges of 4-tuples with each item in eight."""
_HEATS = (0.0, 0.0, *np.geomspace(1.5, 0.25, 18), 0.0)
"""Cold first: among many items a few exchanges do. Then hot and cooling slowly, for those hard to fit."""
_ORDERED = 1_000
"""Up to this many tuples are put in order one by one; with more, hardly any was moved from its permutation."""


def plan_tuples(
    n_items: int, wanted: int, size: int, existing: Sequence[tuple[int, ...]], rng: np.random.Generator
) -> IntArray:
    """Return the tuples that are lacking, in the order to ask them, one a row.

    With `wanted` tuples in all, each item is to be in the same number of them, or one more. The first plan
    (nothing `existing`) has just so many; a later one as many as the items that were shown too little need, the
    places left over filled with items shown least. Newcomers alone would be an island: there is always room
    for others among them.
    """
    if not existing:
        if wanted * _DENSE > comb(n_items, size):
            rows = _from_all(n_items, wanted, size, rng)
        else:
            each, over = divmod(wanted * size, n_items)
            need = np.full(n_items, each)
            need[rng.permutation(n_items)[:over]] += 1
            rows = _improved(_arranged(need, wanted, size, rng), existing, n_items, rng)
        return _in_even_order(rows, n_items)
    planned = np.bincount(np.fromiter((i for row in existing for i in row), np.int64), minlength=n_items)
    need = np.maximum(wanted * size // n_items - planned, 0)
    count = _later_count(planned, need, size)
    if not count:
        return np.empty((0, size), np.int32)
    need = _filled_up(planned, need, count, size, rng)
    return _distinct(_improved(_arranged(need, count, size, rng), existing, n_items, rng), existing)


def later_tuples(n_items: int, wanted: int, size: int, existing: Sequence[tuple[int, ...]]) -> int:
    """Return how many tuples a later plan would have."""
    planned = np.bincount(np.fromiter((i for row in existing for i in row), np.int64), minlength=n_items)
    return _later_count(planned, np.maximum(wanted * size // n_items - planned, 0), size)


def _later_count(planned: NDArray[np.int64], need: NDArray[np.int64], size: int) -> int:
    places = int(need.sum())
    # An item is in a tuple once, so one that lacks seven needs seven tuples, however few others lack any.
    count = max(ceil(places / size), int(need.max()))
    only_newcomers = places == count * size and not planned[need > 0].any()
    return count + (places > 0 and only_newcomers)


def _filled_up(
    planned: NDArray[np.int64], need: NDArray[np.int64], count: int, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Give the places that are left over to the items shown least, none in more tuples than there are."""
    need = need.copy()
    while (left := count * size - int(need.sum())) > 0:
        free = np.flatnonzero(need < count)
        order = np.lexsort((rng.random(len(free)), need[free] > 0, (planned + need)[free]))
        need[free[order[:left]]] += 1
    return need


def _arranged(need: NDArray[np.int64], count: int, size: int, rng: np.random.Generator) -> IntArray:
    """Return `count` tuples with item i in need[i] of them, no item twice in one.

    Where it can be done they are cut from permutations of the items, so that every stretch of them is even.
    """
    passes = [rng.permutation(np.flatnonzero(need > times)) for times in range(int(need.max()))]
    if min(map(len, passes)) < 2 * size:
        # Deal the copies of each item in turn: they come into different tuples, as there are no more than tuples.
        items = rng.permutation(len(need))
        dealt = np.repeat(items, need[items]).reshape(size, count).T
        return np.ascontiguousarray(rng.permutation(dealt), np.int32)
    flat = passes[0]
    for following in passes[1:]:
        begun = flat[len(flat) - len(flat) % size :]
        open_places = -len(flat) % size
        free = np.flatnonzero(~np.isin(following, begun))
        ahead = free[:open_places]
        rest = np.setdiff1d(np.arange(len(following)), ahead)
        flat = np.concatenate([flat, following[ahead], following[rest]])
    return flat.reshape(count, size).astype(np.int32)


def _from_all(n_items: int, wanted: int, size: int, rng: np.random.Generator) -> IntArray:
    """Draw distinct tuples from the list of all, and even them out.

    What is left of all tuples when evenly many are taken away is even too, so at most half of them are looked for.
    """
    every = list(combinations(range(n_items), size))
    sought = min(wanted, len(every) - wanted)
    if not sought:
        return rng.permutation(np.array(every, np.int32))
    chosen = {every[place] for place in rng.choice(len(every), sought, replace=False)}
    rows = _evened(np.array(sorted(chosen), np.int32), n_items, rng)
    rows = np.sort(_improved(rows, (), n_items, rng), axis=1)
    if sought < wanted:
        left_out = set(map(tuple, rows.tolist()))
        rows = np.array([row for row in every if row not in left_out], np.int32)
    return rng.permutation(rows)


def _evened(rows: IntArray, n_items: int, rng: np.random.Generator) -> IntArray:
    """Exchange the item shown most for the one shown least until they differ by no more than one.

    There is always a way: more tuples hold the first without the second than the other way round.
    """
    there = {tuple(row) for row in rows.tolist()}
    shown = np.bincount(rows.ravel(), minlength=n_items)
    while shown.max() - shown.min() > 1:
        most = int(rng.choice(np.flatnonzero(shown == shown.max())))
        least = int(rng.choice(np.flatnonzero(shown == shown.min())))
        for old in sorted(there):
            new = tuple(sorted({*old, least} - {most}))
            if most in old and least not in old and new not in there:
                there ^= {old, new}
                break
        shown[most] -= 1
        shown[least] += 1
    return np.array(sorted(there), np.int32)


def _improved(rows: IntArray, existing: Sequence[tuple[int, ...]], n_items: int, rng: np.random.Generator) -> IntArray:
    """Exchange items between tuples until no pair recurs while others never met, or as few as a short search finds."""
    from steelyard.designs.balancing_kernels import crowded_rows, exchange

    first, size = len(existing), rows.shape[1]
    width = max([size, *map(len, existing)])
    tuples = np.full((first + len(rows), width), UNKNOWN, np.int32)
    for place, row in enumerate(existing):
        tuples[place, : len(row)] = row
    tuples[first:, :size] = rows
    item, row_of = _members(tuples)
    order = np.lexsort((row_of, item))
    start = np.searchsorted(item[order], np.arange(n_items + 1))
    holds = row_of[order].astype(np.int32)
    spare = _pair_cost(tuples) - _least_cost(tuples, n_items)
    most = _WORK * n_items // (len(item) * size * width)
    for heat in _HEATS:
        crowded = crowded_rows(tuples, first, start, holds)
        if not len(crowded) or spare <= 0 or (heat and _no_pair_is_left_out(tuples, n_items)):
            break
        attempts = min(_ATTEMPTS * size * len(crowded), most)
        spare += exchange(tuples, first, size, start, holds, crowded, heat, rng.random((attempts, 5)))
    return tuples[first:, :size]


def _members(tuples: IntArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    row, column = np.nonzero(tuples != UNKNOWN)
    return tuples[row, column].astype(np.int64), row


def _pairs(tuples: IntArray) -> NDArray[np.int64]:
    """Return a number for every pair of every tuple."""
    base = int(tuples.max(initial=0)) + 1
    found = []
    for i, j in combinations(range(tuples.shape[1]), 2):
        a, b = tuples[:, i].astype(np.int64), tuples[:, j].astype(np.int64)
        both = (a != UNKNOWN) & (b != UNKNOWN)
        found.append(np.minimum(a, b)[both] * base + np.maximum(a, b)[both])
    return np.concatenate(found)


def _pair_cost(tuples: IntArray) -> int:
    return int((np.unique(_pairs(tuples), return_counts=True)[1] ** 2).sum())


def _no_pair_is_left_out(tuples: IntArray, n_items: int) -> bool:
    return len(np.unique(_pairs(tuples))) == comb(n_items, 2)


def _least_cost(tuples: IntArray, n_items: int) -> int:
    """Return Σ (times together)² if the pairs were spread evenly over all there are."""
    each, over = divmod(len(_pairs(tuples)), comb(n_items, 2))
    return over * (each + 1) ** 2 + (comb(n_items, 2) - over) * each**2


def repeated_pairs(tuples: IntArray, n_items: int) -> tuple[float, float]:
    """Return the share of pairs that were together before, and the least that share could be."""
    pairs = _pairs(tuples)
    return 1 - len(np.unique(pairs)) / len(pairs), max(0.0, 1 - comb(n_items, 2) / len(pairs))


def _distinct(rows: IntArray, existing: Sequence[tuple[int, ...]]) -> IntArray:
    """Leave out tuples that are there already, in case the search could not part with them."""
    there = {tuple(sorted(row)) for row in existing}
    kept = []
    for row in np.sort(rows, axis=1).tolist():
        if tuple(row) not in there:
            there.add(tuple(row))
            kept.append(row)
    return np.array(kept, np.int32).reshape(-1, rows.shape[1])


def _in_even_order(rows: IntArray, n_items: int) -> IntArray:
    """Put few tuples in an order in which every stretch shows the items about equally often."""
    if len(rows) > _ORDERED:
        return rows
    shown = np.zeros(n_items, np.int64)
    left = list(range(len(rows)))
    order = []
    while left:
        counts = shown[rows[left]]
        place = int(np.lexsort((counts.max(axis=1), counts.sum(axis=1)))[0])
        order.append(left.pop(place))
        shown[rows[order[-1]]] += 1
    return rows[order]
