"""The bootstrap of Elo: many replicates in one pass equal one pass each, and a tail equals all comparisons."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from steelyard.models.comparisons import elo_bootstrap
from steelyard.models.comparisons.elo import Elo
from steelyard.models.comparisons.elo_bootstrap import TOLERANCE, EloBootstrap
from steelyard.models.comparisons.online import Matches
from steelyard.models.comparisons.online_kernels import MatchCounts, elo_pass, fill_with_weights
from steelyard.models.inference.resampling import Units, poisson_quantiles, poisson_weights
from steelyard.observations import Comparisons, FloatArray, Index
from tests.models.online_cases import random_comparisons

RATE = float(np.log(10)) / 400


def bootstrap_of(comparisons: Comparisons) -> EloBootstrap:
    initial = np.full(len(comparisons.items), 1500.0)
    return EloBootstrap(Matches.of(comparisons), Units.of(comparisons), initial, 32.0, RATE, seed=3)


def drawn(comparisons: Comparisons, replicates: int) -> FloatArray:
    counts = np.bincount(np.r_[comparisons.left, comparisons.right], minlength=len(comparisons.items))
    return bootstrap_of(comparisons).draws(replicates, counts > 0)


def one_by_one(comparisons: Comparisons, replicates: int) -> FloatArray:
    """Run each replicate alone, over all comparisons."""
    matches, units = Matches.of(comparisons), Units.of(comparisons)
    ratings = np.full((replicates, len(comparisons.items)), 1500.0)
    for rating, weight in zip(ratings, poisson_weights(units.names, replicates, 3), strict=True):
        is_compared = np.zeros(len(rating), np.bool_)
        elo_pass(rating, is_compared, matches.batches, MatchCounts(units.of_row[matches.row], weight), 32.0, RATE)
        rating[~is_compared] = np.nan
    return ratings


def in_tasks(comparisons: Comparisons, size: int) -> Comparisons:
    task = np.arange(len(comparisons), dtype=np.int32) // size
    return replace(comparisons, tasks=Index(f"t{number}" for number in range(task[-1] + 1)), task=task)


@pytest.mark.parametrize("size", [1, 3])
def test_replicates_in_one_pass_equal_one_pass_each(size: int) -> None:
    comparisons = in_tasks(random_comparisons(300, 12, seed=1, annotators=4), size)
    # The last item has one comparison only, which some replicates leave out.
    alone = replace(comparisons, items=Index([*comparisons.items.ids, "alone"]))
    alone.left[-1] = 12
    assert np.isnan(one_by_one(alone, 50)).any()
    assert drawn(alone, 50) == pytest.approx(one_by_one(alone, 50), abs=1e-5, nan_ok=True)


def test_a_tail_gives_the_ratings_of_all_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elo_bootstrap, "CHUNK", 256)
    comparisons = random_comparisons(40_000, 8, seed=2, annotators=30)
    bootstrap = bootstrap_of(comparisons)
    first, _ = bootstrap._tail(40, np.ones(8, np.bool_))
    assert first >= 30_000
    whole = one_by_one(comparisons, 60)
    assert np.abs(bootstrap.draws(60, np.ones(8, np.bool_)) - whole).max() < 2 * 32 * TOLERANCE
    assert whole.std(axis=0).min() > 10


@pytest.mark.parametrize("last", [5_000, 39_000])
def test_items_compared_only_at_the_beginning_need_all_comparisons(last: int) -> None:
    comparisons = random_comparisons(40_000, 8, seed=2, annotators=30)
    left = np.where((comparisons.left == 0) & (np.arange(40_000) > last), 1, comparisons.left)
    right = np.where((comparisons.right == 0) & (np.arange(40_000) > last), 1, comparisons.right)
    right = np.where(left == right, 2, right)
    retired = replace(comparisons, left=left.astype(np.int32), right=right.astype(np.int32))
    assert np.abs(drawn(retired, 40) - one_by_one(retired, 40)).max() < 2 * 32 * TOLERANCE


def test_single_judgments_are_resampled_as_annotators_with_one_judgment_each() -> None:
    comparisons = random_comparisons(600, 6, seed=4)
    alone = replace(
        comparisons, annotators=Index(f"a{row}" for row in range(600)), annotator=np.arange(600, dtype=np.int32)
    )
    single, named = (Elo(draws=400).fit(data).scores.sort("item") for data in (comparisons, alone))
    assert set(single["interval"]) == {"bootstrap(judgments)"}
    assert single["score"].to_list() == named["score"].to_list()
    assert single["sd"].to_numpy() == pytest.approx(named["sd"].to_numpy(), rel=0.2)


def test_weights_are_independent_and_have_a_poisson_distribution() -> None:
    weight = np.empty((20_000, 8), np.uint8)
    fill_with_weights(weight, poisson_quantiles(), np.uint64(7))
    assert weight.mean() == pytest.approx(1, abs=0.01)
    assert weight.var() == pytest.approx(1, abs=0.02)
    assert (weight == 0).mean() == pytest.approx(np.exp(-1), abs=0.006)
    off_diagonal = np.asarray(np.corrcoef(weight.T))[~np.eye(8, dtype=bool)]
    assert np.abs(off_diagonal).max() < 0.03
    assert abs(np.asarray(np.corrcoef(weight[:-1, 0], weight[1:, 0]))[0, 1]) < 0.03
