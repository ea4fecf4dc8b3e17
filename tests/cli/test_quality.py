"""steelyard quality, settle, look."""

from __future__ import annotations

import json

import numpy as np
import pytest

from steelyard import Study
from steelyard.study import differing_picks
from tests.cli.running import run

pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")


@pytest.fixture
def judged(make_study):
    """A study of which one annotator always says 50, at once."""

    def make(extra: str):
        folder = make_study('name = "direct"', 'name = "per_item"\njudgments = 5', items=30, extra=extra)
        rng = np.random.default_rng(0)
        with Study.open(folder) as study:
            truth = {item.id: 3 * n + 2 for n, item in enumerate(study.items)}
            for annotator in ("ann", "bob", "cleo", "dan", "spam"):
                while (task := study.ask(annotator)) is not None:
                    item = task.item_ids[0]
                    value = 50 if annotator == "spam" else truth[item] + float(rng.normal(0, 4))
                    seconds = 0.1 if annotator == "spam" else 3
                    study.tell(task, {item: float(np.clip(value, 0, 100))}, seconds=seconds)
        return folder

    return make


@pytest.mark.slow
def test_the_table_shows_who_is_careless_and_nobody_is_excluded_by_looking(judged):
    folder = judged("")
    lines = {line.split()[0]: line for line in run("quality", ".", cwd=folder).stdout.splitlines() if line.strip()}
    assert lines["spam"].count("100%") == 2
    assert "excluded" not in lines["spam"]
    frame = json.loads(run("quality", ".", "--format", "json", cwd=folder).stdout)
    by_name = {row["annotator"]: row for row in frame}
    assert by_name["spam"]["constant"] == by_name["spam"]["too_fast"] == 1.0
    assert by_name["ann"]["agreement"] > 0.9


@pytest.mark.slow
def test_rules_exclude_only_when_they_are_set_and_applied(judged):
    folder = judged("[quality.rules]\nconstant = 0.8\ntoo_fast = 0.8\n")
    assert "excluded" not in run("quality", ".", cwd=folder).stdout
    done = run("quality", ".", "--apply", cwd=folder)
    assert "spam is excluded: 100% of the answers were faster than the text can be read" in done.stdout
    with Study.open(folder) as study:
        assert list(study.annotators.excluded) == ["spam"]
        assert study.status().set_aside == 30
        assert differing_picks(study.events()) == []
        study.annotators.readmit("spam", "it was a test")
        assert study.quality.apply_rules() == {}


@pytest.mark.slow
def test_without_rules_nothing_happens(judged):
    folder = judged("")
    run("quality", ".", "--apply", cwd=folder)
    with Study.open(folder) as study:
        assert study.annotators.excluded == {}


def test_a_disputed_check_is_named_and_can_be_settled(make_study):
    folder = make_study('name = "direct"', extra='[quality]\nchecks = { file = "gold.csv", rate = 0.95 }\n')
    (folder / "gold.csv").write_text("items,answer\ngold,0..10\n")
    with Study.open(folder) as study:
        for number in range(6):
            task = study.ask(f"ann-{number}")
            study.tell(task, {task.item_ids[0]: 90})
        key = study.quality.checks()[0].key
    result = run("quality", ".", cwd=folder)
    assert f"check {key} is disputed: 6 of 6 annotators gave another answer" in " ".join(
        (result.stdout + result.stderr).split()
    )
    run("resolve-check", ".", key, "wrong", cwd=folder)
    assert "disputed" not in run("quality", ".", cwd=folder).stdout
    assert "Write right or wrong." in run("resolve-check", ".", key, "perhaps", cwd=folder, code=1).stderr


@pytest.mark.slow
def test_a_look_says_how_far_it_is(judged):
    folder = judged('[stop]\nmeasure = "split_half"\ntarget = 0.5\ninterim_analyses = 2\n')
    assert "The target is reached" in run("interim-analysis", ".", cwd=folder).stdout
    assert "No interim analysis is due; the study is closed." in run("interim-analysis", ".", cwd=folder).stdout


def test_a_study_without_a_target_is_told_how_to_have_one(make_study):
    assert "Add [stop]" in run("interim-analysis", ".", cwd=make_study(), code=1).stderr
