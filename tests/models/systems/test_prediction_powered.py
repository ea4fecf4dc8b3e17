"""Prediction-powered means against the reference implementation, a textbook calculation, and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard.errors import DataError
from steelyard.models.systems.prediction_powered import (
    check_random,
    expected_saving,
    optimal_weight,
    powered_mean,
    sampling_probabilities,
    stratified_mean,
    weighted_mean,
)


def textbook(y, f, f_other, alpha):
    """PPI++ for a mean, written out from Section 4 of the paper: sums in loops, no shared code."""
    n, others = len(y), len(f_other)
    mean_y, mean_f = sum(y) / n, sum(f) / n
    covariance = sum((a - mean_y) * (b - mean_f) for a, b in zip(y, f, strict=True)) / n
    everything = [*f, *f_other]
    centre = sum(everything) / len(everything)
    variance = sum((b - centre) ** 2 for b in everything) / (len(everything) - 1)
    lam = min(1.0, max(0.0, covariance / ((1 + n / others) * variance)))
    residuals = [a - lam * b for a, b in zip(y, f, strict=True)]
    centre_r = sum(residuals) / n
    mean_other = sum(f_other) / others
    value = lam * mean_other + centre_r
    spread = sum((r - centre_r) ** 2 for r in residuals) / n / n
    spread += lam**2 * sum((b - mean_other) ** 2 for b in f_other) / others / others
    half = stats.norm.ppf(1 - alpha / 2) * spread**0.5
    return lam, value, value - half, value + half


CASES = {"good": 0.9, "weak": 0.3, "useless": 0.0, "reversed": -0.8}


def sample(correlation, n, others, seed=0, shift=2.0):
    rng = np.random.default_rng(seed)
    f = rng.normal(size=n + others)
    y = shift + correlation * f + np.sqrt(1 - correlation**2) * rng.normal(size=n + others)
    return y, f


@pytest.mark.parametrize("correlation", CASES.values(), ids=CASES)
@pytest.mark.parametrize(("n", "others"), [(30, 300), (200, 50), (15, 15)])
def test_estimates_equal_the_textbook_to_1e_6(correlation, n, others):
    y, f = sample(correlation, n, others)
    result = powered_mean(y[:n], f[:n], f[n:], interval="normal", clip=True)
    lam, value, lower, upper = textbook(y[:n].tolist(), f[:n].tolist(), f[n:].tolist(), 0.05)
    assert result.weight == pytest.approx(lam, abs=1e-9)
    assert (result.value, result.lower, result.upper) == pytest.approx((value, lower, upper), abs=1e-6)


REFERENCE = {
    (0.9, 0.3): (2.2683502739115164, 2.0804937230818923, 2.4562068247411406),
    (0.0, 1.0): (1.9742849402686455, 1.6682186028577872, 2.280351277679504),
    (-0.8, 0.5): (1.8600822580202923, 1.5633103437089222, 2.1568541723316623),
}
"""ppi_mean_pointestimate and ppi_mean_ci (alpha = .05) of ppi-python 0.2.3 on the input of the test below."""


@pytest.mark.parametrize("case", REFERENCE)
def test_estimates_equal_the_reference_implementation_to_1e_6(case):
    k = np.arange(1, 61)
    f = np.sin(1.7 * k) + 0.01 * k
    y = 2 + case[0] * f + case[1] * np.cos(2.3 * k)
    result = powered_mean(y[:20], f[:20], f[20:], interval="normal", clip=True)
    assert (result.value, result.lower, result.upper) == pytest.approx(REFERENCE[case], abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("correlation", CASES.values(), ids=CASES)
def test_intervals_cover_whatever_the_judge(correlation):
    """300 runs: the standard error of a coverage of .95 is .013."""
    hits = {"plug-in": 0, "cross-fitted": 0, "stratified": 0, "weighted": 0}
    for seed in range(300):
        y, f = sample(correlation, 40, 160, seed)
        rng = np.random.default_rng([7, seed])
        results = {
            "plug-in": powered_mean(y[:40], f[:40], f[40:]),
            "cross-fitted": powered_mean(y[:40], f[:40], f[40:], folds=5),
        }
        strata = (f > np.median(f)).astype(int)
        chosen = np.concatenate([rng.choice(np.flatnonzero(strata == s), 20, replace=False) for s in (0, 1)])
        rest = np.setdiff1d(np.arange(200), chosen)
        results["stratified"] = stratified_mean(y[chosen], f[chosen], strata[chosen], f[rest], strata[rest])
        propensity = np.where(f > 0, 0.4, 0.15)
        judged = rng.random(200) < propensity
        results["weighted"] = weighted_mean(y, f, judged, propensity)
        for name, result in results.items():
            hits[name] += result.lower <= 2.0 <= result.upper
    assert {name: 0.915 <= count / 300 <= 0.985 for name, count in hits.items()} == dict.fromkeys(hits, True), hits


def test_a_good_judge_saves_what_was_promised_and_a_bad_one_costs_nothing():
    y, f = sample(0.9, 200, 1800)
    result = powered_mean(y[:200], f[:200], f[200:])
    assert result.saving == pytest.approx(expected_saving(0.9, 200, 2000), abs=0.07)
    for correlation in (0.0, -0.8):
        y, f = sample(correlation, 200, 1800)
        bad = powered_mean(y[:200], f[:200], f[200:])
        assert bad.half_width <= 1.01 * bad.people_half_width


def test_the_unit_and_the_sign_of_the_judge_do_not_matter():
    y, f = sample(0.7, 60, 300)
    results = [powered_mean(y[:60], g[:60], g[60:]) for g in (f, 100 * f + 3, -0.01 * f)]
    for result in results[1:]:
        assert (result.value, result.lower, result.upper) == pytest.approx(
            (results[0].value, results[0].lower, results[0].upper)
        )


def test_stratified_samples_are_no_wider():
    ratios = []
    for seed in range(60):
        y, f = sample(0.6, 60, 440, seed)
        rng = np.random.default_rng([3, seed])
        strata = np.digitize(f, np.quantile(f, [0.2, 0.4, 0.6, 0.8]))
        chosen = np.concatenate([rng.choice(np.flatnonzero(strata == s), 12, replace=False) for s in range(5)])
        rest = np.setdiff1d(np.arange(500), chosen)
        by_strata = stratified_mean(y[chosen], f[chosen], strata[chosen], f[rest], strata[rest])
        ratios.append(by_strata.half_width / powered_mean(y[:60], f[:60], f[60:]).half_width)
    # The simulation's error of the mean ratio is .01.
    assert np.mean(ratios) <= 1.01


def test_expected_saving_by_hand():
    assert expected_saving(0.5, 100, 1000) == pytest.approx(0.25 * 900 / 1000)
    assert expected_saving(0.9, 100, 100) == 0


def test_the_weight_is_zero_without_other_items_or_variance():
    y, f = sample(0.5, 20, 5)
    assert optimal_weight(y[:20], f[:20], f[:0]) == 0
    assert optimal_weight(y[:20], np.ones(20), np.ones(5)) == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda y, f: powered_mean(y[:9], f[:9], f[9:]), "people judged 9 items"),
        (lambda y, f: powered_mean(y[:20], f[:20], np.append(f[20:], np.nan)), "no score for some items"),
        (lambda y, f: weighted_mean(y, f, f > 0, np.where(f > 0, 0.5, 0.0)), "judged by people is 0"),
        (lambda y, f: check_random(np.sort(f)[-20:], np.sort(f)[:-20], "Google"), "of Google that people judged"),
    ],
)
def test_samples_that_cannot_be_valid_are_refused_with_the_reason(call, words):
    y, f = sample(0.5, 60, 60)
    with pytest.raises(DataError, match=words):
        call(y, f)


def test_a_random_part_is_accepted():
    rng = np.random.default_rng(0)
    for _ in range(50):
        f = rng.normal(size=200)
        check_random(f[:60], f[60:])


@pytest.mark.parametrize("seed", range(5))
def test_a_useless_judge_never_widens_the_interval_of_the_same_people(seed):
    rng = np.random.default_rng(seed)
    y, f = rng.normal(size=300), rng.normal(size=300)
    judged = np.arange(300) < 40
    strata = np.arange(300) % 3
    plain = powered_mean(y[judged], f[judged], f[~judged])
    stratified = stratified_mean(y[judged], f[judged], strata[judged], f[~judged], strata[~judged])
    weighted = weighted_mean(y, f, judged, np.full(300, 40 / 300))
    for result in (plain, stratified, weighted):
        assert result.half_width <= result.people_half_width + 1e-12


@pytest.mark.parametrize("seed", range(20))
def test_strata_judged_in_proportion_never_widen_the_interval_of_the_same_items(seed):
    """Whatever the data: with strata that say nothing (noise, skewed scores), and with those of a good judge."""
    rng = np.random.default_rng(seed)
    f = rng.normal(size=300)
    y = np.exp(rng.normal(size=300)) + (seed % 2) * f
    strata = rng.permutation(300) % 5 if seed % 4 < 2 else np.digitize(f, np.quantile(f, [0.2, 0.4, 0.6, 0.8]))
    chosen = np.concatenate([rng.choice(np.flatnonzero(strata == s), 12, replace=False) for s in range(5)])
    rest = np.setdiff1d(np.arange(300), chosen)
    stratified = stratified_mean(y[chosen], f[chosen], strata[chosen], f[rest], strata[rest])
    alone = powered_mean(y[chosen], f[chosen], f[rest], weight=0.0)
    assert stratified.half_width <= alone.people_half_width + 1e-12
    # The estimate itself stays that of the strata.
    if stratified.weight == 0:
        by_hand = np.mean([y[chosen][strata[chosen] == s].mean() for s in range(5)])
        assert stratified.value == pytest.approx(by_hand)


def test_strata_judged_unequally_keep_their_own_interval():
    """Stratum 1 was judged three times as often: without the strata the mean would be biased."""
    rng = np.random.default_rng(0)
    y, strata = np.concatenate([rng.normal(0, 1, 200), rng.normal(5, 1, 200)]), np.repeat([0, 1], 200)
    chosen = np.concatenate([np.arange(20), 200 + np.arange(60)])
    rest = np.setdiff1d(np.arange(400), chosen)
    result = stratified_mean(y[chosen], np.zeros(80), strata[chosen], np.zeros(320), strata[rest])
    assert result.value == pytest.approx((y[:20].mean() + y[200:260].mean()) / 2)
    assert result.lower < y.mean() < result.upper


def test_equal_errors_lead_to_equal_probabilities_also_if_they_are_skewed():
    """A test at 5 %: of 100 pilots with equal errors, 11 or more are taken for unequal with probability .01."""
    strata, pilot = np.arange(600) % 5, np.arange(20) % 5
    for draw in (np.random.default_rng(1).standard_normal, np.random.default_rng(2).standard_exponential):
        unequal = sum(np.ptp(sampling_probabilities(draw(20), pilot, strata, 60)) > 1e-12 for _ in range(100))
        assert unequal <= 10


def test_people_are_asked_where_the_judge_errs_if_that_is_more_than_chance():
    rng = np.random.default_rng(0)
    strata = np.repeat([0, 1], 500)
    pilot = np.repeat([0, 1], 100)
    equal = sampling_probabilities(rng.normal(size=200), pilot, strata, 100)
    unequal = sampling_probabilities(rng.normal(size=200) * np.where(pilot == 1, 5, 1), pilot, strata, 100)
    assert equal == pytest.approx(0.1)
    assert unequal.sum() == pytest.approx(100)
    # sds of 1 and 5 with half of the weight uniform: (½ + ½·5/3) / (½ + ½·1/3) = 2.
    assert unequal[-1] / unequal[0] == pytest.approx(2.0, rel=0.1)
