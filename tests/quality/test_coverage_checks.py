"""The acceptance run of the checks, in short: whole studies on SQLite (benchmarks/coverage_checks.py has all)."""

from __future__ import annotations

import pytest

from benchmarks.coverage_checks import run

pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")


@pytest.mark.slow
def test_a_study_finds_those_who_guess_spares_the_others_and_asks_again_what_was_set_aside():
    """A small run: 12 honest people and 3 who guess."""
    outcome = run(1, honest=12, spammers=3, items=15, judgments=40)
    assert outcome.found >= 2
    assert outcome.lost <= 1
    assert outcome.set_aside > 0
    assert outcome.refilled
