"""Collect the problems of a table and report them together, each with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

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


class Problems:
    """The problems of one table. Lines are looked up only when the problems are reported."""

    def __init__(self, file: str, locate: Locate) -> None:
        self._file = file
        self._locate = locate
        self._general: list[Problem] = []
        self._in_rows: list[tuple[NDArray[np.intp], str | Callable[[int], str], str, str | None]] = []

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

    def refuse(self) -> None:
        """Raise DataError if there are problems, in the order of the file."""
        if not self:
            return
        total = len(self._general) + sum(len(rows) for rows, *_ in self._in_rows)
        first = sorted(
            (
                (int(row), what, remedy, field)
                for rows, what, remedy, field in self._in_rows
                for row in np.sort(rows)[:CAP]
            ),
            key=lambda entry: entry[0],
        )[:CAP]
        lines = self._locate([row for row, *_ in first])
        located = [
            Problem(what if isinstance(what, str) else what(row), remedy, self._file, line, field)
            for (row, what, remedy, field), line in zip(first, lines, strict=True)
        ]
        raise DataError(capped([*self._general, *located], total))
