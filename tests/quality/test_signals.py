"""Signs of careless work."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from steelyard.models.labels.majority import wilson
from steelyard.protocols import BestWorst, Direct, Pairwise
from steelyard.quality.signals import broken_rules, far_below, signals
from steelyard.records import Judgment

PROTOCOLS = {"direct": Direct(), "pairwise": Pairwise(), "best_worst": BestWorst()}
LETTERS = dict.fromkeys("abcdefgh", 150)


def judged(annotator, stage, items, answer, seconds=None):
    return Judgment("j", annotator, stage, stage, tuple(items), answer, datetime.now(UTC), seconds)


def rated(annotator, values, seconds=None):
    return [judged(annotator, "direct", ["a"], {"a": value}, seconds) for value in values]


def table(*judgments):
    return signals([j for part in judgments for j in part], PROTOCOLS, LETTERS)


def test_an_answer_faster_than_the_text_can_be_read_is_too_fast():
    """150 letters at 75 a second take 2 seconds, and a reaction 0.4: 2.4 in all."""
    result = table(rated("ann", [1], 2.39), rated("ann", [2], 2.41), rated("ann", [3], None)).row(0, named=True)
    assert result["too_fast"] == 0.5
    lower, upper = wilson(np.array([1], np.int32), np.array([2], np.int32), 0.95)
    assert (result["too_fast_lower"], result["too_fast_upper"]) == pytest.approx((lower[0], upper[0]))


def test_the_commonest_rating_and_its_share():
    result = table(rated("ann", [50, 50, 50, 10])).row(0, named=True)
    assert (result["constant"], result["commonest"]) == (0.75, "50")
    assert result["place"] is None


def test_who_always_takes_the_left_one_is_one_sided_and_who_varies_is_not():
    pairs = [("a", "b"), ("c", "d")] * 20
    left = [judged("lefty", "pairwise", pair, {"winner": pair[0]}) for pair in pairs]
    fair = [judged("fair", "pairwise", pair, {"winner": pair[n // 2 % 2]}) for n, pair in enumerate(pairs)]
    result = table(left, fair)
    assert dict(result.select("annotator", "one_sided").iter_rows()) == {"lefty": True, "fair": False}
    assert result.filter(annotator="lefty").select("place", "place_share").row(0) == (1, 1.0)


def test_hardly_anybody_is_called_one_sided_by_chance():
    rng = np.random.default_rng(0)
    everybody = [
        judged(f"ann-{n}", "best_worst", "abcd", {"best": str(b), "worst": str(w)})
        for n in range(300)
        for b, w in (rng.choice(list("abcd"), 2, replace=False) for _ in range(20))
    ]
    assert table(everybody)["one_sided"].sum() <= 1


def test_three_answers_accuse_nobody_whatever_the_rules():
    pairs = [judged("ann", "pairwise", ("a", "b"), {"winner": "a"}, 0.1) for _ in range(3)]
    limits = {"too_fast": 0.5, "constant": 0.5, "one_sided": True, "disagreement": True}
    assert broken_rules(table(pairs, rated("bob", [5, 5, 5], 0.1)), limits) == {}


def test_a_rule_that_is_not_set_accuses_nobody():
    spam = table(rated("spam", [50] * 40, 0.1))
    assert broken_rules(spam, {"too_fast": None, "constant": None, "one_sided": False}) == {}
    assert broken_rules(spam, {"constant": 0.9}) == {"spam": "100% of the answers are the same (50)"}
    assert list(broken_rules(spam, {"too_fast": 0.9})) == ["spam"]


def test_only_who_is_surely_far_below_the_others_disagrees():
    agreement = pl.DataFrame(
        {
            "annotator": ["a", "b", "c", "low", "few"],
            "agreement": [0.9, 0.85, 0.8, 0.1, 0.1],
            "agreement_upper": [0.95, 0.9, 0.9, 0.4, 0.95],
        }
    )
    assert far_below(agreement) == ["low"]


def test_judgments_made_elsewhere_are_not_held_against_anybody():
    imported = Judgment("j", "ann", "direct", "direct", ("a",), {"a": 5}, datetime.now(UTC), 0.1, imported=True)
    assert table([imported]).height == 0
