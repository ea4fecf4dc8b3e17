"""Figure 1: how often annotators contradict themselves, by the time between two ratings of the same item."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.best_worst.rated_and_chosen import PAPER
from reproductions.charts import curves
from steelyard.formats import read_table
from steelyard.observations import FloatArray
from steelyard.report.charts import Chart

ANSWERS = "esa_wmt23_ende/answers.csv.gz"
_KEY = ("protocol", "annotator", "system", "segment")
STEP = 100 / 9
"""A step of the paper's nine-point scale, on the scale of these sliders."""
BANDS = ((0.0, 3.0, "up to 3 hours"), (3.0, 24.0, "3 to 24 hours"))


@dataclass(frozen=True, slots=True)
class Repeats(Experiment):
    """Compare the two ratings of the same translation by the same annotator, by the hours between them."""

    name: ClassVar[str] = "best_worst.repeats"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Figure 1 on other data: ratings repeated by the same annotator, by the time between them"
    shows: ClassVar[tuple[Shown, ...]] = (
        Shown(
            "Figure 1",
            "approximated",
            "the paper's repeated ratings are not available: 56 repeats of another study, within a day",
        ),
    )
    data: ClassVar[tuple[str, ...]] = (ANSWERS,)

    def small(self) -> Self:
        """Return the same: it is small."""
        return self

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Join repeats with the first ratings."""
        answers = read_table(data / ANSWERS).with_columns(pl.col("score", "start").cast(pl.Float64, strict=False))
        scored = answers.filter(pl.col("score").is_not_null() & ~pl.col("protocol").str.starts_with("MQM"))
        repeats = scored.filter(pl.col("kind") == "repeat")
        pairs = repeats.join(scored.filter(pl.col("kind") == "item"), on=_KEY, suffix="_first").select(
            ((pl.col("start") - pl.col("start_first")) / 3600).alias("hours"),
            (pl.col("score") - pl.col("score_first")).abs().alias("difference"),
        )
        progress(1, 1)
        hours, difference = pairs["hours"].to_numpy(), pairs["difference"].to_numpy()
        table = pl.DataFrame(
            [
                {
                    "hours": float(np.median(hours[inside])),
                    "band": name,
                    "kind": kind,
                    **_share(difference[inside], least),
                }
                for low, high, name in BANDS
                for inside in [(hours > low) & (hours <= high)]
                for kind, least in (("any difference", 0.5), ("a step of nine or more", STEP))
            ]
        )
        return Outcome(tuple(self._claims(table, difference)), table, lambda: _chart(table), _NOTES)

    def _claims(self, table: pl.DataFrame, difference: FloatArray) -> Iterator[Claim]:
        for row in table.iter_rows(named=True):
            yield Claim(
                f"repeats within {row['band'].removeprefix('up to ')} that differ: {row['kind']} ({row['repeats']})",
                row["value"],
                row["lower"],
                row["upper"],
                unit="%",
                why="sliders of 101 points, the paper's scale has nine",
            )
        whole = _share(difference, STEP)
        yield Claim(
            "repeats that differ by a step of nine or more, all times",
            whole["value"],
            whole["lower"],
            whole["upper"],
            37.0,
            "%",
            "other annotators, items and scale",
        )
        differing = difference[difference >= STEP] / STEP
        yield Claim(
            "mean difference of those, in steps of nine",
            float(differing.mean()),
            published=1.27,
            why="other annotators, items and scale",
        )


_NOTES = (
    "Error span annotation of WMT 2023: the two ratings of a translation by the same annotator, on sliders from 0 to "
    "100, within the same campaign.",
    "The paper finds that inconsistency grows with time. That is not seen here.",
    "The paper shows 12-hour periods over several days; here all repeats are within a day, and intervals are wide "
    "(Wilson, 95 %, repeats as a sample).",
)


def _share(difference: FloatArray, least: float) -> dict[str, float]:
    """Return the percentage of differences of at least `least`, with Wilson's interval."""
    n = len(difference)
    share, z = float((difference >= least).mean()), 1.96
    centre, half = (share + z**2 / (2 * n)), z * float(np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)))
    ends = (100 * (centre + sign * half) / (1 + z**2 / n) for sign in (-1, 1))
    lower, upper = ends
    return {"repeats": n, "value": 100 * share, "lower": lower, "upper": upper}


def _chart(table: pl.DataFrame) -> Chart:
    return curves(
        table,
        "hours",
        "value",
        "kind",
        title="Within a day, annotators do not contradict themselves more often after more time",
        subtitle="Repeated ratings of the same translation by the same annotator; 95 % intervals",
        x_title="hours between the two ratings (median of the group)",
        y_title="% that differ",
        y_format=".0f",
        whole_numbers=False,
    )
