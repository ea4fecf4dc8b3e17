"""Covariates of items as prior in the calibrated scale."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.models.calibrated.covariates import Covariates
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.observations import Comparisons, Index, Ratings

pytestmark = pytest.mark.slow

MODEL = CalibratedScale(draws=200, annotator_effects="bias")


def scene(seed=0, items=120, each=2, noise=0.15):
    """Truth on [0, 1], and ratings by eight annotators."""
    rng = np.random.default_rng(seed)
    truth = np.clip(rng.normal(0.5, 0.15, items), 0, 1)
    item = np.repeat(np.arange(items), each)
    who = np.concatenate([rng.choice(8, each, replace=False) for _ in range(items)])
    value = np.clip(truth[item] + rng.normal(0, noise, len(item)), 0, 1)
    ratings = Ratings(
        items=Index([f"i{n:03}" for n in range(items)]),
        annotators=Index([f"a{n}" for n in range(8)]),
        tasks=Index(),
        annotator=who.astype(np.int32),
        task=np.full(len(item), -1, np.int32),
        item=item.astype(np.int32),
        value=value,
        scale=(0, 1),
    )
    return truth, ratings, rng


def scores(fit, items):
    table = dict(fit.scores.select("item", "score").iter_rows())
    return np.array([table[name] for name in items.ids])


def correlation(fit, ratings, truth):
    return float(np.corrcoef(scores(fit, ratings.items), truth)[0, 1])


def test_a_good_judge_helps_in_any_unit_and_direction():
    truth, ratings, rng = scene()
    judge = truth + rng.normal(0, 0.08, len(truth))
    alone = correlation(MODEL.fit(ratings), ratings, truth)
    with_judge = [
        correlation(MODEL.fit(ratings, covariates=Covariates(("j",), column[:, None])), ratings, truth)
        for column in (judge, 1000 - 300 * judge)
    ]
    # With noise .15 of a rating and .08 of the judge the best possible weights give r = .94; two ratings alone .82.
    assert alone < 0.85
    assert min(with_judge) > 0.90
    assert with_judge[0] == pytest.approx(with_judge[1], abs=0.01)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_useless_judge_changes_little(seed):
    truth, ratings, rng = scene(seed)
    alone = MODEL.fit(ratings)
    noisy = MODEL.fit(ratings, covariates=Covariates(("noise",), rng.normal(size=(len(truth), 1))))
    assert correlation(noisy, ratings, truth) > correlation(alone, ratings, truth) - 0.02
    assert "noise explains" in noisy.notes[-1]


def test_a_constant_or_repeated_column_adds_nothing():
    truth, _, rng = scene(3)
    judge = truth + rng.normal(0, 0.1, len(truth))
    columns = Covariates(("j", "again", "constant"), np.column_stack([judge, 2 * judge, np.ones(len(judge))]))
    assert columns.uncorrelated(np.arange(len(judge))).shape[1] == 1


def test_columns_are_uncorrelated_with_mean_0_and_variance_1():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 3)) + 7
    values[3, 1] = np.nan
    columns = Covariates(("a", "b", "c"), values).uncorrelated(np.arange(50))
    assert np.allclose(columns.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(columns.T @ columns / 50, np.eye(3), atol=1e-12)


def test_the_weight_is_the_regression_coefficient_where_ratings_are_many():
    truth, ratings, rng = scene(4, items=300, each=6, noise=0.02)
    judge = truth + rng.normal(0, 0.15, len(truth))
    fit = MODEL.fit(ratings, covariates=Covariates(("j",), judge[:, None]))
    explained = float(np.corrcoef(judge, truth)[0, 1]) ** 2
    percent = int(fit.notes[-1].split("explains ")[1].split(" %")[0])
    assert percent == pytest.approx(100 * explained, abs=4)


def test_comparisons_use_covariates_too():
    rng = np.random.default_rng(5)
    truth = rng.normal(size=40)
    left, right = rng.integers(40, size=(2, 120))
    left, right = left[left != right], right[left != right]
    wins = rng.random(len(left)) < 1 / (1 + np.exp(-1.7 * (truth[left] - truth[right])))
    comparisons = Comparisons(
        items=Index([f"i{n:02}" for n in range(40)]),
        annotators=Index(["a"]),
        tasks=Index(),
        annotator=np.zeros(len(left), np.int32),
        task=np.full(len(left), -1, np.int32),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        outcome=np.where(wins, 1, -1).astype(np.int8),
    )
    judge = truth + rng.normal(0, 0.3, 40)
    model = CalibratedScale(draws=200, annotator_effects="none")
    alone = dict(model.fit(comparisons).scores.drop_nulls("score").select("item", "score").iter_rows())
    fit = model.fit(comparisons, covariates=Covariates(("j",), judge[:, None]))
    both = dict(fit.scores.drop_nulls("score").select("item", "score").iter_rows())
    names = sorted(alone)
    target = [truth[int(name[1:])] for name in names]
    r_alone, r_both = (np.corrcoef([part[name] for name in names], target)[0, 1] for part in (alone, both))
    assert r_both > r_alone + 0.02


def test_a_judge_who_favours_a_system_does_not_make_its_mean_look_certain():
    covered = 0
    for seed in range(6):
        truth, ratings, rng = scene(10 + seed, items=100)
        groups = tuple("AB"[n % 2] for n in range(100))
        judge = truth + 0.25 * (np.arange(100) % 2) + rng.normal(0, 0.05, 100)
        fit = MODEL.fit(ratings, covariates=Covariates(("j",), judge[:, None], groups))
        place = {name: row for row, name in enumerate(fit.scores["item"])}
        columns = [place[f"i{n:03}"] for n in range(1, 100, 2)]
        means = np.asarray(fit.draws)[:, columns].mean(axis=1)
        lower, upper = np.quantile(means, [0.025, 0.975])
        covered += lower - 0.005 <= truth[1::2].mean() <= upper + 0.005
    # Without weights of the systems' own, none of the six holds.
    assert covered >= 4


def test_items_that_nobody_judged_are_predicted_marked_and_uncertain():
    """People judge 90 of 120 items; the others are predicted within intervals that are wider and hold the truth."""
    truth, ratings, rng = scene(seed=3)
    judge = truth + rng.normal(0, 0.08, len(truth))
    some = ratings.subset(ratings.item < 90)
    fit = MODEL.fit(some, covariates=Covariates(("j",), judge[:, None]))
    table = fit.scores.sort("item")
    predicted = table["interval"].to_numpy() == "predicted"
    np.testing.assert_array_equal(predicted, np.arange(120) >= 90)
    np.testing.assert_array_equal(table["judgments"].to_numpy() == 0, predicted)
    width = (table["upper"] - table["lower"]).to_numpy()
    assert width[predicted].mean() > 1.1 * width[~predicted].mean()
    is_covered = (table["lower"].to_numpy() <= truth) & (truth <= table["upper"].to_numpy())
    assert is_covered[predicted].mean() >= 0.83  # 30 items: the 1 % quantile of a binomial with .95
    assert np.corrcoef(table["score"].to_numpy()[predicted], truth[predicted])[0, 1] > 0.7
    assert any("30 items without judgments" in note for note in fit.notes)
    unknown = np.where(np.arange(120) >= 110, np.nan, judge)
    again = MODEL.fit(some, covariates=Covariates(("j",), unknown[:, None])).scores
    assert again["score"].null_count() == 10
