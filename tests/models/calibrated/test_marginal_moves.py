"""Moves of compared items with the responses integrated out draw from the density that quadrature gives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from steelyard.models.calibrated.chain_kernels import MANY_PAIRS
from steelyard.models.calibrated.chain_state import MARGIN, MEAN, SD, ItemRows
from steelyard.models.calibrated.evidence import Evidence
from steelyard.models.calibrated.gibbs_kernels import TABLE_END, log_chance_curve
from steelyard.models.calibrated.ladder import RUNGS
from steelyard.models.calibrated.marginal_kernels import item_curve, slice_item, step_item
from steelyard.models.calibrated.posterior import sample
from steelyard.observations import Comparisons, FloatArray, Index

OTHERS = np.array([-1.2, -0.3, 0.4, 1.1])
SLOPES, LAPSES = np.array([0.8, 1.5]), np.array([0.0, 0.1])


def problem(margin: float, won: int, lost: int, tied: int, higher: tuple[float, ...] = ()) -> tuple[ItemRows, Any]:
    """Return comparisons of item 0 with four others by two annotators, and the state that the moves read.

    With `higher` cuts, the comparisons have strengths, and one in every round has an unknown one.
    """
    outcome = np.array([1] * won + [-1] * lost + [0] * tied, np.int8)
    number = np.arange(len(outcome), dtype=np.int32)
    if higher:
        outcome = (outcome * (1 + number % (len(higher) + 2))).astype(np.int8)
    start = np.array([0, len(outcome)], np.int64)
    rows = ItemRows(start, 1 + number % len(OTHERS), number % 2, outcome, np.array([True]))
    common = np.zeros(7)
    common[[MEAN, SD, MARGIN]] = 0.0, 1.3, margin
    x = np.append(0.2, OTHERS)
    prior_mean = np.full(len(x), common[MEAN])
    cuts = np.zeros((3, 1 + len(higher)))
    cuts[0] = margin, *higher
    return rows, SimpleNamespace(x=x, prior_mean=prior_mean, slope=SLOPES, lapse_rate=LAPSES, common=common, cuts=cuts)


def log_density(rows: ItemRows, draw: Any, location: FloatArray) -> FloatArray:
    """Return the log density of item 0 by the definition of the model."""
    total = stats.norm.logpdf(location, 0.0, 1.3)
    margin, cuts = draw.common[MARGIN], draw.cuts[0]
    n_answers = 2 * len(cuts) + (margin > 0)
    ends = {0: (-margin, margin), len(cuts) + 1: (margin, np.inf)}
    ends |= {level: (cuts[level - 1], np.append(cuts, np.inf)[level]) for level in range(1, len(cuts) + 1)}
    for other, who, won in zip(rows.other, rows.responder, rows.won, strict=True):
        ahead = SLOPES[who] * (location - draw.x[other])
        lower, upper = ends[abs(int(won))]
        lower, upper = (-upper, -lower) if won < 0 else (lower, upper)
        chance = stats.norm.cdf(upper - ahead) - stats.norm.cdf(lower - ahead)
        total = total + np.log((1 - LAPSES[who]) * chance + LAPSES[who] / n_answers)
    return np.asarray(total)


def test_the_tabulated_logarithm_has_the_values_slopes_and_curvatures_of_the_gaussian():
    for z in np.random.default_rng(0).uniform(-TABLE_END, TABLE_END, 500):
        value, slope, curvature = log_chance_curve(z)
        log_chance = special.log_ndtr(z)
        ratio = np.exp(stats.norm.logpdf(z) - log_chance)
        assert value == pytest.approx(log_chance, abs=1e-9)
        assert slope == pytest.approx(ratio, abs=1e-6)
        assert curvature == pytest.approx(ratio * (ratio + z), abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("move", [step_item, slice_item])
@pytest.mark.parametrize("answers", [(0.0, 8, 5, 0), (0.4, 6, 5, 3), (0.0, 6, 0, 0), (0.3, 6, 6, 2, (0.9,))])
def test_an_item_is_drawn_from_its_density(move: Any, answers: Any):
    rows, draw = problem(*answers)
    grid = np.linspace(-6, 6, 2001)
    weight = np.exp(log_density(rows, draw, grid) - log_density(rows, draw, grid).max())
    distribution = np.cumsum(weight) / weight.sum()
    rng, values = np.random.default_rng(3), []
    for _ in range(800):
        for _ in range(2):
            move(rng, rows, draw, 0)
        values.append(draw.x[0])
    # Two moves give nearly independent draws; every second one is taken to be sure.
    quantile = np.interp(values[::2], grid, distribution)
    assert stats.kstest(quantile, "uniform").pvalue > 1e-3
    assert np.mean(quantile) == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / len(quantile)))


@pytest.mark.parametrize("answers", [(0.0, 8, 5, 0), (0.4, 6, 5, 3), (0.3, 6, 6, 2, (0.9,))])
def test_the_curve_has_the_slope_of_the_density(answers: Any):
    rows, draw = problem(*answers)
    for location in (-1.0, 0.1, 2.0):
        above, below = log_density(rows, draw, np.array([location + 1e-4, location - 1e-4]))
        value, rise, curvature = item_curve(rows, draw, 0, location)
        # The kernel leaves out the constant of the prior.
        constant = stats.norm.logpdf(0.0, 0.0, 1.3)
        assert value + constant == pytest.approx(float(log_density(rows, draw, np.array([location]))[0]), abs=1e-4)
        assert rise == pytest.approx((above - below) / 2e-4, abs=2e-3)
        assert curvature >= 1 / 1.3**2


@pytest.mark.full
def test_many_comparisons_give_the_posterior_of_few_items():
    """Above MANY_PAIRS most sweeps leave the responses out; scores are as far from the true ones as they claim."""
    rng = np.random.default_rng(0)
    n_items, count = 200, MANY_PAIRS + 1000
    x = rng.normal(0, 1.2, n_items)
    left = rng.integers(n_items, size=count)
    right = (left + rng.integers(1, n_items, size=count)) % n_items
    outcome = np.where(x[left] - x[right] + rng.standard_normal(count) > 0, 1, -1)
    observations = Comparisons(
        items=Index([f"i{code}" for code in range(n_items)]),
        annotators=Index(["a"]),
        annotator=np.zeros(count, np.int32),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        outcome=outcome.astype(np.int8),
    )
    posterior = sample(Evidence.of("x", observations), RUNGS["none"], 200, np.random.SeedSequence(1))
    order = np.argsort(observations.items.ids)
    off = (posterior.x.mean(axis=0) - (x - x.mean())[order]) / posterior.x.std(axis=0)
    assert posterior.diagnostics.converged
    # Standardised errors have mean square 1, with a standard error of √(2/n).
    assert np.mean(off**2) == pytest.approx(1.0, abs=4 * np.sqrt(2 / n_items))
