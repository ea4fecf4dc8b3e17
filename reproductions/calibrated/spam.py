"""Spam: the effect of annotators who answer at random, without gold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.calibrated.methods import (
    CALIBRATED,
    PAPER,
    PLAIN,
    Crowd,
    both_ways,
    first_pages,
    means_of,
    read_slider_tasks,
    spearman,
)
from reproductions.charts import curves
from reproductions.easl.sliders import SLIDERS
from steelyard.reliability.splitting import take


@dataclass(frozen=True, slots=True)
class Spam(Experiment):
    """Increase the proportion of annotators who answer at random; the models do not know which."""

    name: ClassVar[str] = "calibrated.spam"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Spam: loss of rank correlation by the proportion of random annotators"
    data: ClassVar[tuple[str, ...]] = (SLIDERS,)

    shares: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4)
    judgments: int = 10
    runs: int = 12
    draws: int = 400
    seed: int = 0

    def small(self) -> Self:
        """Return one run with and without spam."""
        return replace(self, shares=(0.0, 0.3), runs=1, draws=80)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Replace the answers of some annotators by random ones, in recorded sliders and in simulation."""
        sliders = read_slider_tasks(data)
        rows = []
        for run in range(self.runs):
            for share in self.shares:
                rng = np.random.default_rng([self.seed, run])
                chosen = first_pages(sliders, self.judgments, rng)
                others = means_of(sliders, ~chosen)
                sample = take(sliders, chosen)
                spammer = rng.permutation(len(sample.annotators)) < share * len(sample.annotators)
                value = np.where(spammer[sample.annotator], np.round(100 * rng.random(len(sample))), sample.value)
                for method, score in both_ways(replace(sample, value=value), self.draws).items():
                    rows.append(("NLI sliders", method, share, run, spearman(score, others)))
                crowd = Crowd(items=200, people=40, random=share).drawn(rng)
                for method, score in both_ways(crowd.ratings(*crowd.who(self.judgments)), self.draws).items():
                    rows.append(("simulation", method, share, run, spearman(score, crowd.truth)))
            progress(run + 1, self.runs)
        frame = pl.DataFrame(rows, schema=["data", "method", "spam", "run", "rho"], orient="row")
        table = frame.group_by("data", "method", "spam", maintain_order=True).agg(pl.col("rho").mean())
        clean = table.filter(pl.col("spam") == 0).select("data", "method", clean="rho")
        table = table.join(clean, on=["data", "method"], maintain_order="left").with_columns(
            (pl.col("clean") - pl.col("rho")).alias("loss"), (100 * pl.col("spam")).alias("percent")
        )
        return Outcome(
            tuple(self._claims(table)),
            table.drop("clean", "percent"),
            lambda: curves(
                table,
                "percent",
                "loss",
                "method",
                title="Random answers cost the calibrated scale little",
                x_title="random annotators (%)",
                y_title="loss of Spearman’s ρ",
                facet="data",
            ),
            (
                f"{self.judgments} judgments per item; ρ with the mean of the other answers (sliders) or the true "
                "values (simulation).",
            ),
        )

    def _claims(self, table: pl.DataFrame) -> list[Claim]:
        claims = []
        for (where,), part in table.filter(pl.col("spam") == 0.3).group_by("data", maintain_order=True):
            loss = dict(part.select("method", "loss").iter_rows())
            claims += [Claim(f"{where}: loss of ρ with 30 % spam, {method}", lost) for method, lost in loss.items()]
            claims.append(
                Claim(
                    f"{where}: loss of the calibrated scale, of the mean's",
                    100 * loss[CALIBRATED] / loss[PLAIN],
                    unit="%",
                )
            )
        return claims
