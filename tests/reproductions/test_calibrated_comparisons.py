"""Pairs chosen by gain beside random ones, match quality and ASAP; and that ASAP is what its paper says."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from reproductions.base import Outcome
from reproductions.calibrated import Comparisons
from reproductions.calibrated.comparisons import CROWDS, crossing
from reproductions.calibrated.comparisons_asap import Asap, divergence, full_gains, quick_gains, spanning_tree
from reproductions.calibrated.comparisons_methods import Method, scored
from reproductions.calibrated.comparisons_people import Mixture, People
from reproductions.running import ignore_progress
from tests.sizes import FULL


def claim(outcome: Outcome, *parts: str) -> float:
    (value,) = [each.ours for each in outcome.claims if all(part in each.what for part in parts)]
    return value


@pytest.mark.slow
@pytest.mark.full
def test_adaptive_needs_fewer_than_random_pairs_and_no_more_than_asap() -> None:
    """The limits at the size of the documentation are 60 and 100 %; two small runs have wider ones."""
    outcome = Comparisons().small().run(Path(), ignore_progress)
    assert claim(outcome, "of those of random pairs", "ρ = 0.9,") < 80
    assert claim(outcome, "of those of ASAP", "ρ = 0.9,") < 115
    assert outcome.table is not None
    assert set(outcome.table["method"]) == {str(method) for method in Method}
    assert outcome.chart is not None


@pytest.mark.slow
@pytest.mark.full
def test_adaptive_needs_fewer_comparisons_than_random_pairs() -> None:
    """Paired runs: the same items and annotators. The difference must be more than two standard errors."""
    experiment = replace(Comparisons(), items=(30,), most_each=40)
    needed = np.array(
        [
            [crossing(experiment.curve(method, 30, CROWDS["mixed"], run), 0.9) for run in range(6)]
            for method in (Method.RANDOM, Method.ADAPTIVE)
        ]
    ).clip(max=40)
    saved = needed[0] - needed[1]
    assert saved.mean() > 2 * saved.std(ddof=1) / np.sqrt(len(saved))


def test_a_curve_crosses_where_a_straight_line_does():
    curve = np.array([[0.0, 0.0], [2.0, 0.8], [4.0, 1.0], [6.0, 0.9]])
    assert crossing(curve, 0.9) == pytest.approx(3.0)
    assert crossing(curve, 0.4) == pytest.approx(1.0)
    assert crossing(curve, 1.1) == np.inf


def test_people_are_as_noisy_as_they_are_said_to_be():
    truth = np.array([0.0, 1.0])
    people = People(truth, Mixture(noise=0.5, spread=0.0, careless=0.2, answers=40), seed=1)
    who = people.next(40_000)
    won = people.compare(np.ones(40_000, np.int32), np.zeros(40_000, np.int32), who) > 0
    # Each looks with noise 0.5 at both, or throws a coin: Φ(1/√0.5) and one half.
    careful = stats.norm.cdf(1 / np.sqrt(0.5))
    shares = np.array([won[who == person].mean() for person in range(people.count - 10)])
    assert won.mean() == pytest.approx(0.8 * careful + 0.2 * 0.5, abs=0.02)
    assert (shares < 0.7).mean() == pytest.approx(0.2, abs=0.06)


def test_the_same_seed_brings_the_same_people_whatever_they_are_asked():
    one, other = (People(np.zeros(3), Mixture(), seed=4) for _ in range(2))
    one.next(100)
    other.next(60)
    other.next(40)
    assert one.count == other.count
    assert one.next(20).tolist() == other.next(20).tolist()


METHODS = [Method.RANDOM, Method.MATCH_QUALITY, *([Method.ADAPTIVE, Method.ASAP] if FULL else [])]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_order_when_people_are_exact(method: Method):
    n_items, rounds = (30, 12) if FULL else (20, 12)
    truth = np.linspace(-1.7, 1.7, n_items)
    people = People(truth, Mixture(noise=0.05, spread=0.0, careless=0.0), seed=2)
    *_, (count, score) = islice(scored(method, people, np.random.default_rng(0)), rounds)
    assert 4 <= 2 * count / n_items <= 24
    assert stats.spearmanr(score, truth).statistic > 0.95


def test_divergence_is_that_of_kullback_and_leibler():
    assert divergence(1.0, 1.0, 0.0, 1.0) == pytest.approx(0.5)
    assert divergence(0.0, 0.5, 0.0, 1.0) == pytest.approx(0.5 * (np.log(2) - 0.5))
    assert divergence(0.3, 0.7, 0.3, 0.7) == 0


@pytest.mark.full
def test_a_batch_of_asap_is_a_spanning_tree_of_the_best_pairs():
    first, second = np.array([0, 0, 1, 2]), np.array([1, 2, 2, 3])
    assert spanning_tree(first, second, 4).tolist() == [0, 1, 3]
    asap = Asap(12, 0.5, full=False)
    left, right = asap.batch(np.random.default_rng(0))
    parts = [{item} for item in range(12)]
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        one = next(part for part in parts if a in part)
        other = next(part for part in parts if b in part)
        assert one is not other
        parts.remove(other)
        one |= other
    assert len(parts) == 1


@pytest.mark.full
def test_the_full_gain_is_the_quick_one_where_nothing_was_asked_before():
    """Then no other item can move; afterwards the neighbours in the graph move too, and the full gain is larger."""
    n, level = 5, np.array([0.5])
    quick, full = np.zeros((n, n)), np.zeros((n, n))
    nothing = np.empty(0, np.int32)
    quick_gains(np.zeros(n), np.ones(n), 0.5, quick)
    full_gains(nothing, nothing, np.empty(0, np.int8), np.empty((0, 4)), np.ones(n), np.zeros(n), level, 1, full)
    assert full == pytest.approx(quick)
    assert quick[0, 1] == pytest.approx(quick[2, 4])
    # Two equal items of variance 1: P = 1/2, the slope of log P is 2 φ(0)/√2.5, so the variance falls by its square.
    slope = 0.99 * 2 / np.sqrt(2 * np.pi * 2.5)
    assert quick[0, 1] == pytest.approx(2 * divergence(slope, 1 - slope**2, 0.0, 1.0))
