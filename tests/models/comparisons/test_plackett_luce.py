"""Plackett–Luce: by hand, against choix and plain numpy, with ties, and at the extremes."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy import optimize, special

from steelyard.errors import DataError, SteelyardWarning
from steelyard.models.comparisons import plackett_luce_kernels
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.comparisons.plackett_luce import PlackettLuce
from steelyard.observations import Index, Rankings
from tests.models import paired_data as data
from tests.models.paired_data import by_item


def make(rows, n=None):
    """Rankings from lists of tiers of item codes."""
    item = [code for row in rows for tier in row for code in tier]
    rank = [place for row in rows for place, tier in enumerate(row, 1) for _ in tier]
    sizes = [sum(map(len, row)) for row in rows]
    return Rankings(
        items=data.ids(n or max(item) + 1),
        start=np.r_[0, np.cumsum(sizes)],
        item=np.array(item, np.int32),
        rank=np.array(rank, np.int32),
    )


def scores(fit, given, column="score"):
    table = by_item(fit, column)
    return np.array([table[name] for name in given.items.ids])


def order_value(theta, order):
    """Log chance of one order without ties."""
    return sum(theta[code] - special.logsumexp(theta[list(order[place:])]) for place, code in enumerate(order))


def twin_value(theta, row):
    """Mean over all orders of the tied items: the plain twin of the kernel."""
    orders = itertools.product(*(itertools.permutations(tier) for tier in row))
    return np.mean([order_value(theta, list(itertools.chain(*order))) for order in orders])


ROWS = [[[0], [1, 2], [3]], [[3, 1, 0], [2]], [[2], [0, 3]], [[1], [2], [0], [3]], [[0, 1, 2, 3]]]


def likelihood(given):
    return PlackettLuce()._prepare(given).likelihood


def test_kernel_equals_the_mean_over_all_orders():
    theta = np.array([0.3, -1.2, 0.8, 0.1])
    for row in ROWS:
        ready = PlackettLuce()._prepare(make([row], n=4))
        value = ready.likelihood.at(theta[ready.items], 0.0).value
        assert value == pytest.approx(twin_value(theta, row), rel=1e-12)


def test_gradient_and_curvature_equal_finite_differences():
    like = likelihood(make(ROWS))
    theta, h = np.array([0.3, -1.2, 0.8, 0.1]), 1e-5
    terms = like.at(theta, 0.0)
    for code in range(4):
        step = h * np.eye(4)[code]
        up, down = like.at(theta + step, 0.0), like.at(theta - step, 0.0)
        assert (up.value - down.value) / (2 * h) == pytest.approx(terms.gradient[code], abs=1e-7)
        curve = -(up.gradient - down.gradient) / (2 * h)
        for i, j, weight in zip(like.first, like.second, terms.weight, strict=True):
            if code in (i, j):
                assert -curve[j if code == i else i] == pytest.approx(weight, abs=1e-7)


def test_efrons_average_is_close_to_all_orders(monkeypatch):
    alpha, below = np.exp(np.random.default_rng(0).normal(0, 0.5, 6)), 9.0
    exact = plackett_luce_kernels.tier_terms.py_func(alpha, below)
    monkeypatch.setattr(plackett_luce_kernels, "EXACT_TIES", 2)
    rough = plackett_luce_kernels.tier_terms.py_func(alpha, below)
    assert rough[0] == pytest.approx(exact[0], rel=0.01)
    assert rough[2] == pytest.approx(exact[2], rel=0.05)


def test_ten_tied_items_have_right_derivatives_and_level_scores():
    rankings = make([[list(range(10))], [[0], list(range(1, 10))]])
    like, h = likelihood(rankings), 1e-5
    theta = np.random.default_rng(1).normal(size=10)
    terms = like.at(theta, 0.0)
    for code in range(10):
        step = h * np.eye(10)[code]
        slope = (like.at(theta + step, 0.0).value - like.at(theta - step, 0.0).value) / (2 * h)
        assert slope == pytest.approx(terms.gradient[code], abs=1e-6)
    table = by_item(PlackettLuce().fit(rankings))
    assert table["i000"] == max(table.values())
    assert np.ptp([value for name, value in table.items() if name != "i000"]) < 1e-9


def test_without_prior_it_equals_choix():
    choix = pytest.importorskip("choix")
    rankings = data.rankings(n=8, rows=300, size=5)
    rows = []
    for begin, end in itertools.pairwise(rankings.start):
        order = np.argsort(rankings.rank[begin:end])
        rows.append(rankings.item[begin:end][order].tolist())
    theirs = choix.ilsr_rankings(8, rows, alpha=0, tol=1e-12, max_iter=1000)
    ours = scores(PlackettLuce(prior_sd=None).fit(rankings), rankings)
    assert ours == pytest.approx(theirs - theirs.mean(), abs=1e-6)


def test_two_items_by_hand():
    rankings = make([[[0], [1]]] * 30 + [[[1], [0]]] * 10)
    fit = PlackettLuce(prior_sd=None).fit(rankings)
    assert 2 * by_item(fit)["i000"] == pytest.approx(np.log(3))


@pytest.mark.slow
def test_three_items_equal_a_generic_optimiser():
    rows = [[[0], [1], [2]]] * 5 + [[[1], [0], [2]]] * 3 + [[[2], [1, 0]]] * 4 + [[[1], [2]]] * 2
    rankings = make(rows)

    def loss(theta):
        return -sum(twin_value(theta, row) for row in rows) + (theta**2).sum() / (2 * 1.3**2)

    optimum = optimize.minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-7})
    assert scores(PlackettLuce(prior_sd=1.3).fit(rankings), rankings) == pytest.approx(optimum.x, abs=1e-5)


def test_comparisons_give_bradley_terry_with_half_ties():
    comparisons = data.comparisons(n=8, rows=300, ties=0.5)
    ours, theirs = PlackettLuce().fit(comparisons), BradleyTerry(ties="half").fit(comparisons)
    for column in ("score", "sd"):
        assert scores(ours, comparisons, column) == pytest.approx(scores(theirs, comparisons, column), abs=1e-8)


@pytest.mark.parametrize("interval", ["posterior", "sandwich", "bootstrap"])
def test_relabelling_permutes_and_order_within_a_ranking_is_irrelevant(interval):
    rankings = data.rankings(n=8, rows=150, tiers=3)
    order = np.random.default_rng(0).permutation(8)
    names = np.empty(8, object)
    names[order] = rankings.items.ids
    within = np.concatenate([np.random.default_rng(row).permutation(5) + 5 * row for row in range(150)])
    renamed = Rankings(
        items=Index(names),
        start=rankings.start,
        item=order[rankings.item][within].astype(np.int32),
        rank=rankings.rank[within],
    )
    first, second = (PlackettLuce(interval=interval).fit(x) for x in (rankings, renamed))
    for column in ("score", "sd"):
        assert by_item(second, column) == pytest.approx(by_item(first, column), abs=1e-6)


def test_order_of_rankings_is_irrelevant():
    rankings = data.rankings(n=8, rows=100)
    backwards = Rankings(
        items=rankings.items,
        start=rankings.start,
        item=rankings.item.reshape(100, 5)[::-1].ravel(),
        rank=rankings.rank.reshape(100, 5)[::-1].ravel(),
    )
    assert by_item(PlackettLuce().fit(backwards)) == pytest.approx(by_item(PlackettLuce().fit(rankings)), abs=1e-9)


def test_extremes_stay_finite_and_are_named():
    with (
        pytest.warns(SteelyardWarning, match="never beaten: 'i000'"),
        pytest.warns(SteelyardWarning, match="never won"),
    ):
        fit = PlackettLuce().fit(make([[[0], [1], [2]]] * 50))
    assert fit.scores["upper"].is_finite().all()
    with pytest.warns(SteelyardWarning, match="2 groups"):
        PlackettLuce().fit(make([[[0], [1]], [[1], [0]], [[2], [3]], [[3], [2]]]))
    level = PlackettLuce().fit(make([[[0, 1, 2]]] * 20))
    assert level.scores["score"].to_list() == pytest.approx([0, 0, 0], abs=1e-9)
    with pytest.raises(DataError, match="prior_sd"):
        PlackettLuce(prior_sd=None).fit(make([[[0], [1], [2]]] * 5))


def test_a_ranking_of_one_says_nothing_and_its_item_gets_nulls():
    fit = PlackettLuce().fit(make([[[0], [1]], [[1], [0]], [[2]]]))
    assert by_item(fit)["i002"] is None
    alone = PlackettLuce().fit(make([[[0]], [[1]]]))
    assert alone.scores["score"].to_list() == [None, None]
    assert alone.notes == ("no scores: no two items are compared in these judgments",)


def test_an_item_twice_in_one_ranking_is_refused():
    with pytest.raises(DataError, match="'i001' appears twice"):
        PlackettLuce().fit(make([[[0], [1], [1]]]))


def test_intervals_cover_when_items_come_from_the_prior():
    """40 data sets of 15 items; 95 % ± 2.7 is three standard errors of 600 independent intervals."""
    covered = []
    for seed in range(40):
        rankings = data.rankings(n=15, rows=60, size=5, seed=seed, sd=1.0)
        theta = np.random.default_rng(seed).normal(0, 1.0, 15)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SteelyardWarning)
            fit = PlackettLuce(prior_sd=1.0).fit(rankings)
        truth = theta - theta.mean()
        covered += ((scores(fit, rankings, "lower") <= truth) & (truth <= scores(fit, rankings, "upper"))).tolist()
    assert 0.915 <= np.mean(covered) <= 0.985
