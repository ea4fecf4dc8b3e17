"""The mean of ratings: by hand, against Snow et al.'s data, and the coverage of its intervals."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from scipy import stats

from steelyard.errors import DataError
from steelyard.formats import read_judgments, read_table
from steelyard.models.ratings.mean import Mean
from steelyard.observations import Comparisons, Index, Ratings
from tests.models.online_cases import check_intervals, comparisons_of
from tests.models.rating_cases import biased_ratings, ratings_of, reordered, some_ratings


def test_scores_are_means_in_the_users_scale() -> None:
    table = Mean().fit(ratings_of([("u", "a", -50), ("v", "a", 0), ("u", "b", 100)], scale=(-100, 100))).scores
    assert table.select("item", "score", "unit_score", "rank", "judgments", "annotators").rows() == [
        ("b", 100.0, 1.0, 1, 1, 1),
        ("a", -25.0, 0.375, 2, 2, 2),
    ]


def test_the_interval_is_students_t_with_the_common_variance_as_further_degrees_of_freedom() -> None:
    """Items with variances 50 (n = 2) and 300 (n = 3): the common variance is (50 + 2 · 300) / 3."""
    rows = [("u", "a", 10), ("v", "a", 20), ("u", "b", 50), ("v", "b", 50), ("w", "b", 80)]
    table = Mean(prior_df=4).fit(ratings_of(rows)).scores.sort("item")
    common = (50 + 2 * 300) / 3
    error = np.sqrt([(50 + 4 * common) / 5 / 2, (600 + 4 * common) / 6 / 3])
    assert table["sd"].to_numpy() == pytest.approx(error)
    half = stats.t.ppf(0.975, [5, 6]) * error
    assert table["upper"].to_numpy() == pytest.approx([15 + half[0], 60 + half[1]])
    assert table["lower"].to_numpy() == pytest.approx([max(0, 15 - half[0]), 60 - half[1]])


def test_repeats_count_in_the_score_but_a_person_once_in_how_sure_it_is() -> None:
    once = Mean().fit(ratings_of([("u", "a", 30), ("v", "a", 60)])).scores.row(0, named=True)
    twice = Mean().fit(ratings_of([("u", "a", 20), ("u", "a", 40), ("v", "a", 60)])).scores.row(0, named=True)
    assert twice["score"] == pytest.approx((20 + 40 + 60) / 3)
    assert twice["sd"] == pytest.approx(once["sd"])
    assert twice["upper"] - twice["lower"] == pytest.approx(once["upper"] - once["lower"])
    assert twice["judgments"] == 3


def test_without_a_second_rating_anywhere_there_is_no_interval_and_the_notes_say_why() -> None:
    fit = Mean().fit(ratings_of([("u", "a", 10), ("v", "b", 20)], items=["a", "b", "c"]))
    assert fit.scores["lower"].null_count() == 3
    assert "no item was judged by two" in fit.notes[0]
    assert fit.scores.row(-1, named=True)["score"] is None


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(some_ratings())
def test_every_interval_holds_its_score_and_stays_on_the_scale(ratings: Ratings) -> None:
    fit = Mean(draws=20).fit(ratings)
    check_intervals(fit)
    table = fit.scores.drop_nulls("lower")
    assert (table["lower"] >= 0).all()
    assert (table["upper"] <= 100).all()
    rated = {ratings.items[int(code)] for code in ratings.item}
    assert {row["item"] for row in fit.scores.iter_rows(named=True) if row["score"] is not None} == rated


@settings(max_examples=40, deadline=None)
@given(some_ratings())
def test_the_order_of_judgments_does_not_change_the_table(ratings: Ratings) -> None:
    order = random.Random(1).sample(range(len(ratings)), len(ratings))
    one, two = Mean(draws=20).fit(ratings).scores, Mean(draws=20).fit(reordered(ratings, order)).scores
    for column in ("score", "sd", "lower", "upper"):
        left, right = one.sort("item")[column], two.sort("item")[column]
        assert left.to_numpy() == pytest.approx(right.to_numpy(), abs=1e-9, nan_ok=True)


def test_comparisons_are_refused_with_models_that_take_them() -> None:
    comparisons: Comparisons = comparisons_of([("a", "b", 1)])
    with pytest.raises(DataError, match="mean needs ratings; these are comparisons"):
        Mean().fit(comparisons)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("per_item", [3, 5, 10])
def test_95_percent_intervals_cover_true_means_when_annotators_have_biases(per_item: int) -> None:
    """The short form of benchmarks/coverage_online.py: 60 data sets of 30 items, sampling error about 1 %."""
    rng = np.random.default_rng(per_item)
    hits, ranks = [], []
    for _ in range(60):
        truth, ratings = biased_ratings(rng, 30, per_item, 20)
        table = Mean(draws=100).fit(ratings).scores.with_columns(pl.col("item").cast(pl.Int64)).sort("item")
        lower, upper, low_rank, high_rank = table.select("lower", "upper", "rank_lower", "rank_upper").to_numpy().T
        hits.append(np.mean((lower <= truth) & (truth <= upper)))
        place = stats.rankdata(-truth)
        ranks.append(np.mean((low_rank <= place) & (place <= high_rank)))
    assert 0.93 <= np.mean(hits) <= 0.98
    assert np.mean(ranks) >= 0.93


def correlation_with_gold(
    shared_data: Path, name: str, scale: tuple[float, float], emotion: str | None = None
) -> float:
    table = read_table(shared_data / "snow2008" / name)
    if emotion is not None:
        table = table.filter(pl.col("emotion") == emotion)
    gold = table.group_by("item").agg(pl.col("gold").cast(pl.Float64).first())
    ratings = read_judgments(table.select("annotator", "item", "value"), kind="ratings", scale=scale).observations
    assert isinstance(ratings, Ratings)
    joined = Mean(draws=20).fit(ratings).scores.join(gold, on="item")
    return float(np.corrcoef(joined["score"], joined["gold"])[0, 1])


@pytest.mark.shared_data
def test_word_similarity_correlates_with_gold_as_published(shared_data: Path) -> None:
    assert correlation_with_gold(shared_data, "wordsim.csv.gz", (0, 10)) == pytest.approx(0.9519, abs=5e-5)


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("emotion", "expected"),
    [
        ("anger", 0.711),
        ("disgust", 0.765),
        ("fear", 0.699),
        ("joy", 0.640),
        ("sadness", 0.792),
        ("surprise", 0.526),
        ("valence", 0.850),
    ],
)
def test_affect_correlates_with_gold_as_recomputed_from_the_release(
    shared_data: Path, emotion: str, expected: float
) -> None:
    scale = (-100.0, 100.0) if emotion == "valence" else (0.0, 100.0)
    assert correlation_with_gold(shared_data, "affect.csv.gz", scale, emotion) == pytest.approx(expected, abs=5e-4)


def test_duplicated_rows_of_one_annotator_do_not_make_the_score_surer() -> None:
    rows = [("u", "a", 20.0), ("v", "a", 40.0), ("u", "b", 70.0), ("v", "b", 90.0)]
    once, doubled = Mean().fit(ratings_of(rows)).scores, Mean().fit(ratings_of(rows * 2)).scores
    assert doubled["sd"].to_list() == pytest.approx(once["sd"].to_list())


def test_one_item_rated_by_one_annotator_is_scored() -> None:
    fit = Mean().fit(Ratings(items=Index("a"), item=np.zeros(1, np.int32), value=np.zeros(1), scale=(0.0, 1.0)))
    assert fit.scores.select("score", "unit_score", "rank").row(0) == (0.0, 0.0, 1)
