"""Compiled search for tuples in which pairs of items recur as little as possible."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.models.compiled import compiled
from steelyard.observations import FloatArray, IntArray


class TupleTable(NamedTuple):
    """Tuples as rows of item codes, short ones padded with -1, with an index of the rows of each item.

    `holders[start[i]:start[i + 1]]` are the rows that contain item i, so memory is linear in the number of tuples and
    no table of pairs is needed. Rows before `first` are fixed; the rows from `first` on have `size` items each.
    """

    tuples: IntArray
    start: NDArray[np.int64]
    holders: IntArray
    first: int
    size: int


class Exchange(NamedTuple):
    """Item `a` of row `row` is exchanged with item `b` of row `other`."""

    row: int
    other: int
    a: int
    b: int


@compiled
def _contains(row: IntArray, item: int) -> bool:
    result = False
    for member in row:
        result |= member == item
    return result


@compiled
def _count_together(a: int, b: int, table: TupleTable) -> int:
    """Count the rows that contain both items."""
    count = 0
    for place in range(table.start[a], table.start[a + 1]):
        if _contains(table.tuples[table.holders[place]], b):
            count += 1
    return count


@compiled
def _cost_change(exchange: Exchange, table: TupleTable) -> int:
    """Return the change of Σ (times together)² when b replaces a in `row`: half of an exchange.

    The pairs of a and b with items that are in both rows stay as they are.
    """
    change = 0
    for member in table.tuples[exchange.row]:
        if member >= 0 and member != exchange.a and not _contains(table.tuples[exchange.other], member):
            with_b = _count_together(exchange.b, member, table)
            with_a = _count_together(exchange.a, member, table)
            change += 2 * (with_b - with_a) + 2
    return change


@compiled
def _would_duplicate(exchange: Exchange, table: TupleTable) -> bool:
    """Tell whether `row` with b in place of a would equal another tuple."""
    size = 0
    for member in table.tuples[exchange.row]:
        size += member >= 0
    for place in range(table.start[exchange.b], table.start[exchange.b + 1]):
        candidate = table.holders[place]
        length, n_common = 0, 0
        for member in table.tuples[candidate]:
            length += member >= 0
            n_common += member >= 0 and member != exchange.a and _contains(table.tuples[exchange.row], member)
        # `other` is about to lose b, and `row` does not contain it yet.
        if candidate != exchange.other and length == size and n_common == size - 1:
            return True
    return False


@compiled
def _move_holder(item: int, source: int, destination: int, table: TupleTable) -> None:
    for place in range(table.start[item], table.start[item + 1]):
        if table.holders[place] == source:
            table.holders[place] = destination
            return


@compiled
def rows_with_repeated_pairs(table: TupleTable) -> IntArray:
    """Return the rows from `first` on that have a pair of items in common with another row."""
    tuples = table.tuples
    rows = np.empty(len(tuples) - table.first, np.int32)
    count = 0
    for row in range(table.first, len(tuples)):
        is_repeated = False
        for i in range(tuples.shape[1]):
            for j in range(i):
                a, b = tuples[row, i], tuples[row, j]
                if not is_repeated and a >= 0 and b >= 0:
                    is_repeated = _count_together(a, b, table) > 1
        if is_repeated:
            rows[count] = row
            count += 1
    return rows[:count]


@compiled
def exchange_items(table: TupleTable, rows: IntArray, temperature: float, draws: FloatArray) -> int:
    """Try to exchange items between a row of `rows` and any row from `first` on, once for each row of `draws`.

    Exchanges that lower Σ (times together)² are made; others with probability exp(-change / temperature) (Metropolis),
    at temperature 0 never. No item occurs twice in a tuple, and no tuple twice in the table. Returns the sum of all
    changes; `tuples` and `holders` are changed in place.
    """
    tuples, first, size = table.tuples, table.first, table.size
    total = 0
    for attempt in range(len(draws)):
        row = rows[int(draws[attempt, 0] * len(rows))]
        other = first + int(draws[attempt, 1] * (len(tuples) - first))
        i = int(draws[attempt, 2] * size)
        j = int(draws[attempt, 3] * size)
        a, b = tuples[row, i], tuples[other, j]
        if row == other or _contains(tuples[other], a) or _contains(tuples[row], b):
            continue
        forth, back = Exchange(row, other, a, b), Exchange(other, row, b, a)
        change = _cost_change(forth, table) + _cost_change(back, table)
        if change >= 0 and (temperature == 0 or draws[attempt, 4] >= np.exp(-change / temperature)):
            continue
        if _would_duplicate(forth, table) or _would_duplicate(back, table):
            continue
        tuples[row, i], tuples[other, j] = b, a
        _move_holder(a, row, other, table)
        _move_holder(b, other, row, table)
        total += change
    return total
