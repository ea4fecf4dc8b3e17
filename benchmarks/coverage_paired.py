"""Measure how often 95 % intervals of scores and ranks hold the truth, over simulated data sets.

Items are drawn from the model's prior, answers from the model. Run: python benchmarks/coverage_paired.py [data sets]
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

from steelyard.errors import SteelyardWarning
from steelyard.models.choices.maxdiff import MaxDiff
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.comparisons.latent import LatentScale
from steelyard.models.comparisons.paired import expected_share
from steelyard.models.comparisons.plackett_luce import PlackettLuce
from steelyard.models.comparisons.thurstone import Thurstone
from steelyard.models.comparisons.win_rate import WinRate
from steelyard.observations import Choices, Comparisons, FloatArray, Index, Rankings

Make = Callable[[FloatArray, int, np.random.Generator], Comparisons | Choices | Rankings]


def ids(n: int) -> Index:
    """Name n items."""
    return Index([f"i{code}" for code in range(n)])


def drawn_pairs(n: int, rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw pairs of different items."""
    left = rng.integers(0, n, rows).astype(np.int32)
    return left, ((left + rng.integers(1, n, rows)) % n).astype(np.int32)


def make_pairs(noise: str, nu: float = 0.0) -> Make:
    """Compare `rows` random pairs: logistic or normal noise, Davidson's ties with parameter nu."""

    def make(theta: FloatArray, rows: int, rng: np.random.Generator) -> Comparisons:
        left, right = drawn_pairs(len(theta), rows, rng)
        d = theta[left] - theta[right]
        if nu:
            chance = np.column_stack([np.exp(d / 2), np.exp(-d / 2), np.full(rows, nu)])
            picked = (np.log(chance) + rng.gumbel(size=chance.shape)).argmax(axis=1)
            outcome = np.array([1, -1, 0], np.int8)[picked]
        else:
            error = rng.logistic(size=rows) if noise == "logistic" else rng.normal(size=rows)
            outcome = np.where(d + error > 0, 1, -1).astype(np.int8)
        return Comparisons(items=ids(len(theta)), left=left, right=right, outcome=outcome)

    return make


def shown_tuples(n: int, rows: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw tuples of different items."""
    return rng.random((rows, n)).argsort(axis=1)[:, :size].astype(np.int32)


def make_rankings(theta: FloatArray, rows: int, rng: np.random.Generator) -> Rankings:
    """Rank tuples of five by Plackett–Luce."""
    tuples = shown_tuples(len(theta), rows, 5, rng)
    place = (-(theta[tuples] + rng.gumbel(size=tuples.shape))).argsort(axis=1).argsort(axis=1) + 1
    return Rankings(
        items=ids(len(theta)),
        start=np.arange(0, 5 * rows + 1, 5),
        item=tuples.ravel(),
        rank=place.astype(np.int32).ravel(),
    )


def make_choices(theta: FloatArray, rows: int, rng: np.random.Generator) -> Choices:
    """Pick best and worst of tuples of four by maxdiff."""
    tuples = shown_tuples(len(theta), rows, 4, rng)
    pair = np.array([(i, j) for i in range(4) for j in range(4) if i != j])
    utility = theta[tuples][:, pair[:, 0]] - theta[tuples][:, pair[:, 1]]
    picked = pair[(utility + rng.gumbel(size=utility.shape)).argmax(axis=1)]
    row = np.arange(rows)
    return Choices(items=ids(len(theta)), shown=tuples, best=tuples[row, picked[:, 0]], worst=tuples[row, picked[:, 1]])


def measure(
    model: LatentScale | WinRate, make: Make, sd: float, n: int, rows: int, data_sets: int
) -> tuple[float, float]:
    """Return the share of score intervals and of rank intervals that hold the truth."""
    covered_count = ranked = total = 0
    for seed in range(data_sets):
        rng = np.random.default_rng((seed, n, rows))
        theta = rng.normal(0, sd, n)
        truth = theta - theta.mean()
        if isinstance(model, WinRate):
            truth = expected_share(theta, lambda d: 1 / (1 + np.exp(-d)))
        rank = (-theta).argsort().argsort() + 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SteelyardWarning)
            table = model.fit(make(theta, rows, rng)).scores.drop_nulls("lower")
        code = np.array([int(name[1:]) for name in table["item"]])
        lower, upper, low, high = (table[c].to_numpy() for c in ("lower", "upper", "rank_lower", "rank_upper"))
        covered_count += int(((lower <= truth[code]) & (truth[code] <= upper)).sum())
        ranked += int(((low <= rank[code]) & (rank[code] <= high)).sum())
        total += len(table)
    return covered_count / total, ranked / total


def main(data_sets: int = 200) -> None:
    """Print one line for each model and size."""
    # (label, model, maker, prior sd, items, rows); judgments an item: thin, middling, plenty.
    cases: list[tuple[str, LatentScale | WinRate, Make, float, int, int]] = []
    for per_item in (6, 20, 80):
        half = 30 * per_item // 2
        pairs, tied, normal = make_pairs("logistic"), make_pairs("", 1.0), make_pairs("normal")
        cases += [
            (f"bradley_terry, {per_item}", BradleyTerry(), pairs, 2.0, 30, half),
            (f"bradley_terry davidson, {per_item}", BradleyTerry(), tied, 2.0, 30, half),
            (f"bradley_terry sandwich, {per_item}", BradleyTerry(interval="sandwich"), pairs, 2.0, 30, half),
            (f"bradley_terry bootstrap, {per_item}", BradleyTerry(interval="bootstrap"), pairs, 2.0, 30, half),
            (f"thurstone, {per_item}", Thurstone(), normal, 1.2, 30, half),
            (f"win_rate, {per_item}", WinRate(), pairs, 2.0, 30, half),
        ]
    for per_item in (4, 8, 30):
        cases += [
            (f"plackett_luce, {per_item}", PlackettLuce(), make_rankings, 2.0, 30, 6 * per_item),
            (f"bradley_terry on rankings, {per_item}", BradleyTerry(), make_rankings, 2.0, 30, 6 * per_item),
            (f"maxdiff, {per_item}", MaxDiff(), make_choices, 1.0, 30, 30 * per_item // 4),
            (f"maxdiff sandwich, {per_item}", MaxDiff(interval="sandwich"), make_choices, 1.0, 30, 30 * per_item // 4),
        ]
    print(f"{data_sets} data sets of 30 items; judgments an item after the name")
    print(f"{'':34} {'scores':>7} {'ranks':>7} {'s':>6}")
    for label, model, make, sd, n, rows in cases:
        begin = time.perf_counter()
        scores, ranks = measure(model, make, sd, n, rows, data_sets)
        print(f"{label:34} {scores:7.3f} {ranks:7.3f} {time.perf_counter() - begin:6.1f}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
