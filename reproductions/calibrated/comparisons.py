"""Judgments needed for a ranking by annotators of mixed quality, by method of pair selection and scoring."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.calibrated.comparisons_methods import Method, scored
from reproductions.calibrated.comparisons_people import Mixture, People
from reproductions.charts import curves
from steelyard.observations import FloatArray
from steelyard.reliability.correlation import spearman
from steelyard.report.charts import Chart

TARGETS = (0.9, 0.95)
CROWDS = {"mixed": Mixture(), "alike": Mixture(spread=0.0, careless=0.0)}
"""Annotators of different quality, and for comparison equally careful ones."""
_LAST = 0.955
"""A run ends when ρ reaches this value."""
_RESAMPLES = 500


@dataclass(frozen=True, slots=True)
class Comparisons(Experiment):
    """Simulate comparisons of the same items by the same annotators, with five methods of pair selection."""

    name: ClassVar[str] = "calibrated.comparisons"
    paper: ClassVar[str] = "this project, beside Mikhailiuk et al., 2020"
    title: ClassVar[str] = "Comparisons needed for ρ = 0.9 and 0.95, by how pairs are chosen"

    items: tuple[int, ...] = (100, 500, 2000)
    runs: tuple[int, ...] = (12, 6, 3)
    most_each: int = 60
    crowds: tuple[str, ...] = ("mixed", "alike")
    seed: int = 0

    def small(self) -> Self:
        """Return few items and runs, with annotators of mixed quality only."""
        return replace(self, items=(40,), runs=(2,), crowds=("mixed",), most_each=30)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Simulate every method on the same items and annotators."""
        todo = [
            (crowd, n, runs)
            for crowd in self.crowds
            for n, runs in zip(self.items, self.runs, strict=True)
            # Equal annotators are simulated at the smallest size only.
            if crowd == "mixed" or n == min(self.items)
        ]
        steps, done = sum(runs for *_, runs in todo) * len(Method), 0
        claims: list[Claim] = []
        tables: list[pl.DataFrame] = []
        for crowd, n, runs in todo:
            needed: dict[Method, FloatArray] = {}
            for method in Method:
                correlation_curves = []
                for run in range(runs):
                    correlation_curves.append(self.curve(method, n, CROWDS[crowd], run))
                    done += 1
                    progress(done, steps)
                needed[method] = np.array(
                    [[crossing(curve, target) for target in TARGETS] for curve in correlation_curves]
                )
                tables.append(_table(correlation_curves, crowd, n, method))
            claims += _claims(needed, f"{n:,} items, {crowd} annotators", self.most_each, self.seed)
        table = pl.concat(tables)
        return Outcome(tuple(claims), table, lambda: _chart(table), _NOTES)

    def curve(self, method: Method, n: int, mixture: Mixture, run: int) -> FloatArray:
        """Return comparisons per item (each counts for both of its items) and ρ with the true scores, one row each."""
        truth = np.random.default_rng([self.seed, run, 0]).normal(size=n)
        people = People(truth, mixture, self.seed * 1000 + run)
        points = [(0.0, 0.0)]
        for count, score in scored(method, people, np.random.default_rng([self.seed, run, 1])):
            rho = spearman(score, truth)
            points.append((2 * count / n, 0.0 if rho is None else rho.r))
            if points[-1][1] >= _LAST or points[-1][0] >= self.most_each:
                break
        return np.array(points)


def crossing(curve: FloatArray, target: float) -> float:
    """Return where a curve first reaches a target, by linear interpolation; inf if it does not."""
    reached = np.flatnonzero(curve[:, 1] >= target)
    if len(reached) == 0:
        return np.inf
    (x0, y0), (x1, y1) = curve[reached[0] - 1], curve[reached[0]]
    return float(x0 + (x1 - x0) * (target - y0) / (y1 - y0))


def _claims(needed: dict[Method, FloatArray], where: str, most: int, seed: int) -> list[Claim]:
    """State the comparisons that each method needs, and the proportion of them that ours needs."""
    claims = []
    runs = len(needed[Method.ADAPTIVE])
    rows = np.random.default_rng(seed).integers(runs, size=(_RESAMPLES, runs))
    for at, target in enumerate(TARGETS):
        counts = {method: np.minimum(each[:, at], most) for method, each in needed.items()}
        for method, each in counts.items():
            short = int(np.isinf(needed[method][:, at]).sum())
            why = f"{short} of {len(each)} runs did not reach it with {most}, which stands for them" if short else ""
            lower, upper = np.quantile(each[rows].mean(axis=1), [0.025, 0.975]).tolist()
            claims.append(
                Claim(
                    f"comparisons per item for ρ = {target}, {where}: {method}",
                    float(each.mean()),
                    lower,
                    upper,
                    why=why,
                )
            )
        ours = counts[Method.ADAPTIVE]
        for method in (Method.RANDOM, Method.MATCH_QUALITY, Method.ASAP):
            share = 100 * ours[rows].mean(axis=1) / counts[method][rows].mean(axis=1)
            lower, upper = np.quantile(share, [0.025, 0.975]).tolist()
            claims.append(
                Claim(
                    f"of those of {method}, adaptive needs, for ρ = {target}, {where}",
                    float(100 * ours.mean() / counts[method].mean()),
                    lower,
                    upper,
                    unit="%",
                )
            )
    return claims


def _table(curves: list[FloatArray], crowd: str, n: int, method: Method) -> pl.DataFrame:
    """Return the mean curve with its minimum and maximum over runs; runs that have ended keep their last value."""
    last = max(curve[-1, 0] for curve in curves)
    at = np.unique(np.round(np.append(np.arange(1.0, last, 1.0), last), 2))
    rho = np.array([np.interp(at, curve[:, 0], curve[:, 1]) for curve in curves])
    return pl.DataFrame(
        {
            "crowd": crowd,
            "items": n,
            "method": str(method),
            "comparisons": at,
            "rho": rho.mean(axis=0),
            "lower": rho.min(axis=0),
            "upper": rho.max(axis=0),
        }
    )


_NOTES = (
    "True values are standard normal. The noise of an impression has a different sd for each annotator, log-normal "
    "with a median of 0.35 and an sd of the logarithm of 0.6; 15 % of the mixed annotators answer at "
    "random. Ten annotators work at a time, and each gives 50 answers. Equal annotators all have 0.35, and none "
    "answers at random.",
    "A comparison counts for both of its items: 10 per item are 5 N comparisons.",
    "ASAP is implemented from its paper. With 100 items the full posterior is recomputed for every pair and "
    "outcome; with more items, an approximation updates only the two items. Gains are computed for all pairs, and "
    "batches are spanning trees. ASAP assumes the same noise for all annotators, 0.75: the best of 0.5, 0.75, 1 and "
    "1.5 at 500 items. TrueSkill uses 0.5, the best of the same values.",
    "Random pairs with the calibrated scale show the gain from the annotator model alone; the remaining gain comes "
    "from the choice of pairs.",
    "For equal annotators a single noise level is correct, but ASAP and TrueSkill keep that of mixed annotators.",
    "Intervals are resampled over runs; bands in the figure show the range of all runs.",
)


def _chart(table: pl.DataFrame) -> Chart:
    panels = table.filter(pl.col("rho") >= 0.6).with_columns(pl.format("{} items, {}", "items", "crowd").alias("panel"))
    return curves(
        panels,
        "comparisons",
        "rho",
        "method",
        title="Knowing who is noisy saves most; asking what helps saves the rest",
        subtitle="Spearman’s ρ with true values by comparisons per item, simulated; bands: all runs",
        x_title="comparisons per item",
        y_title="Spearman’s ρ",
        facet="panel",
    )
