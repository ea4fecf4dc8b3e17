"""Small ratings to feed models with, by hand and by hypothesis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from steelyard.observations import FloatArray, Index, Ratings

Row = tuple[str, str, float]


def ratings_of(
    rows: Sequence[Row], *, items: Sequence[str] | None = None, scale: tuple[float, float] = (0.0, 100.0)
) -> Ratings:
    """Build ratings from (annotator, item, value); an empty annotator is unknown."""
    index = Index(items if items is not None else sorted({row[1] for row in rows}))
    people = Index(sorted({row[0] for row in rows} - {""}))
    return Ratings(
        items=index,
        annotators=people,
        annotator=people.codes([row[0] or None for row in rows]),
        item=index.codes([row[1] for row in rows]),
        value=np.array([row[2] for row in rows], np.float64),
        scale=scale,
    )


@st.composite
def some_ratings(draw: st.DrawFn) -> Ratings:
    """Any few ratings on 0–100, with or without annotators; 0, 50 and 100 come often."""
    value = st.one_of(st.sampled_from([0.0, 50.0, 100.0]), st.floats(0, 100))
    row = st.tuples(st.sampled_from("uvwx"), st.sampled_from("abcde"), value)
    rows = draw(st.lists(row, min_size=1, max_size=30))
    if not draw(st.booleans()):
        rows = [("", item, number) for _, item, number in rows]
    return ratings_of(rows, items="abcde")


def reordered(ratings: Ratings, order: Sequence[int]) -> Ratings:
    """The same ratings, in another order."""
    rows = np.asarray(order)
    return Ratings(
        items=ratings.items,
        annotators=ratings.annotators,
        annotator=ratings.annotator[rows],
        item=ratings.item[rows],
        value=ratings.value[rows],
        scale=ratings.scale,
    )


def biased_ratings(rng: np.random.Generator, items: int, per_item: int, annotators: int) -> tuple[FloatArray, Ratings]:
    """Simulate ratings by annotators with biases; return the items' true means too."""
    truth = rng.uniform(30, 70, items)
    bias = rng.normal(0, 6, annotators)
    who = np.array([rng.choice(annotators, per_item, replace=False) for _ in range(items)])
    value = truth[:, None] + bias[who] + rng.normal(0, 8, who.shape)
    return truth, Ratings(
        items=Index(str(i) for i in range(items)),
        annotators=Index(f"w{a}" for a in range(annotators)),
        annotator=who.ravel().astype(np.int32),
        item=np.repeat(np.arange(items, dtype=np.int32), per_item),
        value=value.ravel(),
        scale=(-100.0, 200.0),
    )
