"""EASL: Eq. 24–25 by hand, the mode as a mean, and its two intervals."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steelyard.models.ratings.easl import EASL, BetaState, highest_density
from steelyard.models.ratings.mean import Mean
from steelyard.observations import Ratings
from tests.models.online_cases import check_intervals
from tests.models.rating_cases import ratings_of, reordered, some_ratings

ROWS = [("u", "a", 0.0), ("v", "a", 100.0), ("u", "b", 30.0), ("v", "b", 40.0), ("w", "b", 95.0)]


def test_a_rating_adds_itself_to_alpha_and_its_complement_to_beta() -> None:
    """Eq. 24–25."""
    model = EASL()
    state = model.update(model.start(2), np.array([0, 0], np.int32), np.array([0.3, 1.0]))
    assert state.alpha.tolist() == [2.3, 1.0]
    assert state.beta.tolist() == [1.7, 1.0]
    assert state.mode == pytest.approx([0.65, 0.5])
    assert state.mean == pytest.approx([2.3 / 4, 0.5])


def test_the_scores_have_the_parameters_of_every_beta() -> None:
    """By hand: item a has ratings 0 and 1, so α = β = 2; item b .3, .4 and .95, so α = 2.65 and β = 2.35."""
    scores = EASL(draws=20).fit(ratings_of(ROWS)).scores.sort("item").select("alpha", "beta", "mode", "variance")
    assert scores.row(0) == pytest.approx((2, 2, 0.5, 1 / 20))
    assert scores.row(1) == pytest.approx((2.65, 2.35, 1.65 / 3, 2.65 * 2.35 / (25 * 6)))


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(some_ratings())
def test_with_a_flat_start_the_mode_is_the_plain_mean_of_all_ratings(ratings: Ratings) -> None:
    fit = EASL(draws=20).fit(ratings)
    for item, score in fit.scores.select("item", "score").iter_rows():
        own = ratings.value[ratings.item == ratings.items.code(item)]
        assert score == (pytest.approx(own.mean(), abs=1e-9) if len(own) else None)


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), max_size=20), st.floats(1, 5), st.floats(1, 5))
def test_alpha_and_beta_never_decrease_and_grow_by_one_with_every_rating(
    rows: list[tuple[int, float]], alpha: float, beta: float
) -> None:
    model = EASL(alpha=alpha, beta=beta)
    before = model.start(4)
    after = model.update(before, np.array([r[0] for r in rows], np.int32), np.array([r[1] for r in rows], np.float64))
    assert (after.alpha >= before.alpha).all()
    assert (after.beta >= before.beta).all()
    assert (after.alpha + after.beta).sum() == pytest.approx(4 * (alpha + beta) + len(rows))
    assert ((after.mode >= 0) & (after.mode <= 1)).all()


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(some_ratings(), st.sampled_from(["bootstrap", "model"]), st.sampled_from(["mode", "mean"]))
def test_every_interval_holds_its_score_and_stays_on_the_scale(ratings: Ratings, how: str, estimate: str) -> None:
    fit = EASL(interval=how, estimate=estimate, draws=20).fit(ratings)  # type: ignore[arg-type]
    check_intervals(fit)
    table = fit.scores.drop_nulls("lower")
    assert (table["lower"] >= 0).all()
    assert (table["upper"] <= 100).all()


@pytest.mark.slow
@given(st.floats(1, 60), st.floats(1, 60), st.sampled_from([0.5, 0.8, 0.95, 0.99]))
@settings(max_examples=80, deadline=None)
def test_the_highest_density_interval_has_its_mass_and_is_the_shortest_that_does(
    alpha: float, beta: float, level: float
) -> None:
    state = BetaState(np.array([alpha]), np.array([beta]))
    lower, upper = highest_density(state, level)
    cdf = stats.beta(alpha, beta).cdf
    assert cdf(upper[0]) - cdf(lower[0]) == pytest.approx(level, abs=1e-6)
    equal_tails = stats.beta(alpha, beta).interval(level)
    assert upper[0] - lower[0] <= equal_tails[1] - equal_tails[0] + 1e-9
    if alpha + beta > 2.001:
        assert lower[0] - 1e-6 <= state.mode[0] <= upper[0] + 1e-6


def test_ratings_at_the_bounds_stay_inside_their_interval() -> None:
    """An equal-tailed interval of Beta(4, 1) would exclude its mode, 1."""
    fit = EASL(interval="model").fit(ratings_of([("u", "a", 100), ("v", "a", 100), ("w", "a", 100)]))
    row = fit.scores.row(0, named=True)
    assert (row["score"], row["upper"], row["interval"]) == (100.0, 100.0, "model")
    assert row["lower"] == pytest.approx(100 * stats.beta(4, 1).ppf(0.05), abs=1e-4)


def test_an_interval_can_be_resampled_over_annotators() -> None:
    fit = EASL(interval="bootstrap").fit(ratings_of(ROWS))
    assert set(fit.scores["interval"]) == {"bootstrap(annotators)"}
    nobody = EASL(interval="bootstrap").fit(ratings_of([("", i, v) for _, i, v in ROWS]))
    assert set(nobody.scores["interval"]) == {"bootstrap(judgments)"}


def test_an_item_with_one_annotator_has_no_resampled_interval_and_the_notes_say_why() -> None:
    fit = EASL(interval="bootstrap").fit(
        ratings_of([*ROWS, ("u", "c", 50.0), ("u", "c", 60.0)], items=["a", "b", "c", "d"])
    )
    by_item = {row["item"]: row for row in fit.scores.iter_rows(named=True)}
    assert by_item["c"]["score"] == pytest.approx(55)
    assert by_item["c"]["lower"] is None
    assert by_item["d"]["score"] is None
    assert "only one of the annotators" in fit.notes[0]


def test_relabelling_the_items_changes_nothing_but_their_names() -> None:
    names = {"a": "z", "b": "y"}
    one = EASL().fit(ratings_of(ROWS)).scores
    two = EASL().fit(ratings_of([(who, names[item], value) for who, item, value in ROWS])).scores
    assert one.drop("item").equals(two.drop("item"))
    assert [names[item] for item in one["item"]] == two["item"].to_list()


@settings(max_examples=30, deadline=None)
@given(some_ratings())
def test_the_order_of_judgments_does_not_change_the_scores(ratings: Ratings) -> None:
    order = random.Random(2).sample(range(len(ratings)), len(ratings))
    one = EASL(draws=20).fit(ratings).scores.sort("item")["score"].to_numpy()
    two = EASL(draws=20).fit(reordered(ratings, order)).scores.sort("item")["score"].to_numpy()
    assert one == pytest.approx(two, abs=1e-9, nan_ok=True)


def test_the_mean_of_the_beta_is_closer_to_the_middle_than_the_mode() -> None:
    mode, mean = (EASL(estimate=e).fit(ratings_of(ROWS)).scores.sort("item") for e in ("mode", "mean"))
    assert mode["score"].to_list() == pytest.approx([50, 55])
    assert mean["score"].to_list() == pytest.approx([50, 100 * 2.65 / 5])
    high = ratings_of([("u", "a", 90), ("v", "a", 100)])
    assert EASL(estimate="mean").fit(high).scores["score"].to_list() == pytest.approx([100 * 2.9 / 4])
    assert EASL().fit(high).scores["score"].to_list() == Mean().fit(high).scores["score"].to_list()


def test_a_whole_number_as_a_start_is_a_real_number() -> None:
    assert EASL(alpha=2, beta=2).start(1).alpha.dtype == np.float64


def test_the_default_interval_is_that_of_the_mean() -> None:
    """With α = β = 1 the mode is the plain mean, and its uncertainty is the mean's."""
    ratings = ratings_of(ROWS)
    ours, means = EASL().fit(ratings).scores, Mean().fit(ratings).scores
    for column in ("score", "sd", "lower", "upper"):
        assert ours[column].to_list() == pytest.approx(means[column].to_list())
    assert set(ours["interval"]) == {"t(annotators)"}


def test_a_heavier_start_draws_scores_and_intervals_to_the_middle() -> None:
    ratings = ratings_of([("u", "a", 90.0), ("v", "a", 80.0), ("u", "b", 10.0), ("v", "b", 25.0)])
    plain = EASL().fit(ratings).scores.sort("item")
    scores = EASL(alpha=6, beta=6).fit(ratings).scores.sort("item")
    assert ((scores["score"] - 50).abs() < (plain["score"] - 50).abs()).all()
    assert (scores["sd"] < plain["sd"]).all()
    assert ((scores["lower"] <= scores["score"]) & (scores["score"] <= scores["upper"])).all()


def test_an_interval_stands_around_its_score_when_somebody_rated_an_item_twice() -> None:
    ratings = ratings_of([("u", "a", 90.0), ("u", "a", 80.0), ("v", "a", 40.0), ("u", "b", 30.0), ("v", "b", 40.0)])
    row = EASL().fit(ratings).scores.filter(item="a").row(0, named=True)
    assert row["score"] == pytest.approx(70)
    narrow = EASL(level=0.2).fit(ratings).scores.filter(item="a").row(0, named=True)
    assert narrow["upper"] - narrow["score"] == pytest.approx(narrow["score"] - narrow["lower"])
