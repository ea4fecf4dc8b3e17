"""Marks of errors: their form, MQM penalties and suggestions."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard import registry
from steelyard.errors import AnswerError
from steelyard.observations import MarkedText, Rating, Span
from steelyard.protocols.error_spans import ErrorSpans
from steelyard.records import Item


def made(**settings: Any) -> ErrorSpans:
    protocol: ErrorSpans = registry.create("protocols", "error_spans", settings)
    return protocol


MARK = {"start": 0, "end": 4, "severity": "minor"}


def test_an_answer_yields_its_score_and_its_marks():
    answer = {"a": {"score": 71, "spans": [MARK, {"omission": True, "severity": "major"}]}}
    plain = made().validate(["a"], answer)
    assert made().observations(["a"], plain) == [
        Rating("a", 71.0),
        MarkedText("a", (Span(0, 4, "minor"), Span(None, None, "major"))),
    ]


def test_overlapping_marks_and_texts_without_errors_are_valid():
    spans = [MARK, {"start": 2, "end": 9, "severity": "major"}, MARK]
    assert made().validate(["a"], {"a": {"score": 1, "spans": spans}}) == {"a": {"score": 1, "spans": spans}}
    assert made().observations(["a"], {"a": {"score": 100, "spans": []}})[1] == MarkedText("a", ())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (70, "score without marks"),
        ({"spans": []}, "no score yet"),
        ({"score": 3, "spans": "all"}, "not a list"),
        ({"score": 3, "spans": [{**MARK, "end": 0}]}, "ends before it starts"),
        ({"score": 3, "spans": [{**MARK, "start": -1}]}, "not a position"),
        ({"score": 3, "spans": [{**MARK, "start": 0.5}]}, "not a position"),
        ({"score": 3, "spans": [{**MARK, "severity": "grave"}]}, "not a severity"),
        ({"score": 3, "spans": [{**MARK, "category": "x"}]}, "no category of errors"),
        ({"score": 3, "spans": [{**MARK, "colour": "red"}]}, "not a mark"),
        ({"score": 101, "spans": []}, "outside the scale"),
        ({"score": 3, "spans": [], "note": ""}, "not an answer"),
    ],
)
def test_answers_that_are_not_marks_are_refused(value, message):
    with pytest.raises(AnswerError, match=message):
        made().validate(["a"], {"a": value})


def test_a_study_may_require_categories_and_forbid_omissions():
    protocol = made(categories=["Accuracy", "Fluency"], omission=False)
    with pytest.raises(AnswerError, match="no category yet"):
        protocol.validate(["a"], {"a": {"score": 3, "spans": [MARK]}})
    with pytest.raises(AnswerError, match="missing content cannot be marked"):
        protocol.validate(["a"], {"a": {"score": 3, "spans": [{"omission": True, "severity": "minor"}]}})


def test_imported_marks_may_have_other_severities_and_categories():
    spans = [{"start": 0, "end": 4, "severity": "undecided", "category": "Style"}, {"start": 1, "end": 2}]
    assert made().validate(["a"], {"a": {"score": 3, "spans": spans}}, lenient=True)["a"]["spans"] == spans


def test_imported_scores_need_no_marks():
    plain = made().validate(["a"], {"a": 70}, lenient=True)
    assert made().observations(["a"], plain) == [Rating("a", 70.0)]


@pytest.mark.parametrize(
    ("marks", "score"),
    [
        # Freitag et al. 2021: major 5, minor 1, minor punctuation .1, non-translation 25.
        ([("minor", "Accuracy/Mistranslation"), ("major", "Fluency/Grammar")], -6),
        ([("minor", "Fluency/Punctuation"), ("minor", "Fluency/Punctuation")], -0.2),
        ([("major", "Fluency/Punctuation")], -5),
        ([("major", "Non-translation!")], -25),
        ([("major", "")] * 30, -100),
        ([], 0),
    ],
)
def test_mqm_scores_are_minus_the_sum_of_the_penalties(marks, score):
    spans = [Span(0, 1, severity, category) for severity, category in marks]
    assert made(score="mqm").mqm_score(spans) == pytest.approx(score)


def test_an_mqm_answer_needs_no_score_and_its_rating_follows_from_the_marks():
    protocol = made(score="mqm")
    plain = protocol.validate(["a"], {"a": {"spans": [MARK], "score": -3}})
    assert plain == {"a": {"spans": [MARK]}}
    assert protocol.observations(["a"], plain)[0] == Rating("a", -1.0)


def test_offsets_are_code_points_of_the_text():
    protocol, item = made(), Item("a", "👍🏽e\u0301漢字")
    protocol.check_texts([item], {"a": {"spans": [{"start": 4, "end": 6, "severity": "minor"}]}})
    with pytest.raises(AnswerError, match="ends at character 7, but the text has 6"):
        protocol.check_texts([item], {"a": {"spans": [{"start": 4, "end": 7, "severity": "minor"}]}})


def test_suggestions_come_from_a_column_and_are_checked_with_the_items():
    protocol = made(suggestions="marks")
    item = Item("a", "some text", metadata={"marks": '[{"start": 0, "end": 4, "severity": "minor"}]'})
    assert protocol.suggested(item) == [MARK]
    assert protocol.item_problems([item]) == []
    for text, message in (("[", "not JSON"), ('[{"start": 0, "end": 99, "severity": "minor"}]', "has 9")):
        (problem,) = protocol.item_problems([Item("b", "some text", metadata={"marks": text})])
        assert message in problem.what
    (problem,) = protocol.item_problems([Item("c", "some text")])
    assert "no item has a column 'marks'" in problem.what
