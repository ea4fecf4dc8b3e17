"""Partial ranking with scores: n sliders on one scale, shown together (the task of EASL)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Annotated, Any, ClassVar

from pydantic import Field

from steelyard.errors import Problem
from steelyard.observations import Comparison, Observation, Rating
from steelyard.protocols.base import ONLY, Scale
from steelyard.protocols.per_item import PerItemProtocol, number_on
from steelyard.protocols.rated import Criterion, weight_problems


@dataclass(frozen=True, slots=True)
class ScoredRanking(PerItemProtocol):
    """Ask for n numbers at once, so that items are judged relative to each other.

    One answer yields n ratings and the comparison of every pair: n(n-1)/2 of them, a tie where the values
    differ by no more than `tie_margin` (Sakaguchi & Van Durme 2018, §3).
    """

    name: ClassVar[str] = "scored_ranking"
    default_design: ClassVar[str] = "random_tuples"
    default_model: ClassVar[str] = "easl"
    new_model: ClassVar[str | None] = "calibrated_scale"
    kinds: ClassVar[tuple[str, ...]] = ("ratings", "comparisons")

    size: Annotated[int, Field(ge=2, description="items per task")] = 5
    scale: Annotated[Scale, Field(description="lower and upper end of the sliders")] = (0, 100)
    labels: Annotated[tuple[str, ...], Field(description="labels of the two ends, or of both ends and the middle")] = ()
    tie_margin: Annotated[
        float, Field(ge=0, description="largest difference, in units of the scale, that is a tie")
    ] = 0.0

    criteria: Annotated[
        dict[str, Criterion], Field(description="several sliders per item, each with its own scale and labels")
    ] = field(default_factory=dict, repr=False)

    @property
    def task_size(self) -> int:
        """Number of items per task."""
        return self.size

    def problems(self) -> list[Problem]:
        """Refuse labels that are not for the ends, or the ends and the middle."""
        if problems := weight_problems(self.criteria, self.scales()):
            return problems
        if self.labels and len(self.labels) not in {2, 3}:
            return [Problem(f"{len(self.labels)} labels do not fit a slider.", "Give 2 or 3 of them.", field="labels")]
        return []

    def scales(self) -> dict[str, tuple[float, float]]:
        """Return the scale of each criterion."""
        return {name: c.scale or self.scale for name, c in self.criteria.items()} or {ONLY: self.scale}

    def check_value(self, value: object, criterion: str, field: str) -> float:
        """Return a number on the criterion's scale, or refuse it."""
        return number_on(self.scales()[criterion], value, field)

    def observation(self, item: str, value: Any, criterion: str) -> Observation:
        """Return one rating."""
        return Rating(item, float(value), criterion)

    def observations(self, items: Sequence[str], answer: Any) -> list[Observation]:
        """Return the ratings, then every pair in display order."""
        ratings = PerItemProtocol.observations(self, items, answer)
        pairs = []
        for name in self.criterion_names():
            values = {item: value if name == ONLY else value.get(name) for item, value in answer.items()}
            rated_items = [item for item in items if values.get(item) is not None]
            pairs += [
                Comparison(a, b, _sign(values[a] - values[b], self.tie_margin), criterion=name)
                for a, b in combinations(rated_items, 2)
            ]
        return [*ratings, *pairs]


def _sign(difference: float, margin: float) -> int:
    return 0 if abs(difference) <= margin else 1 if difference > 0 else -1
