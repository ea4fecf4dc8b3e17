"""Time reading a million pairwise judgments, against `polars.read_csv` alone on the same file.

Run: python benchmarks/bench_read.py [judgments]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from steelyard.formats import read_judgments

ITEMS = 200
ANNOTATORS = 500
RUNS = 5
GOAL = 3.0


def write_comparisons(path: Path, judgments: int, winner: str) -> None:
    """Write `annotator,left,right,winner`, the winner as an item's id or as a side."""
    rng = np.random.default_rng(2010)
    left = rng.integers(0, ITEMS, judgments)
    right = (left + rng.integers(1, ITEMS, judgments)) % ITEMS
    left_won = rng.random(judgments) < 0.5
    items = np.array([f"item-{number:03d}" for number in range(ITEMS)])
    annotators = np.array([f"annotator-{number:03d}" for number in range(ANNOTATORS)])
    won = {"id": np.where(left_won, items[left], items[right]), "side": np.where(left_won, "left", "right")}
    pl.DataFrame(
        {
            "annotator": annotators[rng.integers(0, ANNOTATORS, judgments)],
            "left": items[left],
            "right": items[right],
            "winner": won[winner],
        }
    ).write_csv(path)


def seconds(work: Callable[[], object]) -> float:
    """Time one run."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def python_peak(work: Callable[[], object]) -> float:
    """Return the peak of Python and numpy allocations in MB; polars' own are not seen."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def main(judgments: int = 1_000_000) -> dict[str, float]:
    """Print the table and return the ratio for each way of writing the winner."""
    ratios = {}
    print(f"{judgments:,} comparisons of {ITEMS} items by {ANNOTATORS} annotators, median of {RUNS}")
    print(f"{'winner as':10} {'file MB':>8} {'read_csv s':>11} {'judgments s':>12} {'ratio':>6} {'numpy MB':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for winner in ("id", "side"):
            path = Path(folder, f"{winner}.csv")
            write_comparisons(path, judgments, winner)
            works = partial(pl.read_csv, path), partial(read_judgments, path)
            pairs = [[seconds(work) for work in works] for _ in range(RUNS)]
            alone, ours = (statistics.median(times) for times in zip(*pairs, strict=True))
            ratios[winner] = ours / alone
            peak = python_peak(works[1])
            size = path.stat().st_size / 1e6
            print(f"{winner:10} {size:8.1f} {alone:11.3f} {ours:12.3f} {ours / alone:6.2f} {peak:9.0f}")
    print(f"goal: ratio at most {GOAL:g}")
    return ratios


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
