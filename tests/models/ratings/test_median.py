"""Median and mode of ratings against numpy's, and where nothing or everything ties."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from steelyard.models.ratings.median import Median, Mode
from steelyard.observations import Ratings
from tests.models.online_cases import check_intervals
from tests.models.rating_cases import ratings_of, some_ratings


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(some_ratings())
def test_the_median_is_numpys_and_the_mode_the_mean_of_the_most_frequent(ratings: Ratings) -> None:
    median, mode = Median(draws=20).fit(ratings), Mode(draws=20).fit(ratings)
    for fit in (median, mode):
        check_intervals(fit)
    for item in ratings.items.ids:
        own = ratings.value[ratings.item == ratings.items.code(item)]
        counts = Counter(own.tolist())
        most = [value for value, count in counts.items() if count == max(counts.values())]
        for fit, expected in ((median, np.median(own) if len(own) else None), (mode, np.mean(most) if most else None)):
            score = fit.scores.filter(fit.scores["item"] == item)["score"][0]
            assert score == (None if expected is None else pytest.approx(expected))


def test_one_wild_rating_moves_the_mean_but_not_the_median() -> None:
    rows = [("u", "a", 10.0), ("v", "a", 12.0), ("w", "a", 100.0)]
    assert Median().fit(ratings_of(rows)).scores["score"].to_list() == [12.0]


def test_intervals_come_from_resampled_annotators() -> None:
    rows = [(who, "a", float(value)) for who, value in zip("uvwxyz", (10, 20, 30, 40, 50, 60), strict=True)]
    row = Median().fit(ratings_of(rows)).scores.row(0, named=True)
    assert row["interval"] == "bootstrap(annotators)"
    assert 10 <= row["lower"] < 35 < row["upper"] <= 60


def test_one_annotator_gives_no_interval() -> None:
    fit = Mode().fit(ratings_of([("u", "a", 10), ("u", "a", 20)]))
    assert fit.scores.select("score", "lower").row(0) == (15.0, None)
    assert "only one of the annotators" in fit.notes[0]
