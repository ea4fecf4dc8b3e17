"""Questions with known answers, in every protocol."""

from __future__ import annotations

import pytest

from steelyard.errors import AnswerError, DataError
from steelyard.protocols import BestWorst, Choice, Direct, ErrorSpans, Likert, Pairwise, Ranking, ScoredRanking
from steelyard.quality import read_questions
from steelyard.records import Item

CASES = [
    # protocol, row, right answers, wrong answers
    (Direct(), {"items": "joy", "answer": "60..100"}, [{"joy": 60}, {"joy": 100}], [{"joy": 59.9}]),
    (Direct(), {"items": "joy", "answer": "70"}, [{"joy": 80}, {"joy": 60}], [{"joy": 81}]),
    (Direct(scale=(-1, 1)), {"items": "joy", "answer": "-1..0"}, [{"joy": -0.5}], [{"joy": 0.1}]),
    (
        Likert(scale=(1, 5), items_per_page=2),
        {"items": "joy|fear", "answer": "4..5 | 1"},
        [{"joy": 4, "fear": 1}],
        [{"joy": 4, "fear": 2}, {"joy": 3, "fear": 1}],
    ),
    (Choice(labels=("yes", "no", "maybe")), {"items": "a", "answer": "yes/maybe"}, [{"a": "maybe"}], [{"a": "no"}]),
    (Pairwise(), {"items": "a|b", "answer": "b"}, [{"winner": "b"}], [{"winner": "a"}, {"winner": None}]),
    (Pairwise(), {"items": "a|b", "answer": "tie"}, [{"winner": None}], [{"winner": "a"}]),
    (
        BestWorst(),
        {"items": "a|b|c|d", "best": "c", "worst": ""},
        [{"best": "c", "worst": "a"}],
        [{"best": "a", "worst": "c"}],
    ),
    (
        BestWorst(),
        {"items": "a|b|c|d", "best": "c", "worst": "d"},
        [{"best": "c", "worst": "d"}],
        [{"best": "c", "worst": "a"}],
    ),
    (
        Ranking(size=3),
        {"items": "a|b|c", "answer": "b > a = c"},
        [[["b"], ["a", "c"]]],
        [[["b"], ["a"], ["c"]], [["a", "c"], ["b"]]],
    ),
    (
        Ranking(size=3),
        {"items": "a|b|c", "answer": "b > a"},
        [[["b"], ["a"], ["c"]], [["c"], ["b"], ["a"]]],
        [[["a"], ["b"], ["c"]]],
    ),
    (
        ScoredRanking(size=3),
        {"items": "a|b|c", "answer": "c > a"},
        [{"a": 5, "b": 100, "c": 6}],
        [{"a": 6, "b": 0, "c": 6}],
    ),
    (
        ScoredRanking(size=2),
        {"items": "a|b", "answer": "0..10 | 90..100"},
        [{"a": 5, "b": 95}],
        [{"a": 5, "b": 50}],
    ),
]


@pytest.mark.parametrize(("protocol", "row", "right", "wrong"), CASES, ids=lambda v: getattr(v, "name", ""))
def test_right_and_wrong_answers_are_told_apart(protocol, row, right, wrong):
    (question,) = read_questions([row], protocol)
    assert [question.grade(answer) for answer in right] == [True] * len(right)
    assert [question.grade(answer) for answer in wrong] == [False] * len(wrong)
    assert question.expected


def test_criteria_have_answers_of_their_own():
    protocol = Direct(criteria={name: _criterion() for name in ("adequacy", "fluency")})
    (question,) = read_questions([{"items": "t", "answer": "adequacy: 60..100, fluency: 0..40"}], protocol)
    assert question.grade({"t": {"adequacy": 70, "fluency": 10}})
    assert not question.grade({"t": {"adequacy": 70, "fluency": 50}})
    assert question.expected == "adequacy: 60 to 100; fluency: 0 to 40"


def _criterion():
    from steelyard.protocols.rated import Criterion

    return Criterion()


def test_items_of_the_study_are_shown_as_they_are_and_others_as_their_text():
    items = [Item("w1", "joyful", context="a party")]
    questions = read_questions([{"items": "w1", "answer": "90"}, {"items": "sad", "answer": "10"}], Direct(), items)
    assert questions[0].items[0] is items[0]
    assert questions[1].items[0].text == "sad"


def test_an_answer_that_is_not_valid_is_refused_not_graded():
    (question,) = read_questions([{"items": "a|b", "answer": "b"}], Pairwise())
    with pytest.raises(AnswerError):
        question.grade({"winner": "c"})


@pytest.mark.parametrize(
    ("protocol", "row", "message"),
    [
        (Pairwise(), {"items": "a|b|c", "answer": "b"}, "shows 3 items"),
        (Pairwise(), {"items": "a|a", "answer": "a"}, "listed twice"),
        (Pairwise(), {"items": "a|b", "answer": "c"}, "'c' is not among the items"),
        (Direct(), {"items": "a", "answer": "120"}, "within 0 to 100"),
        (Direct(), {"items": "a", "answer": "high"}, "neither a value nor a range"),
        (Direct(), {"items": "a", "answer": ""}, "no answer"),
        (Choice(labels=("x", "y")), {"items": "a", "answer": "z"}, "'z' is not a label"),
        (Direct(), {"items": "a", "answer": "5", "colour": "red"}, "unknown column 'colour'"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(protocol, row, message):
    with pytest.raises(DataError, match=message):
        read_questions([row], protocol)


def test_problems_name_their_line(tmp_path):
    file = tmp_path / "training.csv"
    file.write_text("items,answer\njoy,90\nsad,lots\n")
    with pytest.raises(DataError) as error_info:
        read_questions(file, Direct())
    assert [(p.file, p.line) for p in error_info.value.problems] == [(str(file), 3)]


def test_marks_must_overlap_the_planted_errors():
    protocol = ErrorSpans()
    items = [Item("a", "The cat sat on on the mat.")]
    rows = [{"items": "a", "answer": "0..60", "marked": "on on; cat", "feedback": ""}]
    (question,) = read_questions(rows, protocol, items)

    def grade(*spans: tuple[int, int], score: float = 30) -> bool:
        marks = [{"start": start, "end": end, "severity": "minor"} for start, end in spans]
        return bool(question.grade({"a": {"score": score, "spans": marks}}))

    # "cat" is at 4 to 7, "on on" at 12 to 17.
    assert grade((6, 7), (14, 15))
    assert not grade((6, 7), (14, 15), score=90)
    assert not grade((14, 15))
    assert not grade((7, 12), (17, 20))
    assert not grade()
    assert "“cat” marked" in question.expected
    (clean,) = read_questions([{"items": "a", "marked": "none"}], protocol, items)
    assert clean.grade({"a": {"score": 99, "spans": []}})
    assert not clean.grade({"a": {"score": 99, "spans": [{"omission": True, "severity": "minor"}]}})
    assert clean.key != question.key


@pytest.mark.parametrize(
    ("marked", "protocol", "message"),
    [
        ("dog", ErrorSpans(), "'dog' is not in the text of 'a'"),
        ("cat | cat", ErrorSpans(), "1 items but marked words for 2"),
        ("cat", Direct(), "only error_spans has marks"),
    ],
)
def test_wrong_words_to_mark_are_refused(marked, protocol, message):
    with pytest.raises(DataError, match=message):
        read_questions([{"items": "a", "answer": "1", "marked": marked}], protocol, [Item("a", "The cat.")])
