"""γ: by hand, and beside pygamma-agreement 0.5.9 (Titeux & Riad 2021), run once with the same settings."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.observations import Span
from steelyard.reliability.gamma import disorder, gamma

CASES = {
    # name: units of two annotators, length of the text; observed and expected disorder of pygamma-agreement with
    # CombinedCategoricalDissimilarity(alpha=1, beta=1, delta_empty=1) and ShuffleContinuumSampler, 3,000 samples
    "overlap": ([(0, 4, "minor")], [(2, 6, "minor")], 40, 0.25, 1.7857),
    "crossed": (
        [(0, 4, "minor"), (10, 20, "major"), (30, 33, "minor")],
        [(1, 5, "major"), (12, 20, "major"), (21, 25, "minor")],
        40,
        1.0249486,
        1.2395,
    ),
    "unequal": (
        [(3, 9, "minor"), (5, 12, "major"), (15, 18, "minor"), (25, 40, "major")],
        [(4, 9, "minor"), (26, 38, "major")],
        60,
        0.6735367,
        1.4193,
    ),
}


def units(places: list[tuple[int, int, str]]) -> list[Span]:
    return [Span(*place) for place in places]


@pytest.mark.parametrize("name", CASES)
def test_disorder_and_gamma_equal_those_of_pygamma_agreement(name):
    first, second, length, observed, expected = CASES[name]
    result = gamma(units(first), units(second), length, np.random.default_rng(0), samples=3000)
    assert result.observed == pytest.approx(observed, abs=1e-6)
    assert result.expected == pytest.approx(expected, abs=0.03)
    assert result.value == pytest.approx(1 - observed / expected, abs=0.02)


def test_disorder_by_hand():
    # ((2 + 2) / (4 + 4))² = .25; another severity adds 1, which is no better than two units without a counterpart.
    one = units([(0, 4, "minor")])
    assert disorder(one, units([(2, 6, "minor")])) == pytest.approx(0.25)
    assert disorder(one, units([(2, 6, "major")])) == pytest.approx(1.25)
    # Far apart: both stay alone, at a cost of 1 each.
    assert disorder(one, units([(100, 104, "minor")])) == pytest.approx(2.0)
    # One of two units has no counterpart: (0 + 1) / 1.5 units.
    assert disorder(one, units([(0, 4, "minor"), (50, 60, "minor")])) == pytest.approx(1 / 1.5)


def test_the_same_marks_agree_perfectly_and_no_marks_have_no_gamma():
    same = units([(0, 4, "minor"), (10, 14, "major")])
    assert gamma(same, same, 50, np.random.default_rng(0)).value == 1.0
    assert gamma([], [], 50, np.random.default_rng(0)).value is None


def test_unrelated_marks_have_a_gamma_of_about_zero():
    rng = np.random.default_rng(1)
    results = []
    for _ in range(200):
        starts = rng.integers(0, 190, (2, 3))
        first, second = ([Span(int(s), int(s) + 8, "minor") for s in row] for row in starts)
        results.append(gamma(first, second, 200, rng, samples=5))
    observed, expected = (np.mean([getattr(one, name) for one in results]) for name in ("observed", "expected"))
    assert 1 - observed / expected == pytest.approx(0, abs=0.1)
