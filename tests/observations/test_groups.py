"""Scores by group: an observation of an item is one of its group."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard import Counting, Mean, read_judgments
from steelyard.errors import DataError

SYSTEM = {"a1": "A", "a2": "A", "b1": "B", "b2": "B", "c1": "C"}


def test_ratings_of_items_are_ratings_of_their_groups():
    rows = [("a1", 10.0), ("a2", 30.0), ("b1", 80.0), ("x", 5.0)]
    ratings = read_judgments([{"item": i, "value": v} for i, v in rows], scale=(0, 100)).observations
    grouped, left_out = ratings.by_group(SYSTEM)
    assert left_out == 1
    assert dict(Mean().fit(grouped).scores.select("item", "score").iter_rows()) == {"A": 20.0, "B": 80.0}


def test_a_group_is_not_compared_with_itself():
    rows = [("a1", "b1", "left"), ("a2", "b2", "tie"), ("a1", "a2", "left"), ("c1", "b1", "right")]
    comparisons = read_judgments(
        [dict(zip(("left", "right", "winner"), row, strict=True)) for row in rows]
    ).observations
    grouped, left_out = comparisons.by_group(SYSTEM)
    assert left_out == 1
    assert dict(Counting().fit(grouped).scores.select("item", "score").iter_rows()) == {"A": 0.5, "B": 0.0, "C": -1.0}


def test_choices_and_rankings_keep_rows_whose_groups_differ():
    choices = read_judgments(
        [
            {"item1": "a1", "item2": "b1", "item3": "c1", "best": "a1", "worst": "c1"},
            {"item1": "a1", "item2": "a2", "item3": "c1", "best": "a1", "worst": "c1"},
        ]
    ).observations
    grouped, left_out = choices.by_group(SYSTEM)
    assert (len(grouped), left_out) == (1, 1)
    assert grouped.items.ids == ("A", "B", "C")
    rankings = read_judgments([{"ranking": "a1>b1=c1"}, {"ranking": "a1>b1>b2"}, {"ranking": "b2>a2"}]).observations
    grouped, left_out = rankings.by_group(SYSTEM)
    assert (len(grouped), left_out) == (2, 1)
    assert np.array_equal(grouped.rank, [1, 2, 2, 1, 2])
    assert [grouped.items[int(i)] for i in grouped.item] == ["A", "B", "C", "B", "A"]


def test_items_without_groups_are_a_clear_error():
    ratings = read_judgments([{"item": "x", "value": 1.0}], scale=(0, 1)).observations
    with pytest.raises(DataError, match=r"no item has a group.*column group"):
        ratings.by_group({})
