"""Simulated annotators know the answers to checks, unless they lapse."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

from steelyard.quality.questions import Question, read_questions
from steelyard.simulate import Population, SimulatedAnnotator, SimulatedAnnotators, answer_for, forecast_study
from steelyard.simulate.answers import known_values
from tests.simulate.helpers import make_config, make_items

CHECKS = [
    ({"name": "direct"}, {"items": "a", "answer": "71"}),
    ({"name": "direct"}, {"items": "a", "answer": "95..100"}),
    ({"name": "direct", "scale": [-1, 1]}, {"items": "a", "answer": "-1..-0.8"}),
    ({"name": "likert"}, {"items": "a", "answer": "2"}),
    ({"name": "error_spans"}, {"items": "a", "answer": "20..40"}),
    (
        {"name": "direct", "criteria": {"joy": {}, "valence": {"scale": [-100, 100]}}},
        {"items": "a", "answer": "joy: 0..10, valence: -100..-80"},
    ),
    ({"name": "choice", "labels": ["no", "perhaps", "yes"]}, {"items": "a", "answer": "yes/perhaps"}),
    ({"name": "pairwise"}, {"items": "a|b", "answer": "b"}),
    ({"name": "pairwise"}, {"items": "a|b", "answer": "tie"}),
    ({"name": "best_worst"}, {"items": "a|b|c|d", "best": "c", "worst": "a"}),
    ({"name": "best_worst"}, {"items": "a|b|c|d", "best": "a"}),
    ({"name": "ranking", "size": 4}, {"items": "a|b|c|d", "answer": "c > a = d > b"}),
    ({"name": "ranking", "size": 3, "ties": False}, {"items": "a|b|c", "answer": "b > c > a"}),
]


def read(protocol: dict[str, object], cells: dict[str, str]) -> Question:
    return read_questions(pl.DataFrame([cells]), make_config(protocol).stages[0].protocol)[0]


@pytest.mark.parametrize(("protocol", "cells"), CHECKS, ids=str)
def test_known_values_lead_to_an_answer_that_is_graded_as_correct(protocol, cells):
    question = read(protocol, cells)
    assert question.grade(answer_for(question.protocol, known_values(question)))


@pytest.mark.parametrize(("protocol", "cells"), CHECKS, ids=str)
def test_attentive_annotators_pass_checks_whatever_their_noise_and_bias(protocol, cells):
    question = read(protocol, cells)
    person = SimulatedAnnotator("ann", noise=0.4, bias=0.3, lapse=0.0)
    people = SimulatedAnnotators([person], {"w": 0.5}, np.random.default_rng(0))
    assert all(question.grade(people.answer_check("ann", question, question.item_ids)) for _ in range(20))


def test_annotators_fail_checks_as_often_as_they_lapse():
    """Of an answer at random on 0 to 100, one in five lies in 80..100: the expected accuracy is 1 - 0.3 · 0.8."""
    question = read({"name": "direct"}, {"items": "a", "answer": "80..100"})
    people = SimulatedAnnotators([SimulatedAnnotator("ann", lapse=0.3)], {"w": 0.5}, np.random.default_rng(0))
    passed = [question.grade(people.answer_check("ann", question, ("a",))) for _ in range(4000)]
    assert np.mean(passed) == pytest.approx(0.76, abs=0.027)  # four standard errors


@pytest.mark.slow
def test_a_forecast_counts_checks_and_repeats_and_excludes_careless_annotators():
    items = make_items(40)
    quality = {"repeat_rate": 0.1, "repeat_after": 3, "checks": {"file": "checks.csv", "rate": 0.2, "min_checks": 3}}
    design = {"name": "per_item", "judgments": 6}
    plain = forecast_study(make_config({"name": "direct"}, design), items, people=20)
    config = make_config({"name": "direct"}, design, quality=quality)
    rows = pl.DataFrame({"items": [f"easy-{n}" for n in range(12)], "answer": ["90..100"] * 12})
    checks = read_questions(rows, config.stages[0].protocol)
    checked = forecast_study(config, items, people=20, checks=checks)
    assert plain.tasks == 240
    # 3 of 10 tasks are about annotators; four standard deviations of 240 / 0.7 draws are 34.
    assert checked.tasks == pytest.approx(240 / 0.7, abs=40)
    assert checked.tasks == checked.stages[0].tasks == sum(checked.tasks_each)
    assert any("are checks and" in warning for warning in checked.warnings)
    careless = forecast_study(config, items, people=20, checks=checks, population=Population(careless=0.5))
    # A third of the careless annotators copy somebody else's answers, which checks do not reveal.
    [sentence] = [warning for warning in careless.warnings if "careless annotators" in warning]
    caught, n_careless, _, n_others = map(int, re.findall(r"\d+", sentence)[:4])
    assert (n_careless, n_others) == (10, 10)
    assert 1 <= caught <= 10
    without_questions = forecast_study(config, items, people=20)
    assert any("checks are not simulated" in warning for warning in without_questions.warnings)
