"""Table 1's form: the average dominance of each system, from tournaments on the WMT 2010 rankings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl
from scipy import stats

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.charts import bars
from reproductions.tournament.recordings import FILE, PAPER, REFERENCE, comparisons_of, hold, read_sources
from steelyard.models.comparisons.dominance import Dominance, average_dominance

REFERENCES, WORST = 1.26, -0.67
"""Table 1: the reference translations, and the lowest of the five systems."""
OVERALL = -0.002
"""Mean of the six averages of Table 1, each over the same 1,882 sources."""
LANGUAGES = "English–Spanish"
"""The paper's languages."""
WHY = "other texts and judges, and sixteen systems of which five are shown at a time: only the shape can be compared"


@dataclass(frozen=True, slots=True)
class AverageDominance(Experiment):
    """Average the dominance of each system's outputs over English–Spanish sources."""

    name: ClassVar[str] = "tournament.average_dominance"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Table 1: average dominance of each system, on WMT 2010"
    shows: ClassVar[tuple[Shown, ...]] = (
        Shown(
            "Table 1",
            "approximated",
            "the paper's comparisons are not available: tournaments replayed on WMT 2010 rankings, of other systems",
        ),
    )
    data: ClassVar[tuple[str, ...]] = (FILE,)

    sources: int | None = None
    seed: int = 0

    def small(self) -> Self:
        """Take 200 rankings."""
        return replace(self, sources=200)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Compute the table and compare it with the ranks of the judges."""
        every = read_sources(data)
        sources = every.chosen([n for n, pair in enumerate(every.languages) if pair == LANGUAGES])
        sources = sources.sample(self.sources, self.seed)
        fit = Dominance(source="items").fit(comparisons_of(hold(sources, self.seed)))
        progress(1, 1)
        system = {item.id: item.group or "" for item in sources.items()}
        table = average_dominance(fit.scores, system).with_columns(
            pl.col("group").replace({REFERENCE: "reference"}).alias("system")
        )
        shown, ranks = sources.systems.ravel(), sources.ranks.ravel()
        by_rank = {name: float(ranks[shown == name].mean()) for name in np.unique(shown).tolist()}
        mean_rank = [by_rank[name] for name in table["group"]]
        agreement = stats.spearmanr(table["score"].to_numpy(), -np.array(mean_rank)).statistic
        top = table.filter(pl.col("group") == REFERENCE).row(0, named=True)
        last = table.row(-1, named=True)
        claims = (
            Claim("average dominance of the references", top["score"], top["lower"], top["upper"], REFERENCES, why=WHY),
            Claim(
                "average dominance of the lowest system", last["score"], last["lower"], last["upper"], WORST, why=WHY
            ),
            Claim(
                "mean dominance over all outputs, each counted within its source",
                float(np.average(table["score"].to_numpy(), weights=table["items"].to_numpy())),
                published=OVERALL,
                why="zero by construction where items are counted; the published averages sum to −.01",
            ),
            Claim(
                "rank of the references among the systems",
                float(table["group"].to_list().index(REFERENCE) + 1),
                published=1,
            ),
            Claim(
                "Spearman's ρ of average dominance with the mean rank the judges gave",
                float(agreement),
                why="not in the paper: it shows that few comparisons give the same order of systems as full rankings",
            ),
        )
        table = table.select("system", pl.col("score").alias("dominance"), "lower", "upper", "items").with_columns(
            mean_rank=pl.Series(mean_rank)
        )
        return Outcome(
            claims,
            table,
            lambda: bars(
                table,
                "system",
                "dominance",
                title=f"References dominate most, as published: {claims[0].ours:.2f} on average",
                subtitle=f"Average dominance over {len(sources):,} {LANGUAGES} sources, with 95 % intervals",
                value_title="average dominance",
            ),
        )
