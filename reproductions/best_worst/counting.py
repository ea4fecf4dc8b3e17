"""The published scores of SemEval-2012 task 2, counted again from its answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.best_worst.rated_and_chosen import PAPER
from reproductions.best_worst.semeval import ANSWERS, GOLD, answers_by_relation
from steelyard.formats import read_table
from steelyard.models.choices.counting import Counting
from steelyard.models.choices.maxdiff import MaxDiff
from steelyard.reliability.correlation import spearman
from steelyard.report.charts import HEIGHT, Chart, titled, values_of


@dataclass(frozen=True, slots=True)
class CountedScores(Experiment):
    """Compute (best − worst) / shown for every item, and compare it with the published score."""

    name: ClassVar[str] = "best_worst.counting"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "§3.3: the counting procedure, on the answers and scores of SemEval-2012 task 2"
    data: ClassVar[tuple[str, ...]] = (ANSWERS, GOLD)

    relations: int | None = None
    """How many relations to take; None for all 79."""

    def small(self) -> Self:
        """Return three relations."""
        return replace(self, relations=3)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Score relation by relation, by counting and by the maxdiff logit."""
        by_relation = answers_by_relation(data, self.relations)
        gold = read_table(data / GOLD).select("relation", "item", pl.col("score").cast(pl.Float64).alias("published"))
        counted, correlations = [], []
        for done, (relation, choices) in enumerate(by_relation.items()):
            scores = (
                Counting()
                .fit(choices)
                .scores.select(pl.lit(relation).alias("relation"), "item", (100 * pl.col("score")).alias("counted"))
            )
            logit = MaxDiff().fit(choices).scores.select("item", pl.col("score").alias("logit"))
            both = scores.join(logit, on="item")
            correlation = spearman(both["counted"].to_numpy(), both["logit"].to_numpy())
            correlations.append(0.0 if correlation is None else correlation.r)
            counted.append(both)
            progress(done + 1, len(by_relation))
        table = pl.concat(counted).join(gold, on=["relation", "item"])
        apart = float(np.abs(table["counted"].to_numpy() - table["published"].to_numpy()).max())
        claims = (
            Claim("items scored", float(table.height), published=float(_in_gold(gold, by_relation))),
            Claim(
                "largest difference from a published score (scale of 100)",
                apart,
                published=0.0,
                why="published scores are rounded to one decimal, so that up to 0.05 is rounding",
            ),
            Claim(
                "Spearman's ρ of counting with the maxdiff logit, mean of the relations",
                sum(correlations) / len(correlations),
                why="the paper says only that counting is similar to more sophisticated models",
            ),
        )
        return Outcome(
            claims,
            table,
            lambda: _chart(table),
            (
                "The published scores include answers in which the best or worst item is missing, and answers in which "
                "the same item is both.",
            ),
        )


def _in_gold(gold: pl.DataFrame, relations: Iterable[str]) -> int:
    return gold.filter(pl.col("relation").is_in(list(relations))).height


def _chart(table: pl.DataFrame) -> Chart:
    import altair as alt

    chart = (
        alt.Chart(values_of(table))
        .mark_point(filled=True, size=10, opacity=0.35)
        .encode(x=alt.X("published:Q", title="published score"), y=alt.Y("counted:Q", title="counted score"))
    )
    title = "Counting gives the published score of every item"
    return titled(chart.properties(width=HEIGHT + 60, height=HEIGHT + 60), title)  # type: ignore[no-any-return]
