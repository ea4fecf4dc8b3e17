"""Table 3 and §4.1: labels for the money and the hour, and how many of them are worth one of an expert."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.charts import bars
from reproductions.cheap_fast.affect_by_annotators import AffectByAnnotators
from reproductions.cheap_fast.recordings import PAPER, read_affect, read_labels, read_similarities

# Table 3: cost in dollars and hours as published, then labels per dollar and labels per hour.
PUBLISHED = {
    "affect": (2.00, 5.93, 3500.0, 1180.4),
    "word similarity": (0.20, 0.174, 1500.0, 1724.1),
    "textual entailment": (8.00, 89.3, 1000.0, 89.59),
    "temporal order": (13.86, 39.9, 333.3, 115.85),
    "word sense": (1.76, 8.59, 1005.7, 206.1),
    "total": (25.82, 143.9, 840.0, 150.7),
}
MATCHING = "mean of all seven: annotators that match one expert"
EXPERT_LABELS = 875.0
"""Expert-equivalent labels per dollar for affect, §4.1."""


@dataclass(frozen=True, slots=True)
class Costs(Experiment):
    """Count the labels in the data, and take money and hours from the paper: they are recorded nowhere else."""

    name: ClassVar[str] = "cheap_fast.costs"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Table 3 and §4.1: labels per dollar and hour, and expert-equivalent labels"
    shows: ClassVar[tuple[Shown, ...]] = (Shown("Table 3", "reproduced"),)
    data: ClassVar[tuple[str, ...]] = tuple(
        f"snow2008/{name}.csv.gz" for name in ("affect", "wordsim", "rte", "temp", "wsd")
    )

    subsets: int = 100

    def small(self) -> Self:
        """Draw fewer subsets for the number of annotators that match an expert."""
        return replace(self, subsets=20)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Make the table."""
        labels = {
            "affect": sum(len(ratings) for ratings, _ in read_affect(data).values()),
            "word similarity": len(read_similarities(data)[0]),
            **{
                name: len(read_labels(data, file)[0])
                for name, file in (("textual entailment", "rte"), ("temporal order", "temp"), ("word sense", "wsd"))
            },
        }
        labels["total"] = sum(labels.values())
        rows, claims = [], []
        for name, count in labels.items():
            dollars, hours, a_dollar, an_hour = PUBLISHED[name]
            rows.append((name, count, dollars, hours, count / dollars, count / hours, a_dollar))
            claims.append(Claim(f"{name}: labels per dollar", count / dollars, published=a_dollar))
            why = "the printed hours are rounded" if name == "temporal order" else ""
            claims.append(Claim(f"{name}: labels per hour", count / hours, published=an_hour, why=why))
        affect_claims = AffectByAnnotators(subsets=self.subsets).run(data, progress).claims
        (matching,) = (claim for claim in affect_claims if claim.what == MATCHING)
        expert = labels["affect"] / PUBLISHED["affect"][0] / matching.ours
        claims.append(Claim("affect: expert-equivalent labels per dollar", expert, published=EXPERT_LABELS))
        names = ("task", "labels", "dollars", "hours", "labels_a_dollar", "labels_an_hour", "published")
        table = pl.DataFrame(rows, schema=names, orient="row")
        return Outcome(
            tuple(claims),
            table,
            lambda: bars(
                table,
                "task",
                "labels_a_dollar",
                title=f"A dollar bought {rows[-1][4]:.0f} labels, or {expert:.0f} as good as an expert’s for affect",
                subtitle="Diamonds: published",
                value_title="labels per dollar",
                value_format=",d",
            ),
            (
                "money and hours are the published totals (2008 dollars); labels are counted in the data",
                f"{matching.ours:.0f} annotators match one expert, averaged over emotions and valence (see "
                f"{AffectByAnnotators.name})",
            ),
        )
