"""Counting pairs, finding what they leave open, each family's derivatives, and the solvers behind the models."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from steelyard.errors import ConvergenceWarning
from steelyard.models.choices.maxdiff import MaxDiff
from steelyard.models.comparisons import paired_kernels as kernels
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.comparisons.paired import Gaps, Pairs, PairTable, expected_share, pairs_of
from steelyard.models.comparisons.paired_model import PairLikelihood, TieRule, poisson_cells
from steelyard.models.comparisons.plackett_luce import PlackettLuce
from steelyard.models.inference import laplace, newton
from steelyard.models.inference.newton_kernels import Laplacian, conjugate_gradients, fill_laplacian, neighbours
from steelyard.models.table import competition_ranks, rank_interval
from steelyard.observations import Choices, Comparisons, Index, Rankings
from tests.models import paired_data as data

FAMILIES = (kernels.LOGIT, kernels.PROBIT, kernels.RAO_KUPPER, kernels.GLENN_DAVID, kernels.DAVIDSON)


def chances(family, d, tau):
    """Win, loss and tie in plain numpy and scipy: the twin of the kernels."""
    cdf = special.expit if family in (kernels.LOGIT, kernels.RAO_KUPPER) else special.ndtr
    if family == kernels.DAVIDSON:
        parts = np.array([np.exp(d / 2), np.exp(-d / 2), np.exp(tau)])
        return parts / parts.sum()
    tau = tau if family in (kernels.RAO_KUPPER, kernels.GLENN_DAVID) else 0.0
    win, loss = cdf(d - tau), cdf(-d - tau)
    return np.array([win, loss, max(1 - win - loss, 0.0)])


def twin_value(family, d, tau, counts):
    return sum(n * np.log(p) for n, p in zip(counts, chances(family, d, tau), strict=True) if n)


@given(
    family=st.sampled_from(FAMILIES),
    d=st.floats(-4, 4),
    tau=st.floats(0.1, 2),
    counts=st.tuples(*[st.integers(0, 9)] * 3),
)
@settings(deadline=None, max_examples=150)
def test_kernel_equals_its_numpy_twin_and_its_finite_differences(family, d, tau, counts):
    if family in (kernels.LOGIT, kernels.PROBIT):
        counts = (*counts[:2], 0)
    value, slope, bend, tie_slope, cross, tie_bend = kernels.pair_terms(family, d, tau, *map(float, counts))
    assert value == pytest.approx(twin_value(family, d, tau, counts), rel=1e-9, abs=1e-9)
    h = 1e-5

    def terms(at, tie):
        return kernels.pair_terms(family, at, tie, *map(float, counts))

    def both(index):
        by_d = (terms(d + h, tau)[index] - terms(d - h, tau)[index]) / (2 * h)
        by_tau = (terms(d, tau + h)[index] - terms(d, tau - h)[index]) / (2 * h)
        return by_d, by_tau

    close = {"rel": 1e-5, "abs": 1e-5}
    assert both(0) == pytest.approx((slope, tie_slope), **close)
    assert both(1) == pytest.approx((-bend, -cross), **close)
    assert both(3) == pytest.approx((-cross, -tie_bend), **close)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("d", [-800.0, -45.0, 45.0, 800.0])
def test_kernel_stays_finite_far_out(family, d):
    counts = (1.0, 1.0, 0.0) if family in (kernels.LOGIT, kernels.PROBIT) else (1.0, 1.0, 1.0)
    assert np.isfinite(kernels.pair_terms(family, d, 0.5, *counts)).all()


def test_log_normal_cdf_agrees_with_scipy_in_both_branches():
    for x in (-300.0, -38.0, -20.001, -19.999, -3.0, 0.0, 5.0):
        assert kernels.log_normal_cdf(x) == pytest.approx(special.log_ndtr(x), rel=1e-10, abs=1e-15)


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from([-1, 0, 1])).filter(lambda r: r[0] != r[1]),
        min_size=1,
        max_size=60,
    )
)
@settings(deadline=None, max_examples=60)
def test_counting_by_table_and_by_sorting_agree_with_counting_by_hand(rows):
    left, right, outcome = (np.array(column) for column in zip(*rows, strict=True))
    pairs = Pairs(left.astype(np.int32), right.astype(np.int32), outcome.astype(np.int8), None)
    by_hand = {}
    for a, b, o in rows:
        cell = by_hand.setdefault((min(a, b), max(a, b)), [0, 0, 0])
        cell[2 if o == 0 else int((o > 0) != (a < b))] += 1
    # 5,000 items are too many cells for the dense table.
    for table in (PairTable.count(pairs, 6), PairTable.count(pairs, 5000)):
        counted = zip(table.first, table.second, table.wins, table.losses, table.ties, strict=True)
        assert {(int(i), int(j)): [w, l, t] for i, j, w, l, t in counted} == by_hand  # noqa: E741
        assert (np.take([*zip(table.first, table.second, strict=True)], table.cell_of(left, right), axis=0)
                == np.sort(np.column_stack([left, right]), axis=1)).all()  # fmt: skip


def test_a_best_worst_choice_says_five_of_the_six_pairs():
    choices = Choices(
        items=Index("abcd"),
        shown=np.array([[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, -1], [0, 1, 2, 3]], np.int32),
        best=np.array([0, 2, -1, -1], np.int32),
        worst=np.array([3, 2, 1, -1], np.int32),
    )
    left, right, outcome, row = pairs_of(choices)
    pairs = {(int(r), "abcd"[w], "abcd"[b]) for r, w, b in zip(row, left, right, strict=True)}
    first = {(0, "a", "b"), (0, "a", "c"), (0, "a", "d"), (0, "b", "d"), (0, "c", "d")}
    # The second names one item as both and says nothing; the third knows the worst alone.
    assert pairs == first | {(2, "a", "b"), (2, "c", "b")}
    assert (outcome == 1).all()


def test_a_ranking_says_the_pairs_its_comparisons_say():
    rankings = Rankings(
        items=Index("abcde"),
        start=np.array([0, 3, 5]),
        item=np.array([4, 0, 2, 1, 3], np.int32),
        rank=np.array([1, 2, 2, 2, 1], np.int32),
    )
    ours, theirs = pairs_of(rankings), rankings.to_comparisons()
    assert ours.left.tolist() == theirs.left.tolist()
    assert ours.right.tolist() == theirs.right.tolist()
    assert ours.outcome.tolist() == theirs.outcome.tolist()


def test_gaps_name_islands_and_groups_never_beaten_or_never_winning():
    # a ↔ b beat c ↔ d; e and f stand apart, f beaten.
    winner = np.array([0, 1, 0, 2, 3, 4], np.int32)
    loser = np.array([1, 0, 2, 3, 2, 5], np.int32)
    gaps = Gaps.find(winner, loser, list("abcdef"))
    assert sorted(map(sorted, gaps.islands)) == [["a", "b", "c", "d"], ["e", "f"]]
    assert sorted(map(sorted, gaps.top)) == [["a", "b"], ["e"]]
    assert sorted(map(sorted, gaps.bottom)) == [["c", "d"], ["f"]]
    assert not gaps.finite_without_prior
    assert "'e'" in " ".join(gaps.sentences())


def test_a_dense_tournament_has_no_gaps_and_one_undefeated_item_is_found_in_it():
    n = 12
    every = np.array(list(itertools.permutations(range(n), 2)), np.int32)
    many = np.tile(every, (60, 1))
    names = [f"i{code}" for code in range(n)]
    assert Gaps.find(many[:, 0], many[:, 1], names).finite_without_prior
    without = many[many[:, 1] != 7]
    assert Gaps.find(without[:, 0], without[:, 1], names).top == [["i7"]]


def test_a_long_list_of_gaps_is_cut_short():
    winner, loser = np.arange(0, 40, 2, dtype=np.int32), np.arange(1, 40, 2, dtype=np.int32)
    sentences = Gaps.find(winner, loser, [f"i{code}" for code in range(40)]).sentences()
    assert sentences == [
        "the items form 20 groups, such as sources, that were never compared with one another, so the judgments do not "
        "determine the order of items of different groups"
    ]


def test_expected_share_on_the_grid_equals_the_double_sum():
    theta = np.random.default_rng(3).normal(0, 2, 900)
    exact = (special.expit(theta[:, None] - theta).sum(axis=1) - 0.5) / 899
    assert expected_share(theta, special.expit) == pytest.approx(exact, abs=1e-5)


def test_rank_intervals_equal_ranks_taken_one_draw_at_a_time():
    rng = np.random.default_rng(5)
    draws = rng.integers(0, 4, (200, 9)).astype(float)
    draws[rng.random(draws.shape) < 0.1] = np.nan
    score = np.r_[rng.normal(size=8), np.nan]
    ranks = np.array([competition_ranks(np.where(np.isnan(draw), score, draw)) for draw in draws])
    lower, upper = np.quantile(ranks, [0.025, 0.975], axis=0, method="nearest")
    own = competition_ranks(score)
    ours = rank_interval(score, draws)
    assert ours[0].tolist() == np.minimum(lower, own).tolist()
    assert ours[1].tolist() == np.maximum(upper, own).tolist()


def make_likelihood(n=30, rows=400, seed=0, ties=0.2):
    rng = np.random.default_rng(seed)
    left = rng.integers(0, n, rows).astype(np.int32)
    right = ((left + rng.integers(1, n, rows)) % n).astype(np.int32)
    theta = rng.normal(size=n)
    outcome = np.where(rng.random(rows) < special.expit(theta[left] - theta[right]), 1, -1).astype(np.int8)
    outcome[rng.random(rows) < ties] = 0
    pairs = Pairs(left, right, outcome, None)
    rule = TieRule(kernels.DAVIDSON if ties else kernels.LOGIT)
    return PairLikelihood(PairTable.count(pairs, n), rule, pairs, anchor=True)


@pytest.mark.slow
def test_conjugate_gradients_solve_what_a_dense_solver_solves():
    likelihood = make_likelihood()
    n, weight = likelihood.n_items, likelihood.at(np.zeros(likelihood.n_items), 0.0).weight
    upper = fill_laplacian(likelihood.first, likelihood.second, weight, n)
    matrix = upper + np.triu(upper, 1).T + 0.3 * np.eye(n)
    right = np.random.default_rng(1).normal(size=(n, 4))
    laplacian = Laplacian(likelihood.first, likelihood.second, weight, np.diag(matrix).copy())
    solved = conjugate_gradients(laplacian, right, 1e-12, 1000)
    assert solved == pytest.approx(np.linalg.solve(matrix, right), abs=1e-9)
    off = np.diag(np.diag(matrix)) - matrix
    assert neighbours(likelihood.first, likelihood.second, weight, right) == pytest.approx(off @ right)


@pytest.mark.slow
def test_many_items_go_another_way_to_the_same_scores_and_spread(monkeypatch):
    likelihood = make_likelihood()
    dense = newton.maximise(likelihood, prior_sd=1.5)
    exact = laplace.posterior(likelihood, dense, 4000, 0)
    monkeypatch.setattr(newton, "DENSE_ITEMS", 0)
    monkeypatch.setattr(laplace, "DENSE_ITEMS", 0)
    monkeypatch.setattr(laplace, "ITERATIVE_DRAWS", 4000)
    iterative = newton.maximise(likelihood, prior_sd=1.5)
    rough = laplace.posterior(likelihood, iterative, 4000, 0)
    assert iterative.theta == pytest.approx(dense.theta, abs=1e-6)
    assert iterative.tie == pytest.approx(dense.tie, abs=1e-6)
    # 4,000 draws leave 1.1 % in an sd, and less after Rao–Blackwell; holding the tie parameter costs a little.
    assert rough.sd == pytest.approx(exact.sd, rel=0.03)
    assert np.corrcoef(rough.draws.T) == pytest.approx(np.corrcoef(exact.draws.T), abs=0.1)


def test_sandwich_of_many_items_agrees_with_the_dense_one(monkeypatch):
    likelihood = make_likelihood()
    estimate = newton.maximise(likelihood, prior_sd=1.5)
    units = laplace.Units("judgments", (), np.arange(400, dtype=np.int32))
    exact = laplace.sandwich(likelihood, estimate, estimate, units, 20, 0)
    monkeypatch.setattr(laplace, "DENSE_ITEMS", 0)
    rough = laplace.sandwich(likelihood, estimate, estimate, units, 4000, 0)
    assert rough.sd == pytest.approx(exact.sd, rel=0.06)


def test_sandwich_of_independent_judgments_is_close_to_the_posterior():
    # Without ties: random ones would not be Davidson's, and the sandwich rightly differs under a wrong model.
    likelihood = make_likelihood(n=8, rows=20_000, ties=0)
    estimate = newton.maximise(likelihood, prior_sd=2.0)
    units = laplace.Units("judgments", (), np.arange(20_000, dtype=np.int32))
    ratio = (
        laplace.sandwich(likelihood, estimate, estimate, units, 20, 0).sd
        / laplace.posterior(likelihood, estimate, 20, 0).sd
    )
    assert ratio == pytest.approx(np.ones(8), abs=0.06)


def test_a_search_cut_short_is_loud():
    comparisons = Comparisons(
        items=Index("abc"),
        left=np.array([0, 1, 2, 0, 0], np.int32),
        right=np.array([1, 2, 0, 1, 2], np.int32),
        outcome=np.array([1, 1, 1, 1, 1], np.int8),
    )
    with pytest.warns(ConvergenceWarning, match="1 iterations"):
        fit = BradleyTerry(max_iterations=1).fit(comparisons)
    assert not fit.converged


LIKELIHOODS = {
    "pairs": lambda: make_likelihood(n=6, rows=60),
    "rankings": lambda: PlackettLuce()._prepare(data.rankings(n=6, rows=20, size=4, tiers=3)).likelihood,
    "choices": lambda: MaxDiff()._prepare(data.choices(n=6, rows=20)).likelihood,
}


@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_skew_is_the_gradient_of_the_weighted_curvature(kind):
    likelihood = LIKELIHOODS[kind]()
    rng = np.random.default_rng(0)
    theta, variance = rng.normal(size=6), rng.random(len(likelihood.first))
    h = 1e-4
    skew = likelihood.skew(theta, 0.3, variance)
    for code in range(6):
        step = h * np.eye(6)[code]
        up, down = (likelihood.at(theta + sign * step, 0.3).weight @ variance for sign in (1, -1))
        assert skew[code] == pytest.approx(-(up - down) / (4 * h), abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_perturbations_have_the_curvature_as_covariance(kind):
    likelihood = LIKELIHOODS[kind]()
    theta = np.random.default_rng(0).normal(size=6)
    noise = likelihood.perturbations(theta, 0.3, 20_000, np.random.default_rng(1))
    upper = fill_laplacian(likelihood.first, likelihood.second, likelihood.at(theta, 0.3).weight, 6)
    matrix = upper + np.triu(upper, 1).T
    # A variance from 20,000 draws is right to 1 %; five of those for the largest of 36 entries.
    assert np.cov(noise) == pytest.approx(matrix, abs=0.05 * np.diag(matrix).max())


@pytest.mark.slow
@pytest.mark.parametrize(("wins", "losses"), [(1, 0), (3, 0), (10, 0), (6, 1), (20, 2)])
def test_a_settled_interval_holds_its_share_of_the_exact_posterior(wins, losses):
    """Two items: the difference has prior N(0, 2 · 2²), and its posterior can be integrated on a grid."""
    counts = (np.array([float(wins)]), np.array([float(losses)]), np.zeros(1))
    likelihood = PairLikelihood(PairTable(2, np.zeros(1, np.int32), np.ones(1, np.int32), *counts), TieRule(0))
    d = np.linspace(-40, 40, 80_001)
    log_density = wins * special.log_expit(d) + losses * special.log_expit(-d) - d**2 / 16
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    mean = (d * density).sum()
    mode = newton.maximise(likelihood, prior_sd=2.0)
    settled, _ = laplace.settle(likelihood, mode)
    before, after = (abs(at.theta[0] - at.theta[1] - mean) for at in (mode, settled))
    assert after < 0.5 * before
    # A centred score is half the difference.
    half = 2 * 1.96 * laplace.posterior(likelihood, settled, 20, 0).sd[0]
    mass = density[np.abs(d - (settled.theta[0] - settled.theta[1])) < half].sum()
    assert 0.94 < mass < 0.975


def test_nothing_settles_without_a_prior_or_with_plenty_of_data():
    likelihood = make_likelihood(n=6, rows=400)
    free = newton.maximise(likelihood, prior_sd=None)
    assert laplace.settle(likelihood, free)[0] is free
    plenty = make_likelihood(n=4, rows=40_000, ties=0)
    sharp = newton.maximise(plenty, prior_sd=2.0)
    assert laplace.settle(plenty, sharp)[0] is sharp


def test_tabled_poisson_draws_follow_the_poisson_distribution(monkeypatch):
    mean = np.repeat([0.0, 1.0, 7.0, 60.0], 20_000)
    (drawn,) = poisson_cells(mean, 1, np.random.default_rng(0))
    for value in (1.0, 7.0, 60.0):
        ours = drawn[mean == value]
        # Kolmogorov–Smirnov's 99.9 % bound, 1.95/√n, is generous for steps.
        steps = np.arange(120)
        empirical = (ours[:, None] <= steps).mean(axis=0)
        assert np.abs(empirical - special.pdtr(steps, value)).max() < 1.95 / np.sqrt(20_000)
    assert (drawn[mean == 0] == 0).all()
    monkeypatch.setattr("steelyard.models.comparisons.paired_model.TABLED_MEANS", 1)
    (plain,) = poisson_cells(mean, 1, np.random.default_rng(0))
    assert plain[mean == 60].mean() == pytest.approx(60, abs=0.3)


def test_ties_are_unbounded_exactly_where_scores_separate_wins_from_ties():
    rng = np.random.default_rng(4)
    first, second = (side.astype(np.int32) for side in np.triu_indices(4, 1))
    n_unbounded = 0
    for _ in range(150):
        wins, losses, ties = (np.where(rng.random(6) < p, 1.0, 0.0) for p in (0.35, 0.1, 0.3))
        table = PairTable(4, first, second, wins, losses, ties)
        # Scores δ with δᵢ − δⱼ ≥ 1 where i beat j, and |δᵢ − δⱼ| ≤ 1 where they tied: a linear programme.
        rows, bounds = [], []
        for place, (one, other) in enumerate(zip(first, second, strict=True)):
            gap = np.zeros(4)
            gap[one], gap[other] = 1, -1
            rows += [-gap] * bool(wins[place]) + [gap] * bool(losses[place]) + [gap, -gap] * bool(ties[place])
            bounds += [-1] * bool(wins[place]) + [-1] * bool(losses[place]) + [1, 1] * bool(ties[place])
        if not rows:
            continue
        feasible = optimize.linprog(np.zeros(4), np.array(rows), bounds, bounds=(None, None)).status == 0
        assert table.allows_unbounded_ties() == feasible
        n_unbounded += feasible
    assert 20 < n_unbounded < 130
