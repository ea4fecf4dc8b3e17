"""Base of direct and likert: a number for each item, on one scale or on one per criterion."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from steelyard.errors import Problem
from steelyard.observations import Observation, Rating
from steelyard.protocols.base import ONLY, Scale, criteria_problems
from steelyard.protocols.per_item import PerItemProtocol, number_on


@dataclass(frozen=True, slots=True)
class Criterion:
    """A criterion with its own scale."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    scale: Annotated[
        Scale | None, Field(description="lower and upper end of the scale; default: those of the protocol")
    ] = None
    labels: Annotated[
        tuple[str, ...], Field(description="labels of the ends of the scale; default: those of the protocol")
    ] = ()
    weight: Annotated[
        float | None,
        Field(gt=0, description="weight in the combined score; without weights there is no combined score"),
    ] = field(default=None, repr=False)


def weight_problems(criteria: Mapping[str, Criterion], scales: Mapping[str, tuple[float, float]]) -> list[Problem]:
    """Refuse weights of criteria on different scales, and a criterion with the name of the combined score."""
    if any(criterion.weight for criterion in criteria.values()) and len(set(scales.values())) > 1:
        remedy = "Use one scale, or leave the weights out."
        return [Problem("weights need one scale for all criteria.", remedy, field="criteria")]
    return criteria_problems(criteria)


@dataclass(frozen=True, slots=True)
class Rated(PerItemProtocol):
    """Ask for a number for each item."""

    default_design: ClassVar[str] = "per_item"
    default_model: ClassVar[str] = "mean"
    new_model: ClassVar[str | None] = "calibrated_scale"
    takes_short_pages: ClassVar[bool] = True
    kinds: ClassVar[tuple[str, ...]] = ("ratings",)

    scale: Annotated[Scale, Field(description="lower and upper end of the scale")] = (0, 100)
    labels: Annotated[tuple[str, ...], Field(description="labels of the ends of the scale")] = ()
    criteria: Annotated[
        dict[str, Criterion], Field(description="several ratings per item, each with its own scale and labels")
    ] = field(default_factory=dict)
    items_per_page: Annotated[int, Field(ge=1, description="items per page")] = 1

    @property
    def task_size(self) -> int:
        """Number of items per task."""
        return self.items_per_page

    @abstractmethod
    def label_counts(self, scale: tuple[float, float]) -> tuple[int, ...]:
        """Return the numbers of labels that fit a scale."""

    def problems(self) -> list[Problem]:
        """Refuse a number of labels that does not fit the scale."""
        if mixed := weight_problems(self.criteria, self.scales()):
            return mixed
        every = {"labels": (self.labels, self.scale)} | {
            f"criteria.{name}.labels": (c.labels, c.scale or self.scale) for name, c in self.criteria.items()
        }
        return [
            Problem(
                f"{len(labels)} labels do not fit the scale {scale[0]:g} to {scale[1]:g}.",
                f"Give {' or '.join(map(str, self.label_counts(scale)))} of them.",
                field=where,
            )
            for where, (labels, scale) in every.items()
            if labels and len(labels) not in self.label_counts(scale)
        ]

    def scales(self) -> dict[str, tuple[float, float]]:
        """Return the scale of each criterion."""
        return {name: c.scale or self.scale for name, c in self.criteria.items()} or {ONLY: self.scale}

    def check_value(self, value: object, criterion: str, field: str) -> float:
        """Return a number on the criterion's scale, or refuse it."""
        return number_on(self.scales()[criterion], value, field)

    def observation(self, item: str, value: Any, criterion: str) -> Observation:
        """Return one rating."""
        return Rating(item, float(value), criterion)
