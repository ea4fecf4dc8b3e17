"""The procedures of the Conference on Machine Translation (WMT), for comparison with published results."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from steelyard.models.systems.adjusted_means import Cells
from steelyard.observations import FloatArray, IntArray

SIGNIFICANCE = 0.05
"""Significance level of the rank-sum tests at WMT, without a correction for the number of tests."""


class DirectAssessment(NamedTuple):
    """Results of direct assessment: mean standardised scores, tests of every pair, and clusters."""

    z_score: FloatArray
    p_value: FloatArray
    """Of the one-sided rank-sum test that the row is better than the column."""
    wins: NDArray[np.int64]
    """The number of systems that a system is significantly better than."""
    cluster: NDArray[np.int64]


def standardized(value: FloatArray, annotator: IntArray) -> FloatArray:
    """Subtract each annotator's mean and divide by their standard deviation (n − 1)."""
    count = np.bincount(annotator)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.bincount(annotator, value) / count
        variance = np.bincount(annotator, (value - mean[annotator]) ** 2) / (count - 1)
        z_score = (value - mean[annotator]) / np.sqrt(variance)[annotator]
    return np.where(np.isfinite(z_score), z_score, 0.0)


def direct_assessment(cells: Cells) -> DirectAssessment:
    """Rank systems as WMT does since 2016: Wilcoxon's rank-sum test of the z scores of segments, p < .05.

    `cells.value` are z scores; the judgments of one segment of a system are averaged first.
    """
    item = cells.item
    _, first = np.unique(item, return_index=True)
    segment = np.bincount(item, cells.value) / np.bincount(item)
    system = cells.system[first]
    n = cells.n_systems
    by_system = [segment[system == code] for code in range(n)]
    mean = np.array([values.mean() if len(values) else np.nan for values in by_system])
    p_value = np.full((n, n), np.nan)
    for i in range(n):
        for j in range(n):
            if i != j and len(by_system[i]) and len(by_system[j]):
                test = scipy.stats.mannwhitneyu(by_system[i], by_system[j], alternative="greater", method="asymptotic")
                p_value[i, j] = test.pvalue
    wins = (p_value < SIGNIFICANCE).sum(axis=1)
    return DirectAssessment(mean, p_value, wins, clusters_of_wins(mean, p_value < SIGNIFICANCE))


def clusters_of_wins(score: FloatArray, is_better: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Number the clusters from 1: a system with as many wins as there are systems below it ends its cluster.

    This reading of "beats all systems below it" gives the released clusters of WMT21; systems above it in its cluster
    need not beat those below. Counting only wins over systems below would end another cluster in German–English, with a
    system that beats the last two and one above it. 0 for systems without a score.
    """
    scored = np.flatnonzero(~np.isnan(score))
    order = scored[np.lexsort((scored, -score[scored]))]
    wins = is_better[np.ix_(order, order)].sum(axis=1)
    below = np.arange(len(order))[::-1]
    cluster = np.zeros(len(score), np.int64)
    cluster[order] = 1 + np.r_[0, np.cumsum(wins == below)][: len(order)]
    return cluster
