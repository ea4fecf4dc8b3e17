"""Collect the problems of a table and report them together, each with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import DataError, Problem

CAP = 20
"""Maximum number of problems that one error lists; further ones are only counted."""

Locate = Callable[[Sequence[int]], list[int]]
"""Maps rows of a table to lines of its file."""


def capped(problems: Sequence[Problem], total: int | None = None) -> list[Problem]:
    """Return the first problems, and one with the number of further ones out of `total`."""
    total = len(problems) if total is None else total
    first = list(problems[:CAP])
    if total > len(first):
        first.append(Problem(f"… and {total - len(first)} more."))
    return first


SKIP_REMEDY = "Correct the file, or leave invalid rows out: --skip-bad-rows (in Python, skip_bad_rows=True)."
_NAMED = 3
"""Number of skipped rows that a note describes."""

_InRows: TypeAlias = "tuple[NDArray[np.intp], str | Callable[[int], str], str, str | None]"
"""Rows, their problem or a function that describes it, the remedy, and the field."""


class Problems:
    """The problems of one table. Lines are looked up only when the problems are reported."""

    def __init__(self, file: str, locate: Locate) -> None:
        self._file = file
        self._locate = locate
        self._general: list[Problem] = []
        self._in_rows: list[_InRows] = []

    def __bool__(self) -> bool:
        return bool(self._general or self._in_rows)

    def add(self, what: str, remedy: str = "", *, line: int | None = None, field: str | None = None) -> None:
        """Add a problem of the whole table, or of one line."""
        self._general.append(Problem(what, remedy, self._file, line, field))

    def at(
        self,
        rows: NDArray[np.bool_] | Iterable[int],
        what: str | Callable[[int], str],
        remedy: str,
        field: str | None = None,
    ) -> None:
        """Add a problem of some rows (a mask, or row numbers); `what` is a message, or a function of the row number."""
        numbers = np.flatnonzero(rows) if isinstance(rows, np.ndarray) and rows.dtype == bool else np.array(list(rows))
        if len(numbers):
            self._in_rows.append((numbers.astype(np.intp), what, remedy, field))

    def refuse(self, height: int | None = None) -> None:
        """Raise DataError if there are problems, in the order of the file.

        With the number of rows of the table, the error offers to skip bad rows where these are the only problems.
        """
        if not self:
            return
        total = len(self._general) + sum(len(rows) for rows, *_ in self._in_rows)
        error = DataError(capped([*self._general, *self._first(CAP)], total))
        if height is not None and not self._general:
            error.add_note(bad_rows_note(len(self._bad_rows()), height))
        raise error

    def skip_rows(self, height: int) -> tuple[NDArray[np.bool_], list[str]]:
        """Return which rows have problems, with a note on them, and forget these problems."""
        is_bad = np.zeros(height, np.bool_)
        is_bad[self._bad_rows()] = True
        first = {problem.line: problem for problem in reversed(self._first(CAP))}
        notes = [skipped_note(int(is_bad.sum()), [*reversed(first.values())])] if is_bad.any() else []
        self._in_rows.clear()
        return is_bad, notes

    def _bad_rows(self) -> NDArray[np.intp]:
        empty = np.zeros(0, np.intp)
        return np.unique(np.concatenate([empty, *(rows for rows, *_ in self._in_rows)]))

    def _first(self, most: int) -> list[Problem]:
        """Return the problems of the first rows."""
        first = sorted(
            (
                (int(row), what, remedy, field)
                for rows, what, remedy, field in self._in_rows
                for row in np.sort(rows)[:most]
            ),
            key=lambda entry: entry[0],
        )[:most]
        lines = self._locate([row for row, *_ in first])
        return [
            Problem(what if isinstance(what, str) else what(row), remedy, self._file, line, field)
            for (row, what, remedy, field), line in zip(first, lines, strict=True)
        ]


def bad_rows_note(count: int, height: int) -> str:
    """Return the sentence that offers to skip bad rows."""
    return f"{count:,} of {height:,} rows {'is' if count == 1 else 'are'} invalid. {SKIP_REMEDY}"


def skipped_note(count: int, first: Sequence[Problem]) -> str:
    """Return a note on skipped rows; `first` are the problems of the first of them."""
    described = "; ".join(f"line {p.line}: {p.what.removesuffix('.')}" if p.line else p.what for p in first[:_NAMED])
    more = " …" if count > len(first[:_NAMED]) else "."
    return f"{count:,} bad {'row' if count == 1 else 'rows'} skipped: {described}{more}"
