"""Scores by group of annotators: shrinkage, intervals, a test of the right size, and small groups hidden."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from steelyard.errors import DataError
from steelyard.models.perspectives import group_scores, held_out_log_scores
from steelyard.observations import Index, Ratings


def rated(seed: int, *, group_sd: float = 0.0, shift: float = 0.0, people: int = 24, items: int = 20, each: int = 12):
    """Return ratings by two groups of equal size, the groups, and the true mean difference on 0–100."""
    rng = np.random.default_rng(seed)
    group = np.arange(people) % 2
    own = rng.normal(0, group_sd, (items, 2))
    person = np.repeat(np.arange(people), each)
    item = np.concatenate([rng.permutation(items)[:each] for _ in range(people)])
    value = rng.normal(50, 18, items)[item] + rng.normal(0, 8, people)[person] + own[item, group[person]]
    value = np.clip(value + shift * group[person] + rng.normal(0, 12, len(item)), -100, 200)
    part = Ratings(
        items=Index(f"i{n:02}" for n in range(items)),
        annotators=Index(f"w{n:02}" for n in range(people)),
        item=item.astype(np.int32),
        annotator=person.astype(np.int32),
        value=value,
        scale=(-100, 200),
    )
    groups = {f"w{n:02}": "ab"[group[n]] for n in range(people)}
    return part, groups, float((own[:, 0] - own[:, 1]).mean() - shift)


def test_the_difference_of_groups_is_recovered_and_items_are_scored_for_each():
    part, groups, true = rated(0, shift=30)
    result = group_scores(part, groups, draws=200, permutations=0)
    row = result.differences.row(0, named=True)
    assert (row["first"], row["second"]) == ("a", "b")
    assert row["lower"] <= true <= row["upper"]
    assert result.scores.height == 2 * 20
    assert result.groups.rows() == [("a", 12), ("b", 12)]


@pytest.mark.slow
def test_intervals_of_differences_cover_and_the_test_keeps_its_size():
    covered, rejected = [], []
    for seed in range(16):
        part, groups, true = rated(seed, shift=10)
        result = group_scores(part, groups, draws=100, permutations=39, seed=seed)
        row = result.differences.row(0, named=True)
        covered.append(row["lower"] <= true <= row["upper"])
        rejected.append(result.p_value <= 0.05)
    assert np.mean(covered) >= 0.95 - 2 * np.sqrt(0.95 * 0.05 / 16)
    assert np.mean(rejected) <= 0.05 + 2 * np.sqrt(0.95 * 0.05 / 16)


def test_groups_that_see_items_differently_are_detected_and_predict_better():
    part, groups, _ = rated(1, group_sd=20, people=40, each=15)
    assert group_scores(part, groups, draws=50, permutations=99).p_value == pytest.approx(0.01)
    scores = held_out_log_scores(part, groups, draws=60, folds=3)
    assert scores["grouped"].mean() > scores["pooled"].mean() + 0.05


def test_small_groups_are_hidden_but_their_ratings_count():
    part, groups, _ = rated(2)
    for name in ("w00", "w02", "w04"):
        groups[name] = "rare"
    result = group_scores(part, groups, draws=50, permutations=0)
    assert result.hidden == 1
    assert set(result.scores["group"]) == {"a", "b"}
    assert "rare" not in str(result.groups.rows()) + str(result.differences.rows())
    with pytest.raises(DataError, match="fewer than two groups have 13"):
        group_scores(part, groups, min_group=13)


def test_annotators_without_a_group_are_no_group():
    part, groups, _ = rated(3)
    partial = {name: group for name, group in groups.items() if name not in {"w00", "w01"}}
    result = group_scores(part, partial, draws=50, permutations=0)
    assert result.groups["annotators"].to_list() == [11, 11]
    assert result.hidden == 0
    assert isinstance(result.scores, pl.DataFrame)
