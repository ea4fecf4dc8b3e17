"""§3.1: how many comparisons a tournament takes beside a full ranking, and how much of the ranking it finds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb, log2
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.charts import curves
from reproductions.tournament.intervals import mean_interval
from reproductions.tournament.recordings import PAPER, correlations, graphs_of
from steelyard.designs.tournament.brackets import comparisons_for, first_pairs
from steelyard.observations import Comparisons, FloatArray, Index

FIVE = SIX = 6
"""Comparisons of five and of six items, §3.1."""
REDUCTION = 60.0
"""Per cent by which six items' comparisons are fewer than 6 log2 6, "more than" this, §3.1."""


@dataclass(frozen=True, slots=True)
class TournamentEffort(Experiment):
    """Count comparisons by items, and rank items of a known order with them."""

    name: ClassVar[str] = "tournament.effort"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "§3.1: comparisons of a tournament and of a full ranking"

    sizes: tuple[int, ...] = tuple(range(3, 11))
    sources: int = 1000
    seed: int = 0

    def small(self) -> Self:
        """Rank fewer sources."""
        return replace(self, sources=150)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Hold tournaments without ties or errors on sources of each size."""
        rows = []
        for done, size in enumerate(self.sizes, 1):
            drawn, r = self._tournaments(size)
            rows.append((size, drawn, size * log2(size), comb(size, 2), 2 * -(-size // 2), *mean_interval(r)))
            progress(done, len(self.sizes))
        names = ("items", "tournament", "sorting", "all_pairs", "paper_formula", "r", "lower", "upper")
        table = pl.DataFrame(rows, schema=names, orient="row")
        of = {row[0]: row for row in rows}
        claims = [
            Claim(f"comparisons of {name} items", of[size][1], published=published)
            for size, name, published in ((5, "five", FIVE), (6, "six", SIX))
        ]
        saved = 100 * (1 - of[6][1] / of[6][2])
        claims += [
            Claim(
                "six items: fewer comparisons than 6 log₂ 6",
                saved,
                published=REDUCTION,
                unit="%",
                why="the paper says more than 60",
            ),
            Claim(
                "six items without ties: mean r of true and estimated ranks",
                *of[6][5:8],
                why="not in the paper, whose 0.93 is for five items with ties (see tournament.reconstruction)",
            ),
        ]
        wrong = [size for size in self.sizes if comparisons_for(size) != 2 * -(-size // 2)]
        drawn_table = table.unpivot(
            ["tournament", "sorting", "all_pairs"], index="items", variable_name="how", value_name="comparisons"
        ).with_columns(pl.col("how").replace({"sorting": "sorting (n log₂ n)", "all_pairs": "all pairs"}))
        return Outcome(
            tuple(claims),
            table,
            lambda: curves(
                drawn_table,
                "items",
                "comparisons",
                "how",
                title=f"Six items take six comparisons, {saved:.0f} % fewer than sorting them",
                subtitle="Comparisons to rank the outputs of one source",
                x_title="items of a source",
                y_format=".0f",
            ),
            (
                f"the paper's general formula 2⌈n/2⌉ does not hold for n = {', '.join(map(str, wrong))}",
                "the times of the paper's annotators (Figures 2 and 3) are not available; see easl.time_and_length",
            ),
        )

    def _tournaments(self, size: int) -> tuple[float, FloatArray]:
        """Return the comparisons drawn for a source on average, and r of true and found ranks by source."""
        left, right, outcome = [], [], []
        for source in range(self.sources):
            order = np.random.default_rng([self.seed, size, source]).permutation(size)
            for one, other in first_pairs(range(size), [self.seed, size, source, 1]):
                left.append(source * size + one)
                right.append(source * size + other)
                outcome.append(1 if order[one] < order[other] else -1)
        comparisons = Comparisons(
            items=Index([str(number) for number in range(size * self.sources)]),
            left=np.array(left, np.int32),
            right=np.array(right, np.int32),
            outcome=np.array(outcome, np.int8),
        )
        graphs = graphs_of(comparisons)
        ranks = np.zeros(size * self.sources, np.int64)
        ranks[graphs.item] = graphs.rank
        true = np.array(
            [np.random.default_rng([self.seed, size, source]).permutation(size) for source in range(self.sources)],
            np.int32,
        )
        return len(left) / self.sources, correlations(true, ranks.reshape(true.shape))
