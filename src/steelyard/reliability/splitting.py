"""Split judgments into random halves, unit by unit, from hashes of names.

The half of a judgment depends only on the seed, the trial, the unit and the annotator: not on the order of the rows
or on the other units. All arithmetic is on integers below 2⁶², modulo the prime 2³¹ − 1, so that SQL can do the same.
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

SPLITS = ("unit", "tuple", "annotator")


class Question(NamedTuple):
    """The unit of each row, its hash, and keys that order the answers within it."""

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
    items = np.sort(choices.shown, axis=1)
    item_hash = np.append(item, 0)
    key = item_hash[items].sum(axis=1)
    return Question(group_codes(*items.T), key, (item_hash[choices.best], item_hash[choices.worst]))


def _rankings(rankings: Rankings, item: Codes, task: Codes) -> Question:
    row = np.repeat(np.arange(len(rankings)), np.diff(rankings.start))
    places = np.bincount(row, item[rankings.item] * rankings.rank.astype(np.float64), len(rankings))
    if rankings.knows_tasks:
        return Question(rankings.task.astype(np.int64), task[rankings.task], (places,))
    items_hash = np.zeros(len(rankings), np.int64)
    np.add.at(items_hash, row, item[rankings.item])
    return Question(np.unique(items_hash, return_inverse=True)[1].astype(np.int64), items_hash, (places,))


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
    """Splits the judgments of observations into halves, trial by trial.

    Attributes
    ----------
    order
        The entries (judgments, or the tuples or annotators that are split) sorted by group.
    start
        Where each group starts in `order`, and where the last one ends.
    key, coin
        A hash of each entry in `order`, and of each group.
    entry
        The entry of each row.
    seed
        Seed of the splits.
    """

    order: Codes
    start: Codes
    key: Codes
    coin: Codes
    entry: Codes
    seed: int

    @classmethod
    def of(cls, observations: Observations, by: str, seed: int) -> Splitter:
        """Prepare to split within each unit, or to split the tuples or the annotators (`by`)."""
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
        if by == "tuple":
            return cls._of_tuples(observations, group, key, seed)
        names = np.append(hashed(observations.annotators.ids, seed), 1)
        annotator = names[observations.annotator]
        order = np.lexsort((*content, annotator, group))
        ordered, same = group[order], annotator[order]
        is_first = np.r_[True, ordered[1:] != ordered[:-1]] if len(order) else np.zeros(0, bool)
        start = np.append(np.flatnonzero(is_first), len(order))
        occurrence = _occurrences(is_first, same)
        occurrence_hash = hashed(map(str, range(int(occurrence.max(initial=0)) + 1)), seed)
        mixed = (same + occurrence_hash[occurrence]) % PRIME * (key[order] % PRIME) % PRIME
        coin = key[order][start[:-1]] % PRIME * occurrence_hash[0] % PRIME
        return cls(order, start, mixed, coin, np.arange(len(order)), seed)

    @classmethod
    def _of_tuples(cls, observations: Observations, group: Codes, key: Codes, seed: int) -> Splitter:
        """Prepare to split tuples, pairs or tasks; all answers to one are in one half."""
        if isinstance(observations, Ratings):
            raise DataError("ratings have no tuples: each item would be in one half.", "Split by 'unit'.")
        _, first, entry = np.unique(group, return_index=True, return_inverse=True)
        everything, hashes = np.arange(len(first)), key[first] % PRIME
        return cls(everything, np.array([0, len(first)]), hashes, hashes[:1], entry.astype(np.int64), seed)

    @classmethod
    def _of_annotators(cls, observations: Observations, seed: int) -> Splitter:
        if not observations.knows_annotators:
            raise DataError("the annotators are unknown, so they cannot be split.", "Split by 'unit'.")
        codes, entry = np.unique(observations.annotator, return_inverse=True)
        of_annotators = cls.of_names([observations.annotators[int(code)] for code in codes], seed)
        return replace(of_annotators, entry=entry.astype(np.int64))

    @classmethod
    def of_names(cls, names: Sequence[str], seed: int) -> Splitter:
        """Prepare to split annotators; all judgments of an annotator are in one half."""
        key, everyone = hashed(names, seed), np.arange(len(names))
        return cls(everyone, np.array([0, len(names)]), key, key[:1], everyone, seed)

    @property
    def sizes(self) -> Codes:
        """The number of entries of each group."""
        return np.diff(self.start)

    def halves(self, trial: int, per_half: int | None = None) -> Halves:
        """Return the half of each row: FIRST, SECOND or, beyond `per_half` of a group, NEITHER.

        The entries of a group are ranked by their hashes, and the ranking is cut in the middle; if the number of
        entries is odd, the group's hash decides which half is larger.
        """
        multiplier, shift = multiplier_and_shift(trial, self.seed)
        halves = np.empty(len(self.order), np.int8)
        limit = len(self.order) if per_half is None else per_half
        assign_halves(self.order, self.start, self.key, self.coin, multiplier, shift, limit, halves)
        return halves[self.entry]


def _occurrences(is_first: NDArray[np.bool_], annotator: Codes) -> Codes:
    """Number the answers of one annotator to one question from 0, given the sorted rows."""
    if not len(annotator):
        return np.zeros(0, np.int64)
    first = is_first | np.r_[True, annotator[1:] != annotator[:-1]]
    place = np.arange(len(annotator))
    numbers: Codes = place - np.maximum.accumulate(np.where(first, place, 0))
    return numbers


@compiled
def scrambled(key: int, multiplier: int, shift: int) -> int:
    """Scramble one key, as `models.inference.hashing.scrambled` does for arrays."""
    x = (key * multiplier + shift) % 2147483647
    square = x * x % 2147483647
    return square * square % 2147483647 * x % 2147483647


@compiled
def counted_ranks(keys: Codes) -> Codes:
    """Rank a few numbers from 0 by counting; of equal numbers, the first ranks lower."""
    rank = np.zeros(len(keys), np.int64)
    for place in range(len(keys)):
        for rival in range(place):
            if keys[rival] <= keys[place]:
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
    random_key = np.empty(largest, np.int64)
    for group in range(len(start) - 1):
        low, size = start[group], start[group + 1] - start[group]
        for place in range(size):
            random_key[place] = scrambled(key[low + place], multiplier, shift)
        first = size // 2
        if size % 2 == 1 and scrambled(coin[group], multiplier, shift) % 2 == 1:
            first += 1
        own, other = min(first, limit), min(size - first, limit)
        keys = random_key[:size]
        rank = np.argsort(np.argsort(keys, kind="mergesort")) if size > 32 else counted_ranks(keys)
        for place in range(size):
            half = 2
            if rank[place] < own:
                half = 0
            elif size - 1 - rank[place] < other:
                half = 1
            halves[order[low + place]] = half


class Sums(NamedTuple):
    """Scores that are means over rows: row `row` assigns the value to `item`."""

    item: IntArray
    row: IntArray
    value: FloatArray
    n_items: int

    @classmethod
    def of(cls, observations: Observations) -> Sums:
        """Score ratings by their mean, other kinds by counting: (times best − times worst) / times shown."""
        count = len(observations.items)
        if isinstance(observations, Ratings):
            rows = np.arange(len(observations), dtype=np.int32)
            return cls(observations.item, rows, observations.value, count)
        item, row, value = observations.preferences()
        return cls(item, row, value, count)

    def scores(self, halves: Halves) -> tuple[FloatArray, FloatArray]:
        """Score the items in both halves; NaN for items without judgments in a half."""
        total, count = np.zeros((3, self.n_items)), np.zeros((3, self.n_items))
        add_by_half(self.item, self.row, self.value, halves, total, count)
        return scores_of_halves(total, count, float(np.abs(self.value).max(initial=0.0)))


def scores_of_halves(total: FloatArray, count: FloatArray, largest: float) -> tuple[FloatArray, FloatArray]:
    """Score the items in both halves from sums and counts by half and item; NaN for items without judgments."""
    score = np.where(count > 0, total / np.where(count > 0, count, 1.0), np.nan)
    # Rounded, because equal means of different fractions may differ in the last digit, which would break ties of ranks.
    score = np.round(score / (largest or 1.0), 12)
    return score[FIRST], score[SECOND]


@compiled
def add_by_half(
    item: IntArray,
    row: IntArray,
    value: FloatArray,
    halves: Halves,
    total: FloatArray,
    count: FloatArray,
) -> None:
    """Sum the values of each item, and count its appearances, by the half of the row."""
    for place in range(len(item)):
        half = halves[row[place]]
        total[half, item[place]] += value[place]
        count[half, item[place]] += 1.0


def take(observations: Kind, keep: NDArray[np.bool_]) -> Kind:
    """Return some of the rows, over the same items, annotators and tasks."""
    return observations.subset(keep)
