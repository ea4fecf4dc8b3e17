"""The published ratings of MTEB Arena from its votes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.charts import bars
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.systems.compare_systems import compare_systems
from steelyard.report.charts import Chart

VOTES, RATINGS = "mteb_arena/votes.csv.gz", "mteb_arena/published_elo.csv.gz"
TASK = "retrieval"


@dataclass(frozen=True, slots=True)
class MtebArena(Experiment):
    """Fit Bradley–Terry with ties as half wins to the votes of the retrieval arena, on Elo's scale."""

    name: ClassVar[str] = "systems.mteb_arena"
    paper: ClassVar[str] = "MTEB Arena, 2024"
    title: ClassVar[str] = "Ratings of the retrieval leaderboard"
    data: ClassVar[tuple[str, ...]] = (VOTES, RATINGS)

    def small(self) -> Self:
        """Return the whole: it takes a second."""
        return self

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Rate the models, and compare the ratings with the published ones."""
        votes = pl.read_csv(data / VOTES).filter(pl.col("task") == TASK).drop("task")
        published = pl.read_csv(data / RATINGS).filter(pl.col("task") == TASK)
        board = compare_systems(votes, unit="elo", model=BradleyTerry(ties="half"))
        table = board.scores.join(
            published.select(pl.col("model").alias("system"), pl.col("elo").alias("published")), on="system"
        ).select("system", "score", "lower", "upper", "published", "rank", "rank_lower", "rank_upper", "cluster")
        progress(1, 1)
        distance = (table["score"] - table["published"]).abs()
        claims = [
            Claim(row["system"], row["score"], row["lower"], row["upper"], row["published"], "points")
            for row in table.iter_rows(named=True)
        ]
        largest = float(distance.max() or 0.0)  # type: ignore[arg-type]  # polars' literal
        why = "published ratings come from another optimiser, with a small penalty"
        claims.append(
            Claim("largest difference from a published rating", largest, published=0.0, unit="points", why=why)
        )
        claims.append(Claim("clusters", float(table["cluster"].n_unique())))
        return Outcome(
            tuple(claims),
            table,
            lambda: _chart(table),
            ("Intervals treat votes as a sample, because the arena publishes neither prompt ids nor voters.",),
        )


def _chart(table: pl.DataFrame) -> Chart:
    return bars(
        table.select("system", "score", "lower", "upper", "published"),
        "system",
        "score",
        title="Every published rating is met within 0.7 points",
        subtitle="diamonds: published; lines: 95 % intervals",
        value_title="rating",
    )
