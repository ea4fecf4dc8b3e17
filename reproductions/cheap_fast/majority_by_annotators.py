"""Figures 3 to 5: how accurate the majority of n annotators is, for n = 1 … 10."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.charts import curves
from reproductions.cheap_fast.recordings import PAPER, read_labels
from steelyard.reliability import meta_annotator

PUBLISHED = {"rte": 0.897, "temp": 0.94, "wsd": 0.994}
"""Accuracy of ten annotators: §4.3 with Figure 3, §4.4 with Figure 4, §4.5 with Figure 5."""
NAMES = {"rte": "textual entailment", "temp": "temporal order", "wsd": "word sense"}


@dataclass(frozen=True, slots=True)
class MajorityByAnnotators(Experiment):
    """Vote with every subset of n annotations of an item, ties shared, as the paper does."""

    name: ClassVar[str] = "cheap_fast.majority_by_annotators"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Figures 3–5: accuracy of the majority of n annotators"
    shows: ClassVar[tuple[Shown, ...]] = (
        Shown("Figure 3", "reproduced"),
        Shown("Figure 4", "reproduced"),
        Shown("Figure 5", "reproduced"),
    )
    data: ClassVar[tuple[str, ...]] = tuple(f"snow2008/{name}.csv.gz" for name in PUBLISHED)

    sizes: tuple[int, ...] = tuple(range(1, 11))

    def small(self) -> Self:
        """Return itself: the expectation over all subsets is exact, and quick."""
        return self

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Compute the curves of the three tasks."""
        claims, tables = [], []
        for done, (task, published) in enumerate(PUBLISHED.items(), 1):
            labels, gold = read_labels(data, task)
            curve = meta_annotator(labels, gold, sizes=self.sizes)
            last = curve[self.sizes[-1]]
            claims.append(
                Claim(
                    f"{NAMES[task]}: accuracy of the majority of {self.sizes[-1]}",
                    last.value or 0.0,
                    last.lower,
                    last.upper,
                    published if self.sizes[-1] == 10 else None,
                )
            )
            tables.append(
                curve.table.select(
                    pl.lit(NAMES[task]).alias("task"),
                    "annotators",
                    pl.col("value").alias("accuracy"),
                    "lower",
                    "upper",
                    pl.when(pl.col("annotators") == 10).then(published).alias("published"),
                )
            )
            progress(done, len(PUBLISHED))
        table = pl.concat(tables)
        notes = (
            "accuracy is the exact expectation over all subsets of an item's ten labels and over ties",
            "footnote 5 of the paper (2n + 1 and 2n + 2 annotators do equally well) holds for the two-class tasks",
        )
        return Outcome(
            tuple(claims),
            table,
            lambda: curves(
                table,
                "annotators",
                "accuracy",
                "task",
                title=f"Ten people reach {claims[0].ours:.3f}, {claims[1].ours:.3f} and {claims[2].ours:.3f}",
                subtitle="Accuracy of the majority against the experts, with 95 % intervals; diamonds: published",
                x_title="annotators for each item",
            ),
            notes,
        )
