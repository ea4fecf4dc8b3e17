"""Comparative-judgement sessions: the published reliabilities are met."""

from __future__ import annotations

from pathlib import Path

import pytest

from reproductions.comparative_judgement import JudgeSplitHalf, ScaleSeparation
from reproductions.running import ignore_progress


@pytest.mark.shared_data
def test_scale_separation_is_the_published_one_within_a_thousandth(shared_data: Path) -> None:
    outcome = ScaleSeparation().small().run(shared_data, ignore_progress)
    sessions = [claim for claim in outcome.claims if "decisions)" in claim.what]
    assert len(sessions) == 9
    for claim in sessions:
        assert claim.difference == pytest.approx(0, abs=0.001), claim.what
        assert claim.lower is not None
        assert claim.upper is not None
        assert claim.lower < claim.ours < claim.upper


@pytest.mark.slow
@pytest.mark.shared_data
def test_halves_of_the_judges_agree_as_much_as_published(shared_data: Path) -> None:
    outcome = JudgeSplitHalf().small().run(shared_data, ignore_progress)
    *sessions, apart = outcome.claims
    assert len(sessions) == 8
    assert apart.ours < 0.05
    for claim in sessions:
        assert claim.lower is not None
        assert claim.upper is not None
        assert claim.lower <= claim.ours <= claim.upper
