"""Do 95 % intervals hold with a judge as prior, whatever the judge? Item scores and means of systems."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

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

    runs: int = 20
    items: int = 100
    draws: int = 400
    seed: int = 0

    def small(self) -> Self:
        """Return one run with few items."""
        return replace(self, runs=1, items=40, draws=40)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Simulate crowds, and replay recorded sliders."""
        sliders = read_slider_tasks(data)
        split = _Split.of(sliders, np.random.default_rng([self.seed, 3]), self.draws)
        proportions: dict[tuple[str, str, str], list[float]] = {}
        for run in range(self.runs):
            for where, sample in (("simulation", self._simulated(run)), ("NLI sliders", self._replayed(split, run))):
                for judge, column in sample.judges.items():
                    fit = _fit(sample.ratings, column, sample.system, self.draws)
                    for target in sample.targets:
                        for what, covered in _covered(sample, fit, target):
                            proportions.setdefault((where + target.suffix, what, judge), []).append(100 * covered)
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
        ratings = _ratings(item, who, value, self.items, people)
        return _Sample(ratings, (_Exact(truth),), system, _judges(truth, system, rng))

    def _replayed(self, split: _Split, run: int) -> _Sample:
        """Take three ratings of each of some items; eight others make a judge."""
        rng = np.random.default_rng([self.seed, run, 2])
        used = split.used
        place = _places(used, rng)
        items = rng.permutation(np.flatnonzero(np.bincount(used.item) >= 11))[: self.items]
        is_item = np.isin(used.item, items)
        judge, _ = _mean_and_error(take(used, is_item & (place >= 3) & (place < 11)))
        system = rng.integers(SYSTEMS, size=len(used.items))
        judges = _judges(np.nan_to_num(split.mean, nan=50.0), system, rng)
        return _Sample(take(used, is_item & (place < 3)), split.targets, system, {**judges, "good": judge})


class _Split(NamedTuple):
    """Half of the recorded ratings of each item, and targets from the other half."""

    used: Ratings
    mean: FloatArray
    targets: tuple[_Target, ...]

    @classmethod
    def of(cls, sliders: Ratings, rng: np.random.Generator, draws: int) -> _Split:
        """Split the ratings of each item at random, and score the second half."""
        place = _places(sliders, rng)
        is_used = place < np.bincount(sliders.item)[sliders.item] // 2
        others = take(sliders, ~is_used)
        mean, error = _mean_and_error(others)
        posterior = _fit(others, np.full(len(mean), np.nan), np.zeros(len(mean), np.int64), draws)
        targets = (_RecordedMean(mean, error, others), _RecordedScore(posterior, sliders.items))
        return cls(take(sliders, is_used), mean, targets)


def _places(ratings: Ratings, rng: np.random.Generator) -> NDArray[np.int64]:
    """Number the ratings of each item in random order."""
    order = rng.permutation(len(ratings))
    order = order[np.argsort(ratings.item[order], kind="stable")]
    item = ratings.item[order]
    place = np.empty(len(ratings), np.int64)
    place[order] = np.arange(len(ratings)) - np.searchsorted(item, item)
    return place


class _Target(ABC):
    """What an interval should contain: a number for each item, and how uncertain it is itself."""

    suffix: ClassVar[str] = ""
    """How the claims name it."""

    @abstractmethod
    def of_items(self, items: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Return the target of each item, and its standard error."""

    @abstractmethod
    def of_mean(self, items: NDArray[np.intp]) -> tuple[float, float]:
        """Return the target of the items' mean, and its standard error."""


@dataclass(frozen=True, slots=True, eq=False)
class _Exact(_Target):
    """The simulation's true scores."""

    truth: FloatArray

    def of_items(self, items: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        return self.truth[items], np.zeros(len(items))

    def of_mean(self, items: NDArray[np.intp]) -> tuple[float, float]:
        return float(self.truth[items].mean()), 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _RecordedMean(_Target):
    """The mean of other people's ratings, whoever gave them."""

    suffix: ClassVar[str] = " (mean of the other ratings)"

    mean: FloatArray
    error: FloatArray
    others: Ratings

    def of_items(self, items: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        return self.mean[items], self.error[items]

    def of_mean(self, items: NDArray[np.intp]) -> tuple[float, float]:
        """Return the standard error of the mean with annotators as the unit: they have biases."""
        rows = np.isin(self.others.item, items)
        item, who = self.others.item[rows], self.others.annotator[rows]
        count = np.bincount(item, minlength=len(self.mean))
        share = (self.others.value[rows] - self.mean[item]) / count[item] / len(items)
        by_annotator = np.bincount(who, share)
        number = max(2, len(np.unique(who)))
        return float(self.mean[items].mean()), float(np.sqrt((by_annotator**2).sum() * number / (number - 1)))


class _RecordedScore(_Target):
    """The score that the model gives to the other ratings alone: an attentive annotator's expected answer."""

    suffix: ClassVar[str] = " (score from the other ratings)"

    def __init__(self, fit: Fit, index: Index) -> None:
        rows = {name: row for row, name in enumerate(fit.scores["item"])}
        draws = np.asarray(fit.draws)
        self._draws = np.full((len(draws), len(index)), np.nan)
        for code, name in enumerate(index.ids):
            if name in rows:
                self._draws[:, code] = draws[:, rows[name]]

    def of_items(self, items: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        draws = self._draws[:, items]
        return draws.mean(axis=0), draws.std(axis=0)

    def of_mean(self, items: NDArray[np.intp]) -> tuple[float, float]:
        means = self._draws[:, items].mean(axis=1)
        return float(means.mean()), float(means.std())


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """Ratings, what the intervals should contain, each item's system, and judges' scores."""

    ratings: Ratings
    targets: tuple[_Target, ...]
    system: NDArray[np.integer]
    judges: dict[str, FloatArray]


NOTES = (
    "Simulation: 100 items, 15 annotators with bias (sd 5) and noise (sd 12) on a scale of 100, 3 ratings per item.",
    "NLI sliders: 100 items, 3 recorded ratings each; the good judge is the mean of eight further ratings. Targets "
    "come from another half of the recording, 25 ratings per item: their mean, or the score that the model without a "
    "judge gives them; the target's own standard error is added to the interval. The two differ: some annotators "
    "answer at random, which draws means towards the middle of the scale, and scores are those of attentive ones.",
    "Other judges: noise; the target reversed plus noise; the target plus 20 points for one of five systems.",
    "Means of systems: the mean over the items of each of five groups, drawn at random, from the joint draws. The "
    "standard error of a mean of other ratings has annotators as the unit, because they have biases. Intervals of the "
    "coverage have runs as the unit.",
)


def _judges(truth: FloatArray, system: NDArray[np.integer], rng: np.random.Generator) -> dict[str, FloatArray]:
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


def _mean_and_error(ratings: Ratings) -> tuple[FloatArray, FloatArray]:
    item, value = ratings.item, ratings.value
    count = np.bincount(item, minlength=len(ratings.items)).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(item, value, minlength=len(count)) / count
        variance = np.bincount(item, value**2, minlength=len(count)) / count - mean**2
        return mean, np.sqrt(np.maximum(variance, 0) / (count - 1))


def _fit(ratings: Ratings, judge: FloatArray, system: NDArray[np.integer], draws: int) -> Fit:
    """Fit the calibrated scale, with the judge as prior unless its scores are NaN."""
    groups = tuple(f"system {one}" for one in system)
    covariates = None if np.isnan(judge).all() else Covariates(("judge",), judge[:, None], groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CalibratedScale(draws=draws).fit(ratings, covariates=covariates)


def _covered(sample: _Sample, fit: Fit, target: _Target) -> list[tuple[str, float]]:
    """Return the proportion of intervals that contain the target, of items and of means of systems.

    The target's own error is added to the interval.
    """
    code = {name: place for place, name in enumerate(sample.ratings.items.ids)}
    scores = fit.scores.with_row_index("row").filter(pl.col("score").is_not_null())
    items = np.array([code[name] for name in scores["item"]])
    aim, error = target.of_items(items)
    lower, upper, score = (scores[name].to_numpy() for name in ("lower", "upper", "score"))
    half = np.where(aim < score, score - lower, upper - score)
    is_covered = np.abs(aim - score) <= np.sqrt(half**2 + (1.96 * error) ** 2)
    joint = np.asarray(fit.draws)[:, scores["row"].to_numpy()]
    hits = []
    for system in range(SYSTEMS):
        mine = sample.system[items] == system
        if mine.sum() < 2:
            continue
        means = joint[:, mine].mean(axis=1)
        low, high = np.quantile(means, [0.025, 0.975])
        mean, error_of_mean = target.of_mean(items[mine])
        hits.append(abs(mean - float(means.mean())) <= np.hypot((high - low) / 2, 1.96 * error_of_mean))
    return [("item scores", float(is_covered.mean())), ("means of systems", float(np.mean(hits)))]
