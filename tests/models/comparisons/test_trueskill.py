"""TrueSkill against its equations, numerical integration, the trueskill package, and skills drawn from its prior."""

from __future__ import annotations

from math import erf, exp, pi, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steelyard.errors import DataError, SteelyardWarning
from steelyard.models.comparisons.match_quality import match_quality
from steelyard.models.comparisons.trueskill import SkillState, TrueSkill
from steelyard.models.comparisons.truncated_gaussian import mills_ratio, tie_moments, win_moments
from steelyard.observations import Comparisons, Index, Rankings, Ratings
from tests.models.online_cases import (
    batches_of,
    check_intervals,
    comparisons_of,
    quiet_fit,
    random_comparisons,
    relabelled,
    some_comparisons,
)


def density(x: float) -> float:
    return exp(-x * x / 2) / sqrt(2 * pi)


def below(x: float) -> float:
    return (1 + erf(x / sqrt(2))) / 2


def integrated_moments(t: float, low: float, high: float) -> tuple[float, float]:
    """v and w from the integrals of N(t, 1) between two bounds, scaled by the density where it is highest."""
    top = min(max(t, low), high)
    # In a tail the density falls by e over 1/|top − t|, so that is the length to look at.
    length = 40 / max(3.0, abs(top - t))
    edges = np.unique(
        np.concatenate([np.linspace(max(low, top - length), top, 41), np.linspace(top, min(high, top + length), 41)])
    )
    node, weight = np.polynomial.legendre.leggauss(30)
    half = np.diff(edges)[:, None] / 2
    d = edges[:-1, None] + half * (1 + node)
    tall = half * weight * np.exp(-((d - t) ** 2 - (top - t) ** 2) / 2)

    def moment(power: int) -> float:
        return float(((d - top) ** power * tall).sum())

    mass, mean, square = moment(0), moment(1), moment(2)
    mean, square = mean / mass, square / mass
    return top + mean - t, 1 - (square - mean**2)


@pytest.mark.parametrize("x", [-300.0, -40.0, -36.1, -35.9, -20.0, -8.5, -3.0, -0.5, 0.0, 1.0, 6.0])
def test_the_moments_of_a_win_are_those_of_the_cut_off_gaussian(x: float) -> None:
    v, w = integrated_moments(x, 0, np.inf)
    assert win_moments(x) == pytest.approx((v, w), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("t", [0.0, 0.3, -0.3, 1.5, -4.0, 9.0, -20.0, 45.0, -200.0])
@pytest.mark.parametrize("epsilon", [1e-5, 9e-5, 2e-4, 0.05, 0.5, 3.0])
def test_the_moments_of_a_tie_are_those_of_the_gaussian_between_two_bounds(t: float, epsilon: float) -> None:
    v, w = integrated_moments(t, -epsilon, epsilon)
    moments = tie_moments(t, epsilon)
    assert moments[0] == pytest.approx(v, rel=1e-7, abs=1e-7)
    assert moments[1] == pytest.approx(w, abs=1e-6)


def test_v_and_w_are_equations_5_6_9_and_10_where_those_do_not_underflow() -> None:
    for t in (-2.0, -0.4, 0.0, 1.1):
        for e in (0.02, 0.7):
            v = density(t - e) / below(t - e)
            assert win_moments(t - e) == pytest.approx((v, v * (v + t - e)), rel=1e-12)
            mass = below(e - t) - below(-e - t)
            v = (density(-e - t) - density(e - t)) / mass
            w = v**2 + ((e - t) * density(e - t) + (e + t) * density(e + t)) / mass
            assert tie_moments(t, e) == pytest.approx((v, w), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("t", [1e3, 1e6, 1e12, 1e150])
def test_a_hopeless_surprise_moves_the_mean_all_the_way_and_overflows_nothing(t: float) -> None:
    assert win_moments(-t) == pytest.approx((t, 1.0), rel=1e-5)
    for epsilon in (0.0, 1e-6, 0.1, 2.0):
        assert tie_moments(t, epsilon) == pytest.approx((-t, 1.0), rel=1e-2)
        assert tie_moments(-t, epsilon) == pytest.approx((t, 1.0), rel=1e-2)
    assert win_moments(t) == (0.0, 0.0)
    assert mills_ratio(t) == pytest.approx(1 / t, rel=1e-5)
    assert tie_moments(0.0, t) == (0.0, 0.0)


def test_one_win_and_one_tie_follow_equations_3_to_8() -> None:
    model = TrueSkill(gamma=0.3, epsilon=0.2)
    before = SkillState(np.array([0.4, -0.1]), np.array([0.9, 0.25]))
    c2 = 2 * 0.3**2 + 0.9 + 0.25
    c = sqrt(c2)
    for outcome in (1, -1, 0):
        sign = -1 if outcome == -1 else 1
        t, e = sign * 0.5 / c, 0.2 / c
        v, w = tie_moments(t, e) if outcome == 0 else win_moments(t - e)
        after = model.update(before, comparisons_of([("a", "b", outcome)]))
        assert after.mu == pytest.approx([0.4 + sign * 0.9 / c * v, -0.1 - sign * 0.25 / c * v])
        assert after.variance == pytest.approx([0.9 * (1 - 0.9 / c2 * w), 0.25 * (1 - 0.25 / c2 * w)])


def test_skills_equal_those_of_the_trueskill_package_for_wins_and_draws() -> None:
    trueskill = pytest.importorskip("trueskill")
    peer = trueskill.TrueSkill(mu=25, sigma=25 / 3, beta=25 / 6, tau=0, draw_probability=0.2)
    margin = trueskill.calc_draw_margin(0.2, 2, peer)
    matches = random_comparisons(300, 8, seed=1)
    theirs = [peer.create_rating() for _ in range(8)]
    for left, right, outcome in zip(matches.left, matches.right, matches.outcome, strict=True):
        i, j = (right, left) if outcome < 0 else (left, right)
        theirs[i], theirs[j] = trueskill.rate_1vs1(theirs[i], theirs[j], drawn=bool(outcome == 0), env=peer)
    model = TrueSkill(mu=25, sigma=25 / 3, gamma=25 / 6, epsilon=margin)
    ours = model.update(model.start(8), matches)
    assert ours.mu == pytest.approx([r.mu for r in theirs], abs=1e-6)
    assert np.sqrt(ours.variance) == pytest.approx([r.sigma for r in theirs], abs=1e-6)
    quality = [trueskill.quality_1vs1(theirs[0], theirs[j], env=peer) for j in range(1, 8)]
    assert match_quality(ours, 0, np.arange(1, 8), 25 / 6) == pytest.approx(quality, rel=1e-6)


def plain_pass(model: TrueSkill, comparisons: Comparisons) -> SkillState:
    """The numpy twin: natural parameters of every update of a mini-batch, added up."""
    state = model.start(len(comparisons.items))
    for batch in batches_of(comparisons):
        precision, shift = 1 / state.variance, state.mu / state.variance
        for left, right, outcome in batch:
            alone = _one_update(model, state, *((right, left) if outcome < 0 else (left, right)), outcome == 0)
            precision = precision + 1 / alone.variance - 1 / state.variance
            shift = shift + alone.mu / alone.variance - state.mu / state.variance
        state = SkillState(shift / precision, 1 / precision)
    return state


def _one_update(model: TrueSkill, state: SkillState, i: int, j: int, tie: bool) -> SkillState:
    mu, variance = state.mu.copy(), state.variance.copy()
    c = sqrt(2 * model.gamma**2 + variance[i] + variance[j])
    t, e = (mu[i] - mu[j]) / c, model.epsilon / c
    low, high = (-e, e) if tie else (e, np.inf)
    cut = stats.truncnorm(low - t, high - t)
    v, w = cut.mean(), 1 - cut.var()
    for item, sign in ((i, 1), (j, -1)):
        mu[item] += sign * state.variance[item] / c * v
        variance[item] *= 1 - state.variance[item] / c**2 * w
    return SkillState(mu, variance)


@settings(max_examples=40, deadline=None)
@given(some_comparisons())
def test_the_compiled_pass_equals_its_plain_twin(comparisons: Comparisons) -> None:
    model = TrueSkill()
    ours, plain = model.update(model.start(len(comparisons.items)), comparisons), plain_pass(model, comparisons)
    assert ours.mu == pytest.approx(plain.mu, abs=1e-6)
    assert ours.variance == pytest.approx(plain.variance, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(some_comparisons(), st.floats(0, 2))
def test_no_comparison_ever_increases_a_variance(comparisons: Comparisons, epsilon: float) -> None:
    model = TrueSkill(epsilon=epsilon)
    before = model.start(len(comparisons.items))
    after = model.update(before, comparisons)
    assert (after.variance <= before.variance).all()
    assert (after.variance > 0).all()
    assert np.isfinite(after.mu).all()


@settings(max_examples=40, deadline=None)
@given(some_comparisons(), st.randoms(use_true_random=False))
def test_relabelling_the_items_permutes_the_skills(comparisons: Comparisons, random: object) -> None:
    order = list(range(len(comparisons.items)))
    random.shuffle(order)  # type: ignore[attr-defined]
    model = TrueSkill()
    one = model.update(model.start(len(order)), comparisons)
    two = model.update(model.start(len(order)), relabelled(comparisons, order))
    assert two.mu[order] == pytest.approx(one.mu, abs=1e-12)


def test_within_a_task_the_order_does_not_matter_and_the_variance_stays_positive() -> None:
    pairs = [("a", "b", 1), ("a", "c", 1), ("a", "d", 1), ("a", "e", 1), ("b", "c", 0), ("d", "e", -1)]
    model = TrueSkill()
    one = model.update(model.start(5), comparisons_of(pairs, task=["t"] * 6))
    two = model.update(model.start(5), comparisons_of(pairs[::-1], task=["t"] * 6))
    assert one.mu == pytest.approx(two.mu, abs=1e-14)
    assert one.variance == pytest.approx(two.variance, abs=1e-14)
    assert (one.variance > 0).all()


def test_a_ranking_is_one_mini_batch_of_its_pairs() -> None:
    items = Index("abc")
    ranking = Rankings(
        items=items, start=np.array([0, 3]), item=np.array([0, 1, 2], np.int32), rank=np.array([1, 2, 2], np.int32)
    )
    pairs = comparisons_of([("a", "b", 1), ("a", "c", 1), ("b", "c", 0)], task=["t"] * 3)
    one, two = (quiet_fit(TrueSkill(), observations).scores for observations in (ranking, pairs))
    assert one["score"].to_list() == two["score"].to_list()


def test_the_table_has_posterior_intervals_around_their_scores_and_shares_that_average_one_half() -> None:
    fit = TrueSkill().fit(random_comparisons(400, 12, seed=2, annotators=5))
    table = fit.scores
    assert set(table["interval"]) == {"posterior"}
    check_intervals(fit)
    assert float(table["unit_score"].mean()) == pytest.approx(0.5)  # type: ignore[arg-type]
    score = table["score"].to_numpy()
    share = [
        (stats.norm.cdf((s - score - 0.1) / sqrt(0.5)) + stats.norm.cdf((s - score + 0.1) / sqrt(0.5))) / 2
        for s in score
    ]
    assert table["unit_score"].to_numpy() == pytest.approx([(x.sum() - 0.5) / 11 for x in share])


def test_an_item_never_compared_has_no_score() -> None:
    fit = quiet_fit(TrueSkill(), comparisons_of([("a", "b", 1)], items=["a", "b", "c"]))
    assert "never beaten: 'a'" in " ".join(fit.notes)
    last = fit.scores.row(-1, named=True)
    assert last["item"] == "c"
    assert [last[k] for k in ("score", "unit_score", "sd", "lower", "upper", "interval", "rank")] == [None] * 7
    assert last["judgments"] == 0


def test_islands_are_named_in_a_warning_and_in_the_notes() -> None:
    rows = [("a", "b", 1), ("b", "a", 1), ("x", "y", 0)]
    with pytest.warns(SteelyardWarning, match="2 groups"):
        fit = TrueSkill().fit(comparisons_of(rows))
    assert "'x', 'y'" in " ".join(fit.notes)


@pytest.mark.parametrize(
    "rows",
    [
        [("a", "b", 0)] * 50,
        [("a", "b", 1)] * 1000,
        [("a", "b", 1), ("b", "c", 1), ("c", "a", 1)] * 200,
    ],
    ids=["all ties", "undefeated", "cycle"],
)
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 5.0])
def test_extremes_stay_finite(rows: list[tuple[str, str, int]], epsilon: float) -> None:
    fit = quiet_fit(TrueSkill(epsilon=epsilon), comparisons_of(rows))
    check_intervals(fit)
    assert fit.scores["lower"].null_count() == 0


@pytest.mark.slow
def test_the_note_says_when_the_margin_and_the_ties_do_not_fit() -> None:
    decided, tied = [("a", "b", 1), ("b", "a", 1)], [("a", "b", 0)]
    assert "set epsilon = 0" in " ".join(TrueSkill().fit(comparisons_of(decided)).notes)
    assert "epsilon is 0" in " ".join(TrueSkill(epsilon=0).fit(comparisons_of(tied)).notes)


def test_ratings_are_refused() -> None:
    ratings = Ratings(items=Index("a"), item=np.zeros(1, np.int32), value=np.ones(1), scale=(0, 1))
    with pytest.raises(DataError, match="trueskill needs comparisons"):
        TrueSkill().fit(ratings)  # type: ignore[arg-type]


@pytest.mark.parametrize(("items", "per_item"), [(10, 40), (40, 10)])
def test_95_percent_intervals_cover_skills_drawn_from_the_prior(items: int, per_item: int) -> None:
    """The short form of benchmarks/coverage_online.py: 60 data sets, sampling error about 1.3 %."""
    rng = np.random.default_rng(7)
    model = TrueSkill(draws=100)
    hits, ranks = [], []
    for _ in range(60):
        skill = rng.normal(size=items)
        left = rng.integers(0, items, items * per_item // 2)
        right = (left + rng.integers(1, items, len(left))) % items
        lead = skill[left] - skill[right] + rng.normal(0, model.gamma * sqrt(2), len(left))
        outcome = np.where(np.abs(lead) <= model.epsilon, 0, np.sign(lead)).astype(np.int8)
        matches = Comparisons(
            items=Index(str(i) for i in range(items)),
            left=left.astype(np.int32),
            right=right.astype(np.int32),
            outcome=outcome,
        )
        table = quiet_fit(model, matches).scores.drop_nulls("lower")
        code = table["item"].cast(int).to_numpy()
        lower, upper, low_rank, high_rank = table.select("lower", "upper", "rank_lower", "rank_upper").to_numpy().T
        hits.append(np.mean((lower <= skill[code]) & (skill[code] <= upper)))
        place = stats.rankdata(-skill)[code]
        ranks.append(np.mean((low_rank <= place) & (place <= high_rank)))
    assert 0.91 <= np.mean(hits) <= 0.98
    assert np.mean(ranks) >= 0.91
