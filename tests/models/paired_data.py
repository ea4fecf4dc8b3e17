"""Small simulated data for the tests of the paired, ranked and chosen."""

from __future__ import annotations

import numpy as np

from steelyard.observations import Choices, Comparisons, Index, Rankings


def ids(n):
    return Index([f"i{code:03d}" for code in range(n)])


def comparisons(n=10, rows=500, seed=0, ties=0.0, annotators=0, sd=1.0):
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, sd, n)
    left = rng.integers(0, n, rows).astype(np.int32)
    right = ((left + rng.integers(1, n, rows)) % n).astype(np.int32)
    gap = theta[left] - theta[right] + rng.logistic(size=rows)
    outcome = np.where(np.abs(gap) < ties, 0, np.sign(gap)).astype(np.int8)
    people = {}
    if annotators:
        people = {
            "annotators": Index([f"w{code}" for code in range(annotators)]),
            "annotator": rng.integers(0, annotators, rows).astype(np.int32),
        }
    return Comparisons(items=ids(n), left=left, right=right, outcome=outcome, **people)


def tuples(n, rows, size, rng):
    return rng.random((rows, n)).argsort(axis=1)[:, :size].astype(np.int32)


def choices(n=10, rows=300, size=4, seed=0, sd=0.7):
    """Best and worst by the maxdiff model itself."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, sd, n)
    tuple_items = tuples(n, rows, size, rng)
    pair = np.array([(i, j) for i in range(size) for j in range(size) if i != j])
    utility = theta[tuple_items][:, pair[:, 0]] - theta[tuple_items][:, pair[:, 1]]
    picked = pair[(utility + rng.gumbel(size=utility.shape)).argmax(axis=1)]
    row = np.arange(rows)
    return Choices(
        items=ids(n), shown=tuple_items, best=tuple_items[row, picked[:, 0]], worst=tuple_items[row, picked[:, 1]]
    )


def rankings(n=10, rows=200, size=5, seed=0, sd=1.0, tiers=None):
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, sd, n)
    tuple_items = tuples(n, rows, size, rng)
    place = (-(theta[tuple_items] + rng.gumbel(size=tuple_items.shape))).argsort(axis=1).argsort(axis=1) + 1
    rank = place if tiers is None else np.minimum(place, tiers)
    return Rankings(
        items=ids(n),
        start=np.arange(0, rows * size + 1, size),
        item=tuple_items.ravel(),
        rank=rank.astype(np.int32).ravel(),
    )


def by_item(fit, column="score"):
    return dict(zip(fit.scores["item"], fit.scores[column], strict=True))
