"""Comparisons of two items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import DataError
from steelyard.observations.base import Observations
from steelyard.observations.index import UNKNOWN, FloatArray, IntArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparisons(Observations):
    """Pairs in the order shown; `outcome` is 1 (left won), -1 (right won) or 0 (tie).

    `strength` is how clearly the winner won, from 1 (slightly) upwards; 0 where it is unknown, and for ties.
    """

    kind: ClassVar[str] = "comparisons"
    item_fields: ClassVar[tuple[str, ...]] = ("left", "right")
    row_fields: ClassVar[tuple[str, ...]] = ("left", "right", "outcome", "strength")
    has_comparisons: ClassVar[bool] = True

    left: IntArray
    right: IntArray
    outcome: NDArray[np.int8]
    strength: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))

    def __post_init__(self) -> None:
        # Other rows put in by `replace` need no strengths where there are none.
        if len(self.strength) != len(self) and not self.strength.any():
            object.__setattr__(self, "strength", np.zeros(len(self), np.int8))
        super().__post_init__()
        self._check_codes("left", self.left, self.items)
        self._check_codes("right", self.right, self.items)
        if (self.left == self.right).any():
            same = self.items[int(self.left[self.left == self.right][0])]
            raise DataError(f"'{same}' is compared with itself.", "Leave that row out.")
        if self.outcome.size and np.abs(self.outcome).max() > 1:
            raise DataError("an outcome is not 1, 0 or -1.", "1: left won, -1: right won, 0: tie.")
        if len(self.strength) != len(self):
            raise DataError(f"{len(self)} comparisons but {len(self.strength)} strengths.", "Give one for each.")
        if self.strength.size and (self.strength.min() < 0 or self.strength[self.outcome == 0].any()):
            raise DataError("a strength is negative, or that of a tie is not 0.", "Use 0 where there is none.")

    def __len__(self) -> int:
        return len(self.left)

    def incidence(self) -> tuple[IntArray, IntArray]:
        """Each comparison concerns two items; all left ones come first."""
        rows = self._rows()
        return np.concatenate([self.left, self.right]), np.concatenate([rows, rows])

    def to_comparisons(self) -> Comparisons:
        """Return these comparisons."""
        return self

    @property
    def has_strength(self) -> bool:
        """Whether any comparison has a known strength."""
        return bool(self.strength.any())

    def without_strength(self) -> Comparisons:
        """Return the comparisons as if only the winner had been asked."""
        return replace(self, strength=np.zeros(len(self), np.int8)) if self.has_strength else self

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
