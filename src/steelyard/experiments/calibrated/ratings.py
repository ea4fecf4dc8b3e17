"""Fewer ratings: how many judgments the calibrated scale needs for what their mean reaches with 5, 10 and 20."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl

from steelyard.experiments.base import Claim, Experiment, Outcome, Progress
from steelyard.experiments.calibrated.methods import (
    CALIBRATED,
    PAPER,
    PLAIN,
    Crowd,
    both_ways,
    first_pages,
    means_of,
    needed,
    pearson,
    read_slider_tasks,
)
from steelyard.experiments.chart_style import curves
from steelyard.experiments.easl.sliders import SLIDERS
from steelyard.observations import FloatArray
from steelyard.reliability.splitting import take

WHERE = ("NLI sliders", "simulation")


@dataclass(frozen=True, slots=True)
class FewerRatings(Experiment):
    """Score the same judgments by their mean and on the calibrated scale, more and more of them."""

    name: ClassVar[str] = "calibrated.ratings"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Fewer ratings: reliability by judgments an item, mean against calibrated scale"
    data: ClassVar[tuple[str, ...]] = (SLIDERS,)

    judgments: tuple[int, ...] = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20)
    runs: int = 12
    draws: int = 400
    seed: int = 0

    def small(self) -> Self:
        """Return few runs at few sizes."""
        return replace(self, judgments=(3, 5), runs=1, draws=100)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Correlate with the mean of the other annotators (sliders), and with the truth (simulation)."""
        sliders = read_slider_tasks(data)
        found = {
            (where, method): np.empty((self.runs, len(self.judgments)))
            for where in WHERE
            for method in (PLAIN, CALIBRATED)
        }
        for run in range(self.runs):
            rng = np.random.default_rng([self.seed, run])
            crowd = Crowd(items=300, people=60).drawn(rng)
            item, who = crowd.who(max(self.judgments))
            simulated = crowd.ratings(item, who)
            turn = np.tile(np.arange(max(self.judgments)), len(crowd.truth))
            for at, count in enumerate(self.judgments):
                rows = first_pages(sliders, count, np.random.default_rng([self.seed, run, 1]))
                others = means_of(sliders, ~rows)
                for method, score in both_ways(take(sliders, rows), self.draws).items():
                    found[WHERE[0], method][run, at] = pearson(score, others)
                for method, score in both_ways(take(simulated, turn < count), self.draws).items():
                    found[WHERE[1], method][run, at] = pearson(score, crowd.truth)
            progress(run + 1, self.runs)
        table = self._table(found)
        claims = self._claims(found)
        best = next((c for c in claims if c.what.startswith(WHERE[0])), claims[0])
        return Outcome(
            tuple(claims),
            table,
            lambda: curves(
                table,
                "judgments",
                "r",
                "method",
                title=f"The calibrated scale needs {best.ours:.0f} % of the judgments ({best.what.split(': ')[1]})",
                subtitle="bands: 95 % of the runs",
                x_title="judgments an item",
                y_title="Pearson’s r with the others’ mean, or the truth",
                facet="data",
            ),
            (
                "NLI sliders: whole pages of 20 are drawn, rejected answers too; r is with the mean of all other "
                "answers of each item that has ten or more.",
                "Simulation: 300 items, 60 people with bias 0.10, use of the scale ± 30 %, noise 0.20 ± 40 % of the "
                "scale; r is with the truth.",
                "EASL's estimate with α = β = 1 is the mean; choosing what to ask is not part of this.",
            ),
        )

    def _table(self, found: dict[tuple[str, str], FloatArray]) -> pl.DataFrame:
        return pl.DataFrame(
            [
                {
                    "data": where,
                    "method": method,
                    "judgments": count,
                    "r": float(values[:, at].mean()),
                    "lower": float(np.quantile(values[:, at], 0.025)),
                    "upper": float(np.quantile(values[:, at], 0.975)),
                }
                for (where, method), values in found.items()
                for at, count in enumerate(self.judgments)
            ]
        )

    def _claims(self, found: dict[tuple[str, str], FloatArray]) -> list[Claim]:
        counts = np.array(self.judgments, np.float64)
        rng = np.random.default_rng(self.seed)
        resampled = rng.integers(self.runs, size=(500, self.runs))
        claims = []
        for where in WHERE:
            plain, ours = found[where, PLAIN], found[where, CALIBRATED]
            for target in (5, 10, 20):
                if target not in self.judgments:
                    continue
                at = self.judgments.index(target)
                share = [
                    100 * needed(counts, ours[rows].mean(axis=0), plain[rows, at].mean()) / target
                    for rows in (np.arange(self.runs), *resampled)
                ]
                low, high = np.nanquantile(share[1:], [0.025, 0.975])
                claims.append(
                    Claim(f"{where}: judgments needed for what {target} give the mean", share[0], low, high, unit="%")
                )
        return claims
