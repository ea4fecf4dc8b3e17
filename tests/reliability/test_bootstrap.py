"""The intervals: weights, determinism, honesty where there is none, and coverage."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.models.inference.resampling import poisson_weights
from steelyard.reliability import krippendorff_alpha
from steelyard.reliability.alpha import interval_alpha
from steelyard.reliability.bootstrap import Bootstrap, SumStatistic, weighted_proportion
from steelyard.reliability.units import Units, distinct


def test_weights_are_poisson_with_mean_and_variance_one() -> None:
    weights = np.concatenate(list(Bootstrap(1, 100).weights(20_000, 20_000)), axis=1)
    assert weights.shape == (20_000, 100)
    assert weights.mean() == pytest.approx(1.0, abs=0.003)
    assert weights.var() == pytest.approx(1.0, abs=0.006)
    assert (weights == 0).mean() == pytest.approx(np.exp(-1), abs=0.002)


def test_few_units_get_the_weights_that_the_models_draw_from_their_names() -> None:
    (weights,) = Bootstrap(3, 7).weights(2, 2, lambda: ("dog", "cat"))
    assert weights.tolist() == poisson_weights(("dog", "cat"), 7, 3).T.tolist()
    (numbered,) = Bootstrap(3, 7).weights(2, 2)
    assert numbered.tolist() == poisson_weights(("0", "1"), 7, 3).T.tolist()


def test_the_same_seed_gives_the_same_interval_in_any_order_and_another_seed_another() -> None:
    rng = np.random.default_rng(0)
    unit, value = np.repeat(np.arange(40), 3), rng.normal(size=120)
    order = rng.permutation(120)
    first = krippendorff_alpha(unit, value, seed=5)
    again = krippendorff_alpha(unit[order], value[order], seed=5)
    assert again.lower == pytest.approx(first.lower, abs=1e-12)
    assert krippendorff_alpha(unit, value, seed=6).lower != first.lower
    alphas = [krippendorff_alpha(unit, value, seed=np.random.default_rng(9)) for _ in range(2)]
    assert alphas[0] == alphas[1]


@pytest.mark.slow
def test_the_standard_error_of_a_mean_is_recovered() -> None:
    values = np.random.default_rng(2).normal(size=400)
    figure = Bootstrap(0, 4000).statistic(
        "mean", weighted_proportion(values, np.ones(400)), 400, unit="items", note="", undefined="", high=np.inf
    )
    assert figure.lower is not None
    assert figure.upper is not None
    expected = 2 * 1.966 * values.std(ddof=1) / 20
    assert figure.upper - figure.lower == pytest.approx(expected, rel=0.06)


def test_members_of_one_cluster_are_drawn_together() -> None:
    values = np.random.default_rng(2).normal(size=50)
    cluster = np.repeat(np.arange(50), 4)
    make = Bootstrap(0, 500).statistic
    alone = make("m", weighted_proportion(values, np.ones(50)), 50, unit="items", note="", undefined="")
    copied = make(
        "m",
        weighted_proportion(np.repeat(values, 4), np.ones(200)),
        50,
        unit="items",
        note="",
        undefined="",
        cluster=cluster,
    )
    assert copied.lower == pytest.approx(alone.lower, abs=1e-12)


@pytest.mark.parametrize(
    ("unit", "value", "replicates", "reason"),
    [
        ([0, 0, 1, 1], [1, 1, 2, 2], 200, "most resamples are undefined"),
        ([0, 0, 1, 1, 2, 2, 3, 3], [1, 1, 2, 2, 3, 3, 4, 4], 200, "give the same value"),
        ([0, 0], [1, 2], 200, "only one of the"),
        ([0, 0, 1, 1], [1, 2, 2, 2], 0, "no interval was requested"),
    ],
)
def test_where_resampling_says_nothing_there_is_no_interval_but_a_reason(
    unit: list[int], value: list[float], replicates: int, reason: str
) -> None:
    figure = krippendorff_alpha(unit, value, replicates=replicates)
    assert figure.value is not None
    assert (figure.lower, figure.upper, figure.interval) == (None, None, "")
    assert reason in figure.note


@pytest.mark.slow
def test_95_percent_intervals_of_alpha_cover_the_truth_about_as_often() -> None:
    """Ratings = item + noise with variances ρ and 1 - ρ, so that the true interval α is ρ."""
    rng = np.random.default_rng(11)
    unit = np.repeat(np.arange(60), 4)
    hits = 0
    for seed in range(100):
        value = np.sqrt(0.5) * (rng.normal(size=60)[unit] + rng.normal(size=240))
        figure = krippendorff_alpha(unit, value, seed=seed)
        assert figure.lower is not None
        assert figure.upper is not None
        hits += figure.lower <= 0.5 <= figure.upper
    assert 87 <= hits <= 100


def test_many_units_get_the_spread_that_the_bootstrap_tends_to() -> None:
    rng = np.random.default_rng(4)
    unit = np.repeat(np.arange(3000), 3)
    value = rng.normal(size=3000)[unit] + rng.normal(size=9000)
    statistic = interval_alpha(Units.of(unit, value))
    assert isinstance(statistic, SumStatistic)
    draws = np.concatenate([statistic(rng.poisson(1, (3000, 100)).astype(float)) for _ in range(10)])
    figure = krippendorff_alpha(unit, value)
    assert figure.interval == "jackknife(units)"
    assert figure.lower is not None
    assert figure.upper is not None
    assert (figure.upper - figure.lower) / 2 == pytest.approx(1.96 * draws.std(), rel=0.1)


def test_the_influence_of_a_unit_is_the_derivative_by_its_weight() -> None:
    part, whole = np.array([1.0, 0.0, 2.0]), np.array([2.0, 1.0, 3.0])
    statistic = weighted_proportion(part, whole)
    assert isinstance(statistic, SumStatistic)
    # d(Σ w·part / Σ w·whole)/dw = (part - share · whole) / Σ whole.
    assert statistic.influence() == pytest.approx((part - 0.5 * whole) / 6, abs=1e-9)


@pytest.mark.parametrize(
    "values", [np.arange(2000) % 7 - 3, (np.arange(2000) * 31 % 97).astype(float) / 2, np.array([])]
)
def test_distinct_values_are_those_of_numpys_unique(values: np.ndarray) -> None:
    found, place = distinct(values)
    expected, inverse = np.unique(values, return_inverse=True)
    assert found.tolist() == expected.tolist()
    assert place.tolist() == inverse.tolist()
