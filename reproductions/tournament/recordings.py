"""The five-way rankings of WMT 2010 as sources of tournaments, and annotators who answer by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.formats import read_table
from steelyard.models.comparisons.dominance import Dominance, DominanceGraphs
from steelyard.observations import Comparisons, FloatArray, Index, IntArray, Rankings
from steelyard.protocols import Choice, Protocol
from steelyard.records import Item
from steelyard.simulate import RecordedAnnotators, SimulatedStudy, simulate_study
from steelyard.study.config import parse_config

PAPER = "Pighin et al., 2012"
FILE = "wmt10/rankings.csv.gz"
REFERENCE = "_ref"
SIZE = 5
SEATS = 1
"""One person does all, so that nobody takes over a source that somebody else has begun."""


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """Sources with their outputs: `systems` and `ranks` have a row for each, `ranks` 1 for the best.

    One ranking is one source here, even where several judges ranked the same segment.
    """

    systems: NDArray[np.str_]
    ranks: IntArray
    segment: tuple[str, ...]
    judge: tuple[str, ...]
    languages: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ranks)

    def chosen(self, rows: Sequence[int] | NDArray[np.int64]) -> Sources:
        """Return some of them."""
        numbers = [int(row) for row in rows]
        return Sources(
            self.systems[numbers],
            self.ranks[numbers],
            tuple(self.segment[row] for row in numbers),
            tuple(self.judge[row] for row in numbers),
            tuple(self.languages[row] for row in numbers),
        )

    def sample(self, count: int | None, seed: int) -> Sources:
        """Return `count` random ones; all if `count` is None."""
        if count is None or count >= len(self):
            return self
        return self.chosen(np.sort(np.random.default_rng(seed).permutation(len(self))[:count]))

    def with_reference(self) -> Sources:
        """Return those that rank the reference among the systems."""
        return self.chosen(np.flatnonzero((self.systems == REFERENCE).any(axis=1)))

    def item(self, source: int, place: int) -> str:
        """Return the id of an output."""
        return f"{source}:{self.systems[source, place]}"

    def items(self) -> list[Item]:
        """Return all outputs, with their system as group and text, for the texts are not in the data."""
        return [
            Item(
                self.item(source, place),
                str(system),
                group=str(system),
                context=str(source),
                reference=REFERENCE if REFERENCE in row else None,
            )
            for source, row in enumerate(self.systems.tolist())
            for place, system in enumerate(row)
        ]

    def rankings(self) -> Rankings:
        """Return the rankings of these items."""
        return Rankings(
            items=Index([self.item(s, p) for s in range(len(self)) for p in range(SIZE)]),
            start=np.arange(0, self.ranks.size + 1, SIZE, dtype=np.int64),
            item=np.arange(self.ranks.size, dtype=np.int32),
            rank=self.ranks.ravel().astype(np.int32),
        )


def read_sources(data: Path) -> Sources:
    """Read the rankings in which a judge ranked all five outputs."""
    systems = [f"system{place}Id" for place in range(1, SIZE + 1)]
    ranks = [f"system{place}rank" for place in range(1, SIZE + 1)]
    frame = read_table(data / FILE).with_columns(pl.col(ranks).cast(pl.Int32))
    whole = frame.filter(pl.all_horizontal(pl.col(ranks) > 0))
    languages = whole.select(pl.format("{}–{}", "srclang", "trglang")).to_series()
    return Sources(
        whole.select(systems).to_numpy().astype(np.str_),
        whole.select(ranks).to_numpy(),
        tuple(f"{pair} {number}" for pair, number in zip(languages, whole["srcIndex"], strict=True)),
        tuple(whole["judgeId"]),
        tuple(languages),
    )


class StagedAnnotators:
    """Recorded rankings answer what is compared; what is asked of one item is answered by its adequacy."""

    def __init__(self, recorded: RecordedAnnotators, adequate: Mapping[str, bool]) -> None:
        self._recorded = recorded
        self._adequate = adequate

    @property
    def names(self) -> tuple[str, ...]:
        """The seats of the recorded annotators."""
        return self._recorded.names

    def answer(self, annotator: str, protocol: Protocol, items: Sequence[str]) -> Any:
        """Answer a comparison by a recorded ranking, and a yes-or-no question by the adequacy."""
        if isinstance(protocol, Choice):
            return {item: "yes" if self._adequate[item] else "no" for item in items}
        return self._recorded.answer(annotator, protocol, items)

    def seconds(self, protocol: Protocol) -> float | None:
        """Nothing: no times are recorded."""
        return None


TOURNAMENT = {"name": "tournament", "protocol": {"name": "pairwise"}}
ADEQUACY = {
    "name": "adequacy",
    "protocol": {"name": "choice", "labels": ["no", "yes"]},
    "design": {"name": "propagation"},
}


def hold(
    sources: Sources,
    seed: int,
    *,
    follow_up: bool = False,
    adequate: Mapping[str, bool] | None = None,
    rankings: Rankings | None = None,
) -> SimulatedStudy:
    """Hold a tournament on every source, answered by its ranking (or by `rankings`), then ask for adequacy if given."""
    stages = [TOURNAMENT | {"design": {"name": "tournament", "follow_up": follow_up}}]
    stages += [] if adequate is None else [ADEQUACY]
    config = parse_config(
        {"title": "Translations", "question": "Which?", "items": "items.csv", "seed": seed, "stage": stages}
    )
    rng = np.random.default_rng([seed, 1])
    recorded = RecordedAnnotators(rankings or sources.rankings(), SEATS, rng)
    people = StagedAnnotators(recorded, adequate or {})
    return simulate_study(config, sources.items(), people, np.random.default_rng([seed, 2]))


def comparisons_of(rehearsal: SimulatedStudy) -> Comparisons:
    """Return the answers of the tournaments."""
    (found,) = rehearsal.observations(0).values()
    return cast("Comparisons", found)


def graphs_of(comparisons: Comparisons) -> DominanceGraphs:
    """Return the dominance of every output within its source."""
    return Dominance(source="items").graphs(comparisons)


def ranks_of(sources: Sources, comparisons: Comparisons) -> NDArray[np.int64]:
    """Return the ranks that the comparisons lead to, a row for each source."""
    graphs = graphs_of(comparisons)
    ranks = np.zeros(sources.ranks.size, np.int64)
    ranks[graphs.item] = graphs.rank
    return ranks.reshape(sources.ranks.shape)


def correlations(original: IntArray, found: NDArray[np.int64]) -> FloatArray:
    """Return Pearson's r of the ranks of each source; NaN where one of them does not vary."""
    x = original - original.mean(axis=1, keepdims=True)
    y = found - found.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((x * y).sum(axis=1) / np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1)), np.float64)
