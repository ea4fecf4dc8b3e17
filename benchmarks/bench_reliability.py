"""Time reliability side by side with the peers: α with its interval, split-half, and the whole of agreement().

Run: python benchmarks/bench_reliability.py
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module

PINNED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
os.environ |= dict.fromkeys(PINNED, "1")  # the same for all sides, and before numpy is imported

import numpy as np  # noqa: E402

from steelyard.models.ratings.mean import Mean  # noqa: E402
from steelyard.observations import Choices, Comparisons, Index, Ratings  # noqa: E402
from steelyard.reliability import agreement, krippendorff_alpha, scale_separation, split_half  # noqa: E402

ITEMS, PER_ITEM, VALUES = 100_000, 10, 101


def best_of(times: int, run: Callable[[], object]) -> float:
    """Return the least processor time of several runs, in seconds: others may be using this machine."""
    seconds = []
    for _ in range(times):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return min(seconds)


def row(job: str, ours: float, peer: str = "", theirs: float | None = None) -> None:
    """Print one line of the table."""
    ratio = "" if theirs is None else f"{theirs / ours:8.1f}×"
    print(f"{job:58} {ours:9.3f} s   {peer:34} {'' if theirs is None else f'{theirs:9.3f} s'} {ratio}", flush=True)


def index(count: int, letter: str) -> Index:
    """Name so many things."""
    return Index(f"{letter}{number}" for number in range(count))


def alpha(rng: np.random.Generator) -> None:
    """Compare α of a million ratings with evalica's, from arrays and from a data frame."""
    unit = np.repeat(np.arange(ITEMS), PER_ITEM)
    value = np.clip(np.rint(50 + 20 * rng.normal(size=ITEMS)[unit] + 20 * rng.normal(size=len(unit))), 0, VALUES - 1)

    def ours(metric: str, replicates: int) -> Callable[[], object]:
        return lambda: krippendorff_alpha(unit, value, metric, replicates=replicates)

    try:
        evalica, pd = (import_module(name) for name in ("evalica", "pandas"))
    except ImportError:
        print("evalica is not installed; no peer for α.")
        for metric in ("interval", "nominal", "ordinal"):
            row(f"α {metric}, 1M ratings, with interval (200)", best_of(3, ours(metric, 200)))
        return
    frame = pd.DataFrame(value.reshape(ITEMS, PER_ITEM).T)
    for metric in ("interval", "nominal", "ordinal"):
        peer = partial(evalica.alpha, frame, distance=metric)
        resampled = partial(evalica.alpha_bootstrap, frame, metric, n_resamples=20, random_state=0)
        bare = best_of(3, peer)
        row(f"α {metric}, 1M ratings", best_of(3, ours(metric, 0)), "evalica.alpha (no interval)", bare)
        job, whole = f"α {metric}, 1M ratings, with interval (200)", best_of(3, ours(metric, 200))
        row(job, whole, "evalica.alpha (no interval)", bare)
        row(job, whole, "evalica.alpha_bootstrap (20)", best_of(1, resampled))


def best_worst(rng: np.random.Generator, judgments: int, tuples: int, items: int) -> Choices:
    """Simulate best–worst answers."""
    quality = rng.normal(size=items)
    sets = rng.random((tuples, items)).argpartition(4, axis=1)[:, :4].astype(np.int32)
    tuples_shown = np.repeat(sets, judgments // tuples, axis=0)
    felt = quality[tuples_shown] + rng.gumbel(size=tuples_shown.shape)
    rows = np.arange(len(tuples_shown))
    return Choices(
        items=index(items, "i"),
        shown=tuples_shown,
        best=tuples_shown[rows, felt.argmax(axis=1)],
        worst=tuples_shown[rows, felt.argmin(axis=1)],
    )


def halves(rng: np.random.Generator) -> None:
    """Time 100 trials of split-half reliability, quick and through a model."""
    choices = best_worst(rng, 64_000, 8_000, 3_200)
    row("split-half, 100 trials, 64k best–worst, with intervals", best_of(3, lambda: split_half(choices)))
    item = np.repeat(np.arange(2_000), 10).astype(np.int32)
    value = rng.integers(0, 101, len(item)).astype(float)
    ratings = Ratings(items=index(2_000, "i"), item=item, value=value, scale=(0.0, 100.0))
    row("split-half, 100 trials, 20k ratings", best_of(3, lambda: split_half(ratings)))
    repeated = Ratings(
        items=ratings.items,
        annotators=index(5, "w"),
        annotator=(np.arange(len(item)) % 5).astype(np.int32),
        item=item,
        value=value,
        scale=ratings.scale,
    )
    row(
        "  the same, 10 trials through Mean().fit",
        best_of(1, lambda: split_half(repeated, model=Mean(draws=20), trials=10)),
    )


def whole(rng: np.random.Generator) -> None:
    """Time agreement() on a million judgments of three kinds, and SSR."""
    million = 1_000_000
    item = np.repeat(np.arange(ITEMS), PER_ITEM).astype(np.int32)
    person = ((np.tile(np.arange(PER_ITEM), ITEMS) * 97 + item) % 1000).astype(np.int32)
    value = np.clip(np.rint(50 + 20 * rng.normal(size=ITEMS)[item] + 20 * rng.normal(size=million)), 0, 100)
    ratings = Ratings(
        items=index(ITEMS, "i"),
        annotators=index(1000, "w"),
        annotator=person,
        item=item,
        value=value,
        scale=(0.0, 100.0),
    )
    row("agreement(), 1M ratings of 100k items", best_of(1, lambda: agreement(ratings)))
    left = rng.integers(0, 200, million).astype(np.int32)
    right = ((left + rng.integers(1, 200, million)) % 200).astype(np.int32)
    comparisons = Comparisons(
        items=index(200, "i"),
        annotators=index(1000, "w"),
        annotator=rng.integers(0, 1000, million).astype(np.int32),
        left=left,
        right=right,
        outcome=rng.choice(np.array([-1, 1], np.int8), million),
    )
    row("agreement(), 1M comparisons of 200 items", best_of(1, lambda: agreement(comparisons)))
    choices = best_worst(rng, million, 100_000, 500)
    row("agreement(), 1M best–worst choices", best_of(1, lambda: agreement(choices)))
    few = Comparisons(
        items=index(2_000, "i"),
        annotators=index(40, "w"),
        annotator=rng.integers(0, 40, 26_000).astype(np.int32),
        left=(left[:26_000] + 200 * (np.arange(26_000) % 10)).astype(np.int32),
        right=((left[:26_000] + 200 * (np.arange(26_000) % 10) + right[:26_000] + 1) % 2_000).astype(np.int32),
        outcome=comparisons.outcome[:26_000],
    )
    keep = few.left != few.right
    few = Comparisons(
        items=few.items,
        annotators=few.annotators,
        annotator=few.annotator[keep],
        left=few.left[keep],
        right=few.right[keep],
        outcome=few.outcome[keep],
    )
    row("scale separation, 26k decisions, 2,000 items, 40 judges", best_of(1, lambda: scale_separation(few)))


def main() -> None:
    """Print the table; the first call compiles or loads the kernels and is timed apart."""
    rng = np.random.default_rng(0)
    small = best_worst(rng, 80, 10, 20)
    print(f"first call (kernels loaded or compiled): {best_of(1, lambda: split_half(small, trials=1)):.2f} s")
    alpha(rng)
    halves(rng)
    whole(rng)


if __name__ == "__main__":
    main()
