"""Pairs: listed from any observations, counted in a table, and checked for items that cannot be ordered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import NegativeCycleError, bellman_ford, connected_components

from steelyard.models.comparisons.paired_kernels import PairCounts, count_outcomes, ranking_pairs
from steelyard.observations import UNKNOWN, Choices, Comparisons, FloatArray, IntArray, Rankings

DENSE_CELLS = 1 << 22
"""Up to so many cells, pairs are counted in a square table; beyond, by sorting."""


class Pairs(NamedTuple):
    """Single comparisons as parallel arrays, and the observation (row) each comes from."""

    left: IntArray
    right: IntArray
    outcome: NDArray[np.int8]
    row: IntArray | None
    """None where every row is one comparison."""


def pairs_of(observations: Comparisons | Choices | Rankings) -> Pairs:
    """List the comparisons in some observations.

    A best–worst choice says that best beats the others and that the others beat worst (5 of the 6 pairs of four
    items); one that names the same item as best and worst contradicts itself and says nothing. A ranking says all
    its pairs.
    """
    return _PAIRS[observations.kind](observations)


def _compared(comparisons: Comparisons) -> Pairs:
    return Pairs(comparisons.left, comparisons.right, comparisons.outcome, None)


def _ranked(rankings: Rankings) -> Pairs:
    return Pairs(*ranking_pairs(rankings.start, rankings.item, rankings.rank))


def _chosen(choices: Choices) -> Pairs:
    tuple_items, best, worst = choices.shown, choices.best, choices.worst
    sensible = (best == UNKNOWN) | (best != worst)
    is_item = (tuple_items != UNKNOWN) & sensible[:, None]
    row_b, place_b = np.nonzero(is_item & (best != UNKNOWN)[:, None] & (tuple_items != best[:, None]))
    row_w, place_w = np.nonzero(
        is_item & (worst != UNKNOWN)[:, None] & (tuple_items != worst[:, None]) & (tuple_items != best[:, None])
    )
    winner = np.concatenate([best[row_b], tuple_items[row_w, place_w]])
    loser = np.concatenate([tuple_items[row_b, place_b], worst[row_w]])
    row = np.concatenate([row_b, row_w]).astype(np.int32)
    return Pairs(winner, loser, np.ones(len(row), np.int8), row)


_PAIRS: dict[str, Callable[[Any], Pairs]] = {
    Comparisons.kind: _compared,
    Choices.kind: _chosen,
    Rankings.kind: _ranked,
}


@dataclass(frozen=True, slots=True, eq=False)
class PairTable:
    """Wins, losses and ties of each pair of items; `first` < `second`, pairs sorted."""

    n_items: int
    first: IntArray
    second: IntArray
    wins: FloatArray
    """Times `first` won."""
    losses: FloatArray
    ties: FloatArray

    @classmethod
    def count(cls, pairs: Pairs, n_items: int) -> PairTable:
        """Count comparisons; memory is linear in them, or a few bytes for each of at most 4 million cells."""
        if n_items * n_items <= DENSE_CELLS:
            return cls._count_dense(pairs, n_items)
        swap = pairs.left > pairs.right
        key = pair_key(pairs.left, pairs.right, n_items) * 3
        key += np.where(pairs.outcome == 0, 2, (pairs.outcome > 0) == swap)
        key.sort()
        begins = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.zeros(0, np.int64)
        count = np.diff(np.r_[begins, len(key)]).astype(np.float64)
        cell, how = np.divmod(key[begins], 3)
        distinct, at = np.unique(cell, return_inverse=True)
        by_outcome = np.zeros((3, len(distinct)))
        by_outcome[how, at] = count
        first, second = np.divmod(distinct, n_items)
        return cls(n_items, first.astype(np.int32), second.astype(np.int32), *by_outcome)

    @classmethod
    def _count_dense(cls, pairs: Pairs, n_items: int) -> PairTable:
        counts = count_outcomes(pairs.left, pairs.right, pairs.outcome, n_items)
        right_won, tied, left_won = counts.reshape(3, n_items, n_items).astype(np.int64)
        won, tied = left_won + right_won.T, tied + tied.T
        first, second = np.nonzero(np.triu(won + won.T + tied, 1))
        return cls(
            n_items,
            first.astype(np.int32),
            second.astype(np.int32),
            won[first, second].astype(np.float64),
            won[second, first].astype(np.float64),
            tied[first, second].astype(np.float64),
        )

    @property
    def counts(self) -> PairCounts:
        """The arrays, as the kernels take them."""
        return PairCounts(self.first, self.second, self.wins, self.losses, self.ties)

    @property
    def appearances(self) -> NDArray[np.int64]:
        """How many comparisons each item is in."""
        count = self.wins + self.losses + self.ties
        total = np.bincount(self.first, count, self.n_items) + np.bincount(self.second, count, self.n_items)
        return np.asarray(np.rint(total), np.int64)

    def halved(self) -> PairTable:
        """Count a tie as half a win for each side."""
        half = self.ties / 2
        return PairTable(
            self.n_items, self.first, self.second, self.wins + half, self.losses + half, np.zeros_like(half)
        )

    def untied(self) -> PairTable:
        """Leave ties out, and pairs that only ever tied."""
        is_decided = self.wins + self.losses > 0
        return PairTable(
            self.n_items,
            self.first[is_decided],
            self.second[is_decided],
            self.wins[is_decided],
            self.losses[is_decided],
            np.zeros(int(is_decided.sum())),
        )

    def among(self, items: NDArray[np.int64]) -> PairTable:
        """Renumber to the items given (all that appear must be among them)."""
        if len(items) == self.n_items:
            return self
        code = np.zeros(self.n_items, np.int32)
        code[items] = np.arange(len(items), dtype=np.int32)
        return PairTable(len(items), code[self.first], code[self.second], self.wins, self.losses, self.ties)

    def beats(self) -> tuple[IntArray, IntArray]:
        """List who beat whom, once a pair; a tie counts both ways."""
        up, down = (self.wins + self.ties) > 0, (self.losses + self.ties) > 0
        return (
            np.concatenate([self.first[up], self.second[down]]),
            np.concatenate([self.second[up], self.first[down]]),
        )

    def allows_unbounded_ties(self) -> bool:
        """Whether a model with a tie parameter has no finite maximum because that parameter can grow without bound.

        The likelihoods of Davidson, Rao & Kupper and Glenn & David have none if some scores δ put every winner at
        least 1 above the loser and all that tied at most 1 apart: with ever larger tδ and tie parameter t, no
        observed answer becomes less probable. The inequalities have a solution unless the graph of their bounds has a
        negative cycle.
        """
        if bool(((self.wins > 0) & (self.losses > 0)).any()):
            return False
        up = np.where(self.wins > 0, -1, np.where(self.ties > 0, 1, 0))
        down = np.where(self.losses > 0, -1, np.where(self.ties > 0, 1, 0))
        # A start from which every item can be reached; it has no way back and so is on no cycle.
        start, everyone = self.n_items, np.arange(self.n_items)
        tail = np.concatenate([self.first[up != 0], self.second[down != 0], np.full(self.n_items, start)])
        head = np.concatenate([self.second[up != 0], self.first[down != 0], everyone])
        bound = np.concatenate([up[up != 0], down[down != 0], np.ones(self.n_items, np.int64)])
        graph = sparse.csr_array((bound.astype(np.float64), (tail, head)), shape=(start + 1, start + 1))
        try:
            bellman_ford(graph, indices=[start])
        except NegativeCycleError:
            return False
        return True

    def cell_of(self, left: IntArray, right: IntArray) -> IntArray:
        """Return the place in this table of each pair, which must be in it."""
        own_keys = pair_key(self.first, self.second, self.n_items)
        return np.searchsorted(own_keys, pair_key(left, right, self.n_items)).astype(np.int32)


def pair_key(left: IntArray, right: IntArray, n_items: int) -> NDArray[np.int64]:
    """Number the unordered pairs."""
    return np.minimum(left, right).astype(np.int64) * n_items + np.maximum(left, right)


_MOST_ISLANDS_NAMED = 5
"""Islands up to which their items are named; more are usually the sources of a study."""


@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """Orders that the wins do not determine: unconnected islands, and groups that never lost or never won.

    Without a prior, scores are finite only where there is one island and nobody in `top` or `bottom`
    (Ford 1957: every item must be reachable from every other by a chain of wins).
    """

    n_items: int
    islands: list[list[str]]
    top: list[list[str]]
    """A group here was never beaten by an item outside it, one in `bottom` never beat one."""
    bottom: list[list[str]]

    @classmethod
    def find(cls, winner: IntArray, loser: IntArray, names: list[str]) -> Gaps:
        """Look over who beat whom (parallel arrays of codes)."""
        n = len(names)
        # A part of the wins that ties all items together settles the matter, and is quickly looked over.
        part = slice(None, None, len(winner) // (20 * n)) if len(winner) >= 40 * n else None
        if part is not None and _one_group(winner[part], loser[part], n):
            return cls(n, [], [], [])
        graph = sparse.csr_array((np.ones(len(winner), np.int8), (winner, loser)), shape=(n, n))
        n_weak, weak = connected_components(graph, directed=True, connection="weak")
        n_strong, strong = connected_components(graph, directed=True, connection="strong")
        islands = _groups(weak, names, np.ones(n_weak, bool)) if n_weak > 1 else []
        if n_strong == n_weak:
            return cls(n, islands, [], [])
        across = strong[winner] != strong[loser]
        beaten, beating = np.zeros(n_strong, bool), np.zeros(n_strong, bool)
        beaten[strong[loser[across]]] = True
        beating[strong[winner[across]]] = True
        top, bottom = (_groups(strong, names, which) for which in (~beaten & beating, beaten & ~beating))
        return cls(n, islands, top, bottom)

    @property
    def finite_without_prior(self) -> bool:
        """Whether the likelihood alone has a maximum."""
        return not (self.islands or self.top or self.bottom)

    def sentences(self) -> list[str]:
        """Say in plain words what was found, naming the items (the first few)."""
        sentences = []
        if len(self.islands) > _MOST_ISLANDS_NAMED:
            return [
                f"the items form {len(self.islands):,} groups, such as sources, that were never compared with one "
                "another, so the judgments do not determine the order of items of different groups"
            ]
        if self.islands:
            sentences.append(
                f"{len(self.islands)} groups of items were never compared with one another: "
                f"{_listed(self.islands)}; the judgments do not determine their order"
            )
        # Of two sides of one gap the smaller is named: the other is "the rest".
        top, bottom = (
            [group for group in groups if 2 * len(group) <= self.n_items] for groups in (self.top, self.bottom)
        )
        if top:
            sentences.append(
                f"never beaten: {_listed(top)}; the judgments do not determine the distance to the items below"
            )
        if bottom:
            sentences.append(
                f"never won: {_listed(bottom)}; the judgments do not determine the distance to the items above"
            )
        return sentences


def _one_group(winner: IntArray, loser: IntArray, n: int) -> bool:
    graph = sparse.csr_array((np.ones(len(winner), np.int8), (winner, loser)), shape=(n, n))
    return int(connected_components(graph, directed=True, connection="strong")[0]) == 1


def _groups(label: NDArray[np.int32], names: list[str], wanted: NDArray[np.bool_]) -> list[list[str]]:
    order = np.argsort(label, kind="stable")
    ends = np.cumsum(np.bincount(label, minlength=len(wanted)))
    return [
        [names[code] for code in order[(ends[group - 1] if group else 0) : ends[group]]]
        for group in np.flatnonzero(wanted)
    ]


def _listed(groups: list[list[str]], most: int = 5) -> str:
    groups = sorted(groups, key=len)
    parts = []
    for group in groups[:most]:
        names = ", ".join(f"'{name}'" for name in group[:most])
        more = f" and {len(group) - most} more" if len(group) > most else ""
        parts.append(names + more if len(group) == 1 else f"{{{names}{more}}}")
    more = f" and {len(groups) - most} more" if len(groups) > most else ""
    return ", ".join(parts) + more


def expected_share(theta: FloatArray, share: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Return each item's mean of share(θᵢ − θⱼ) over the other items.

    `share` must be smooth and have share(0) = ½. Beyond 400 items the others are gathered on a grid of 2,000
    points, split linearly between neighbours, which is right to about 1e-5 and takes no N² steps.
    """
    n = len(theta)
    if n == 1:
        return np.full(1, 0.5)
    if n <= 400:
        return np.asarray((share(theta[:, None] - theta).sum(axis=1) - 0.5) / (n - 1))
    low, high = theta.min(), theta.max()
    points = 2000
    width = max((high - low) / (points - 1), 1e-300)
    place = (theta - low) / width
    below = np.minimum(place.astype(np.int64), points - 2)
    part = place - below
    mass = np.bincount(below, 1 - part, points) + np.bincount(below + 1, part, points)
    # share depends on the difference alone, so one row of 2·points − 1 values makes a convolution.
    kernel = share(width * np.arange(-(points - 1), points))
    total = np.convolve(mass, kernel)[points - 1 : 2 * points - 1]
    return (np.interp(theta, low + width * np.arange(points), total) - 0.5) / (n - 1)
