"""Correlations against scipy, and their influences against finite differences and the bootstrap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steelyard.observations import FloatArray
from steelyard.reliability.bootstrap import Bootstrap
from steelyard.reliability.correlation import (
    Correlate,
    correlation_statistic,
    jackknife_variance,
    midranks,
    pearson,
    spearman,
)

vectors = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=30)


def weighted_spearman(x: FloatArray, y: FloatArray, weights: FloatArray) -> float:
    """ρ of a sample in which item i stands `weights[i]` times, by its definition through midranks."""

    def ranks(v: FloatArray) -> FloatArray:
        return np.array([weights[v < each].sum() + weights[v == each].sum() / 2 for each in v])

    return weighted_pearson(ranks(x), ranks(y), weights)


def weighted_pearson(x: FloatArray, y: FloatArray, weights: FloatArray) -> float:
    x, y = x - np.average(x, weights=weights), y - np.average(y, weights=weights)
    return float((weights * x * y).sum() / np.sqrt((weights * x * x).sum() * (weights * y * y).sum()))


PAIRS = [(pearson, stats.pearsonr, weighted_pearson), (spearman, stats.spearmanr, weighted_spearman)]


@pytest.mark.parametrize(("ours", "peer", "_weighted"), PAIRS)
@settings(deadline=None, max_examples=60)
@given(pairs=vectors)
def test_correlations_are_those_of_scipy_with_ties(ours: Correlate, peer: Any, _weighted: Any, pairs: Any) -> None:
    x, y = np.array(pairs, float).T
    correlation = ours(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert correlation is None
        return
    assert correlation is not None
    assert correlation.r == pytest.approx(peer(x, y)[0], abs=1e-9)


@pytest.mark.parametrize(("ours", "_peer", "weighted"), PAIRS)
@settings(deadline=None, max_examples=40)
@given(pairs=vectors)
def test_influences_are_the_derivatives_by_the_items_weights(
    ours: Correlate, _peer: Any, weighted: Callable[[FloatArray, FloatArray, FloatArray], float], pairs: Any
) -> None:
    x, y = np.array(pairs, float).T
    correlation = ours(x, y)
    if correlation is None:
        return
    step = 1e-5
    for item in range(len(x)):
        up, down = np.ones(len(x)), np.ones(len(x))
        up[item] += step
        down[item] -= step
        slope = (weighted(x, y, up) - weighted(x, y, down)) / (2 * step)
        assert correlation.influence[item] == pytest.approx(slope, abs=1e-5)


def test_the_jackknifes_standard_error_is_the_spread_over_new_samples() -> None:
    rng = np.random.default_rng(0)
    for correlate in (pearson, spearman):
        values, errors = [], []
        for _ in range(400):
            x = rng.normal(size=150)
            correlation = correlate(x, 0.8 * x + 0.6 * rng.normal(size=150))
            assert correlation is not None
            values.append(correlation.r)
            errors.append(np.sqrt(jackknife_variance(correlation.influence, 150)))
        assert np.mean(errors) == pytest.approx(np.std(values), rel=0.12)


def test_midranks_share_ties() -> None:
    assert midranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]


def test_a_perfect_correlation_has_no_interval_but_a_reason() -> None:
    x = np.arange(5.0)
    correlation = pearson(x, x)
    assert correlation is not None
    figure = correlation_statistic(
        "r", correlation.r, jackknife_variance(correlation.influence, 5), 5, Bootstrap(), note="n"
    )
    assert (figure.lower, figure.upper) == (None, None)
    assert "give the same value" in figure.note
    unasked = correlation_statistic("r", 0.5, 0.01, 5, Bootstrap(0, 0), note="n")
    assert "no interval was requested" in unasked.note
