"""Maxdiff: a best–worst choice as a choice among all ordered pairs of the tuple."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy import special

from steelyard.errors import DataError, NoEvidenceError
from steelyard.models.choices.maxdiff_kernels import (
    BEST_ONLY,
    BOTH,
    WORST_ONLY,
    Tuples,
    choice_pass,
    simulated_gradients,
)
from steelyard.models.comparisons.latent import LatentScale, Prepared
from steelyard.models.comparisons.paired import Pairs, PairTable, pairs_of
from steelyard.models.inference.newton import Estimate, Likelihood, Scatter, Terms
from steelyard.models.inference.resampling import Units, row_weights
from steelyard.observations import UNKNOWN, Choices, FloatArray, IntArray


class ChoiceLikelihood(Likelihood):
    """The likelihood of best–worst choices."""

    def __init__(
        self,
        n_items: int,
        tuples: Tuples,
        first: IntArray,
        second: IntArray,
        pair: IntArray,
        row_weight: FloatArray | None = None,
    ) -> None:
        self.n_items, self.tuples = n_items, tuples
        self.first, self.second, self.pair = first, second, pair
        self.row_weight = np.ones(len(tuples.shown)) if row_weight is None else row_weight

    @classmethod
    def of(cls, n_items: int, tuples: Tuples) -> ChoiceLikelihood:
        """Number the pairs of items that meet in a tuple."""
        width = tuples.shown.shape[1]
        a, b = np.triu_indices(width, 1)
        left, right = tuples.shown[:, a], tuples.shown[:, b]
        is_item = b < tuples.size[:, None]
        pairs = Pairs(left[is_item], right[is_item], np.zeros(int(is_item.sum()), np.int8), None)
        table = PairTable.count(pairs, n_items)
        cell = np.zeros(left.shape, np.int32)
        cell[is_item] = table.cell_of(pairs.left, pairs.right)
        # The kernel reads the pairs of a row one after another, without the places that are not there.
        order = np.argsort(~is_item, axis=1, kind="stable")
        return cls(n_items, tuples, table.first, table.second, np.take_along_axis(cell, order, axis=1))

    def _pass(
        self, by_place: FloatArray, variance: FloatArray | None = None
    ) -> tuple[float, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        if variance is None:
            variance = np.zeros(len(self.first))
        return choice_pass(by_place, self.n_items, self.tuples, self.pair, self.row_weight, variance)

    def at(self, theta: FloatArray, tie: float) -> Terms:
        """Evaluate; there is no tie parameter."""
        value, gradient, weight, *_ = self._pass(theta[self.tuples.shown])
        return Terms(value, gradient, weight)

    def scatter(self, theta: FloatArray, tie: float) -> Scatter:
        """Give every place of every tuple its slope."""
        _, _, _, slope, information, _ = self._pass(theta[self.tuples.shown])
        is_item = np.arange(self.tuples.shown.shape[1]) < self.tuples.size[:, None]
        row = np.repeat(self.tuples.row, self.tuples.size)
        return Scatter(row, self.tuples.shown[is_item], slope[is_item], information[is_item])

    def skew(self, theta: FloatArray, tie: float, variance: FloatArray) -> FloatArray:
        """Move the score of one place of every tuple at a time."""
        tuple_items, size, *_ = self.tuples
        by_place, out, h = theta[tuple_items], np.zeros(self.n_items), 1e-3
        for place in range(tuple_items.shape[1]):
            step = np.zeros(tuple_items.shape)
            step[:, place] = h
            row = np.flatnonzero(size > place)
            up, down = (self._pass(by_place + sign * step, variance)[-1][row] for sign in (1, -1))
            out -= 0.5 * np.bincount(tuple_items[row, place], (up - down) / (2 * h), self.n_items)
        return out

    def perturbations(self, theta: FloatArray, tie: float, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw gradients of answers simulated from the model: their covariance is the information."""
        columns = [
            simulated_gradients(theta, self.tuples, self.row_weight, rng.random(len(self.tuples.shown)))
            for _ in range(count)
        ]
        return np.column_stack(columns)

    def resamples(self, units: Units, replicates: int, seed: int) -> Iterator[Likelihood]:
        """Weight whole choices."""
        for weight in row_weights(units, replicates, seed):
            yield ChoiceLikelihood(
                self.n_items, self.tuples, self.first, self.second, self.pair, weight[self.tuples.row]
            )


@dataclass(frozen=True, slots=True)
class MaxDiff(LatentScale):
    """P(best = i, worst = j) ∝ e^{θᵢ − θⱼ} over the ordered pairs of items in the tuple (Marley & Louviere 2005).

    A choice that names only a best or only a worst item contributes the marginal probability of that item; a choice
    that names the same item as both is left out. In a tuple of two, a difference of 1 equals 2 in Bradley–Terry, so
    the default prior N(0, 1²) is equivalent to N(0, 2²) there.
    """

    name: ClassVar[str] = "maxdiff"
    accepts: ClassVar[tuple[str, ...]] = ("choices",)

    prior_sd: Annotated[
        float | None, Field(gt=0, description="standard deviation of the scores' Gaussian prior; none or inf: no prior")
    ] = 1.0

    def _prepare(self, observations: Choices) -> Prepared:
        tuples, exclusions = usable(observations)
        items = np.unique(tuples.shown[tuples.shown != UNKNOWN]).astype(np.int64)
        code = np.full(len(observations.items) + 1, UNKNOWN, np.int32)
        code[items] = np.arange(len(items), dtype=np.int32)
        tuples = tuples._replace(shown=np.ascontiguousarray(code[tuples.shown]))
        pairs = pairs_of(observations)
        likelihood = ChoiceLikelihood.of(len(items), tuples)
        beats = code[pairs.left], code[pairs.right]

        def notes(estimate: Estimate) -> list[str]:
            return exclusions

        return Prepared(likelihood, items, beats, lambda d, tie: np.asarray(special.expit(2 * d)), notes)


def usable(choices: Choices) -> tuple[Tuples, list[str]]:
    """Keep the informative choices, and return notes on the others."""
    no_best, no_worst = choices.best == UNKNOWN, choices.worst == UNKNOWN
    both = (choices.best == choices.worst) & ~no_best
    size = (choices.shown != UNKNOWN).sum(axis=1)
    is_usable = ~both & ~(no_best & no_worst) & (size >= 2)
    notes = [
        f"{int(count)} choices {what}"
        for count, what in (
            (both.sum(), "name the same item as best and worst and were left out"),
            ((no_best & no_worst).sum(), "name neither best nor worst, and were left out"),
            ((no_best ^ no_worst).sum(), "name only a best or only a worst item and were used as such"),
        )
        if count
    ]
    if not is_usable.any():
        raise NoEvidenceError(
            "no choice names different items as best and worst.", "Collect or import complete choices."
        )
    front = np.argsort(choices.shown[is_usable] == UNKNOWN, axis=1, kind="stable")
    shown_items = np.take_along_axis(choices.shown[is_usable], front, axis=1)
    refuse_repeats(choices, shown_items)
    best, worst = choices.best[is_usable], choices.worst[is_usable]
    kind = np.where(no_worst[is_usable], BEST_ONLY, np.where(no_best[is_usable], WORST_ONLY, BOTH))
    return Tuples(
        shown_items,
        size[is_usable].astype(np.int32),
        _place(shown_items, best),
        _place(shown_items, worst),
        kind.astype(np.int32),
        np.flatnonzero(is_usable).astype(np.int32),
    ), notes


def refuse_repeats(choices: Choices, shown: IntArray) -> None:
    """Refuse a tuple that shows an item twice."""
    ordered = np.sort(shown, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != UNKNOWN)
    if twice.any():
        name = choices.items[int(ordered[:, 1:][twice][0])]
        raise DataError(f"'{name}' appears twice in one tuple.", "Show each item of a tuple once.")


def _place(shown: IntArray, chosen: IntArray) -> IntArray:
    is_item: NDArray[np.bool_] = (shown == chosen[:, None]) & (chosen != UNKNOWN)[:, None]
    return np.asarray(is_item.argmax(axis=1), np.int32)
