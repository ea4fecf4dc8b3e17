"""SampleByMatchQuality draws from exactly the distribution of Algorithm 1, however it does it."""

from __future__ import annotations

from itertools import combinations, permutations
from math import exp, prod, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steelyard.designs.match_quality.kernels import RoundItems, draw_round
from steelyard.designs.match_quality.selection import (
    FLOOR,
    PartnerPool,
    draw_by_rejection,
    draw_in_proportion,
    sample_round,
    set_probability,
    top_heads,
)
from steelyard.models.comparisons.bounded_ranking import BoundedRanking
from steelyard.models.comparisons.trueskill import SkillState, TrueSkill
from steelyard.models.ratings.easl import EASL, BetaState
from steelyard.observations import Comparisons, Index

N, SIZE, GAMMA = 9, 3, 0.1


def uneven_state(model: str) -> BetaState | SkillState:
    """What a model makes of a few answers about nine items, no two of them alike."""
    rng = np.random.default_rng(4)
    if model == "easl":
        item = np.r_[np.arange(N), rng.integers(0, N, 3 * N)].astype(np.int32)
        return EASL().update(EASL().start(N), item, rng.random(len(item)))
    # The item of lower number mostly wins.
    left, right = rng.integers(0, N, (2, 400 if model == "bounded_ranking" else 40)).astype(np.int32)
    left, right = left[left != right], right[left != right]
    won = np.where((left < right) ^ (rng.random(len(left)) < 0.2), 1, -1).astype(np.int8)
    matches = Comparisons(items=Index(map(str, range(N))), left=left, right=right, outcome=won)
    if model == "bounded_ranking":
        ranking = BoundedRanking()
        return ranking.update(ranking.start(N), matches)
    skill = TrueSkill(gamma=GAMMA, epsilon=GAMMA)
    return skill.update(skill.start(N), matches)


def round_items(state: BetaState | SkillState, is_head: np.ndarray, gamma: float = GAMMA) -> RoundItems:
    return RoundItems(state.mode, state.variance, is_head, 2 * gamma**2, FLOOR)


def by_equation_23(state: BetaState | SkillState, i: int, j: int, gamma: float = GAMMA) -> float:
    c2 = 2 * gamma**2 + float(state.variance[i]) + float(state.variance[j])
    return sqrt(2 * gamma**2 / c2) * exp(-((float(state.mode[i]) - float(state.mode[j])) ** 2) / (2 * c2))


def enumerated(weights: dict[int, float], count: int) -> dict[tuple[int, ...], float]:
    """Every ordered draw without replacement, and its probability."""
    result = {}
    for order in permutations(weights, count):
        chance = 1.0
        for place, other in enumerate(order):
            chance *= weights[other] / sum(weights[j] for j in weights if j not in order[:place])
        result[order] = chance
    return result


def algorithm_1(state: BetaState | SkillState, gamma: float = GAMMA) -> dict[tuple[int, ...], float]:
    """Every task of a round as head and partners in the order drawn, each head's tasks adding up to 1."""
    heads = np.argsort(-state.variance)[: N // SIZE].tolist()
    outside = [item for item in range(N) if item not in heads]
    return {
        (head, *order): chance
        for head in heads
        for order, chance in enumerated({j: by_equation_23(state, head, j, gamma) for j in outside}, SIZE - 1).items()
    }


def chi2_p(tasks: np.ndarray, expected: dict[tuple[int, ...], float]) -> float:
    codes = tasks @ (N ** np.arange(tasks.shape[1]))
    cells = np.array(list(expected)) @ (N ** np.arange(tasks.shape[1]))
    seen_sets, counts = np.unique(codes, return_counts=True)
    assert set(seen_sets) <= set(cells), "a task that Algorithm 1 never makes"
    counts_ = np.zeros(len(cells))
    counts_[np.searchsorted(np.sort(cells), seen_sets)] = counts
    chance = np.array(list(expected.values()))[np.argsort(cells)]
    return float(stats.chisquare(counts_, chance / chance.sum() * len(tasks)).pvalue)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["easl", "bounded_ranking", "trueskill"])
def test_a_million_tasks_follow_the_exact_distribution_of_algorithm_1(model):
    state = uneven_state(model)
    assert len(set(state.variance.tolist())) == N
    tasks = sample_round(state, SIZE, GAMMA, np.random.default_rng(1), tasks=1_000_000)
    assert chi2_p(tasks, algorithm_1(state)) > 0.001
    # A tenth more γ would be noticed.
    assert chi2_p(tasks, algorithm_1(state, gamma=1.1 * GAMMA)) < 1e-9


@pytest.mark.parametrize("proposals", [0, 2, 5])
def test_tasks_drawn_from_all_weights_follow_it_too(proposals):
    state = uneven_state("trueskill")
    heads = np.argsort(-state.variance)[: N // SIZE].astype(np.int32)
    is_head = np.isin(np.arange(N), heads)
    tasks = np.empty((300_000, SIZE), np.int32)
    items = round_items(state, is_head)
    draw_round(items, np.resize(heads, len(tasks)), proposals, np.random.default_rng(2), tasks)
    assert chi2_p(tasks, algorithm_1(state)) > 0.001


def twin(state, is_head, heads, gamma, proposals, rng, size):
    """The kernel, line by line in plain numpy."""
    n = len(state.mode)
    tasks = []
    for head in heads.tolist():
        quality = np.array([max(by_equation_23(state, head, j, gamma), FLOOR) for j in range(n)])
        most = max(sqrt(2 * gamma**2 / (2 * gamma**2 + state.variance[head] + state.variance.min())), FLOOR)
        partners: list[int] = []
        for _ in range(proposals):
            if len(partners) == size - 1:
                break
            other, luck = int(rng.random() * n), rng.random()
            if not is_head[other] and luck * most < quality[other] and other not in partners:
                partners.append(other)
        weights = np.where(is_head, 0, quality)
        weights[partners] = 0
        while len(partners) < size - 1:
            mark = rng.random() * weights.sum()
            partners.append(int(np.flatnonzero(np.cumsum(weights) > mark)[0]))
            weights[partners[-1]] = 0
        tasks.append([head, *partners])
    return np.array(tasks, np.int32)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(5, 30),
    st.integers(1, 5),
    st.sampled_from([0, 3, 40, 1000]),
    st.sampled_from([0.01, 0.1, 2.0]),
)
def test_the_kernel_draws_what_its_numpy_twin_draws(seed, n, size, proposals, gamma):
    rng = np.random.default_rng(seed)
    state = SkillState(rng.normal(size=n), rng.uniform(0.001, 1, n))
    heads = top_heads(state.variance, max(n // size, 1), rng)
    is_head = np.isin(np.arange(n), heads)
    tasks = np.empty((len(heads), size), np.int32)
    drawing, again = np.random.default_rng(seed), np.random.default_rng(seed)
    draw_round(round_items(state, is_head, gamma), heads, proposals, drawing, tasks)
    assert tasks.tolist() == twin(state, is_head, heads, gamma, proposals, again, size).tolist()
    assert drawing.random() == again.random()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["easl", "trueskill"])
@pytest.mark.parametrize("least", ["exact", 0.0])
def test_lazy_rejection_follows_the_exact_distribution(model, least):
    state = uneven_state(model)
    expected = algorithm_1(state)
    head = next(iter(expected))[0]
    heads = [task[0] for task in expected]
    bound = float(state.variance.min()) if least == "exact" else least
    rng = np.random.default_rng(3)

    def outside(items):
        return ~np.isin(items, heads)

    pool = PartnerPool(state, N, bound, GAMMA, outside)
    tasks = np.array([[head, *draw_by_rejection(pool, head, SIZE - 1, rng)] for _ in range(8_000)])
    assert chi2_p(tasks, {task: chance for task, chance in expected.items() if task[0] == head}) > 0.001


@pytest.mark.slow
def test_a_head_far_from_all_others_is_served_by_the_scan_with_the_same_distribution():
    """At a distance of 1.5 with c² = 0.04, one proposal in 10¹² would be taken."""
    state = SkillState(np.r_[1.8, np.linspace(-0.3, 0.3, N - 1)], np.full(N, 0.01))
    weights = {j: by_equation_23(state, 0, j) for j in range(1, N)}
    assert max(weights.values()) < 1e-11
    rng = np.random.default_rng(6)
    pool = PartnerPool(state, N, 0.01, GAMMA, lambda items: items != 0)
    tasks = np.array([[0, *draw_by_rejection(pool, 0, SIZE - 1, rng)] for _ in range(8_000)])
    expected = {(0, *order): chance for order, chance in enumerated(weights, SIZE - 1).items()}
    counts = dict.fromkeys(expected, 0)
    for task in tasks.tolist():
        counts[tuple(task)] += 1
    # Most of the weight is with the nearest two; the many unlikely draws are taken together.
    likely = [order for order, chance in expected.items() if chance * len(tasks) >= 5]
    counts_ = [counts[order] for order in likely] + [len(tasks) - sum(counts[order] for order in likely)]
    chances = [expected[order] for order in likely] + [1 - sum(expected[order] for order in likely)]
    assert stats.chisquare(counts_, np.array(chances) * len(tasks)).pvalue > 0.001


def test_qualities_too_small_for_a_number_still_give_different_partners():
    state = SkillState(np.array([0.0, 50, 51, 52, 53]), np.full(5, 1e-6))
    heads = np.array([0], np.int32)
    tasks = np.empty((1, 4), np.int32)
    is_head = np.array([True, False, False, False, False])
    draw_round(round_items(state, is_head), heads, 100, np.random.default_rng(0), tasks)
    pool = PartnerPool(state, 5, 1e-6, GAMMA, lambda items: items != 0)
    lazy = draw_by_rejection(pool, 0, 3, np.random.default_rng(0))
    for partners in (tasks[0, 1:].tolist(), lazy):
        assert len(set(partners)) == 3
        assert 0 not in partners


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 7), st.integers(1, 5), st.sampled_from([0.1, 3.0, 30.0]))
def test_the_probability_of_a_set_is_the_sum_over_its_orders(seed, n, count, spread):
    rng = np.random.default_rng(seed)
    count = min(count, n)
    weights = np.exp(-spread * rng.random(n))
    ordered = enumerated(dict(enumerate(weights.tolist())), count)
    sets = np.array(list(combinations(range(n), count)))
    rest = np.array([np.delete(weights, members).sum() for members in sets])
    result = set_probability(weights[sets], rest)
    expected = [sum(ordered[order] for order in permutations(members)) for members in sets.tolist()]
    assert result == pytest.approx(expected, rel=1e-9, abs=1e-300)
    assert result.sum() == pytest.approx(1, rel=1e-9)


def test_large_tasks_have_exact_probabilities_too():
    """Of equal weights every set is as likely as the others."""
    from math import comb

    result = set_probability(np.ones((1, 30)), np.array([10.0]))[0]
    assert result == pytest.approx(1 / comb(40, 30), rel=1e-9)


def test_draws_in_proportion_never_repeat_and_pass_over_what_weighs_nothing():
    rng = np.random.default_rng(0)
    weights = np.array([0.0, 1e-300, 1.0, 0.0, 1e-12])
    for _ in range(200):
        assert sorted(draw_in_proportion(weights, 3, rng)) == [1, 2, 4]


def test_heads_are_the_highest_variances_in_falling_order():
    variance = np.random.default_rng(0).random(100)
    heads = top_heads(variance, 20, np.random.default_rng(1))
    assert heads.tolist() == np.argsort(-variance)[:20].tolist()


@pytest.mark.slow
def test_equals_become_heads_equally_often():
    """Two are surely heads; the three places left go to ten equals, each in 3 of 10 rounds, in any order."""
    variance = np.array([0.05, 0.09, *[0.07] * 10, 0.08])
    rng = np.random.default_rng(2)
    rounds = np.array([top_heads(variance, 5, rng) for _ in range(8_000)])
    assert (rounds[:, 0] == 1).all()
    assert (rounds[:, 1] == 12).all()
    for place in (2, 3, 4):
        assert stats.chisquare(np.bincount(rounds[:, place], minlength=12)[2:12]).pvalue > 0.001


def test_on_a_flat_state_all_items_are_heads_and_partners_equally_often():
    state = EASL().start(40)
    rng = np.random.default_rng(8)
    tasks = np.concatenate([sample_round(state, 5, GAMMA, rng) for _ in range(2000)])
    assert tasks.shape == (16_000, 5)
    # Within a round nobody is head twice, so that counts vary less than χ² allows: only too much is a fault.
    for place in range(5):
        counts = np.bincount(tasks[:, place], minlength=40)
        assert ((counts - 400) ** 2 / 400).sum() < stats.chi2.ppf(0.999, 39)


@pytest.mark.parametrize(("n", "size", "expected"), [(150, 5, 30), (13, 5, 2), (7, 5, 1), (5, 5, 1), (9, 1, 9)])
def test_a_round_has_n_by_size_tasks_rounded_down_and_at_least_one(n, size, expected):
    tasks = sample_round(EASL().start(n), size, GAMMA, np.random.default_rng(0))
    assert tasks.shape == (expected, size)
    assert len(np.unique(tasks[:, 0])) == expected
    assert all(len(set(task)) == size for task in tasks.tolist())
    assert not set(tasks[:, 0].tolist()) & set(tasks[:, 1:].ravel().tolist())


def test_fewer_tasks_have_fewer_heads_and_more_tasks_take_heads_again():
    state = uneven_state("easl")
    falling = np.argsort(-state.variance).tolist()
    few = sample_round(state, SIZE, GAMMA, np.random.default_rng(0), tasks=2)
    assert few[:, 0].tolist() == falling[:2]
    many = sample_round(state, SIZE, GAMMA, np.random.default_rng(0), tasks=7)
    assert many[:, 0].tolist() == [*falling[:3], *falling[:3], falling[0]]


def test_weights_of_the_sampler_are_the_match_quality_of_the_paper():
    from steelyard.designs.match_quality.selection import qualities

    state = uneven_state("bounded_ranking")
    result = qualities(state, 0, np.arange(1, N), GAMMA)
    assert result == pytest.approx([by_equation_23(state, 0, j) for j in range(1, N)])
    assert prod(result.tolist()) > 0
