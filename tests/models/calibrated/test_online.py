"""The calibrated scale while a study runs."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import integrate, special

from steelyard.models.calibrated.online import LEVELS, CalibratedState, tuple_weight
from steelyard.models.calibrated.online_kernels import LAPSE
from steelyard.observations import UNKNOWN


def asked(state: CalibratedState, items: int, people: int, each: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Have a crowd, a fifth of it answering at random, compare items; return the truth and who is random."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(items)
    noise = np.exp(rng.normal(np.log(0.5), 0.3, people))
    random = np.arange(people) < people // 5
    for _ in range(items * each // 2):
        who = int(rng.integers(people))
        left, right = rng.choice(items, 2, replace=False)
        lead = truth[left] - truth[right] + np.sqrt(2) * noise[who] * rng.standard_normal()
        lead = rng.standard_normal() if random[who] else lead
        state.learn(who, [left], [right], [1 if lead > 0 else -1])
    return truth, random


def test_one_comparison_moves_two_items_to_the_moments_of_the_exact_posterior():
    state = CalibratedState(3, 1)
    weights = state.level_probabilities(UNKNOWN)
    state.learn(0, [0], [1], [1])

    def likelihood(d: float) -> float:
        chance = sum(w * special.ndtr(d / (np.sqrt(2) * s)) for w, s in zip(weights[:-1], LEVELS[:-1], strict=True))
        return float((1 - LAPSE) * chance + LAPSE / 2 * (1 - weights[-1]) + weights[-1] / 2)

    # The difference of two standard Gaussians has variance 2.
    def moment(power: int) -> float:
        density = lambda d: d**power * np.exp(-d * d / 4) * likelihood(d)  # noqa: E731
        return float(integrate.quad(density, -12, 12)[0])

    mean = moment(1) / moment(0)
    assert state.mean[0] - state.mean[1] == pytest.approx(mean, abs=1e-6)
    # Half of what is learnt of the difference is learnt of each item.
    fall = 2 - (moment(2) / moment(0) - mean**2)
    assert state.variance[0] == pytest.approx(1 - fall / 4, abs=1e-6)
    assert (state.mean[2], state.variance[2]) == (0.0, 1.0)


def test_items_are_found_and_their_intervals_hold_them():
    state = CalibratedState(150, 20)
    truth, _ = asked(state, 150, 20, 16)
    before = np.corrcoef(state.mean, truth)[0, 1]
    state.refit(20)
    assert before > 0.85
    assert np.corrcoef(state.mean, truth)[0, 1] > max(before - 0.005, 0.9)
    is_covered = np.abs(truth - state.mean) < 1.96 * np.sqrt(state.variance)
    assert 0.88 < is_covered.mean() <= 1


def test_who_answers_at_random_is_found():
    state = CalibratedState(60, 15)
    _, random = asked(state, 60, 15, 40)
    state.refit(20)
    noise = np.array([state.noise(who) for who in range(15)])
    assert noise[random].min() > noise[~random].max()
    assert state.level_probabilities(0).sum() == pytest.approx(1)


def test_what_is_taken_back_leaves_no_trace():
    state = CalibratedState(10, 3, ties=True)
    state.learn(0, [0, 2], [1, 3], [1, 0])
    state.learn_ratings(1, [4], [0.2])
    before = state.mean, state.variance, state.level_probabilities(1), state.bias(1)
    comparisons = state.learn(1, [0], [4], [-1])
    ratings = state.learn_ratings(1, [0, 4], [0.9, 0.8])
    state.forget_ratings(ratings)
    state.forget(comparisons)
    for old, new in zip(before, (state.mean, state.variance, state.level_probabilities(1), state.bias(1)), strict=True):
        assert new == pytest.approx(old, abs=1e-12)


def test_the_same_answers_give_the_same_state():
    one, two = (CalibratedState(30, 5) for _ in range(2))
    for state in (one, two):
        asked(state, 30, 5, 6)
        state.refit()
    assert one.mean.tobytes() == two.mean.tobytes()


def test_odds_add_up_and_know_the_annotator():
    state = CalibratedState(60, 15, ties=True)
    asked(state, 60, 15, 40)
    state.refit()
    order = np.argsort(state.mean)
    low, high = order[:5], order[-5:]
    for who in (UNKNOWN, 0, 14):
        odds = state.pair_odds(high, low, who)
        assert odds.left + odds.tie + odds.right == pytest.approx(np.ones(5))
    assert (state.pair_odds(high, low, 14).left > state.pair_odds(high, low, 0).left).all()


def test_ratings_beat_their_mean_and_biases_are_found():
    rng = np.random.default_rng(1)
    items, people = 100, 20
    truth, bias = rng.standard_normal(items), rng.normal(0, 0.6, people)
    state = CalibratedState(items, people)
    total, count = np.zeros(items), np.zeros(items)
    for _ in range(items * 5):
        item, who = int(rng.integers(items)), int(rng.integers(people))
        value = 0.5 + 0.25 * (truth[item] + bias[who] + 0.8 * rng.standard_normal())
        state.learn_ratings(who, [item], [value])
        total[item] += value
        count[item] += 1
    state.refit(20)
    rated = count > 0
    plain = np.corrcoef(total[rated] / count[rated], truth[rated])[0, 1]
    assert np.corrcoef(state.mean[rated], truth[rated])[0, 1] > plain + 0.01
    biases = np.array([state.bias(who)[0] for who in range(people)])
    assert np.corrcoef(biases, bias)[0, 1] > 0.8
    # Who rates without a name is nobody's bias.
    state.learn_ratings(UNKNOWN, [0], [1.0])
    assert state.bias(UNKNOWN)[0] == 0.0


def test_new_items_and_annotators_change_nothing_for_the_others():
    state = CalibratedState(2, 1)
    state.learn(0, [0], [1], [1])
    state.learn_ratings(0, [0], [0.8])
    before, noise, bias = state.mean, state.noise(0), state.bias(0)
    state.grow(50, 30)
    assert state.mean[:2] == pytest.approx(before)
    assert (state.noise(0), state.bias(0)) == (noise, bias)
    assert state.noise(29) == state.noise(UNKNOWN)


def test_an_update_takes_under_a_millisecond_also_after_many():
    state = CalibratedState(10_000, 50)
    rng = np.random.default_rng(0)
    left = rng.integers(10_000, size=30_000)
    right = (left + rng.integers(1, 10_000, size=30_000)) % 10_000
    state.learn(rng.integers(50, size=30_000).astype(np.int32), left, right, rng.choice([-1, 1], 30_000))
    state.learn_ratings(0, [1], [0.5])
    began = time.process_time()
    for _ in range(200):
        state.learn(0, [1], [2], [1])
        state.learn_ratings(0, [1], [0.5])
    assert (time.process_time() - began) / 400 < 0.001


def test_the_pairs_of_a_tuple_count_for_one_less_than_its_items():
    assert tuple_weight(2, 1) == 1.0
    assert 5 * tuple_weight(4, 5) == pytest.approx(3)


def test_one_more_rating_adds_the_precision_that_was_expected_of_it():
    state = CalibratedState(3, 2)
    expected = state.rating_precision(UNKNOWN)
    state.learn_ratings(UNKNOWN, [1], [0.75])
    assert 1 / state.variance == pytest.approx([1, 1 + expected, 1])
    for value in (0.1, 0.9, 0.2, 0.8):
        state.learn_ratings(0, [0], [value])
        state.learn_ratings(1, [2], [0.5])
    state.refit()
    # Who contradicts himself teaches less than who does not, or than anybody.
    assert state.rating_precision(0) < state.rating_precision(1)
    assert state.n_ratings == 9


def rated(truth: np.ndarray, noise: np.ndarray, each: int, seed: int = 0) -> CalibratedState:
    """Have twenty people with biases rate every item, with the item's noise, and go over it all."""
    rng = np.random.default_rng(seed)
    state = CalibratedState(len(truth), 20)
    bias = rng.normal(0, 0.05, 20)
    for item in range(len(truth)):
        for who in rng.permutation(20)[:each].tolist():
            state.learn_ratings(who, [item], [truth[item] + bias[who] + noise[item] * rng.standard_normal()])
    state.refit(20)
    return state


def test_where_items_lie_is_learnt_and_their_intervals_hold_them():
    """High up and close together, unlike what is usual; the scale of the state is 0.5 ± 0.25."""
    truth = np.random.default_rng(1).normal(0.8, 0.08, 150)
    state = rated(truth, np.full(150, 0.15), 4)
    place, sd = 0.5 + 0.25 * state.mean, 0.25 * np.sqrt(state.variance)
    assert 0.9 < np.mean(np.abs(place - truth) < 1.96 * sd) < 0.99
    state.grow(151, 20)
    assert 0.5 + 0.25 * state.mean[150] == pytest.approx(0.8, abs=0.04)
    assert 0.25 * np.sqrt(state.variance[150]) == pytest.approx(0.08, abs=0.03)


def test_where_ratings_are_noisy_is_learnt():
    truth = np.repeat([0.1, 0.5, 0.9], 40)
    noise = np.repeat([0.03, 0.2, 0.03], 40)
    state = rated(truth, noise, 5)
    low, middle, high = (state.unevenness[part].mean() for part in (slice(40), slice(40, 80), slice(80, 120)))
    assert middle > 4 * max(low, high)
    assert np.median(state.variance[40:80]) > 2 * np.median(state.variance[:40])
