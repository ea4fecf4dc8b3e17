"""Adjusted means against the formula of generalised least squares, and plain means against averages by hand."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.models.systems.adjusted_means import Cells, adjusted_means, plain_means, variance_components
from tests.models.systems.data import complete


def test_plain_mean_averages_items_before_sources():
    # System 0: source 0 rated 10 and 20, source 1 rated 40: (15 + 40) / 2.
    cells = Cells(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 0]), None, np.array([10.0, 20, 40, 7]), 2)
    assert plain_means(cells).score == pytest.approx([27.5, 7])


def test_adjusted_means_of_a_complete_design_are_plain_means():
    cells = complete(4, 12, 5, np.random.default_rng(1))
    assert adjusted_means(cells).score == pytest.approx(plain_means(cells).score, abs=1e-9)


def test_adjusted_means_solve_the_equations_of_generalised_least_squares():
    rng = np.random.default_rng(2)
    whole = complete(3, 15, 4, rng)
    first = np.unique(whole.item, return_index=True)[1]
    # One rating of most items, by some annotator.
    chosen = np.sort(rng.choice(first + rng.integers(0, 4, len(first)), 35, replace=False))
    source = np.unique(whole.source[chosen], return_inverse=True)[1].astype(np.int32)
    value = whole.value[chosen] + 12.0 * whole.annotator[chosen]
    cells = Cells(whole.system[chosen], source, whole.annotator[chosen], value, 3)
    parts = variance_components(cells)
    assert parts.source > 0
    assert parts.annotator > 0
    shared = [np.equal.outer(code, code) for code in (cells.source, cells.annotator)]
    # An item with one rating has the variance of the item and of the noise.
    matrix = parts.source * shared[0] + parts.annotator * shared[1] + (parts.item + parts.noise) * np.eye(35)
    design = np.equal.outer(cells.system, np.arange(3)).astype(float)
    weighted = np.linalg.solve(matrix, design)
    expected = np.linalg.solve(design.T @ weighted, weighted.T @ cells.value)
    assert adjusted_means(cells).score == pytest.approx(expected, abs=1e-8)


def test_hard_sources_and_severe_annotators_do_not_bias_the_scores():
    rng = np.random.default_rng(3)
    difference, plain = [], []
    for _ in range(40):
        system = rng.integers(0, 2, 400).astype(np.int32)
        # System 1 gets hard sources and severe annotators more often.
        source = np.where(rng.random(400) < 0.5 + 0.2 * system, rng.integers(0, 20, 400), rng.integers(20, 40, 400))
        annotator = np.where(rng.random(400) < 0.5 + 0.2 * system, rng.integers(0, 5, 400), rng.integers(5, 10, 400))
        value = -10.0 * (source < 20) - 10.0 * (annotator < 5) + rng.normal(0, 3, 400)
        cells = Cells(system, source.astype(np.int32), annotator.astype(np.int32), value, 2)
        difference.append(np.subtract(*adjusted_means(cells).score))
        plain.append(np.subtract(*plain_means(cells).score))
    # Random effects are shrunken, which leaves a tenth of the bias of plain means.
    assert abs(np.mean(difference)) < 0.4
    assert np.mean(plain) > 2


def test_variance_components_are_recovered():
    rng = np.random.default_rng(4)
    system, source, annotator = (axis.ravel().astype(np.int32) for axis in np.indices((4, 300, 30)))
    keep = rng.random(system.size) < 0.15
    system, source, annotator = system[keep], source[keep], annotator[keep]
    value = 4 * rng.normal(size=300)[source] + 3 * rng.normal(size=30)[annotator]
    value += 2 * rng.normal(size=(4, 300))[system, source] + 5 * rng.normal(size=system.size)
    parts = variance_components(Cells(system, source, annotator, value, 4))
    assert parts.source == pytest.approx(16, rel=0.2)
    assert parts.annotator == pytest.approx(9, rel=0.5)
    assert parts.item == pytest.approx(4, abs=1.5)
    assert parts.noise == pytest.approx(25, rel=0.1)
