"""Comparisons of two items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import DataError
from steelyard.observations.base import Observations
from steelyard.observations.index import UNKNOWN, FloatArray, IntArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparisons(Observations):
    """Pairs in the order shown; `outcome` is 1 (left won), -1 (right won) or 0 (tie)."""

    kind: ClassVar[str] = "comparisons"
    item_fields: ClassVar[tuple[str, ...]] = ("left", "right")
    row_fields: ClassVar[tuple[str, ...]] = ("left", "right", "outcome")
    has_comparisons: ClassVar[bool] = True

    left: IntArray
    right: IntArray
    outcome: NDArray[np.int8]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_codes("left", self.left, self.items)
        self._check_codes("right", self.right, self.items)
        if (self.left == self.right).any():
            same = self.items[int(self.left[self.left == self.right][0])]
            raise DataError(f"'{same}' is compared with itself.", "Leave that row out.")
        if self.outcome.size and np.abs(self.outcome).max() > 1:
            raise DataError("an outcome is not 1, 0 or -1.", "1: left won, -1: right won, 0: tie.")

    def __len__(self) -> int:
        return len(self.left)

    def incidence(self) -> tuple[IntArray, IntArray]:
        """Each comparison concerns two items; all left ones come first."""
        rows = self._rows()
        return np.concatenate([self.left, self.right]), np.concatenate([rows, rows])

    def to_comparisons(self) -> Comparisons:
        """Return these comparisons."""
        return self

    def preferences(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Give the winner 1, the loser −1 and tied items 0."""
        outcome = self.outcome.astype(np.float64)
        return *self.incidence(), np.concatenate([outcome, -outcome])

    def order_at(self, row: int, codes: Sequence[int], *, fully: bool) -> tuple[float, ...] | None:
        """Order the two items of a comparison; they may be tied."""
        if len(codes) != 2:
            return None
        outcome = float(self.outcome[row])
        return tuple(outcome if code == self.left[row] else 0.0 for code in codes)

    def _distinct_under(self, code: IntArray) -> NDArray[np.bool_]:
        left, right = code[self.left], code[self.right]
        return np.asarray((left != right) & (left != UNKNOWN) & (right != UNKNOWN))
