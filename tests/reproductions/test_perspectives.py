"""The experiment with groups of annotators."""

from __future__ import annotations

from pathlib import Path

import pytest

from reproductions.catalogue import find


@pytest.mark.full
def test_every_column_and_the_simulation_have_claims(shared_data: Path):
    outcome = find("perspectives.groups")().small().run(shared_data, lambda done, total: None)
    whats = [claim.what for claim in outcome.claims]
    assert len(whats) == 4 * 3 + 2
    assert all(claim.lower is None or claim.lower <= claim.ours <= (claim.upper or 0) for claim in outcome.claims)
