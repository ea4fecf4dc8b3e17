"""Construction of tuples that show every item equally often, with pairs that recur as little as possible."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import ceil, comb

import numpy as np
from numpy.typing import NDArray

from steelyard.observations import UNKNOWN, IntArray

_DENSE = 10
"""If more than one in this many of all possible tuples is needed, they are drawn from the list of all tuples."""
_ATTEMPTS_PER_PLACE = 100
"""Exchanges tried at each temperature for each place of a tuple with a repeated pair."""
_MAX_ITEM_COMPARISONS = 2_000_000
"""Limit on the work at each temperature: some 15,000 exchanges of 4-tuples with each item in eight."""
_TEMPERATURES = (0.0, 0.0, *np.geomspace(1.5, 0.25, 18), 0.0)
"""Zero first: with many items a few exchanges suffice. Then annealing, for tuples that are hard to improve."""
_MAX_ORDERED_TUPLES = 1_000
"""Up to this many tuples are ordered one by one; with more, exchanges hardly disturb the even order."""


def plan_tuples(
    n_items: int, total: int, size: int, existing: Sequence[tuple[int, ...]], rng: np.random.Generator
) -> IntArray:
    """Return the missing tuples in the order to ask them, one per row.

    With `total` tuples in all, every item is in the same number of them, or in one more. The first plan (without
    `existing` tuples) has exactly `total`; a later plan has as many as the items that occur too rarely need, and its
    remaining places go to the items that occur least. New items never form tuples only among themselves, which would
    leave them unconnected to the others.
    """
    if not existing:
        if total * _DENSE > comb(n_items, size):
            rows = _sample_of_all(n_items, total, size, rng)
        else:
            per_item, remainder = divmod(total * size, n_items)
            need = np.full(n_items, per_item)
            need[rng.permutation(n_items)[:remainder]] += 1
            rows = _reduce_repeated_pairs(_arrange(need, total, size, rng), existing, n_items, rng)
        return _order_evenly(rows, n_items)
    occurrences = np.bincount(np.fromiter((i for row in existing for i in row), np.int64), minlength=n_items)
    need = np.maximum(total * size // n_items - occurrences, 0)
    count = _additional_count(occurrences, need, size)
    if not count:
        return np.empty((0, size), np.int32)
    need = _fill_places(occurrences, need, count, size, rng)
    rows = _reduce_repeated_pairs(_arrange(need, count, size, rng), existing, n_items, rng)
    return _without_duplicates(rows, existing)


def count_additional_tuples(n_items: int, total: int, size: int, existing: Sequence[tuple[int, ...]]) -> int:
    """Return how many tuples a later plan would have."""
    occurrences = np.bincount(np.fromiter((i for row in existing for i in row), np.int64), minlength=n_items)
    return _additional_count(occurrences, np.maximum(total * size // n_items - occurrences, 0), size)


def _additional_count(occurrences: NDArray[np.int64], need: NDArray[np.int64], size: int) -> int:
    places = int(need.sum())
    # An item occurs once per tuple, so one that needs seven occurrences needs seven tuples.
    count = max(ceil(places / size), int(need.max()))
    only_new_items = places == count * size and not occurrences[need > 0].any()
    return count + (places > 0 and only_new_items)


def _fill_places(
    occurrences: NDArray[np.int64], need: NDArray[np.int64], count: int, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Give the remaining places to the items that occur least, none in more than `count` tuples."""
    need = need.copy()
    while (remaining := count * size - int(need.sum())) > 0:
        free = np.flatnonzero(need < count)
        order = np.lexsort((rng.random(len(free)), need[free] > 0, (occurrences + need)[free]))
        need[free[order[:remaining]]] += 1
    return need


def _arrange(need: NDArray[np.int64], count: int, size: int, rng: np.random.Generator) -> IntArray:
    """Return `count` tuples with item i in need[i] of them, no item twice in one tuple.

    Where possible they are cut from permutations of the items, so that every consecutive part of them is balanced.
    """
    passes = [rng.permutation(np.flatnonzero(need > times)) for times in range(int(need.max()))]
    if min(map(len, passes)) < 2 * size:
        # Deal the copies of each item one by one: no item has more copies than there are tuples, so they differ.
        items = rng.permutation(len(need))
        tuples = np.repeat(items, need[items]).reshape(size, count).T
        return np.ascontiguousarray(rng.permutation(tuples), np.int32)
    flat = passes[0]
    for permutation in passes[1:]:
        incomplete = flat[len(flat) - len(flat) % size :]
        open_places = -len(flat) % size
        free = np.flatnonzero(~np.isin(permutation, incomplete))
        leading = free[:open_places]
        trailing = np.setdiff1d(np.arange(len(permutation)), leading)
        flat = np.concatenate([flat, permutation[leading], permutation[trailing]])
    return flat.reshape(count, size).astype(np.int32)


def _sample_of_all(n_items: int, total: int, size: int, rng: np.random.Generator) -> IntArray:
    """Draw distinct tuples from the list of all, and balance them.

    The complement of a balanced set of tuples is balanced too, so at most half of all tuples are searched for.
    """
    every = list(combinations(range(n_items), size))
    count = min(total, len(every) - total)
    if not count:
        return rng.permutation(np.array(every, np.int32))
    sample = {every[place] for place in rng.choice(len(every), count, replace=False)}
    rows = _balance(np.array(sorted(sample), np.int32), n_items, rng)
    rows = np.sort(_reduce_repeated_pairs(rows, (), n_items, rng), axis=1)
    if count < total:
        complement = set(map(tuple, rows.tolist()))
        rows = np.array([row for row in every if row not in complement], np.int32)
    return rng.permutation(rows)


def _balance(rows: IntArray, n_items: int, rng: np.random.Generator) -> IntArray:
    """Replace the most frequent item by the least frequent one until their counts differ by at most one.

    This is always possible: more tuples contain the first without the second than the other way round.
    """
    tuples = {tuple(row) for row in rows.tolist()}
    counts = np.bincount(rows.ravel(), minlength=n_items)
    while counts.max() - counts.min() > 1:
        most = int(rng.choice(np.flatnonzero(counts == counts.max())))
        least = int(rng.choice(np.flatnonzero(counts == counts.min())))
        for old in sorted(tuples):
            new = tuple(sorted({*old, least} - {most}))
            if most in old and least not in old and new not in tuples:
                tuples ^= {old, new}
                break
        counts[most] -= 1
        counts[least] += 1
    return np.array(sorted(tuples), np.int32)


def _reduce_repeated_pairs(
    rows: IntArray, existing: Sequence[tuple[int, ...]], n_items: int, rng: np.random.Generator
) -> IntArray:
    """Exchange items between tuples until no pair is repeated before all pairs occur, as far as a short search gets."""
    from steelyard.designs.balancing_kernels import TupleTable, exchange_items, rows_with_repeated_pairs

    first, size = len(existing), rows.shape[1]
    width = max([size, *map(len, existing)])
    tuples = np.full((first + len(rows), width), UNKNOWN, np.int32)
    for place, row in enumerate(existing):
        tuples[place, : len(row)] = row
    tuples[first:, :size] = rows
    item, row_of = _members(tuples)
    order = np.lexsort((row_of, item))
    start = np.searchsorted(item[order], np.arange(n_items + 1))
    table = TupleTable(tuples, start, row_of[order].astype(np.int32), first, size)
    excess_cost = _pair_cost(tuples) - _least_cost(tuples, n_items)
    max_attempts = _MAX_ITEM_COMPARISONS * n_items // (len(item) * size * width)
    for temperature in _TEMPERATURES:
        repeated = rows_with_repeated_pairs(table)
        if not len(repeated) or excess_cost <= 0 or (temperature and _has_all_pairs(tuples, n_items)):
            break
        attempts = min(_ATTEMPTS_PER_PLACE * size * len(repeated), max_attempts)
        excess_cost += exchange_items(table, repeated, temperature, rng.random((attempts, 5)))
    return tuples[first:, :size]


def _members(tuples: IntArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    row, column = np.nonzero(tuples != UNKNOWN)
    return tuples[row, column].astype(np.int64), row


def _pairs(tuples: IntArray) -> NDArray[np.int64]:
    """Return a key for every pair of every tuple."""
    base = int(tuples.max(initial=0)) + 1
    keys = []
    for i, j in combinations(range(tuples.shape[1]), 2):
        a, b = tuples[:, i].astype(np.int64), tuples[:, j].astype(np.int64)
        both = (a != UNKNOWN) & (b != UNKNOWN)
        keys.append(np.minimum(a, b)[both] * base + np.maximum(a, b)[both])
    return np.concatenate(keys)


def _pair_cost(tuples: IntArray) -> int:
    return int((np.unique(_pairs(tuples), return_counts=True)[1] ** 2).sum())


def _has_all_pairs(tuples: IntArray, n_items: int) -> bool:
    return len(np.unique(_pairs(tuples))) == comb(n_items, 2)


def _least_cost(tuples: IntArray, n_items: int) -> int:
    """Return Σ (times together)² if all possible pairs occurred equally often (±1)."""
    times, remainder = divmod(len(_pairs(tuples)), comb(n_items, 2))
    return remainder * (times + 1) ** 2 + (comb(n_items, 2) - remainder) * times**2


def repeated_pairs(tuples: IntArray, n_items: int) -> tuple[float, float]:
    """Return the fraction of pairs that repeat an earlier pair, and the smallest possible value of that fraction."""
    pairs = _pairs(tuples)
    return 1 - len(np.unique(pairs)) / len(pairs), max(0.0, 1 - comb(n_items, 2) / len(pairs))


def _without_duplicates(rows: IntArray, existing: Sequence[tuple[int, ...]]) -> IntArray:
    """Drop tuples that exist already, which the search could not always avoid."""
    known_tuples = {tuple(sorted(row)) for row in existing}
    distinct_rows = []
    for row in np.sort(rows, axis=1).tolist():
        if tuple(row) not in known_tuples:
            known_tuples.add(tuple(row))
            distinct_rows.append(row)
    return np.array(distinct_rows, np.int32).reshape(-1, rows.shape[1])


def _order_evenly(rows: IntArray, n_items: int) -> IntArray:
    """Order the tuples so that every consecutive part shows the items about equally often."""
    if len(rows) > _MAX_ORDERED_TUPLES:
        return rows
    counts = np.zeros(n_items, np.int64)
    remaining = list(range(len(rows)))
    order = []
    while remaining:
        row_counts = counts[rows[remaining]]
        place = int(np.lexsort((row_counts.max(axis=1), row_counts.sum(axis=1)))[0])
        order.append(remaining.pop(place))
        counts[rows[order[-1]]] += 1
    return rows[order]
