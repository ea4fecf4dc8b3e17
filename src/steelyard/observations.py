"""What models eat: Ratings, Comparisons, Choices, Rankings, Labels, or several at once (Mixed), as coded arrays.

A protocol turns one answer into single observations (`Rating`, `Comparison`, `Choice`, `RankedItems`,
`Label`); the columnar classes hold many of them, with an `Index` between ids and codes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import DataError, did_you_mean

IntArray: TypeAlias = NDArray[np.int32]
FloatArray: TypeAlias = NDArray[np.float64]

UNKNOWN = -1
"""The code of an annotator, task, best or worst item that is not known."""


class Rating(NamedTuple):
    """One value given to one item, in the user's scale."""

    item: str
    value: float
    criterion: str = ""


class Comparison(NamedTuple):
    """One pair as shown; `outcome` is 1 when left won, -1 when right won, 0 for a tie."""

    left: str
    right: str
    outcome: int


class Choice(NamedTuple):
    """One tuple as shown, with the item chosen as best and the one chosen as worst."""

    items: tuple[str, ...]
    best: str | None
    worst: str | None


class RankedItems(NamedTuple):
    """Items from best to worst; those in one tier are tied."""

    tiers: tuple[tuple[str, ...], ...]


class Label(NamedTuple):
    """One class given to one item."""

    item: str
    label: str
    criterion: str = ""


Observation: TypeAlias = Rating | Comparison | Choice | RankedItems | Label


class Index:
    """Ids and their codes 0…n-1, both ways."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self.ids: tuple[str, ...] = tuple(ids)

    @cached_property
    def _codes(self) -> dict[str, int]:
        codes = {name: code for code, name in enumerate(self.ids)}
        if len(codes) != len(self.ids):
            twice = next(name for code, name in enumerate(self.ids) if codes[name] != code)
            raise DataError(f"id '{twice}' appears twice.", "Give each its own id.")
        return codes

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, code: int) -> str:
        return self.ids[code]

    def __contains__(self, name: object) -> bool:
        return name in self._codes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index) and self.ids == other.ids

    def __hash__(self) -> int:
        return hash(self.ids)

    def __repr__(self) -> str:
        shown = ", ".join(self.ids[:3]) + (", …" if len(self) > 3 else "")
        return f"Index({len(self)}: {shown})"

    def code(self, name: str) -> int:
        """Return the code of an id."""
        try:
            return self._codes[name]
        except KeyError:
            known = self.ids if len(self.ids) <= 1000 else ()
            raise DataError(f"unknown id '{name}'.", did_you_mean(name, known)) from None

    def codes(self, names: Sequence[str | None]) -> IntArray:
        """Return the codes of many ids; None becomes UNKNOWN."""
        lookup = self._codes
        try:
            return np.fromiter(
                (UNKNOWN if name is None else lookup[name] for name in names), np.int32, count=len(names)
            )
        except KeyError as error:
            self.code(error.args[0])
            raise


def _unknown(count: int) -> IntArray:
    return np.full(count, UNKNOWN, np.int32)


@dataclass(frozen=True, eq=False, kw_only=True)
class Observations(ABC):
    """What every kind shares: the items, and by whom and in which task each was observed.

    `annotator` and `task` hold a code per observation, or UNKNOWN throughout when the source did not say.
    """

    kind: ClassVar[str] = ""

    items: Index
    annotators: Index = field(default_factory=Index)
    tasks: Index = field(default_factory=Index)
    annotator: IntArray = field(default_factory=lambda: _unknown(0))
    task: IntArray = field(default_factory=lambda: _unknown(0))

    def __post_init__(self) -> None:
        for name in ("annotator", "task"):
            if len(getattr(self, name)) == 0 and len(self) > 0:
                object.__setattr__(self, name, _unknown(len(self)))
        for name, codes, index in (
            ("annotator", self.annotator, self.annotators),
            ("task", self.task, self.tasks),
        ):
            self._check_codes(name, codes, index, lowest=UNKNOWN)
            if len(codes) != len(self):
                raise DataError(f"{len(self)} {self.kind} but {len(codes)} {name} codes.")

    @abstractmethod
    def __len__(self) -> int:
        """How many there are."""

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
        """Whether every observation says who made it."""
        return len(self) > 0 and bool((self.annotator != UNKNOWN).all())

    @property
    def knows_tasks(self) -> bool:
        """Whether every observation says in which task it was made."""
        return len(self) > 0 and bool((self.task != UNKNOWN).all())


@dataclass(frozen=True, eq=False, kw_only=True)
class Ratings(Observations):
    """Values given to items one by one, in the user's `scale`."""

    kind: ClassVar[str] = "ratings"

    item: IntArray
    value: FloatArray
    scale: tuple[float, float]
    scale_known: bool = True
    """False when the scale was read off the values: its ends may not be the scale's, so nothing is cut at them."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The ends no score or interval may pass; None where they are not known."""
        return self.scale if self.scale_known else None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_codes("item", self.item, self.items)
        low, high = self.scale
        if not low < high:
            raise DataError(f"the scale runs from {low:g} to {high:g}.", "Give the lower end first.")
        if self.value.size and not np.isfinite(self.value).all():
            raise DataError("a rating is not a number.", "Leave out the rows without a value.")
        if self.value.size and (self.value.min() < low or self.value.max() > high):
            outside = self.value[(self.value < low) | (self.value > high)][0]
            raise DataError(
                f"value {outside:g} is outside the scale {low:g} to {high:g}.",
                "Set the scale the values were given on.",
            )

    def __len__(self) -> int:
        return len(self.item)

    def incidence(self) -> tuple[IntArray, IntArray]:
        """Each rating concerns one item."""
        return self.item, self._rows()

    @property
    def unit_value(self) -> FloatArray:
        """The values on [0, 1]."""
        low, high = self.scale
        return (self.value - low) / (high - low)


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparisons(Observations):
    """Pairs in the order shown; `outcome` is 1 (left won), -1 (right won) or 0 (tie)."""

    kind: ClassVar[str] = "comparisons"

    left: IntArray
    right: IntArray
    outcome: NDArray[np.int8]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_codes("left", self.left, self.items)
        self._check_codes("right", self.right, self.items)
        if (self.left == self.right).any():
            same = self.items[int(self.left[self.left == self.right][0])]
            raise DataError(f"'{same}' is compared with itself.", "Leave that row out.")
        if self.outcome.size and np.abs(self.outcome).max() > 1:
            raise DataError("an outcome is not 1, 0 or -1.", "1: left won, -1: right won, 0: tie.")

    def __len__(self) -> int:
        return len(self.left)

    def incidence(self) -> tuple[IntArray, IntArray]:
        """Each comparison concerns two items; all left ones come first."""
        rows = self._rows()
        return np.concatenate([self.left, self.right]), np.concatenate([rows, rows])


@dataclass(frozen=True, eq=False, kw_only=True)
class Choices(Observations):
    """Best–worst choices: one row of item codes per tuple (padded with UNKNOWN), and the two chosen."""

    kind: ClassVar[str] = "choices"

    shown: NDArray[np.int32]
    best: IntArray
    worst: IntArray

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_codes("item", self.shown, self.items, lowest=UNKNOWN)
        for name in ("best", "worst"):
            chosen = getattr(self, name)
            self._check_codes(name, chosen, self.items, lowest=UNKNOWN)
            known = chosen != UNKNOWN
            if not (self.shown[known] == chosen[known, None]).any(axis=1).all():
                raise DataError(f"a {name} item is not among the items shown.", "Correct that row.")

    def __len__(self) -> int:
        return len(self.shown)

    def incidence(self) -> tuple[IntArray, IntArray]:
        """Each choice concerns all items of its tuple."""
        row, column = np.nonzero(self.shown != UNKNOWN)
        return self.shown[row, column], row.astype(np.int32)


@dataclass(frozen=True, eq=False, kw_only=True)
class Rankings(Observations):
    """Rankings with ties: row r ranks `item[start[r]:start[r+1]]`, with `rank` 1 for the best tier."""

    kind: ClassVar[str] = "rankings"

    start: NDArray[np.int64]
    item: IntArray
    rank: IntArray

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_codes("item", self.item, self.items)
        row = np.repeat(np.arange(len(self)), np.diff(self.start)) if len(self.start) > 1 else np.zeros(0, np.int64)
        order = np.lexsort((self.item, row)) if len(row) == len(self.item) else np.zeros(0, np.int64)
        again = (row[order][1:] == row[order][:-1]) & (self.item[order][1:] == self.item[order][:-1])
        if again.any():
            twice = self.items[int(self.item[order][1:][again][0])]
            raise DataError(f"'{twice}' stands twice in one ranking.", "Rank every item once.")
        if self.start[0] != 0 or self.start[-1] != len(self.item) or (np.diff(self.start) < 0).any():
            raise DataError("the rankings' starts do not fit their items.")

    def __len__(self) -> int:
        return len(self.start) - 1

    def incidence(self) -> tuple[IntArray, IntArray]:
        """Each ranking concerns all its items."""
        return self.item, np.repeat(self._rows(), np.diff(self.start))

    def comparisons(self) -> Comparisons:
        """Every pair within a ranking, the item listed first on the left."""
        nothing = np.zeros(0, np.int64)
        rows, firsts, seconds = [nothing], [nothing], [nothing]
        sizes = np.diff(self.start)
        for size in np.unique(sizes):
            ranking = np.flatnonzero(sizes == size)
            first, second = np.triu_indices(int(size), 1)
            rows.append(np.repeat(ranking, len(first)))
            firsts.append((self.start[ranking][:, None] + first).ravel())
            seconds.append((self.start[ranking][:, None] + second).ravel())
        order = np.argsort(np.concatenate(rows), kind="stable")
        row, a, b = (np.concatenate(parts)[order] for parts in (rows, firsts, seconds))
        return Comparisons(
            items=self.items,
            annotators=self.annotators,
            tasks=self.tasks,
            annotator=self.annotator[row],
            task=self.task[row],
            left=self.item[a],
            right=self.item[b],
            outcome=np.sign(self.rank[b] - self.rank[a]).astype(np.int8),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Labels(Observations):
    """Classes given to items one by one; `label` codes `classes`."""

    kind: ClassVar[str] = "labels"

    item: IntArray
    label: IntArray
    classes: Index

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_codes("item", self.item, self.items)
        self._check_codes("label", self.label, self.classes)

    def __len__(self) -> int:
        return len(self.item)

    def incidence(self) -> tuple[IntArray, IntArray]:
        """Each label concerns one item."""
        return self.item, self._rows()


@dataclass(frozen=True, eq=False, kw_only=True)
class Mixed(Observations):
    """Observations of several kinds, or from several ways of asking, of the same items by the same people.

    All `parts` code the same items, annotators and tasks; `Mixed.of` brings others to that.
    """

    kind: ClassVar[str] = "mixed"

    parts: tuple[Observations, ...]

    def __post_init__(self) -> None:
        if len(self.annotator) == 0:
            for name in ("annotator", "task"):
                codes = [_unknown(0), *(getattr(part, name) for part in self.parts)]
                object.__setattr__(self, name, np.concatenate(codes))
        super().__post_init__()
        for part in self.parts:
            for name in ("items", "annotators", "tasks"):
                if getattr(part, name) != getattr(self, name):
                    raise DataError(f"the parts of mixed observations do not share their {name}.", "Use Mixed.of.")

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def incidence(self) -> tuple[IntArray, IntArray]:
        """Concatenate the parts', with rows counted over all parts."""
        items, rows, offset = [_unknown(0)], [_unknown(0)], 0
        for part in self.parts:
            item, row = part.incidence()
            items.append(item)
            rows.append(row + np.int32(offset))
            offset += len(part)
        return np.concatenate(items), np.concatenate(rows)

    @classmethod
    def of(cls, parts: Iterable[Observations]) -> Mixed:
        """Bring observations to common items, annotators and tasks; items of one id are one item."""
        parts = tuple(parts)
        if any(isinstance(part, Mixed | Labels) for part in parts):
            raise DataError(
                "labels have no place on a scale beside other kinds.", "Leave them out, or fit them by themselves."
            )
        items, annotators, tasks = (
            Index(dict.fromkeys(key for part in parts for key in getattr(part, name).ids))
            for name in ("items", "annotators", "tasks")
        )
        recoded = tuple(_recoded(part, {"items": items, "annotators": annotators, "tasks": tasks}) for part in parts)
        return cls(parts=recoded, items=items, annotators=annotators, tasks=tasks)

    @classmethod
    def by_criterion(cls, sources: Iterable[Mapping[str, Observations]]) -> dict[str, Observations]:
        """Mix the observations of several sources, each by criterion.

        Comparisons, choices and rankings, which know no criteria, join the ratings where those have just one.
        """
        parts: dict[str, list[Observations]] = {}
        for source in sources:
            for criterion, part in source.items():
                parts.setdefault(criterion, []).append(part)
        if len(parts) == 2 and "" in parts:
            only = next(criterion for criterion in parts if criterion)
            parts = {only: [*parts[only], *parts[""]]}
        return {criterion: cls.of(found) for criterion, found in parts.items()}


_CODED = {
    "annotators": ("annotator",),
    "tasks": ("task",),
    "items": ("item", "left", "right", "shown", "best", "worst"),
}
"""Which fields hold codes of which index."""


def _recoded(part: Observations, shared: Mapping[str, Index]) -> Observations:
    """Return observations under other indexes that hold all their ids."""
    changed: dict[str, Any] = dict(shared)
    for name, fields in _CODED.items():
        # The code -1 (UNKNOWN) picks the last entry, which is UNKNOWN itself.
        code = np.append(shared[name].codes(getattr(part, name).ids), np.int32(UNKNOWN))
        changed |= {field: code[getattr(part, field)] for field in fields if hasattr(part, field)}
    return replace(part, **changed)


KINDS: dict[str, type[Observations]] = {cls.kind: cls for cls in (Ratings, Comparisons, Choices, Rankings, Labels)}
