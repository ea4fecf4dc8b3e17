"""Observations of several kinds together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import DataError
from steelyard.observations.base import Observations, unknown_codes
from steelyard.observations.index import Index, IntArray
from steelyard.observations.labels import Labels


@dataclass(frozen=True, eq=False, kw_only=True)
class Mixed(Observations):
    """Observations of several kinds, or from several ways of asking, of the same items by the same annotators.

    All `parts` code the same items, annotators and tasks; `Mixed.of` brings others to that.
    """

    kind: ClassVar[str] = "mixed"

    parts: tuple[Observations, ...]

    def __post_init__(self) -> None:
        if len(self.annotator) == 0:
            for name in ("annotator", "task"):
                codes = [unknown_codes(0), *(getattr(part, name) for part in self.parts)]
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
        items, rows, offset = [unknown_codes(0)], [unknown_codes(0)], 0
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
        if any(part.kind in (cls.kind, Labels.kind) for part in parts):
            raise DataError(
                "labels cannot be combined with other kinds of judgments.", "Leave them out, or fit them separately."
            )
        items, annotators, tasks = (
            Index(dict.fromkeys(key for part in parts for key in getattr(part, name).ids))
            for name in ("items", "annotators", "tasks")
        )
        recoded = tuple(part.under(items, annotators, tasks) for part in parts)
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
        return {criterion: cls.of(several) for criterion, several in parts.items()}

    def components(self) -> tuple[Observations, ...]:
        """Return the parts."""
        return self.parts

    def subset(self, rows: NDArray[np.bool_] | NDArray[np.integer]) -> Self:
        """Return some observations, by mask or by position; each part keeps its own order."""
        mask = np.zeros(len(self), np.bool_)
        mask[rows] = True
        ends = np.cumsum([len(part) for part in self.parts])
        return self._with_parts(
            part.subset(own) for part, own in zip(self.parts, np.split(mask, ends[:-1]), strict=True)
        )

    def relabel(self, items: Index, code: IntArray) -> Self:
        """Relabel every part."""
        return self._with_parts((part.relabel(items, code) for part in self.parts), items)

    def _in_groups(self, groups: Index, code: IntArray) -> tuple[Self, int]:
        grouped = [part._in_groups(groups, code) for part in self.parts]
        return self._with_parts((part for part, _ in grouped), groups), sum(count for _, count in grouped)

    def _distinct_under(self, code: IntArray) -> NDArray[np.bool_]:
        return np.concatenate([part._distinct_under(code) for part in self.parts])

    def _with_parts(self, parts: Iterable[Observations], items: Index | None = None) -> Self:
        # Without codes of its own it takes those of its parts.
        nobody = unknown_codes(0)
        return replace(self, items=items or self.items, parts=tuple(parts), annotator=nobody, task=nobody)
