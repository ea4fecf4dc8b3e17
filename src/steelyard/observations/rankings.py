"""Rankings with ties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import DataError
from steelyard.observations.base import Observations
from steelyard.observations.comparisons import Comparisons
from steelyard.observations.index import UNKNOWN, FloatArray, IntArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Rankings(Observations):
    """Rankings with ties: row r ranks `item[start[r]:start[r+1]]`, with `rank` 1 for the best tier."""

    kind: ClassVar[str] = "rankings"
    item_fields: ClassVar[tuple[str, ...]] = ("item",)
    row_fields: ClassVar[tuple[str, ...]] = ()
    has_comparisons: ClassVar[bool] = True

    start: NDArray[np.int64]
    item: IntArray
    rank: IntArray

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_codes("item", self.item, self.items)
        row = np.repeat(np.arange(len(self)), np.diff(self.start)) if len(self.start) > 1 else np.zeros(0, np.int64)
        order = np.lexsort((self.item, row)) if len(row) == len(self.item) else np.zeros(0, np.int64)
        again = (row[order][1:] == row[order][:-1]) & (self.item[order][1:] == self.item[order][:-1])
        if again.any():
            twice = self.items[int(self.item[order][1:][again][0])]
            raise DataError(f"'{twice}' appears twice in one ranking.", "Rank every item once.")
        if self.start[0] != 0 or self.start[-1] != len(self.item) or (np.diff(self.start) < 0).any():
            raise DataError("the starts of the rankings do not match their items.")

    def __len__(self) -> int:
        return len(self.start) - 1

    def incidence(self) -> tuple[IntArray, IntArray]:
        """Each ranking concerns all its items."""
        return self.item, np.repeat(self._rows(), np.diff(self.start))

    def to_comparisons(self) -> Comparisons:
        """Return every pair within a ranking, the item listed first on the left."""
        empty = np.zeros(0, np.int64)
        rows, firsts, seconds = [empty], [empty], [empty]
        sizes = np.diff(self.start)
        for size in np.unique(sizes):
            ranking = np.flatnonzero(sizes == size)
            first, second = np.triu_indices(int(size), 1)
            rows.append(np.repeat(ranking, len(first)))
            firsts.append((self.start[ranking][:, None] + first).ravel())
            seconds.append((self.start[ranking][:, None] + second).ravel())
        order = np.argsort(np.concatenate(rows), kind="stable")
        row, a, b = (np.concatenate(parts)[order] for parts in (rows, firsts, seconds))
        return Comparisons(
            items=self.items,
            annotators=self.annotators,
            tasks=self.tasks,
            annotator=self.annotator[row],
            task=self.task[row],
            left=self.item[a],
            right=self.item[b],
            outcome=np.sign(self.rank[b] - self.rank[a]).astype(np.int8),
        )

    @property
    def pairs_per_ranking(self) -> NDArray[np.int64]:
        """The number of comparisons that each ranking amounts to."""
        size = np.diff(self.start)
        return np.asarray(size * (size - 1) // 2)

    def preferences(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Count every pair of a ranking: the winner 1, the loser −1, tied items 0."""
        item, pair, value = self.to_comparisons().preferences()
        return item, np.repeat(self._rows(), self.pairs_per_ranking)[pair], value

    def subset(self, rows: NDArray[np.bool_] | NDArray[np.integer]) -> Self:
        """Return some rankings, by mask or by position."""
        chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else np.asarray(rows, np.int64)
        size = np.diff(self.start)[chosen]
        start = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
        entry = np.repeat(self.start[chosen] - start[:-1], size) + np.arange(start[-1])
        return replace(
            self,
            start=start,
            item=self.item[entry],
            rank=self.rank[entry],
            annotator=self.annotator[chosen],
            task=self.task[chosen],
        )

    def order_at(self, row: int, codes: Sequence[int], *, fully: bool) -> tuple[float, ...] | None:
        """Order the items by their ranks; they may be tied."""
        span = slice(int(self.start[row]), int(self.start[row + 1]))
        rank = dict(zip(self.item[span].tolist(), self.rank[span].tolist(), strict=True))
        return tuple(-float(rank[code]) for code in codes)

    def _distinct_under(self, code: IntArray) -> NDArray[np.bool_]:
        item, row = code[self.item], self.incidence()[1]
        order = np.lexsort((item, row))
        repeated = (row[order][1:] == row[order][:-1]) & (item[order][1:] == item[order][:-1])
        keep = np.ones(len(self), np.bool_)
        keep[row[order][1:][repeated]] = False
        keep[row[item == UNKNOWN]] = False
        return keep
