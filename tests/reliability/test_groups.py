"""Agreement within and between two groups of annotators."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.observations import Comparisons, Index, Ratings
from steelyard.reliability.groups import group_agreement


def ratings(matrix, names):
    """Ratings from a table with one row per annotator; NaN is no answer."""
    annotator, item = np.nonzero(~np.isnan(matrix))
    return Ratings(
        items=Index([f"i{n}" for n in range(matrix.shape[1])]),
        annotators=Index(names),
        tasks=Index(),
        annotator=annotator.astype(np.int32),
        task=np.full(len(item), -1, np.int32),
        item=item.astype(np.int32),
        value=matrix[annotator, item],
        scale=(0, 100),
    )


def test_complete_tables_give_the_correlations_of_textbooks():
    rng = np.random.default_rng(0)
    truth = rng.normal(40, 5, 300)
    people = truth + rng.normal(0, 5, (2, 300))
    model = truth + rng.normal(20, 8, (1, 300))
    result = group_agreement(ratings(people, ["a", "b"]), ratings(model, ["m"]))
    a, b = people - people.mean(axis=1, keepdims=True)
    assert result.first.value == pytest.approx(2 * (a @ b) / (a @ a + b @ b))
    c = model[0] - model[0].mean()
    both = ((a + b) @ c) / np.sqrt((a @ a + b @ b) * 2 * (c @ c))
    assert result.between.value == pytest.approx(both)
    assert result.second.value is None
    assert result.first.lower < result.first.value < result.first.upper


def comparisons(rows, names):
    left, right, outcome, who = (np.array(column) for column in zip(*rows, strict=True))
    return Comparisons(
        items=Index(["x", "y", "z"]),
        annotators=Index(names),
        tasks=Index(),
        annotator=who.astype(np.int32),
        task=np.full(len(rows), -1, np.int32),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        outcome=outcome.astype(np.int8),
    )


def test_the_order_on_the_screen_does_not_matter_and_two_answers_count_half_each():
    people = comparisons([(0, 1, 1, 0), (1, 0, -1, 1), (1, 2, 1, 0), (1, 2, -1, 1)], ["a", "b"])
    # The model is asked in both orders: x beats y both times, y and z are decided by their position.
    model = comparisons([(0, 1, 1, 0), (1, 0, -1, 0), (1, 2, 1, 0), (2, 1, 1, 0)], ["m"])
    result = group_agreement(people, model)
    assert result.first.value == pytest.approx(0.5)
    assert result.between.value == pytest.approx((2 + 1) / 4)
