"""The entry questionnaire: what is accepted, which groups it forms, and that it stays apart from everything else."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from steelyard import Study
from steelyard.analysis.analysis import Analysis
from steelyard.errors import AnswerError, ConfigError, DataError
from steelyard.report.sections import participation
from steelyard.simulate import SimulatedAnnotators, make_crowd
from steelyard.simulate.study_driver import answer_study
from steelyard.study.exporting import questionnaire_table
from steelyard.study.forgetting import forget
from steelyard.study.rebuild import exported_log
from tests.cli.running import run

QUESTIONNAIRE = """[annotators]
consent = "We store your answers."
[[annotators.questionnaire]]
name = "reads"
question = "How often do you read?"
choices = ["daily", "rarely"]
[[annotators.questionnaire]]
name = "age"
question = "How old are you?"
type = "number"
minimum = 18
maximum = 120
breaks = [30, 50]
[[annotators.questionnaire]]
name = "town"
question = "Where do you live?"
type = "text"
optional = true
prefer_not_to_say = false
"""


@pytest.fixture
def study(make_study):
    with Study.open(make_study('name = "direct"', 'name = "per_item"\njudgments = 12', extra=QUESTIONNAIRE)) as opened:
        yield opened


def test_answers_are_recorded_once_and_only_new_questions_are_asked_again(study):
    assert not study.annotators.progress("ann").questioned
    study.annotators.record_questionnaire("ann", {"reads": "daily", "age": 42, "town": " York "})
    study.annotators.record_questionnaire("ann", {"reads": "rarely", "age": 20})
    assert study.annotators.progress("ann").questioned
    assert study.annotators.attributes().rows() == [("ann", "daily", 42.0, "York")]
    assert len(list(study.events(("questionnaire",)))) == 1
    config = study.folder / "study.toml"
    new = '[[annotators.questionnaire]]\nname = "job"\nquestion = "What do you do?"\ntype = "text"\n[protocol]'
    config.write_text(config.read_text().replace("[protocol]", new))
    study.close()
    with Study.open(study.folder) as changed:
        assert [question.name for question in changed.annotators.questionnaire("ann")] == ["job"]
        changed.annotators.record_questionnaire("ann", {"job": None})
        assert changed.annotators.attributes().rows() == [("ann", "daily", 42.0, "York", None)]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"age": 42}, "'reads': an answer is missing"),
        ({"reads": "hourly", "age": 42}, "must be one of: daily, rarely"),
        ({"reads": "daily", "age": "old"}, "'age': the answer must be a number"),
        ({"reads": "daily", "age": True}, "'age': the answer must be a number"),
        ({"reads": "daily", "age": 17}, "at least 18"),
        ({"reads": "daily", "age": float("inf")}, "'age': the answer must be a number"),
        ({"reads": "daily", "age": 42, "town": "x" * 101}, "longer than 100"),
        ({"reads": "daily", "age": 42, "Towm": "York"}, "no question 'Towm'.*Did you mean 'town'"),
        ({"reads": "  ", "age": None}, "'reads': an answer is missing"),
    ],
)
def test_wrong_answers_are_refused_by_question(study, answers, message):
    with pytest.raises(AnswerError, match=message):
        study.annotators.record_questionnaire("ann", answers)
    assert study.annotators.attributes().is_empty()


def test_an_annotator_may_prefer_not_to_say_only_where_that_is_offered(study):
    study.annotators.record_questionnaire("ann", {"reads": None, "age": None})
    assert study.annotators.progress("ann").questioned
    assert study.annotators.groups("reads") == {}
    with pytest.raises(AnswerError, match="'reads': an answer is missing"):
        study.annotators.record_questionnaire("bob", {"age": None})


def test_numbers_form_groups_that_begin_at_the_breaks(study):
    for name, age in {"a": 18, "b": 29.9, "c": 30, "d": 49, "e": 50}.items():
        study.annotators.record_questionnaire(name, {"reads": "daily", "age": age})
    groups = study.annotators.groups("age")
    assert list(groups.values()) == ["under 30", "under 30", "30 to under 50", "30 to under 50", "50 or more"]
    with pytest.raises(ConfigError, match=r"no question 'ages'\. Did you mean 'age'"):
        study.annotators.groups("ages")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (QUESTIONNAIRE.replace('consent = "We store your answers."', ""), "has no consent text"),
        (QUESTIONNAIRE.replace('choices = ["daily", "rarely"]', 'choices = ["daily"]'), "two or more different"),
        (QUESTIONNAIRE.replace('name = "age"', 'name = "reads"'), "two questions are called 'reads'"),
        (QUESTIONNAIRE.replace("[30, 50]", "[50, 30]"), "must increase"),
        (QUESTIONNAIRE.replace('type = "text"', 'type = "text"\nminimum = 1'), "type number"),
    ],
)
def test_a_questionnaire_that_cannot_work_is_refused_when_the_study_is_opened(make_study, wrong, message):
    with pytest.raises(ConfigError, match=message):
        Study.open(make_study(extra=wrong))


def test_exports_leave_the_answers_out_unless_they_are_asked_for_and_never_name_anybody(study):
    study.annotators.record_questionnaire("ann", {"reads": "daily", "age": 42, "town": "York, near ann"})
    for real_ids in (False, True):
        lines = [event.line() for event in exported_log(study, real_ids=real_ids)]
        text = "\n".join(line for line in lines if json.loads(line)["kind"] != "config")
        assert "daily" not in text
        assert "York" not in text
        assert '"asked":["reads","age","town"]' in text
    table = questionnaire_table(study)
    pseudonym = study.privacy.pseudonym("ann")
    assert table.rows() == [(pseudonym, "daily", 42.0, f"York, near {pseudonym}")]
    with pytest.raises(DataError, match="not exported with names"):
        questionnaire_table(study, real_ids=True)


def test_forgetting_an_annotator_erases_their_answers(make_study, database_url):
    folder = make_study(extra=QUESTIONNAIRE)
    with Study.open(folder, database=database_url) as study:
        for name in ("ann", "bob"):
            study.annotators.record_consent(name)
            study.annotators.record_questionnaire(name, {"reads": "daily", "age": 42, "town": f"{name}burgh"})
        forget(study, "ann")
        assert study.annotators.attributes()["annotator"].to_list() == ["bob"]
        assert "annburgh" not in "\n".join(event.text for event in study.events())
    with Study.open(folder, database=database_url) as study:
        assert not study.annotators.progress("ann").questioned
        assert study.annotators.progress("bob").questioned


def test_simulated_annotators_have_attributes_that_scores_and_report_use(study):
    rng = np.random.default_rng(1)
    truth = {item.id: number / 5 for number, item in enumerate(study.items)}
    crowd = make_crowd(12, rng)
    answer_study(study, SimulatedAnnotators(crowd, truth, rng), rng)
    groups = study.annotators.groups("reads")
    assert set(groups.values()) == {"daily", "rarely"}
    counts = {group: list(groups.values()).count(group) for group in ("daily", "rarely")}
    blocks = {block.name: block for block in participation.section(Analysis.of(study)).blocks}
    counts_in_report = {row[1]: row[2] for row in blocks["questionnaire"].frame.rows() if row[0] == "reads"}
    assert counts_in_report == {group: count for group, count in counts.items() if count >= 5}
    study.close()
    command = ("scores", ".", "--annotator-group", "reads", "--min-group", "2", "--format", "csv")
    table = pl.read_csv(run(*command, cwd=study.folder).stdout.encode())
    assert set(table["group"]) == {"daily", "rarely"}
