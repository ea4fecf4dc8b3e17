"""Time Krippendorff's α of a million ratings, with its interval, and the krippendorff package on a small part.

Run: PYTHONPATH=src python benchmarks/bench_alpha.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from steelyard.reliability import krippendorff_alpha

ITEMS, PER_ITEM, VALUES, REPLICATES = 100_000, 10, 101, 200
PEER_ITEMS = 500


def best_of(times: int, run: Callable[[], object]) -> float:
    """Return the shortest of several runs, in seconds."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    """Print one line for each metric."""
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(ITEMS), PER_ITEM)
    annotator = np.tile(np.arange(PER_ITEM), ITEMS) + PER_ITEM * (unit % 50)
    noisy = 50 + 20 * rng.normal(size=ITEMS)[unit] + 20 * rng.normal(size=len(unit))
    value = np.clip(np.rint(noisy), 0, VALUES - 1)
    print(f"{len(unit):,} ratings, {VALUES} values, {REPLICATES} replicates over {ITEMS:,} items")
    for metric in ("interval", "nominal", "ordinal", "ratio"):
        run = partial(krippendorff_alpha, unit, value, metric, annotator=annotator)
        alone = best_of(3, partial(run, replicates=0))
        whole = best_of(3, partial(run, replicates=REPLICATES))
        print(f"  {metric:8}  {alone:.2f} s without, {whole:.2f} s with its interval")
    continuous = best_of(3, lambda: krippendorff_alpha(unit, noisy, annotator=annotator, replicates=REPLICATES))
    print(f"  interval  {continuous:.2f} s with its interval, continuous values")
    try:
        import krippendorff
    except ImportError:
        print("The krippendorff package is not installed; no peer.")
        return
    rows = PEER_ITEMS * PER_ITEM
    table = value[:rows].reshape(PEER_ITEMS, PER_ITEM).T
    peer = best_of(3, lambda: krippendorff.alpha(reliability_data=table, level_of_measurement="interval"))
    ours = best_of(3, lambda: krippendorff_alpha(unit[:rows], value[:rows], replicates=0))
    print(f"{rows:,} ratings, interval, no interval of α: krippendorff {peer:.4f} s, steelyard {ours:.4f} s")


if __name__ == "__main__":
    main()
