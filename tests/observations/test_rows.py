"""Rows of observations: subsets, relabelled items, and the pairs and preferences they state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steelyard.errors import DataError
from steelyard.observations import UNKNOWN, Choices, Comparisons, Index, Mixed, Observations, Rankings
from tests.contracts.degenerate import CASES

EVERY = [(kind, case) for kind, cases in CASES.items() for case in cases]


def content(observations: Any) -> list[Any]:
    """Return what every observation says, by names."""
    if isinstance(observations, Mixed):
        return [row for part in observations.parts for row in content(part)]
    name = (*observations.items.ids, None)
    rows: list[Any] = []
    for row in range(len(observations)):
        if isinstance(observations, Rankings):
            span = slice(observations.start[row], observations.start[row + 1])
            fields: Any = [
                (name[i], int(r)) for i, r in zip(observations.item[span], observations.rank[span], strict=True)
            ]
        elif isinstance(observations, Choices):
            fields = [
                [name[i] for i in observations.shown[row]],
                name[observations.best[row]],
                name[observations.worst[row]],
            ]
        elif isinstance(observations, Comparisons):
            fields = [name[observations.left[row]], name[observations.right[row]], int(observations.outcome[row])]
        else:
            fields = [name[observations.item[row]], observations.answer_at(row)]
        rows.append((fields, int(observations.annotator[row])))
    return rows


@pytest.mark.parametrize(("kind", "case"), EVERY, ids=str)
def test_a_subset_holds_the_chosen_rows_as_they_were(kind: str, case: str):
    observations = CASES[kind][case]
    mask = np.arange(len(observations)) % 3 == 0
    chosen = observations.subset(mask)
    whole = content(observations)
    assert content(chosen) == [row for row, keep in zip(whole, mask, strict=True) if keep]
    if kind != "mixed":
        order = np.flatnonzero(mask)[::-1]
        assert content(observations.subset(order)) == [whole[row] for row in order]


@pytest.mark.parametrize(("kind", "case"), EVERY, ids=str)
def test_relabelled_items_are_the_same_items(kind: str, case: str):
    observations = CASES[kind][case]
    n = len(observations.items)
    items = Index(reversed(observations.items.ids))
    moved = observations.relabel(items, np.array([*reversed(range(n)), UNKNOWN], np.int32))
    assert content(moved) == content(observations)


@pytest.mark.parametrize(("kind", "case"), EVERY, ids=str)
def test_incidence_lists_every_item_of_every_row(kind: str, case: str):
    observations = CASES[kind][case]
    item, row = observations.incidence()
    assert len(item) == len(row)
    assert set(row.tolist()) == set(range(len(observations)))
    for number in range(len(observations)):
        alone = observations.subset(np.arange(len(observations)) == number)
        assert sorted(item[row == number].tolist()) == sorted(alone.incidence()[0].tolist())


def test_preferences_of_each_kind():
    def triples(observations: Observations) -> set[tuple[str, int, float]]:
        item, row, value = observations.preferences()
        return {(observations.items[int(i)], int(r), float(v)) for i, r, v in zip(item, row, value, strict=True)}

    items = Index("abc")
    comparison = Comparisons(
        items=items,
        left=np.array([0, 1], np.int32),
        right=np.array([1, 2], np.int32),
        outcome=np.array([1, 0], np.int8),
    )
    assert triples(comparison) == {("a", 0, 1.0), ("b", 0, -1.0), ("b", 1, 0.0), ("c", 1, 0.0)}
    choice = Choices(
        items=items,
        shown=np.array([[2, 0, 1]], np.int32),
        best=np.array([0], np.int32),
        worst=np.array([2], np.int32),
    )
    assert triples(choice) == {("a", 0, 1.0), ("b", 0, 0.0), ("c", 0, -1.0)}
    ranking = Rankings(
        items=items,
        start=np.array([0, 1, 3]),
        item=np.array([0, 1, 2], np.int32),
        rank=np.array([1, 1, 2], np.int32),
    )
    assert triples(ranking) == {("b", 1, 1.0), ("c", 1, -1.0)}


def test_ratings_have_no_comparisons():
    ratings = CASES["ratings"]["one judgment"]
    assert not ratings.has_comparisons
    with pytest.raises(DataError, match="ratings are not comparisons or rankings"):
        ratings.to_comparisons()
    with pytest.raises(DataError, match="ratings contain no preferences"):
        ratings.preferences()
