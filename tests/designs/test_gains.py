"""What an answer is expected to teach, against integration, brute force and simulation."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from steelyard.designs.gain_kernels import ANY, Answers, Standing, best_batch, look_up, task_gain
from steelyard.designs.gains import expected_answers, spread_of, worth_of
from steelyard.designs.information_gain_search import best_by_head
from steelyard.models.calibrated.online import LEVELS, START
from steelyard.models.calibrated.online_kernels import LAPSE
from steelyard.observations import FloatArray


def standing_of(mean: FloatArray, variance: FloatArray, worth: FloatArray | None = None) -> Standing:
    n = len(mean)
    order = np.argsort(mean).astype(np.int32)
    place = np.empty(n, np.int32)
    place[order] = np.arange(n)
    return Standing(
        mean,
        variance,
        np.ones(n) if worth is None else worth,
        np.zeros(n, np.bool_),
        np.zeros(n, np.int32),
        ANY,
        order,
        place,
        np.empty(0, np.int64),
    )


def only(level: float) -> FloatArray:
    """An annotator whose noise is known."""
    return np.where(np.isclose(LEVELS, level), 1.0, 0.0)


def information(difference: float, variance: float, chance: FloatArray, margin: float) -> float:
    return float(look_up(expected_answers(chance, margin), difference, variance))


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
def test_information_is_the_fall_in_variance_found_by_integration(difference, variance, level, margin):
    """On a grid of true differences, by Bayes' rule: no Gaussian formula involved."""
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
    found = information(difference, variance, only(level), margin)
    assert variance**2 * found == pytest.approx(variance - after, rel=0.01, abs=1e-4)


@pytest.mark.parametrize("chance", [START, only(0.25), only(1.0)], ids=["anybody", "precise", "noisy"])
def test_the_table_is_near_enough(chance):
    rng = np.random.default_rng(0)
    answers = expected_answers(chance, 0.0)
    difference, variance = rng.uniform(0, 3, 300), rng.uniform(0.02, 2, 300)
    exact = information_twin(difference, variance, chance)
    read = np.array([look_up(answers, *pair) for pair in zip(difference, variance, strict=True)])
    matters = exact > 0.1 * exact.max()
    assert np.abs(read / exact - 1)[matters].max() < 0.01


def random_state(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Items as they may lie in the course of a study, from hardly known to well known, in clumps or not."""
    n = int(rng.integers(5, 500))
    mean = rng.normal(0, rng.uniform(0.3, 1), n)
    if rng.random() < 0.3:
        mean = np.round(mean)
    variance = np.exp(rng.uniform(np.log(0.01), 0, n)) if rng.random() < 0.5 else rng.uniform(0.05, 0.2, n)
    variance[rng.random(n) < 0.05] = 1.0
    return mean, variance


@pytest.mark.parametrize("aim", ["ranking", "scores", "top"])
def test_the_choice_is_within_two_percent_of_the_best_of_all_pairs(aim):
    rng = np.random.default_rng(7)
    for _ in range(40):
        mean, variance = random_state(rng)
        spread = spread_of(mean, variance)
        worth = worth_of(aim, mean, variance, spread, spread.quantile(0.9))
        chance = only(float(rng.choice(LEVELS[1:-1]))) if rng.random() < 0.7 else START
        i, j = np.triu_indices(len(mean), 1)
        stake = worth * variance**2
        of_all = (stake[i] + stake[j]) * information_twin(mean[i] - mean[j], variance[i] + variance[j], chance)
        answers = expected_answers(chance, 0.0)
        tasks, gains = best_by_head(standing_of(mean, variance, worth), answers, 2, stake)
        a, b = tasks[np.argmax(gains)]
        pair = (i == min(a, b)) & (j == max(a, b))
        assert of_all[pair][0] >= 0.98 * of_all.max()


@pytest.mark.parametrize("size", [3, 4])
def test_the_choice_of_larger_tasks_is_within_two_percent_of_the_best_of_all(size):
    rng = np.random.default_rng(8)
    for _ in range(15):
        n = 12
        mean, variance = rng.normal(size=n), rng.uniform(0.05, 0.6, n)
        standing = standing_of(mean, variance)
        answers = expected_answers(START, 0.0, share=2 / size)
        of_all = [task_gain(np.array(s), size, standing, answers) for s in combinations(range(n), size)]
        _, gains = best_by_head(standing, answers, size, variance**2)
        assert gains.max() >= 0.98 * max(of_all)


def test_what_a_ranking_of_several_is_expected_to_teach_is_about_what_it_teaches():
    """Simulated: the fall of the variance over all orders of three, each by importance sampling from the prior."""
    rng = np.random.default_rng(9)
    level, draws = 0.4, 200_000
    for _ in range(6):
        mean, variance = rng.normal(0, 0.6, 3), rng.uniform(0.1, 0.6, 3)
        value = mean + np.sqrt(variance) * rng.normal(size=(draws, 3))
        seen = value + level * rng.normal(size=(draws, 3))
        order = np.argsort(seen, axis=1) @ [9, 3, 1]
        left = sum((order == which).mean() * value[order == which].var(axis=0).sum() for which in np.unique(order))
        answers = expected_answers(only(level), 0.0, share=2 / 3)
        expected = task_gain(np.arange(3), 3, standing_of(mean, variance, np.ones(3)), answers)
        assert expected == pytest.approx(variance.sum() - left, rel=0.35)


def test_ratings_teach_by_their_precision_alone():
    mean, variance = np.zeros(2), np.array([1.0, 0.5])
    answers = Answers(np.zeros((2, 2)), 1.0, 2.0, 1.0, 2.0)
    # 1 − 1/(1 + 2) and 0.5 − 1/(2 + 2)
    assert task_gain(np.arange(2), 2, standing_of(mean, variance), answers) == pytest.approx(2 / 3 + 1 / 4)


def test_noise_makes_close_pairs_matter_less():
    """To a precise annotator a pair one apart tells little beside a close one; to a noisy one, nearly as much."""
    near, far, variance = 0.0, 1.0, 0.1

    def kept(level: float) -> float:
        return float(information(far, variance, only(level), 0.0) / information(near, variance, only(level), 0.0))

    assert kept(0.1) < 0.1
    assert 0.6 < kept(1.0) < kept(2.5) < 1


def test_a_batch_takes_every_item_before_any_again_and_no_more_than_there_is():
    rng = np.random.default_rng(10)
    mean, variance = rng.normal(size=100), rng.uniform(0.1, 0.5, 100)
    answers = expected_answers(START, 0.0)
    tasks, gains = np.empty((100, 2), np.int64), np.empty(100)
    before = variance.copy()
    assert best_batch(64, standing_of(mean, variance), answers, tasks, gains) == 100
    # Two passes: each item once in each, save where the last one finds nobody left in reach.
    times = np.bincount(tasks.ravel(), minlength=100)
    assert times.sum() == 200
    assert times.max() <= 3
    assert (tasks[:, 0] != tasks[:, 1]).all()
    assert (variance <= before).all()


def test_the_batch_is_worth_as_much_as_the_best_matching_found_by_trying():
    """Of four items at two places, two close pairs; the batch takes those, not the pairs across."""
    mean, variance = np.array([-1.0, 1.0, -1.01, 1.01]), np.full(4, 0.2)
    tasks, gains = np.empty((2, 2), np.int64), np.empty(2)
    assert best_batch(4, standing_of(mean, variance), expected_answers(START, 0.0), tasks, gains) == 2
    assert {tuple(sorted(task)) for task in tasks.tolist()} == {(0, 2), (1, 3)}


def test_how_the_items_lie_is_what_their_gaussians_add_up_to():
    rng = np.random.default_rng(11)
    mean, variance = rng.normal(size=2000), rng.uniform(0.05, 0.3, 2000)
    spread = spread_of(mean, variance)
    x = np.linspace(-2, 2, 9)
    z = (x[:, None] - mean) / np.sqrt(variance)
    exact = (np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi * variance)).mean(axis=1)
    assert np.interp(x, spread.place, spread.density) == pytest.approx(exact, rel=0.02)
    assert spread.quantile(0.9) == pytest.approx(
        np.quantile(mean + np.sqrt(variance) * rng.normal(size=2000), 0.9), abs=0.15
    )
    assert (np.diff(spread.below) >= 0).all()


def test_a_rank_is_worth_knowing_where_many_items_lie_and_a_cut_where_items_are_near():
    mean, variance = np.array([-2.0, 0.0, 0.05, -0.05, 0.1, 1.5]), np.full(6, 0.02)
    spread = spread_of(mean, variance)
    ranking = worth_of("ranking", mean, variance, spread, 0.0)
    assert ranking[1:5].min() > 4 * max(ranking[0], ranking[5])
    threshold = worth_of("threshold", mean, variance, spread, 1.4)
    assert np.argmax(threshold) == 5
    assert worth_of("scores", mean, variance, spread, 0.0).tolist() == [1.0] * 6
