"""A judge as prior: human judgments needed with it for what people alone reach."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl
from scipy import stats

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.judges.recordings import (
    CRITERIA,
    ESA_ANSWERS,
    ESA_PROXIES,
    SUMMEVAL,
    Recording,
    read_esa,
    read_summeval,
)
from steelyard.models.calibrated.covariates import Covariates
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.observations import FloatArray

BEST = {"SummEval": "gpt-4o", "ESA English–German": "cometkiwi"}
"""The judge with the highest correlation with people, from the data's description, not from these replays."""
ALONE = "people alone"
BAD = ("noise", "reversed", "length")


@dataclass(frozen=True, slots=True)
class CovariatePrior(Experiment):
    """Give the calibrated scale a part of people's judgments, with and without judges as prior."""

    name: ClassVar[str] = "judges.covariate_prior"
    paper: ClassVar[str] = "Steelyard's own"
    title: ClassVar[str] = "A judge as prior: rank correlation with other people's ratings, by human judgments per item"
    data: ClassVar[tuple[str, ...]] = (SUMMEVAL, ESA_ANSWERS, ESA_PROXIES)

    budgets: tuple[float, ...] = (1.0, 1.2, 1.5, 1.8, 2.0, 3.0)
    criteria: tuple[str, ...] = CRITERIA
    runs: int = 3
    items: int = 400
    draws: int = 400
    seed: int = 0

    def small(self) -> Self:
        """Return one run on few items."""
        return replace(self, budgets=(1.0, 2.0), criteria=("coherence",), runs=1, items=60, draws=100)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Replay recorded ratings: one of each item's is held out, the others are bought."""
        recordings = [*(read_summeval(data, criterion) for criterion in self.criteria), read_esa(data)]
        rows: list[dict[str, object]] = []
        steps = len(recordings) * self.runs
        for number, recording in enumerate(recordings):
            for run in range(self.runs):
                rows += self._replay(recording, np.random.default_rng([self.seed, number, run]), run)
                progress(number * self.runs + run + 1, steps)
        table = pl.DataFrame(rows)
        means = table.group_by("data", "method", "budget", maintain_order=True).agg(
            pl.col("rho").mean(), (pl.col("rho").std() / pl.len().sqrt()).alias("se")
        )
        return Outcome(tuple(self._claims(table)), means, notes=NOTES)

    def _replay(self, recording: Recording, rng: np.random.Generator, run: int) -> list[dict[str, object]]:
        recording = _some_items(recording, self.items, rng)
        held_out = np.array([rng.choice(np.flatnonzero(np.isfinite(row))) for row in recording.ratings])
        truth = recording.ratings[np.arange(recording.n_items), held_out]
        order = rng.random(recording.ratings.shape)
        order[np.arange(recording.n_items), held_out] = np.inf
        order[~np.isfinite(recording.ratings)] = np.inf
        rank = order.argsort(axis=1).argsort(axis=1)
        extra = rng.permutation(recording.n_items)
        family = "ESA English–German" if recording.name.startswith("ESA") else "SummEval"
        judges = {BEST[family]: recording.judges[BEST[family]], **_bad_judges(recording, BEST[family], rng)}
        rows = []
        for budget in self.budgets:
            if budget > recording.ratings.shape[1] - 1:
                continue
            whole = int(budget)
            bought = (rank < whole) | ((rank == whole) & (extra < (budget - whole) * recording.n_items)[:, None])
            bought &= np.isfinite(order)
            ratings = recording.chosen(bought)
            for method, judge in {ALONE: None, **judges}.items():
                if method in BAD and budget < 2:
                    continue
                score = _scores(ratings, judge, method, self.draws)
                is_scored = np.isfinite(score)
                rho = float(stats.spearmanr(score[is_scored], truth[is_scored]).statistic)
                name = "best judge" if method == BEST[family] else method
                rows.append({"data": recording.name, "run": run, "method": name, "budget": budget, "rho": rho})
        return rows

    def _claims(self, table: pl.DataFrame) -> list[Claim]:
        claims = []
        for name in table["data"].unique(maintain_order=True):
            own = table.filter(pl.col("data") == name)
            budgets = sorted(set(own["budget"]))
            curve = own.group_by("method", "budget").agg(pl.col("rho").mean())
            for target in (budget for budget in budgets if budget >= 2):
                alone = _at(curve, ALONE, target)
                needed = next((budget for budget in budgets if _at(curve, "best judge", budget) >= alone), np.nan)
                what = f"{name}: judgments needed with the best judge for what {target:g} per item give without it"
                claims.append(Claim(what, 100 * needed / target, unit="%"))
                for bad in BAD:
                    what = f"{name}: ρ with a judge of {bad} minus that of people alone, {target:g} judgments per item"
                    claims.append(Claim(what, *_difference(own, bad, target)))
        return claims


NOTES = (
    "One rating of each item, drawn at random, is held out as the reference for Spearman's ρ; the budget is spent "
    "on the other ratings. At 1.2 judgments per item, every item has one, and a fifth of the items have two.",
    "The best judge is the one with the highest correlation in the data's description, not in these replays. Judgments "
    "needed are the smallest of the budgets tried; budgets below one judgment per item were not tried.",
    "Bad judges: normal noise; the best judge reversed, with noise of the same sd; the translation's length (ESA), "
    "or, as SummEval comes without texts, positive noise that grows with the best judge's score.",
)


def _difference(table: pl.DataFrame, method: str, budget: float) -> tuple[float, float | None, float | None]:
    """Return the mean difference over runs, with its t interval."""
    own = table.filter(pl.col("budget") == budget).pivot(on="method", index="run", values="rho")
    values = (own[method] - own[ALONE]).to_numpy()
    if len(values) < 2:
        return float(values.mean()), None, None
    half = float(stats.t.ppf(0.975, len(values) - 1)) * float(values.std(ddof=1)) / np.sqrt(len(values))
    return float(values.mean()), float(values.mean() - half), float(values.mean() + half)


def _at(curve: pl.DataFrame, method: str, budget: float) -> float:
    row = curve.filter((pl.col("method") == method) & (pl.col("budget") == budget))
    return float(row["rho"][0])


def _some_items(recording: Recording, count: int, rng: np.random.Generator) -> Recording:
    """Return items with three ratings or more, some of them drawn at random."""
    enough = np.flatnonzero(np.isfinite(recording.ratings).sum(axis=1) >= 3)
    rows = np.sort(rng.permutation(enough)[:count])
    return Recording(
        recording.name,
        tuple(recording.items[row] for row in rows),
        recording.ratings[rows],
        recording.annotator[rows],
        recording.scale,
        {name: values[rows] for name, values in recording.judges.items()},
        recording.system[rows],
    )


def _bad_judges(recording: Recording, best: str, rng: np.random.Generator) -> dict[str, FloatArray]:
    judge = recording.judges[best]
    sd = float(np.nanstd(judge))
    length = recording.judges.get("length")
    if length is None:
        length = np.abs(rng.standard_normal(len(judge))) * (1 + np.nan_to_num(judge - np.nanmean(judge)))
    return {
        "noise": rng.standard_normal(len(judge)),
        "reversed": -judge + sd * rng.standard_normal(len(judge)),
        "length": length,
    }


def _scores(ratings: object, judge: FloatArray | None, name: str, draws: int) -> FloatArray:
    import warnings

    model = CalibratedScale(draws=draws)
    covariates = None if judge is None else Covariates((name,), judge[:, None])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = model.fit(ratings, covariates=covariates)  # type: ignore[arg-type]
    order = {item: place for place, item in enumerate(ratings.items.ids)}  # type: ignore[attr-defined]
    score = np.full(len(order), np.nan)
    for item, value in fit.scores.select("item", "score").iter_rows():
        score[order[item]] = np.nan if value is None else value
    return score
