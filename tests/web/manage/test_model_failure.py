"""A study whose model raises an exception loses its scores, and nothing else."""

from __future__ import annotations

import logging

import pytest
from typer.testing import CliRunner

from steelyard import Study
from steelyard.cli.app import app
from steelyard.errors import ModelFailedError
from steelyard.report.builder import build_report
from steelyard.report.html import html_page
from steelyard.study import forget, forgetting
from steelyard.web.background import run_due_jobs
from steelyard.web.calculator_process import Source
from tests import failing_model
from tests.web.manage.conftest import wait_for

SENTENCE = "Scores could not be computed: the model always_fails failed (ZeroDivisionError: float division by zero)."


@pytest.fixture
def folder(make_study, tmp_path):
    with failing_model.installed(tmp_path) as name:
        stop = '[stop]\nmeasure = "interval_width"\ntarget = 1\ninterim_analyses = 2\n'
        folder = make_study(design="judgments = 3", extra=f'{stop}[model]\nname = "{name}"\n[pay]\nper_task = 0.1\n')
        with Study.open(folder) as study:
            for annotator in ("ann", "bob"):
                while (task := study.ask(annotator)) is not None:
                    study.tell(task, {task.item_ids[0]: 50}, seconds=3)
        yield folder


@pytest.fixture
def study(folder):
    with Study.open(folder) as study:
        yield study


def test_the_error_names_the_model_and_keeps_its_cause(study):
    with pytest.raises(ModelFailedError) as failure:
        study.scores()
    assert failure.value.problems[0].what == SENTENCE
    assert isinstance(failure.value.__cause__, ZeroDivisionError)


def test_the_dashboard_shows_everything_that_needs_no_model_and_says_what_failed(
    folder, serve_study, manager_of, caplog
):
    with caplog.at_level(logging.ERROR, logger="steelyard.web"):
        manager = manager_of(serve_study(folder))
        summary = wait_for(lambda: (s := manager.get("/summary").json())["as_of"] is not None and s)
        assert summary["texts"]["problem"] == SENTENCE
        assert summary["texts"]["cost"] == "$1.20"
        assert summary["error"] == ""
        assert manager.table("annotators")["total"] == 2
        wait_for(lambda: manager.get("/summary").json()["reliability_as_of"] is not None)
    assert "Traceback" in caplog.text
    assert "steelyard_always_fails.py" in caplog.text
    assert manager.http.get(f"{manager.server.url}/manage/{manager.server.slug}/").status_code == 200


def test_what_needs_scores_answers_with_what_to_do(folder, serve_study, manager_of):
    manager = manager_of(serve_study(folder))
    for path in ("/scores", "/download/scores.csv", "/charts/histogram.csv"):
        response = manager.get(path)
        assert response.status_code == 409, (path, response.text)
        error = response.json()["error"]
        assert (error["code"], error["what"]) == ("model_failed", SENTENCE)
        assert "judgments can still be downloaded" in error["remedy"]


def test_downloads_exclusion_and_forgetting_work_without_scores(folder, serve_study, manager_of):
    manager = manager_of(serve_study(folder))
    for path in ("/download/judgments.csv", "/download/answers.csv", "/download/annotators.csv", "/download/log.jsonl"):
        response = manager.get(path)
        assert response.status_code == 200, response.text
        assert len(response.text.splitlines()) > 2, path
    assert manager.post("/exclude", {"annotator": "bob", "reason": "a test"}).status_code == 200
    assert manager.get("/summary").json()["excluded"] == 1
    assert manager.post("/readmit", {"annotator": "bob"}).status_code == 200
    for sure in (False, True):
        response = manager.post("/forget", {"annotator": "bob", "confirm": sure})
        assert response.status_code == 200, response.text
        assert SENTENCE in " ".join(response.json()["effects"])
    assert manager.server.study.judgments()["annotator"].unique().to_list() == ["ann"]


@pytest.mark.slow
def test_the_report_has_a_section_that_says_so(study):
    document = build_report(study)
    scores = next(section for section in document.sections if section.key == "scores")
    assert SENTENCE in scores.blocks[0].text
    assert SENTENCE in document.absent
    assert {section.key for section in document.sections} >= {"participation", "costs", "reliability", "methods"}
    assert "ZeroDivisionError" in html_page(document)


def test_a_person_is_forgotten_without_scores(study):
    assert SENTENCE in " ".join(forgetting.preview(study, "ann").would())
    assert SENTENCE in " ".join(forget(study, "ann").did())
    assert study.judgments()["annotator"].unique().to_list() == ["bob"]


def test_a_look_that_fails_does_not_stop_the_rules(folder):
    lines = run_due_jobs(Source(str(folder), None))
    assert "Scores could not be computed" in lines[0]
    with Study.open(folder) as study:
        assert study.state == "open"
        assert not study.quality.is_analysis_due()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["export", "{}"], 0),
        (["export", "{}", "--what", "log"], 0),
        (["export", "{}", "--what", "answers"], 0),
        (["status", "{}"], 0),
        (["pay", "{}"], 0),
        (["report", "{}", "-o", "{}/report.html"], 0),
        (["forget", "{}", "ann", "--yes"], 0),
        (["scores", "{}"], 1),
        (["export", "{}", "--what", "scores"], 1),
        (["export", "{}", "--dataset", "{}/data"], 1),
    ],
)
def test_commands_that_need_no_scores_work_and_the_others_say_why(folder, arguments, code):
    result = CliRunner().invoke(app, [part.format(folder) for part in arguments])
    if code == 0:
        assert result.exit_code == 0, (result.output, result.exception)
    else:
        assert isinstance(result.exception, ModelFailedError)
