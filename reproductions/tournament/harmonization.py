"""Table 3: how far ranks change when adequate outputs are moved before inadequate ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.charts import bars
from reproductions.tournament.adequacy import READING, draw_adequacy, judged
from reproductions.tournament.recordings import (
    FILE,
    PAPER,
    Sources,
    comparisons_of,
    hold,
    ranks_of,
    read_sources,
)
from steelyard.models.ratings.harmonization import harmonization_agreement

PUBLISHED = {"spearman": 0.98, "mae": 0.05, "rmse": 0.08, "differ": 11.26}
"""Table 3, and the share of sources whose ranks differ, in per cent, from §4.5."""
WORDS = {
    "spearman": "Spearman's ρ of ranks before and after",
    "mae": "mean absolute error of the ranks",
    "rmse": "root mean squared error of the ranks",
    "differ": "sources in which a rank differs",
}
TOPOLOGICAL = 0.6
"""Proportion of the paper's conflicts due to missing comparisons; the others are inconsistencies of annotators."""
SHARE = (
    "the published proportion is 60 % of 11.26 %: the conflicts that the paper attributes to comparisons that "
    "were not asked"
)
MORE = "the paper's annotators also contradict themselves, in 40 % of its conflicts; lapses here are simulated"


def agreement_after(sources: Sources, seed: int, *, slip: float, follow_up: bool) -> pl.DataFrame:
    """Hold tournaments, ask for adequacy, harmonize, and say how far the ranks change."""
    rehearsal = hold(sources, seed, follow_up=follow_up, adequate=draw_adequacy(sources, slip, seed))
    _, labels = judged(rehearsal, sources.items())
    ranks = ranks_of(sources, comparisons_of(rehearsal)).ravel()
    adequate = {label.item: label.adequate for label in labels}
    good = [adequate[item.id] for item in sources.items()]
    return harmonization_agreement(ranks, good, [str(item.context) for item in sources.items()])


@dataclass(frozen=True, slots=True)
class Harmonization(Experiment):
    """Harmonize ranks of simulated two-stage annotations, by how often annotators change their criterion."""

    name: ClassVar[str] = "tournament.harmonization"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Table 3: agreement of ranks before and after harmonization"
    shows: ClassVar[tuple[Shown, ...]] = (
        Shown("Table 3", "approximated", "replayed on WMT 2010 rankings with simulated adequacy"),
    )
    data: ClassVar[tuple[str, ...]] = (FILE,)

    slips: tuple[float, ...] = (0.0, 0.1, 0.2)
    sources: int | None = 1000
    seed: int = 0

    def small(self) -> Self:
        """Simulate 200 rankings with consistent and with inconsistent annotators."""
        return replace(self, slips=(0.0, 0.3), sources=200)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Measure the agreement for each share of slips."""
        sources = read_sources(data).with_reference().sample(self.sources, self.seed)
        by_lapse_rate = {}
        for done, slip in enumerate(self.slips, 1):
            by_lapse_rate[slip] = agreement_after(sources, self.seed, slip=slip, follow_up=False)
            progress(done, len(self.slips))
        table = pl.concat([frame.with_columns(pl.lit(slip).alias("slip")) for slip, frame in by_lapse_rate.items()])
        claims = self._claims(by_lapse_rate)
        bar_data = table.filter(pl.col("statistic") == "differ").select(
            pl.format("slips: {} %", (100 * pl.col("slip")).round(0).cast(pl.Int64)).alias("people"),
            *(pl.col(name) * 100 for name in ("value", "lower", "upper")),
            pl.lit(PUBLISHED["differ"]).alias("published"),
        )
        return Outcome(
            claims,
            table,
            lambda: bars(
                bar_data,
                "people",
                "value",
                title=f"Harmonization changes {claims[3].ours:.0f} % of sources even without errors (published: 11 %)",
                subtitle="Sources in which a rank differs after harmonization; diamonds: published",
                value_title="per cent of sources",
                value_format=".0f",
            ),
            (READING, "five outputs per source (six in the paper); identical outputs cannot be detected"),
        )

    def _claims(self, found: Mapping[float, pl.DataFrame]) -> tuple[Claim, ...]:
        """Compare consistent annotators with Table 3, and inconsistent ones with §4.5."""
        claims = []
        for slip, frame in found.items():
            who = "no errors" if not slip else f"another criterion for {100 * slip:.0f} % of the outputs"
            for row in frame.iter_rows(named=True):
                differ = row["statistic"] == "differ"
                if slip and not differ:
                    continue
                published, reason = PUBLISHED[row["statistic"]], MORE
                if differ and not slip:
                    published, reason = TOPOLOGICAL * published, SHARE
                scale, unit = (100, "%") if differ else (1, "")
                value, lower, upper = (scale * row[name] for name in ("value", "lower", "upper"))
                claims.append(Claim(f"{who}: {WORDS[row['statistic']]}", value, lower, upper, published, unit, reason))
        return tuple(claims)
