"""Time Bradley–Terry with intervals beside evalica, choix and an L-BFGS bootstrap, in one run.

Every side runs on one BLAS thread. Compilation is timed apart. The peers do less: none of them gives intervals.
Run: python benchmarks/bench_bradley_terry.py
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import optimize, special

from steelyard.errors import SteelyardWarning
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.observations import Comparisons, FloatArray, Index


def simulate(n: int, rows: int, seed: int = 0) -> tuple[FloatArray, Comparisons]:
    """Draw scores from N(0, 1) and compare random pairs."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n)
    left = rng.integers(0, n, rows, np.int32)
    right = (left + rng.integers(1, n, rows, np.int32)) % n
    won = rng.random(rows, np.float32) < 1 / (1 + np.exp((theta[right] - theta[left]).astype(np.float32)))
    outcome = np.where(won, 1, -1).astype(np.int8)
    return theta, Comparisons(items=Index(f"i{code}" for code in range(n)), left=left, right=right, outcome=outcome)


def best_of(times: int, run: Callable[[], object]) -> float:
    """Return the shortest of several runs, in seconds."""
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def ours(given: Comparisons, model: BradleyTerry) -> object:
    """Fit from integer arrays: the checks of the arrays count, too."""
    again = Comparisons(items=given.items, left=given.left, right=given.right, outcome=given.outcome)
    return model.fit(again)


def report(job: str, mine: float, peers: dict[str, float], goal: str) -> None:
    """Print one job: seconds, and the ratio to each peer."""
    print(f"{job:34} steelyard {mine:8.3f} s   goal: {goal}")
    for name, seconds in peers.items():
        print(f"{'':34} {name:22} {seconds:8.3f} s   {seconds / mine:7.1f}×", flush=True)


def evalica_seconds(given: Comparisons) -> dict[str, float]:
    """Time evalica's Bradley–Terry on the same integer codes."""
    try:
        import evalica
    except ImportError:
        return {}
    winners = np.where(given.outcome > 0, evalica.Winner.X, evalica.Winner.Y).tolist()
    xs, ys = given.left.tolist(), given.right.tolist()
    x_codes, y_codes, index = evalica.indexing(xs, ys)
    run = lambda: evalica.bradley_terry(x_codes, y_codes, winners, index=index)  # noqa: E731
    return {"evalica": best_of(1 if len(given) > 2_000_000 else 3, run)}


def choix_seconds(given: Comparisons) -> dict[str, float]:
    """Time choix's dense solver from the same arrays, and alone with its matrix of wins made beforehand."""
    try:
        import choix
    except ImportError:
        return {}
    n = len(given.items)

    def wins() -> FloatArray:
        winner = np.where(given.outcome > 0, given.left, given.right).astype(np.int64)
        loser = np.where(given.outcome > 0, given.right, given.left)
        return np.bincount(winner * n + loser, minlength=n * n).reshape(n, n).astype(np.float64)

    ready = wins()
    return {
        "choix dense, from arrays": best_of(5, lambda: choix.ilsr_pairwise_dense(wins())),
        "choix dense, solver only": best_of(5, lambda: choix.ilsr_pairwise_dense(ready)),
    }


def lbfgs_bootstrap_seconds(given: Comparisons, rounds: int = 100) -> dict[str, float]:
    """Time the usual leaderboard bootstrap: multinomial counts of distinct outcomes, each fitted by L-BFGS from 0.

    This is FastChat's method, not its code: a stand-in for want of the package, single-threaded.
    """
    n = len(given.items)
    winner = np.where(given.outcome > 0, given.left, given.right).astype(np.int64)
    loser = np.where(given.outcome > 0, given.right, given.left)
    rng = np.random.default_rng(0)

    def run() -> None:
        cell, count = np.unique(winner * n + loser, return_counts=True)
        high, low = np.divmod(cell, n)

        def loss(theta: FloatArray, weight: FloatArray) -> tuple[float, FloatArray]:
            d = theta[high] - theta[low]
            push = weight * special.expit(-d)
            slope = np.bincount(low, push, n) - np.bincount(high, push, n)
            return float(-(weight * special.log_expit(d)).sum()), np.asarray(slope, np.float64)

        for drawn in rng.multinomial(count.sum(), count / count.sum(), size=10):
            weight = drawn / count.sum()
            optimize.minimize(loss, np.zeros(n), (weight,), "L-BFGS-B", jac=True, options={"gtol": 1e-6})

    # Ten rounds, scaled to all.
    return {"L-BFGS bootstrap": best_of(1, run) * rounds / 10}


def growth_megabytes(run: Callable[[], object]) -> float:
    """Return how far the resident size rises above its start while something runs, looked at every 2 ms."""

    def resident() -> float:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    before = peak = resident()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    run()
    done.set()
    watcher.join()
    return peak - before


def main() -> None:
    """Print every job of the issue."""
    warnings.simplefilter("ignore", SteelyardWarning)
    begin = time.perf_counter()
    for n, rows in ((20, 2000), (2100, 20_000)):
        ours(simulate(n, rows)[1], BradleyTerry())
    BradleyTerry(interval="bootstrap", draws=20).fit(simulate(20, 2000)[1])
    print(f"compilation, or its cache: {time.perf_counter() - begin:.1f} s")

    _, given = simulate(200, 1_000_000)
    mine = best_of(7, lambda: ours(given, BradleyTerry()))
    report("1M × 200, with intervals", mine, evalica_seconds(given) | choix_seconds(given), "15× evalica, 1× choix")
    mine = best_of(3, lambda: ours(given, BradleyTerry(interval="bootstrap", draws=100)))
    report("100 bootstrap rounds, 1M × 200", mine, lbfgs_bootstrap_seconds(given), "under 0.47 s (FastChat 9.4 s / 20)")

    theta, given = simulate(10_000, 100_000)
    mine = best_of(5, lambda: ours(given, BradleyTerry(prior_sd=1.0)))
    table = BradleyTerry(prior_sd=1.0).fit(given).scores
    code = np.array([int(name[1:]) for name in table["item"]])
    rmse = float(np.sqrt(np.mean((table["score"].to_numpy() - (theta - theta.mean())[code]) ** 2)))
    report("100k × 10k items, N(0, 1) prior", mine, {}, "under 0.3 s, RMSE under 0.5")
    print(f"{'':34} RMSE {rmse:.3f}, all finite: {bool(table['upper'].is_finite().all())}")

    _, given = simulate(1000, 10_000_000)
    grown = growth_megabytes(lambda: ours(given, BradleyTerry()))
    mine = best_of(3, lambda: ours(given, BradleyTerry()))
    print(f"10M × 1000: memory rose by {grown:.0f} MB above the input")
    report("10M × 1000, with intervals", mine, evalica_seconds(given), "10× evalica, under 500 MB")


if __name__ == "__main__":
    main()
