"""Rating scales with a few labelled steps (Likert-type)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from steelyard.errors import Problem
from steelyard.protocols.base import Scale, refuse
from steelyard.protocols.rated import Rated


@dataclass(frozen=True, slots=True)
class Likert(Rated):
    """Ask for one of a few steps, 1 to 5 by default."""

    name: ClassVar[str] = "likert"

    scale: Annotated[Scale, Field(description="lowest and highest step, whole numbers")] = (1, 5)

    def label_counts(self, scale: tuple[float, float]) -> tuple[int, ...]:
        """Labels for the two ends, or for every step."""
        return (2, int(scale[1] - scale[0]) + 1)

    def problems(self) -> list[Problem]:
        """Refuse steps that are not whole numbers, and labels that do not fit them."""
        uneven = [
            Problem(
                f"the steps {low:g} to {high:g} are not whole numbers.",
                "Use whole numbers, or the protocol direct.",
                field=f"criteria.{name}.scale" if name else "scale",
            )
            for name, (low, high) in self.scales().items()
            if low != int(low) or high != int(high)
        ]
        # super() fails here: a dataclass with slots is a new class.
        return uneven or Rated.problems(self)

    def check_value(self, value: object, criterion: str, field: str) -> int:
        """Return a step of the criterion's scale, or refuse it."""
        low, high = self.scales()[criterion]
        number = Rated.check_value(self, value, criterion, field)
        if number != int(number):
            raise refuse(f"{number:g} is not a step.", f"Give a whole number from {low:g} to {high:g}.", field)
        return int(number)
