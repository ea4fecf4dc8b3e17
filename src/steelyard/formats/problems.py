"""Collecting what is wrong in a table, so that it is all reported at once, each with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import DataError, Problem

CAP = 20
"""How many problems one error lists; the rest are counted."""

Locate = Callable[[Sequence[int]], list[int]]
"""Turns rows of a table into lines of its file."""


def capped(problems: Sequence[Problem], total: int | None = None) -> list[Problem]:
    """Return the first problems, and one that counts those left out of `total`."""
    total = len(problems) if total is None else total
    shown = list(problems[:CAP])
    if total > len(shown):
        shown.append(Problem(f"… and {total - len(shown)} more."))
    return shown


class Problems:
    """What is wrong in one table. Lines are looked up only when something is reported."""

    def __init__(self, file: str, locate: Locate) -> None:
        self._file = file
        self._locate = locate
        self._general: list[Problem] = []
        self._found: list[tuple[NDArray[np.intp], str | Callable[[int], str], str, str | None]] = []

    def __bool__(self) -> bool:
        return bool(self._general or self._found)

    def add(self, what: str, remedy: str = "", *, line: int | None = None, field: str | None = None) -> None:
        """Note something wrong with the table as a whole, or at a known line."""
        self._general.append(Problem(what, remedy, self._file, line, field))

    def at(
        self,
        rows: NDArray[np.bool_] | Iterable[int],
        what: str | Callable[[int], str],
        remedy: str,
        field: str | None = None,
    ) -> None:
        """Note rows (a mask, or row numbers) that are wrong; `what` is told, or made from the row number."""
        numbers = np.flatnonzero(rows) if isinstance(rows, np.ndarray) and rows.dtype == bool else np.array(list(rows))
        if len(numbers):
            self._found.append((numbers.astype(np.intp), what, remedy, field))

    def refuse(self) -> None:
        """Raise DataError when there is anything to report, in the order of the file."""
        if not self:
            return
        total = len(self._general) + sum(len(rows) for rows, *_ in self._found)
        first = sorted(
            (
                (int(row), what, remedy, field)
                for rows, what, remedy, field in self._found
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
