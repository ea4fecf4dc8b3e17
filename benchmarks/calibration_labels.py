"""Accuracy and calibration of label models on recorded labels with known classes, whole and thinned out.

Run: STEELYARD_DATA=folder python benchmarks/calibration_labels.py [draws a set]
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl

from steelyard.models.fit import Model
from steelyard.models.labels.dawid_skene import DawidSkene
from steelyard.models.labels.gold_calibrated import GoldCalibrated
from steelyard.models.labels.mace import MACE
from steelyard.models.labels.majority import Majority

SETS = ("bluebird", "dog", "web", "product", "rte", "temp", "wsd")
MODELS: dict[str, Model] = {
    "majority": Majority(),
    "dawid_skene of 1979": DawidSkene(confusion_prior="none", calibrate=False, tolerance=1e-7, interval="none"),
    "dawid_skene": DawidSkene(interval="none"),
    "mace": MACE(interval="none"),
}
GOLD_MODELS: dict[str, Model] = {
    "gold_calibrated": GoldCalibrated(),
    "without temperature": GoldCalibrated(calibrate=False),
    "as published": GoldCalibrated.as_published(),
}
GOLD_SIZES: tuple[tuple[dict[str, int], int], ...] = (
    ({"items": 300, "labels": 5}, 20),
    ({"items": 300, "labels": 5}, 60),
    ({"items": 300}, 60),
)
COLUMNS = ("accuracy", "claimed", "ece", "log_loss", "brier")
THINNED: dict[str, dict[str, int]] = {
    "20 items x 5 labels": {"items": 20, "labels": 5},
    "30 items x 5 labels": {"items": 30, "labels": 5},
    "50 items x 3 labels": {"items": 50, "labels": 3},
    "40 items x 2 labels": {"items": 40, "labels": 2},
    "50 items, 8 annotators": {"items": 50, "annotators": 8},
    "300 items x 3 labels": {"items": 300, "labels": 3},
}


def recorded(name: str) -> pl.DataFrame:
    """Read a set: annotator, item, label and gold."""
    folder = Path(os.environ["STEELYARD_DATA"])
    if name in ("rte", "temp", "wsd"):
        return pl.read_csv(folder / "snow2008" / f"{name}.csv.gz", infer_schema=False)
    rows = pl.read_csv(folder / "labels" / f"{name}.csv.gz", infer_schema=False)
    gold = pl.read_csv(folder / "labels" / f"{name}_truth.csv.gz", infer_schema=False).rename({"label": "gold"})
    return rows.join(gold, on="item", how="left")


def thinned(rows: pl.DataFrame, rng: np.random.Generator, sizes: Mapping[str, int]) -> pl.DataFrame:
    """Draw annotators, items and labels of each item at random."""
    if "annotators" in sizes:
        ids = rng.permutation(rows["annotator"].unique().sort().to_numpy())[: sizes["annotators"]]
        rows = rows.filter(pl.col("annotator").is_in(ids.tolist()))
    if "items" in sizes:
        ids = rng.permutation(rows["item"].unique().sort().to_numpy())[: sizes["items"]]
        rows = rows.filter(pl.col("item").is_in(ids.tolist()))
    rows = rows.with_columns(pl.Series("order", rng.random(rows.height)))
    place = pl.col("order").rank().over("item")
    return rows.filter(place <= sizes["labels"]) if "labels" in sizes else rows


def measure(model: Model, rows: pl.DataFrame, n_gold: int = 0) -> list[float]:
    """Fit a model, and compare its probabilities with the gold of the items; that of `n_gold` items is given to it.

    Those items do not count.
    """
    from steelyard.formats import read_judgments

    labels = read_judgments(rows.select("annotator", "item", "label"), kind="labels").observations
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gold = rows.filter(pl.col("gold").is_not_null()).unique("item").select("item", "gold").sort("item")
        gold_part = gold.sample(min(n_gold, gold.height // 2), seed=0)
        scores = (model.fitted(labels, dict(gold_part.iter_rows())) if n_gold else model.fitted(labels)).scores
    gold = gold.join(gold_part, on="item", how="anti")
    scores = scores.join(gold, on="item", how="inner").filter(pl.col("probability").is_not_null())
    classes = [name for name in scores.columns if name.startswith("p(")]
    probability = scores.select(classes).to_numpy()
    true = np.array([[f"p({label})" == name for name in classes] for label in scores["gold"]])
    top = probability.max(axis=1)
    is_top = probability >= top[:, None] - 1e-9
    right = (is_top & true).sum(axis=1) / is_top.sum(axis=1)
    decile = np.minimum((10 * top).astype(int), 9)
    gaps = [abs((right - top)[decile == part].sum()) for part in range(10)]
    of_true = np.where(true.any(axis=1), (probability * true).sum(axis=1), 0.0)
    return [
        float(right.mean()),
        float(top.mean()),
        float(sum(gaps) / len(top)),
        float(-np.log(np.maximum(of_true, 1e-6)).mean()),
        float(((probability - true) ** 2).sum(axis=1).mean()),
    ]


def table(title: str, samples: list[pl.DataFrame], run: Callable[..., object], n_gold: int = 0) -> None:
    """Print the mean of each column over the samples, one line for each model."""
    print(f"{title} ({len(samples)} data sets)")
    for name, model in (GOLD_MODELS if n_gold else MODELS).items():
        results = np.array(list(run(partial(measure, model, n_gold=n_gold), samples)))  # type: ignore[call-overload]
        print(f"  {name:22}", "  ".join(f"{c} {v:.3f}" for c, v in zip(COLUMNS, results.mean(axis=0), strict=True)))


def main() -> None:
    """Print a table for each recorded set, and for each way to thin them out."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    sets = {name: recorded(name) for name in SETS}
    rng = np.random.default_rng(0)
    # Not forked: polars has started its threads.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for name, rows in sets.items():
            table(name, [rows], pool.map)
        table("all sets", list(sets.values()), pool.map)
        for title, sizes in THINNED.items():
            samples = [thinned(rows, rng, sizes) for rows in sets.values() for _ in range(draws)]
            table(title, [rows for rows in samples if rows["label"].n_unique() > 1], pool.map)
        for sizes, n_gold in GOLD_SIZES:
            samples = [thinned(rows, rng, sizes) for rows in sets.values() for _ in range(draws)]
            title = f"{sizes['items']} items x {sizes.get('labels', 'all')} labels, {n_gold} with gold"
            table(title, [rows for rows in samples if rows["label"].n_unique() > 1], pool.map, n_gold)


if __name__ == "__main__":
    main()
