"""Best–worst choices from tuples of items."""

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
class Choices(Observations):
    """Best–worst choices: one row of item codes per tuple (padded with UNKNOWN), and the two chosen."""

    kind: ClassVar[str] = "choices"
    item_fields: ClassVar[tuple[str, ...]] = ("shown", "best", "worst")
    row_fields: ClassVar[tuple[str, ...]] = ("shown", "best", "worst")

    shown: NDArray[np.int32]
    best: IntArray
    worst: IntArray

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_codes("item", self.shown, self.items, lowest=UNKNOWN)
        for name in ("best", "worst"):
            choice = getattr(self, name)
            self._check_codes(name, choice, self.items, lowest=UNKNOWN)
            has_choice = choice != UNKNOWN
            if not (self.shown[has_choice] == choice[has_choice, None]).any(axis=1).all():
                raise DataError(f"a {name} item is not among the items shown.", "Correct that row.")

    def __len__(self) -> int:
        return len(self.shown)

    def incidence(self) -> tuple[IntArray, IntArray]:
        """Each choice concerns all items of its tuple."""
        row, column = np.nonzero(self.shown != UNKNOWN)
        return self.shown[row, column], row.astype(np.int32)

    def preferences(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Give the best item 1, the worst −1 and the others 0."""
        item, row = self.incidence()
        return item, row, (item == self.best[row]).astype(np.float64) - (item == self.worst[row])

    def order_at(self, row: int, codes: Sequence[int], *, fully: bool) -> tuple[float, ...] | None:
        """Order all items of the tuple or, with `fully`, a pair of items that the choice distinguishes."""
        best, worst = int(self.best[row]), int(self.worst[row])
        if UNKNOWN in (best, worst) or best == worst:
            return None
        values = tuple(float(code == best) - float(code == worst) for code in codes)
        if fully:
            return values if len(set(values)) == len(values) and len(codes) == 2 else None
        return values if int((self.shown[row] != UNKNOWN).sum()) == len(codes) else None

    def _distinct_under(self, code: IntArray) -> NDArray[np.bool_]:
        is_item = self.shown != UNKNOWN
        new_codes = code[self.shown]
        # Padding gets codes of its own, so that it counts as different.
        padded = np.where(is_item, new_codes, -2 - np.arange(new_codes.shape[1]))
        distinct = (np.diff(np.sort(padded, axis=1), axis=1) != 0).all(axis=1)
        return np.asarray(distinct & ~(is_item & (new_codes == UNKNOWN)).any(axis=1))
