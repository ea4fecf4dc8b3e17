"""Pairwise comparisons against textbook values, and clusters by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard.models.systems.adjusted_means import plain_means
from steelyard.models.systems.clustered import Covariance, clustered_covariance
from steelyard.models.systems.comparison import SystemOptions, compare
from steelyard.models.systems.pairwise import (
    clusters_of_differences,
    clusters_of_ranges,
    compare_pairs,
    holm,
    pairs_from_draws,
    rank_ranges,
)
from tests.models.systems.data import complete, ratings


def symmetric(values, n=3):
    matrix = np.full((n, n), np.nan)
    first, second = np.triu_indices(n, 1)
    matrix[first, second] = matrix[second, first] = values
    return matrix


def test_holm_multiplies_and_keeps_the_order():
    # By hand: .01 · 3, .03 · 2, max(.04 · 1, .06).
    adjusted = holm(symmetric([0.01, 0.04, 0.03]))
    assert adjusted[np.triu_indices(3, 1)] == pytest.approx([0.03, 0.06, 0.06])
    assert np.isnan(np.diag(adjusted)).all()


def test_sources_alone_give_the_paired_t_test():
    cells = complete(3, 20, 1, np.random.default_rng(1))._replace(annotator=None)
    comparison = compare(ratings(cells), SystemOptions(adjust=False))
    by_source = cells.value.reshape(3, 20)
    row = comparison.differences.row(0, named=True)
    test = stats.ttest_rel(by_source[int(row["system"][1])], by_source[int(row["other"][1])])
    # The correction for S = 3 estimated means of N = 60 ratings: (N − 1) / (N − S).
    ratio = row["difference"] / row["sd"]
    assert ratio * np.sqrt(59 / 57) == pytest.approx(test.statistic, rel=1e-9)
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(ratio, 19), rel=1e-9)
    assert row["probability"] == pytest.approx(stats.t.cdf(ratio, 19), rel=1e-9)


def test_two_way_covariance_is_the_sum_over_clusters():
    cells = complete(3, 8, 4, np.random.default_rng(2))
    influence = plain_means(cells)
    covariance = clustered_covariance(influence, cells.source, cells.annotator, "")
    moves = influence.rows.toarray()
    n, parts = len(moves), []
    for key in (cells.source, cells.annotator, cells.source * 4 + cells.annotator):
        groups = np.unique(key)
        total = sum(np.outer(moves[key == group].sum(0), moves[key == group].sum(0)) for group in groups)
        parts.append(total * len(groups) / (len(groups) - 1) * (n - 1) / (n - 3))
    for part, expected in zip(covariance.parts, parts, strict=True):
        assert part == pytest.approx(expected, rel=1e-9)
    assert np.linalg.eigvalsh(covariance.matrix).min() > -1e-9


def test_simultaneous_intervals_of_independent_systems_are_those_of_tukey():
    covariance = Covariance(np.eye(5), (np.eye(5),), (1_000_001,), "")
    pairwise = compare_pairs(np.zeros(5), covariance, 0.95)
    # Tables of the studentized range: 3.858 for five means and infinite degrees of freedom.
    assert pairwise.upper[0, 1] == pytest.approx(3.858, abs=0.001)


def test_draws_give_the_same_comparison_as_the_normal_distribution_they_come_from():
    rng = np.random.default_rng(3)
    score = np.array([1.0, 0.4, 0.0])
    draws = score + rng.normal(0, 0.3, (20_000, 3))
    pairwise = pairs_from_draws(score, draws, 0.95)
    assert pairwise.probability[0, 1] == pytest.approx(stats.norm.cdf(0.6 / (0.3 * np.sqrt(2))), abs=0.01)
    assert pairwise.p_value[0, 1] == pytest.approx(2 * stats.norm.sf(0.6 / (0.3 * np.sqrt(2))), rel=0.1)
    width = stats.studentized_range.ppf(0.95, 3, 1e6) * 0.3
    assert pairwise.upper[0, 2] - pairwise.difference[0, 2] == pytest.approx(width, rel=0.03)


def test_few_draws_can_tell_many_systems_apart():
    # Forty systems have 780 pairs; counting 100 draws could not give a corrected p-value below 1.
    score = 10.0 * np.arange(40)
    draws = score + np.random.default_rng(4).normal(size=(100, 40))
    assert pairs_from_draws(score, draws, 0.95).is_better.sum() == 780


def test_rank_ranges_count_significant_differences():
    # The first system beats both others; they are not told apart.
    is_better = np.array([[False, True, True], [False, False, False], [False, False, False]])
    lowest, highest = rank_ranges(is_better, np.ones(3, bool))
    assert lowest.tolist() == [1, 2, 2]
    assert highest.tolist() == [1, 3, 3]


@pytest.mark.parametrize(
    ("pairs", "clusters"),
    [
        ([], [1, 1, 1, 1]),
        ([(0, 1), (0, 2), (0, 3)], [1, 2, 2, 2]),
        ([(0, 2), (0, 3), (1, 2), (1, 3)], [1, 1, 2, 2]),
        # The second does not beat the third, so the cut would have to be after the third.
        ([(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)], [1, 2, 2, 3]),
        ([(0, 2), (0, 3), (1, 3)], [1, 1, 1, 1]),
    ],
)
def test_every_system_of_a_cluster_beats_those_of_lower_clusters(pairs, clusters):
    score = np.array([4.0, 3, 2, 1])
    is_better = np.zeros((4, 4), bool)
    for pair in pairs:
        is_better[pair] = True
    assert clusters_of_differences(score, is_better).tolist() == clusters
    order = np.array([2, 0, 3, 1])
    shuffled = clusters_of_differences(score[order], is_better[np.ix_(order, order)])
    assert shuffled.tolist() == np.array(clusters)[order].tolist()


def test_clusters_of_rank_ranges_do_not_overlap():
    score = np.array([5.0, 4, 3, 2, 1, np.nan])
    lowest = np.array([1, 1, 3, 3, 5, np.nan])
    highest = np.array([2, 2, 4, 4, 5, np.nan])
    assert clusters_of_ranges(score, lowest, highest).tolist() == [1, 1, 2, 2, 3, 0]
    # A range that reaches down keeps everything above its end together.
    assert clusters_of_ranges(score[:3], np.array([1, 2, 3]), np.array([3, 2, 3])).tolist() == [1, 1, 1]
