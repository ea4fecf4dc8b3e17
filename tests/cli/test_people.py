"""steelyard exclude, readmit, forget, state, pay; and what people are called in exports."""

from __future__ import annotations

import pytest

from steelyard import Study
from tests.cli.running import run


@pytest.fixture
def judged(make_study):
    folder = make_study('name = "direct"', 'name = "per_item"\njudgments = 2', items=3)
    with Study.open(folder) as study:
        for annotator in ("ann", "bob"):
            while (task := study.ask(annotator)) is not None:
                study.tell(task, dict.fromkeys(task.item_ids, 10))
    return folder


def test_exclude_says_how_many_judgments_are_set_aside_and_readmit_undoes_it(judged):
    done = run("exclude", ".", "bob", "--reason", "guessing", cwd=judged)
    assert "3 judgments no longer count" in done.stdout
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


def test_pay_lists_what_everybody_earned_and_what_it_comes_to(judged):
    text = (judged / "study.toml").read_text()
    assert "does not define the pay" in run("pay", ".", cwd=judged, code=1).stderr
    (judged / "study.toml").write_text(
        text + '[pay]\nper_task = 0.25\nbonus = "0.1 * tasks"\nfee = 0.2\ncurrency = "EUR"\n'
    )
    run("exclude", ".", "bob", "--reason", "guessing", cwd=judged)
    # Each answered three: 0.75, and ann 0.30 more.
    output = run("pay", ".", cwd=judged).stdout
    assert "1.80 EUR for 2 annotators, 2.16 with the fee of 20 %" in output
    run("pay", ".", "-o", "pay.csv", cwd=judged)
    rows = (judged / "pay.csv").read_text().splitlines()
    assert rows[0].startswith("annotator,tasks,hours")
    assert rows[1].startswith("ann,3,")
    assert rows[1].endswith("0.3,1.05")


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 50])
def test_what_people_earned_is_never_cut_or_broken_however_narrow_the_terminal(tmp_path, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    people = ["5f2a6b1c9d8e7f0a1b2c3d4e", "somebody-with-a-long-name@an-institute.example.org"]
    run("new", "words", cwd=tmp_path)
    with (tmp_path / "words" / "study.toml").open("a") as file:
        file.write('[pay]\nper_task = 1234.5\nbonus = "100.25 * tasks"\n')
    for name in people:
        run("judge", "words", "--annotator", name, "--max-tasks", "2", cwd=tmp_path, text="5\n5\n")
    run("exclude", "words", people[1], "--reason", "guessing", cwd=tmp_path)
    lines = run("pay", "words", cwd=tmp_path).stdout.splitlines()
    assert lines[1].split()[-3:] == ["2,469.00", "200.50", "2,669.50"]
    assert any(line.split()[-4:] == ["2,469.00", "0.00", "2,469.00", "excluded"] for line in lines)
    assert (people[0] in lines[1]) == (width == 80), "names are folded where there is no room"
    assert "".join(line.split(" ")[0] for line in lines[1:-1]) == "".join(people)
    assert max(map(len, lines)) <= max(width, 68)


def test_a_wrong_bonus_is_named_with_its_line(judged):
    text = (judged / "study.toml").read_text()
    (judged / "study.toml").write_text(text + '[pay]\nbonus = "0.1 * taks"\n')
    refused = run("check", ".", cwd=judged, code=1)
    assert "Did you mean 'tasks'?" in refused.stderr
    assert f"line {len(text.splitlines()) + 2}" in refused.stderr


def test_forget_says_what_it_would_do_and_does_nothing_before_a_yes(judged):
    prompt = run("forget", ".", "bob", cwd=judged, text="n\n", code=1)
    assert "To be erased: 3 judgments, 6 events in the log and 0 tokens and sessions." in prompt.stderr
    assert "none of 3 scores changes" in prompt.stderr
    assert "6 judgments" in run("status", ".", cwd=judged).stdout
    done = run("forget", ".", "bob", cwd=judged, text="y\n")
    assert "Erased: 3 judgments" in done.stdout
    assert "3 judgments will be collected again" in done.stdout
    assert "backups" in done.stderr
    assert "3 judgments" in run("status", ".", cwd=judged).stdout
    assert "there is no annotator 'bob'" in run("forget", ".", "bob", "--yes", cwd=judged, code=1).stderr


@pytest.mark.parametrize("what", ["judgments", "answers", "log"])
def test_exports_name_nobody_unless_asked(judged, what):
    with Study.open(judged) as study:
        called = {study.privacy.pseudonym(name) for name in ("ann", "bob")}
    output = run("export", ".", "--what", what, cwd=judged).stdout
    assert all(name in output for name in called)
    assert "bob" not in output
    named = run("export", ".", "--what", what, "--real-ids", cwd=judged).stdout
    assert "bob" in named
    assert not any(name in named for name in called)
    people = run("export", ".", "--what", "annotators", cwd=judged).stdout
    assert all(name in people for name in (*called, "ann", "bob"))


def test_an_item_that_is_set_aside_is_in_status_and_export_and_can_be_asked_again(judged):
    assert "w1 is set aside" in run("set-aside", ".", "w1", "--reason", "cut off", cwd=judged).stdout
    assert "w1: cut off" in run("status", ".", cwd=judged).stdout
    assert "cut off" in run("export", ".", "--what", "scores", cwd=judged).stdout
    assert "w1 is asked about again" in run("ask-again", ".", "w1", cwd=judged).stdout
    assert "Set aside: nothing." in run("ask-again", ".", "w1", cwd=judged, code=1).stderr
