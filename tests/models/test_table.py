"""The intervals of draws, with and without missing ones."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.models.table import Uncertainty


def test_intervals_are_numpys_quantiles_without_the_missing_draws() -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(41, 30))
    draws[rng.random(draws.shape) < np.linspace(0, 0.9, 30)] = np.nan
    draws[2:, -1] = np.nan
    draws[:2, -1] = 1.0, 2.0
    uncertainty = Uncertainty.from_draws("draws", draws, level=0.9)
    expected = np.nanquantile(draws, [0.05, 0.95], axis=0)
    assert uncertainty.lower == pytest.approx(expected[0], abs=1e-12)
    assert uncertainty.upper == pytest.approx(expected[1], abs=1e-12)
