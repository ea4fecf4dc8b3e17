"""Splitting judgments in halves at random, unit by unit, from hashes of names.

Which half a judgment falls into depends on the seed, the trial, the unit and the annotator alone: not on the
order of the rows, nor on the other units. All arithmetic is on whole numbers below 2⁶², modulo the prime
2³¹ − 1, so that SQL can do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import ConfigError, DataError, did_you_mean
from steelyard.models.compiled import compiled
from steelyard.models.inference.hashing import PRIME, hashed, multiplier_and_shift
from steelyard.observations import (
    Choices,
    Comparisons,
    FloatArray,
    IntArray,
    Observations,
    Rankings,
    Ratings,
)
from steelyard.reliability.units import Codes, group_codes

FIRST, SECOND, NEITHER = 0, 1, 2

Halves: TypeAlias = NDArray[np.int8]
Kind = TypeVar("Kind", bound=Observations)

SPLITS = ("unit", "annotator")


class Question(NamedTuple):
    """What is answered several times: each row's unit, a hash of it, and keys that tell answers apart."""

    group: Codes
    key: Codes
    content: tuple[NDArray[Any], ...]


def _ratings(ratings: Ratings, item: Codes, task: Codes) -> Question:
    return Question(ratings.item.astype(np.int64), item[ratings.item], (ratings.value,))


def _comparisons(comparisons: Comparisons, item: Codes, task: Codes) -> Question:
    left, right = comparisons.left, comparisons.right
    low, high = np.minimum(left, right), np.maximum(left, right)
    turned = np.where(item[left] < item[right], comparisons.outcome, -comparisons.outcome)
    key = item[left] + item[right]
    if comparisons.knows_tasks:
        return Question(group_codes(comparisons.task, low, high), key + task[comparisons.task], (turned,))
    return Question(group_codes(low, high), key, (turned,))


def _choices(choices: Choices, item: Codes, task: Codes) -> Question:
    shown = np.sort(choices.shown, axis=1)
    named = np.append(item, 0)
    key = named[shown].sum(axis=1)
    return Question(group_codes(*shown.T), key, (named[choices.best], named[choices.worst]))


def _rankings(rankings: Rankings, item: Codes, task: Codes) -> Question:
    row = np.repeat(np.arange(len(rankings)), np.diff(rankings.start))
    places = np.bincount(row, item[rankings.item] * rankings.rank.astype(np.float64), len(rankings))
    if rankings.knows_tasks:
        return Question(rankings.task.astype(np.int64), task[rankings.task], (places,))
    shown = np.zeros(len(rankings), np.int64)
    np.add.at(shown, row, item[rankings.item])
    return Question(np.unique(shown, return_inverse=True)[1].astype(np.int64), shown, (places,))


_QUESTIONS: dict[type[Observations], Callable[[Any, Codes, Codes], Question]] = {
    Ratings: _ratings,
    Comparisons: _comparisons,
    Choices: _choices,
    Rankings: _rankings,
}

UNIT_NAMES: dict[type[Observations], str] = {
    Ratings: "item",
    Comparisons: "pair",
    Choices: "tuple",
    Rankings: "task",
}


@dataclass(frozen=True, slots=True, eq=False)
class Splitter:
    """The judgments of some observations, ready to be split in halves, trial by trial.

    Attributes
    ----------
    order
        The entries (judgments, or annotators when these are split) sorted by group.
    start
        Where each group starts in `order`, and where the last one ends.
    key, coin
        A hash of each entry in `order`, and of each group.
    entry
        The entry of each row.
    seed
        Of the splits.
    """

    order: Codes
    start: Codes
    key: Codes
    coin: Codes
    entry: Codes
    seed: int

    @classmethod
    def of(cls, observations: Observations, by: str, seed: int) -> Splitter:
        """Prepare to split within each unit, or to split the annotators (`by`)."""
        if by not in SPLITS:
            raise ConfigError(f"cannot split by '{by}'.", did_you_mean(by, SPLITS))
        if type(observations) not in _QUESTIONS:
            raise DataError(
                f"split-half reliability needs {' or '.join(kind.kind for kind in _QUESTIONS)}; "
                f"these are {observations.kind}.",
                "For labels, see alpha (nominal).",
            )
        if by == "annotator":
            return cls._of_annotators(observations, seed)
        item, task = hashed(observations.items.ids, seed), hashed(observations.tasks.ids, seed)
        group, key, content = _QUESTIONS[type(observations)](observations, item, task)
        names = np.append(hashed(observations.annotators.ids, seed), 1)
        person = names[observations.annotator]
        order = np.lexsort((*content, person, group))
        ordered, same = group[order], person[order]
        fresh = np.r_[True, ordered[1:] != ordered[:-1]] if len(order) else np.zeros(0, bool)
        start = np.append(np.flatnonzero(fresh), len(order))
        occurrence = _occurrences(fresh, same)
        again = hashed(map(str, range(int(occurrence.max(initial=0)) + 1)), seed)
        mixed = (same + again[occurrence]) % PRIME * (key[order] % PRIME) % PRIME
        coin = key[order][start[:-1]] % PRIME * again[0] % PRIME
        return cls(order, start, mixed, coin, np.arange(len(order)), seed)

    @classmethod
    def _of_annotators(cls, observations: Observations, seed: int) -> Splitter:
        if not observations.knows_annotators:
            raise DataError("the annotators are not known, so they cannot be split.", "Split by 'unit'.")
        people, entry = np.unique(observations.annotator, return_inverse=True)
        of_people = cls.of_names([observations.annotators[int(code)] for code in people], seed)
        return replace(of_people, entry=entry.astype(np.int64))

    @classmethod
    def of_names(cls, names: Sequence[str], seed: int) -> Splitter:
        """Prepare to split so many annotators, whose judgments go with them."""
        key, everyone = hashed(names, seed), np.arange(len(names))
        return cls(everyone, np.array([0, len(names)]), key, key[:1], everyone, seed)

    @property
    def sizes(self) -> Codes:
        """The number of entries of each group."""
        return np.diff(self.start)

    def halves(self, trial: int, per_half: int | None = None) -> Halves:
        """Return the half of each row: FIRST, SECOND or, beyond `per_half` of a group, NEITHER.

        The entries of a group are ranked by their hashes; the first half of them goes one way, the others the
        other, and where their number is odd the group's own hash says which half gets more.
        """
        multiplier, shift = multiplier_and_shift(trial, self.seed)
        halves = np.empty(len(self.order), np.int8)
        limit = len(self.order) if per_half is None else per_half
        assign_halves(self.order, self.start, self.key, self.coin, multiplier, shift, limit, halves)
        return halves[self.entry]


def _occurrences(fresh: NDArray[np.bool_], person: Codes) -> Codes:
    """Number the answers of one person to one question from 0, given the sorted rows."""
    if not len(person):
        return np.zeros(0, np.int64)
    first = fresh | np.r_[True, person[1:] != person[:-1]]
    place = np.arange(len(person))
    numbers: Codes = place - np.maximum.accumulate(np.where(first, place, 0))
    return numbers


@compiled
def scrambled(key: int, multiplier: int, shift: int) -> int:
    """Do as `models.hashing.scrambled`, one key at a time."""
    x = (key * multiplier + shift) % 2147483647
    square = x * x % 2147483647
    return square * square % 2147483647 * x % 2147483647


@compiled
def counted_ranks(drawn: Codes) -> Codes:
    """Rank a few numbers from 0, the first of equal ones lower, by counting."""
    rank = np.zeros(len(drawn), np.int64)
    for place in range(len(drawn)):
        for rival in range(place):
            if drawn[rival] <= drawn[place]:
                rank[place] += 1
            else:
                rank[rival] += 1
    return rank


@compiled
def assign_halves(
    order: Codes,
    start: Codes,
    key: Codes,
    coin: Codes,
    multiplier: int,
    shift: int,
    limit: int,
    halves: Halves,
) -> None:
    """Rank the entries of each group by their scrambled hashes, and write the half of each."""
    largest = 0
    for group in range(len(start) - 1):
        largest = max(largest, start[group + 1] - start[group])
    drawn = np.empty(largest, np.int64)
    for group in range(len(start) - 1):
        low, size = start[group], start[group + 1] - start[group]
        for place in range(size):
            drawn[place] = scrambled(key[low + place], multiplier, shift)
        first = size // 2
        if size % 2 == 1 and scrambled(coin[group], multiplier, shift) % 2 == 1:
            first += 1
        own, other = min(first, limit), min(size - first, limit)
        rank = np.argsort(np.argsort(drawn[:size], kind="mergesort")) if size > 32 else counted_ranks(drawn[:size])
        for place in range(size):
            half = 2
            if rank[place] < own:
                half = 0
            elif size - 1 - rank[place] < other:
                half = 1
            halves[order[low + place]] = half


class Sums(NamedTuple):
    """Scores that are means over rows: row `row` gives `item` the value."""

    item: IntArray
    row: IntArray
    value: FloatArray
    n_items: int

    @classmethod
    def of(cls, observations: Observations) -> Sums:
        """Take the mean of ratings, and counting (times best − times worst over times shown) of the rest."""
        count = len(observations.items)
        if isinstance(observations, Ratings):
            rows = np.arange(len(observations), dtype=np.int32)
            return cls(observations.item, rows, observations.value, count)
        item, row, value = observations.preferences()
        return cls(item, row, value, count)

    def scores(self, halves: Halves) -> tuple[FloatArray, FloatArray]:
        """Score every item by either half; NaN for those it does not have."""
        total, shown = np.zeros((3, self.n_items)), np.zeros((3, self.n_items))
        add_by_half(self.item, self.row, self.value, halves, total, shown)
        return scores_of_halves(total, shown, float(np.abs(self.value).max(initial=0.0)))


def scores_of_halves(total: FloatArray, shown: FloatArray, largest: float) -> tuple[FloatArray, FloatArray]:
    """Score every item by either half, from sums by half and item and the largest value; NaN where it has none."""
    score = np.where(shown > 0, total / np.where(shown > 0, shown, 1.0), np.nan)
    # Rounded, because equal means of unlike fractions may differ in the last digit, which ranks would see.
    score = np.round(score / (largest or 1.0), 12)
    return score[FIRST], score[SECOND]


@compiled
def add_by_half(
    item: IntArray,
    row: IntArray,
    value: FloatArray,
    halves: Halves,
    total: FloatArray,
    shown: FloatArray,
) -> None:
    """Add up the values of each item, and how often it was shown, by the half of the row."""
    for place in range(len(item)):
        half = halves[row[place]]
        total[half, item[place]] += value[place]
        shown[half, item[place]] += 1.0


def take(observations: Kind, keep: NDArray[np.bool_]) -> Kind:
    """Return some of the rows, over the same items, annotators and tasks."""
    return observations.subset(keep)
