"""§4.1: how many tournaments contradict themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.tournament.recordings import FILE, PAPER, SIZE, Sources, comparisons_of, hold, read_sources
from steelyard.observations import Comparisons, Index, Rankings
from steelyard.reliability import cycle_consistency

CYCLIC, CONSISTENT = 9.72, 96.17
"""Per cent of graphs with a cycle, and consistency in per cent, §4.1."""


@dataclass(frozen=True, slots=True)
class TournamentCycles(Experiment):
    """Hold tournaments on outputs that one judge ranked twice; each comparison is answered by one of the two rankings.

    So people contradict themselves as often as the judges of WMT 2010 did.
    """

    name: ClassVar[str] = "tournament.cycles"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "§4.1: tournaments with a cycle"
    data: ClassVar[tuple[str, ...]] = (FILE,)

    times: int = 5
    seed: int = 0

    def small(self) -> Self:
        """Hold each tournament once."""
        return replace(self, times=1)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Count cycles with one ranking answering everything, and with two."""
        sources, again = ranked_twice(read_sources(data))
        mixed, total, cyclic, inside, items = [], 0, 0, 0.0, 0.0
        for number in range(self.times):
            rehearsal = hold(sources, self.seed + number, rankings=_both(sources, again))
            consistency = cycle_consistency(by_source(comparisons_of(rehearsal)))
            mixed.append(consistency)
            total += consistency.graphs.height
            cyclic += int((consistency.graphs["items_in_cycles"] > 0).sum())
            inside += float(consistency.graphs["items_in_cycles"].sum())
            items += float(consistency.graphs["items"].sum())
            progress(number + 1, self.times + 1)
        once = cycle_consistency(by_source(comparisons_of(hold(sources, self.seed))))
        progress(self.times + 1, self.times + 1)
        half = 196 * float(np.sqrt(cyclic / total * (1 - cyclic / total) / len(sources)))
        share = 100 * cyclic / total
        why = (
            "other annotators and texts; two rankings by the same judge represent the answers of an inconsistent "
            "annotator"
        )
        claims = (
            Claim("tournaments with a cycle", share, max(share - half, 0.0), share + half, CYCLIC, "%", why),
            Claim(
                "outputs in no cycle",
                100 * (1 - inside / items),
                published=CONSISTENT,
                unit="%",
                why="a cycle contains a larger proportion of five outputs than of six, and items tied with an item "
                "in the cycle count; the paper does not define its index exactly",
            ),
            Claim(
                "tournaments with a cycle, answered by one ranking",
                100 * (once["cyclic_graphs"].value or 0.0),
                unit="%",
                why="none is possible: a ranking does not contradict itself",
            ),
        )
        note = (
            f"{len(sources)} sets of five outputs that one judge ranked twice; tournaments simulated on each: "
            f"{self.times}"
        )
        return Outcome(claims, mixed[0].graphs, None, (note,))


def ranked_twice(sources: Sources) -> tuple[Sources, Sources]:
    """Return the first and the second ranking of the same five outputs by the same judge, in the same order."""
    first: dict[tuple[str, ...], int] = {}
    pairs: dict[int, int] = {}
    for number, row in enumerate(sources.systems.tolist()):
        key = (sources.segment[number], sources.judge[number], *sorted(row))
        if key not in first:
            first[key] = number
        else:
            pairs.setdefault(first[key], number)
    return sources.chosen(list(pairs)), sources.chosen(list(pairs.values()))


def _both(sources: Sources, again: Sources) -> Rankings:
    """Return both rankings of every source, about the same items."""
    place = [{system: at for at, system in enumerate(row)} for row in again.systems.tolist()]
    second = [
        [int(again.ranks[number, place[number][system]]) for system in row]
        for number, row in enumerate(sources.systems.tolist())
    ]
    one = sources.rankings()
    return Rankings(
        items=one.items,
        start=np.arange(0, 2 * len(one.item) + 1, SIZE, dtype=np.int64),
        item=np.concatenate([one.item, one.item]),
        rank=np.concatenate([one.rank, np.array(second, np.int32).ravel()]),
    )


def by_source(comparisons: Comparisons) -> Comparisons:
    """Make each source a task, as what one annotator says about it is one graph."""
    names = [comparisons.items[int(code)].split(":")[0] for code in comparisons.left]
    tasks = Index(dict.fromkeys(names))
    return replace(comparisons, tasks=tasks, task=tasks.codes(names))
