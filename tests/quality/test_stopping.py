"""Looking at a growing study without being fooled by it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from benchmarks.coverage_stopping import RULES as BOTH_RULES
from benchmarks.coverage_stopping import Crowd, until_stopped, values, wrong
from steelyard.models.fit import Fit
from steelyard.models.ratings.mean import Mean
from steelyard.observations import UNKNOWN, Index, Ratings
from steelyard.quality.stopping import StopRule, critical_value, misplaced, run_interim_analysis
from steelyard.records import Item
from steelyard.reliability import split_half
from tests.sizes import FULL

RULES = [StopRule("interval_width", 0.4), StopRule("top_k", 5), *([StopRule("split_half", 0.75)] if FULL else [])]
"""Split-half reliability takes half a minute."""


@pytest.mark.slow
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.measure)
def test_a_study_hardly_ever_stops_too_soon(rule, adaptive):
    """The short form of benchmarks/coverage_stopping.py: of 6 studies, none or one, and sooner than by Bonferroni."""
    kind = "0.2" if rule.measure == "top_k" else "even"
    new, old, false = [], [], 0
    for seed in range(6):
        rng = np.random.default_rng([seed, adaptive])
        crowd = Crowd(values(kind, rng), rng)
        stopped = until_stopped(rule, crowd, adaptive, BOTH_RULES)
        new.append(len(stopped["Pocock"]) if "Pocock" in stopped else 1200)
        old.append(len(stopped["Bonferroni"]) if "Bonferroni" in stopped else 1200)
        if "Pocock" in stopped:
            false += wrong(rule, stopped["Pocock"], crowd)
    assert np.mean(new) < 0.95 * np.mean(old)
    assert false <= 1


@pytest.mark.parametrize(("analyses", "alpha", "published"), [(2, 0.05, 1.875), (5, 0.025, 2.413), (10, 0.025, 2.555)])
def test_critical_values_are_those_of_pocock(analyses, alpha, published):
    """Jennison & Turnbull (2000), Table 2.1: C_P for two-sided tests at 0.1 and 0.05."""
    assert critical_value(analyses, alpha) == pytest.approx(published, abs=5e-4)


def some_ratings(rounds: int = 6):
    rng = np.random.default_rng(0)
    return Crowd(values("even", rng), rng).rate(np.tile(np.arange(40), rounds))


@pytest.mark.slow
def test_the_decision_rests_on_a_bound_and_not_on_the_estimate():
    ratings = some_ratings()
    plain = split_half(ratings, trials=20)["split_half_spearman"].value
    analysis = run_interim_analysis(StopRule("split_half", plain - 0.01), 1, ratings, Mean())
    assert analysis.value == pytest.approx(plain)
    assert analysis.bound < plain - 0.01
    assert not analysis.reached
    assert run_interim_analysis(StopRule("split_half", analysis.bound - 0.001), 1, ratings, Mean()).reached


@pytest.mark.slow
def test_the_target_is_plain_split_half_unless_it_says_spearman_brown():
    ratings = some_ratings()
    plain = run_interim_analysis(StopRule("split_half", 0.5), 1, ratings, Mean())
    corrected = run_interim_analysis(StopRule("split_half", 0.5, spearman_brown=True), 1, ratings, Mean())
    assert corrected.value > plain.value
    assert "Spearman–Brown corrected" in corrected.summary


def test_more_interim_analyses_require_stricter_bounds():
    ratings = some_ratings()
    once, often = (
        run_interim_analysis(StopRule("interval_width", 1, interim_analyses=n), 1, ratings, Mean()).bound
        for n in (1, 10)
    )
    assert once < often


def fitted(score: list[float], sd: list[float | None], judgments: int = 1_000_000) -> Fit:
    table = pl.DataFrame({"score": score, "sd": sd, "judgments": [judgments] * len(score)})
    return Fit("mean", {}, table)


def test_the_probability_of_a_wrong_top_item_is_that_of_two_normal_scores():
    by_hand = stats.norm.sf(1 / 0.5)
    assert misplaced(fitted([2.0, 1.0], [0.3, 0.4]), 1) == pytest.approx(by_hand, abs=0.006)


def test_items_without_a_standard_error_stop_nothing():
    assert misplaced(fitted([3.0, 2.0], [0.3, None]), 1) is None


def system_study(difference: float, seed: int) -> tuple[Ratings, list[Item]]:
    rng = np.random.default_rng(seed)
    items = [Item(f"{system}{n}", "", group=system, context=str(n)) for n in range(40) for system in "ab"]
    source = np.repeat(rng.normal(0, 0.1, 40), 2)
    truth = 0.5 + source + difference * (np.arange(80) % 2)
    ratings = Ratings(
        items=Index([item.id for item in items]),
        annotators=Index([f"r{n}" for n in range(12)]),
        tasks=Index(),
        annotator=np.tile(np.arange(12), 20).astype(np.int32),
        task=np.full(240, UNKNOWN, np.int32),
        item=np.tile(np.arange(80), 3).astype(np.int32),
        value=np.clip(np.tile(truth, 3) + rng.normal(0, 0.1, 240), 0, 1),
        scale=(0, 1),
    )
    return ratings, items


def test_systems_that_differ_stop_a_study_and_equal_ones_do_not():
    rule = StopRule("systems", 1.0)
    clear, items = system_study(0.1, 0)
    assert run_interim_analysis(rule, 1, clear, Mean(), items).reached
    equal = [run_interim_analysis(rule, 1, *system_args(seed)).reached for seed in range(10)]
    assert sum(equal) <= 1


def system_args(seed: int):
    ratings, items = system_study(0.0, seed)
    return ratings, Mean(), items
