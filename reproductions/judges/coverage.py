"""Do 95 % intervals hold with a judge as prior, whatever the judge? Item scores and means of systems."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.calibrated.methods import read_slider_tasks
from reproductions.easl.sliders import SLIDERS
from steelyard.models.calibrated.covariates import Covariates
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.models.fit import Fit
from steelyard.observations import UNKNOWN, FloatArray, Index, Ratings
from steelyard.reliability.splitting import take

JUDGES = ("none", "good", "useless", "reversed", "likes its own system")
SYSTEMS = 5


@dataclass(frozen=True, slots=True)
class JudgeCoverage(Experiment):
    """Fit the calibrated scale with good, useless and adversarial judges, and count how often intervals hold."""

    name: ClassVar[str] = "judges.coverage"
    paper: ClassVar[str] = "Steelyard's own"
    title: ClassVar[str] = "Coverage of 95 % intervals with a judge as prior"
    data: ClassVar[tuple[str, ...]] = (SLIDERS,)

    runs: int = 40
    items: int = 100
    draws: int = 400
    seed: int = 0

    def small(self) -> Self:
        """Return one run with few items."""
        return replace(self, runs=1, items=40, draws=100)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Simulate crowds, and replay recorded sliders."""
        sliders = read_slider_tasks(data)
        proportions: dict[tuple[str, str, str], list[float]] = {}
        for run in range(self.runs):
            for where, sample in (("simulation", self._simulated(run)), ("NLI sliders", self._replayed(sliders, run))):
                for judge, column in sample.judges.items():
                    for what, covered in _covered(sample, column, self.draws):
                        proportions.setdefault((where, what, judge), []).append(100 * covered)
            progress(run + 1, self.runs)
        claims = []
        for (where, what, judge), values in proportions.items():
            # Items of one run share its annotators, so runs are the unit.
            half = 1.96 * float(np.std(values, ddof=1)) / np.sqrt(len(values)) if len(values) > 1 else 0.0
            mean = float(np.mean(values))
            claims.append(
                Claim(f"{where}, {what}, judge: {judge}", mean, mean - half, min(100.0, mean + half), unit="%")
            )
        return Outcome(tuple(claims), notes=NOTES)

    def _simulated(self, run: int) -> _Sample:
        rng = np.random.default_rng([self.seed, run, 1])
        truth = np.clip(rng.normal(50, 13, self.items), 5, 95)
        people = 15
        bias = rng.normal(0, 5, people)
        item = np.repeat(np.arange(self.items), 3)
        who = np.concatenate([rng.choice(people, 3, replace=False) for _ in range(self.items)])
        value = np.clip(truth[item] + bias[who] + rng.normal(0, 12, len(item)), 0, 100)
        system = rng.integers(SYSTEMS, size=self.items)
        return _Sample(
            _ratings(item, who, value, self.items, people),
            truth,
            np.zeros(self.items),
            system,
            _judges(truth, system, rng),
            None,
        )

    def _replayed(self, sliders: Ratings, run: int) -> _Sample:
        """Three ratings of each item are used, eight make a judge, and the mean of the others is the target."""
        rng = np.random.default_rng([self.seed, run, 2])
        order = rng.permutation(len(sliders))
        place = np.empty(len(sliders), np.int64)
        counts = np.zeros(len(sliders.items), np.int64)
        for row in order:
            place[row] = counts[sliders.item[row]]
            counts[sliders.item[row]] += 1
        items = rng.permutation(np.flatnonzero(counts >= 31))[: self.items]
        is_item = np.isin(sliders.item, items)
        used = take(sliders, is_item & (place < 3))
        others = is_item & (place >= 11)
        mean, se = _mean_and_error(sliders, others)
        judge, _ = _mean_and_error(sliders, is_item & (place >= 3) & (place < 11))
        system = rng.integers(SYSTEMS, size=len(sliders.items))
        rest = _judges(np.nan_to_num(mean, nan=50.0), system, rng)
        return _Sample(used, mean, se, system, {**rest, "good": judge}, take(sliders, others))


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """Ratings, with the target of each item, its standard error, its system, and judges' scores."""

    ratings: Ratings
    target: FloatArray
    error: FloatArray
    system: np.ndarray[Any, Any]
    judges: dict[str, FloatArray]
    others: Ratings | None
    """The ratings behind the targets; None if the targets are exact."""

    def error_of_mean(self, items: np.ndarray[Any, Any]) -> float:
        """Return the standard error of the mean target of some items, with annotators as the unit."""
        if self.others is None:
            return 0.0
        others = self.others
        rows = np.isin(others.item, items)
        item, who = others.item[rows], others.annotator[rows]
        count = np.bincount(item, minlength=len(others.items))
        share = (others.value[rows] - self.target[item]) / count[item] / len(items)
        by_annotator = np.bincount(who, share)
        number = max(2, len(np.unique(who)))
        return float(np.sqrt((by_annotator**2).sum() * number / (number - 1)))


NOTES = (
    "Simulation: 100 items, 15 annotators with bias (sd 5) and noise (sd 12) on a scale of 100, 3 ratings per item.",
    "NLI sliders: 100 items, 3 recorded ratings each; the target is the mean of 20 or more other ratings, whose "
    "standard error is added to the interval; the good judge is the mean of eight further ratings.",
    "Other judges: noise; the target reversed plus noise; the target plus 20 points for one of five systems.",
    "Means of systems: the mean over the items of each of five groups, drawn at random, from the joint draws. In the "
    "replay, the standard error of the target is that of a mean with annotators as the unit, because the annotators "
    "behind the target have biases too. Intervals of the coverage have runs as the unit.",
)


def _judges(truth: FloatArray, system: np.ndarray[Any, Any], rng: np.random.Generator) -> dict[str, FloatArray]:
    noise = rng.normal(0, 8, len(truth))
    return {
        "none": np.full(len(truth), np.nan),
        "good": truth + noise,
        "useless": rng.normal(size=len(truth)),
        "reversed": -truth + noise,
        "likes its own system": truth + 20 * (system == 0) + noise,
    }


def _ratings(item: Any, who: Any, value: FloatArray, items: int, people: int) -> Ratings:
    return Ratings(
        items=Index([f"i{n:04}" for n in range(items)]),
        annotators=Index([f"a{n:03}" for n in range(people)]),
        tasks=Index(),
        annotator=who.astype(np.int32),
        task=np.full(len(item), UNKNOWN, np.int32),
        item=item.astype(np.int32),
        value=value,
        scale=(0, 100),
    )


def _mean_and_error(ratings: Ratings, rows: np.ndarray[Any, Any]) -> tuple[FloatArray, FloatArray]:
    item, value = ratings.item[rows], ratings.value[rows]
    count = np.bincount(item, minlength=len(ratings.items)).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(item, value, minlength=len(count)) / count
        variance = np.bincount(item, value**2, minlength=len(count)) / count - mean**2
        return mean, np.sqrt(np.maximum(variance, 0) / (count - 1))


def _covered(sample: _Sample, judge: FloatArray, draws: int) -> list[tuple[str, float]]:
    """Return the proportion of intervals that hold the target, of items and of means of systems."""
    groups = tuple(f"system {one}" for one in sample.system)
    covariates = None if np.isnan(judge).all() else Covariates(("judge",), judge[:, None], groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit: Fit = CalibratedScale(draws=draws).fit(sample.ratings, covariates=covariates)
    code = {name: place for place, name in enumerate(sample.ratings.items.ids)}
    scores = fit.scores.with_row_index("row").filter(pl.col("score").is_not_null())
    items = np.array([code[name] for name in scores["item"]])
    target, error = sample.target[items], sample.error[items]
    lower, upper, score = (scores[name].to_numpy() for name in ("lower", "upper", "score"))
    half = np.where(target < score, score - lower, upper - score)
    is_covered = np.abs(target - score) <= np.sqrt(half**2 + (1.96 * error) ** 2)
    joint = np.asarray(fit.draws)[:, scores["row"].to_numpy()]
    hits = []
    for system in range(SYSTEMS):
        mine = sample.system[items] == system
        if mine.sum() < 2:
            continue
        means = joint[:, mine].mean(axis=1)
        low, high = np.quantile(means, [0.025, 0.975])
        distance = abs(float(target[mine].mean()) - float(means.mean()))
        extra = 1.96 * sample.error_of_mean(items[mine])
        hits.append(distance <= np.sqrt(((high - low) / 2) ** 2 + extra**2))
    return [("item scores", float(is_covered.mean())), ("means of systems", float(np.mean(hits)))]
