"""Strength of preferences: the ratio of comparisons by hand, and a small run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reproductions.graded.strength import CROWDS, Strength, comparisons_needed, information_ratio
from reproductions.running import ignore_progress


def test_a_curve_that_is_twice_as_fast_needs_half_of_the_comparisons():
    budgets = (1, 2, 4, 8, 16)
    slow = np.log(budgets)
    assert comparisons_needed(budgets, slow, slow + np.log(2)) == pytest.approx(0.5)
    assert comparisons_needed(budgets, slow, slow) == pytest.approx(1.0)


def test_more_steps_carry_more_information():
    five, seven = (information_ratio(crowd) for crowd in CROWDS[:2])
    assert 0.5 < seven < five < 1


@pytest.mark.shared_data
def test_a_small_run_measures_all_data(shared_data: Path) -> None:
    outcome = Strength().small().run(shared_data, ignore_progress)
    assert outcome.table is not None
    assert outcome.table["data"].n_unique() == 1 + len(CROWDS)
    needed = [claim.ours for claim in outcome.claims if "comparisons needed" in claim.what]
    assert all(0 < ratio < 300 for ratio in needed)
