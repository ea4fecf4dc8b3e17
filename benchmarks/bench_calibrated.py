"""Time the calibrated scale: compilation, fits of 2,000 and a million judgments, and the online state.

Run: python -m benchmarks calibrated, or python benchmarks/bench_calibrated.py [rows]. Wall-clock and processor time are
both printed: on a busy machine only the latter is meaningful. Fits print whether the chains converged.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from tempfile import TemporaryDirectory

import numpy as np

from steelyard.errors import SteelyardWarning
from steelyard.models.calibrated.online import CalibratedState
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.models.fit import Fit
from steelyard.observations import Comparisons, Index, Observations, Ratings

ROWS, ITEMS, PEOPLE = 1_000_000, 50_000, 5_000


def ids(kind: str, n: int) -> Index:
    """Name n of a kind."""
    return Index([f"{kind}{code}" for code in range(n)])


def ratings(rows: int, items: int, people: int, rng: np.random.Generator) -> Ratings:
    """Draw sliders of a crowd that differs in bias, use of the scale and noise."""
    x, bias, use = rng.normal(0.5, 0.25, items), rng.normal(0, 0.1, people), rng.normal(1, 0.25, people)
    item = rng.integers(items, size=rows).astype(np.int32)
    who = rng.integers(people, size=rows).astype(np.int32)
    answers = 0.5 + bias[who] + use[who] * (x[item] - 0.5) + 0.2 * rng.standard_normal(rows)
    value = np.round(100 * np.clip(answers, 0, 1))
    return Ratings(
        items=ids("i", items), annotators=ids("w", people), annotator=who, item=item, value=value, scale=(0.0, 100.0)
    )


def comparisons(rows: int, items: int, people: int, rng: np.random.Generator) -> Comparisons:
    """Draw comparisons of random pairs."""
    x = rng.normal(0, 1.5, items)
    left = rng.integers(items, size=rows).astype(np.int32)
    right = ((left + rng.integers(1, items, size=rows)) % items).astype(np.int32)
    who = rng.integers(people, size=rows).astype(np.int32)
    outcome = np.where(x[left] - x[right] + rng.standard_normal(rows) > 0, 1, -1).astype(np.int8)
    return Comparisons(
        items=ids("i", items), annotators=ids("w", people), annotator=who, left=left, right=right, outcome=outcome
    )


def timed(what: str, run: Callable[[], object], times: int = 1) -> None:
    """Describe how long something takes, by the clock and by the processor, per time."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(times):
        run()
    wall, cpu = (time.perf_counter() - wall) / times, (time.process_time() - cpu) / times
    print(f"{what:62s} {1000 * wall:12.3f} ms, processor {1000 * cpu:12.3f} ms", flush=True)


def fit(observations: Observations) -> Fit:
    """Fit, without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SteelyardWarning)
        return CalibratedScale().fit(observations)  # type: ignore[arg-type]


def timed_fit(what: str, observations: Observations, times: int = 1) -> None:
    """Time a fit, and print its convergence and the differences between annotators that it models."""
    fits: list[Fit] = []
    timed(what, lambda: fits.append(fit(observations)), times)
    notes = [note for note in fits[-1].notes if note.startswith(("chains", "annotators"))]
    print(f"    {'converged' if fits[-1].converged else 'NOT CONVERGED'}; {'; '.join(notes)}", flush=True)


def compile_kernels() -> None:
    """Compile all kernels in a new process with an empty cache."""
    with TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        code = "from scripts.compile_kernels import compile_calibrated_scale; compile_calibrated_scale()"
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def online(rng: np.random.Generator) -> None:
    """Time the online state at 10,000 items with 50,000 comparisons."""
    items, people, rows = 10_000, 200, 50_000
    state = CalibratedState(items, people)
    observations = comparisons(rows, items, people, rng)
    state.learn(observations.annotator, observations.left, observations.right, observations.outcome)
    timed("online: one comparison", lambda: state.learn(3, [5], [7], [1]), 1000)
    state.learn_ratings(3, [5], [0.4])
    timed("online: one rating", lambda: state.learn_ratings(3, [5], [0.4]), 1000)
    timed(f"online: refit of {rows:,} comparisons, ten sweeps", lambda: state.refit(10, 0.0))
    pairs = rng.integers(items, size=(2, 10_000))
    timed("online: odds of 10,000 pairs", lambda: state.pair_odds(pairs[0], pairs[1], 3), 10)


def main() -> None:
    """Time everything."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    rng = np.random.default_rng(0)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    timed("start of Python and compilation of all kernels", compile_kernels)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"    processor time of that process {after.ru_utime - before.ru_utime:.1f} s", flush=True)
    for make in (ratings, comparisons):
        observations = make(2000, 100, 20, rng)
        fit(observations)
        timed_fit(f"batch: {make.__name__}, 2,000 judgments, 100 items, 20 annotators", observations, 5)
    size = f"{rows:,} judgments, {ITEMS:,} items, {PEOPLE:,} annotators"
    for make in (ratings, comparisons):
        observations = make(rows, ITEMS, PEOPLE, rng)
        timed_fit(f"batch: {make.__name__}, {size}", observations)
    online(rng)


if __name__ == "__main__":
    main()
