"""One reliability number, with its interval and what it rests on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from steelyard.errors import ConfigError, did_you_mean


@dataclass(frozen=True, slots=True)
class Figure:
    """One number a paper would report.

    Attributes
    ----------
    name
        What it is, such as ``alpha (interval)``.
    value, lower, upper
        The number and the ends of its interval; None, never NaN, where there is none;
        `note` then has the reason.
    interval
        How the interval was made, such as ``bootstrap(items)``; empty when there is none.
    n
        How many of what `interval` names it rests on: items, pairs, tasks, tuples or annotators.
    note
        What it counts, and whatever the reader should know, in plain words.
    """

    name: str
    value: float | None
    lower: float | None = None
    upper: float | None = None
    interval: str = ""
    n: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Significance:
    """A figure that was tested: how probable one at least as far from `null` would be if that were the truth.

    `p_value` is None where the test is not defined; the figure's note then has the reason.
    """

    figure: Figure
    p_value: float | None
    null: float
    test: str


class Figures:
    """What results with several figures share: a table of them, and each by its name."""

    __slots__ = ()

    figures: tuple[Figure, ...]

    @property
    def table(self) -> pl.DataFrame:
        """The figures as a table, a row each."""
        return figures_table(self.figures)

    def __getitem__(self, name: str) -> Figure:
        """Return the figure of that name."""
        for figure in self.figures:
            if figure.name == name:
                return figure
        raise ConfigError(f"there is no figure '{name}' here.", did_you_mean(name, [f.name for f in self.figures]))


def figures_table(figures: Iterable[Figure]) -> pl.DataFrame:
    """Put figures into a table, a row each: figure, value, lower, upper, interval, n, note."""
    return pl.DataFrame(
        [(f.name, f.value, f.lower, f.upper, f.interval, f.n, f.note) for f in figures],
        schema={
            "figure": pl.String,
            "value": pl.Float64,
            "lower": pl.Float64,
            "upper": pl.Float64,
            "interval": pl.String,
            "n": pl.Int64,
            "note": pl.String,
        },
        orient="row",
    )
