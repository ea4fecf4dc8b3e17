"""Labels: one of a few classes for each item."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from steelyard.errors import Problem, did_you_mean
from steelyard.observations import Label, Observation
from steelyard.protocols.base import ONLY, refuse
from steelyard.protocols.per_item import PerItemProtocol


@dataclass(frozen=True, slots=True)
class ChoiceCriterion:
    """A criterion with its own classes."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    labels: Annotated[tuple[str, ...], Field(description="the labels; default: those of the protocol")] = ()


@dataclass(frozen=True, slots=True)
class Choice(PerItemProtocol):
    """Ask for one label per item: entailed or not, word sense, emotion."""

    name: ClassVar[str] = "choice"
    default_design: ClassVar[str] = "per_item"
    default_model: ClassVar[str] = "majority"
    takes_short_pages: ClassVar[bool] = True
    kinds: ClassVar[tuple[str, ...]] = ("labels",)

    labels: Annotated[tuple[str, ...], Field(description="the labels, at least two")] = ()
    criteria: Annotated[
        dict[str, ChoiceCriterion], Field(description="several questions per item, each with its own labels")
    ] = field(default_factory=dict)
    items_per_page: Annotated[int, Field(ge=1, description="items per page")] = 1

    @property
    def task_size(self) -> int:
        """Number of items per task."""
        return self.items_per_page

    def problems(self) -> list[Problem]:
        """Refuse fewer than two classes, and duplicate classes."""
        problems = []
        for criterion, labels in self.classes().items():
            where = f"criteria.{criterion}.labels" if criterion else "labels"
            if len(labels) < 2:
                problems.append(Problem(f"{len(labels)} labels to choose from.", "Give at least two.", field=where))
            elif len(set(labels)) < len(labels):
                problems.append(Problem("a label appears twice.", "Give each label once.", field=where))
        return problems

    def classes(self) -> dict[str, tuple[str, ...]]:
        """Return the classes of each criterion."""
        return {name: c.labels or self.labels for name, c in self.criteria.items()} or {ONLY: self.labels}

    def check_value(self, value: object, criterion: str, field: str) -> str:
        """Return one of the criterion's labels, or refuse it."""
        labels = self.classes()[criterion]
        if value not in labels:
            raise refuse(f"{value!r} is not one of the labels.", did_you_mean(str(value), labels), field)
        return str(value)

    def observation(self, item: str, value: Any, criterion: str) -> Observation:
        """Return one label."""
        return Label(item, value, criterion)
