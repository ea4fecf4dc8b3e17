"""Fleiss' and Cohen's κ against printed examples, scikit-learn and hand counts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from steelyard.observations import Index, Labels
from steelyard.reliability import agreement
from steelyard.reliability.bootstrap import Bootstrap
from steelyard.reliability.kappa import cohen_kappa

# The worked example for Fleiss' kappa on Wikipedia: 10 subjects, 14 raters, 5 categories.
FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


def index(count: int, letter: str) -> Index:
    return Index(f"{letter}{number}" for number in range(count))


def labels_of(item: ArrayLike, label: ArrayLike, annotator: ArrayLike, classes: int) -> Labels:
    what, given, who = (np.asarray(codes, np.int32) for codes in (item, label, annotator))
    return Labels(
        items=index(int(what.max()) + 1, "i"),
        annotators=index(int(who.max()) + 1, "w"),
        classes=index(classes, "c"),
        item=what,
        label=given,
        annotator=who,
    )


def two_annotators(table: list[list[int]]) -> Labels:
    """Labels of two annotators from their contingency table."""
    pairs = [(x, y) for x, row in enumerate(table) for y, count in enumerate(row) for _ in range(count)]
    items = list(range(len(pairs)))
    first, second = zip(*pairs, strict=True)
    return labels_of(items * 2, first + second, [0] * len(pairs) + [1] * len(pairs), len(table))


def test_fleiss_worked_example_gives_the_printed_kappa() -> None:
    item, label, annotator = [], [], []
    for subject, row in enumerate(FLEISS):
        answers = np.repeat(np.arange(5), row)
        item += [subject] * 14
        label += answers.tolist()
        annotator += list(range(14))
    figure = agreement(labels_of(item, label, annotator, 5))["fleiss_kappa"]
    assert figure.value == pytest.approx(0.210, abs=5e-4)
    assert figure.lower is not None
    assert figure.n == 10


def test_cohen_by_hand_on_a_two_by_two_table() -> None:
    # 20, 5, 10, 15 of 50: observed .7, chance .5 × .6 + .5 × .4 = .5, so κ = .4
    figure = cohen_kappa(two_annotators([[20, 5], [10, 15]]), Bootstrap())
    assert figure.value == pytest.approx(0.4, abs=1e-12)


def test_cohens_jackknife_error_is_the_large_sample_error_of_fleiss_cohen_and_everitt() -> None:
    # Their variance (1969) for the table above, term by term.
    p = np.array([[20, 5], [10, 15]]) / 50
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    kappa, chance = 0.4, 0.5
    first = sum(p[i, i] * (1 - (rows[i] + columns[i]) * (1 - kappa)) ** 2 for i in range(2))
    second = (1 - kappa) ** 2 * sum(p[i, j] * (columns[i] + rows[j]) ** 2 for i in range(2) for j in range(2) if i != j)
    error = np.sqrt(first + second - (kappa - chance * (1 - kappa)) ** 2) / (1 - chance) / np.sqrt(50)
    figure = cohen_kappa(two_annotators([[20, 5], [10, 15]]), Bootstrap())
    assert figure.lower is not None
    assert figure.upper is not None
    t_49 = 2.0096
    assert (figure.upper - figure.lower) / (2 * t_49) == pytest.approx(error * np.sqrt(50 / 49), rel=1e-4)


def test_mean_cohen_equals_scikit_learn_over_pairs_sharing_five_items() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 3, 60)
    table = np.where(rng.random((6, 60)) < 0.6, truth, rng.integers(0, 3, (6, 60)))
    present = rng.random((6, 60)) < 0.4
    annotator, item = np.nonzero(present)
    expected = []
    for a, b in combinations(range(6), 2):
        both = present[a] & present[b]
        if both.sum() >= 5:
            expected.append(metrics.cohen_kappa_score(table[a, both], table[b, both]))
    figure = cohen_kappa(labels_of(item, table[annotator, item], annotator, 3), Bootstrap())
    assert figure.value == pytest.approx(np.mean(expected), abs=1e-12)
    assert f"mean of {len(expected)} pairs" in figure.note


def test_fleiss_says_why_it_does_not_fit_uneven_labels_or_repeats() -> None:
    uneven = agreement(labels_of([0, 0, 1, 1, 1], [0, 1, 0, 0, 1], [0, 1, 0, 1, 2], 2))["fleiss_kappa"]
    repeated = agreement(labels_of([0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 1], 2))["fleiss_kappa"]
    assert uneven.value is None
    assert "2 to 3 answers" in uneven.note
    assert repeated.value is None
    assert "more than once" in repeated.note


def test_cohen_says_why_it_is_missing() -> None:
    few = cohen_kappa(labels_of([0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 0, 1], 2), Bootstrap())
    constant = cohen_kappa(two_annotators([[8, 0], [0, 0]]), Bootstrap())
    assert few.value is None
    assert "share 5 items" in few.note
    assert constant.value is None
    assert "same single class" in constant.note
