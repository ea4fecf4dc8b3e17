"""Scale separation reliability against sirt's algorithm, finite differences, and the published sessions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from steelyard.errors import ConfigError, DataError
from steelyard.formats import read_judgments
from steelyard.observations import Comparisons, FloatArray, Index, Ratings
from steelyard.reliability import scale_separation
from steelyard.reliability.separation import _Decisions, _fit, _influence, _unreliability


def judged(items: int, judges: int, each: int, seed: int = 0, ties: float = 0.0) -> Comparisons:
    rng = np.random.default_rng(seed)
    theta = 1.5 * rng.normal(size=items)
    left = rng.integers(0, items, judges * each)
    right = (left + rng.integers(1, items, judges * each)) % items
    outcome = np.where(rng.random(judges * each) < 1 / (1 + np.exp(theta[right] - theta[left])), 1, -1)
    outcome[rng.random(judges * each) < ties] = 0
    return Comparisons(
        items=Index(f"i{number}" for number in range(items)),
        annotators=Index(f"w{number}" for number in range(judges)),
        annotator=np.repeat(np.arange(judges, dtype=np.int32), each),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        outcome=outcome.astype(np.int8),
    )


def naive_theta(comparisons: Comparisons, weights: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """sirt's own iteration, run to the end: item by item Newton steps, then centring."""
    n = len(comparisons.items)
    left, right = comparisons.left, comparisons.right
    won = (comparisons.outcome + 1) / 2
    appearances = np.bincount(left, weights, n) + np.bincount(right, weights, n)
    wins = np.bincount(left, weights * won, n) + np.bincount(right, weights * (1 - won), n)
    score = epsilon + (appearances - 2 * epsilon) * wins / appearances
    theta, information = np.zeros(n), np.ones(n)
    for _ in range(5000):
        p = 1 / (1 + np.exp(theta[right] - theta[left]))
        expected = np.bincount(left, weights * p, n) + np.bincount(right, weights * (1 - p), n)
        q = weights * p * (1 - p)
        information = (np.bincount(left, q, n) + np.bincount(right, q, n)).astype(np.float64)
        theta = theta + 0.5 * (score - expected) / information
        theta = theta - theta.mean()
    return theta, information


@pytest.mark.parametrize("ties", [0.0, 0.2])
def test_the_scale_is_the_fixed_point_of_sirts_iteration(ties: float) -> None:
    comparisons = judged(8, 5, 16, ties=ties)
    theta, information = naive_theta(comparisons, np.ones(len(comparisons)), 0.3)
    separation = scale_separation(comparisons)
    scale = dict(separation.scale.select("item", "theta").iter_rows())
    assert [scale[name] for name in comparisons.items.ids] == pytest.approx(theta.tolist(), abs=1e-6)
    ssr = 1 - (1 / information).mean() / theta.var(ddof=1)
    assert separation["scale_separation_reliability"].value == pytest.approx(ssr, abs=1e-8)
    assert separation["separation_index"].value == pytest.approx(1 / np.sqrt(1 - ssr), abs=1e-6)


@pytest.mark.slow
def test_the_influence_of_a_decision_is_the_derivative_by_its_weight() -> None:
    comparisons = judged(6, 4, 15, ties=0.1)
    decisions = _Decisions.of(comparisons)
    influence = _influence(decisions, _fit(decisions, 0.3), 0.3)
    step = 1e-4
    for row in range(0, len(comparisons), 7):
        ends = []
        for sign in (1, -1):
            weights = np.ones(len(comparisons))
            weights[row] += sign * step
            theta, information = naive_theta(comparisons, weights, 0.3)
            ends.append(np.log((1 / information).mean() / theta.var(ddof=1)))
        # Exact but for the small derivative of the surplus term by θ.
        assert influence[row] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=2e-3)


def test_the_interval_is_the_jackknife_over_judges() -> None:
    comparisons = judged(10, 6, 30)
    figure = scale_separation(comparisons)["scale_separation_reliability"]
    without = []
    for judge in range(6):
        keep = comparisons.annotator != judge
        others = Comparisons(
            items=comparisons.items,
            left=comparisons.left[keep],
            right=comparisons.right[keep],
            outcome=comparisons.outcome[keep],
        )
        decisions = _Decisions.of(others)
        without.append(np.log(_unreliability(_fit(decisions, 0.3))))
    spread = np.sqrt(5 / 6 * ((np.array(without) - np.mean(without)) ** 2).sum())
    assert figure.value is not None
    assert figure.upper is not None
    assert np.log((1 - figure.value) / (1 - figure.upper)) == pytest.approx(2.5706 * spread, rel=1e-3)
    assert figure.interval == "jackknife(judges)"


@pytest.mark.slow
def test_95_percent_intervals_cover_the_mean_over_new_judges() -> None:
    studies = [judged(12, 12, 25, seed=0)]
    theta = 1.5 * np.random.default_rng(0).normal(size=12)
    rng = np.random.default_rng(5)

    def study() -> Comparisons:
        like = studies[0]
        left = rng.integers(0, 12, len(like)).astype(np.int32)
        right = ((left + rng.integers(1, 12, len(like))) % 12).astype(np.int32)
        outcome = np.where(rng.random(len(like)) < 1 / (1 + np.exp(theta[right] - theta[left])), 1, -1)
        return Comparisons(
            items=like.items,
            annotators=like.annotators,
            annotator=like.annotator,
            left=left,
            right=right,
            outcome=outcome.astype(np.int8),
        )

    def log_error(comparisons: Comparisons) -> float:
        value = scale_separation(comparisons, replicates=0)["scale_separation_reliability"].value
        return float(np.log(1 - (value or 0.0)))

    truth = 1 - np.exp(np.mean([log_error(study()) for _ in range(150)]))
    hits = 0
    for _ in range(60):
        figure = scale_separation(study())["scale_separation_reliability"]
        assert figure.lower is not None
        assert figure.upper is not None
        hits += figure.lower <= truth <= figure.upper
    assert hits >= 51  # 57 expected; 51 leaves three standard errors


def test_islands_few_items_and_equal_items_are_none_with_the_reason() -> None:
    def of(left: list[int], right: list[int], outcome: list[int]) -> Comparisons:
        return Comparisons(
            items=Index("abcdef"),
            left=np.array(left, np.int32),
            right=np.array(right, np.int32),
            outcome=np.array(outcome, np.int8),
        )

    islands = scale_separation(of([0, 1, 3, 4], [1, 2, 4, 5], [1, 1, 1, 1]))
    assert islands["scale_separation_reliability"].value is None
    assert "2 groups" in islands["scale_separation_reliability"].note
    assert "three items" in scale_separation(of([0], [1], [1])).statistics[0].note
    equal = scale_separation(of([0, 1, 2], [1, 2, 0], [0, 0, 0]))
    assert "all items have the same score" in equal.statistics[0].note


def test_an_undefeated_item_stays_finite() -> None:
    comparisons = Comparisons(
        items=Index("abcd"),
        left=np.array([0, 0, 0, 1, 2, 3, 1], np.int32),
        right=np.array([1, 2, 3, 2, 3, 1, 3], np.int32),
        outcome=np.ones(7, np.int8),
    )
    separation = scale_separation(comparisons)
    assert separation.scale["item"][0] == "a"
    assert np.isfinite(separation.scale["theta"].to_numpy()).all()
    assert separation["scale_separation_reliability"].interval == "infinitesimal jackknife(decisions)"


def test_wrong_input_is_refused() -> None:
    ratings = Ratings(items=Index(["a"]), item=np.zeros(1, np.int32), value=np.zeros(1), scale=(0.0, 1.0))
    with pytest.raises(DataError, match="these are ratings"):
        scale_separation(ratings)
    with pytest.raises(ConfigError, match="epsilon"):
        scale_separation(judged(4, 2, 5), epsilon=0.5)


@pytest.mark.slow
@pytest.mark.shared_data
def test_all_twenty_published_sessions_are_reproduced(shared_data: Path) -> None:
    folder = shared_data / "comparative_judgement"
    decisions = pl.read_csv(folder / "decisions.csv.gz")
    for session in pl.read_csv(folder / "sessions.csv").iter_rows(named=True):
        rows = decisions.filter(pl.col("session") == session["session"])
        comparisons = read_judgments(rows.select("winner", "loser", annotator="judge")).observations
        intervals = len(rows) < 5000
        separation = scale_separation(comparisons, replicates=200 if intervals else 0)
        figure = separation["scale_separation_reliability"]
        assert figure.value == pytest.approx(session["ssr"], abs=5e-5), session["session"]
        assert separation["separation_index"].value == pytest.approx(session["separation_g"], abs=5e-3)
        in_line = separation["decision_consistency"].value
        assert in_line == pytest.approx(session["prop_correct_judgements"], abs=1e-6)
        assert separation.pairs == session["n_pairs_judged"]
        if intervals:
            assert figure.lower is not None
            assert figure.upper is not None
            assert figure.lower < (figure.value or 0.0) < figure.upper
