"""Thurstone's Case V: by hand, against a generic optimiser, and beside Bradley–Terry."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from scipy import optimize, special

from steelyard.errors import DataError, SteelyardWarning
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.comparisons.thurstone import Thurstone
from steelyard.observations import Comparisons, Index
from tests.models import paired_data as data
from tests.models.paired_data import by_item


def two_items(wins, losses, ties=0):
    outcome = np.repeat([1, -1, 0], [wins, losses, ties]).astype(np.int8)
    rows = len(outcome)
    return Comparisons(items=Index("ab"), left=np.zeros(rows, np.int32), right=np.ones(rows, np.int32), outcome=outcome)


def scores(fit, comparisons, column="score"):
    table = by_item(fit, column)
    return np.array([table[name] for name in comparisons.items.ids])


def test_two_items_by_hand():
    # Φ(d) = 3/4, and half of it to each side of 0.
    fit = Thurstone(prior_sd=None).fit(two_items(30, 10))
    assert 2 * by_item(fit)["a"] == pytest.approx(special.ndtri(0.75))


def test_two_items_with_ties_by_hand():
    # Φ(d − τ) = 5/8 and Φ(−d − τ) = 1/8 give d and τ in closed form.
    fit = Thurstone(prior_sd=None).fit(two_items(50, 10, 20))
    up, down = special.ndtri(5 / 8), special.ndtri(1 / 8)
    assert 2 * by_item(fit)["a"] == pytest.approx((up - down) / 2)
    assert f"τ = {-(up + down) / 2:.3g}" in fit.notes[0]
    assert by_item(fit, "unit_score")["a"] == pytest.approx((50 + 10) / 80)


def test_it_equals_a_generic_optimiser_on_the_exact_likelihood_with_prior():
    comparisons = data.comparisons(n=6, rows=300, seed=2)
    sign = comparisons.outcome

    def loss(theta):
        d = theta[comparisons.left] - theta[comparisons.right]
        return -special.log_ndtr(sign * d).sum() + (theta**2).sum() / (2 * 0.8**2)

    optimum = optimize.minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-7})
    assert scores(Thurstone(prior_sd=0.8).fit(comparisons), comparisons) == pytest.approx(optimum.x, abs=1e-5)


def test_scores_are_bradley_terrys_over_about_1_7():
    comparisons = data.comparisons(n=10, rows=20_000, seed=1)
    probit, logit = Thurstone(prior_sd=None).fit(comparisons), BradleyTerry(prior_sd=None).fit(comparisons)
    slope = np.polyfit(scores(probit, comparisons), scores(logit, comparisons), 1)[0]
    assert 1.55 < slope < 1.75


def test_relabelling_and_order_change_nothing_else():
    comparisons = data.comparisons(n=7, rows=250, ties=0.4)
    order = np.random.default_rng(0).permutation(7)
    names = np.empty(7, object)
    names[order] = comparisons.items.ids
    mixed = np.random.default_rng(1).permutation(250)
    renamed = dataclasses.replace(
        comparisons,
        items=Index(names),
        left=order[comparisons.left][mixed].astype(np.int32),
        right=order[comparisons.right][mixed].astype(np.int32),
        outcome=comparisons.outcome[mixed],
    )
    for column in ("score", "sd"):
        assert by_item(Thurstone().fit(renamed), column) == pytest.approx(
            by_item(Thurstone().fit(comparisons), column), abs=1e-7
        )


def test_extremes_stay_finite_and_are_named():
    with pytest.warns(SteelyardWarning, match="never beaten: 'a'"), pytest.warns(SteelyardWarning, match="never won"):
        fit = Thurstone().fit(two_items(500, 0))
    assert fit.scores["upper"].is_finite().all()
    level = Thurstone().fit(two_items(0, 0, 30))
    assert level.scores["score"].to_list() == pytest.approx([0, 0], abs=1e-9)
    with pytest.raises(DataError, match="prior_sd"):
        Thurstone(prior_sd=None).fit(two_items(5, 0))
    assert Thurstone(ties="drop", prior_sd=None).fit(two_items(6, 2, 9)).scores["judgments"].to_list() == [17, 17]


def test_intervals_cover_when_items_come_from_the_prior():
    """40 data sets of 20 items; 95 % ± 2.3 is three standard errors of 800 independent intervals."""
    covered = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        theta = rng.normal(0, 1.2, 20)
        left = rng.integers(0, 20, 400).astype(np.int32)
        right = ((left + rng.integers(1, 20, 400)) % 20).astype(np.int32)
        outcome = np.where(theta[left] - theta[right] + rng.normal(size=400) > 0, 1, -1).astype(np.int8)
        comparisons = Comparisons(items=data.ids(20), left=left, right=right, outcome=outcome)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SteelyardWarning)
            fit = Thurstone().fit(comparisons)
        truth = theta - theta.mean()
        covered += (
            (scores(fit, comparisons, "lower") <= truth) & (truth <= scores(fit, comparisons, "upper"))
        ).tolist()
    assert 0.915 <= np.mean(covered) <= 0.985
