"""The activity of a study: what happened, in words, and who did it."""

from __future__ import annotations

import pytest

from steelyard import Study
from steelyard.analysis.activity import activity
from steelyard.analysis.history import history_of
from steelyard.study.study import ImportedAnswer
from steelyard.study.team import Team


def rows_of(study):
    return activity(study, history_of(study)).rows(named=True)


@pytest.fixture
def folder(make_study):
    return make_study(design='name = "per_item"\njudgments = 3', items=5)


def test_everything_that_happened_is_listed_latest_first(folder):
    with Study.open(folder) as study:
        for name in ("ann", "bob"):
            for _ in range(2):
                task = study.ask(name)
                study.tell(task, {task.item_ids[0]: 50}, seconds=3)
        study.skip(study.ask("ann"), "unclear")
        study.import_answers(0, [ImportedAnswer("x1", "zoe", ("w0",), {"w0": 5.0}, None)])
        study.annotators.exclude("bob", "too fast")
        study.annotators.readmit("bob")
        study.set_state("paused", "lunch")
    toml = folder / "study.toml"
    toml.write_text(toml.read_text(encoding="utf-8").replace("judgments = 3", "judgments = 4"), encoding="utf-8")
    with Study.open(folder) as study:
        rows = rows_of(study)
    texts = [row["text"] for row in rows]
    assert texts[0].startswith("Settings changed: ")
    assert "judgments 3 → 4" in texts[0]
    assert texts[1:4] == ["Study paused", "bob readmitted", "bob excluded"]
    assert {"1 judgment imported by 1 annotator", "4 judgments by 2 annotators", "1 task skipped"} <= set(texts)
    assert "ann, bob gave their first judgment" in texts
    assert texts[-2:] == ["5 items added or changed", texts[-1]]
    assert texts[-1].startswith("Study created with Steelyard ")
    reasons = {row["text"]: row["reason"] for row in rows}
    assert (reasons["bob excluded"], reasons["Study paused"]) == ("too fast", "lunch")
    assert [row["at"] for row in rows] == sorted((row["at"] for row in rows), reverse=True)


def test_who_did_it_is_named_where_the_log_knows(folder):
    with Study.open(folder) as study:
        Team(study).add("Noor", "manager")
        task = study.ask("ann")
        study.tell(task, {task.item_ids[0]: 50})
        study.annotators.exclude("ann", "a test", member="Noor")
        rows = {row["text"]: row["who"] for row in rows_of(study)}
    assert rows["ann excluded"] == "Noor"
    assert rows["Noor may manage the study"] == ""
