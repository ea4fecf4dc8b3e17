"""Fewer ratings: judgments that the calibrated scale needs to match the mean of 5, 10 and 20."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.calibrated.methods import (
    ADAPTIVE,
    CALIBRATED,
    KNOWN,
    PAPER,
    PLAIN,
    Crowd,
    both_ways,
    first_pages,
    means_of,
    needed,
    pearson,
    read_slider_tasks,
    scored,
)
from reproductions.calibrated.visits import Visits
from reproductions.charts import curves
from reproductions.easl.sliders import SLIDERS
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.observations import FloatArray, Ratings
from steelyard.reliability.splitting import take

WHERE = ("NLI sliders", "simulation")


@dataclass(frozen=True, slots=True)
class FewerRatings(Experiment):
    """Score the same judgments by their mean and on the calibrated scale, more and more of them."""

    name: ClassVar[str] = "calibrated.ratings"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Fewer ratings: reliability by judgments per item, mean against calibrated scale"
    data: ClassVar[tuple[str, ...]] = (SLIDERS,)

    judgments: tuple[int, ...] = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20)
    runs: int = 12
    draws: int = 400
    seed: int = 0

    def small(self) -> Self:
        """Return one run at one size."""
        return replace(self, judgments=(4,), runs=1, draws=60)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Correlate with the mean of the other annotators (sliders), and with the truth (simulation)."""
        sliders = read_slider_tasks(data)
        correlations = {
            (where, method): np.empty((self.runs, len(self.judgments)))
            for where in WHERE
            for method in (PLAIN, CALIBRATED, ADAPTIVE, KNOWN)
            if (where, method) != (WHERE[0], KNOWN)
        }
        for run in range(self.runs):
            for method, values in self._sliders(sliders, run).items():
                correlations[WHERE[0], method][run] = values
            progress(2 * run + 1, 2 * self.runs)
            for method, values in self._simulation(run).items():
                correlations[WHERE[1], method][run] = values
            progress(2 * run + 2, 2 * self.runs)
        table = self._table(correlations)
        claims = self._claims(correlations)
        best = next((c for c in claims if c.what.startswith(f"{WHERE[0]}, {ADAPTIVE}") and " 10 " in c.what), None)
        finding = (
            "" if best is None else f"{best.ours:.0f} % of ten judgments do what ten give the mean, asking what helps"
        )
        return Outcome(
            tuple(claims),
            table,
            lambda: curves(
                table,
                "judgments",
                "r",
                "method",
                title=finding,
                subtitle="r with the mean of all others, or with true values; bands: 95 % of the runs",
                x_title="judgments per item",
                y_title="Pearson’s r",
                facet="data",
            ),
            (
                "NLI sliders: whole pages of 20 are drawn, rejected answers too; r is the correlation with the mean "
                "of all other answers to each item that has ten or more.",
                "Simulation: 300 items, 60 annotators with bias 0.10, scale use ± 30 %, noise 0.20 ± 40 % of the "
                "scale; r is the correlation with the true values. The last line gives the accuracy if all of these "
                "parameters were known.",
                "With the adaptive design, annotators arrive one by one and rate ten items each, of those they rated; "
                "otherwise every item has the same number. EASL's estimate with α = β = 1 is the mean.",
            ),
        )

    def _sliders(self, sliders: Ratings, run: int) -> dict[str, list[float]]:
        values: dict[str, list[float]] = {PLAIN: [], CALIBRATED: [], ADAPTIVE: []}
        for count in self.judgments:
            rows = first_pages(sliders, count, np.random.default_rng([self.seed, run, 1]))
            others = means_of(sliders, ~rows)
            for method, score in both_ways(take(sliders, rows), self.draws).items():
                values[method].append(pearson(score, others))
        rng = np.random.default_rng([self.seed, run, 2])
        by_page = np.empty(len(sliders.tasks), np.int32)
        by_page[sliders.task] = sliders.annotator
        # Each annotator arrives again for the second half of a page.
        visits = Visits(sliders, np.concatenate([rng.permutation(by_page), rng.permutation(by_page)]))
        for rows in visits.given(self._totals(len(sliders.items)), rng):
            score = scored(CalibratedScale(draws=self.draws), take(sliders, rows))
            values[ADAPTIVE].append(pearson(score, means_of(sliders, ~rows)))
        return values

    def _simulation(self, run: int) -> dict[str, list[float]]:
        values: dict[str, list[float]] = {PLAIN: [], CALIBRATED: [], ADAPTIVE: [], KNOWN: []}
        rng = np.random.default_rng([self.seed, run])
        crowd = Crowd(items=300, people=60).drawn(rng)
        item, who = crowd.who(crowd.crowd.people)
        everything = crowd.ratings(item, who)
        turn = np.tile(np.arange(crowd.crowd.people), len(crowd.truth))
        for count in self.judgments:
            some = take(everything, turn < count)
            for method, score in both_ways(some, self.draws).items():
                values[method].append(pearson(score, crowd.truth))
            values[KNOWN].append(pearson(crowd.best_guess(some), crowd.truth))
        people = np.arange(crowd.crowd.people, dtype=np.int32)
        visits = Visits(everything, np.concatenate([rng.permutation(people) for _ in range(30)]))
        for rows in visits.given(self._totals(len(crowd.truth)), rng):
            score = scored(CalibratedScale(draws=self.draws), take(everything, rows))
            values[ADAPTIVE].append(pearson(score, crowd.truth))
        return values

    def _totals(self, items: int) -> list[int]:
        return [count * items for count in self.judgments]

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
        for (where, method), ours in found.items():
            if method == PLAIN:
                continue
            plain = found[where, PLAIN]
            for target in (5, 10, 20):
                if target not in self.judgments:
                    continue
                at = self.judgments.index(target)
                share = [
                    100 * needed(counts, ours[rows].mean(axis=0), plain[rows, at].mean()) / target
                    for rows in (np.arange(self.runs), *resampled)
                ]
                low, high = np.nanquantile(share[1:], [0.025, 0.975])
                what = f"{where}, {method}: judgments needed for what {target} give the mean"
                claims.append(Claim(what, share[0], low, high, unit="%"))
        return claims
