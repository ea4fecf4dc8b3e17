"""The cumulative link model: by hand, against a generic optimiser, and beside the models without strengths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, special

from steelyard.errors import DataError, SteelyardWarning
from steelyard.models.comparisons import ordinal_kernels as kernels
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.comparisons.cumulative_link import CumulativeLink, Graded, GradedLikelihood, Levels
from steelyard.models.comparisons.thurstone import Thurstone
from steelyard.models.inference.newton import dense_step, iterative_step
from steelyard.observations import Comparisons, Index
from tests.models.paired_data import by_item

CUTS = (0.5, 1.5, 2.5)


def graded_comparisons(n=8, rows=400, seed=0, cuts=CUTS, noise="logistic", ties=True, sd=1.2):
    """Latent differences with noise, cut into a tie and strengths."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, sd, n)
    left = rng.integers(0, n, rows)
    right = (left + rng.integers(1, n, rows)) % n
    response = theta[left] - theta[right] + getattr(rng, noise)(size=rows)
    outcome = np.where(ties & (np.abs(response) < cuts[0]), 0, np.sign(response)).astype(np.int8)
    strength = 1 + sum((np.abs(response) > cut).astype(int) for cut in cuts[1:])
    return theta, Comparisons(
        items=Index([f"i{number}" for number in range(n)]),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        outcome=outcome,
        strength=np.where(outcome == 0, 0, strength).astype(np.int8),
    )


def scores(fit, comparisons):
    table = by_item(fit)
    return np.array([table[name] for name in comparisons.items.ids])


def reference_scores(comparisons, cdf, n_cuts, fixed_first=False):
    """Maximise the likelihood of the categories by a generic optimiser."""
    n = len(comparisons.items)
    category = comparisons.outcome * comparisons.strength.astype(int)

    def ends(parameters):
        cuts = np.cumsum(np.exp(parameters))
        return np.r_[0.0, cuts] if fixed_first else cuts

    def loss(parameters):
        theta, cuts = np.r_[0.0, parameters[: n - 1]], ends(parameters[n - 1 :])
        upper = np.r_[-cuts[::-1], cuts, np.inf][category + n_cuts]
        lower = np.r_[-np.inf, -cuts[::-1], cuts][category + n_cuts]
        d = theta[comparisons.left] - theta[comparisons.right]
        return -np.log(np.maximum(cdf(upper - d) - cdf(lower - d), 1e-300)).sum()

    start = np.zeros(n - 1 + n_cuts - fixed_first)
    optimum = optimize.minimize(loss, start, method="BFGS", options={"gtol": 1e-7}).x
    theta = np.r_[0.0, optimum[: n - 1]]
    return theta - theta.mean(), ends(optimum[n - 1 :])


@pytest.mark.parametrize(("link", "cdf"), [("logit", special.expit), ("probit", special.ndtr)])
def test_it_equals_a_generic_optimiser(link, cdf):
    _, comparisons = graded_comparisons()
    fit = CumulativeLink(link=link, prior_sd=None).fit(comparisons)
    theta, cuts = reference_scores(comparisons, cdf, 3)
    assert scores(fit, comparisons) == pytest.approx(theta, abs=1e-5)
    assert f"thresholds {', '.join(f'{cut:.3g}' for cut in cuts)}" in fit.notes[0]


def test_without_ties_the_lowest_threshold_is_0():
    _, comparisons = graded_comparisons(ties=False)
    theta, _ = reference_scores(comparisons, special.expit, 3, fixed_first=True)
    assert scores(CumulativeLink(prior_sd=None).fit(comparisons), comparisons) == pytest.approx(theta, abs=1e-5)


def test_two_items_by_hand():
    """Equal items that win 10 times each, five of them strongly: P(|y| > τ₂) = 1/4, P(|y| > τ₁) = 1/2."""
    outcome = np.repeat([1, -1, 0], [10, 10, 20]).astype(np.int8)
    strength = np.r_[np.repeat([1, 2], 5), np.repeat([1, 2], 5), np.zeros(20)].astype(np.int8)
    zeros = np.zeros(40, np.int32)
    comparisons = Comparisons(items=Index("ab"), left=zeros, right=zeros + 1, outcome=outcome, strength=strength)
    fit = CumulativeLink(prior_sd=None, strength="use").fit(comparisons)
    assert by_item(fit) == pytest.approx({"a": 0, "b": 0}, abs=1e-9)
    assert f"thresholds {-special.logit(1 / 4):.3g}, {-special.logit(1 / 8):.3g}" in fit.notes[0]


@pytest.mark.parametrize(
    ("link", "model"),
    [("logit", BradleyTerry(ties="rao_kupper")), ("probit", replace(Thurstone(), prior_sd=2.0))],
)
def test_without_strengths_it_is_the_tie_model_of_its_family(link, model):
    _, comparisons = graded_comparisons()
    expected = model.fit(comparisons).scores
    assert CumulativeLink(link=link, strength="ignore").fit(comparisons).scores.equals(expected)
    assert CumulativeLink(link=link).fit(comparisons.without_strength()).scores.equals(expected)


def test_swapping_the_sides_changes_nothing():
    _, comparisons = graded_comparisons()
    swapped = replace(comparisons, left=comparisons.right, right=comparisons.left, outcome=-comparisons.outcome)
    fits = [scores(CumulativeLink().fit(part), comparisons) for part in (comparisons, swapped)]
    assert fits[0] == pytest.approx(fits[1], abs=1e-9)


def test_an_unknown_strength_is_any_strength():
    """Comparisons without strengths among others pull the scores as plain wins do."""
    _, comparisons = graded_comparisons(rows=600)
    is_known = np.arange(600) < 300
    partly = replace(comparisons, strength=np.where(is_known, comparisons.strength, 0).astype(np.int8))
    sds = [CumulativeLink(strength="use").fit(c).scores["sd"].mean() for c in (comparisons, partly)]
    sds.append(CumulativeLink(strength="ignore").fit(comparisons).scores["sd"].mean())
    assert sds[0] < sds[1] < sds[2]


@pytest.mark.parametrize("link", [kernels.LOGISTIC, kernels.GAUSSIAN])
@pytest.mark.parametrize(("a", "b"), [(-0.7, 0.9), (1.2, 2.0), (-3.0, -1.0), (0.4, np.inf), (6.0, 7.5)])
def test_derivatives_of_an_interval_are_those_of_finite_differences(link, a, b):
    value, by_a, by_b, aa, bb, ab = kernels.interval_terms(link, a, b)
    h = 1e-5
    up, down = kernels.interval_terms(link, a + h, b), kernels.interval_terms(link, a - h, b)
    cdf = special.expit if link == kernels.LOGISTIC else special.ndtr
    assert value == pytest.approx(np.log(cdf(-a) - cdf(-b)), rel=1e-8)
    assert ((up[0] - down[0]) / (2 * h), (down[1] - up[1]) / (2 * h)) == pytest.approx((by_a, aa), rel=1e-5)
    assert (down[2] - up[2]) / (2 * h) == pytest.approx(ab, rel=1e-5, abs=1e-9)
    if np.isfinite(b):
        up, down = kernels.interval_terms(link, a, b + h), kernels.interval_terms(link, a, b - h)
        assert ((up[0] - down[0]) / (2 * h), (down[2] - up[2]) / (2 * h)) == pytest.approx((by_b, bb), rel=1e-5)


def test_the_pieces_of_single_answers_add_up_to_the_gradient_and_both_solvers_agree():
    _, comparisons = graded_comparisons()
    likelihood = GradedLikelihood(Graded.of(comparisons, Levels.of(comparisons))[0], kernels.LOGISTIC, anchor=False)
    theta, cuts = np.linspace(-1, 1, 8), np.array([0.4, 1.0, 2.0])
    terms, pieces = likelihood.at(theta, cuts), likelihood.scatter(theta, cuts)
    total = np.bincount(pieces.item, pieces.slope)
    assert total == pytest.approx(np.r_[terms.gradient, terms.tie_slope], abs=1e-9)
    steps = [solve(likelihood, terms, terms.gradient - theta / 4, 0.25, 1e-9) for solve in (dense_step, iterative_step)]
    assert steps[0][0] == pytest.approx(steps[1][0], abs=1e-6)
    assert steps[0][1] == pytest.approx(steps[1][1], abs=1e-6)


def test_strengths_that_are_noise_are_left_out_with_a_warning():
    rng = np.random.default_rng(1)
    _, comparisons = graded_comparisons(n=15, rows=500)
    strength = comparisons.strength.copy()
    for side in (1, -1):
        strength[comparisons.outcome == side] = rng.permutation(strength[comparisons.outcome == side])
    noisy = replace(comparisons, strength=strength)
    with pytest.warns(SteelyardWarning, match="unrelated to the scores"):
        fit = CumulativeLink().fit(noisy)
    assert fit.scores.equals(CumulativeLink(strength="ignore").fit(noisy).scores)


def test_a_single_strength_and_a_rare_one_are_merged_with_a_warning():
    _, comparisons = graded_comparisons()
    strength = np.minimum(comparisons.strength, 2)
    strength[np.flatnonzero(strength == 2)[:3]] = 3
    with pytest.warns(SteelyardWarning, match="3 of strength 3"):
        merged = CumulativeLink().fit(replace(comparisons, strength=strength))
    assert "thresholds" in merged.notes[-1]
    with pytest.warns(SteelyardWarning, match="only one strength"):
        single = CumulativeLink().fit(replace(comparisons, strength=np.minimum(comparisons.strength, 1)))
    assert single.scores.equals(CumulativeLink(strength="ignore").fit(comparisons).scores)


def test_strengths_that_no_scores_contradict_need_a_prior():
    """b beats a slightly, c beats b slightly, c beats a strongly, always: thresholds and scores could grow together."""
    left, right = np.repeat([0, 1, 0], 6).astype(np.int32), np.repeat([1, 2, 2], 6).astype(np.int32)
    outcome, strength = np.full(18, -1, np.int8), np.repeat([1, 1, 2], 6).astype(np.int8)
    comparisons = Comparisons(items=Index("abc"), left=left, right=right, outcome=outcome, strength=strength)
    graded, *_ = Graded.of(comparisons, Levels.of(comparisons))
    assert GradedLikelihood(graded, kernels.LOGISTIC, anchor=False).is_unbounded()
    with pytest.raises(DataError, match="no finite scores without a prior"):
        CumulativeLink(prior_sd=None, strength="use").fit(comparisons)
    _, contradictory = graded_comparisons()
    graded, *_ = Graded.of(contradictory, Levels.of(contradictory))
    assert not GradedLikelihood(graded, kernels.LOGISTIC, anchor=False).is_unbounded()


@pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")
def test_intervals_cover_the_true_scores():
    """The prior is the one that the scores are drawn from, so that 95 % of the intervals should cover."""
    n_covered, n_intervals = 0, 0
    for seed in range(60):
        theta, comparisons = graded_comparisons(n=6, rows=45, seed=seed, sd=2.0)
        fit = CumulativeLink(draws=20, strength="use").fit(comparisons)
        lower, upper = by_item(fit, "lower"), by_item(fit, "upper")
        true = theta - theta.mean()
        n_covered += sum(lower[f"i{i}"] <= true[i] <= upper[f"i{i}"] for i in range(6))
        n_intervals += 6
    # Two standard errors of 360 intervals, of which those of one data set are dependent.
    assert n_covered / n_intervals == pytest.approx(0.95, abs=0.04)
