"""Who fails the checks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard.quality.accuracy import probability_below
from tests.sizes import FULL


@pytest.mark.parametrize(("right", "asked"), [(0, 3), (2, 5), (10, 20), (14, 20), (20, 20)])
def test_one_annotator_alone_is_judged_under_a_uniform_prior(right, asked):
    result = probability_below(np.array([right]), np.array([asked]), 0.7)
    assert result == pytest.approx(stats.beta.cdf(0.7, 1 + right, 1 + asked - right), abs=0.01)


def test_more_right_answers_never_raise_the_probability():
    right = np.arange(21)
    result = probability_below(right, np.full(21, 20), 0.7)
    assert (np.diff(result) <= 1e-9).all()


def test_the_crowd_teaches_what_guessing_looks_like():
    """Thirteen of twenty right is doubtful from one alone, and telling beside eighty who get nearly all right."""
    rng = np.random.default_rng(0)
    right = np.concatenate([[13], rng.binomial(20, 0.5, 19), rng.binomial(20, 0.93, 80)])
    check_counts = np.full(100, 20)
    alone = probability_below(right[:1], check_counts[:1], 0.7)[0]
    among = probability_below(right, check_counts, 0.7)[0]
    assert alone < 0.75
    assert among > 0.9


def test_annotators_do_not_vote_on_themselves():
    """Two who got everything wrong are not more suspect for there being two of them and no others."""
    twice = probability_below(np.array([0]), np.array([2]), 0.7)[0]
    assert twice == pytest.approx(1 - 0.3**3, abs=0.02)


@pytest.mark.slow
def test_of_a_hundred_with_twenty_guessing_nearly_all_are_found_and_hardly_any_other_lost():
    """The bar of the project: at least 18 of 20 found and at most 2 of 80 lost, over some crowds of 20 checks each.

    Everybody is judged again as the checks come in, as in a study (benchmarks/coverage_checks.py runs whole ones).
    """
    result, losers = [], []
    for seed in range(10 if FULL else 4):
        rng = np.random.default_rng(seed)
        accuracy = np.concatenate([np.full(20, 0.5), np.full(80, 0.93)])
        right, asked, out = np.zeros(100, int), np.zeros(100, int), np.zeros(100, bool)
        for step, person in enumerate(rng.permutation(np.repeat(np.arange(100), 20))):
            if not out[person]:
                asked[person] += 1
                right[person] += rng.random() < accuracy[person]
            if step % 10 == 9:
                out |= (probability_below(right, asked, 0.7) >= 0.95) & (asked >= 5)
        result.append(out[:20].sum())
        losers.append(out[20:].sum())
    assert np.mean(result) >= 18
    assert np.mean(losers) <= 2


def test_nobody_checked_is_nobody_judged():
    assert probability_below(np.zeros(0, int), np.zeros(0, int), 0.7).shape == (0,)
