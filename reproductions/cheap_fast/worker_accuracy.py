"""Figure 6: how accurate each annotator of the entailment task is, by how much they did."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self, cast

import altair as alt
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.cheap_fast.recordings import PAPER, read_labels
from steelyard.models.labels.gold_calibrated import GoldCalibrated
from steelyard.report.charts import HEIGHT, WIDTH, Chart, titled, values_of

LEAST = 20
"""The minimum amount of work, from the caption of Figure 6."""


@dataclass(frozen=True, slots=True)
class WorkerAccuracy(Experiment):
    """Hold each annotator's labels against the experts'."""

    name: ClassVar[str] = "cheap_fast.worker_accuracy"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Figure 6: accuracy of each annotator of the entailment task"
    shows: ClassVar[tuple[Shown, ...]] = (Shown("Figure 6", "reproduced"),)
    data: ClassVar[tuple[str, ...]] = ("snow2008/rte.csv.gz",)

    def small(self) -> Self:
        """Return itself: it takes no time."""
        return self

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Estimate the annotators' accuracy, and count those with few labels."""
        labels, gold = read_labels(data, "rte")
        people = cast("pl.DataFrame", GoldCalibrated.as_published().fit(labels, gold=gold).annotators)
        table = people.select("annotator", "judgments", "accuracy", "accuracy_lower", "accuracy_upper")
        progress(1, 1)
        minimal = table.filter(pl.col("judgments") == LEAST)
        prolific = table.sort("judgments", descending=True).head(10)
        near_chance = prolific.filter(pl.col("accuracy_lower") < 0.6).height
        claims = (
            Claim("fewest labels of an annotator", float(table["judgments"].min() or 0), published=LEAST),  # type: ignore[arg-type]
            Claim(
                "annotators with exactly this number", minimal.height, why="the paper shows them, but gives no count"
            ),
            Claim(
                "of the ten with the most labels, those whose interval extends below 0.6",
                near_chance,
                why="the paper mentions high-volume, low-quality workers without a count",
            ),
        )
        return Outcome(claims, table, lambda: _drawn(table, minimal.height, near_chance))


def _drawn(table: pl.DataFrame, minimal: int, near_chance: int) -> Chart:
    places = table.group_by("judgments", "accuracy").agg(pl.len().alias("annotators"))
    chart = (
        alt.Chart(values_of(places.sort("judgments", "accuracy")))
        .mark_point(filled=True, opacity=0.6)
        .encode(
            x=alt.X("judgments:Q", title="labels given", scale=alt.Scale(type="log", nice=False, padding=8)),
            y=alt.Y("accuracy:Q", title="accuracy against the experts", scale=alt.Scale(zero=False)),
            size=alt.Size("annotators:Q", title="annotators", scale=alt.Scale(range=[30, 400])),
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
    title = f"{minimal} of {table.height} did just {LEAST} items; {near_chance} of the busiest ten are near chance"
    return titled(chart, title, "Annotators of the entailment task, by labels given and accuracy")  # type: ignore[no-any-return]
