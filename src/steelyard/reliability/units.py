"""Answers grouped by unit, and the pairs of answers by different annotators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from steelyard.errors import DataError
from steelyard.observations import UNKNOWN, FloatArray

Counts: TypeAlias = Any  # scipy.sparse.csr_array, whose operators the stubs do not follow
Codes: TypeAlias = NDArray[np.int64]


def group_codes(*columns: NDArray[Any]) -> Codes:
    """Return one code per row, 0…groups-1 in sorted order, equal where all integer columns are equal."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        low = int(column.min()) if column.size else 0
        width = (int(column.max()) - low + 1) if column.size else 1
        codes = np.unique(codes * width + (column.astype(np.int64) - low), return_inverse=True)[1]
    return codes.astype(np.int64)


def pairs_of(sizes: FloatArray) -> FloatArray:
    """Return the number of unordered pairs among `sizes` things."""
    return sizes * (sizes - 1) / 2


def row_sums(rows: Codes, values: FloatArray, count: int) -> FloatArray:
    """Sum the values of each row."""
    return np.bincount(rows, values, count).astype(np.float64, copy=False)


def table(rows: Codes, columns: Codes, shape: tuple[int, int], times: FloatArray | None = None) -> Counts:
    """Sum `times` (1 by default) by (row, column), as a sparse matrix with sorted columns."""
    matrix = sparse.csr_array((np.ones(len(rows)) if times is None else times, (rows, columns)), shape=shape)
    matrix.sum_duplicates()
    return matrix


def distinct(values: NDArray[Any]) -> tuple[NDArray[Any], Codes]:
    """Return the distinct values, ascending, and the place of each value among them.

    As np.unique, but without sorting if the values are integers in a range of about their number.
    """
    if len(values) > _FEW and (values.dtype.kind in "iu" or (values == np.rint(values)).all()):
        low, high = values.min(), values.max()
        if high - low <= 4 * len(values):
            code = (values - low).astype(np.int64)
            occurs = np.bincount(code) > 0
            unique = (np.flatnonzero(occurs) + low).astype(values.dtype)
            return unique, (np.cumsum(occurs) - 1)[code]
    unique, place = np.unique(values, return_inverse=True)
    return unique, place.astype(np.int64)


_FEW = 1000


@dataclass(frozen=True, eq=False)
class Units:
    """The units that at least two annotators answered, with their answers.

    Two answers by the same annotator to the same unit never form a pair: that is self-consistency, not
    agreement. Answers of unknown annotators count as those of different annotators.

    Attributes
    ----------
    unit, answer
        The unit, from 0 on, and the value of each answer, shape (N,).
    answers, pairs
        Answers, and pairs of answers by different annotators, of each unit, shape (U,).
    group, group_unit
        For annotators who answered a unit more than once: the group (annotator and unit, coded from 0) of each
        answer (-1: none), and the unit of each group.
    kept
        The original code of each unit.
    times
        The frequency of each answer if equal answers are counted together; otherwise None.
    """

    unit: Codes
    answer: FloatArray
    answers: FloatArray
    pairs: FloatArray
    group: Codes
    group_unit: Codes
    kept: Codes
    times: FloatArray | None = None

    @classmethod
    def of(cls, unit: ArrayLike, value: ArrayLike, annotator: ArrayLike | None = None) -> Units:
        """Group the values by integer `unit` code; `annotator` holds codes, or UNKNOWN."""
        units, values = np.asarray(unit), np.asarray(value, np.float64)
        if len(units) != len(values) or (annotator is not None and len(np.asarray(annotator)) != len(values)):
            raise DataError("units, values and annotators differ in number.", "Give one of each per answer.")
        if values.size and not np.isfinite(values).all():
            raise DataError("a value is not a number.", "Leave out the answers that are missing.")
        codes, place = distinct(units)
        annotators = None if annotator is None else np.asarray(annotator)
        group, size, group_unit = _repeats(place, annotators)
        return cls._of_places(codes, place, values, group, size, group_unit)

    @classmethod
    def counted(cls, unit: ArrayLike, value: ArrayLike, times: ArrayLike, annotator: ArrayLike) -> Units:
        """Group values with their frequencies `times`; `annotator` is UNKNOWN except for repeated answers to a unit."""
        units, values, counts = np.asarray(unit), np.asarray(value, np.float64), np.asarray(times, np.float64)
        codes, place = distinct(units)
        annotators = np.asarray(annotator)
        repeated = np.flatnonzero(annotators != UNKNOWN)
        group = np.full(len(place), -1, np.int64)
        key = place[repeated] * (int(annotators.max(initial=0)) + 1) + annotators[repeated]
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        group[repeated] = inverse
        size = row_sums(inverse.astype(np.int64), counts[repeated], len(first))
        return cls._of_places(codes, place, values, group, size, place[repeated][first], counts)

    @classmethod
    def _of_places(
        cls,
        codes: NDArray[Any],
        place: Codes,
        values: FloatArray,
        group: Codes,
        size: FloatArray,
        group_unit: Codes,
        times: FloatArray | None = None,
    ) -> Units:
        """Leave out the units without answers by two annotators."""
        pairs = pairs_of(np.bincount(place, times, minlength=len(codes)).astype(np.float64))
        pairs -= np.bincount(group_unit, pairs_of(size), minlength=len(codes))
        keep = pairs > 0
        if not keep.all():
            rows = keep[place]
            renumber = np.cumsum(keep) - 1
            number = np.cumsum(keep[group_unit]) - 1
            place, values, group = renumber[place[rows]], values[rows], group[rows]
            times = None if times is None else times[rows]
            group = np.where(group >= 0, np.append(number, -1)[group], -1)
            group_unit = renumber[group_unit[keep[group_unit]]]
        answers = np.bincount(place, times, minlength=int(keep.sum())).astype(np.float64)
        return cls(place, values, answers, pairs[keep], group, group_unit, codes[keep].astype(np.int64), times)

    @cached_property
    def _weight(self) -> FloatArray:
        return np.ones(len(self.answer)) if self.times is None else self.times

    def __len__(self) -> int:
        return len(self.answers)

    @cached_property
    def _coded(self) -> tuple[FloatArray, Codes]:
        return distinct(self.answer)

    @property
    def values(self) -> FloatArray:
        """The distinct values, ascending, shape (V,)."""
        return self._coded[0]

    @cached_property
    def counts(self) -> Counts:
        """Answers by unit and value, sparse (U, V)."""
        return table(self.unit, self._coded[1], (len(self), len(self.values)), self.times)

    @cached_property
    def own(self) -> Counts | None:
        """Repeated answers by group (annotator and unit) and value, sparse (groups, V); None if there are none."""
        if not len(self.group_unit):
            return None
        mine = self.group >= 0
        times = None if self.times is None else self.times[mine]
        return table(self.group[mine], self._coded[1][mine], (len(self.group_unit), len(self.values)), times)

    @cached_property
    def owner(self) -> Counts:
        """The unit of each group of repeated answers, sparse (U, groups)."""
        count = len(self.group_unit)
        return table(self.group_unit, np.arange(count), (len(self), count))

    def moments(self, score: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return Σx, Σx² and Σ (xᵢ - xⱼ)² over the pairs of each unit, for a score of each answer, shape (U,)."""
        weight = self._weight
        first, second = (row_sums(self.unit, weight * x, len(self)) for x in (score, score**2))
        spread = self.answers * second - first**2
        if len(self.group_unit):
            mine, count = self.group >= 0, len(self.group_unit)
            size, own, squares = (
                row_sums(self.group[mine], (weight * x)[mine], count) for x in (np.ones(len(score)), score, score**2)
            )
            spread -= row_sums(self.group_unit, size * squares - own**2, len(self))
        return first, second, np.maximum(spread, 0.0)

    def over_pairs(self, within: Callable[[Counts], FloatArray]) -> FloatArray:
        """Sum over the pairs of each unit, given the sum over all pairs in each row of counts."""
        total = within(self.counts)
        if self.own is not None:
            total = total - self.owner @ within(self.own)
        return np.maximum(total, 0.0)

    def agreeing(self) -> FloatArray:
        """Return the pairs of equal answers of each unit, shape (U,)."""
        return self.over_pairs(_equal_pairs)

    def spread(self, score: FloatArray) -> FloatArray:
        """Return Σ (xᵢ - xⱼ)² over the pairs of each unit, for scores of the values (V, r); shape (U, r)."""
        squared = score**2

        def within(counts: Counts) -> FloatArray:
            size: FloatArray = counts.sum(axis=1)
            spread: FloatArray = size[:, None] * (counts @ squared) - (counts @ score) ** 2
            return spread

        return self.over_pairs(within)

    def distances(self) -> FloatArray:
        """Return Σ |xᵢ - xⱼ| over the pairs of each unit, shape (U,), from the order of its values."""
        centred = self.values - self.values.mean()

        def within(counts: Counts) -> FloatArray:
            row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
            before = np.cumsum(counts.data) - counts.data
            before -= np.concatenate([before, [0.0]])[counts.indptr[:-1]][row]
            weight = 2 * before + counts.data - counts.sum(axis=1)[row]
            return row_sums(row, counts.data * weight * centred[counts.indices], counts.shape[0])

        return self.over_pairs(within)


def _repeats(place: Codes, annotators: NDArray[Any] | None) -> tuple[Codes, FloatArray, Codes]:
    """Find repeated answers of an annotator to a unit: each row's group (-1: none), and the groups' sizes and units."""
    none = np.full(len(place), -1, np.int64)
    if annotators is None or not len(place):
        return none, np.empty(0), np.empty(0, np.int64)
    rows = np.flatnonzero(annotators != UNKNOWN)
    key = place[rows].astype(np.int64) * (int(annotators.max()) + 1) + annotators[rows]
    first, inverse, size = _unique_if_repeated(key)
    if first is None:
        return none, np.empty(0), np.empty(0, np.int64)
    is_repeated = size > 1
    number = np.where(is_repeated, np.cumsum(is_repeated) - 1, -1)
    none[rows] = number[inverse]
    return none, size[is_repeated].astype(np.float64), place[rows][first[is_repeated]]


def _unique_if_repeated(key: Codes) -> tuple[Codes | None, Codes, Codes]:
    """Return unique keys like np.unique, but quickly without result in the usual case that no key repeats."""
    ordered = np.sort(key)
    if not (ordered[1:] == ordered[:-1]).any():
        return None, key, key
    _, first, inverse, size = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    return first, inverse, size


def _equal_pairs(counts: Counts) -> FloatArray:
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    return row_sums(row, pairs_of(counts.data), counts.shape[0])
