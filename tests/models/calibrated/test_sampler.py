"""The calibrated scale's sampler draws from the posterior of the model as stated.

The full forms are `make sbc` (simulation-based calibration) and `make nuts` (recorded judgments).
"""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from benchmarks import nuts_calibrated
from benchmarks.calibrated_prior import SCENES
from benchmarks.sbc_calibrated import adjusted, check_invariance, check_ranks
from steelyard.models.calibrated.evidence import Evidence
from tests.sizes import FULL

pytestmark = pytest.mark.slow

SHORT_SCENES = ("slider", "pages", "steps", "ties", "strengths", "best_worst")


@pytest.mark.parametrize("scene", SCENES if FULL else SHORT_SCENES)
def test_sweeps_leave_the_joint_distribution_as_it_is(scene: str):
    findings = check_invariance(scene, "random", range(2000 if FULL else 400))
    failures = [
        finding for finding, p_value in zip(findings, adjusted(findings), strict=True) if p_value < 1e-3 / len(SCENES)
    ]
    assert failures == []


@pytest.mark.full
@pytest.mark.parametrize("scene", SCENES)
def test_ranks_of_true_values_are_uniform(scene: str):
    findings = check_ranks(scene, "random", range(100))
    assert adjusted(findings).min() > 1e-3 / len(SCENES)


@pytest.fixture
def quick_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run shorter chains than the benchmark's."""
    if not FULL:
        monkeypatch.setattr(nuts_calibrated, "NUTS_WARM_UP", 300)
        monkeypatch.setattr(nuts_calibrated, "NUTS_DRAWS", 1000)
        monkeypatch.setattr(nuts_calibrated, "GIBBS_DRAWS", 8000)


@pytest.mark.usefixtures("quick_chains", "shared_data")
@pytest.mark.skipif(importlib.util.find_spec("numpyro") is None, reason="pip install 'steelyard[reference]'")
@pytest.mark.parametrize("name", nuts_calibrated.SETS if FULL else ["votes"])
@pytest.mark.filterwarnings("ignore")
def test_posteriors_equal_those_of_nuts(name: str):
    data = nuts_calibrated.SETS[name]
    result = nuts_calibrated.compare(Evidence.of("calibrated_scale", data.read()), data.rung)
    assert result.rhat < 1.02
    assert np.abs(result.mean_gap).max() < nuts_calibrated.MEAN_TOLERANCE
    assert np.abs(result.sd_gap).max() < nuts_calibrated.SD_TOLERANCE
