"""Rows of judgments with standard column names, and their conversion to integer codes."""

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


class Sources(TypedDict):
    """The annotators and tasks of observations, which all kinds share."""

    annotators: Index
    annotator: IntArray
    tasks: Index
    task: IntArray


@dataclass(frozen=True, slots=True)
class Reading:
    """The usable rows (`keep`, one flag per row), and a function that builds observations from a subset of rows."""

    keep: BoolArray
    build: Callable[[BoolArray], Observations]


@dataclass(frozen=True)
class Rows:
    """A frame with standard column names, and the table it comes from.

    `headers` maps each field to its column in the file; `origin` holds each row's number in the table if the two
    differ.
    """

    frame: pl.DataFrame
    table: Table
    headers: dict[str, str]
    strict: bool = False
    origin: NDArray[np.intp] | None = None
    notes: list[str] = field(default_factory=list)

    @cached_property
    def problems(self) -> Problems:
        """The problems of these rows."""
        return Problems(self.table.file, self.lines)

    def lines(self, rows: Sequence[int]) -> list[int]:
        """Return the lines of some rows in the file."""
        return self.table.lines(rows if self.origin is None else [int(self.origin[row]) for row in rows])

    def __len__(self) -> int:
        return self.frame.height

    def __contains__(self, name: str) -> bool:
        return name in self.frame.columns

    def header(self, name: str) -> str:
        """Return the name of a field's column in the file."""
        return self.headers.get(name, name)

    def text(self, name: str) -> pl.Series:
        """Return a column as strings, untrimmed."""
        return strings(self.frame[name], self.table.file, self.header(name))

    def lists(self, name: str, dtype: pl.DataType) -> pl.Series:
        """Return a column of lists with their values as strings."""
        column = self.frame[name]
        try:
            # Some versions of polars cast a struct to a struct instead of refusing it.
            if isinstance(column.dtype, pl.Struct):
                raise pl.exceptions.SchemaError
            return column.cast(dtype)
        except pl.exceptions.PolarsError:
            raise DataError(
                f"the column holds {str(column.dtype).lower()} values.",
                "Give a list of ids in each row.",
                file=self.table.file,
                field=self.header(name),
            ) from None

    def shown(self, name: str, row: int) -> str:
        """Return one value for a message."""
        value: Any = self.frame[name][row]
        return "" if value is None else str(value).strip()

    def irregular(self, rows: BoolArray, what: str, action: str, name: str) -> None:
        """Note how many rows are irregular and what was done with them; if strict, refuse them."""
        count = int(rows.sum())
        if not count:
            return
        if self.strict:
            self.problems.at(rows, f"{what}.", "Complete or remove the row.", self.header(name))
        else:
            self.notes.append(f"{what} in {counted(count, 'row')}: {action}.")

    def refuse_empty(self, codes: IntArray, name: str) -> None:
        """Record rows with an empty id as problems."""
        self.problems.at(codes == UNKNOWN, f"the {name} is empty.", "Give its id.", self.header(name))

    @cached_property
    def _sources(self) -> Sources:
        coded: dict[str, tuple[Index, IntArray]] = {}
        for name in ("annotator", "task"):
            if name in self:
                index, (codes,) = encode(self.text(name))
                self.irregular(codes == UNKNOWN, f"no {name}", f"kept, {name} unknown", name)
                coded[name] = index, codes
            else:
                coded[name] = Index(), np.full(len(self), UNKNOWN, np.int32)
        return Sources(
            annotators=coded["annotator"][0],
            annotator=coded["annotator"][1],
            tasks=coded["task"][0],
            task=coded["task"][1],
        )

    def check_sources(self) -> None:
        """Read annotators and tasks now, so that their problems are reported together with the others."""
        _ = self._sources

    def sources(self, keep: BoolArray) -> Sources:
        """Return the annotators and tasks of some rows."""
        annotators, (annotator,) = subset(self._sources["annotators"], keep, self._sources["annotator"])
        tasks, (task,) = subset(self._sources["tasks"], keep, self._sources["task"])
        return Sources(annotators=annotators, annotator=annotator, tasks=tasks, task=task)


def counted(count: int, noun: str) -> str:
    """Return '1 row' or '2 rows'."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def encode(*columns: pl.Series) -> tuple[Index, list[IntArray]]:
    """Code several columns of ids by one index in sorted order; empty ids become UNKNOWN.

    Spaces around ids are removed. Only distinct values are handled in Python.
    """
    frame = pl.DataFrame([column.rename(str(number)) for number, column in enumerate(columns)])
    # Finding the distinct values of all rows costs as much as coding them, and the first rows often have all of them.
    raw = _distinct(frame.head(_SAMPLE))
    physical = _physical(frame, raw)
    if physical.null_count().row(0) != frame.null_count().row(0):
        raw = _distinct(frame)
        physical = _physical(frame, raw)
    names = raw.str.strip_chars().to_list()
    index = Index(sorted(set(names) - {""}))
    codes = {name: code for code, name in enumerate(index.ids)}
    # One extra entry: null is coded -1 and so maps to the last one.
    table = np.array([*(codes.get(name, UNKNOWN) for name in names), UNKNOWN], np.int32)
    return index, [
        table.take((column.cast(pl.Int32).fill_null(-1) if column.null_count() else column).to_numpy())
        for column in physical
    ]


def _distinct(frame: pl.DataFrame) -> pl.Series:
    distinct = frame.select(pl.all().unique().implode())
    columns: list[pl.Series] = [distinct[name][0].rename("") for name in distinct.columns]
    return pl.concat(columns).unique().drop_nulls()


def _physical(frame: pl.DataFrame, raw: pl.Series) -> pl.DataFrame:
    return frame.select(pl.all().cast(pl.Enum(raw), strict=False).to_physical())


def subset(index: Index, keep: BoolArray | None, *codes: NDArray[np.int32]) -> tuple[Index, list[NDArray[np.int32]]]:
    """Return the index of the ids that occur in some rows, and the rows' codes in it."""
    selected = [column if keep is None or keep.all() else column[keep] for column in codes]
    occurs = np.zeros(len(index) + 1, np.bool_)
    for column in selected:
        occurs[column] = True
    occurs = occurs[:-1]
    if occurs.all():
        return index, selected
    table = np.append(np.cumsum(occurs) - 1, UNKNOWN).astype(np.int32)
    return Index(name for name, used in zip(index.ids, occurs, strict=True) if used), [table[c] for c in selected]
