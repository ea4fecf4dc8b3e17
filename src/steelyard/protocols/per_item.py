"""Base of protocols with one value per item (and criterion): direct, likert, choice, scored_ranking."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

from steelyard.errors import did_you_mean
from steelyard.observations import Observation
from steelyard.protocols.base import ONLY, Protocol, refuse
from steelyard.records import Answer


class PerItemProtocol(Protocol):
    """`{item: value}`, or `{item: {criterion: value}}` when there are several criteria."""

    __slots__ = ()

    judges_single_items: ClassVar[bool] = True

    @abstractmethod
    def check_value(self, value: object, criterion: str, field: str) -> object:
        """Return a valid value for a criterion, or refuse it."""

    def check_imported(self, value: object, criterion: str, field: str) -> object:
        """Return a valid value of an imported log, or refuse it; by default as strict as live answers."""
        return self.check_value(value, criterion, field)

    @abstractmethod
    def observation(self, item: str, value: Any, criterion: str) -> Observation:
        """Return the observation of one value."""

    def validate(self, items: Sequence[str], answer: Any, *, lenient: bool = False) -> Answer:
        """Return `{item: value}` or `{item: {criterion: value}}` for every item shown."""
        if not isinstance(answer, Mapping):
            raise refuse(
                f"{self.name} takes one value per item, not {type(answer).__name__}.",
                "Answer with {item: value}.",
            )
        for key in answer:
            if key not in items:
                raise refuse(
                    f"{key!r} is not among the items of this task.",
                    f"Give values for: {', '.join(items)}.",
                    str(key),
                )
        answered_names = [item for item in items if answer.get(item) is not None]
        if not answered_names or (len(answered_names) < len(items) and not lenient):
            first_missing = next(item for item in items if item not in answered_names)
            raise refuse(f"'{first_missing}' has no value yet.", "Give every item a value.", first_missing)
        names = self.criterion_names()
        if names == (ONLY,):
            check = self.check_imported if lenient else self.check_value
            return {item: check(answer[item], ONLY, item) for item in answered_names}
        return {item: self._by_criterion(item, answer[item], names, lenient) for item in answered_names}

    def _by_criterion(self, item: str, values: object, names: tuple[str, ...], lenient: bool) -> dict[str, object]:
        if not isinstance(values, Mapping):
            raise refuse(
                f"'{item}' needs a value for each of {', '.join(names)}, not {values!r}.",
                "Answer with {item: {criterion: value}}.",
                item,
            )
        for key in values:
            if key not in names:
                raise refuse(f"there is no criterion {key!r}.", did_you_mean(str(key), names), f"{item}.{key}")
        answered_names = [name for name in names if values.get(name) is not None]
        if not answered_names or (len(answered_names) < len(names) and not lenient):
            first_missing = next(name for name in names if name not in answered_names)
            raise refuse(
                f"'{item}' has no value for {first_missing} yet.",
                "Give every criterion a value.",
                f"{item}.{first_missing}",
            )
        return {name: self.check_value(values[name], name, f"{item}.{name}") for name in answered_names}

    def observations(self, items: Sequence[str], answer: Any) -> list[Observation]:
        """Return one observation per item and criterion, in display order."""
        if self.criterion_names() == (ONLY,):
            return [self.observation(item, answer[item], ONLY) for item in items if item in answer]
        return [
            self.observation(item, value, name)
            for item in items
            if item in answer
            for name, value in answer[item].items()
        ]


def number_on(scale: tuple[float, float], value: object, field: str) -> float:
    """Return `value` if it is a number within the scale."""
    low, high = scale
    remedy = f"Give a number from {low:g} to {high:g}."
    if isinstance(value, bool) or not isinstance(value, Real):
        raise refuse(f"{value!r} is not a number.", remedy, field)
    # Numpy numbers become Python numbers, because the log stores them as JSON.
    number = int(value) if isinstance(value, Integral) else float(value)
    if number != number:  # noqa: PLR0124 - only NaN differs from itself
        raise refuse("nan is not a number.", remedy, field)
    if not low <= number <= high:
        raise refuse("the value is outside the scale.", remedy, field)
    return number
