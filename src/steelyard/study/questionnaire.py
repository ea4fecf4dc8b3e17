"""The entry questionnaire: what annotators are asked about themselves, and the groups that their answers form."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TypeAlias

from steelyard.errors import AnswerError, Problem, did_you_mean
from steelyard.study.config.tables import EntryQuestion

Answer: TypeAlias = str | float | None
"""A choice, a text or a number; None where an annotator left it out or preferred not to say."""


def checked_answers(questions: Sequence[EntryQuestion], answers: Mapping[str, object]) -> dict[str, Answer]:
    """Return an annotator's answers to these questions, or raise with everything that is wrong with them."""
    names = [question.name for question in questions]
    problems = [
        Problem(f"there is no question '{name}' in the questionnaire.", did_you_mean(name, names), field=name)
        for name in answers
        if name not in names
    ]
    checked: dict[str, Answer] = {}
    for question in questions:
        try:
            checked[question.name] = _checked(question, answers.get(question.name), question.name in answers)
        except ValueError as error:
            problems.append(Problem(f"'{question.name}': {error}.", "Change the answer.", field=question.name))
    if problems:
        raise AnswerError(problems)
    return checked


def _checked(question: EntryQuestion, value: object, is_given: bool) -> Answer:
    text = value.strip() if isinstance(value, str) else value
    if text is None or text == "":
        if question.optional or (question.prefer_not_to_say and is_given and value is None):
            return None
        raise ValueError("an answer is missing")
    if question.type == "number":
        return _checked_number(question, text)
    if not isinstance(text, str):
        raise ValueError("the answer must be a text")
    if question.type == "choice" and text not in question.choices:
        raise ValueError(f"the answer must be one of: {', '.join(question.choices)}")
    if len(text) > question.max_length:
        raise ValueError(f"the answer is longer than {question.max_length} characters")
    return text


def _checked_number(question: EntryQuestion, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError("the answer must be a number")
    low, high = question.minimum, question.maximum
    if low is not None and value < low:
        raise ValueError(f"the answer must be at least {low:g}")
    if high is not None and value > high:
        raise ValueError(f"the answer must be at most {high:g}")
    return float(value)


def group_name(question: EntryQuestion, answer: Answer) -> str | None:
    """Return the group of annotators that an answer belongs to; None where there is no answer.

    Numbers are grouped at the question's `breaks`, each of which begins a group.
    """
    if answer is None or isinstance(answer, str):
        return answer
    breaks = question.breaks
    if not breaks:
        return f"{answer:g}"
    place = bisect_right(breaks, answer)
    if place == 0:
        return f"under {breaks[0]:g}"
    if place == len(breaks):
        return f"{breaks[-1]:g} or more"
    return f"{breaks[place - 1]:g} to under {breaks[place]:g}"
