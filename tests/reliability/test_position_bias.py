"""Position bias: its share, its test, and when there is none to speak of."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import stats

from steelyard.errors import DataError
from steelyard.observations import Comparisons, Index, Rankings, Ratings
from steelyard.reliability import position_bias


def comparisons_of(outcome: ArrayLike, annotator: ArrayLike = ()) -> Comparisons:
    outcomes, people = np.asarray(outcome, np.int8), np.asarray(annotator, np.int32)
    return Comparisons(
        items=Index(["a", "b"]),
        annotators=Index(f"w{number}" for number in range(int(people.max(initial=-1)) + 1)),
        annotator=people,
        left=np.zeros(len(outcomes), np.int32),
        right=np.ones(len(outcomes), np.int32),
        outcome=outcomes,
    )


def test_without_annotators_the_test_is_the_exact_binomial() -> None:
    bias = position_bias(comparisons_of([1] * 30 + [-1] * 14 + [0] * 6))
    assert bias.statistic.value == pytest.approx(30 / 44)
    assert bias.p_value == pytest.approx(stats.binomtest(30, 44).pvalue)
    peer = stats.binomtest(30, 44).proportion_ci(method="wilson")
    assert (bias.statistic.lower, bias.statistic.upper) == pytest.approx((peer.low, peer.high))
    assert "6 ties left out" in bias.statistic.note


def test_with_annotators_the_spread_is_over_annotators() -> None:
    # Four annotators of ten answers each: shares .9, .8, .7, .6.
    outcome = [x for wins in (9, 8, 7, 6) for x in [1] * wins + [-1] * (10 - wins)]
    bias = position_bias(comparisons_of(outcome, np.repeat(np.arange(4), 10)))
    shares = np.array([0.9, 0.8, 0.7, 0.6])
    peer = stats.ttest_1samp(shares, 0.5)
    assert bias.statistic.value == pytest.approx(0.75)
    assert bias.p_value == pytest.approx(peer.pvalue)
    assert bias.statistic.n == 4
    ends = peer.confidence_interval()
    assert (bias.statistic.lower, bias.statistic.upper) == pytest.approx((ends.low, ends.high))


def test_answers_of_one_habitual_annotator_are_not_many_witnesses() -> None:
    rng = np.random.default_rng(0)
    rejected = exact = 0
    for _ in range(200):
        habit = rng.beta(2, 2, 12)
        annotator = np.repeat(np.arange(12), 40)
        outcome = np.where(rng.random(480) < habit[annotator], 1, -1)
        rejected += (position_bias(comparisons_of(outcome, annotator)).p_value or 0.0) < 0.05
        exact += (position_bias(comparisons_of(outcome)).p_value or 0.0) < 0.05
    assert rejected <= 22  # 10 expected; 22 has probability .0005
    assert exact > 60


def test_files_of_winners_and_losers_have_no_position_bias_but_a_reason() -> None:
    bias = position_bias(comparisons_of([1, 1, 0, 1]))
    assert bias.statistic.value is None
    assert bias.p_value is None
    assert "always on the left" in bias.statistic.note
    assert position_bias(comparisons_of([1, 1, 1]), order_known=True).statistic.value == 1.0
    unordered = position_bias(comparisons_of([1, -1, 1]), order_known=False)
    assert unordered.statistic.value is None
    assert "unknown" in unordered.statistic.note


def test_only_ties_are_undefined_and_ratings_are_refused() -> None:
    assert position_bias(comparisons_of([0, 0])).statistic.value is None
    ratings = Ratings(items=Index(["a"]), item=np.zeros(1, np.int32), value=np.zeros(1), scale=(0.0, 1.0))
    with pytest.raises(DataError, match="these are ratings"):
        position_bias(ratings)


def test_rankings_count_by_the_order_of_their_items() -> None:
    rankings = Rankings(
        items=Index("abc"),
        start=np.array([0, 3]),
        item=np.array([2, 0, 1], np.int32),
        rank=np.array([1, 3, 2], np.int32),
    )
    assert position_bias(rankings).statistic.value == pytest.approx(2 / 3)
