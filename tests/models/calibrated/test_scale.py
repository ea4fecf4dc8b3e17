"""The calibrated scale: what it finds, what it must not claim, and its draws against plain numpy."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from benchmarks.calibrated_scenes import SCENES, compared, rated
from benchmarks.coverage_calibrated import coverage
from steelyard.errors import DataError, SteelyardWarning
from steelyard.models.calibrated.evidence import Evidence, PairRows
from steelyard.models.calibrated.gibbs_kernels import (
    Items,
    PairAnswers,
    Responders,
    between,
    draw_items,
    typical_response,
)
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.models.fit import Fit
from steelyard.models.ratings.mean import Mean
from steelyard.observations import UNKNOWN, Choices, Comparisons, Index, Labels, Mixed, Observations, Rankings, Ratings

QUICK, CONVERGED = CalibratedScale(draws=80), CalibratedScale(draws=150)
"""Chains that run once, and chains that run until they agree."""


def fitted(observations: Observations, gold: dict[str, float] | None = None, model: CalibratedScale = QUICK) -> Fit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SteelyardWarning)
        return model.fitted(observations, gold)


def scores(fit: Fit) -> np.ndarray:
    return fit.scores.sort("item")["score"].to_numpy()


# Its draws


@pytest.mark.parametrize(
    ("low", "high"),
    [(-np.inf, np.inf), (1.2, np.inf), (-np.inf, -2.5), (-0.3, 0.4), (-1.0, 2.0), (2.0, 2.2), (3.0, 9.0), (-4.0, -1.0)],
)
def test_draws_between_two_ends_are_those_of_a_truncated_gaussian(low: float, high: float):
    rng = np.random.default_rng(0)
    draws = np.array([between(rng, low, high) for _ in range(4000)])
    assert draws.min() >= low
    assert draws.max() <= high
    assert stats.kstest(draws, stats.truncnorm(low, high).cdf).pvalue > 1e-3


def test_items_are_drawn_from_the_gaussian_that_a_linear_model_gives():
    # Item 0 has two ratings' worth of pull; items 1 and 2 are compared by a responder of slope 2.
    rng, draws = np.random.default_rng(0), np.empty((20_000, 3))
    pairs = PairRows(
        left=np.array([1], np.int32),
        right=np.array([2], np.int32),
        responder=np.array([0], np.int32),
        outcome=np.array([1], np.int8),
        start=np.array([0, 0, 1, 2]),
        row=np.array([0, 0], np.int32),
    )
    answers = PairAnswers(np.array([1.5]), np.array([False]), np.zeros(1))
    responders = Responders(np.zeros(1), np.array([2.0]), np.ones(1), np.zeros(1), np.zeros(1))
    for at in range(len(draws)):
        weight, pull = np.array([3.0, 0.0, 0.0]), np.array([6.0, 0.0, 0.0])
        x = np.array([0.0, 0.5, -0.25])
        draw_items(rng, Items(x, 0.0, np.full(3, 0.5), 2.0, weight, pull), pairs, answers, responders)
        draws[at] = x
    assert not weight.any()
    assert not pull.any()
    assert draws[:, 0].mean() == pytest.approx((6 + 0.25) / 3.5, abs=0.015)
    assert draws[:, 0].var() == pytest.approx(1 / 3.5, rel=0.04)
    assert draws[:, 1].mean() == pytest.approx((2 * (1.5 + 2 * -0.25) + 0.25) / 4.5, abs=0.015)
    # Item 2 sees where item 1 has just been drawn.
    residual = draws[:, 2] - (2 * (2 * draws[:, 1] - 1.5) + 0.25) / 4.5
    assert residual.mean() == pytest.approx(0, abs=0.015)
    assert residual.var() == pytest.approx(1 / 4.5, rel=0.04)


def test_the_typical_response_is_the_mean_of_what_is_answered():
    rng = np.random.default_rng(1)
    middle, spread = np.array([-0.1, 0.4, 0.95]), np.array([0.01, 0.0, 0.02])
    answers = middle + np.sqrt(spread + 0.04) * rng.standard_normal((200_000, 3))
    out = np.zeros(3)
    typical_response(middle, spread, 0.04, np.zeros(0), out)
    assert out == pytest.approx(np.clip(answers, 0, 1).mean(axis=0), abs=0.002)
    typical_response(middle, spread, 0.04, np.array([0.25, 0.75]), out)
    assert out == pytest.approx(np.round(np.clip(answers, 0, 1) * 2).mean(axis=0) / 2, abs=0.002)


# What it finds


@pytest.mark.slow
@pytest.mark.parametrize("scene", ["few sliders", "five steps", "comparisons with ties", "choices", "rankings"])
def test_intervals_hold_the_truth_about_as_often_as_they_say(scene: str):
    # The full form, over many data sets, is benchmarks/coverage_calibrated.py.
    share, _, r = coverage(SCENES[scene], 2, CONVERGED)
    assert 0.87 < share <= 1
    assert r > 0.8


@pytest.mark.slow
def test_it_beats_the_mean_where_annotators_differ_and_equals_it_where_they_do_not():
    gains = []
    for bias, use in ((0.15, 0.3), (0.0, 0.0)):
        told, truth = rated(np.random.default_rng(4), bias=bias, use=use)
        plain = Mean().fit(told).scores.sort("item")["score"].to_numpy()
        gains.append(np.corrcoef(scores(fitted(told)), truth)[0, 1] - np.corrcoef(plain, truth)[0, 1])
    assert gains[0] > 0.01
    assert gains[1] > -0.005


def test_random_answers_cost_little_and_those_who_give_them_are_named():
    told, truth = rated(np.random.default_rng(5), random=0.3, each=8)
    plain = Mean().fit(told).scores.sort("item")["score"].to_numpy()
    fit = fitted(told)
    assert np.corrcoef(scores(fit), truth)[0, 1] > np.corrcoef(plain, truth)[0, 1] + 0.04
    assert fit.annotators is not None
    random = fit.annotators.sort("annotator")["random"].to_numpy()
    assert random[:8].mean() > 0.6
    assert np.median(random[8:]) < 0.05
    assert random[8:].mean() < 0.3 * random[:8].mean()


def test_a_bias_is_corrected_as_far_as_the_answers_show_it():
    """Bias 15, noise 18, population sd of biases 8.

    By hand, for Gaussian biases: of three answers, 8² / (8² + (18² + 6²) / 3) = .35 of the bias; of forty, .88. Biases
    of the model have heavier tails, so that a large one is corrected somewhat more.
    """
    judgments, truth = rated(np.random.default_rng(6), each=8, people=20)
    middle = np.argsort(np.abs(truth - 50))
    bias = {}
    for count in (3, 42):
        # Residuals of three answers in turn: -22, 0 and 22, with an sd of 18.
        residual = np.tile([-22.0, 0.0, 22.0], count // 3)
        new = replace(
            judgments,
            annotators=Index([*judgments.annotators.ids, "new"]),
            item=np.append(judgments.item, middle[:count]).astype(np.int32),
            value=np.append(judgments.value, np.clip(truth[middle[:count]] + 15 + residual, 0, 100)),
            annotator=np.append(judgments.annotator, np.full(count, 20)).astype(np.int32),
            task=np.append(judgments.task, np.full(count, UNKNOWN)).astype(np.int32),
        )
        table = fitted(new).annotators
        assert table is not None
        row = table.row(by_predicate=pl.col("annotator") == "new", named=True)
        bias[count] = row["bias"]
        assert row["bias_lower"] < 15 < row["bias_upper"]
    assert 0.25 * 15 < bias[3] < 0.6 * 15
    assert 0.75 * 15 < bias[42] < 1.1 * 15


def test_one_who_always_answers_nothing_does_not_pull_all_items_down():
    # The trap of noise that is learnt by annotator: answers that never vary look very precise.
    rng = np.random.default_rng(7)
    truth = rng.uniform(20, 90, 60)
    item = np.repeat(np.arange(60), 6).astype(np.int32)
    who = np.tile(np.arange(6), 60).astype(np.int32)
    value = np.where(who == 5, 0.0, np.clip(truth[item] + 20 * rng.standard_normal(len(item)), 0, 100))
    observations = Ratings(
        items=Index([f"i{n:02d}" for n in range(60)]),
        annotators=Index("abcdef"),
        annotator=who,
        item=item,
        value=value,
        scale=(0.0, 100.0),
    )
    estimates = scores(fitted(observations))
    assert np.corrcoef(estimates, truth)[0, 1] > 0.9
    assert estimates.mean() > 40


def test_gold_holds_the_scale_in_place():
    told, truth = rated(np.random.default_rng(8), each=4, bias=0.0)
    high = replace(told, value=np.clip(told.value + 20, 0, 100))
    gold = {f"i{n:04d}": float(truth[n]) for n in range(0, 100, 2)}
    without, held = fitted(high), fitted(high, gold)
    odd = np.arange(1, 100, 2)
    off = [abs(scores(fit)[odd].mean() - truth[odd].mean()) for fit in (held, without)]
    assert off[0] < 0.5 * off[1]
    with pytest.raises(DataError, match="outside the ratings' scale"):
        fitted(told, {"i0001": 400.0})


@pytest.mark.slow
def test_gold_helps_comparisons_too_on_a_scale_of_its_own():
    told, truth = compared(np.random.default_rng(9), each=10)
    gold = {f"i{n:04d}": float(100 + 30 * truth[n]) for n in range(0, 100, 2)}
    plain, held = scores(fitted(told)), scores(fitted(told, gold))
    assert np.corrcoef(held, truth)[0, 1] > np.corrcoef(plain, truth)[0, 1] + 0.03


# Several kinds at once


@pytest.mark.slow
def test_comparisons_beside_sliders_make_the_same_scale_surer():
    told, truth = SCENES["sliders and comparisons"](np.random.default_rng(10))
    assert isinstance(told, Mixed)
    alone, both = fitted(told.parts[0]), fitted(told)
    assert np.corrcoef(scores(both), truth)[0, 1] > np.corrcoef(scores(alone), truth)[0, 1]
    assert both.scores["sd"].mean() < alone.scores["sd"].mean()
    # Still on the ratings' scale.
    assert scores(both).mean() == pytest.approx(scores(alone).mean(), abs=4)
    assert any("converted to it" in note for note in both.notes)


@pytest.mark.slow
def test_two_rating_scales_are_brought_to_the_first():
    rng = np.random.default_rng(11)
    told, truth = rated(rng, each=3)
    five, _ = rated(np.random.default_rng(11), each=3, steps=4)
    one_to_five = replace(five, value=1 + five.value / 25, scale=(1.0, 5.0))
    both, alone = (fitted(each, model=CONVERGED) for each in (Mixed.of((told, one_to_five)), told))
    assert np.corrcoef(scores(both), truth)[0, 1] > np.corrcoef(scores(alone), truth)[0, 1] - 0.01
    assert both.annotators is not None
    assert {"ratings 1 bias", "ratings 2 bias"} <= set(both.annotators.columns)


def test_mixing_keeps_ids_and_refuses_labels():
    one = Ratings(items=Index("ab"), item=np.array([0, 1], np.int32), value=np.array([1.0, 2.0]), scale=(0, 5))
    pairs = Comparisons(
        items=Index("cb"),
        annotators=Index(["u"]),
        annotator=np.array([0], np.int32),
        left=np.array([0], np.int32),
        right=np.array([1], np.int32),
        outcome=np.array([1], np.int8),
    )
    mixed = Mixed.of((one, pairs))
    assert mixed.items.ids == ("a", "b", "c")
    assert len(mixed) == 3
    assert mixed.annotator.tolist() == [UNKNOWN, UNKNOWN, 0]
    recoded = mixed.parts[1]
    assert isinstance(recoded, Comparisons)
    assert (mixed.items[int(recoded.left[0])], mixed.items[int(recoded.right[0])]) == ("c", "b")
    labels = Labels(items=Index("a"), item=np.zeros(1, np.int32), label=np.zeros(1, np.int32), classes=Index(["x"]))
    with pytest.raises(DataError, match="labels cannot be combined"):
        Mixed.of((one, labels))


def test_choices_become_tiers_and_useless_ones_none():
    choices = Choices(
        items=Index("abcd"),
        shown=np.array([[0, 1, 2, 3], [0, 1, 2, UNKNOWN], [0, 1, 2, 3]], np.int32),
        best=np.array([2, UNKNOWN, 1], np.int32),
        worst=np.array([0, 1, 1], np.int32),
    )
    tuples = Evidence.of("calibrated_scale", choices).tuples
    tiers = {
        tuple(zip(tuples.item[a:b].tolist(), tuples.tier[a:b].tolist(), strict=True))
        for a, b in zip(tuples.first[:-1], tuples.first[1:], strict=True)
    }
    assert tiers == {
        ((2, 0), (1, 1), (3, 1), (0, 2)),
        ((0, 1), (2, 1), (1, 2)),
        ((0, 1), (1, 1), (2, 1), (3, 1)),
    }


def test_ties_in_a_ranking_order_nothing():
    start, rank = np.array([0, 3]), np.array([1, 1, 1], np.int32)
    tied = Rankings(items=Index("abc"), start=start, item=np.arange(3, dtype=np.int32), rank=rank)
    table = fitted(tied).scores
    assert table["rank_lower"].to_list() == [1, 1, 1]
    assert table["rank_upper"].to_list() == [3, 3, 3]


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_the_predictive_check_is_near_its_level_on_any_scale(steps: int):
    told, _ = rated(np.random.default_rng(12), steps=steps, items=200)
    (check,) = [note for note in fitted(told).notes if note.startswith("check")]
    assert float(check.split()[1]) == pytest.approx(95, abs=1.5)
