"""Figures 2 and 3 of paper 001 in form: agreement and time by length, where the recorded data has texts and times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.charts import curves
from reproductions.easl.sliders import SLIDERS, read_sliders, usable
from steelyard.formats import read_table
from steelyard.observations import FloatArray
from steelyard.reliability import split_half
from steelyard.report.charts import Chart

_ITEMS = "nli/items.csv.gz"
_PAIRS = ("cs-en", "de-en", "ha-en")
_UP_TO = (12, 16, 20, 24, 40)
"""Words of both sentences; the last is the longest pair."""

_NO_NUMBERS = (
    "Figures 2 and 3 are for rankings of translations, and without numbers: the shape can be compared, the level cannot"
)


@dataclass(frozen=True, slots=True)
class TimeAndLength(Experiment):
    """Relate the length of NLI pairs to agreement and time per page, and sum up the hours of WMT."""

    name: ClassVar[str] = "easl.time_and_length"
    paper: ClassVar[str] = "Pighin et al., 2012"
    title: ClassVar[str] = "Shape of Figures 2 and 3: agreement and time by length, on NLI sliders and WMT 2021"
    shows: ClassVar[tuple[Shown, ...]] = (
        Shown(
            "Figure 2",
            "approximated",
            "no recording has comparisons and full rankings of the same texts: agreement by length, on sliders",
        ),
        Shown(
            "Figure 3",
            "approximated",
            "no recording has times of both methods: the growth of time with length, on sliders",
        ),
    )
    data: ClassVar[tuple[str, ...]] = (SLIDERS, _ITEMS, *(f"wmt21-da/{pair}.csv.gz" for pair in _PAIRS))

    trials: int = 50
    resamples: int = 500
    seed: int = 0

    def small(self) -> Self:
        """Return fewer splits and resamples."""
        return replace(self, trials=5, resamples=100)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Measure agreement, then time."""
        steps = len(_UP_TO) + 2
        words = _words(data)
        ratings = read_sliders(data)
        claims, rows = [], []
        for done, most in enumerate(_UP_TO):
            items = words.filter((pl.col("words") <= most) & pl.col("item").is_in(list(ratings.items.ids)))
            halves = split_half(ratings, items=items["item"].to_list(), trials=self.trials, seed=self.seed)
            statistic = halves["split_half_spearman"]
            rows.append((most, items.height, statistic.value, statistic.lower, statistic.upper))
            what = f"split-half ρ of pairs of up to {most} words ({items.height} pairs)"
            claims.append(Claim(what, float(statistic.value or 0), statistic.lower, statistic.upper, why=_NO_NUMBERS))
            progress(done + 1, steps)
        numbers = dict.fromkeys(("split_half", "lower", "upper"), pl.Float64)
        schema = {"up_to_words": pl.Int64, "items": pl.Int64, **numbers}
        table = pl.DataFrame(rows, schema=schema, orient="row")
        claims.append(self._growth(_pages(data, words)))
        progress(steps - 1, steps)
        claims += [claim for pair in _PAIRS for claim in _worked(data, pair)]
        progress(steps, steps)
        return Outcome(tuple(claims), table, lambda: _chart(table), _NOTES)

    def _growth(self, pages: pl.DataFrame) -> Claim:
        """Say by how much a page takes longer for each per cent of words more, each person against themselves."""
        within = pages.filter(pl.len().over("annotator") > 1).with_columns(
            (pl.col(name).log() - pl.col(name).log().mean().over("annotator")).alias(name)
            for name in ("words", "seconds")
        )
        by_person = within.group_by("annotator", maintain_order=True).agg(
            (pl.col("words") * pl.col("seconds")).sum().alias("both"), (pl.col("words") ** 2).sum().alias("square")
        )
        both, square = by_person["both"].to_numpy(), by_person["square"].to_numpy()
        rng = np.random.default_rng(self.seed)
        samples = rng.integers(len(both), size=(self.resamples, len(both)))
        resampled: FloatArray = both[samples].sum(axis=1) / square[samples].sum(axis=1)
        lower, upper = (float(end) for end in np.quantile(resampled, [0.025, 0.975]))
        return Claim(
            "growth of a page's time for 1 % more words, by the same annotator",
            float(both.sum() / square.sum()),
            lower,
            upper,
            unit="%",
            why="below 1 means that the time per word decreases with length, as in Figure 3",
        )


_NOTES = (
    "The paper's annotations are not available. The NLI sliders have texts, and a time for a page of 20 pairs; "
    "WMT 2021 has a time for a whole HIT and no texts.",
    "Pages of 20 pairs hardly differ in length (349 to 454 words), so that the growth of time with length is "
    "estimated imprecisely, and times include pauses.",
    "Agreement by length is over pairs up to a length, as in Figure 2.",
)


def _words(data: Path) -> pl.DataFrame:
    """Count the words of both sentences of each pair."""
    counted = pl.sum_horizontal(pl.col("premise", "hypothesis").str.count_matches(r"\S+"))
    return read_table(data / _ITEMS).select("item", counted.alias("words"))


def _pages(data: Path, words: pl.DataFrame) -> pl.DataFrame:
    """Return the words and the time of every page that somebody did."""
    joined = usable(data, cannot_judge=True).join(words, on="item")
    return joined.group_by("assignment", "annotator", maintain_order=True).agg(
        pl.col("words").sum(), pl.col("seconds").cast(pl.Float64).first()
    )


def _worked(data: Path, pair: str) -> tuple[Claim, Claim]:
    """Return the hours worked, and the seconds per judgment."""
    hits = (
        read_table(data / f"wmt21-da/{pair}.csv.gz")
        .group_by("annotator", "hit")
        .agg(pl.len().alias("judgments"), pl.col("seconds").cast(pl.Float64).first())
    )
    each = hits.select(pl.col("seconds") / pl.col("judgments")).to_series().to_numpy()
    hours = float(hits["seconds"].sum()) / 3600
    people = hits["annotator"].n_unique()
    median, low, high = np.quantile(each, [0.5, 0.25, 0.75]).tolist()
    return (
        Claim(f"hours worked by an annotator, mean of {people}, WMT 2021 {pair}", hours / people, unit="hours"),
        Claim(
            f"seconds per judgment, median HIT, WMT 2021 {pair}",
            median,
            unit="seconds",
            why=f"half of the HITs lie between {low:.0f} and {high:.0f}; a HIT's time includes rows that were not "
            "released",
        ),
    )


def _chart(table: pl.DataFrame) -> Chart:
    return curves(
        table.with_columns(pl.lit("NLI sliders").alias("data")),
        "up_to_words",
        "split_half",
        "data",
        title="People agree on long pairs about as well as on short ones",
        subtitle="split-half ρ over pairs of up to so many words, with 95 % intervals",
        x_title="words, up to",
        y_title="split-half Spearman’s ρ",
    )
