"""What an experiment is: a published result that can be made again, and what came of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias

import polars as pl

from steelyard.errors import DataError, Problem

if TYPE_CHECKING:
    from steelyard.report.charts import Chart

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how many steps are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One number of ours beside the published one.

    Attributes
    ----------
    what
        What is counted, such as "accuracy of the majority of 10".
    ours, lower, upper
        Our number and the ends of its 95 % interval, where there is one.
    published
        The paper's number; None where the paper has none that can be compared.
    unit
        What it is counted in, such as "%" or "points"; empty for plain numbers.
    why
        Why the two differ, or why they cannot be compared, in a sentence; empty where they agree.
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
        """Ours less the published number."""
        return None if self.published is None else self.ours - self.published


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an experiment: its claims, the table behind them, its figure, and what a reader should know.

    `chart` is called when the figure is wanted.
    """

    claims: tuple[Claim, ...]
    table: pl.DataFrame | None = None
    chart: Callable[[], Chart] | None = None
    notes: tuple[str, ...] = ()


class Experiment(ABC):
    """A published table or figure that can be made again.

    Each is a frozen dataclass of settings (sizes, a seed), whose defaults are the full size. Its `name` is that of
    its module below `steelyard.experiments`, such as ``cheap_fast.majority_by_annotators``.
    """

    __slots__ = ()

    name: ClassVar[str]
    paper: ClassVar[str]
    """How the paper is cited: "Snow et al., 2008"."""
    title: ClassVar[str]
    """The table or figure, and what it shows: "Figures 3–5: accuracy of a majority by its size"."""
    data: ClassVar[tuple[str, ...]] = ()
    """The files it reads, by their path within the folder of shared data."""

    @abstractmethod
    def small(self) -> Self:
        """Return the version that takes a few seconds at most."""

    @abstractmethod
    def run(self, data: Path, progress: Progress) -> Outcome:
        """Do it, with the files in `data`; `progress` is told how far it is."""

    def check_data(self, data: Path) -> None:
        """Refuse to start where a file is missing."""
        missing = [name for name in self.data if not (data / name).is_file()]
        if missing:
            raise DataError(
                Problem(
                    f"{self.name} needs {name}, which is not in {data}.",
                    f"Put it there as {data / name}, or say with --data where the folder of shared data is.",
                )
                for name in missing
            )
