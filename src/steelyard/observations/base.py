"""The base class of all observations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import DataError
from steelyard.observations.index import UNKNOWN, FloatArray, Index, IntArray

if TYPE_CHECKING:
    from steelyard.observations.comparisons import Comparisons


def unknown_codes(count: int) -> IntArray:
    """Return codes for unknown annotators or tasks."""
    return np.full(count, UNKNOWN, np.int32)


@dataclass(frozen=True, eq=False, kw_only=True)
class Observations(ABC):
    """Judgments of one kind as integer-coded arrays, with the annotator and the task of each.

    `annotator` and `task` hold a code per observation, UNKNOWN where the source does not name them.
    """

    kind: ClassVar[str] = ""
    item_fields: ClassVar[tuple[str, ...]] = ()
    """The arrays that hold item codes."""
    row_fields: ClassVar[tuple[str, ...]] = ()
    """The arrays with one entry per observation, beside `annotator` and `task`."""
    has_comparisons: ClassVar[bool] = False
    """Whether `to_comparisons` is defined."""

    items: Index
    annotators: Index = field(default_factory=Index)
    tasks: Index = field(default_factory=Index)
    annotator: IntArray = field(default_factory=lambda: unknown_codes(0))
    task: IntArray = field(default_factory=lambda: unknown_codes(0))

    def __post_init__(self) -> None:
        for name in ("annotator", "task"):
            if len(getattr(self, name)) == 0 and len(self) > 0:
                object.__setattr__(self, name, unknown_codes(len(self)))
        for name, codes, index in (
            ("annotator", self.annotator, self.annotators),
            ("task", self.task, self.tasks),
        ):
            self._check_codes(name, codes, index, lowest=UNKNOWN)
            if len(codes) != len(self):
                raise DataError(f"{len(self)} {self.kind} but {len(codes)} {name} codes.")

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of observations."""

    @abstractmethod
    def incidence(self) -> tuple[IntArray, IntArray]:
        """Return parallel arrays: an item, and the observation (row) that concerns it."""

    def _rows(self) -> IntArray:
        return np.arange(len(self), dtype=np.int32)

    @staticmethod
    def _check_codes(name: str, codes: IntArray, index: Index, lowest: int = 0) -> None:
        if codes.size and (codes.min() < lowest or codes.max() >= len(index)):
            raise DataError(
                f"{name} codes run from {codes.min()} to {codes.max()}, but there are {len(index)} {name} ids.",
                f"Use codes from 0 to {len(index) - 1}.",
            )

    @property
    def knows_annotators(self) -> bool:
        """Whether the annotator of every observation is known."""
        return len(self) > 0 and bool((self.annotator != UNKNOWN).all())

    @property
    def knows_tasks(self) -> bool:
        """Whether the task of every observation is known."""
        return len(self) > 0 and bool((self.task != UNKNOWN).all())

    def components(self) -> tuple[Observations, ...]:
        """Return the observations of a single kind that these consist of."""
        return (self,)

    def to_comparisons(self) -> Comparisons:
        """Return the pairs that these observations order; the item listed first is on the left."""
        raise DataError(f"{self.kind} are not comparisons or rankings.")

    def preferences(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return parallel arrays: an item, the row that shows it, and 1 (best, winner), −1 (worst, loser) or 0."""
        raise DataError(f"{self.kind} contain no preferences between items.")

    def answer_at(self, row: int) -> float | str:
        """Return the value or class that observation `row` gives its item."""
        raise DataError(f"{self.kind} contain no answers about single items.")

    def order_at(self, row: int, codes: Sequence[int], *, fully: bool) -> tuple[float, ...] | None:
        """Return a value for each of some items of observation `row`, higher for preferred ones.

        None where the observation does not order these items; with `fully`, where it leaves two of them equal.
        """
        return None

    def subset(self, rows: NDArray[np.bool_] | NDArray[np.integer]) -> Self:
        """Return some observations, by mask or by position, with the same indexes."""
        names = ("annotator", "task", *self.row_fields)
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def relabel(self, items: Index, code: IntArray) -> Self:
        """Return the observations of other items: item i becomes `code[i]`; the last entry of `code` is UNKNOWN."""
        return replace(self, items=items, **{name: code[getattr(self, name)] for name in self.item_fields})

    def under(self, items: Index, annotators: Index, tasks: Index) -> Self:
        """Return the observations coded by other indexes, which must hold all ids."""
        # The code UNKNOWN is −1 and selects the last entry, which is UNKNOWN itself.
        item, annotator, task = (
            np.append(index.codes(own.ids), np.int32(UNKNOWN))
            for index, own in ((items, self.items), (annotators, self.annotators), (tasks, self.tasks))
        )
        changes: dict[str, Any] = {name: item[getattr(self, name)] for name in self.item_fields}
        changes |= {"annotator": annotator[self.annotator], "task": task[self.task]}
        return replace(self, items=items, annotators=annotators, tasks=tasks, **changes)

    def by_group(self, group_of: Mapping[str, str]) -> tuple[Self, int]:
        """Replace each item by its group; return the observations and how many were left out.

        Observations without information about groups are left out: those of items without a group, and comparisons,
        choices or rankings within one group.
        """
        return self._in_groups(*self._group_codes(group_of))

    def tells_groups_apart(self, group_of: Mapping[str, str]) -> NDArray[np.bool_]:
        """Return which observations `by_group` keeps."""
        return self._distinct_under(self._group_codes(group_of)[1])

    def _group_codes(self, group_of: Mapping[str, str]) -> tuple[Index, IntArray]:
        groups = Index(sorted({group_of[item] for item in self.items.ids if item in group_of}))
        if not len(groups):
            raise DataError("no item has a group.", "Fill in the column group of the items file.")
        codes = [groups.code(group_of[item]) if item in group_of else UNKNOWN for item in self.items.ids]
        return groups, np.array([*codes, UNKNOWN], np.int32)

    def _in_groups(self, groups: Index, code: IntArray) -> tuple[Self, int]:
        keep = self._distinct_under(code)
        return self.subset(keep).relabel(groups, code), int((~keep).sum())

    def _distinct_under(self, code: IntArray) -> NDArray[np.bool_]:
        """Return which observations are still informative when item i becomes `code[i]`."""
        return np.asarray(code[getattr(self, self.item_fields[0])] != UNKNOWN)
