"""Figure 2: correlation of n averaged annotators with the published word similarities."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.charts import curves
from reproductions.cheap_fast.recordings import PAPER, read_similarities
from steelyard.reliability import meta_annotator

PUBLISHED = 0.952
"""Ten annotators, §4.2 with Figure 2."""
RESNIK = 0.958
"""The ten subjects of Resnik (1999), the horizontal line of Figure 2."""


@dataclass(frozen=True, slots=True)
class WordSimilarity(Experiment):
    """Average the ratings of every subset of n annotators, as the paper does."""

    name: ClassVar[str] = "cheap_fast.word_similarity"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Figure 2: word similarity, correlation with gold by annotators"
    shows: ClassVar[tuple[Shown, ...]] = (Shown("Figure 2", "reproduced"),)
    data: ClassVar[tuple[str, ...]] = ("snow2008/wordsim.csv.gz",)

    sizes: tuple[int, ...] = tuple(range(1, 11))

    def small(self) -> Self:
        """Return itself: there are at most 252 subsets of ten annotators."""
        return self

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Compute the curve."""
        ratings, gold = read_similarities(data)
        curve = meta_annotator(ratings, gold, sizes=self.sizes, expert=RESNIK)
        last = curve[self.sizes[-1]]
        progress(1, 1)
        table = curve.table.select(
            pl.lit("mean of n annotators").alias("who"),
            "annotators",
            pl.col("value").alias("r"),
            "lower",
            "upper",
            pl.when(pl.col("annotators") == 10).then(PUBLISHED).alias("published"),
        )
        claim = Claim(
            f"r of the mean of {self.sizes[-1]} with gold", last.value or 0.0, last.lower, last.upper, PUBLISHED
        )
        return Outcome(
            (claim,),
            table,
            lambda: curves(
                table,
                "annotators",
                "r",
                "who",
                title=f"Ten people together correlate at {claim.ours:.3f} with the published similarities",
                subtitle=f"With 95 % intervals over the 30 pairs; diamond: published. Resnik’s subjects: {RESNIK}",
                x_title="annotators",
                y_title="Pearson’s r with gold",
            ),
            tuple(curve.notes),
        )
