"""The calibrated scale with compressed answers, repeated ratings by one annotator, and pairs of close items."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from reproductions.calibrated.adaptive import adaptive_session
from reproductions.calibrated.methods import scored, spearman
from steelyard.errors import ConvergenceWarning
from steelyard.models.calibrated.chain import Chain
from steelyard.models.calibrated.evidence import Evidence, PairRows
from steelyard.models.calibrated.gibbs_kernels import Items, PairAnswers, Responders, draw_items_jointly
from steelyard.models.calibrated.ladder import RUNGS
from steelyard.models.calibrated.responder_kernels import KAPPA
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.ratings.mean import Mean
from steelyard.observations import UNKNOWN, Index, Ratings
from tests.sizes import FULL


def ratings(item: np.ndarray, who: np.ndarray, value: np.ndarray) -> Ratings:
    return Ratings(
        items=Index([f"i{n:03d}" for n in range(int(item.max()) + 1)]),
        annotators=Index([f"a{n:03d}" for n in range(int(who.max()) + 1)]),
        annotator=who.astype(np.int32),
        item=item.astype(np.int32),
        value=np.clip(value, 0, 1),
        scale=(0.0, 1.0),
    )


def crowd(*, noise_follows: bool, spread: float, each: int = 60) -> tuple[Ratings, np.ndarray, np.ndarray]:
    """Have forty annotators rate some items each; return the ratings, their slopes and the true scores."""
    rng = np.random.default_rng(0)
    truth, use = rng.normal(0.5, spread, 120), np.exp(rng.normal(0, 0.5, 40))
    who, item = np.repeat(np.arange(40), each), np.concatenate([rng.permutation(120)[:each] for _ in range(40)])
    noise = 0.06 * (use[who] if noise_follows else np.exp(rng.normal(0, 0.5, 40))[who])
    value = 0.5 + use[who] * (truth[item] - 0.5) + noise * rng.standard_normal(len(who))
    return ratings(item, who, value), use, truth


@pytest.mark.parametrize(("noise_follows", "low", "high"), [(True, 0.7, 1.2), (False, -0.2, 0.3)])
def test_it_learns_whether_noise_goes_with_the_use_of_the_scale(noise_follows: bool, low: float, high: float):
    observed, _, _ = crowd(noise_follows=noise_follows, spread=0.12)
    chain = Chain(Evidence.of("calibrated_scale", observed), np.random.default_rng(0), RUNGS["noise"])
    assert low <= chain.collect(60, 100).population[:, 0, KAPPA].mean() <= high


@pytest.mark.slow
def test_compressed_answers_are_not_taken_for_precise():
    """With little to tell items apart, a compressed answer shows by its small noise that it is one."""
    observed, use, truth = crowd(noise_follows=True, spread=0.03, each=20)
    with warnings.catch_warnings():
        # The common scale of slopes and items is hardly determined.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = CalibratedScale(draws=200, annotator_effects="noise").fit(observed)
    assert fit.annotators is not None
    scale = fit.annotators.sort("annotator")["scale"].to_numpy()
    # Without the noise to go by, some 0.7.
    assert stats.spearmanr(scale, use).statistic > 0.85
    plain = np.corrcoef(scored(Mean(draws=20), observed), truth)[0, 1]
    assert np.corrcoef(fit.scores.sort("item")["score"].to_numpy(), truth)[0, 1] > plain


@pytest.mark.slow
def test_repeated_ratings_by_one_annotator_do_not_narrow_intervals_as_new_annotators_would():
    """Each rates each item up to fifteen times. Taken for as many annotators, half of the intervals would hold."""
    coverage = []
    for seed in range(4 if FULL else 2):
        rng = np.random.default_rng(seed)
        truth, item = rng.uniform(0.3, 0.7, 40), np.repeat(np.arange(40), 6)
        who = np.concatenate([rng.permutation(20)[:6] for _ in range(40)])
        opinion, times = truth[item] + 0.12 * rng.standard_normal(240), rng.integers(1, 16, 240)
        values = np.repeat(opinion, times) + 0.04 * rng.standard_normal(times.sum())
        with warnings.catch_warnings():
            # Items and the shifts of their raters move slowly against each other.
            warnings.simplefilter("ignore", ConvergenceWarning)
            fit = CalibratedScale(draws=400).fit(ratings(np.repeat(item, times), np.repeat(who, times), values))
        table = fit.scores.sort("item")
        coverage.append(np.mean((table["lower"].to_numpy() <= truth) & (truth <= table["upper"].to_numpy())))
    assert np.mean(coverage) > 0.68


def test_ratings_without_annotators_are_independent():
    """Five ratings of each item without names: intervals as wide as those of a mean of five."""
    rng = np.random.default_rng(0)
    truth, item = rng.uniform(0.25, 0.75, 80), np.repeat(np.arange(80), 5)
    named = ratings(item, np.zeros(400), truth[item] + 0.1 * rng.standard_normal(400))
    nobody = replace(named, annotators=Index([]), annotator=np.full(400, UNKNOWN, np.int32))
    fit = CalibratedScale(draws=200).fit(nobody).scores
    assert (fit["upper"] - fit["lower"]).mean() == pytest.approx(2 * 1.96 * 0.1 / np.sqrt(5), rel=0.15)


def test_the_joint_draw_has_the_mean_and_covariance_of_the_linear_model():
    left, right = np.array([0, 1, 2, 3], np.int32), np.array([1, 2, 3, 4], np.int32)
    responder, slope = np.array([0, 1, 0, 1], np.int32), np.array([2.0, 1.0])
    response, lapsed = np.array([1.0, -0.5, 3.0, 0.7]), np.array([False, False, True, False])
    weight, pull = np.array([0.0, 1.5, 0.0, 0.0, 0.3]), np.array([0.0, 0.9, 0.0, 0.0, -0.2])
    precision = np.diag(weight + 1 / 0.8)
    total = pull + 0.25 / 0.8
    for m in np.flatnonzero(~lapsed):
        step = np.zeros(5)
        step[left[m]], step[right[m]] = slope[responder[m]], -slope[responder[m]]
        precision += np.outer(step, step)
        total = total + step * response[m]
    covariance = np.linalg.inv(precision)
    rng, x = np.random.default_rng(0), np.zeros(5)
    pairs = PairRows(left, right, responder, np.ones(4, np.int8), np.zeros(6, np.int64), np.zeros(0, np.int32))
    answers = PairAnswers(response, lapsed, np.zeros(1))
    responders = Responders(np.zeros(2), slope, np.ones(2), np.zeros(2), np.zeros(1))
    draws = np.empty((20_000, 5))
    for number in range(len(draws)):
        # The draw clears the sums.
        items = Items(x, 0.0, np.full(5, 0.25), 0.8, weight.copy(), pull.copy())
        draw_items_jointly(rng, items, pairs, answers, responders, np.zeros((4, 5)))
        draws[number] = x
    assert draws.mean(axis=0) == pytest.approx(covariance @ total, abs=0.03)
    assert np.cov(draws.T) == pytest.approx(covariance, abs=0.03)
    # Drawn one after the other, each draw would depend on the last.
    assert np.abs([np.corrcoef(column[:-1], column[1:])[0, 1] for column in draws.T]).max() < 0.05


@pytest.mark.slow
def test_a_session_that_pairs_close_items_is_placed_as_well_as_by_bradley_terry():
    differences = []
    for seed in range(3):
        session, truth = adaptive_session(np.random.default_rng(seed))
        ours = scored(CalibratedScale(draws=400 if FULL else 80), session)
        plain = scored(BradleyTerry(draws=20), session)
        differences.append(spearman(ours, truth) - spearman(plain, truth))
    assert np.mean(differences) > -0.01
