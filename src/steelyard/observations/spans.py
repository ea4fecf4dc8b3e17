"""Marked spans of texts, such as translation errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import DataError
from steelyard.observations.base import Observations
from steelyard.observations.index import UNKNOWN, Index, IntArray
from steelyard.observations.single import MarkedText, Span


@dataclass(frozen=True, eq=False, kw_only=True)
class Spans(Observations):
    """Texts as they were marked: row r is one annotator's marks on `item[r]`, `first[r]:first[r+1]` of the arrays.

    `start` and `end` are half-open offsets in code points; both are UNKNOWN for an omission, which has no place in the
    text. A row without marks is a text in which the annotator found no error.
    """

    kind: ClassVar[str] = "spans"
    item_fields: ClassVar[tuple[str, ...]] = ("item",)
    row_fields: ClassVar[tuple[str, ...]] = ("item",)

    item: IntArray
    first: NDArray[np.int64]
    start: IntArray
    end: IntArray
    severity: IntArray
    category: IntArray
    severities: Index
    categories: Index

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_codes("item", self.item, self.items)
        self._check_codes("severity", self.severity, self.severities, lowest=UNKNOWN)
        self._check_codes("category", self.category, self.categories, lowest=UNKNOWN)
        if len(self.first) != len(self) + 1 or self.first[0] != 0 or self.first[-1] != len(self.start):
            raise DataError("the numbers of marks do not match the marks.")
        is_omission = self.start == UNKNOWN
        if (is_omission != (self.end == UNKNOWN)).any() or (self.start >= self.end)[~is_omission].any():
            raise DataError("a mark ends before it starts.", "Give start < end, in characters.")

    @classmethod
    def of(cls, records: Sequence[MarkedText], *, items: Index, **shared: Any) -> Spans:
        """Return marked texts as arrays; `shared` are annotators and tasks, as of all observations."""
        marks = [mark for record in records for mark in record.spans]
        severities, categories = (
            Index(sorted({name for mark in marks if (name := getattr(mark, field))}))
            for field in ("severity", "category")
        )
        return cls(
            item=items.codes([record.item for record in records]),
            first=np.concatenate([[0], np.cumsum([len(record.spans) for record in records])]).astype(np.int64),
            start=np.array([UNKNOWN if mark.start is None else mark.start for mark in marks], np.int32),
            end=np.array([UNKNOWN if mark.end is None else mark.end for mark in marks], np.int32),
            severity=severities.codes([mark.severity or None for mark in marks]),
            category=categories.codes([mark.category or None for mark in marks]),
            severities=severities,
            categories=categories,
            items=items,
            **shared,
        )

    def __len__(self) -> int:
        return len(self.item)

    def incidence(self) -> tuple[IntArray, IntArray]:
        """Each row concerns one item."""
        return self.item, self._rows()

    def marks(self, row: int) -> tuple[Span, ...]:
        """Return the marks of a row."""
        return tuple(
            Span(
                None if self.start[place] == UNKNOWN else int(self.start[place]),
                None if self.end[place] == UNKNOWN else int(self.end[place]),
                "" if self.severity[place] == UNKNOWN else self.severities[int(self.severity[place])],
                "" if self.category[place] == UNKNOWN else self.categories[int(self.category[place])],
            )
            for place in range(int(self.first[row]), int(self.first[row + 1]))
        )

    @property
    def row_of_mark(self) -> IntArray:
        """The row of each mark."""
        return np.repeat(self._rows(), np.diff(self.first))

    def subset(self, rows: NDArray[np.bool_] | NDArray[np.integer]) -> Self:
        """Return some rows with their marks, by mask or by position."""
        chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else np.asarray(rows, np.int64)
        size = np.diff(self.first)[chosen]
        first = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
        place = np.repeat(self.first[chosen] - first[:-1], size) + np.arange(first[-1])
        return replace(
            self,
            item=self.item[chosen],
            annotator=self.annotator[chosen],
            task=self.task[chosen],
            first=first,
            start=self.start[place],
            end=self.end[place],
            severity=self.severity[place],
            category=self.category[place],
        )
