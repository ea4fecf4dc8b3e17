"""An experiment reproduces a published table or figure; its outcome is a set of claims."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self, TypeAlias

import polars as pl

from steelyard.errors import ConfigError, DataError, Problem

if TYPE_CHECKING:
    from steelyard.report.charts import Chart

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of finished steps and the total."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One of our numbers beside the published one.

    Attributes
    ----------
    what
        What is measured, such as "accuracy of the majority of 10".
    ours, lower, upper
        Our number and the ends of its 95 % interval, where there is one.
    published
        The paper's number; None where the paper prints no comparable one.
    unit
        Unit, such as "%" or "points"; empty for plain numbers.
    why
        One sentence on why the two differ or cannot be compared; empty where they agree.
    """

    what: str
    ours: float
    lower: float | None = None
    upper: float | None = None
    published: float | None = None
    unit: str = ""
    why: str = ""

    @property
    def difference(self) -> float | None:
        """Our number minus the published one."""
        return None if self.published is None else self.ours - self.published


Status: TypeAlias = Literal["reproduced", "approximated", "impossible"]


@dataclass(frozen=True, slots=True)
class Shown:
    """A table or figure of the paper, how far it can be reproduced, and why not fully."""

    what: str
    """As the paper calls it: "Table 1" or "Figure 2"."""
    status: Status
    why: str = ""

    def __post_init__(self) -> None:
        if (self.status == "reproduced") == bool(self.why):
            raise ConfigError(f"{self.what} is {self.status}.", "Give a reason unless it is reproduced.")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of an experiment: claims, the table behind them, the figure, and notes for the reader.

    `chart` is called only when the figure is drawn.
    """

    claims: tuple[Claim, ...]
    table: pl.DataFrame | None = None
    chart: Callable[[], Chart] | None = None
    notes: tuple[str, ...] = ()


class Experiment(ABC):
    """A published table or figure and the code that reproduces it.

    Each is a frozen dataclass of settings (sizes, a seed) whose defaults are the full size. `name` is the path of its
    module below `reproductions`, such as ``cheap_fast.majority_by_annotators``.
    """

    __slots__ = ()

    name: ClassVar[str]
    paper: ClassVar[str]
    """How the paper is cited: "Snow et al., 2008"."""
    title: ClassVar[str]
    """The table or figure, and what it shows: "Figures 3–5: accuracy of a majority by its size"."""
    shows: ClassVar[tuple[Shown, ...]] = ()
    """Tables and figures of the paper that it is about."""
    data: ClassVar[tuple[str, ...]] = ()
    """Files it reads, as paths within the data folder."""

    @abstractmethod
    def small(self) -> Self:
        """Return a version that takes at most a few seconds."""

    @abstractmethod
    def run(self, data: Path, progress: Progress) -> Outcome:
        """Run the experiment on the files in `data`, reporting to `progress`."""

    def check_data(self, data: Path) -> None:
        """Raise DataError if a file is missing."""
        missing = [name for name in self.data if not (data / name).is_file()]
        if missing:
            raise DataError(
                Problem(
                    f"{self.name} needs {name}, which is not in {data}.",
                    f"Put it at {data / name}, or pass the folder of recorded judgments with --data.",
                )
                for name in missing
            )
