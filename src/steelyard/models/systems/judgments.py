"""Judgments of systems: observations whose items are systems, with the source that each of them is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import DataError
from steelyard.observations import UNKNOWN, Index, IntArray, Observations


@dataclass(frozen=True, slots=True, eq=False)
class SystemJudgments:
    """Observations whose items are the systems; `source` has the code of the source of each observation.

    UNKNOWN stands for an observation without a source, which is then a sampling unit of its own.
    """

    observations: Observations
    source: IntArray
    sources: Index
    notes: tuple[str, ...] = ()

    @classmethod
    def of_items(
        cls, observations: Observations, system_of: Mapping[str, str], source_of: Mapping[str, str]
    ) -> SystemJudgments:
        """Replace every item by its system.

        Observations that say nothing about systems are left out and counted in the notes: of items without a system,
        of two items of one system, and of items of different sources.
        """
        sources = Index(dict.fromkeys(source_of[item] for item in observations.items.ids if item in source_of))
        code = np.array([sources.code(source_of[i]) if i in source_of else UNKNOWN for i in observations.items.ids])
        lowest, highest = _extremes(observations, code.astype(np.int32))
        same_source = lowest == highest
        systems = observations.subset(same_source)
        distinct = systems.tells_groups_apart(system_of)
        grouped, n_dropped = systems.by_group(system_of)
        n_across = int((~same_source).sum())
        if len(grouped) == 0:
            raise DataError(
                _why_nothing(n_across, n_dropped),
                "Compare items of one source with each other, and give every item a system (column 'group').",
            )
        notes = []
        if n_across:
            notes.append(f"{n_across} judgments compare items of different sources and were left out")
        if n_dropped:
            notes.append(f"{n_dropped} judgments do not compare systems and were left out")
        return cls(grouped, lowest[same_source][distinct], sources, tuple(notes))

    @classmethod
    def of_systems(cls, observations: Observations, sources: list[str | None] | None = None) -> SystemJudgments:
        """Take the items themselves as the systems; `sources` has the source of every observation."""
        if sources is None:
            return cls(observations, np.full(len(observations), UNKNOWN, np.int32), Index())
        index = Index(dict.fromkeys(source for source in sources if source is not None))
        return cls(observations, index.codes(sources), index)

    def subset(self, rows: NDArray[np.bool_]) -> SystemJudgments:
        """Return some of the judgments."""
        return SystemJudgments(self.observations.subset(rows), self.source[rows], self.sources, self.notes)

    @property
    def systems(self) -> Index:
        """The systems."""
        return self.observations.items

    @property
    def knows_sources(self) -> bool:
        """Whether any observation has a source."""
        return bool((self.source != UNKNOWN).any())

    def source_codes(self) -> IntArray:
        """Return the codes of the sources, 0…n−1 without gaps; observations without one get a code of their own."""
        return _dense(self.source)

    def annotator_codes(self) -> IntArray | None:
        """Return the codes of the annotators, 0…n−1 without gaps; None where not all are known."""
        return _dense(self.observations.annotator) if self.observations.knows_annotators else None


def _extremes(observations: Observations, code: IntArray) -> tuple[IntArray, IntArray]:
    """Return the lowest and the highest source code among the items of each observation."""
    item, row = observations.incidence()
    lowest = np.full(len(observations), np.iinfo(np.int32).max, np.int32)
    highest = np.full(len(observations), UNKNOWN, np.int32)
    np.minimum.at(lowest, row, code[item])
    np.maximum.at(highest, row, code[item])
    return np.minimum(lowest, highest), highest


def _why_nothing(n_across: int, n_dropped: int) -> str:
    reasons = []
    if n_across:
        reasons.append(f"{n_across} compare items of different sources")
    if n_dropped:
        reasons.append(f"{n_dropped} concern a single system, or items without one")
    return f"no judgment compares systems: {' and '.join(reasons)}."


def _dense(codes: IntArray) -> IntArray:
    present, dense = np.unique(codes, return_inverse=True)
    dense = np.asarray(dense, np.int32)
    if len(present) and present[0] == UNKNOWN:
        unknown = codes == UNKNOWN
        dense[unknown] = len(present) + np.arange(int(unknown.sum()), dtype=np.int32)
        dense -= 1
    return np.asarray(dense, np.int32)
