"""Direct assessment: a slider on a bounded scale for each item, one or several items per page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steelyard.protocols.rated import Rated


@dataclass(frozen=True, slots=True)
class Direct(Rated):
    """Ask for a number on a slider: how positive, how adequate, how likely."""

    name: ClassVar[str] = "direct"

    def label_counts(self, scale: tuple[float, float]) -> tuple[int, ...]:
        """Labels for the two ends, or for the ends and the middle."""
        return (2, 3)
