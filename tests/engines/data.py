"""Simulated judgments for the engines' tests, with the irregularities of real logs."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

KINDS = ("ratings", "comparisons", "choices", "labels")


def simulated(
    kind: str, *, rows: int = 600, ids: str = "annotators", seed: int = 0, annotators: int = 23, items: int = 14
) -> pl.DataFrame:
    """Draw judgments with ties, repeats, empty answers, spaces around ids and ids beyond ASCII."""
    rng = np.random.default_rng(seed)
    names = np.array([f"item {n}" if n % 5 else f"Übung {n}" for n in range(items)])
    true_score = np.linspace(-1.5, 1.5, len(names))
    columns: dict[str, object] = {}
    if ids in ("annotators", "both"):
        columns["annotator"] = [f"ann {n}" for n in rng.integers(0, annotators, rows)]
    if ids in ("tasks", "both"):
        columns["task"] = [f"task {n}" for n in rng.integers(0, rows // 3, rows)]
    if kind in ("ratings", "labels"):
        item = rng.integers(0, len(names), rows)
        noisy = true_score[item] + rng.normal(size=rows)
        columns["item"] = [f" {names[code]}" if n % 50 == 7 else names[code] for n, code in enumerate(item)]
        if kind == "ratings":
            value = np.clip(np.round(50 + 20 * noisy, 1), 0, 100)
            columns["value"] = [None if n % 97 == 5 else float(v) for n, v in enumerate(value)]
        else:
            label = np.digitize(noisy, [-0.7, 0.7])
            columns["label"] = [None if n % 89 == 5 else ("low", "mid", "high")[code] for n, code in enumerate(label)]
        return pl.DataFrame(columns)
    size = 2 if kind == "comparisons" else 4
    tuples = np.argsort(rng.random((rows, len(names))), axis=1)[:, :size]
    noisy = true_score[tuples] + rng.gumbel(size=tuples.shape)
    best, worst = noisy.argmax(axis=1), noisy.argmin(axis=1)
    if kind == "comparisons":
        word = np.where(best == 0, "left", "right").astype(object)
        word[np.abs(noisy[:, 0] - noisy[:, 1]) < 0.3] = "tie"
        by_name = rng.random(rows) < 0.5
        spelt = [names[tuples[n, best[n]]] if by_name[n] and word[n] != "tie" else word[n] for n in range(rows)]
        sides = {"left": "Model A", "right": "model_b"}
        spelt = [sides.get(str(w), w) if n % 7 == 2 else w for n, w in enumerate(spelt)]
        columns |= {"left": names[tuples[:, 0]], "right": names[tuples[:, 1]]}
        columns["winner"] = [None if n % 83 == 3 else w for n, w in enumerate(spelt)]
        return pl.DataFrame(columns)
    columns |= {f"item{place + 1}": names[tuples[:, place]] for place in range(size)}
    chosen = {
        name: names[tuples[np.arange(rows), at]].astype(object) for name, at in (("best", best), ("worst", worst))
    }
    chosen["best"][::71] = None
    chosen["worst"][5::67] = None
    chosen["worst"][9::101] = chosen["best"][9::101]
    return pl.DataFrame(columns | {name: picked.tolist() for name, picked in chosen.items()})


def gold() -> dict[str, str]:
    """Return the classes of some of the items."""
    return {"item 1": "low", "item 2": "low", "item 6": "mid", "item 7": "mid", "item 12": "high", "item 13": "high"}


def written(frame: pl.DataFrame, folder: Path, parts: int, seed: int = 1) -> list[Path]:
    """Shuffle the rows and write them to `parts` files."""
    folder.mkdir(parents=True, exist_ok=True)
    shuffled = frame.sample(fraction=1, shuffle=True, seed=seed)
    bounds = np.linspace(0, frame.height, parts + 1).astype(int)
    files = []
    for number, (start, end) in enumerate(pairwise(bounds.tolist())):
        files.append(folder / f"part-{number:02}.parquet")
        shuffled[start:end].write_parquet(files[-1])
    return files
