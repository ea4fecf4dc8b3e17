"""A report as data: sections of prose, tables and figures, which pages, files and tests read alike.

A table keeps its whole frame beside the columns that readers see, and each cell knows the number behind its text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

import polars as pl

from steelyard.analysis.tables import Estimate
from steelyard.report.words import between, number, shortened

Row: TypeAlias = Mapping[str, Any]

MOST_ROWS = 300
"""Rows of a table that the page shows; the files have them all."""
DASH = "–"


@dataclass(frozen=True, slots=True)
class Cell:
    """What readers see, and the number (with its interval) behind it, if there is one."""

    text: str
    value: float | None = None
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """One column as readers see it."""

    name: str
    head: str
    cell: Callable[[Row], Cell]
    numeric: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows of data, of which readers see some columns; `name` is also that of its files."""

    name: str
    caption: str
    frame: pl.DataFrame
    columns: tuple[Column, ...]
    note: str = ""

    @property
    def shown(self) -> pl.DataFrame:
        """The rows that the page shows: all, or the first and the last."""
        if self.frame.height <= MOST_ROWS:
            return self.frame
        half = MOST_ROWS // 2
        return pl.concat([self.frame.head(half), self.frame.tail(half)])

    @property
    def left_out(self) -> int:
        """How many rows the page does not show; they stand in the middle."""
        return self.frame.height - self.shown.height

    def rows(self) -> list[list[Cell]]:
        """The cells of the rows shown."""
        return [[column.cell(row) for column in self.columns] for row in self.shown.iter_rows(named=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A chart, whose title states what it shows; `caption` says what is drawn."""

    name: str
    caption: str
    chart: Any


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A text to be taken as it is, such as study.toml; `file` is what it is called among the files."""

    file: str
    caption: str
    text: str
    wrapped: bool = False


@dataclass(frozen=True, slots=True)
class Example:
    """A task as an annotator saw it: what was asked, the items in the order shown, and what surrounds them."""

    caption: str
    question: str
    items: tuple[str, ...]
    around: tuple[tuple[str, str], ...] = ()
    how: str = ""


Block: TypeAlias = Table | Figure | Prose | Listing | Example


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """One part of a report; `absent` says in a line each what a reader may miss, and why it is not there."""

    key: str
    title: str
    blocks: tuple[Block, ...] = ()
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A whole report."""

    title: str
    question: str
    sections: tuple[Section, ...]
    made: datetime
    software: str

    @property
    def absent(self) -> tuple[str, ...]:
        """What is not in the report, and why."""
        return tuple(line for section in self.sections for line in section.absent)

    def blocks(self) -> list[Block]:
        """Every block, in order."""
        return [block for section in self.sections for block in section.blocks]

    def table(self, name: str) -> Table:
        """Return the table of that name."""
        return next(block for block in self.blocks() if isinstance(block, Table) and block.name == name)


# Columns


def text_column(name: str, head: str, most: int = 200) -> Column:
    """Show a text, cut where it is very long."""
    return Column(name, head, lambda row: Cell(DASH if row[name] is None else shortened(str(row[name]), most)), False)


def count_column(name: str, head: str) -> Column:
    """Show a whole number."""
    return Column(
        name, head, lambda row: Cell(DASH) if row[name] is None else Cell(f"{row[name]:,.0f}", float(row[name]))
    )


def number_column(name: str, head: str, digits: int = 3) -> Column:
    """Show a number with so many digits that mean something."""
    return Column(
        name, head, lambda row: Cell(DASH) if row[name] is None else Cell(number(row[name], digits), float(row[name]))
    )


def money_column(name: str, head: str) -> Column:
    """Show an amount of money in hundredths."""
    return Column(
        name, head, lambda row: Cell(DASH) if row[name] is None else Cell(f"{row[name]:,.2f}", float(row[name]))
    )


def share_column(name: str, head: str) -> Column:
    """Show a share in per cent."""
    return Column(
        name, head, lambda row: Cell(DASH) if row[name] is None else Cell(percent(row[name]), float(row[name]))
    )


def interval_column(
    name: str, head: str, *, lower: str | None = None, upper: str | None = None, digits: int = 2
) -> Column:
    """Show a number with its interval, from the columns NAME_lower and NAME_upper unless others are named.

    `digits` is how many of the interval's width mean something.
    """
    low, high = lower or f"{name}_lower", upper or f"{name}_upper"

    def cell(row: Row) -> Cell:
        if row[name] is None:
            return Cell(DASH)
        estimate = Estimate(float(row[name]), row[low], row[high])
        return Cell(between(estimate, digits), estimate.value, estimate.lower, estimate.upper)

    return Column(name, head, cell)


def rank_column() -> Column:
    """Show a rank with its interval."""

    def cell(row: Row) -> Cell:
        if row["rank"] is None:
            return Cell(DASH)
        low, high = row["rank_lower"], row["rank_upper"]
        text = str(row["rank"]) if low is None or low == high else f"{row['rank']} ({low}–{high})"
        return Cell(text, row["rank"], low, high)

    return Column("rank", "rank", cell)


def time_column(name: str, head: str) -> Column:
    """Show a moment, in UTC."""
    return Column(
        name, head, lambda row: Cell(DASH if row[name] is None else f"{row[name]:%Y-%m-%d %H:%M}"), numeric=False
    )


def percent(share: float, digits: int = 3) -> str:
    """Write a share in per cent."""
    return f"{number(100 * share, digits)}\u00a0%"


# Facts: small tables of one number a row


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure: what it is, the number, its interval and unit; or, instead of a number, a text."""

    what: str
    value: float | None = None
    unit: str = ""
    lower: float | None = None
    upper: float | None = None
    text: str = ""


def facts_table(name: str, caption: str, facts: Sequence[Fact], note: str = "") -> Table:
    """Lay facts out as a table of what and how much."""
    kind: dict[str, Any] = {"what": pl.String, "value": pl.Float64, "unit": pl.String}
    kind |= {"lower": pl.Float64, "upper": pl.Float64, "text": pl.String}
    frame = pl.DataFrame(
        [(f.what, f.value, f.unit, f.lower, f.upper, f.text) for f in facts], schema=kind, orient="row"
    )
    return Table(name, caption, frame, (text_column("what", ""), Column("value", "", _fact_cell)), note)


def _fact_cell(row: Row) -> Cell:
    if row["value"] is None:
        return Cell(row["text"] or DASH)
    estimate = Estimate(row["value"], row["lower"], row["upper"])
    if row["unit"] == "%":
        shown = Estimate(*(None if end is None else 100 * end for end in (row["value"], row["lower"], row["upper"])))  # type: ignore[arg-type]
        said = f"{between(shown, 2)}\u00a0%"
    else:
        whole = estimate.lower is None and float(estimate.value).is_integer()
        said = f"{estimate.value:,.0f}" if whole else between(estimate, 2)
        said = f"{said} {row['unit']}".strip()
    if row["text"]:
        said += f" ({row['text']})"
    return Cell(said, estimate.value, estimate.lower, estimate.upper)
