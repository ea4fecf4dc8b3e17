"""Compiled search for tuples in which pairs recur as little as possible.

Tuples are rows of item codes, short ones filled up with -1. `holds[start[i]:start[i + 1]]` are the rows that
hold item i, so that memory is linear in the tuples and no table of pairs is needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steelyard.models.compiled import compiled
from steelyard.observations import FloatArray, IntArray


@compiled
def _has(row: IntArray, item: int) -> bool:
    found = False
    for member in row:
        found |= member == item
    return found


@compiled
def _together(a: int, b: int, tuples: IntArray, start: NDArray[np.int64], holds: IntArray) -> int:
    """Count the rows that hold both items."""
    count = 0
    for place in range(start[a], start[a + 1]):
        if _has(tuples[holds[place]], b):
            count += 1
    return count


@compiled
def _change(row: int, other: int, a: int, b: int, tuples: IntArray, start: NDArray[np.int64], holds: IntArray) -> int:
    """Return by how much Σ (times together)² changes when b takes a's place in `row`: half of an exchange.

    Items that are in both rows change company with neither a nor b.
    """
    change = 0
    for member in tuples[row]:
        if member >= 0 and member != a and not _has(tuples[other], member):
            gained = _together(b, member, tuples, start, holds)
            lost = _together(a, member, tuples, start, holds)
            change += 2 * (gained - lost) + 2
    return change


@compiled
def _would_double(
    row: int, other: int, a: int, b: int, tuples: IntArray, start: NDArray[np.int64], holds: IntArray
) -> bool:
    """Whether `row` with b in a's place would be a tuple that is there already."""
    size = 0
    for member in tuples[row]:
        size += member >= 0
    for place in range(start[b], start[b + 1]):
        candidate = holds[place]
        length, shared = 0, 0
        for member in tuples[candidate]:
            length += member >= 0
            shared += member >= 0 and member != a and _has(tuples[row], member)
        # `other` is about to give b away, and `row` does not hold it yet.
        if candidate != other and length == size and shared == size - 1:
            return True
    return False


@compiled
def _moved(item: int, source: int, target: int, start: NDArray[np.int64], holds: IntArray) -> None:
    for place in range(start[item], start[item + 1]):
        if holds[place] == source:
            holds[place] = target
            return


@compiled
def crowded_rows(tuples: IntArray, first: int, start: NDArray[np.int64], holds: IntArray) -> IntArray:
    """Return the rows from `first` on in which some pair of items is together in another row too."""
    found = np.empty(len(tuples) - first, np.int32)
    count = 0
    for row in range(first, len(tuples)):
        crowded = False
        for i in range(tuples.shape[1]):
            for j in range(i):
                a, b = tuples[row, i], tuples[row, j]
                if not crowded and a >= 0 and b >= 0:
                    crowded = _together(a, b, tuples, start, holds) > 1
        if crowded:
            found[count] = row
            count += 1
    return found[:count]


@compiled
def exchange(
    tuples: IntArray,
    first: int,
    size: int,
    start: NDArray[np.int64],
    holds: IntArray,
    rows: IntArray,
    heat: float,
    draws: FloatArray,
) -> int:
    """Exchange items between a row of `rows` and any row from `first` on, one attempt for each row of draws.

    Rows from `first` on hold `size` items each. Exchanges that lower Σ (times together)² are made, others
    with probability exp(-change / heat) (Metropolis), at heat 0 none. An item never comes twice into a tuple,
    nor a tuple into the plan. Returns the sum of all changes; `tuples` and `holds` are changed in place.
    """
    total = 0
    for attempt in range(len(draws)):
        row = rows[int(draws[attempt, 0] * len(rows))]
        other = first + int(draws[attempt, 1] * (len(tuples) - first))
        i = int(draws[attempt, 2] * size)
        j = int(draws[attempt, 3] * size)
        a, b = tuples[row, i], tuples[other, j]
        if row == other or _has(tuples[other], a) or _has(tuples[row], b):
            continue
        change = _change(row, other, a, b, tuples, start, holds) + _change(other, row, b, a, tuples, start, holds)
        if change >= 0 and (heat == 0 or draws[attempt, 4] >= np.exp(-change / heat)):
            continue
        if _would_double(row, other, a, b, tuples, start, holds):
            continue
        if _would_double(other, row, b, a, tuples, start, holds):
            continue
        tuples[row, i], tuples[other, j] = b, a
        _moved(a, row, other, start, holds)
        _moved(b, other, row, start, holds)
        total += change
    return total
