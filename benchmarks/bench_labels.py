"""Time Dawid–Skene and MACE side by side with crowd-kit on the same labels, with as many iterations.

Run: OMP_NUM_THREADS=1 python benchmarks/bench_labels.py
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from steelyard.models.labels.dawid_skene import DawidSkene
from steelyard.models.labels.em import GroupedLabels
from steelyard.models.labels.mace import MACE
from steelyard.observations import Index, Labels

ITEMS, ANNOTATORS, CLASSES, PER_ITEM = 100_000, 1000, 4, 10
MACE_ITEMS, MACE_STEPS = 10_000, 20

T = TypeVar("T")


def simulate(items: int) -> Labels:
    """Draw labels by annotators who are right about seven times in ten, in no particular order."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, CLASSES, items)
    confusion = 0.4 * rng.dirichlet(np.full(CLASSES, 0.7), (ANNOTATORS, CLASSES)) + 0.6 * np.eye(CLASSES)
    item = rng.permutation(np.repeat(np.arange(items), PER_ITEM))
    annotator = rng.integers(0, ANNOTATORS, len(item))
    edges = confusion[annotator, true[item]].cumsum(axis=1)
    label = np.minimum((rng.random(len(item))[:, None] > edges).sum(axis=1), CLASSES - 1)
    return Labels(
        items=Index(map(str, range(items))),
        annotators=Index(map(str, range(ANNOTATORS))),
        classes=Index(map(str, range(CLASSES))),
        item=item.astype(np.int32),
        annotator=annotator.astype(np.int32),
        label=label.astype(np.int32),
    )


def timed(times: int, run: Callable[[], T]) -> tuple[float, T]:
    """Return the shortest of several runs, in seconds, and the last result."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def main() -> None:
    """Print a line for each job: the peer's time, ours, and the ratio."""
    warnings.simplefilter("ignore")
    import pandas as pd
    from crowdkit import aggregation as peers

    labels = simulate(ITEMS)
    frame = pd.DataFrame({"task": labels.item, "worker": labels.annotator, "label": labels.label})
    theirs, peer = timed(2, lambda: peers.DawidSkene(n_iter=100).fit(frame))
    steps = len(peer.loss_history_)
    model = DawidSkene(
        confusion_prior="none", calibrate=False, max_iterations=steps, tolerance=0, smoothing=0, interval="none"
    )
    compile_time, _ = timed(1, lambda: model.fit(simulate(100)))
    print(f"first use, machine code from the cache or compiled: {compile_time:.2f} s")
    print(f"{len(labels):,} labels, {ITEMS:,} items, {ANNOTATORS:,} annotators, {CLASSES} classes, {steps} iterations")
    groups = GroupedLabels.of("", labels, None)
    em, (state, _, _) = timed(3, lambda: model.run(groups))
    whole, _ = timed(3, lambda: model.fit(labels))
    apart = np.abs(peer.probas_.sort_index()[sorted(peer.probas_)].to_numpy() - state.posterior).max()
    print(f"  Dawid–Skene, EM alone           {theirs:6.2f} s  {em:6.3f} s  {theirs / em:6.1f}×")
    print(f"  Dawid–Skene, fit with tables    {theirs:6.2f} s  {whole:6.3f} s  {theirs / whole:6.1f}×")
    print(f"  greatest difference of a probability from the peer's: {apart:.1e}")
    resampled = replace(model, interval="bootstrap", draws=20)
    with_intervals, _ = timed(1, lambda: resampled.fit(labels))
    each = (with_intervals - whole) / resampled.draws
    print(f"  each of the resamples that make the intervals: {each:.3f} s (the peer has none)")
    few = simulate(MACE_ITEMS)
    small = pd.DataFrame({"task": few.item, "worker": few.annotator, "label": few.label})
    theirs, _ = timed(1, lambda: peers.MACE(n_restarts=1, n_iter=MACE_STEPS).fit(small))
    mace = MACE(restarts=1, max_iterations=MACE_STEPS, tolerance=-np.inf, interval="none")
    mace.fit(few)
    ours, _ = timed(3, lambda: mace.fit(few))
    print(f"  MACE, {len(few):,} labels, {MACE_STEPS} steps  {theirs:6.2f} s  {ours:6.3f} s  {theirs / ours:6.1f}×")


if __name__ == "__main__":
    main()
