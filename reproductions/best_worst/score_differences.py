"""Table 1: how far the scores of best–worst scaling and of a rating scale are apart, by the number of judgments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.best_worst.rated_and_chosen import PAPER, Terms
from reproductions.charts import bars
from steelyard.models.choices.counting import Counting
from steelyard.models.ratings.mean import Mean
from steelyard.reliability import compare_scorings
from steelyard.report.charts import Chart

# Table 1: judgments (in N): Δscore, Δrank of 3,207, ρ, r.
_PUBLISHED = {3: (0.11, 397, 0.85, 0.85), 5: (0.10, 363, 0.87, 0.88), 20: (0.08, 264, 0.93, 0.93)}
_PUBLISHED_TERMS = 3207

_TUPLES = {3: (1.0, 3), 5: (1.0, 5), 20: (2.0, 10)}
"""Tuples (in N) and annotators per tuple for each number of judgments; the paper does not state its choice."""

_WHY = (
    "simulated annotators rate and choose by the same values; in the paper, the two question types also lead to "
    "different opinions (Table 2)"
)


@dataclass(frozen=True, slots=True)
class ScoreDifferences(Experiment):
    """Score the same terms both ways, from 3N, 5N and 20N simulated judgments."""

    name: ClassVar[str] = "best_worst.score_differences"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Table 1: differences between the scores of best–worst scaling and a rating scale"
    shows: ClassVar[tuple[Shown, ...]] = (
        Shown("Table 1", "approximated", "the paper's judgments are not available: simulated annotators"),
    )

    terms: int = _PUBLISHED_TERMS
    seed: int = 1

    def small(self) -> Self:
        """Return a tenth of the terms."""
        return replace(self, terms=320)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Compare the two scorings at each number of judgments."""
        claims: list[Claim] = []
        rows = []
        for done, (judgments, published) in enumerate(_PUBLISHED.items()):
            terms = Terms.drawn(self.terms, np.random.default_rng([self.seed, judgments]))
            rated, chosen = terms.rated(judgments), terms.chosen(*_TUPLES[judgments])
            compared = compare_scorings(Counting().fit(chosen), Mean().fit(rated))
            names = ("mean_score_difference", "mean_rank_difference", "spearman", "pearson")
            scales = (1.0, 100 / self.terms, 1.0, 1.0)
            units = ("", "% of the ranks", "", "")
            of_paper = (published[0], 100 * published[1] / _PUBLISHED_TERMS, *published[2:])
            for name, scale, unit, theirs in zip(names, scales, units, of_paper, strict=True):
                figure = compared[name]
                value, lower, upper = (
                    None if end is None else scale * end for end in (figure.value, figure.lower, figure.upper)
                )
                what = f"{figure.label}, {judgments}N judgments"
                claims.append(Claim(what, float(value or 0.0), lower, upper, published=theirs, unit=unit, why=_WHY))
                rows.append((judgments, name, value, lower, upper, theirs))
            progress(done + 1, len(_PUBLISHED))
        columns = {"judgments": pl.Int64, "statistic": pl.String}
        columns |= dict.fromkeys(("value", "lower", "upper", "published"), pl.Float64)
        table = pl.DataFrame(rows, schema=columns, orient="row")
        return Outcome(
            tuple(claims),
            table,
            lambda: _chart(table),
            (
                "Both scores are rescaled to [0, 1] by the ends of their scales (-4 to 4, and -1 to 1).",
                f"Ranks are given in % of the terms ({self.terms:,} here, {_PUBLISHED_TERMS:,} in the paper).",
                "Tables 2 and 3 of the paper are by type of phrase, which simulated terms do not have.",
            ),
        )


def _chart(table: pl.DataFrame) -> Chart:
    correlations = table.filter(pl.col("statistic") == "spearman").with_columns(
        pl.format("{}N judgments", "judgments").alias("name")
    )
    return bars(
        correlations,
        "name",
        "value",
        title="The two ways of asking agree better the more judgments there are",
        subtitle="simulated annotators; diamonds: published (Table 1)",
        value_title="Spearman’s ρ of the two scorings",
    )
