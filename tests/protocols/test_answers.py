"""Answers by hand: what each protocol takes, what it refuses, what it says."""

from __future__ import annotations

import math

import pytest

from steelyard import registry
from steelyard.errors import AnswerError, ConfigError
from steelyard.observations import Choice as BestWorstChoice
from steelyard.observations import Comparison, Label, RankedItems, Rating
from steelyard.protocols import BestWorst, Choice, Direct, Likert, Pairwise, Ranking, ScoredRanking

ABCD = ["a", "b", "c", "d"]


def test_a_slider_gives_one_rating():
    protocol = Direct(scale=(0, 100))
    assert protocol.observations(["a"], protocol.validate(["a"], {"a": 71})) == [Rating("a", 71.0)]


@pytest.mark.parametrize("value", [-0.001, 100.5, math.nan, math.inf, "71", True, None])
def test_a_slider_refuses_what_is_not_on_its_scale(value):
    with pytest.raises(AnswerError, match="a"):
        Direct(scale=(0, 100)).validate(["a"], {"a": value})


def test_criteria_have_their_own_scales():
    protocol = registry.create("protocols", "direct", {"criteria": {"anger": {}, "valence": {"scale": [-100, 100]}}})
    answer = protocol.validate(["h"], {"h": {"anger": 10, "valence": -80}})
    assert protocol.observations(["h"], answer) == [Rating("h", 10.0, "anger"), Rating("h", -80.0, "valence")]
    with pytest.raises(AnswerError, match="outside the scale"):
        protocol.validate(["h"], {"h": {"anger": -80, "valence": -80}})
    with pytest.raises(AnswerError, match="no value for valence"):
        protocol.validate(["h"], {"h": {"anger": 10}})
    with pytest.raises(AnswerError, match="Did you mean 'valence'"):
        protocol.validate(["h"], {"h": {"anger": 10, "valens": 1}})


def test_likert_takes_whole_steps_only():
    protocol = Likert(scale=(1, 5))
    assert protocol.validate(["a"], {"a": 4.0}) == {"a": 4}
    with pytest.raises(AnswerError, match="not a step"):
        protocol.validate(["a"], {"a": 3.5})


def test_a_page_must_be_complete():
    protocol = Direct(items_per_page=2)
    with pytest.raises(AnswerError, match="'b' has no value yet"):
        protocol.validate(["a", "b"], {"a": 5})
    assert protocol.validate(["a", "b"], {"a": 5}, lenient=True) == {"a": 5}


def test_choice_gives_a_label_and_suggests_the_nearest():
    protocol = Choice(labels=("entailed", "not entailed"))
    assert protocol.observations(["a"], protocol.validate(["a"], {"a": "entailed"})) == [Label("a", "entailed")]
    with pytest.raises(AnswerError, match="Did you mean 'entailed'"):
        protocol.validate(["a"], {"a": "entail"})


def test_pairwise_has_three_answers():
    protocol = Pairwise()
    outcomes = [protocol.observations(["a", "b"], {"winner": winner}) for winner in ("a", "b", None)]
    assert outcomes == [[Comparison("a", "b", 1)], [Comparison("a", "b", -1)], [Comparison("a", "b", 0)]]


def test_ties_can_be_switched_off():
    with pytest.raises(AnswerError, match="ties are not allowed"):
        Pairwise(ties=False).validate(["a", "b"], {"winner": None})
    with pytest.raises(AnswerError, match="ties are not allowed"):
        Ranking(ties=False, size=3).validate(["a", "b", "c"], [["a", "b"], ["c"]])


def test_best_worst_settles_five_of_six_pairs():
    """Kiritchenko & Mohammad 2017: of A, B, C, D with A best and D worst, only B against C stays open."""
    choice, *pairs = BestWorst().observations(ABCD, {"best": "a", "worst": "d"})
    assert choice == BestWorstChoice(("a", "b", "c", "d"), "a", "d")
    assert set(pairs) == {
        Comparison("a", "b", 1),
        Comparison("a", "c", 1),
        Comparison("a", "d", 1),
        Comparison("b", "d", 1),
        Comparison("c", "d", 1),
    }


@pytest.mark.parametrize("size", [3, 4, 5, 8])
def test_best_worst_settles_2k_minus_3_pairs(size):
    items = [str(n) for n in range(size)]
    answer = {"best": items[1], "worst": items[0]}
    assert len(BestWorst(size=size).observations(items, answer)) - 1 == 2 * size - 3


def test_best_may_not_be_worst_unless_the_log_is_foreign():
    with pytest.raises(AnswerError, match="both best and worst"):
        BestWorst().validate(ABCD, {"best": "a", "worst": "a"})
    lenient = BestWorst().validate(ABCD, {"best": "a", "worst": "a"}, lenient=True)
    assert BestWorst().observations(ABCD, lenient) == [BestWorstChoice(tuple(ABCD), "a", "a")]


def test_a_foreign_choice_without_worst_settles_what_best_does():
    lenient = BestWorst().validate(ABCD, {"best": "b", "worst": None}, lenient=True)
    assert len(BestWorst().observations(ABCD, lenient)) == 1 + 3


def test_five_sliders_are_five_ratings_and_ten_comparisons():
    items = ["ambulate", "bring", "cook", "dwell", "go"]
    answer = {"ambulate": 4, "bring": 71, "cook": 66, "dwell": 22, "go": 98}
    records = ScoredRanking().observations(items, ScoredRanking().validate(items, answer))
    assert records[:5] == [Rating(item, float(answer[item])) for item in items]
    assert len(records) == 5 + 10
    assert Comparison("bring", "cook", 1) in records
    assert Comparison("ambulate", "bring", -1) in records


def test_equal_sliders_are_a_tie_and_the_margin_widens_it():
    assert ScoredRanking(size=2).observations(["a", "b"], {"a": 50, "b": 50})[-1] == Comparison("a", "b", 0)
    assert ScoredRanking(size=2).observations(["a", "b"], {"a": 52, "b": 50})[-1] == Comparison("a", "b", 1)
    within = ScoredRanking(size=2, tie_margin=2).observations(["a", "b"], {"a": 52, "b": 50})
    assert within[-1] == Comparison("a", "b", 0)


def test_a_ranking_is_its_tiers_and_all_its_pairs():
    tiers = [["c"], ["a", "d"], ["b"]]
    records = Ranking(size=4).observations(ABCD, Ranking(size=4).validate(ABCD, tiers))
    assert records[0] == RankedItems((("c",), ("a", "d"), ("b",)))
    assert set(records[1:]) == {
        Comparison("a", "b", 1),
        Comparison("a", "c", -1),
        Comparison("a", "d", 0),
        Comparison("b", "c", -1),
        Comparison("b", "d", -1),
        Comparison("c", "d", 1),
    }


def test_a_ranking_names_every_item_once():
    with pytest.raises(AnswerError, match="'d' is not ranked yet"):
        Ranking(size=4).validate(ABCD, [["a"], ["b"], ["c"]])
    with pytest.raises(AnswerError, match="'a' appears twice"):
        Ranking(size=4).validate(ABCD, [["a"], ["b", "a"], ["c"], ["d"]])


@pytest.mark.parametrize(
    ("name", "settings", "field"),
    [
        ("direct", {"labels": ["only one"]}, "protocol.labels"),
        ("direct", {"criteria": {"x": {"labels": ["a", "b", "c", "d"]}}}, "protocol.criteria.x.labels"),
        ("direct", {"criteria": {"x": {"skale": [0, 1]}}}, "protocol.criteria.x.skale"),
        ("likert", {"scale": [1, 5], "labels": ["a", "b", "c"]}, "protocol.labels"),
        ("likert", {"scale": [0.5, 3]}, "protocol.scale"),
        ("choice", {}, "protocol.labels"),
        ("choice", {"labels": ["yes", "yes"]}, "protocol.labels"),
        ("best_worst", {"size": 2}, "protocol.size"),
        ("scored_ranking", {"labels": ["a", "b", "c", "d"]}, "protocol.labels"),
        ("scored_ranking", {"scale": [10, 10]}, "protocol.scale"),
    ],
)
def test_settings_that_make_no_sense_are_refused(name, settings, field):
    with pytest.raises(ConfigError) as error_info:
        registry.create("protocols", name, settings)
    assert [problem.field for problem in error_info.value.problems] == [field]


def test_graded_pairs_have_a_strength():
    protocol = Pairwise(steps=5)
    assert protocol.observations(["a", "b"], protocol.validate(["a", "b"], {"winner": "b", "strength": 2})) == [
        Comparison("a", "b", -1, 2)
    ]
    assert protocol.observations(["a", "b"], {"winner": None}) == [Comparison("a", "b", 0)]
    for wrong in ({"winner": "a"}, {"winner": "a", "strength": 3}, {"winner": None, "strength": 1}):
        with pytest.raises(AnswerError, match=r"strength|how much"):
            protocol.validate(["a", "b"], wrong)
    with pytest.raises(AnswerError, match="does not ask how much better"):
        Pairwise().validate(["a", "b"], {"winner": "a", "strength": 1})
    # Imported logs may lack strengths, or have them where the study asks for the winner only.
    assert protocol.validate(["a", "b"], {"winner": "a"}, lenient=True) == {"winner": "a"}
    assert Pairwise().validate(["a", "b"], {"winner": "a", "strength": 9}, lenient=True) == {"winner": "a"}
    assert registry.create("protocols", "pairwise", {"steps": 7, "labels": ["a", "b", "c"]}).strength_names == tuple(
        "abc"
    )
    with pytest.raises(ConfigError, match="labels"):
        registry.create("protocols", "pairwise", {"steps": 5, "labels": ["only one"]})
