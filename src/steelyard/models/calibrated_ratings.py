"""Ratings in the calibrated scale's online state: what each says of its item, given who gave it.

A rating y on [0, 1] is taken as centre + unit · x + bias + noise, the bias and the noise those of its annotator, both
drawn towards what is usual by as much as the answers say. It leaves a mark on its item (precision, precision times
mean) as a comparison does. `sweep` is a step of EM: it makes all marks anew, and learns centre, unit and what is usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from steelyard.observations import FloatArray, IntArray

_UNIT, _BIAS, _NOISE = 0.2, 0.005, 0.02
"""At the start: how far an sd of the items goes on [0, 1], and the variances of bias and noise there."""
_WEIGHT = 8.0
"""How many ratings the usual noise counts for beside an annotator's own."""
_PEOPLE = 5.0
"""How many annotators the start counts for when a refit learns what is usual."""
_LEAST = 1e-4
"""No variance is held to be less."""

_Number = TypeVar("_Number", bound=np.generic)


class RatingSites:
    """The ratings heard so far, the marks they left, and what they say of their annotators."""

    def __init__(self) -> None:
        self.centre, self.unit = 0.5, _UNIT
        self.usual_noise, self.bias_spread = _NOISE, _BIAS
        self.count = 0
        self._item: IntArray = np.zeros(0, np.int32)
        self._annotator: IntArray = np.zeros(0, np.int32)
        self._value: FloatArray = np.zeros(0)
        self._live: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._precision: FloatArray = np.zeros(0)
        self._shift: FloatArray = np.zeros(0)
        self._number: FloatArray = np.zeros(1)
        self._sum: FloatArray = np.zeros(1)
        self._squares: FloatArray = np.zeros(1)
        """By annotator: how many ratings, and the sums of their residuals and of the residuals' squares."""
        self._told: FloatArray = np.zeros((0, 2))
        """What each rating added to those sums."""

    def grow(self, annotators: int) -> None:
        """Have at least so many annotators."""
        more = annotators - len(self._number)
        if more > 0:
            room = max(more, len(self._number))
            for name in ("_number", "_sum", "_squares"):
                setattr(self, name, np.concatenate([getattr(self, name), np.zeros(room)]))

    def believed(self, annotator: NDArray[np.integer]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the bias of annotators, its variance, and the variance of their noise; who never rated is anybody."""
        known = (annotator >= 0) & (annotator < len(self._number))
        at = np.where(known, annotator, 0)
        number = np.where(known, self._number[at], 0.0)
        mean = np.where(known, self._sum[at], 0.0) / np.maximum(number, 1)
        around = np.where(known, self._squares[at], 0.0) - number * mean**2
        noise = (_WEIGHT * self.usual_noise + np.maximum(around, 0.0)) / (_WEIGHT + np.maximum(number - 1, 0))
        noise = np.maximum(noise, _LEAST)
        share = self.bias_spread / (self.bias_spread + noise / np.maximum(number, 1e-9))
        return share * mean, self.bias_spread * (1 - share), noise

    def precision_of(self, annotator: int) -> float:
        """Return the precision that one more rating of an annotator is expected to add to an item."""
        _, open_bias, noise = self.believed(np.array([annotator]))
        return float(self.unit**2 / (open_bias[0] + noise[0]))

    def learn(
        self,
        annotator: int,
        items: Sequence[int] | IntArray,
        values: Sequence[float] | FloatArray,
        precision: FloatArray,
        shift: FloatArray,
    ) -> range:
        """Take in the ratings of one answer; `precision` and `shift` are the items', changed in place."""
        first, count = self.count, len(items)
        for name, new in (
            ("_item", np.asarray(items, np.int32)),
            ("_annotator", np.full(count, annotator, np.int32)),
            ("_value", np.asarray(values, np.float64)),
            ("_live", np.ones(count, np.bool_)),
            ("_precision", np.zeros(count)),
            ("_shift", np.zeros(count)),
            ("_told", np.zeros((count, 2))),
        ):
            setattr(self, name, _put(getattr(self, name), first, new))
        self.count += count
        rows = np.arange(first, first + count)
        self.grow(annotator + 1)
        # The item as the others place it: what is not known of it is no fault of the annotator.
        self._judge(rows, precision, shift, -1)
        self._mark(rows, precision, shift)
        return range(first, first + count)

    def forget(self, handles: Sequence[int], precision: FloatArray, shift: FloatArray) -> None:
        """Take ratings back: their marks on items and annotators are removed."""
        rows = np.array(handles, np.int64)
        rows = rows[self._live[rows]]
        np.subtract.at(precision, self._item[rows], self._precision[rows])
        np.subtract.at(shift, self._item[rows], self._shift[rows])
        self._count(rows, -1)
        self._live[rows] = False
        self._precision[rows], self._shift[rows], self._told[rows] = 0.0, 0.0, 0.0

    def sweep(self, precision: FloatArray, shift: FloatArray) -> None:
        """Make all marks anew, and learn what is usual and where the scale lies; items' arrays change in place."""
        rows = np.flatnonzero(self._live[: self.count])
        if len(rows) == 0:
            return
        self._count(rows, -1)
        self._judge(rows, precision, shift, 1)
        people = np.unique(self._annotator[rows][self._annotator[rows] >= 0])
        if len(people):
            bias, open_bias, noise = self.believed(people)
            known = len(people) + _PEOPLE
            self.bias_spread = max(float(np.sum(bias**2 + open_bias) + _PEOPLE * _BIAS) / known, _LEAST)
            weight = self._number[people] / (self._number[people] + _WEIGHT)
            usual = float(np.exp(np.average(np.log(noise), weights=weight)))
            self.usual_noise = (usual * len(people) + _PEOPLE * _NOISE) / known
        self._place_scale(rows, precision, shift)
        self._mark(rows, precision, shift)

    def _place_scale(self, rows: NDArray[np.int64], precision: FloatArray, shift: FloatArray) -> None:
        """Find centre and unit by regression of the ratings, less their biases, on the items' places."""
        bias, open_bias, noise = self.believed(self._annotator[rows])
        weight = 1 / (noise + open_bias)
        item = self._item[rows]
        mean = shift[item] / precision[item]
        value = self._value[rows] - bias
        middle, centre = np.average(mean, weights=weight), np.average(value, weights=weight)
        spread = float(weight @ ((mean - middle) ** 2 + 1 / precision[item]))
        self.unit = max(float(weight @ ((mean - middle) * (value - centre))) / spread, 1e-3)
        self.centre = float(centre - self.unit * middle)

    def _judge(self, rows: NDArray[np.int64], precision: FloatArray, shift: FloatArray, sign: int) -> None:
        """Add what ratings say of their annotators: how far they are from their items.

        A place that rests on the rating too is nearer to it than the truth is (`sign` 1), one that does not is
        further off (-1), both by what is not known of the item.
        """
        item = self._item[rows]
        residual = self._value[rows] - self.centre - self.unit * shift[item] / precision[item]
        self._told[rows, 0] = residual
        self._told[rows, 1] = np.maximum(residual**2 + sign * self.unit**2 / precision[item], 0.0)
        self._count(rows, 1)

    def _count(self, rows: NDArray[np.int64], by: int) -> None:
        rows = rows[self._annotator[rows] >= 0]
        who = self._annotator[rows]
        np.add.at(self._number, who, by)
        np.add.at(self._sum, who, by * self._told[rows, 0])
        np.add.at(self._squares, who, by * self._told[rows, 1])

    def _mark(self, rows: NDArray[np.int64], precision: FloatArray, shift: FloatArray) -> None:
        """Make the marks of ratings anew from what is believed of their annotators."""
        bias, open_bias, noise = self.believed(self._annotator[rows])
        new = self.unit**2 / (noise + open_bias)
        moved = new * (self._value[rows] - self.centre - bias) / self.unit
        item = self._item[rows]
        np.add.at(precision, item, new - self._precision[rows])
        np.add.at(shift, item, moved - self._shift[rows])
        self._precision[rows], self._shift[rows] = new, moved


def _put(array: NDArray[_Number], first: int, new: NDArray[_Number]) -> NDArray[_Number]:
    """Write a stretch into an array that grows by doubling."""
    if first + len(new) > len(array):
        longer = np.zeros((max(first + len(new), 2 * len(array), 64), *array.shape[1:]), array.dtype)
        longer[:first] = array[:first]
        array = longer
    array[first : first + len(new)] = new
    return array
