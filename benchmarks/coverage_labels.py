"""Measure how often 95 % intervals of the label models and of gaussian calibration hold the truth.

Run: python benchmarks/coverage_labels.py [DATA SETS A CELL, default 200]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl
from scipy import special

from steelyard.models.fit import Fit
from steelyard.models.labels.dawid_skene import DawidSkene
from steelyard.models.labels.gold_calibrated import GoldCalibrated
from steelyard.models.labels.mace import MACE
from steelyard.models.labels.majority import Majority
from steelyard.models.ratings.gaussian_calibration import GaussianCalibration
from steelyard.models.table import competition_ranks
from steelyard.observations import FloatArray, Index, IntArray, Labels, Ratings

SIMULATED = Mapping[str, float]


@dataclass(frozen=True)
class LabelWorld:
    """Simulated labels with the truth behind them; `confusion` is (annotator, true, given)."""

    labels: Labels
    true: IntArray
    confusion: FloatArray
    accuracy: FloatArray
    knowing: FloatArray
    shares: tuple[float, ...] | None = None

    @property
    def posterior(self) -> FloatArray:
        """The probability of every class at the true parameters; classes are equally likely without `shares`."""
        rows = np.log(self.confusion)[self.labels.annotator, :, self.labels.label]
        score = np.stack([np.bincount(self.labels.item, column) for column in rows.T], axis=1)
        return np.asarray(special.softmax(score if self.shares is None else score + np.log(self.shares), axis=1))

    @property
    def vote_share(self) -> FloatArray:
        """The share of all annotators that would give each class to each item."""
        return np.asarray(self.confusion.mean(axis=0)[self.true])


def label_world(seed: int, items: int, annotators: int, per_item: int, classes: int, kind: str) -> LabelWorld:
    """Draw annotators who know the answer with probability .1 to .9 and else guess, by class or all alike."""
    rng = np.random.default_rng(seed)
    knowing = rng.uniform(0.1, 0.9, annotators)
    if kind == "mace":
        guess = rng.dirichlet(np.full(classes, 5.0), annotators)[:, None, :].repeat(classes, axis=1)
        by_class = np.repeat(knowing[:, None], classes, axis=1)
    else:
        guess = rng.dirichlet(np.full(classes, 2.0), (annotators, classes))
        by_class = np.clip(knowing[:, None] + rng.uniform(-0.2, 0.2, (annotators, classes)), 0.05, 0.95)
    confusion = by_class[:, :, None] * np.eye(classes) + (1 - by_class[:, :, None]) * guess
    true = rng.integers(0, classes, items).astype(np.int32)
    labels = draw_labels(rng, true, confusion, per_item)
    accuracy = confusion.trace(axis1=1, axis2=2) / classes
    return LabelWorld(labels, true, confusion, accuracy, knowing)


@dataclass(frozen=True)
class Population:
    """Labels of classes with given shares, by annotators whose accuracies are Beta distributed, class by class."""

    items: int
    annotators: int
    per_item: int
    shares: tuple[float, ...]
    beta: tuple[float, float]

    def drawn(self, seed: int) -> LabelWorld:
        """Draw annotators and labels; wrong labels are spread evenly."""
        rng = np.random.default_rng(seed)
        classes = len(self.shares)
        true = rng.choice(classes, self.items, p=self.shares).astype(np.int32)
        right = rng.beta(*self.beta, size=(self.annotators, classes))
        confusion = np.repeat(((1 - right) / (classes - 1))[:, :, None], classes, axis=2)
        confusion[:, np.arange(classes), np.arange(classes)] = right
        labels = draw_labels(rng, true, confusion, self.per_item)
        return LabelWorld(labels, true, confusion, right.mean(axis=1), right.mean(axis=1), self.shares)


def draw_labels(rng: np.random.Generator, true: IntArray, confusion: FloatArray, per_item: int) -> Labels:
    """Draw the labels that some annotators give each item."""
    items, (annotators, classes, _) = len(true), confusion.shape
    item = np.repeat(np.arange(items, dtype=np.int32), per_item)
    annotator = np.concatenate([rng.choice(annotators, per_item, replace=False) for _ in range(items)])
    edges = confusion[annotator, true[item]].cumsum(axis=1)
    label = np.minimum((rng.random(len(item))[:, None] > edges).sum(axis=1), classes - 1)
    return Labels(
        items=Index(f"i{k}" for k in range(items)),
        annotators=Index(f"a{k}" for k in range(annotators)),
        classes=Index(f"c{k}" for k in range(classes)),
        item=item,
        annotator=annotator.astype(np.int32),
        label=label.astype(np.int32),
    )


def share_held(lower: FloatArray, upper: FloatArray, truth: FloatArray) -> float:
    """Return the share of intervals that hold the truth, to a millionth; missing intervals are left out."""
    has_interval = ~np.isnan(lower)
    return float(((lower - 1e-6 <= truth) & (truth <= upper + 1e-6))[has_interval].mean())


def share_held_by(table: pl.DataFrame, name: str, truth: FloatArray) -> float:
    """Return the share of the annotator table's intervals of `name` that hold the truth."""
    return share_held(table[f"{name}_lower"].to_numpy(), table[f"{name}_upper"].to_numpy(), truth)


def measure_labels(fit: Fit, world: LabelWorld, truth: FloatArray, gold: float = 0.0) -> SIMULATED:
    """Compare one fit with the truth; items with gold, the first, are left out."""
    rest = slice(int(gold * len(world.true)), None)
    scores = fit.scores
    label = world.labels.classes.codes(scores["label"].to_list())
    probability, lower, upper = (scores[name].to_numpy()[rest] for name in ("probability", "lower", "upper"))
    results = {
        "probability": share_held(lower, upper, truth[np.arange(len(label)), label][rest]),
        "width": float(np.nanmean(upper - lower)),
        "claimed": float(probability.mean()),
        "right": float((label == world.true)[rest].mean()),
    }
    if fit.annotators is not None:
        for name, true in (("accuracy", world.accuracy), ("competence", world.knowing)):
            if name in fit.annotators.columns:
                results[name] = share_held_by(fit.annotators, name, true)
    return results


def one_label_set(
    model: DawidSkene | MACE | GoldCalibrated | Majority,
    shape: Mapping[str, int],
    kind: str,
    gold: float,
    seed: int,
) -> SIMULATED:
    """Simulate, fit and measure one data set of labels."""
    world = label_world(seed, kind=kind, **shape)
    n_gold = int(gold * len(world.true))
    known_labels: dict[str, str | float] = {f"i{k}": f"c{world.true[k]}" for k in range(n_gold)}
    fit = model.fit(world.labels, gold=known_labels) if isinstance(model, GoldCalibrated) else model.fit(world.labels)
    return measure_labels(fit, world, world.vote_share if isinstance(model, Majority) else world.posterior, gold)


def one_population(population: Population, seed: int) -> SIMULATED:
    """Simulate, fit and measure one data set of a population."""
    world = population.drawn(seed)
    return measure_labels(DawidSkene().fit(world.labels), world, world.posterior)


def one_rating_set(shape: Mapping[str, float], seed: int) -> SIMULATED:
    """Simulate, calibrate and measure one data set of ratings; noise is log-normal among annotators."""
    rng = np.random.default_rng(seed)
    items, annotators, per_item = int(shape["items"]), int(shape["annotators"]), int(shape["per_item"])
    score = 50 + 15 * rng.standard_normal(items)
    bias = 3 + shape.get("bias", 8.0) * rng.standard_normal(annotators)
    noise = 10 * np.exp(shape.get("noise", 0.4) * rng.standard_normal(annotators))
    item = np.repeat(np.arange(items, dtype=np.int32), per_item)
    annotator = np.concatenate([rng.choice(annotators, per_item, replace=False) for _ in range(items)])
    value = score[item] + bias[annotator] + noise[annotator] * rng.standard_normal(len(item))
    # Ends far off, so that nothing is cut: the model is Gaussian.
    ratings = Ratings(
        items=Index(f"i{k}" for k in range(items)),
        annotators=Index(f"a{k}" for k in range(annotators)),
        item=item,
        annotator=annotator.astype(np.int32),
        value=value,
        scale=(-200.0, 300.0) if value.min() > -200 and value.max() < 300 else (value.min() - 1, value.max() + 1),
    )
    n_gold = max(2, int(shape["gold"] * items))
    fit = GaussianCalibration(seed=seed).fit(ratings, gold={f"i{k}": float(score[k]) for k in range(n_gold)})
    table = fit.scores.sort(pl.col("item").str.slice(1).cast(pl.Int64))
    lower, upper = table["lower"].to_numpy(), table["upper"].to_numpy()
    ranks = competition_ranks(score)
    in_rank = (table["rank_lower"].to_numpy() <= ranks) & (ranks <= table["rank_upper"].to_numpy())
    assert fit.annotators is not None
    mean = np.bincount(item, value) / per_item
    mean -= (mean - score)[:n_gold].mean()
    return {
        "score": share_held(lower[n_gold:], upper[n_gold:], score[n_gold:]),
        "gold items": share_held(lower[:n_gold], upper[:n_gold], score[:n_gold]),
        "rank": float(in_rank.mean()),
        "bias": share_held_by(fit.annotators, "bias", bias),
        "noise": share_held_by(fit.annotators, "noise", noise),
        "rmse": float(np.sqrt(np.mean((table["score"].to_numpy() - score)[n_gold:] ** 2))),
        "rmse of mean": float(np.sqrt(np.mean((mean - score)[n_gold:] ** 2))),
    }


def report(name: str, run: Callable[[int], SIMULATED], count: int) -> None:
    """Print the means over the data sets."""
    with ProcessPoolExecutor(2) as pool:
        results = list(pool.map(run, range(count), chunksize=5))
    columns = ", ".join(f"{key} {np.nanmean([f[key] for f in results]):.3f}" for key in results[0])
    print(f"{name:60} {columns}", flush=True)


RATING_SHAPES: tuple[dict[str, float], ...] = (
    {"items": 60, "annotators": 20, "per_item": 5, "gold": 0.3},
    {"items": 60, "annotators": 20, "per_item": 5, "gold": 0.1},
    {"items": 60, "annotators": 8, "per_item": 5, "gold": 0.3},
    {"items": 200, "annotators": 40, "per_item": 5, "gold": 0.2},
    {"items": 60, "annotators": 20, "per_item": 2, "gold": 0.3},
    {"items": 60, "annotators": 20, "per_item": 5, "gold": 0.3, "noise": 0.8},
    {"items": 60, "annotators": 20, "per_item": 5, "gold": 0.3, "bias": 0.0, "noise": 0.0},
    {"items": 60, "annotators": 60, "per_item": 5, "gold": 0.2},
)
LABEL_SHAPES: tuple[dict[str, int], ...] = (
    {"items": 100, "annotators": 20, "per_item": 5, "classes": 2},
    {"items": 300, "annotators": 20, "per_item": 10, "classes": 2},
    {"items": 200, "annotators": 20, "per_item": 5, "classes": 4},
    {"items": 30, "annotators": 10, "per_item": 4, "classes": 2},
    {"items": 1000, "annotators": 40, "per_item": 5, "classes": 3},
)


GOLD_MODELS = {"gold_calibrated": GoldCalibrated(), "as published": GoldCalibrated.as_published()}
POPULATIONS = {
    "alike, 60": Population(60, 12, 4, (0.5, 0.5), (40, 10)),
    "varied, 60": Population(60, 12, 4, (0.5, 0.5), (4, 2)),
    "varied, 300": Population(300, 20, 5, (0.5, 0.5), (4, 2)),
    "5 : 3 : 2, 150": Population(150, 15, 4, (0.5, 0.3, 0.2), (5, 2)),
    "7 : 3, 100": Population(100, 15, 4, (0.7, 0.3), (5, 2)),
    "85 : 15, 60": Population(60, 12, 4, (0.85, 0.15), (6, 2)),
    "85 : 15, 300": Population(300, 20, 5, (0.85, 0.15), (6, 2)),
}


GOLD_POPULATIONS = {
    "100 items x 4, alike, 20 gold": (Population(100, 12, 4, (0.5, 0.5), (40, 10)), 20),
    "85 : 15, 100 items x 5, 30 gold": (Population(100, 20, 5, (0.85, 0.15), (6, 2)), 30),
    "85 : 15, 100 items x 5, 10 gold": (Population(100, 20, 5, (0.85, 0.15), (6, 2)), 10),
    "85 : 15, 300 items x 5, 60 gold": (Population(300, 20, 5, (0.85, 0.15), (6, 2)), 60),
    "95 : 5, 300 items x 5, 60 gold": (Population(300, 20, 5, (0.95, 0.05), (6, 2)), 60),
    "5 : 3 : 2, 150 items x 4, 30 gold": (Population(150, 15, 4, (0.5, 0.3, 0.2), (5, 2)), 30),
    "3 equal, 500 items x 3 of 60, 50 gold": (Population(500, 60, 3, (1 / 3, 1 / 3, 1 / 3), (6, 2)), 50),
}


def one_gold_population(model: GoldCalibrated, population: Population, n_gold: int, seed: int) -> SIMULATED:
    """Simulate one population with some gold, fit and measure."""
    world = population.drawn(seed)
    gold: dict[str, str | float] = {f"i{k}": f"c{world.true[k]}" for k in range(n_gold)}
    fit = model.fit(world.labels, gold=gold)
    return measure_labels(fit, world, world.posterior, n_gold / len(world.true))


def main() -> None:
    """Print one line for each model and shape of data."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"means over {count} data sets a line")
    for ratings_shape in RATING_SHAPES:
        settings = " ".join(f"{key}={value:g}" for key, value in ratings_shape.items())
        report(f"gaussian_calibration {settings}", partial(one_rating_set, ratings_shape), count)
    for name, population in POPULATIONS.items():
        report(f"dawid_skene {name}", partial(one_population, population), count)
    for name, (population, n_gold) in GOLD_POPULATIONS.items():
        for model_name, gold_model in GOLD_MODELS.items():
            report(f"{model_name} {name}", partial(one_gold_population, gold_model, population, n_gold), count)
    for shape in LABEL_SHAPES:
        settings = " ".join(f"{key}={value}" for key, value in shape.items())
        cases: list[tuple[str, DawidSkene | MACE | GoldCalibrated | Majority, str, float]] = [
            ("majority", Majority(), "confusion", 0.0),
            ("dawid_skene", DawidSkene(), "confusion", 0.0),
            ("dawid_skene bootstrap", DawidSkene(interval="bootstrap"), "confusion", 0.0),
            ("mace", MACE(max_iterations=5000), "mace", 0.0),
            *(
                (f"{name} {share:.0%} gold", each, "confusion", share)
                for share in (0.3, 0.1)
                for name, each in GOLD_MODELS.items()
            ),
        ]
        for model_name, model, kind, gold in cases:
            report(f"{model_name} {settings}", partial(one_label_set, model, shape, kind, gold), count)


if __name__ == "__main__":
    main()
