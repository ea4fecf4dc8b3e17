"""Figures 6 and 9 by replay: the three methods run over the recorded sliders of Pavlick & Kwiatkowski (2019)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.charts import curves
from reproductions.easl.curves import band, correlations, curve_table, gain_claim
from reproductions.easl.methods import PAPER, Method, RecordedPanel, rounds
from reproductions.easl.sliders import SLIDERS, parted, read_sliders
from steelyard.observations import Index
from steelyard.report.charts import Chart
from steelyard.simulate import RecordedAnnotators

_WHY = (
    "recorded sliders were set 20 to a page whatever the method, so that company cannot help EASL here: only what it "
    "chooses to ask can, and that alone does not"
)


@dataclass(frozen=True, slots=True)
class ReplayedCurves(Experiment):
    """Draw every answer from the recorded ones, and correlate with the mean of answers that are never drawn."""

    name: ClassVar[str] = "easl.curves_replayed"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Figures 6 and 9: correlation by annotations, on recorded sliders"
    data: ClassVar[tuple[str, ...]] = (SLIDERS,)

    items: int = 150
    rounds: int = 10
    runs: int = 40
    seed: int = 0

    def small(self) -> Self:
        """Return fewer items and runs."""
        return replace(self, items=60, rounds=5, runs=8)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Replay run by run, each with items of its own."""
        ratings = read_sliders(data)
        by_method = {method: np.empty((self.runs, self.rounds, 2)) for method in Method}
        answer_counts: Counter[str] = Counter()
        for run in range(self.runs):
            rng = np.random.default_rng([self.seed, run])
            items, truth, answers = parted(ratings, self.items, rng)
            for method in Method:
                people = RecordedAnnotators(answers, 1, rng)
                panel = RecordedPanel(people, Index(items))
                for done, state in enumerate(rounds(method, panel, self.rounds, rng)):
                    by_method[method][run, done] = correlations(state.mode, truth)
                if method == Method.RA:
                    answer_counts += people.counts
            progress(run + 1, self.runs)
        table = curve_table(by_method)
        claims = [
            gain_claim(
                by_method, method, annotations, where="NLI sliders", seed=self.seed, published=published, why=why
            )
            for method, published, why in (
                (Method.EASL, 50.0, _WHY),
                (Method.FIVES, None, "not in the paper: fives without the choice"),
            )
            for annotations in (2, 4)
        ]
        last = {method: of_method[:, -1, 0] for method, of_method in by_method.items()}
        claims += [
            Claim(
                f"Spearman's ρ after {self.rounds} annotations an item, {method}",
                *band(values),
                why="§5.2 says above 0.9 for all three methods, on other items" if method != Method.FIVES else "",
            )
            for method, values in last.items()
        ]
        together = answer_counts["by one person"] / max(
            answer_counts["by one person"] + answer_counts["item by item"], 1
        )
        return Outcome(
            tuple(claims),
            table,
            lambda: _chart(table),
            (
                "The truth is the mean of half of each item's answers; the methods draw from the other half.",
                f"Only {100 * together:.0f} % of the fives were rated by one recorded person; the others are put "
                "together from several, which hurts ranking aggregation, as it compares across people. Where somebody "
                "rated all five they are drawn first, so that people who rated much are drawn more often than for "
                "single items.",
                f"Bands hold 95 % of the runs, each with {self.items} items of its own.",
                "Intervals of the gains are over runs.",
            ),
        )


def _chart(table: pl.DataFrame) -> Chart:
    return curves(
        table.filter(pl.col("correlation") == "Spearman"),
        "annotations",
        "value",
        "method",
        title="On recorded sliders, choosing what to ask does not beat asking everything evenly",
        subtitle="NLI sliders replayed; bands: 95 % of the runs",
        x_title="annotations an item",
        y_title="Spearman’s ρ with held-out ratings",
    )
