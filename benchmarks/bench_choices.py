"""Time best–worst counting beside bwsample, and maxdiff and Plackett–Luce by themselves.

Run: python benchmarks/bench_choices.py
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
import warnings
from collections.abc import Callable

import numpy as np

from steelyard.errors import SteelyardWarning
from steelyard.models.choices.counting import Counting
from steelyard.models.choices.maxdiff import MaxDiff
from steelyard.models.comparisons.plackett_luce import PlackettLuce
from steelyard.observations import Choices, Index, Rankings

PEER_TUPLES = 2000


def simulate(n: int, rows: int) -> tuple[Choices, Rankings]:
    """Show random tuples of four; order each by noisy scores, which gives a ranking and its best and worst."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=n)
    tuples = rng.integers(0, n, (rows, 4), np.int32)
    while (again := np.flatnonzero((np.diff(np.sort(tuples, axis=1), axis=1) == 0).any(axis=1))).size:
        tuples[again] = rng.integers(0, n, (len(again), 4), np.int32)
    order = (-(theta[tuples] + rng.gumbel(size=tuples.shape))).argsort(axis=1)
    row = np.arange(rows)
    items = Index(f"i{code}" for code in range(n))
    choices = Choices(items=items, shown=tuples, best=tuples[row, order[:, 0]], worst=tuples[row, order[:, 3]])
    rank = (order.argsort(axis=1) + 1).astype(np.int32)
    return choices, Rankings(items=items, start=np.arange(0, 4 * rows + 1, 4), item=tuples.ravel(), rank=rank.ravel())


def best_of(times: int, run: Callable[[], object]) -> float:
    """Return the shortest of several runs, in seconds."""
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def bwsample_seconds(choices: Choices) -> float | None:
    """Time bwsample's counting and scoring of the first tuples."""
    try:
        import bwsample
    except ImportError:
        return None
    evaluations = []
    for shown, best, worst in zip(choices.shown, choices.best, choices.worst, strict=True):
        states = [1 if item == best else 2 if item == worst else 0 for item in shown]
        evaluations.append((states, [choices.items[int(item)] for item in shown]))

    def run() -> None:
        agg, *_ = bwsample.count(evaluations)
        bwsample.rank(agg, method="ratio", adjust="quantile")

    return best_of(1, run)


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore", SteelyardWarning)
    small, small_rankings = simulate(50, 500)
    begin = time.perf_counter()
    MaxDiff().fit(small)
    PlackettLuce().fit(small_rankings)
    print(f"compilation, or its cache: {time.perf_counter() - begin:.1f} s")
    choices, rankings = simulate(1000, 100_000)
    mine = best_of(3, lambda: Counting().fit(choices))
    print(f"counting, 100k tuples × 1000 items, with 400 resamples: {mine:.3f} s (goal: 100× bwsample's 77 s)")
    few = Choices(
        items=choices.items,
        shown=choices.shown[:PEER_TUPLES],
        best=choices.best[:PEER_TUPLES],
        worst=choices.worst[:PEER_TUPLES],
    )
    peer = bwsample_seconds(few)
    if peer is None:
        print("bwsample is not installed; no peer.")
    else:
        ours = best_of(3, lambda: Counting().fit(few))
        print(f"counting, {PEER_TUPLES} tuples: bwsample {peer:.3f} s, steelyard {ours:.3f} s, {peer / ours:.0f}×")
    print(f"maxdiff, 100k tuples × 1000 items, with intervals: {best_of(2, lambda: MaxDiff().fit(choices)):.3f} s")
    print(f"plackett_luce, 100k rankings of 4 × 1000 items: {best_of(2, lambda: PlackettLuce().fit(rankings)):.3f} s")


if __name__ == "__main__":
    main()
