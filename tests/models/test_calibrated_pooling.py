"""What the calibrated scale makes of squeezed answers, of one who repeats himself, and of pairs of close items."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard.experiments.calibrated.adaptive import adaptive_session
from steelyard.experiments.calibrated.methods import scored, spearman
from steelyard.models.bradley_terry import BradleyTerry
from steelyard.models.calibrated_data import Evidence
from steelyard.models.calibrated_draws import draw_items_jointly
from steelyard.models.calibrated_sampler import Chain
from steelyard.models.calibrated_scale import CalibratedScale
from steelyard.models.mean import Mean
from steelyard.observations import Index, Ratings


def ratings(item: np.ndarray, who: np.ndarray, value: np.ndarray) -> Ratings:
    return Ratings(
        items=Index([f"i{n:03d}" for n in range(int(item.max()) + 1)]),
        annotators=Index([f"a{n:03d}" for n in range(int(who.max()) + 1)]),
        annotator=who.astype(np.int32),
        item=item.astype(np.int32),
        value=np.clip(value, 0, 1),
        scale=(0.0, 1.0),
    )


def crowd(*, noise_follows: bool, spread: float, seed: int = 0) -> tuple[Ratings, np.ndarray, np.ndarray]:
    """Have forty people rate sixty items each; return who squeezes his answers by how much, and the truth."""
    rng = np.random.default_rng(seed)
    truth, use = rng.normal(0.5, spread, 120), np.exp(rng.normal(0, 0.5, 40))
    who, item = np.repeat(np.arange(40), 60), np.concatenate([rng.permutation(120)[:60] for _ in range(40)])
    noise = 0.06 * (use[who] if noise_follows else np.exp(rng.normal(0, 0.5, 40))[who])
    value = 0.5 + use[who] * (truth[item] - 0.5) + noise * rng.standard_normal(len(who))
    return ratings(item, who, value), use, truth


@pytest.mark.parametrize(("noise_follows", "low", "high"), [(True, 0.7, 1.0), (False, 0.0, 0.3)])
def test_it_learns_whether_noise_goes_with_the_use_of_the_scale(noise_follows: bool, low: float, high: float):
    observed, _, _ = crowd(noise_follows=noise_follows, spread=0.12)
    chain = Chain(Evidence.of("calibrated_scale", observed), np.random.default_rng(0))
    found = []
    for sweep in range(150):
        chain.sweep(sweep)
        found.append(chain.stretch[0])
    assert low <= np.mean(found[50:]) <= high


def test_who_squeezes_all_answers_is_not_taken_for_precise():
    """With little to tell items apart, a squeezed answer shows by its small noise that it is one."""
    observed, use, truth = crowd(noise_follows=True, spread=0.05)
    fit = CalibratedScale(draws=200).fit(observed)
    scale = fit.annotators.sort("annotator")["scale"].to_numpy()
    assert stats.spearmanr(scale, use).statistic > 0.8
    plain = np.corrcoef(scored(Mean(draws=20), observed), truth)[0, 1]
    assert np.corrcoef(fit.scores.sort("item")["score"].to_numpy(), truth)[0, 1] > plain


def test_one_who_repeats_himself_is_one_voice():
    """He rates each of two items thirty times, by his own opinion of them; sixty others rate each of them once."""
    rng = np.random.default_rng(1)
    again = ratings(np.repeat([0, 1], 30), np.zeros(60), np.repeat([0.9, 0.1], 30) + 0.02 * rng.standard_normal(60))
    others_item = np.tile(np.arange(10), 60)
    others_who = np.repeat(np.arange(1, 61), 10)
    truth = np.r_[0.4, 0.6, np.linspace(0.2, 0.8, 8)]
    item, who = np.r_[again.item, others_item], np.r_[again.annotator, others_who]
    value = np.r_[again.value, truth[others_item] + 0.1 * rng.standard_normal(600)]
    score = scored(CalibratedScale(draws=200), ratings(item, who, value))
    assert score[0] < 0.5 < score[1]
    mean = scored(Mean(draws=20), ratings(item, who, value))
    assert np.abs(score - truth)[:2].max() < np.abs(mean - truth)[:2].min()


def test_the_joint_draw_has_the_mean_and_covariance_of_the_linear_model():
    left, right = np.array([0, 1, 2, 3], np.int32), np.array([1, 2, 3, 4], np.int32)
    responder, slope = np.array([0, 1, 0, 1], np.int32), np.array([2.0, 1.0])
    response, slip = np.array([1.0, -0.5, 3.0, 0.7]), np.array([False, False, True, False])
    weight, pull = np.array([0.0, 1.5, 0.0, 0.0, 0.3]), np.array([0.0, 0.9, 0.0, 0.0, -0.2])
    precision = np.diag(weight + 1 / 0.8)
    total = pull + 0.25 / 0.8
    for m in np.flatnonzero(~slip):
        step = np.zeros(5)
        step[left[m]], step[right[m]] = slope[responder[m]], -slope[responder[m]]
        precision += np.outer(step, step)
        total = total + step * response[m]
    covariance = np.linalg.inv(precision)
    rng, x = np.random.default_rng(0), np.zeros(5)
    drawn = np.empty((20_000, 5))
    for number in range(len(drawn)):
        draw_items_jointly(
            rng, x, 0.25, 0.8, weight, pull, left, right, responder, response, slip, slope, np.zeros((4, 5))
        )
        drawn[number] = x
    assert drawn.mean(axis=0) == pytest.approx(covariance @ total, abs=0.03)
    assert np.cov(drawn.T) == pytest.approx(covariance, abs=0.03)


def test_a_session_that_pairs_close_items_is_placed_as_well_as_by_bradley_terry():
    """Drawn one after the other, items tied to their neighbours alone hardly move in so few draws."""
    differences = []
    for seed in range(3):
        session, truth = adaptive_session(np.random.default_rng(seed))
        ours, plain = scored(CalibratedScale(draws=200), session), scored(BradleyTerry(draws=20), session)
        differences.append(spearman(ours, truth) - spearman(plain, truth))
    assert np.mean(differences) > -0.01
