"""§4.5 and §5: the effect of comparing top outputs that were not compared before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.charts import bars
from reproductions.tournament.harmonization import agreement_after
from reproductions.tournament.intervals import mean_interval
from reproductions.tournament.recordings import (
    FILE,
    PAPER,
    Sources,
    comparisons_of,
    correlations,
    hold,
    ranks_of,
    read_sources,
)

RESOLVED = 100 * 43 / 60
"""§4.5: topological problems are in 60 % of the conflicts, and a direct comparison resolves 43 % of all conflicts."""


@dataclass(frozen=True, slots=True)
class FollowUp(Experiment):
    """Hold the same tournaments with and without the follow-up comparisons."""

    name: ClassVar[str] = "tournament.follow_up"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "§4.5: the effect of comparing top outputs that were not compared before"
    data: ClassVar[tuple[str, ...]] = (FILE,)

    sources: int | None = 1000
    seed: int = 0

    def small(self) -> Self:
        """Take 200 rankings."""
        return replace(self, sources=200)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Compare ranks, winners, conflicts and effort."""
        sources = read_sources(data).with_reference().sample(self.sources, self.seed)
        rows, wrong, differ = [], {}, {}
        for done, follow_up in enumerate((False, True)):
            comparisons = comparisons_of(hold(sources, self.seed, follow_up=follow_up))
            ranks = ranks_of(sources, comparisons)
            wrong[follow_up] = ~best_is_right(sources, ranks)
            progress(2 * done + 1, 4)
            harmonized = agreement_after(sources, self.seed, slip=0.0, follow_up=follow_up)
            differ[follow_up] = float(harmonized.filter(pl.col("statistic") == "differ")["value"][0])
            progress(2 * done + 2, 4)
            r = mean_interval(correlations(sources.ranks, ranks))
            right = 100 * float((~wrong[follow_up]).mean())
            how = "with follow-up" if follow_up else "tournament alone"
            rows.append((how, len(comparisons) / len(sources), r[0], right, 100 * differ[follow_up]))
        mended = float(1 - wrong[True][wrong[False]].mean())
        names = ("how", "comparisons", "r", "best_right", "conflicts")
        table = pl.DataFrame(rows, schema=names, orient="row")
        why = (
            "the paper judged 50 conflicts by hand; here it determines the best output, and conflicts at lower "
            "ranks remain"
        )
        claims = (
            Claim(
                "conflicts between ranks and adequacy that it resolves",
                100 * (1 - differ[True] / differ[False]),
                published=RESOLVED,
                unit="%",
                why=why,
            ),
            Claim(
                "wrong winners that it corrects",
                100 * mended,
                unit="%",
                why="not in the paper; if answers are consistent, exactly one undominated output remains",
            ),
            Claim("comparisons it adds per source", rows[1][1] - rows[0][1], why="the paper needs one more comparison"),
            Claim("mean r of the ranks, tournament alone", rows[0][2]),
            Claim("mean r of the ranks, with follow-up", rows[1][2]),
        )
        bar_data = table.select("how", pl.col("best_right"))
        return Outcome(
            claims,
            table,
            lambda: bars(
                bar_data,
                "how",
                "best_right",
                title=f"{claims[2].ours:.1f} more comparisons a source mend {claims[1].ours:.0f} % of wrong winners",
                subtitle="Sources whose best outputs all come out as the judge ranked them, WMT 2010",
                value_title="per cent of sources",
                value_format=".0f",
            ),
        )


def best_is_right(sources: Sources, ranks: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say for which sources all outputs that come out best were ranked best."""
    best = sources.ranks == sources.ranks.min(axis=1, keepdims=True)
    return np.asarray(((ranks != 1) | best).all(axis=1))
