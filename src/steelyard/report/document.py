"""A report as data: sections of prose, tables and figures, from which pages and files are written.

A table has its whole frame beside the columns that readers see, and each cell has the number behind its text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

import polars as pl

from steelyard.analysis.tables import Estimate
from steelyard.report.formatting import format_duration, format_interval, format_number, shorten

Row: TypeAlias = Mapping[str, Any]

MOST_ROWS = 300
"""Maximum number of rows of a table on the page, if it does not say otherwise."""
DASH = "–"


@dataclass(frozen=True, slots=True)
class Cell:
    """A text, and the number (with its interval) that it shows, if any."""

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
    """A data frame, of which readers see some columns; `name` is also the name of its files."""

    name: str
    caption: str
    frame: pl.DataFrame
    columns: tuple[Column, ...]
    note: str = ""
    rules: tuple[int, ...] = ()
    """Rows before which a line separates groups of rows, in the whole frame."""
    most: int = MOST_ROWS
    """Maximum number of rows on the page; the files have all rows."""

    @property
    def shown(self) -> pl.DataFrame:
        """The rows that the page shows: all, or the first and the last."""
        if self.frame.height <= self.most:
            return self.frame
        half = self.most // 2
        return pl.concat([self.frame.head(half), self.frame.tail(half)])

    @property
    def rules_shown(self) -> tuple[int, ...]:
        """The rows shown before which a line is drawn."""
        half = self.shown.height // 2
        moved = (row if row < half or not self.left_out else row - self.left_out for row in self.rules)
        return tuple(row for row in moved if row >= 0)

    @property
    def left_out(self) -> int:
        """Number of rows in the middle that the page does not show."""
        return self.frame.height - self.shown.height

    def rows(self) -> list[list[Cell]]:
        """The cells of the rows shown."""
        return [[column.cell(row) for column in self.columns] for row in self.shown.iter_rows(named=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A chart, whose title states the result; `caption` describes what is drawn."""

    name: str
    caption: str
    chart: Any


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A verbatim text, such as study.toml; `file` is its file name."""

    file: str
    caption: str
    text: str
    wrapped: bool = False


@dataclass(frozen=True, slots=True)
class Example:
    """A task as an annotator saw it: the question, the items in the order of display, and their context."""

    caption: str
    question: str
    items: tuple[str, ...]
    around: tuple[tuple[str, str], ...] = ()
    how: str = ""


Block: TypeAlias = Table | Figure | Prose | Listing | Example


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """One section of a report; `absent` lists what is missing from it, and why."""

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
    created: datetime
    software: str

    @property
    def absent(self) -> tuple[str, ...]:
        """What is missing from the report, and why."""
        return tuple(line for section in self.sections for line in section.absent)

    def blocks(self) -> list[Block]:
        """Every block, in order."""
        return [block for section in self.sections for block in section.blocks]

    def table(self, name: str) -> Table:
        """Return the table of that name."""
        return next(block for block in self.blocks() if isinstance(block, Table) and block.name == name)


# Columns


def text_column(name: str, head: str, most: int = 200) -> Column:
    """Show a text, shortened if it is very long."""
    return Column(name, head, lambda row: Cell(DASH if row[name] is None else shorten(str(row[name]), most)), False)


def count_column(name: str, head: str) -> Column:
    """Show a whole number."""
    return Column(
        name, head, lambda row: Cell(DASH) if row[name] is None else Cell(f"{row[name]:,.0f}", float(row[name]))
    )


def number_column(name: str, head: str, digits: int = 3) -> Column:
    """Show a number with this many significant digits."""
    return Column(
        name,
        head,
        lambda row: Cell(DASH) if row[name] is None else Cell(format_number(row[name], digits), float(row[name])),
    )


def money_column(name: str, head: str) -> Column:
    """Show an amount of money with two decimals."""
    return Column(
        name, head, lambda row: Cell(DASH) if row[name] is None else Cell(f"{row[name]:,.2f}", float(row[name]))
    )


def duration_column(name: str, head: str) -> Column:
    """Show a number of hours as a duration: 40 s, 12 min, 3.5 h."""
    return Column(
        name, head, lambda row: Cell(DASH) if row[name] is None else Cell(format_duration(row[name]), float(row[name]))
    )


def share_column(name: str, head: str) -> Column:
    """Show a proportion in per cent."""
    return Column(
        name, head, lambda row: Cell(DASH) if row[name] is None else Cell(percent(row[name]), float(row[name]))
    )


def interval_column(
    name: str, head: str, *, lower: str | None = None, upper: str | None = None, digits: int = 2
) -> Column:
    """Show a number with its interval, by default from the columns NAME_lower and NAME_upper.

    `digits` is the number of significant digits of the interval's width.
    """
    low, high = lower or f"{name}_lower", upper or f"{name}_upper"

    def cell(row: Row) -> Cell:
        if row[name] is None:
            return Cell(DASH)
        estimate = Estimate(float(row[name]), row[low], row[high])
        return Cell(format_interval(estimate, digits), estimate.value, estimate.lower, estimate.upper)

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
    """Show a date and time in UTC."""
    return Column(
        name, head, lambda row: Cell(DASH if row[name] is None else f"{row[name]:%Y-%m-%d %H:%M}"), numeric=False
    )


def percent(share: float, digits: int = 3) -> str:
    """Format a proportion in per cent."""
    return f"{format_number(100 * share, digits)}\u00a0%"


# Facts: small tables with one number per row


@dataclass(frozen=True, slots=True)
class Fact:
    """One number with its name, interval and unit; or a text instead of a number."""

    what: str
    value: float | None = None
    unit: str = ""
    lower: float | None = None
    upper: float | None = None
    text: str = ""


def facts_table(name: str, caption: str, facts: Sequence[Fact], note: str = "") -> Table:
    """Tabulate facts: name and value."""
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
        lower, upper = (None if end is None else 100 * end for end in (estimate.lower, estimate.upper))
        percentages = Estimate(100 * estimate.value, lower, upper)
        text = f"{format_interval(percentages, 2)}\u00a0%"
    elif row["unit"] == "hours" and estimate.lower is None:
        text = format_duration(estimate.value)
    else:
        whole = estimate.lower is None and float(estimate.value).is_integer()
        text = f"{estimate.value:,.0f}" if whole else format_interval(estimate, 2)
        text = f"{text} {row['unit']}".strip()
    if row["text"]:
        text += f" ({row['text']})"
    return Cell(text, estimate.value, estimate.lower, estimate.upper)
