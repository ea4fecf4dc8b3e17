"""Majority vote: ties shared exactly, Wilson's interval, and Snow et al.'s published accuracies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steelyard.formats import read_judgments, read_table
from steelyard.models.labels.majority import Majority, expected_accuracy, wilson
from steelyard.models.labels.observed import vote_counts
from steelyard.observations import Index, Labels


def labels_of(rows: Sequence[tuple[str, str, str]], *, items: Sequence[str] | None = None) -> Labels:
    """Build labels from (annotator, item, label)."""
    people, classes = Index(sorted({row[0] for row in rows})), Index(sorted({row[2] for row in rows}))
    index = Index(items if items is not None else sorted({row[1] for row in rows}))
    return Labels(
        items=index,
        annotators=people,
        annotator=people.codes([row[0] for row in rows]),
        item=index.codes([row[1] for row in rows]),
        label=classes.codes([row[2] for row in rows]),
        classes=classes,
    )


ROWS = [("u", "a", "yes"), ("v", "a", "yes"), ("w", "a", "no"), ("u", "b", "no"), ("v", "b", "yes")]


def test_the_label_is_the_one_most_annotators_chose_and_ties_are_shown() -> None:
    fit = Majority().fit(labels_of(ROWS, items=["a", "b", "c"]))
    by_item = {row["item"]: row for row in fit.scores.iter_rows(named=True)}
    assert by_item["a"]["label"] == "yes"
    assert by_item["a"]["probability"] == pytest.approx(2 / 3)
    assert (by_item["a"]["p(no)"], by_item["a"]["tied"]) == (pytest.approx(1 / 3), 1)
    assert by_item["b"]["tied"] == 2
    assert [by_item["c"][key] for key in ("label", "probability", "lower", "interval")] == [None] * 4
    assert "1 of 2 items have no single majority" in fit.notes[0]


def test_wilsons_interval_is_scipys() -> None:
    for successes, total in ((0, 5), (3, 5), (5, 5), (40, 41)):
        lower, upper = wilson(np.array([successes], np.int32), np.array([total], np.int32), 0.95)
        expected = stats.binomtest(successes, total).proportion_ci(0.95, method="wilson")
        assert (lower[0], upper[0]) == pytest.approx((expected.low, expected.high), abs=1e-12)


votes_and_gold = st.lists(
    st.tuples(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 3)), st.integers(0, 2)),
    min_size=1,
    max_size=4,
)


@given(votes_and_gold)
def test_expected_accuracy_is_the_mean_over_all_ways_to_break_ties(
    case: list[tuple[tuple[int, int, int], int]],
) -> None:
    winners = [[c for c in range(3) if votes[c] == max(votes)] for votes, _ in case]
    ways = [
        np.mean([label == gold for label, (_, gold) in zip(broken, case, strict=True)]) for broken in product(*winners)
    ]
    accuracy = expected_accuracy(np.array([v for v, _ in case], np.int32), np.array([g for _, g in case], np.int32))
    assert accuracy == pytest.approx(np.mean(ways))


@pytest.mark.slow
@settings(deadline=None)
@given(st.permutations(range(len(ROWS))))
def test_the_order_of_judgments_does_not_change_the_table(order: list[int]) -> None:
    assert Majority().fit(labels_of([ROWS[i] for i in order])).scores.equals(Majority().fit(labels_of(ROWS)).scores)


def test_every_interval_holds_its_share_even_when_all_agree() -> None:
    table = Majority().fit(labels_of([*ROWS, ("u", "c", "no"), ("v", "c", "no")])).scores
    assert (table["lower"] <= table["probability"]).all()
    assert (table["probability"] <= table["upper"]).all()
    assert table["upper"].max() <= 1.0  # type: ignore[operator]


@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "published"), [("rte", 0.8969), ("temp", 0.9361), ("wsd", 0.9944)])
def test_the_majority_of_ten_is_as_accurate_as_published(shared_data: Path, name: str, published: float) -> None:
    table = read_table(shared_data / "snow2008" / f"{name}.csv.gz")
    labels = read_judgments(table.select("annotator", "item", "label"), kind="labels").observations
    assert isinstance(labels, Labels)
    gold = dict(table.select(pl.col("item").cast(pl.String), pl.col("gold").cast(pl.String)).unique().iter_rows())
    codes = labels.classes.codes([gold[item] for item in labels.items.ids])
    assert expected_accuracy(vote_counts(labels), codes) == pytest.approx(published, abs=5e-5)


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "published"), [("bluebird", 0.7593), ("dog", 0.8222), ("web", 0.7307), ("product", 0.8966)]
)
def test_the_majority_on_the_labelled_sets_is_as_accurate_as_recomputed(
    shared_data: Path, name: str, published: float
) -> None:
    labels = read_judgments(shared_data / "labels" / f"{name}.csv.gz", kind="labels").observations
    assert isinstance(labels, Labels)
    truth = read_table(shared_data / "labels" / f"{name}_truth.csv.gz")
    gold = dict(truth.select(pl.col("item").cast(pl.String), pl.col("label").cast(pl.String)).iter_rows())
    gold_codes = np.array([labels.items.code(item) for item in gold])
    codes = labels.classes.codes(list(gold.values()))
    assert expected_accuracy(vote_counts(labels)[gold_codes], codes) == pytest.approx(published, abs=5e-5)
