"""Ratings of single items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steelyard.errors import DataError
from steelyard.observations.base import Observations
from steelyard.observations.index import FloatArray, IntArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Ratings(Observations):
    """Ratings of single items, in the user's `scale`."""

    kind: ClassVar[str] = "ratings"
    item_fields: ClassVar[tuple[str, ...]] = ("item",)
    row_fields: ClassVar[tuple[str, ...]] = ("item", "value")

    item: IntArray
    value: FloatArray
    scale: tuple[float, float]
    scale_known: bool = True
    """False when only the range of the values is known: scores and intervals are not cut at its ends then."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Lower and upper bound of scores and intervals; None where the scale is not known."""
        return self.scale if self.scale_known else None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_codes("item", self.item, self.items)
        low, high = self.scale
        if not low < high:
            raise DataError(f"the scale runs from {low:g} to {high:g}.", "Give the lower end first.")
        if self.value.size and not np.isfinite(self.value).all():
            raise DataError("a rating is not a number.", "Leave out the rows without a value.")
        if self.value.size and (self.value.min() < low or self.value.max() > high):
            outside = self.value[(self.value < low) | (self.value > high)][0]
            raise DataError(
                f"value {outside:g} is outside the scale {low:g} to {high:g}.",
                "Set the scale of the ratings.",
            )

    def __len__(self) -> int:
        return len(self.item)

    def incidence(self) -> tuple[IntArray, IntArray]:
        """Each rating concerns one item."""
        return self.item, self._rows()

    @property
    def unit_value(self) -> FloatArray:
        """The values on [0, 1]."""
        low, high = self.scale
        return (self.value - low) / (high - low)

    def answer_at(self, row: int) -> float:
        """Return the value of a rating, in the user's scale."""
        return float(self.value[row])
