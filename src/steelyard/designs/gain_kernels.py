"""Compiled search for the tasks that teach most, without looking at all pairs.

Items have a mean and a variance, and a `worth`: what it is worth to shrink their variance. Comparing two items shrinks
the variance v of either by v² · I on average, exactly so for one Gaussian update: I, the `information` of the outcome
about the difference, hangs on the distance of the means, the sum of the variances and the annotator's noise alone. So
a pair's gain is the sum of its stakes, worth · v², times I; and I is read off a table made for the annotator.
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
"""Which labels the items of one task may have: any, one and the same, or all different."""


class Answers(NamedTuple):
    """What an answer is expected to tell.

    `table` holds the information of a comparison, rows for distances up to `reach`, columns for variances up to
    `most`, both evenly spaced in the square root. Each pair of a task counts for `share` of a comparison; `rated`
    is the precision that a rating adds to every item by itself, 0 where nothing is rated.
    """

    table: FloatArray
    reach: float
    most: float
    share: float
    rated: float


class Standing(NamedTuple):
    """What is believed of the items, and who may be asked about.

    `order` has the items by mean, `place` where each stands in it; `seen` the sorted keys (lower code × items + higher
    code) of pairs that are not to be asked.
    """

    mean: FloatArray
    variance: FloatArray
    worth: FloatArray
    barred: NDArray[np.bool_]
    labels: IntArray
    rule: int
    order: IntArray
    place: IntArray
    seen: NDArray[np.int64]


@compiled
def tabulate(
    level: FloatArray, margin: float, reach: float, most: float, chance: FloatArray, slope: FloatArray
) -> None:
    """Fill in the chance of every outcome, and its slope by the difference, for each level on the grid of `Answers`.

    Both arrays have outcomes (right wins, tie, left wins) × levels × rows × columns.
    """
    _, levels, rows, columns = chance.shape
    for outcome in (-1, 0, 1):
        for k in range(levels):
            for row in range(rows):
                for column in range(columns):
                    difference = reach * (row / (rows - 1)) ** 2
                    variance = most * (column / (columns - 1)) ** 2
                    p, first, _ = outcome_likelihood(difference, variance, level[k], margin, outcome)
                    chance[outcome + 1, k, row, column] = p
                    slope[outcome + 1, k, row, column] = first


@compiled
def look_up(answers: Answers, difference: float, variance: float) -> float:
    """Read the table, linearly between its entries; 0 beyond its reach."""
    table = answers.table
    rows, columns = table.shape
    x = sqrt(abs(difference) / answers.reach) * (rows - 1)
    if x >= rows - 1:
        return 0.0
    y = min(sqrt(max(variance, 0.0) / answers.most), 1.0) * (columns - 1)
    row, column = int(x), min(int(y), columns - 2)
    x -= row
    y -= column
    near = table[row, column] * (1.0 - y) + table[row, column + 1] * y
    far = table[row + 1, column] * (1.0 - y) + table[row + 1, column + 1] * y
    return float(near * (1.0 - x) + far * x)


@compiled
def precision_added(
    at: int, members: NDArray[np.int64], count: int, mean: FloatArray, variance: FloatArray, answers: Answers
) -> float:
    """Return the precision that a task of the first `count` members is expected to add to the one at a place.

    What one comparison adds is the precision that leaves a variance of v − v² · I; precisions of a task add up.
    """
    item = members[at]
    v = variance[item]
    added = answers.rated
    for b in range(count):
        if b != at:
            other = members[b]
            known = look_up(answers, mean[item] - mean[other], v + variance[other])
            added += answers.share * known / max(1.0 - v * known, 1e-6)
    return added


@compiled
def task_gain(members: NDArray[np.int64], count: int, standing: Standing, answers: Answers) -> float:
    """Return what a task of the first `count` members is expected to teach; exact for a pair that is compared."""
    if len(members) == 2 and count == 2 and answers.rated == 0.0:
        i, j = members[0], members[1]
        v, w = standing.variance[i], standing.variance[j]
        known = look_up(answers, standing.mean[i] - standing.mean[j], v + w)
        return float((standing.worth[i] * v * v + standing.worth[j] * w * w) * known)
    gain = 0.0
    for at in range(count):
        v = standing.variance[members[at]]
        added = precision_added(at, members, count, standing.mean, standing.variance, answers)
        gain += standing.worth[members[at]] * v * v * added / (1.0 + v * added)
    return gain


@compiled
def may_join(members: NDArray[np.int64], filled: int, other: int, standing: Standing) -> bool:
    """Say whether an item may stand beside those that are in a task already, in which one place is left or more."""
    if standing.barred[other]:
        return False
    for at in range(filled):
        item = members[at]
        if item == other:
            return False
        if standing.rule != ANY and (standing.labels[item] == standing.labels[other]) != (standing.rule == SAME):
            return False
    if len(members) == 2 and len(standing.seen) > 0:
        key = min(members[0], other) * len(standing.mean) + max(members[0], other)
        place = np.searchsorted(standing.seen, key)
        return bool(place == len(standing.seen) or standing.seen[place] != key)
    return True


@compiled
def fill_task(
    members: NDArray[np.int64], candidates: NDArray[np.int64], count: int, standing: Standing, answers: Answers
) -> float:
    """Give the first member the company that teaches most, one after the other; return the gain, 0 if they are too few.

    Only the first `count` candidates are looked at; those below 0 are none.
    """
    gain = 0.0
    if len(members) == 1:
        return task_gain(members, 1, standing, answers)
    for filled in range(1, len(members)):
        top, chosen = -1.0, -1
        for at in range(count):
            other = candidates[at]
            if other < 0 or not may_join(members, filled, other, standing):
                continue
            members[filled] = other
            value = task_gain(members, filled + 1, standing, answers)
            if value > top:
                top, chosen = value, other
        if chosen < 0:
            return 0.0
        members[filled] = chosen
        gain = top
    return gain


@compiled
def neighbours(head: int, window: int, standing: Standing, found: NDArray[np.int64]) -> int:
    """List the items nearest to a head by mean; return how many they are."""
    at = standing.place[head]
    count = 0
    for number in range(max(at - window, 0), min(at + window + 1, len(standing.order))):
        if number != at:
            found[count] = standing.order[number]
            count += 1
    return count


@compiled
def regional_tops(standing: Standing, regions: int, each: int) -> NDArray[np.int64]:
    """Return the `each` highest stakes of every region of neighbours by mean; -1 where there are fewer."""
    n = len(standing.order)
    tops = np.full(regions * each, -1, np.int64)
    stake = standing.worth * standing.variance**2
    for region in range(regions):
        first = region * each
        for number in range(region * n // regions, (region + 1) * n // regions):
            item = standing.order[number]
            at = first + each - 1
            if standing.barred[item] or (tops[at] >= 0 and stake[item] <= stake[tops[at]]):
                continue
            while at > first and (tops[at - 1] < 0 or stake[item] > stake[tops[at - 1]]):
                tops[at] = tops[at - 1]
                at -= 1
            tops[at] = item
    return tops


@compiled
def best_tasks(
    heads: NDArray[np.int64],
    company: NDArray[np.int64],
    window: int,
    standing: Standing,
    answers: Answers,
    tasks: NDArray[np.int64],
) -> FloatArray:
    """Fill each row of `tasks` with the best task found for a head; return what each teaches, 0 where there is none.

    A head's company comes from its neighbours and from `company`. Heads come by falling stake: once not even
    company of the same stake at the same place could beat the best task, the rest is left at 0.
    """
    size = tasks.shape[1]
    gains = np.zeros(len(heads))
    found = np.empty(2 * window + len(company), np.int64)
    least = standing.variance.min()
    best = 0.0
    for row in range(len(heads)):
        head = heads[row]
        tasks[row, 0] = head
        v = standing.variance[head]
        known = look_up(answers, 0.0, v + least)
        added = answers.rated + (size - 1) * answers.share * known / max(1.0 - v * known, 1e-6)
        if size * standing.worth[head] * v * v * added / (1.0 + least * added) < best:
            break
        count = neighbours(head, window, standing, found)
        found[count : count + len(company)] = company
        gains[row] = fill_task(tasks[row], found, count + len(company), standing, answers)
        best = max(best, gains[row])
    return gains


@compiled
def best_batch(window: int, standing: Standing, answers: Answers, tasks: NDArray[np.int64], gains: FloatArray) -> int:
    """Fill `tasks` with a whole batch, and `gains` with what each is expected to teach; return how many were found.

    Passes go through the items by falling stake; each that has no task in this pass becomes the head of one, with
    neighbours that have none either. What a task is expected to teach counts as learnt in the next pass: the
    variances, and who is barred, are changed in place.
    """
    found = np.empty(2 * window, np.int64)
    free = ~standing.barred
    done, before = 0, -1
    while done > before and done < len(tasks):
        before = done
        standing.barred[:] = ~free
        for head in np.argsort(-standing.worth * standing.variance**2):
            if done == len(tasks):
                break
            if standing.barred[head]:
                continue
            tasks[done, 0] = head
            gain = fill_task(tasks[done], found, neighbours(head, window, standing, found), standing, answers)
            if gain > 0.0:
                gains[done] = gain
                standing.barred[tasks[done]] = True
                expect(tasks[done], standing.mean, standing.variance, answers)
                done += 1
    return done


@compiled
def expect(members: NDArray[np.int64], mean: FloatArray, variance: FloatArray, answers: Answers) -> None:
    """Shrink the variances of a task's items by what it is expected to teach, in place."""
    after = np.empty(len(members))
    for at in range(len(members)):
        v = variance[members[at]]
        after[at] = v / (1.0 + v * precision_added(at, members, len(members), mean, variance, answers))
    variance[members] = after
