"""Compiled search for the tasks with the largest expected variance reduction, without looking at all pairs.

Every item has a mean, a variance v and a `weight`, the gain in the objective per unit of variance removed. Comparing
two items reduces the variance of each by v² · I in expectation, exactly so for one Gaussian update. I, the information
of the outcome about the difference, depends only on the distance of the means, the sum of the variances and the noise
of the annotator. The gain of a pair is therefore the sum of weight · v² over its two items (their `priority`), times I;
I is read from a table computed for the annotator.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.models.calibrated.online_kernels import outcome_likelihood
from steelyard.models.compiled import compiled
from steelyard.observations import FloatArray, IntArray

ANY, SAME, DIFFERENT = 0, 1, 2
"""Which labels the items of one task may have: any, all equal, or all different."""


class InformationTable(NamedTuple):
    """Expected information of an annotator's answers.

    `table` holds the information of a comparison: rows for distances up to `max_distance`, columns for variances up to
    `max_variance`, both evenly spaced in the square root. Each pair of a task counts as `pair_weight` comparisons;
    `rating_precision` is the precision that a rating adds to each item, 0 where items are compared.
    """

    table: FloatArray
    max_distance: float
    max_variance: float
    pair_weight: float
    rating_precision: float


class Candidates(NamedTuple):
    """Posterior of the items, and which of them may be in a task.

    `order` lists the items by mean, `position` is the place of each item in it. `excluded_pairs` holds the sorted keys
    (lower code × number of items + higher code) of pairs that must not be asked.
    """

    mean: FloatArray
    variance: FloatArray
    weight: FloatArray
    excluded: NDArray[np.bool_]
    labels: IntArray
    label_rule: int
    order: IntArray
    position: IntArray
    excluded_pairs: NDArray[np.int64]


@compiled
def tabulate_outcomes(
    level: FloatArray,
    tie_margin: float,
    max_distance: float,
    max_variance: float,
    probability: FloatArray,
    slope: FloatArray,
) -> None:
    """Fill in the probability of every outcome and its slope by the difference, on the grid of `InformationTable`.

    Both arrays have the shape outcomes (right wins, tie, left wins) × noise levels × rows × columns.
    """
    _, levels, rows, columns = probability.shape
    for outcome in (-1, 0, 1):
        for k in range(levels):
            for row in range(rows):
                for column in range(columns):
                    difference = max_distance * (row / (rows - 1)) ** 2
                    variance = max_variance * (column / (columns - 1)) ** 2
                    p, first, _ = outcome_likelihood(difference, variance, level[k], tie_margin, outcome)
                    probability[outcome + 1, k, row, column] = p
                    slope[outcome + 1, k, row, column] = first


@compiled
def comparison_information(information: InformationTable, difference: float, variance: float) -> float:
    """Interpolate the table linearly; 0 beyond its largest distance."""
    table = information.table
    rows, columns = table.shape
    x = sqrt(abs(difference) / information.max_distance) * (rows - 1)
    if x >= rows - 1:
        return 0.0
    y = min(sqrt(max(variance, 0.0) / information.max_variance), 1.0) * (columns - 1)
    row, column = int(x), min(int(y), columns - 2)
    x -= row
    y -= column
    near = table[row, column] * (1.0 - y) + table[row, column + 1] * y
    far = table[row + 1, column] * (1.0 - y) + table[row + 1, column + 1] * y
    return float(near * (1.0 - x) + far * x)


@compiled
def expected_precision(
    place: int,
    members: NDArray[np.int64],
    count: int,
    mean: FloatArray,
    variance: FloatArray,
    information: InformationTable,
) -> float:
    """Return the precision that a task of the first `count` members is expected to add to the member at `place`.

    One comparison adds the precision that leaves a variance of v − v² · I; the precisions of a task's pairs add up.
    """
    item = members[place]
    v = variance[item]
    precision = information.rating_precision
    for b in range(count):
        if b != place:
            other = members[b]
            info = comparison_information(information, mean[item] - mean[other], v + variance[other])
            precision += information.pair_weight * info / max(1.0 - v * info, 1e-6)
    return precision


@compiled
def task_gain(members: NDArray[np.int64], count: int, candidates: Candidates, information: InformationTable) -> float:
    """Return the expected gain of a task of the first `count` members; exact for a pair that is compared."""
    if len(members) == 2 and count == 2 and information.rating_precision == 0.0:
        i, j = members[0], members[1]
        v, w = candidates.variance[i], candidates.variance[j]
        info = comparison_information(information, candidates.mean[i] - candidates.mean[j], v + w)
        return float((candidates.weight[i] * v * v + candidates.weight[j] * w * w) * info)
    gain = 0.0
    for place in range(count):
        v = candidates.variance[members[place]]
        precision = expected_precision(place, members, count, candidates.mean, candidates.variance, information)
        gain += candidates.weight[members[place]] * v * v * precision / (1.0 + v * precision)
    return gain


@compiled
def may_join(members: NDArray[np.int64], count: int, other: int, candidates: Candidates) -> bool:
    """Tell whether an item may join the first `count` members of a task that has a free place."""
    if candidates.excluded[other]:
        return False
    for place in range(count):
        item = members[place]
        if item == other:
            return False
        same_label = candidates.labels[item] == candidates.labels[other]
        if candidates.label_rule != ANY and same_label != (candidates.label_rule == SAME):
            return False
    pairs = candidates.excluded_pairs
    if len(members) == 2 and len(pairs) > 0:
        key = min(members[0], other) * len(candidates.mean) + max(members[0], other)
        place = np.searchsorted(pairs, key)
        return bool(place == len(pairs) or pairs[place] != key)
    return True


@compiled
def fill_task(
    members: NDArray[np.int64],
    pool: NDArray[np.int64],
    count: int,
    candidates: Candidates,
    information: InformationTable,
) -> float:
    """Add the best items to the first member greedily; return the gain, 0 if the pool has too few items.

    Only the first `count` entries of the pool are considered; negative entries are empty.
    """
    gain = 0.0
    if len(members) == 1:
        return task_gain(members, 1, candidates, information)
    for size in range(1, len(members)):
        best_gain, best_item = -1.0, -1
        for place in range(count):
            other = pool[place]
            if other < 0 or not may_join(members, size, other, candidates):
                continue
            members[size] = other
            value = task_gain(members, size + 1, candidates, information)
            if value > best_gain:
                best_gain, best_item = value, other
        if best_item < 0:
            return 0.0
        members[size] = best_item
        gain = best_gain
    return gain


@compiled
def neighbours(head: int, window: int, candidates: Candidates, out: NDArray[np.int64]) -> int:
    """Write the items nearest to `head` by mean into `out`; return their number."""
    position = candidates.position[head]
    count = 0
    for number in range(max(position - window, 0), min(position + window + 1, len(candidates.order))):
        if number != position:
            out[count] = candidates.order[number]
            count += 1
    return count


@compiled
def regional_tops(candidates: Candidates, regions: int, per_region: int) -> NDArray[np.int64]:
    """Return the items of highest priority in each region of the scale; -1 where a region has fewer."""
    n = len(candidates.order)
    tops = np.full(regions * per_region, -1, np.int64)
    priority = candidates.weight * candidates.variance**2
    for region in range(regions):
        first = region * per_region
        for number in range(region * n // regions, (region + 1) * n // regions):
            item = candidates.order[number]
            place = first + per_region - 1
            if candidates.excluded[item] or (tops[place] >= 0 and priority[item] <= priority[tops[place]]):
                continue
            while place > first and (tops[place - 1] < 0 or priority[item] > priority[tops[place - 1]]):
                tops[place] = tops[place - 1]
                place -= 1
            tops[place] = item
    return tops


@compiled
def best_tasks(
    heads: NDArray[np.int64],
    partners: NDArray[np.int64],
    window: int,
    candidates: Candidates,
    information: InformationTable,
    tasks: NDArray[np.int64],
) -> FloatArray:
    """Fill each row of `tasks` with the best task for a head; return the gains, 0 where there is no task.

    The other items come from the head's neighbours and from `partners`. Heads are in order of falling priority: the
    search ends, leaving gains of 0, when not even a partner of equal priority and mean could beat the best task.
    """
    size = tasks.shape[1]
    gains = np.zeros(len(heads))
    pool = np.empty(2 * window + len(partners), np.int64)
    least = candidates.variance.min()
    best = 0.0
    for row in range(len(heads)):
        head = heads[row]
        tasks[row, 0] = head
        v = candidates.variance[head]
        info = comparison_information(information, 0.0, v + least)
        precision = information.rating_precision + (size - 1) * information.pair_weight * info / max(
            1.0 - v * info, 1e-6
        )
        if size * candidates.weight[head] * v * v * precision / (1.0 + least * precision) < best:
            break
        count = neighbours(head, window, candidates, pool)
        pool[count : count + len(partners)] = partners
        gains[row] = fill_task(tasks[row], pool, count + len(partners), candidates, information)
        best = max(best, gains[row])
    return gains


@compiled
def best_batch(
    window: int,
    candidates: Candidates,
    information: InformationTable,
    tasks: NDArray[np.int64],
    gains: FloatArray,
) -> int:
    """Fill `tasks` with a batch and `gains` with the expected gains; return the number of tasks.

    Each pass goes through the items by falling priority. An item without a task in this pass becomes the head of one,
    with neighbours that have none either. The next pass takes the expected variance reduction as given: `variance` and
    `excluded` are changed in place.
    """
    pool = np.empty(2 * window, np.int64)
    available = ~candidates.excluded
    done, before = 0, -1
    while done > before and done < len(tasks):
        before = done
        candidates.excluded[:] = ~available
        for head in np.argsort(-candidates.weight * candidates.variance**2):
            if done == len(tasks):
                break
            if candidates.excluded[head]:
                continue
            tasks[done, 0] = head
            count = neighbours(head, window, candidates, pool)
            gain = fill_task(tasks[done], pool, count, candidates, information)
            if gain > 0.0:
                gains[done] = gain
                candidates.excluded[tasks[done]] = True
                reduce_variances(tasks[done], candidates.mean, candidates.variance, information)
                done += 1
    return done


@compiled
def reduce_variances(
    members: NDArray[np.int64], mean: FloatArray, variance: FloatArray, information: InformationTable
) -> None:
    """Reduce the variances of a task's items, in place, by what the task is expected to remove."""
    after = np.empty(len(members))
    for place in range(len(members)):
        v = variance[members[place]]
        after[place] = v / (1.0 + v * expected_precision(place, members, len(members), mean, variance, information))
    variance[members] = after
