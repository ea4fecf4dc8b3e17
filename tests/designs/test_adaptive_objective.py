"""Expected gain of the adaptive design, against integration, brute force and simulation."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from steelyard.designs.adaptive.kernels import (
    ANY,
    Candidates,
    InformationTable,
    best_batch,
    comparison_information,
    task_gain,
)
from steelyard.designs.adaptive.objective import information_table, score_density, variance_weights
from steelyard.designs.adaptive.selection import best_by_head
from steelyard.models.calibrated.online import LEVELS, START
from steelyard.models.calibrated.online_kernels import LAPSE
from steelyard.observations import FloatArray


def candidates_of(mean: FloatArray, variance: FloatArray, weight: FloatArray | None = None) -> Candidates:
    n = len(mean)
    order = np.argsort(mean).astype(np.int32)
    position = np.empty(n, np.int32)
    position[order] = np.arange(n)
    return Candidates(
        mean,
        variance,
        np.ones(n) if weight is None else weight,
        np.zeros(n, np.bool_),
        np.zeros(n, np.int32),
        ANY,
        order,
        position,
        np.empty(0, np.int64),
    )


def only(level: float) -> FloatArray:
    """The posterior of an annotator whose noise is certain."""
    return np.where(np.isclose(LEVELS, level), 1.0, 0.0)


def information(difference: float, variance: float, chance: FloatArray, margin: float) -> float:
    return float(comparison_information(information_table(chance, margin), difference, variance))


def information_twin(difference: FloatArray, variance: FloatArray, chance: FloatArray) -> FloatArray:
    """The same without ties, in plain numpy: the squared slope of P(left wins) over p(1 − p)."""
    c = np.sqrt(variance[..., None] + 2 * LEVELS[:-1] ** 2)
    t = difference[..., None] / c
    keep = (1 - LAPSE) * chance[:-1]
    p = (keep * special.ndtr(t)).sum(-1) + (1 - keep.sum()) / 2
    slope = (keep * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi) / c).sum(-1)
    return np.asarray(slope**2 / (p * (1 - p)))


@given(
    st.floats(-3, 3),
    st.floats(0.05, 2),
    st.sampled_from([0.25, 0.4, 1.0, 2.5]),
    st.sampled_from([0.0, 0.3]),
)
@settings(max_examples=25, deadline=None)
def test_information_is_the_variance_reduction_found_by_integration(difference, variance, level, margin):
    """On a grid of true differences, by Bayes' rule: no Gaussian formula involved.

    The table is interpolated; where hardly anything can be learnt, it may be off by a thousandth of the variance.
    """
    sd = np.sqrt(variance)
    d = np.linspace(difference - 9 * sd, difference + 9 * sd, 8001)
    prior = np.exp(-((d - difference) ** 2) / (2 * variance))
    prior /= prior.sum()
    noise = np.sqrt(2) * level
    left, right = special.ndtr((d - margin) / noise), special.ndtr((-d - margin) / noise)
    outcomes = [left, right] if margin == 0 else [left, right, 1 - left - right]
    after = 0.0
    for likelihood in outcomes:
        joint = prior * ((1 - LAPSE) * likelihood + LAPSE / len(outcomes))
        chance = joint.sum()
        mean = (joint * d).sum() / chance
        after += (joint * (d - mean) ** 2).sum()
    result = information(difference, variance, only(level), margin)
    assert variance**2 * result == pytest.approx(variance - after, rel=0.01, abs=1e-3 * variance)


@pytest.mark.parametrize("chance", [START, only(0.25), only(1.0)], ids=["anybody", "precise", "noisy"])
def test_the_interpolated_table_is_within_one_percent(chance):
    rng = np.random.default_rng(0)
    answers = information_table(chance, 0.0)
    difference, variance = rng.uniform(0, 3, 300), rng.uniform(0.02, 2, 300)
    exact = information_twin(difference, variance, chance)
    interpolated = np.array([comparison_information(answers, *pair) for pair in zip(difference, variance, strict=True)])
    matters = exact > 0.1 * exact.max()
    assert np.abs(interpolated / exact - 1)[matters].max() < 0.01


def random_state(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Posteriors as they occur in a study: uncertain or precise, with or without clusters."""
    n = int(rng.integers(5, 500))
    mean = rng.normal(0, rng.uniform(0.3, 1), n)
    if rng.random() < 0.3:
        mean = np.round(mean)
    variance = np.exp(rng.uniform(np.log(0.01), 0, n)) if rng.random() < 0.5 else rng.uniform(0.05, 0.2, n)
    variance[rng.random(n) < 0.05] = 1.0
    return mean, variance


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["ranking", "scores", "top"])
def test_the_choice_is_within_two_percent_of_the_best_of_all_pairs(objective):
    rng = np.random.default_rng(7)
    for _ in range(40):
        mean, variance = random_state(rng)
        density = score_density(mean, variance)
        weight = variance_weights(objective, mean, variance, density, density.quantile(0.9))
        chance = only(float(rng.choice(LEVELS[1:-1]))) if rng.random() < 0.7 else START
        i, j = np.triu_indices(len(mean), 1)
        priority = weight * variance**2
        of_all = (priority[i] + priority[j]) * information_twin(mean[i] - mean[j], variance[i] + variance[j], chance)
        answers = information_table(chance, 0.0)
        tasks, gains = best_by_head(candidates_of(mean, variance, weight), answers, 2, priority)
        a, b = tasks[np.argmax(gains)]
        pair = (i == min(a, b)) & (j == max(a, b))
        assert of_all[pair][0] >= 0.98 * of_all.max()


@pytest.mark.parametrize("size", [3, 4])
def test_the_choice_of_larger_tasks_is_within_two_percent_of_the_best_of_all(size):
    rng = np.random.default_rng(8)
    for _ in range(15):
        n = 12
        mean, variance = rng.normal(size=n), rng.uniform(0.05, 0.6, n)
        candidates = candidates_of(mean, variance)
        answers = information_table(START, 0.0, pair_weight=2 / size)
        of_all = [task_gain(np.array(s), size, candidates, answers) for s in combinations(range(n), size)]
        _, gains = best_by_head(candidates, answers, size, variance**2)
        assert gains.max() >= 0.98 * max(of_all)


def test_the_expected_gain_of_a_ranking_is_close_to_its_simulated_gain():
    """Simulate the variance reduction over all orders of three items, with draws from the prior."""
    rng = np.random.default_rng(9)
    level, draws = 0.4, 200_000
    for _ in range(6):
        mean, variance = rng.normal(0, 0.6, 3), rng.uniform(0.1, 0.6, 3)
        value = mean + np.sqrt(variance) * rng.normal(size=(draws, 3))
        percept = value + level * rng.normal(size=(draws, 3))
        order = np.argsort(percept, axis=1) @ [9, 3, 1]
        remaining = sum((order == which).mean() * value[order == which].var(axis=0).sum() for which in np.unique(order))
        answers = information_table(only(level), 0.0, pair_weight=2 / 3)
        expected = task_gain(np.arange(3), 3, candidates_of(mean, variance, np.ones(3)), answers)
        assert expected == pytest.approx(variance.sum() - remaining, rel=0.35)


def test_the_gain_of_ratings_depends_on_their_precision_alone():
    mean, variance = np.zeros(2), np.array([1.0, 0.5])
    answers = InformationTable(np.zeros((2, 2)), 1.0, 2.0, 1.0, 2.0)
    # 1 − 1/(1 + 2) and 0.5 − 1/(2 + 2)
    assert task_gain(np.arange(2), 2, candidates_of(mean, variance), answers) == pytest.approx(2 / 3 + 1 / 4)


def test_noise_makes_close_pairs_matter_less():
    """For a precise annotator a distant pair has little information; for a noisy one, almost as much as a close one."""
    near, far, variance = 0.0, 1.0, 0.1

    def remaining_fraction(level: float) -> float:
        return float(information(far, variance, only(level), 0.0) / information(near, variance, only(level), 0.0))

    assert remaining_fraction(0.1) < 0.1
    assert 0.6 < remaining_fraction(1.0) < remaining_fraction(2.5) < 1


def test_a_batch_uses_every_item_about_equally_often():
    rng = np.random.default_rng(10)
    mean, variance = rng.normal(size=100), rng.uniform(0.1, 0.5, 100)
    answers = information_table(START, 0.0)
    tasks, gains = np.empty((100, 2), np.int64), np.empty(100)
    before = variance.copy()
    assert best_batch(64, candidates_of(mean, variance), answers, tasks, gains) == 100
    # Two passes: each item once per pass, except where the last one has no neighbour left in the window.
    times = np.bincount(tasks.ravel(), minlength=100)
    assert times.sum() == 200
    assert times.max() <= 3
    assert (tasks[:, 0] != tasks[:, 1]).all()
    assert (variance <= before).all()


def test_a_batch_prefers_close_pairs_to_pairs_across():
    """Four items at two locations make two close pairs; the batch takes those."""
    mean, variance = np.array([-1.0, 1.0, -1.01, 1.01]), np.full(4, 0.2)
    tasks, gains = np.empty((2, 2), np.int64), np.empty(2)
    assert best_batch(4, candidates_of(mean, variance), information_table(START, 0.0), tasks, gains) == 2
    assert {tuple(sorted(task)) for task in tasks.tolist()} == {(0, 2), (1, 3)}


def test_the_score_density_is_the_mean_of_the_items_gaussians():
    rng = np.random.default_rng(11)
    mean, variance = rng.normal(size=2000), rng.uniform(0.05, 0.3, 2000)
    density = score_density(mean, variance)
    x = np.linspace(-2, 2, 9)
    z = (x[:, None] - mean) / np.sqrt(variance)
    exact = (np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi * variance)).mean(axis=1)
    assert np.interp(x, density.grid, density.density) == pytest.approx(exact, rel=0.02)
    assert density.quantile(0.9) == pytest.approx(
        np.quantile(mean + np.sqrt(variance) * rng.normal(size=2000), 0.9), abs=0.15
    )
    assert (np.diff(density.cumulative) >= 0).all()


def test_ranking_weights_follow_the_density_and_threshold_weights_the_distance_to_the_cut():
    mean, variance = np.array([-2.0, 0.0, 0.05, -0.05, 0.1, 1.5]), np.full(6, 0.02)
    density = score_density(mean, variance)
    ranking = variance_weights("ranking", mean, variance, density, 0.0)
    assert ranking[1:5].min() > 4 * max(ranking[0], ranking[5])
    threshold = variance_weights("threshold", mean, variance, density, 1.4)
    assert np.argmax(threshold) == 5
    assert variance_weights("scores", mean, variance, density, 0.0).tolist() == [1.0] * 6
