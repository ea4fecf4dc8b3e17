"""Looking at a growing study without being fooled by it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from benchmarks.coverage_stopping import Crowd, until_stopped, values, wrong
from steelyard.models.ratings.mean import Mean
from steelyard.quality.stopping import StopRule, misplaced, run_interim_analysis
from steelyard.reliability import split_half

RULES = [StopRule("split_half", 0.75), StopRule("interval_width", 0.4), StopRule("top_k", 5)]


@pytest.mark.slow
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.measure)
def test_a_study_hardly_ever_stops_too_soon(rule, adaptive):
    """The short form of benchmarks/coverage_stopping.py: of 12 studies, none to two (5 % would be 0.6)."""
    kind = "0.2" if rule.measure == "top_k" else "even"
    stops, false = 0, 0
    for seed in range(12):
        rng = np.random.default_rng([seed, adaptive])
        crowd = Crowd(values(kind, rng), rng)
        stopped = until_stopped(rule, crowd, adaptive)
        if stopped is not None:
            stops += 1
            false += wrong(rule, stopped[1], crowd)
    assert stops >= 6
    assert false <= 2


def some_ratings(rounds: int = 6):
    rng = np.random.default_rng(0)
    return Crowd(values("even", rng), rng).rate(np.tile(np.arange(40), rounds))


def test_the_decision_rests_on_a_bound_and_not_on_the_estimate():
    ratings = some_ratings()
    plain = split_half(ratings)["split_half_spearman"].value
    analysis = run_interim_analysis(StopRule("split_half", plain - 0.01), 1, ratings, Mean())
    assert analysis.value == pytest.approx(plain)
    assert analysis.bound < plain - 0.01
    assert not analysis.reached
    assert run_interim_analysis(StopRule("split_half", analysis.bound - 0.001), 1, ratings, Mean()).reached


def test_the_target_is_plain_split_half_unless_it_says_spearman_brown():
    ratings = some_ratings()
    plain = run_interim_analysis(StopRule("split_half", 0.5), 1, ratings, Mean())
    corrected = run_interim_analysis(StopRule("split_half", 0.5, spearman_brown=True), 1, ratings, Mean())
    assert corrected.value > plain.value
    assert "Spearman–Brown corrected" in corrected.summary


def test_more_interim_analyses_require_wider_intervals():
    ratings = some_ratings()
    once, often = (
        run_interim_analysis(StopRule("interval_width", 1, interim_analyses=n), 1, ratings, Mean()).value
        for n in (1, 50)
    )
    assert once < often


def test_the_chance_of_a_wrong_top_k_is_the_sum_over_pairs_across_the_border():
    scores = pl.DataFrame({"score": [3.0, 2.0, 1.0], "sd": [0.3, 0.4, 0.0], "judgments": [1_000_000] * 3})
    by_hand = stats.norm.sf(1 / 0.5) + stats.norm.sf(2 / 0.3)
    assert misplaced(scores, 1) == pytest.approx(by_hand, rel=1e-4)


def test_items_without_a_standard_error_stop_nothing():
    scores = pl.DataFrame({"score": [3.0, 2.0], "sd": [0.3, None], "judgments": [9, 1]})
    assert misplaced(scores, 1) is None
