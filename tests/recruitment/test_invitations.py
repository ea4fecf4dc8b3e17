"""Invited experts: links by a table, quotas of their own, reminders to paste."""

from __future__ import annotations

import json
import re

import pytest

from steelyard.errors import DataError
from steelyard.recruitment.invitations import Invitee, read_invitees
from steelyard.study import Study
from tests.cli.running import run


@pytest.fixture
def invited(make_study, tmp_path):
    folder = make_study(items=20, extra='[annotators]\nopen = false\nmax_tasks = 5\ncontact = "lab@example.org"')
    (tmp_path / "people.csv").write_text("name,tasks,email\nann,2,ann@example.org\nbob,,\ncleo,8,\n", encoding="utf-8")
    return folder


def answer(study: Study, name: str, count: int) -> int:
    answers = 0
    while answers < count and (task := study.ask(name)) is not None:
        study.tell(task, {task.item_ids[0]: 5}, seconds=30)
        answers += 1
    return answers


def test_everybody_in_the_table_gets_a_link_and_their_own_quota(invited, tmp_path):
    done = run("invite", "study", "--from", "people.csv", "--format", "json", cwd=tmp_path)
    links = {row["annotator"]: row for row in json.loads(done.stdout)}
    assert list(links) == ["ann", "bob", "cleo"]
    assert links["ann"]["email"] == "ann@example.org"
    with Study.open(invited) as study:
        token = links["ann"]["link"].partition("invite=")[2]
        assert study.access.find("invite", token).annotator == "ann"
        assert [answer(study, name, 20) for name in ("ann", "bob", "cleo")] == [2, 5, 8]
        assert study.annotators.progress("cleo").limit == 8
    # A quota can be raised later; an address is stored nowhere.
    (tmp_path / "people.csv").write_text("name,tasks\nann,3\n", encoding="utf-8")
    run("invite", "study", "--from", "people.csv", cwd=tmp_path)
    with Study.open(invited) as study:
        assert answer(study, "ann", 20) == 1
    assert not any(b"ann@example.org" in path.read_bytes() for path in invited.rglob("*"))


def test_reminders_go_to_those_who_are_not_done_and_their_links_work(invited, tmp_path):
    run("invite", "study", "--from", "people.csv", cwd=tmp_path)
    with Study.open(invited) as study:
        answer(study, "ann", 2)
        answer(study, "bob", 1)
    done = run("remind", "study", "--from", "people.csv", "--url", "https://judge.example.org", cwd=tmp_path)
    assert "ann" not in done.stdout
    assert 'you have answered 1 of your 5 questions in "Words"' in done.stdout
    # Four tasks at the half minute that bob takes; cleo, who has not begun, is told everybody's pace: 8 × 30 seconds.
    assert "About 2 minutes are left" in done.stdout
    assert "About 4 minutes are left" in done.stdout
    assert "write to lab@example.org" in done.stdout
    assert "2 of 3 invited annotators" in done.stderr
    tokens = re.findall(r"https://judge\.example\.org/s/study/\?invite=(\S+)", done.stdout)
    with Study.open(invited) as study:
        assert [study.access.find("invite", token).annotator for token in tokens] == ["bob", "cleo"]
        study.annotators.exclude("bob", "conflict of interest")
    assert "bob" not in run("remind", "study", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,tasks\nann,two\n", r"line 2.*'two' is not a number"),
        ("name,tasks\nann,0\n", "not a number of tasks"),
        ("name\nann\nann\n", r"line 3.*'ann' appears twice"),
        ("name,task\nann,3\n", "Did you mean 'tasks'"),
        ("who\nann\n", "no column 'name'"),
        ("name,tasks\n,3\n", "cannot be an annotator's name"),
    ],
)
def test_a_table_that_is_wrong_is_refused_whole(tmp_path, text, said):
    (tmp_path / "people.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=said):
        read_invitees(tmp_path / "people.csv")


def test_a_table_of_names_alone_will_do(tmp_path):
    (tmp_path / "people.csv").write_text("name\n ann \n", encoding="utf-8")
    assert read_invitees(tmp_path / "people.csv") == [Invitee("ann")]


def test_links_for_a_panel_are_printed(make_study, tmp_path, monkeypatch):
    make_study(extra='[link]\nparticipant_parameter = "rid"\nsigned = true')
    done = run("link", "study", "--url", "https://judge.example.org", cwd=tmp_path)
    assert done.stdout == "https://judge.example.org/s/study/?rid=PARTICIPANT&STUDY_ID=STUDY&SESSION_ID=SESSION\n"
    assert "STEELYARD_LINK_SECRET" in run("link", "study", "p1", cwd=tmp_path, code=1).stderr
    monkeypatch.setenv("STEELYARD_LINK_SECRET", "0123456789abcdef0123")
    assert "signature=" in run("link", "study", "p1", cwd=tmp_path).stdout
