"""Comparisons of systems: the official results of WMT21 and the published ratings of MTEB Arena are met."""

from __future__ import annotations

from pathlib import Path

import pytest

from reproductions.running import ignore_progress
from reproductions.systems import MtebArena, Wmt21Clusters


@pytest.mark.shared_data
def test_the_official_results_of_wmt21_are_reproduced(shared_data: Path) -> None:
    outcome = Wmt21Clusters().run(shared_data, ignore_progress)
    table = outcome.table
    assert table is not None
    assert table.group_by("pair").len().sort("pair").rows() == [("cs-en", 9), ("de-en", 20), ("ha-en", 14)]
    assert table["z"].to_list() == pytest.approx(table["z_official"].to_list(), abs=1e-6)
    assert table["wins"].to_list() == table["wins_official"].to_list()
    assert table["cluster"].to_list() == table["cluster_official"].to_list()
    # Corrected and clustered, ours never splits further than WMT's tests.
    assert (table["cluster_two_way"] <= table["cluster"]).all()


@pytest.mark.shared_data
def test_the_published_ratings_of_mteb_arena_are_reproduced(shared_data: Path) -> None:
    outcome = MtebArena().run(shared_data, ignore_progress)
    ratings = [claim for claim in outcome.claims if claim.lower is not None]
    assert len(ratings) == 15
    assert max(abs(claim.difference or 0.0) for claim in ratings) < 0.7
