"""steelyard exclude, readmit, state."""

from __future__ import annotations

import pytest

from steelyard import Study
from tests.cli.running import run


@pytest.fixture
def judged(make_study):
    folder = make_study('name = "direct"', 'name = "redundant"\njudgments = 2', items=3)
    with Study.open(folder) as study:
        for annotator in ("ann", "bob"):
            while (task := study.ask(annotator)) is not None:
                study.tell(task, dict.fromkeys(task.item_ids, 10))
    return folder


def test_exclude_says_how_many_judgments_are_set_aside_and_readmit_undoes_it(judged):
    done = run("exclude", ".", "bob", "--reason", "guessing", cwd=judged)
    assert "3 judgments are set aside" in done.stdout
    assert "3 set aside" in run("status", ".", cwd=judged).stdout
    assert "3 judgments count again" in run("readmit", ".", "bob", cwd=judged).stdout
    assert "set aside" not in run("status", ".", cwd=judged).stdout


def test_readmitting_someone_who_is_not_excluded_names_who_is(judged):
    run("exclude", ".", "bob", "--reason", "guessing", cwd=judged)
    refused = run("readmit", ".", "ann", cwd=judged, code=1)
    assert "Excluded: bob." in refused.stderr


def test_a_paused_study_says_so(judged):
    run("state", ".", "paused", cwd=judged)
    assert "The study is paused." in run("status", ".", cwd=judged).stdout
    run("state", ".", "open", cwd=judged)
    assert "paused" not in run("status", ".", cwd=judged).stdout
