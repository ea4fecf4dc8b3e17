"""The majority-class histogram and its chance level, against exact enumeration."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import comb, factorial

import numpy as np
import pytest

from steelyard.observations import Index, Labels
from steelyard.reliability.bootstrap import Bootstrap
from steelyard.reliability.majority import largest_class_chance, majority, majority_histogram


def splits(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in splits(total - first, parts - 1):
            yield (first, *rest)


def exact_chance(answers: int, classes: int, size: int) -> Fraction:
    """P(largest class ≤ size), by listing every split of the answers."""
    ways = 0
    for split in splits(answers, classes):
        if max(split) <= size:
            count = factorial(answers)
            for part in split:
                count //= factorial(part)
            ways += count
    return Fraction(ways, classes**answers)


def labels_of(rows: list[list[int]], classes: int) -> Labels:
    item = np.repeat(np.arange(len(rows)), [len(row) for row in rows]).astype(np.int32)
    return Labels(
        items=Index(f"i{i}" for i in range(len(rows))),
        classes=Index(f"c{c}" for c in range(classes)),
        item=item,
        label=np.array([label for row in rows for label in row], np.int32),
    )


@pytest.mark.parametrize(("answers", "classes"), [(1, 3), (5, 2), (7, 4), (16, 3), (10, 1)])
def test_chance_equals_exact_enumeration(answers: int, classes: int) -> None:
    chance = largest_class_chance(answers, classes)
    for size in range(answers + 1):
        assert chance[size] == pytest.approx(float(exact_chance(answers, classes, size)), abs=1e-12)


def test_nine_of_sixteen_on_three_classes_happen_by_chance_in_15_percent() -> None:
    # At most one class can hold nine of sixteen, so three times the binomial tail.
    tail = 3 * sum(comb(16, k) * 2 ** (16 - k) for k in range(9, 17)) / 3**16
    assert 1 - largest_class_chance(16, 3)[8] == pytest.approx(tail, abs=1e-12)
    assert tail == pytest.approx(0.15, abs=0.005)


def test_chance_of_many_answers_neither_overflows_nor_leaves_the_unit_range() -> None:
    chance = largest_class_chance(400, 3)
    assert np.isfinite(chance).all()
    assert (np.diff(chance) >= -1e-12).all()
    assert chance[-1] == pytest.approx(1.0, abs=1e-9)


def test_histogram_counts_items_by_their_largest_class() -> None:
    labels = labels_of([[0, 0, 0], [0, 0, 1], [1, 1, 2], [0, 1, 2], [1, 1]], 3)
    histogram = majority_histogram(labels)
    assert histogram["answers"].to_list() == [3, 3, 3]
    assert histogram["size"].to_list() == [1, 2, 3]
    assert histogram["items"].to_list() == [1, 2, 1]
    assert histogram["at_least"].to_list() == [1.0, 0.75, 0.25]
    assert histogram["chance"].to_list() == pytest.approx([6 / 27, 18 / 27, 3 / 27])
    assert histogram["chance_at_least"].to_list() == pytest.approx([1, 21 / 27, 3 / 27])
    assert (histogram["lower"] <= histogram["share"]).all()
    assert (histogram["share"] <= histogram["upper"]).all()


def test_absolute_majority_takes_items_of_every_size_and_says_the_chance() -> None:
    labels = labels_of([[0, 0, 0], [0, 0, 1], [0, 1, 2], [1, 1], [0, 1], [2]], 3)
    figure = majority(labels, Bootstrap())
    assert figure.value == pytest.approx(3 / 5)
    # Three answers: 21/27 by chance, two answers: 1/3.
    assert f"by chance {(3 * 21 / 27 + 2 / 3) / 5:.3f}" in figure.note


def test_labels_with_one_answer_each_have_no_majority() -> None:
    labels = labels_of([[0], [1]], 2)
    assert majority(labels, Bootstrap()).value is None
    assert majority_histogram(labels).is_empty()
