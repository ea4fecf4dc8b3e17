"""Base of protocols with one answer per task (and criterion): pairwise, best_worst, ranking."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field

from steelyard.errors import did_you_mean
from steelyard.observations import Observation
from steelyard.protocols.base import Protocol, refuse
from steelyard.records import Answer


@dataclass(frozen=True, slots=True)
class AskedCriterion:
    """A criterion by which the items of a task are compared."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    weight: Annotated[
        float | None,
        Field(gt=0, description="weight in the combined score; without weights there is no combined score"),
    ] = None


class WholeTaskProtocol(Protocol):
    """One answer, or `{criterion: answer}` when there are several criteria."""

    __slots__ = ()

    criteria: Mapping[str, AskedCriterion]

    def without_criteria(self) -> Self:
        """Return the protocol as it asks by one of its criteria."""
        return replace(self, criteria={})  # type: ignore[type-var]  # each subclass is a dataclass

    @abstractmethod
    def validate_one(self, items: Sequence[str], answer: Any, *, lenient: bool = False) -> Answer:
        """Return the answer by one criterion in its normal form, or refuse it."""

    @abstractmethod
    def observations_of_one(self, items: Sequence[str], answer: Any) -> list[Observation]:
        """Return the observations that a valid answer by one criterion yields."""

    def validate(self, items: Sequence[str], answer: Any, *, lenient: bool = False) -> Answer:
        """Return the answer in its normal form; an imported log may lack criteria."""
        if not self.criteria:
            return self.validate_one(items, answer, lenient=lenient)
        names = self.criterion_names()
        if not isinstance(answer, Mapping):
            raise refuse(f"an answer by several criteria names them, not {answer!r}.", f"Criteria: {', '.join(names)}.")
        for name in answer:
            if name not in names:
                raise refuse(f"there is no criterion '{name}'.", did_you_mean(str(name), names), str(name))
        answered = [name for name in names if answer.get(name) is not None]
        if not answered or (len(answered) < len(names) and not lenient):
            missing = next(name for name in names if name not in answered)
            raise refuse(f"there is no answer for {missing} yet.", "Answer by every criterion.", missing)
        return {name: self.validate_one(items, answer[name], lenient=lenient) for name in answered}

    def observations(self, items: Sequence[str], answer: Any) -> list[Observation]:
        """Return the observations by each criterion."""
        if not self.criteria:
            return self.observations_of_one(items, answer)
        return [
            record._replace(criterion=name)
            for name, own in answer.items()
            for record in self.observations_of_one(items, own)
        ]
