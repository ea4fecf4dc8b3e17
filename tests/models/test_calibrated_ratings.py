"""Ratings in the online state: biased and noisy annotators are seen through, and nothing taken back leaves a trace."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard.models.calibrated_online import CalibratedState
from steelyard.observations import UNKNOWN, FloatArray


def rated(seed: int, each: int = 8, careless: int = 3) -> tuple[CalibratedState, FloatArray, FloatArray]:
    """A hundred items, twenty people of their own bias and noise, some of whom answer at random; and the plain mean."""
    rng = np.random.default_rng(seed)
    n, people = 100, 20
    truth = rng.normal(size=n)
    bias, noise = 0.1 * rng.normal(size=people), 0.12 * np.exp(0.5 * rng.normal(size=people))
    state = CalibratedState(n, people)
    total, times = np.zeros(n), np.zeros(n)
    for item in np.tile(np.arange(n), each):
        who = int(rng.integers(people))
        value = float(np.clip(0.5 + 0.2 * truth[item] + bias[who] + noise[who] * rng.normal(), 0, 1))
        value = float(rng.random()) if who < careless else value
        state.learn_ratings(who, [int(item)], [value])
        total[item] += value
        times[item] += 1
    return state, truth, total / times


def test_it_sees_through_bias_noise_and_careless_people():
    for seed in range(3):
        state, truth, mean = rated(seed)
        state.refit(20)
        ours = stats.spearmanr(state.mean, truth).statistic
        assert ours > stats.spearmanr(mean, truth).statistic + 0.02
        # Those who answer at random teach less than anybody else does.
        precision = [state.rating_precision(who) for who in range(20)]
        assert max(precision[:3]) < np.median(precision[3:]) / 2


def test_its_intervals_hold_the_truth():
    inside = []
    for seed in range(5):
        state, truth, _ = rated(seed)
        state.refit(20)
        # The state's zero and unit are the items' own mean and spread.
        true = (truth - truth.mean()) / truth.std()
        inside.append(np.abs(state.mean - true) < 1.96 * np.sqrt(state.variance))
    assert 0.9 < np.mean(inside) < 0.99


def test_one_rating_of_anybody_adds_the_precision_that_was_expected():
    state = CalibratedState(3, 1)
    expected = state.rating_precision(UNKNOWN)
    state.learn_ratings(UNKNOWN, [1], [0.7])
    assert 1 / state.variance == pytest.approx([1, 1 + expected, 1])
    # 0.7 is one unit of 0.2 above the centre, 0.5.
    assert state.mean[1] == pytest.approx(expected / (1 + expected))


def test_ratings_taken_back_leave_no_trace():
    state = CalibratedState(5, 2)
    first = state.learn_ratings(0, [0, 1, 2], [0.1, 0.5, 0.9])
    mean, variance, precision = state.mean, state.variance, state.rating_precision(1)
    second = state.learn_ratings(1, [2, 3], [0.9, 0.2])
    state.forget_ratings(second)
    assert state.mean == pytest.approx(mean)
    assert state.variance == pytest.approx(variance)
    assert state.rating_precision(1) == pytest.approx(precision)
    state.refit()
    state.forget_ratings(first)
    state.forget_ratings(first)
    assert state.mean == pytest.approx(np.zeros(5), abs=1e-12)
    assert state.variance == pytest.approx(np.ones(5))


def test_ratings_and_comparisons_add_up_on_one_scale():
    """Both tell of the same places: together they are no further from the truth than either, and surer."""
    rng = np.random.default_rng(3)
    truth = rng.normal(size=40)
    both, ratings, pairs = (CalibratedState(40, 2) for _ in range(3))
    for _ in range(4):
        for item in range(40):
            value = float(0.5 + 0.2 * truth[item] + 0.1 * rng.normal())
            other = int(rng.integers(40))
            won = 1 if truth[item] + 0.3 * rng.normal() > truth[other] else -1
            for state in (both, ratings):
                state.learn_ratings(0, [item], [value])
            if other != item:
                for state in (both, pairs):
                    state.learn(1, [item], [other], [won])
    for state in (both, ratings, pairs):
        state.refit()
    error = [float(np.mean((state.mean - truth) ** 2)) for state in (both, ratings, pairs)]
    assert error[0] < min(error[1:]) * 1.05
    assert both.variance.mean() < min(ratings.variance.mean(), pairs.variance.mean())
