"""The interface of every protocol; only protocols know the form of an answer."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import AfterValidator

from steelyard.errors import AnswerError, Problem
from steelyard.observations import Observation
from steelyard.records import Answer, Item


def _rising(scale: tuple[float, float]) -> tuple[float, float]:
    if not all(map(math.isfinite, scale)):
        raise ValueError("the scale's ends must be numbers")
    if not scale[0] < scale[1]:
        raise ValueError("the scale's lower end must come first and be lower")
    return scale


Scale: TypeAlias = Annotated[tuple[float, float], AfterValidator(_rising)]


ONLY = ""
"""Name of the criterion of a study that has only one."""

COMBINED = "combined"
"""Name of the weighted mean of the criteria in tables of scores."""


def criteria_problems(criteria: Mapping[str, object]) -> list[Problem]:
    """Refuse a criterion with the name of the combined score."""
    if COMBINED not in criteria:
        return []
    return [Problem(f"'{COMBINED}' is the name of the combined score.", "Rename the criterion.", field="criteria")]


class Protocol(ABC):
    """How a question is asked: number of items per task, valid answers, and the observations they yield.

    Subclasses are frozen dataclasses of settings. `observations` expects an answer that `validate` returned.
    """

    __slots__ = ()

    name: ClassVar[str]
    default_design: ClassVar[str]
    default_model: ClassVar[str]
    """The model of a study that names none. Existing studies depend on it, so it must not change."""
    new_model: ClassVar[str | None] = None
    """The model written into new studies, if it differs from the default."""
    kinds: ClassVar[tuple[str, ...]]
    """The kinds of observations an answer yields, the most informative first."""

    judges_single_items: ClassVar[bool] = False
    """Whether an answer is a mapping with a value for each item, so that single items can be left unjudged."""

    takes_short_pages: ClassVar[bool] = False
    """Whether a task may show fewer items than `task_size`; true if items are judged one by one."""

    @classmethod
    def model_of_new_studies(cls, design: str = "") -> str:
        """The model that is written into a new study.toml.

        With the adaptive design it is the calibrated scale, whose posterior chose the tasks.
        """
        if design == "adaptive":
            return "calibrated_scale"
        return cls.new_model or cls.default_model

    def criterion_names(self) -> tuple[str, ...]:
        """Return the criteria by which items are judged, or (ONLY,) if there is only one."""
        return tuple(getattr(self, "criteria", ())) or (ONLY,)

    def weights(self) -> dict[str, float]:
        """Return the weight of each criterion in the combined score; empty if the settings give none."""
        criteria = getattr(self, "criteria", {})
        weights = {name: getattr(criterion, "weight", None) for name, criterion in criteria.items()}
        return {name: weight or 1.0 for name, weight in weights.items()} if any(weights.values()) else {}

    def fitting_model(self) -> str | None:
        """The model that these settings call for, instead of `default_model` and `new_model`; None if none."""
        return None

    @property
    @abstractmethod
    def task_size(self) -> int:
        """Number of items per task."""

    @property
    def strengths(self) -> int:
        """Number of strengths of a preference between two items; 1 if only the winner is asked."""
        return 1

    @property
    def is_contrastive(self) -> bool:
        """Whether the items of a task are judged against each other, and so belong to one source."""
        return not self.takes_short_pages

    def problems(self) -> list[Problem]:
        """List the settings that conflict."""
        return []

    def scales(self) -> dict[str, tuple[float, float]]:
        """Return the scale of each criterion ('' if there is only one), for protocols that yield ratings."""
        return {}

    def classes(self) -> dict[str, tuple[str, ...]]:
        """Return the classes of each criterion, for protocols that yield labels."""
        return {}

    def item_problems(self, items: Sequence[Item]) -> list[Problem]:
        """List the problems of items that this protocol cannot show."""
        return []

    def check_texts(self, items: Sequence[Item], answer: Any) -> None:  # noqa: B027 - optional
        """Refuse a valid answer that does not fit the texts shown, such as a mark beyond the end."""

    @abstractmethod
    def validate(self, items: Sequence[str], answer: Any, *, lenient: bool = False) -> Answer:
        """Return the answer in its normal form, or refuse it.

        `items` are the ids in display order. `lenient` is for imported logs: missing values are accepted, invalid ones
        are refused.
        """

    @abstractmethod
    def observations(self, items: Sequence[str], answer: Any) -> list[Observation]:
        """Return the observations that a valid answer yields."""


def refuse(what: str, remedy: str, field: str | None = None) -> AnswerError:
    """Build the error for an answer that does not fit its task."""
    return AnswerError(what, remedy, field=field)


def need_items(items: Sequence[str], least: int, protocol: str) -> None:
    """Refuse a task that shows too few items for its protocol."""
    if len(items) < least:
        raise refuse(f"{protocol} needs at least {least} items in a task; this one has {len(items)}.", "Skip it.")


def check_item(items: Sequence[str], name: object, field: str) -> str:
    """Return `name` if it is one of the task's items, or refuse it."""
    if not isinstance(name, str) or name not in items:
        raise refuse(f"{name!r} is not among the items of this task.", f"Name one of: {', '.join(items)}.", field)
    return name
