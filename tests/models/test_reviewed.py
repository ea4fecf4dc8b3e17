"""What an independent review of the models found wrong once, and must not come back."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest

from steelyard import Counting, Elo, Mean, TrueSkill, WinRate, position_bias, read_judgments
from steelyard.errors import DataError, SteelyardWarning
from steelyard.models.by_criterion import fit_by_criterion
from steelyard.models.inference.resampling import poisson_weights
from steelyard.models.labels.majority import wilson
from steelyard.observations import Comparisons, Index, Rankings


@pytest.mark.parametrize("total", [30_000, 32_768, 100_000, 2_000_000])
def test_wilsons_interval_of_many_is_narrow(total):
    lower, upper = wilson(np.array([total // 2], np.int32), np.array([total], np.int32), 0.95)
    # The normal approximation is exact to many places here.
    assert upper[0] - lower[0] == pytest.approx(2 * 1.96 * 0.5 / np.sqrt(total), rel=1e-3)


def test_position_bias_of_many_answers_is_sure():
    n = 40_000
    outcome = np.where(np.arange(n) % 2, 1, -1).astype(np.int8)
    pair = np.tile(np.array([0, 1], np.int32), (n, 1))
    comparisons = Comparisons(items=Index(["a", "b"]), left=pair[:, 0], right=pair[:, 1], outcome=outcome)
    figure = position_bias(comparisons).statistic
    assert figure.upper - figure.lower < 0.02


def test_many_units_are_resampled_in_little_memory():
    units = tuple(f"task {n}" for n in range(60_000))
    tracemalloc.start()
    weights = poisson_weights(units, 50, 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000
    assert weights.mean() == pytest.approx(1, abs=0.01)
    assert weights.var() == pytest.approx(1, abs=0.02)


def test_hashed_weights_do_not_depend_on_the_order_of_the_units():
    forward, back = poisson_weights(("a", "b", "c"), 40, 7), poisson_weights(("c", "b", "a"), 40, 7)
    assert (forward == back[:, ::-1]).all()


def test_unanimous_judgments_are_not_called_certain():
    ratings = read_judgments(
        [{"annotator": w, "item": "a", "value": 100} for w in "uvwxy"], scale=(0, 100)
    ).observations
    assert Mean().fit(ratings).scores["lower"].to_list() == [None]
    choices = read_judgments(
        [{"annotator": w, "item1": "a", "item2": "b", "item3": "c", "best": "a", "worst": "c"} for w in "uvwxy"]
    ).observations
    assert Counting().fit(choices).scores["lower"].null_count() == 3
    pairs = read_judgments([{"annotator": w, "left": "a", "right": "b", "winner": "a"} for w in "uvwxy"]).observations
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SteelyardWarning)
        fit = fit_by_criterion(WinRate(), {"": pairs})
    assert fit.scores["lower"].null_count() == 2
    assert fit.notes


def test_a_score_never_leaves_its_scale_by_rounding():
    rows = [{"annotator": w, "item": "a", "value": 0.1} for w in "uvx"] + [{"annotator": "u", "item": "b", "value": 0}]
    scores = Mean().fit(read_judgments(rows, scale=(0, 0.1)).observations).scores
    assert scores["score"].max() <= 0.1
    assert scores["unit_score"].max() <= 1


def test_an_item_cannot_stand_twice_in_a_ranking():
    with pytest.raises(DataError, match="'a' appears twice"):
        Rankings(
            items=Index(["a", "b"]),
            start=np.array([0, 3]),
            item=np.array([0, 1, 0], np.int32),
            rank=np.array([1, 2, 3], np.int32),
        )


def test_rankings_of_single_items_give_no_scores_and_the_reason():
    alone = Rankings(
        items=Index(["a"]), start=np.array([0, 1]), item=np.array([0], np.int32), rank=np.array([1], np.int32)
    )
    for model in (Elo(), TrueSkill()):
        fit = model.fit(alone)
        assert fit.scores["score"].to_list() == [None]
        assert fit.notes == ("no scores: no two items are compared in these rankings",)


def test_trueskill_says_that_order_matters():
    pairs = read_judgments(
        [{"left": "a", "right": "b", "winner": w} for w in ("a", "b", "a", "b")], kind="comparisons"
    ).observations
    assert "order of the comparisons matters" in " ".join(TrueSkill().fit(pairs).notes)


def test_gold_for_all_criteria_is_used_as_far_as_it_concerns_each():
    from steelyard import GoldCalibrated

    rows = [
        {"annotator": w, "item": i, "criterion": c, "label": x}
        for w in "uvx"
        for c, items in (("first", "abcd"), ("second", "ab"))
        for i, x in zip(items, ["yes", "no"] * 2, strict=False)
    ]
    read = read_judgments(rows)
    gold = {"": {"a": "yes", "b": "no", "c": "yes"}}
    fit = fit_by_criterion(GoldCalibrated(), read.by_criterion, gold)
    assert set(fit.scores["criterion"]) == {"first", "second"}
    with pytest.raises(DataError, match=r"second: .*needs gold"):
        fit_by_criterion(GoldCalibrated(), read.by_criterion, {"first": gold[""]})
