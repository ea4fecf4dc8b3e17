"""Measure how often 95 % intervals hold the truth: ratings, counting and the online comparison models.

Run: python benchmarks/coverage_online.py [data sets, 200 by default]
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special, stats

from steelyard.errors import SteelyardWarning
from steelyard.models.choices.counting import Counting
from steelyard.models.comparisons.bounded_ranking import BoundedRanking, outcome_probabilities
from steelyard.models.comparisons.elo import Elo
from steelyard.models.comparisons.trueskill import TrueSkill
from steelyard.models.fit import Fit
from steelyard.models.ratings.easl import EASL
from steelyard.models.ratings.mean import Mean
from steelyard.models.ratings.median import Median
from steelyard.observations import Comparisons, FloatArray, Index, Ratings

POOL = 20

Decide = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int8]]


def covered(fit: Fit, truth: FloatArray) -> tuple[float, float]:
    """Return the shares of items whose truth, and whose true rank, lies within the interval."""
    table = fit.scores.with_columns(pl.col("item").cast(pl.Int64)).sort("item")
    table = table.with_columns(truth=pl.Series(truth), place=pl.Series(stats.rankdata(-truth))).drop_nulls("lower")
    score = table.select((pl.col("lower") <= pl.col("truth")) & (pl.col("truth") <= pl.col("upper"))).to_series()
    rank = table.select(pl.col("place").is_between("rank_lower", "rank_upper")).to_series()
    return float(score.mean()), float(rank.mean())  # type: ignore[arg-type]


def mean_of_clipped(centre: FloatArray, sd: FloatArray, low: float = 0.0, high: float = 100.0) -> FloatArray:
    """Return the mean of a Gaussian whose values are cut to a scale."""
    a, b = (low - centre) / sd, (high - centre) / sd
    inside = stats.norm.cdf(b) - stats.norm.cdf(a)
    ends = low * stats.norm.cdf(a) + high * stats.norm.sf(b)
    return np.asarray(ends + centre * inside - sd * (stats.norm.pdf(b) - stats.norm.pdf(a)))


def rating_study(
    rng: np.random.Generator, per_item: int, spread: float, edges: tuple[float, float] = (10, 90), items: int = 30
) -> tuple[FloatArray, Ratings]:
    """Simulate sliders: annotators with biases (sd 8), items with noise of 10 times a lognormal of `spread`."""
    theta = rng.uniform(*edges, items)
    noise = 10 * np.exp(spread * rng.normal(size=items))
    bias = rng.normal(0, 8, POOL)
    who = np.array([rng.choice(POOL, per_item, replace=False) for _ in range(items)])
    value = np.clip(theta[:, None] + bias[who] + noise[:, None] * rng.normal(size=who.shape), 0, 100)
    ratings = Ratings(
        items=Index(map(str, range(items))),
        annotators=Index(f"w{a}" for a in range(POOL)),
        item=np.repeat(np.arange(items, dtype=np.int32), per_item),
        annotator=who.ravel().astype(np.int32),
        value=value.ravel(),
        scale=(0.0, 100.0),
    )
    return mean_of_clipped(theta, np.hypot(8, noise)), ratings


def performances(rng: np.random.Generator, skill: FloatArray, gamma: float, epsilon: float) -> Decide:
    """Decide as TrueSkill believes: noisy performances, tied within ε."""

    def decide(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int8]:
        lead = skill[left] - skill[right] + rng.normal(0, np.sqrt(2) * gamma, len(left))
        return np.where(np.abs(lead) <= epsilon, 0, np.sign(lead)).astype(np.int8)

    return decide


def rao_kupper(rng: np.random.Generator, score: FloatArray, epsilon: float) -> Decide:
    """Decide as bounded ranking believes; with ε = 0, as Bradley and Terry."""

    def decide(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int8]:
        win, tie, _ = outcome_probabilities(score[left], score[right], epsilon)
        u = rng.random(len(left))
        return np.where(u < win, 1, np.where(u < win + tie, 0, -1)).astype(np.int8)

    return decide


def comparison_study(rng: np.random.Generator, items: int, per_item: int, decide: Decide) -> Comparisons:
    """Simulate comparisons of random pairs by random annotators, without tasks."""
    n = items * per_item // 2
    left = rng.integers(0, items, n)
    right = (left + rng.integers(1, items, n)) % items
    return Comparisons(
        items=Index(map(str, range(items))),
        annotators=Index(f"w{a}" for a in range(POOL)),
        annotator=rng.integers(0, POOL, n).astype(np.int32),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        outcome=decide(left, right),
    )


def rows(name: str, measured: list[tuple[float, float]]) -> None:
    """Print one line of the table."""
    score, rank = np.mean(measured, axis=0)
    print(f"| {name} | {score:.3f} | {rank:.3f} |", flush=True)


def ratings(sets: int) -> None:
    """Measure mean, EASL and median."""
    for model, label in (
        (Mean(), "mean"),
        (EASL(draws=200), "easl, t"),
        (EASL(interval="bootstrap", draws=200), "easl, bootstrap"),
        (EASL(interval="model", draws=100), "easl, model"),
        (Median(draws=200), "median (of the mean's truth)"),
    ):
        for per_item in (2, 3, 5, 10):
            for spread, edges in ((0.0, (10, 90)), (0.6, (10, 90)), (0.3, (0, 100))):
                rng = np.random.default_rng(per_item)
                studies = (rating_study(rng, per_item, spread, edges) for _ in range(sets))
                measured = [covered(model.fit(study), truth) for truth, study in studies]
                rows(f"{label}, {per_item} ratings, spread {spread}, {edges[0]}–{edges[1]}", measured)


def trueskill(sets: int) -> None:
    """Measure TrueSkill on items drawn from its prior."""
    for gamma, epsilon in ((0.5, 0.1), (1.0, 0.2), (0.25, 0.05)):
        model = TrueSkill(gamma=gamma, epsilon=epsilon)
        for items in (10, 50, 200):
            for per_item in (4, 10, 40, 200):
                rng = np.random.default_rng(items + per_item)
                measured = []
                for _ in range(sets):
                    theta = rng.normal(model.mu, model.sigma, items)
                    decide = performances(rng, theta, gamma, epsilon)
                    measured.append(covered(model.fit(comparison_study(rng, items, per_item, decide)), theta))
                rows(f"trueskill γ={gamma} ε={epsilon}, {items} items, {per_item} comparisons each", measured)


def bounded(sets: int) -> None:
    """Measure bounded ranking against its own model's scores, and against its own expectation."""
    items = 30
    for per_item in (10, 40, 200):
        rng = np.random.default_rng(per_item)
        errors: dict[str, list[tuple[float, float]]] = {}
        for number in range(sets):
            if number % 20 == 0:
                truth = rng.uniform(0, 1, items)
                decide = rao_kupper(rng, truth, 0.1)
                model = BoundedRanking()
                repeats = [
                    model.update(model.start(items), comparison_study(rng, items, per_item, decide)).mode
                    for _ in range(400)
                ]
                expected = np.mean(repeats, axis=0)
            study = comparison_study(rng, items, per_item, decide)
            for how, variant in (("bootstrap", model), ("model", BoundedRanking(interval="model"))):
                fit = variant.fit(study)
                errors.setdefault(f"{how} | own expectation", []).append(covered(fit, expected))
                errors.setdefault(f"{how} | true score", []).append(covered(fit, truth))
        for label, measured in errors.items():
            how, target = label.split(" | ")
            rows(f"bounded_ranking, {how}, of its {target}, {per_item} comparisons", measured)


def elo_and_counting(sets: int) -> None:
    """Measure Elo against strength and its own expectation, and counting against its expectation."""
    items = 30
    for per_item in (10, 40, 200, 4000):
        rng = np.random.default_rng(per_item)
        errors: dict[str, list[tuple[float, float]]] = {}
        for number in range(sets):
            if number % 20 == 0:
                theta = rng.normal(size=items)
                decide = rao_kupper(rng, theta, 0.0)
                strength = 1500 + 400 / np.log(10) * (theta - theta.mean())
                share = (special.expit(theta[:, None] - theta).sum(axis=1) - 0.5) / (items - 1)
                model = Elo()
                repeats = [
                    model.update(model.start(items), comparison_study(rng, items, per_item, decide)).rating
                    for _ in range(400)
                ]
                expected = np.mean(repeats, axis=0)
            study = comparison_study(rng, items, per_item, decide)
            fit = Elo().fit(study)
            errors.setdefault("elo, of its own expectation", []).append(covered(fit, expected))
            errors.setdefault("elo, of the true strength", []).append(covered(fit, strength))
            for how in ("t", "bootstrap"):
                counted = Counting(interval=how, draws=200).fit(study)
                errors.setdefault(f"counting, {how}", []).append(covered(counted, 2 * share - 1))
        for label, measured in errors.items():
            rows(f"{label}, {per_item} comparisons", measured)


def main() -> None:
    """Print the tables."""
    sets = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    parts = {"ratings": ratings, "trueskill": trueskill, "bounded": bounded, "elo": elo_and_counting}
    names = sys.argv[2:] or list(parts)
    warnings.simplefilter("ignore", SteelyardWarning)
    print(f"{sets} data sets a line\n\n| model | score | rank |\n|---|---:|---:|")
    for name in names:
        parts[name](sets)


if __name__ == "__main__":
    main()
