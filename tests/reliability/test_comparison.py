"""Two scorings held against each other: hand-worked differences, scipy's correlations, and who moved."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from steelyard.errors import ConfigError, DataError
from steelyard.models.ratings.mean import Mean
from steelyard.observations import Index, Ratings
from steelyard.reliability import compare_scorings
from steelyard.reliability.comparison import weighted_median

FIRST = {"a": 0.0, "b": 10.0, "c": 5.0, "d": 2.0}
SECOND = {"a": -1.0, "b": 0.0, "c": 1.0, "d": -1.0}


def test_differences_are_those_worked_by_hand() -> None:
    comparison = compare_scorings(FIRST, SECOND)
    # On [0, 1]: 0 1 .5 .2 against 0 .5 1 0; ranks 4 1 2 3 against 3.5 2 1 3.5.
    assert comparison["mean_score_difference"].value == pytest.approx((0 + 0.5 + 0.5 + 0.2) / 4)
    assert comparison["median_score_difference"].value == pytest.approx((0.2 + 0.5) / 2)
    assert comparison["mean_rank_difference"].value == pytest.approx((0.5 + 1 + 1 + 0.5) / 4)
    assert comparison["median_rank_difference"].value == pytest.approx(0.75)
    x, y = list(FIRST.values()), list(SECOND.values())
    assert comparison["pearson"].value == pytest.approx(stats.pearsonr(x, y)[0])
    assert comparison["spearman"].value == pytest.approx(stats.spearmanr(x, y)[0])
    assert comparison.moved["item"].to_list() == ["b", "c", "d", "a"]
    assert comparison.moved.row(0, named=True)["rank_difference"] == 1.0


def test_every_figure_has_an_interval_around_it() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=80)
    first, second = ({f"i{k}": float(t + rng.normal() / 2) for k, t in enumerate(truth)} for _ in range(2))
    for figure in compare_scorings(first, second).statistics:
        assert figure.lower is not None
        assert figure.upper is not None
        assert figure.lower < (figure.value or 0.0) < figure.upper


def test_tables_are_compared_by_their_unit_scores_over_shared_items() -> None:
    ratings = Ratings(
        items=Index("abcd"),
        item=np.array([0, 0, 1, 1, 2, 2, 3, 3], np.int32),
        value=np.array([0, 2, 8, 8, 4, 6, 2, 3.0]),
        scale=(0.0, 10.0),
    )
    fit = Mean(draws=20).fit(ratings)
    other = {"a": 0.1, "b": 0.8, "c": 0.5, "x": 0.0, "y": 1.0}
    comparison = compare_scorings(fit, other)
    assert comparison["mean_score_difference"].value == pytest.approx(0.0, abs=1e-12)
    assert comparison["mean_score_difference"].n == 3
    assert "2 items of the second scoring are missing from the other" in comparison.notes
    assert compare_scorings(fit.scores, other)["pearson"].value == comparison["pearson"].value


def test_a_scoring_equals_itself() -> None:
    comparison = compare_scorings(FIRST, FIRST)
    assert comparison["mean_rank_difference"].value == 0.0
    assert comparison["spearman"].value == pytest.approx(1.0)
    assert "no interval" in comparison["spearman"].note


def test_the_weighted_median_is_that_of_the_repeated_values() -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(0, 9, 15).astype(float)
    weights = rng.poisson(1, (15, 50)).astype(float)
    expected = [np.median(np.repeat(values, weights[:, k].astype(int))) for k in range(50)]
    assert weighted_median(values)(weights).tolist() == expected


def test_wrong_input_is_refused() -> None:
    with pytest.raises(DataError, match="no items in common"):
        compare_scorings(FIRST, {"z": 1.0})
    with pytest.raises(DataError, match="no column 'score'"):
        compare_scorings(pl.DataFrame({"item": ["a"]}), FIRST)
    with pytest.raises(DataError, match="an item twice"):
        compare_scorings(pl.DataFrame({"item": ["a", "a"], "score": [1.0, 2.0]}), FIRST)
    with pytest.raises(DataError, match="not a number"):
        compare_scorings({"a": float("nan"), "b": 1.0}, FIRST)
    with pytest.raises(ConfigError, match="Did you mean 'spearman'"):
        compare_scorings(FIRST, SECOND)["spearmn"]
