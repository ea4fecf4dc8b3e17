"""R̂ and effective sample sizes: against ArviZ, and against chains whose effective sample size is known."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from steelyard.models.inference.diagnostics import bulk_ess, rhat, tail_ess
from steelyard.observations import FloatArray


def autoregressive(rng: np.random.Generator, shape: tuple[int, int, int], correlation: float) -> FloatArray:
    """Draw stationary AR(1) chains with standard Gaussian margins: chains × draws × quantities."""
    draws = rng.standard_normal(shape)
    for at in range(1, shape[1]):
        draws[:, at] = correlation * draws[:, at - 1] + np.sqrt(1 - correlation**2) * draws[:, at]
    return draws


@pytest.mark.parametrize(
    ("chains", "count", "correlation", "offset"),
    [(4, 200, 0.0, 0.0), (4, 251, 0.9, 0.3), (2, 1000, -0.5, 0.0), (4, 400, 0.97, 0.0), (4, 100, 0.5, 2.0)],
)
def test_agrees_with_arviz(chains: int, count: int, correlation: float, offset: float):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arviz = pytest.importorskip("arviz", reason="pip install 'steelyard[reference]'")
    draws = autoregressive(np.random.default_rng(count), (chains, count, 3), correlation)
    draws[0] += offset
    draws[:, :, 1] = np.exp(draws[:, :, 1])
    for at in range(draws.shape[2]):
        one, other = draws[:, :, at], draws[:, :, at : at + 1]
        assert rhat(other)[0] == pytest.approx(float(arviz.rhat(one)), rel=1e-9)
        assert bulk_ess(other)[0] == pytest.approx(float(arviz.ess(one, method="bulk")), rel=1e-9)
        assert tail_ess(other)[0] == pytest.approx(float(arviz.ess(one, method="tail")), rel=1e-9)


def test_independent_draws_count_in_full():
    draws = np.random.default_rng(1).standard_normal((4, 1000, 20))
    assert rhat(draws).max() < 1.01
    assert bulk_ess(draws).mean() == pytest.approx(4000, rel=0.05)
    assert tail_ess(draws).mean() == pytest.approx(4000, rel=0.1)


@pytest.mark.parametrize("correlation", [0.5, 0.9, -0.4])
def test_autoregressive_draws_count_by_their_autocorrelation_time(correlation: float):
    draws = autoregressive(np.random.default_rng(2), (4, 4000, 20), correlation)
    # The autocorrelation time of an AR(1) process is (1 + φ) / (1 − φ).
    expected = 16_000 * (1 - correlation) / (1 + correlation)
    assert bulk_ess(draws).mean() == pytest.approx(expected, rel=0.07)


def test_a_chain_elsewhere_raises_rhat():
    draws = np.random.default_rng(3).standard_normal((4, 500, 3))
    draws[0, :, 0] += 3.0
    draws[0, :, 1] *= 5.0
    elsewhere, wider, alike = rhat(draws)
    assert elsewhere > 1.3
    assert wider > 1.05
    assert alike < 1.02


def test_a_drift_within_every_chain_raises_rhat():
    draws = np.random.default_rng(4).standard_normal((4, 500, 1)) + np.linspace(0, 4, 500)[None, :, None]
    assert rhat(draws)[0] > 1.3


def test_infinite_variance_is_diagnosed_by_ranks():
    draws = np.random.default_rng(5).standard_cauchy((4, 1000, 1))
    assert rhat(draws)[0] < 1.02
    assert bulk_ess(draws)[0] > 3000


def test_a_quantity_that_never_changes_has_converged():
    draws = np.ones((4, 100, 1))
    assert rhat(draws)[0] == 1.0
    assert bulk_ess(draws)[0] == 400
