"""Plackett–Luce: a ranking as a sequence of choices among the remaining items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from steelyard.errors import DataError
from steelyard.models.comparisons.latent import LatentScale, Prepared, compressed
from steelyard.models.comparisons.paired import PairTable, pairs_of
from steelyard.models.comparisons.plackett_luce_kernels import SortedRankings, ranking_pass
from steelyard.models.inference.newton import Estimate, Likelihood, Scatter, Terms
from steelyard.models.inference.resampling import Units, row_weights
from steelyard.observations import Comparisons, FloatArray, IntArray, Rankings

SKEW_PLACES = 12


class RankingLikelihood(Likelihood):
    """The likelihood of rankings, their items sorted best first."""

    def __init__(
        self,
        table: PairTable,
        start: NDArray[np.int64],
        item: IntArray,
        rank: IntArray,
        row_weight: FloatArray | None = None,
        pair: IntArray | None = None,
    ) -> None:
        self.table = table
        self.n_items, self.first, self.second = table.n_items, table.first, table.second
        self.begin, self.item, self.rank = start, item, rank
        self.row_weight = np.ones(len(start) - 1) if row_weight is None else row_weight
        size = np.diff(start)
        self.pair_start = np.r_[0, np.cumsum(size * (size - 1) // 2)]
        if pair is None:
            pairs = pairs_of_sorted(start, item, rank)
            pair = table.cell_of(*pairs)
        self.pair = pair

    def _pass(
        self, by_place: FloatArray, variance: FloatArray | None = None
    ) -> tuple[float, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        if variance is None:
            variance = np.zeros(len(self.first))
        rankings = SortedRankings(self.begin, self.item, self.rank, self.pair_start, self.pair)
        return ranking_pass(by_place, self.n_items, rankings, self.row_weight, variance)

    def at(self, theta: FloatArray, tie: float) -> Terms:
        """Evaluate; there is no tie parameter."""
        value, gradient, weight, *_ = self._pass(theta[self.item])
        return Terms(value, gradient, weight)

    def scatter(self, theta: FloatArray, tie: float) -> Scatter:
        """Give every place of every ranking its slope."""
        _, _, _, slope, information, _ = self._pass(theta[self.item])
        row = np.repeat(np.arange(len(self.begin) - 1, dtype=np.int32), np.diff(self.begin))
        return Scatter(row, self.item, slope, information)

    def skew(self, theta: FloatArray, tie: float, variance: FloatArray) -> FloatArray:
        """Move the scores of one place of every ranking at a time; rankings of more than `SKEW_PLACES` are left out.

        Their many stages make the posterior close to normal, and would cost two passes each.
        """
        by_place, size = theta[self.item], np.diff(self.begin)
        out, h = np.zeros(self.n_items), 1e-3
        for place in range(min(int(size.max()), SKEW_PLACES)):
            row = np.flatnonzero((size > place) & (size <= SKEW_PLACES))
            at = self.begin[row] + place
            step = np.zeros(len(by_place))
            step[at] = h
            up, down = (self._pass(by_place + sign * step, variance)[-1][row] for sign in (1, -1))
            out -= 0.5 * np.bincount(self.item[at], (up - down) / (2 * h), self.n_items)
        return out

    def perturbations(self, theta: FloatArray, tie: float, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw noise along every pair: all its weights are products of chances."""
        return self.edge_noise(self.at(theta, tie).weight, count, rng)

    def resamples(self, units: Units, replicates: int, seed: int) -> Iterator[Likelihood]:
        """Weight whole rankings."""
        for weight in row_weights(units, replicates, seed):
            yield RankingLikelihood(self.table, self.begin, self.item, self.rank, weight, self.pair)


def pairs_of_sorted(start: NDArray[np.int64], item: IntArray, rank: IntArray) -> tuple[IntArray, IntArray]:
    """List the two items of every two places, ranking by ranking."""
    from steelyard.models.comparisons.paired_kernels import ranking_pairs

    left, right, _, _ = ranking_pairs(start, item, rank)
    return left, right


@dataclass(frozen=True, slots=True)
class PlackettLuce(LatentScale):
    """P(ranking) = Π e^{θᵢ} / Σ e^{θⱼ} over the items not yet placed (Luce 1959, Plackett 1975).

    Tied items contribute the mean log-likelihood of all orders among them, so that a tie of two is half a win for each.
    From seven tied items on, Efron's (1977) approximation is used. Comparisons are rankings of two, and give the
    scores of Bradley–Terry with ties as half wins.
    """

    name: ClassVar[str] = "plackett_luce"
    accepts: ClassVar[tuple[str, ...]] = ("rankings", "comparisons")

    def _prepare(self, observations: Rankings | Comparisons) -> Prepared:
        start, item, rank = sorted_rankings(observations)
        table, items = compressed(PairTable.count(pairs_of(observations), len(observations.items)))
        code = np.full(len(observations.items), -1, np.int32)
        code[items] = np.arange(len(items), dtype=np.int32)
        # An item can be missing from the pairs only when it was ranked alone: such places say nothing.
        is_compared = code[item] >= 0
        start = np.r_[0, np.cumsum(is_compared)][start]
        likelihood = RankingLikelihood(table, start, code[item[is_compared]], rank[is_compared])

        def notes(estimate: Estimate) -> list[str]:
            tied = int(table.ties.sum())
            return [f"{tied} tied pairs: tied items count as every order among them, equally"] if tied else []

        return Prepared(likelihood, items, table.beats(), lambda d, tie: np.asarray(special.expit(d)), notes)


def sorted_rankings(observations: Rankings | Comparisons) -> tuple[NDArray[np.int64], IntArray, IntArray]:
    """Return starts, items and ranks with the items of each ranking best first."""
    if isinstance(observations, Comparisons):
        n = len(observations)
        right_first = observations.outcome < 0
        item = np.where(right_first[:, None], *(np.column_stack(pair) for pair in (
            (observations.right, observations.left), (observations.left, observations.right),
        ))).astype(np.int32).ravel()  # fmt: skip
        rank = np.column_stack([np.ones(n, np.int32), 1 + np.abs(observations.outcome)]).astype(np.int32).ravel()
        return 2 * np.arange(n + 1, dtype=np.int64), item, rank
    row = np.repeat(np.arange(len(observations)), np.diff(observations.start))
    order = np.lexsort((observations.rank, row))
    item = observations.item[order]
    # The same item twice in one ranking would beat itself.
    cell = np.sort(row.astype(np.int64) * len(observations.items) + item)
    if (cell[1:] == cell[:-1]).any():
        twice = observations.items[int(cell[1:][cell[1:] == cell[:-1]][0] % len(observations.items))]
        raise DataError(f"'{twice}' appears twice in one ranking.", "Give each item of a ranking one place.")
    return observations.start, item, observations.rank[order]
