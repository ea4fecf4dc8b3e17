"""What every protocol offers; the only place that knows an answer's shape."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import AfterValidator

from steelyard.errors import AnswerError, Problem
from steelyard.observations import Observation
from steelyard.records import Answer


def _rising(scale: tuple[float, float]) -> tuple[float, float]:
    if not all(map(math.isfinite, scale)):
        raise ValueError("the scale's ends must be numbers")
    if not scale[0] < scale[1]:
        raise ValueError("the scale's lower end must come first and be lower")
    return scale


Scale: TypeAlias = Annotated[tuple[float, float], AfterValidator(_rising)]


class Protocol(ABC):
    """How people are asked: how many items a task shows, which answers are valid, what they say.

    Subclasses are frozen dataclasses of settings. `observations` takes an answer that `validate` returned.
    """

    __slots__ = ()

    name: ClassVar[str]
    default_design: ClassVar[str]
    default_model: ClassVar[str]
    """The model of a study that names none. Running studies rely on it, so it stays."""
    new_model: ClassVar[str | None] = None
    """The model that new studies are made with, where it is not the default."""
    kinds: ClassVar[tuple[str, ...]]
    """The kinds of observations an answer yields, the most telling first."""

    takes_short_pages: ClassVar[bool] = False
    """Whether a task may show fewer items than `task_size`: true where each item is judged by itself."""

    @classmethod
    def model_of_new_studies(cls) -> str:
        """The model that is written into a new study.toml."""
        return cls.new_model or cls.default_model

    @property
    @abstractmethod
    def task_size(self) -> int:
        """How many items one task shows."""

    def problems(self) -> list[Problem]:
        """Name the settings that do not go together."""
        return []

    def scales(self) -> dict[str, tuple[float, float]]:
        """The scale of each criterion ('' when there is only one), for protocols that yield ratings."""
        return {}

    def classes(self) -> dict[str, tuple[str, ...]]:
        """The classes of each criterion, for protocols that yield labels."""
        return {}

    @abstractmethod
    def validate(self, items: Sequence[str], answer: Any, *, lenient: bool = False) -> Answer:
        """Return the answer in its plain form, or refuse it.

        `items` are the ids shown, in order. `lenient` is for logs from elsewhere: what is missing may stay
        missing, what is wrong is refused all the same.
        """

    @abstractmethod
    def observations(self, items: Sequence[str], answer: Any) -> list[Observation]:
        """Say what a valid answer tells about the items."""


def refuse(what: str, remedy: str, field: str | None = None) -> AnswerError:
    """Build the error for an answer that does not fit its task."""
    return AnswerError(what, remedy, field=field)


def need_items(items: Sequence[str], least: int, protocol: str) -> None:
    """Refuse a task that shows too few items for its protocol."""
    if len(items) < least:
        raise refuse(f"{protocol} needs at least {least} items in a task; this one has {len(items)}.", "Skip it.")


def known_item(items: Sequence[str], name: object, field: str) -> str:
    """Return `name` if it is among the items shown."""
    if not isinstance(name, str) or name not in items:
        raise refuse(f"{name!r} is not among the items of this task.", f"Name one of: {', '.join(items)}.", field)
    return name
