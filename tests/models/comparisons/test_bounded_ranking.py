"""Bounded ranking against its equations by hand, and for what a bounded scale promises."""

from __future__ import annotations

from math import exp, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import SteelyardWarning
from steelyard.models.comparisons.bounded_ranking import BoundedRanking, outcome_probabilities
from steelyard.models.comparisons.match_quality import match_quality
from steelyard.models.comparisons.online import Matches
from steelyard.models.comparisons.online_kernels import MatchCounts
from steelyard.models.ratings.easl import EASL, BetaState
from steelyard.observations import Comparisons, Index
from tests.models.online_cases import (
    batches_of,
    check_intervals,
    comparisons_of,
    quiet_fit,
    random_comparisons,
    relabelled,
    some_comparisons,
)

A, B = (3.0, 2.0), (1.5, 4.0)
"""Two Betas: modes 2/3 and 1/7, variances 6/150 and 6/196.625."""
MODE_A, MODE_B = 2 / 3, 1 / 7
VAR_A, VAR_B = 6 / (25 * 6), 6 / (30.25 * 6.5)


def state_of(*betas: tuple[float, float]) -> BetaState:
    return BetaState(np.array([b[0] for b in betas]), np.array([b[1] for b in betas]))


def after(outcome: int, *betas: tuple[float, float], epsilon: float = 0.1) -> BetaState:
    return BoundedRanking(epsilon=epsilon).update(state_of(*betas), comparisons_of([("a", "b", outcome)]))


def test_mode_and_variance_are_equations_12_and_13_and_an_unknown_item_is_in_the_middle() -> None:
    state = state_of(A, B, (1.0, 1.0))
    assert state.mode == pytest.approx([MODE_A, MODE_B, 0.5])
    assert state.variance == pytest.approx([VAR_A, VAR_B, 1 / 12])


def test_a_win_adds_the_surprisal_to_the_winners_alpha_and_the_losers_beta() -> None:
    """Eq. 14–15 with Eq. 20."""
    c = sqrt(2 * 0.01 + VAR_A + VAR_B)
    expected = exp(MODE_A) / (exp(MODE_A) + exp(0.1) * exp(MODE_B))
    won = after(1, A, B)
    assert won.alpha == pytest.approx([3.0 + VAR_A / c * (1 - expected), 1.5])
    assert won.beta == pytest.approx([2.0, 4.0 + VAR_B / c * (1 - expected)])
    upset = exp(MODE_B) / (exp(MODE_B) + exp(0.1) * exp(MODE_A))
    lost = after(-1, A, B)
    assert lost.alpha == pytest.approx([3.0, 1.5 + VAR_B / c * (1 - upset)])
    assert lost.beta == pytest.approx([2.0 + VAR_A / c * (1 - upset), 4.0])


def test_a_tie_between_distant_items_draws_them_together() -> None:
    """Eq. 16–17 with Eq. 22, whichever of the two is on the left."""
    c, theta = sqrt(2 * 0.01 + VAR_A + VAR_B), exp(0.1)
    pi_a, pi_b = exp(MODE_A), exp(MODE_B)
    tie = (theta**2 - 1) * pi_a * pi_b / ((pi_a + theta * pi_b) * (theta * pi_a + pi_b))
    one, two = after(0, A, B), after(0, B, A)
    assert one.alpha == pytest.approx([3.0, 1.5 + VAR_B / c * (1 - tie)])
    assert one.beta == pytest.approx([2.0 + VAR_A / c * (1 - tie), 4.0])
    assert two.alpha[::-1] == pytest.approx(one.alpha)
    assert two.beta[::-1] == pytest.approx(one.beta)


def test_a_tie_between_close_items_makes_both_surer() -> None:
    """Eq. 18–19: with ε = 0.6 the two are close."""
    c, theta = sqrt(2 * 0.01 + VAR_A + VAR_B), exp(0.6)
    pi_a, pi_b = exp(MODE_A), exp(MODE_B)
    tie = (theta**2 - 1) * pi_a * pi_b / ((pi_a + theta * pi_b) * (theta * pi_a + pi_b))
    state = after(0, A, B, epsilon=0.6)
    assert state.alpha == pytest.approx([3.0 + VAR_A / c * (1 - tie), 1.5 + VAR_B / c * (1 - tie)])
    assert state.beta == pytest.approx([2.0 + VAR_A / c * (1 - tie), 4.0 + VAR_B / c * (1 - tie)])


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_the_chances_of_win_tie_and_loss_add_up_to_one(one: float, two: float, epsilon: float) -> None:
    win, tie, loss = outcome_probabilities(np.array([one]), np.array([two]), epsilon)
    assert win + tie + loss == pytest.approx([1.0])
    assert loss == pytest.approx(outcome_probabilities(np.array([two]), np.array([one]), epsilon)[0])


def test_match_quality_is_equation_23_and_reads_the_state_of_easl_too() -> None:
    c2 = 2 * 0.01 + VAR_A + VAR_B
    by_hand = sqrt(0.02 / c2) * exp(-((MODE_A - MODE_B) ** 2) / (2 * c2))
    assert float(match_quality(state_of(A, B), 0, 1, 0.1)) == pytest.approx(by_hand)
    easl = EASL()
    state = easl.update(easl.start(3), np.array([0, 1, 1], np.int32), np.array([0.9, 0.2, 0.4]))
    quality = match_quality(state, 0, np.array([1, 2]), 0.1)
    assert quality.shape == (2,)
    assert ((quality > 0) & (quality < 1)).all()
    assert quality[1] > quality[0], "an unknown item in the middle may be close; a known low one is not"


def plain_pass(model: BoundedRanking, comparisons: Comparisons) -> BetaState:
    state = model.start(len(comparisons.items))
    for batch in batches_of(comparisons):
        alpha, beta = state.alpha.copy(), state.beta.copy()
        mode, variance = state.mode, state.variance
        for left, right, outcome in batch:
            i, j = (right, left) if outcome < 0 else (left, right)
            c = np.sqrt(2 * model.gamma**2 + variance[i] + variance[j])
            win, tie, _ = outcome_probabilities(mode[i], mode[j], model.epsilon)
            if outcome != 0:
                alpha[i] += variance[i] / c * (1 - win)
                beta[j] += variance[j] / c * (1 - win)
                continue
            distant = abs(mode[i] - mode[j]) > model.epsilon
            for item, other in ((i, j), (j, i)):
                step = variance[item] / c * (1 - tie)
                alpha[item] += step if not distant or mode[item] < mode[other] else 0
                beta[item] += step if not distant or mode[item] > mode[other] else 0
        state = BetaState(alpha, beta)
    return state


@settings(max_examples=60, deadline=None)
@given(some_comparisons())
def test_the_compiled_pass_equals_its_plain_twin_and_nothing_ever_decreases(comparisons: Comparisons) -> None:
    model = BoundedRanking()
    start = model.start(len(comparisons.items))
    ours, plain = model.update(start, comparisons), plain_pass(model, comparisons)
    assert ours.alpha == pytest.approx(plain.alpha, rel=1e-12)
    assert ours.beta == pytest.approx(plain.beta, rel=1e-12)
    assert (ours.alpha >= start.alpha).all()
    assert (ours.beta >= start.beta).all()
    assert (ours.alpha + ours.beta).sum() > (start.alpha + start.beta).sum()
    assert ((ours.mode >= 0) & (ours.mode <= 1)).all()


def test_the_variance_may_grow_although_the_paper_says_it_cannot() -> None:
    assert state_of((1, 10)).variance == pytest.approx([0.0069], abs=5e-5)
    assert state_of((2, 10)).variance == pytest.approx([0.0107], abs=5e-5)


@settings(max_examples=30, deadline=None)
@given(some_comparisons(), st.randoms(use_true_random=False))
def test_relabelling_the_items_permutes_the_scores(comparisons: Comparisons, random: object) -> None:
    order = list(range(len(comparisons.items)))
    random.shuffle(order)  # type: ignore[attr-defined]
    model = BoundedRanking()
    one = model.update(model.start(len(order)), comparisons)
    two = model.update(model.start(len(order)), relabelled(comparisons, order))
    assert two.alpha[order] == pytest.approx(one.alpha, rel=1e-12)


def test_the_default_interval_is_resampled_and_the_betas_own_is_labelled_model() -> None:
    data = random_comparisons(300, 10, seed=3, annotators=12)
    resampled, own = BoundedRanking().fit(data), BoundedRanking(interval="model").fit(data)
    assert set(resampled.scores["interval"]) == {"bootstrap(annotators)"}
    assert set(own.scores["interval"]) == {"model"}
    assert resampled.scores["score"].to_list() == own.scores["score"].to_list()
    assert "order of the comparisons matters" in resampled.notes[0]
    for fit in (resampled, own):
        check_intervals(fit)


def test_items_judged_by_one_annotator_have_no_resampled_interval_and_the_notes_say_why() -> None:
    data = comparisons_of([("a", "b", 1), ("b", "a", 1)] * 3, annotator=["w"] * 6)
    fit = BoundedRanking().fit(data)
    assert fit.scores["lower"].null_count() == 2
    assert fit.scores["interval"].null_count() == 2
    assert any("only one of the annotators" in note for note in fit.notes)


def test_an_annotator_drawn_twice_counts_twice_in_its_mini_batch() -> None:
    data = comparisons_of([("a", "b", 1), ("b", "c", 0)], annotator=["u", "v"])
    model, matches = BoundedRanking(), Matches.of(data)
    is_compared = np.zeros(3, np.bool_)
    counts = MatchCounts(data.annotator, np.array([2, 0], np.uint8))
    resampled = model._pass(model.start(3), matches, counts, is_compared)
    twice = model.update(model.start(3), comparisons_of([("a", "b", 1)] * 2, items="abc", task=["t", "t"]))
    assert resampled.alpha == pytest.approx(twice.alpha)
    assert resampled.beta == pytest.approx(twice.beta)
    assert is_compared.tolist() == [True, True, False]


@pytest.mark.parametrize(
    "rows",
    [[("a", "b", 0)] * 60, [("a", "b", 1)] * 2000, [("a", "b", 1), ("x", "y", 1)] * 30],
    ids=["all ties", "undefeated", "islands"],
)
def test_extremes_stay_within_the_bounds(rows: list[tuple[str, str, int]]) -> None:
    for how in ("bootstrap", "model"):
        fit = quiet_fit(BoundedRanking(interval=how, draws=20), comparisons_of(rows))
        check_intervals(fit)
        assert fit.scores["score"].is_between(0, 1).all()
        if how == "model":
            assert fit.scores["lower"].null_count() == 0


def test_an_undefeated_item_is_named() -> None:
    with pytest.warns(SteelyardWarning, match="never beaten: 'best'"):
        BoundedRanking().fit(comparisons_of([("best", "b", 1), ("b", "c", 1), ("c", "b", 1)]))


def test_two_annotators_answers_to_one_task_are_two_mini_batches() -> None:
    rows = [("a", "b", 1), ("a", "b", 1), ("b", "c", 1), ("b", "c", 1)]
    interleaved = comparisons_of(rows, task=["t"] * 4, annotator=["u", "v", "u", "v"])
    in_turn = comparisons_of([rows[0], rows[2], rows[1], rows[3]], task=["1", "1", "2", "2"])
    model = BoundedRanking()
    one, two = (model.update(model.start(3), data) for data in (interleaved, in_turn))
    assert one.alpha == pytest.approx(two.alpha, rel=1e-12)
    assert one.beta == pytest.approx(two.beta, rel=1e-12)


def test_the_resampled_interval_covers_what_the_model_would_give_if_the_items_were_judged_anew() -> None:
    """The short form of benchmarks/coverage_online.py, which also shows that it does not cover the true score."""
    rng = np.random.default_rng(9)
    items, n = 15, 300
    truth = rng.uniform(0, 1, items)

    def study() -> Comparisons:
        left = rng.integers(0, items, n)
        right = (left + rng.integers(1, items, n)) % items
        win, tie, _ = outcome_probabilities(truth[left], truth[right], 0.1)
        u = rng.random(n)
        return Comparisons(
            items=Index(str(i) for i in range(items)),
            annotators=Index(f"w{a}" for a in range(20)),
            annotator=rng.integers(0, 20, n).astype(np.int32),
            left=left.astype(np.int32),
            right=right.astype(np.int32),
            outcome=np.where(u < win, 1, np.where(u < win + tie, 0, -1)).astype(np.int8),
        )

    model = BoundedRanking(draws=100)
    expected = np.mean([model.update(model.start(items), study()).mode for _ in range(400)], axis=0)
    hits = []
    for _ in range(40):
        table = quiet_fit(model, study()).scores
        code = table["item"].cast(int).to_numpy()
        lower, upper = table.select("lower", "upper").to_numpy().T
        hits.append(np.mean((lower <= expected[code]) & (expected[code] <= upper)))
    assert 0.90 <= np.mean(hits) <= 0.98
