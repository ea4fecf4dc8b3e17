"""Rows of judgments under our column names, on their way to integer codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypedDict

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.errors import DataError
from steelyard.formats.problems import Problems
from steelyard.formats.tables import Table, strings
from steelyard.observations import UNKNOWN, Index, IntArray, Observations

BoolArray = NDArray[np.bool_]

_SAMPLE = 20_000


class Who(TypedDict):
    """The part that every kind of observations shares, apart from its items."""

    annotators: Index
    annotator: IntArray
    tasks: Index
    task: IntArray


@dataclass(frozen=True, slots=True)
class Reading:
    """Rows found good (`keep`, one flag per row), and how to make observations of a choice of them."""

    keep: BoolArray
    build: Callable[[BoolArray], Observations]


@dataclass(frozen=True)
class Rows:
    """A frame with our column names, from a table whose lines it can still name.

    `headers` says what the file calls each field; `origin` holds each row's number in the table when the
    two differ.
    """

    frame: pl.DataFrame
    table: Table
    headers: dict[str, str]
    strict: bool = False
    origin: NDArray[np.intp] | None = None
    notes: list[str] = field(default_factory=list)

    @cached_property
    def problems(self) -> Problems:
        """What is found wrong."""
        return Problems(self.table.file, self.lines)

    def lines(self, rows: Sequence[int]) -> list[int]:
        """Return the lines of the file that some rows come from."""
        return self.table.lines(rows if self.origin is None else [int(self.origin[row]) for row in rows])

    def __len__(self) -> int:
        return self.frame.height

    def __contains__(self, name: str) -> bool:
        return name in self.frame.columns

    def header(self, name: str) -> str:
        """Return what the file calls a field."""
        return self.headers.get(name, name)

    def text(self, name: str) -> pl.Series:
        """Return a column as strings, untrimmed."""
        return strings(self.frame[name], self.table.file, self.header(name))

    def lists(self, name: str, dtype: pl.DataType) -> pl.Series:
        """Return a column of lists with their values as strings."""
        try:
            return self.frame[name].cast(dtype)
        except pl.exceptions.PolarsError:
            raise DataError(
                f"the column holds {str(self.frame[name].dtype).lower()} values.",
                "Give a list of ids in each row.",
                file=self.table.file,
                field=self.header(name),
            ) from None

    def shown(self, name: str, row: int) -> str:
        """Return one value for a message."""
        value: Any = self.frame[name][row]
        return "" if value is None else str(value).strip()

    def irregular(self, rows: BoolArray, what: str, done: str, name: str) -> None:
        """Count rows that are odd but usable or droppable; when strict, refuse them."""
        count = int(rows.sum())
        if not count:
            return
        if self.strict:
            self.problems.at(rows, f"{what}.", "Complete or remove the row.", self.header(name))
        else:
            self.notes.append(f"{what} in {counted(count, 'row')}: {done}.")

    def refuse_empty(self, codes: IntArray, name: str) -> None:
        """Note rows whose id is empty as wrong."""
        self.problems.at(codes == UNKNOWN, f"the {name} is empty.", "Give its id.", self.header(name))

    @cached_property
    def _who(self) -> Who:
        coded: dict[str, tuple[Index, IntArray]] = {}
        for name in ("annotator", "task"):
            if name in self:
                index, (codes,) = encode(self.text(name))
                self.irregular(codes == UNKNOWN, f"no {name}", f"kept, {name} unknown", name)
                coded[name] = index, codes
            else:
                coded[name] = Index(), np.full(len(self), UNKNOWN, np.int32)
        return Who(
            annotators=coded["annotator"][0],
            annotator=coded["annotator"][1],
            tasks=coded["task"][0],
            task=coded["task"][1],
        )

    def check_who(self) -> None:
        """Look at annotators and tasks now, so that what is wrong with them is reported with the rest."""
        _ = self._who

    def who(self, keep: BoolArray) -> Who:
        """Return the annotators and tasks of the rows kept."""
        annotators, (annotator,) = subset(self._who["annotators"], keep, self._who["annotator"])
        tasks, (task,) = subset(self._who["tasks"], keep, self._who["task"])
        return Who(annotators=annotators, annotator=annotator, tasks=tasks, task=task)


def counted(count: int, noun: str) -> str:
    """Return '1 row' or '2 rows'."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def encode(*columns: pl.Series) -> tuple[Index, list[IntArray]]:
    """Code several columns of ids by one index in sorted order; empty ids become UNKNOWN.

    Spaces around ids are removed. Only distinct values are handled in Python.
    """
    frame = pl.DataFrame([column.rename(str(number)) for number, column in enumerate(columns)])
    # Looking for distinct values in all rows costs as much as coding them, and the first rows often have all.
    raw = _distinct(frame.head(_SAMPLE))
    physical = _physical(frame, raw)
    if physical.null_count().row(0) != frame.null_count().row(0):
        raw = _distinct(frame)
        physical = _physical(frame, raw)
    names = raw.str.strip_chars().to_list()
    index = Index(sorted(set(names) - {""}))
    codes = {name: code for code, name in enumerate(index.ids)}
    # One more than needed: null is coded -1, and so takes the last.
    table = np.array([*(codes.get(name, UNKNOWN) for name in names), UNKNOWN], np.int32)
    return index, [
        table.take((column.cast(pl.Int32).fill_null(-1) if column.null_count() else column).to_numpy())
        for column in physical
    ]


def _distinct(frame: pl.DataFrame) -> pl.Series:
    found = frame.select(pl.all().unique().implode())
    columns: list[pl.Series] = [found[name][0].rename("") for name in found.columns]
    return pl.concat(columns).unique().drop_nulls()


def _physical(frame: pl.DataFrame, raw: pl.Series) -> pl.DataFrame:
    return frame.select(pl.all().cast(pl.Enum(raw), strict=False).to_physical())


def subset(index: Index, keep: BoolArray | None, *codes: NDArray[np.int32]) -> tuple[Index, list[NDArray[np.int32]]]:
    """Take the rows kept, and only the ids that occur in them."""
    kept = [column if keep is None or keep.all() else column[keep] for column in codes]
    occurs = np.zeros(len(index) + 1, np.bool_)
    for column in kept:
        occurs[column] = True
    occurs = occurs[:-1]
    if occurs.all():
        return index, kept
    table = np.append(np.cumsum(occurs) - 1, UNKNOWN).astype(np.int32)
    return Index(name for name, used in zip(index.ids, occurs, strict=True) if used), [table[c] for c in kept]
