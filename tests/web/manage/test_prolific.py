"""Prolific from the dashboard, against the stand-in: every action is previewed, and confirmed as it was previewed."""

from __future__ import annotations

import pytest

from tests.recruitment.conftest import STUDY, work
from tests.recruitment.standin import TOKEN, start


@pytest.fixture
def standin(monkeypatch):
    running = start()
    monkeypatch.setenv("STEELYARD_PROLIFIC_API", running.url)
    monkeypatch.setenv("STEELYARD_PROLIFIC_TOKEN", TOKEN)
    yield running
    running.stop()


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "words"
    folder.mkdir()
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    rows = "".join(f"w{n},word {n}\n" for n in range(12))
    (folder / "items.csv").write_text("id,text\n" + rows, encoding="utf-8")
    checks = "".join(f"w{n},40..60\n" for n in range(6))
    (folder / "gold.csv").write_text("items,answer\n" + checks, encoding="utf-8")
    return folder


@pytest.fixture
def manager(folder, standin, serve_study, manager_of):
    return manager_of(serve_study(folder))


def carry_out(manager, action, **options):
    """Preview an action and confirm it; return the lines of the preview and of the result."""
    preview = manager.post("/prolific", {"action": action, **options})
    assert preview.status_code == 200, preview.text
    assert not preview.json()["done"]
    done = manager.post("/prolific", {"action": action, "agreed": preview.json()["digest"], **options})
    assert done.status_code == 200, done.text
    return preview.json()["lines"], done.json()["lines"]


def test_a_study_goes_from_draft_to_bonuses_without_the_command_line(manager, folder, standin):
    platform = standin.platform
    assert manager.get("/prolific").json()["actions"] == ["draft"]
    carry_out(manager, "draft")
    [study] = platform.studies.values()
    assert study["status"] == "UNPUBLISHED"
    preview, _ = carry_out(manager, "publish")
    assert preview[0] == "Publish the study with 3 places."
    assert study["status"] == "ACTIVE"
    assert "stop" in manager.get("/prolific").json()["actions"]
    for name, value in (("p1", 50), ("p2", 50), ("p3", 95)):
        work(folder, platform, name, value=value)
    state = manager.get("/prolific").json()
    assert state["submissions"] == {"AWAITING REVIEW": 3}
    assert {"sync", "approve"} <= set(state["actions"])
    # p3 answered the checks wrongly and is left for the researcher.
    preview, done = carry_out(manager, "approve")
    assert any(line.startswith("p3: review by hand") for line in preview)
    assert done == ["2 of 2 submissions are approved."]
    # 0.1 for each of four tasks, and 0.25 for passing the checks.
    preview, done = carry_out(manager, "bonus")
    assert "p1: $0.65" in preview
    assert done == ["$1.30 of bonuses paid."]
    assert platform.paid("bonus") == {"p1": 65, "p2": 65}
    again = manager.post("/prolific", {"action": "bonus"}).json()
    assert again["digest"] == ""
    texts = [row["text"] for row in manager.get("/tables/activity").json()["rows"]]
    assert {"Bonus batch 1 paid", "2 submissions on Prolific: approved"} <= set(texts)


def test_careless_submissions_are_rejected_with_a_message_after_a_preview(manager, folder, standin):
    carry_out(manager, "draft")
    preview, _ = carry_out(manager, "publish", pilot=2)
    assert preview[0] == "Publish the study with 2 places (pilot)."
    for name, value in (("p1", 50), ("p2", 95)):
        work(folder, standin.platform, name, value=value)
    state = manager.get("/prolific").json()
    assert state["awaiting"] == ["p1", "p2"]
    assert "FAILED_CHECK" in state["categories"]
    choice = {"participants": ["p2"], "category": "FAILED_CHECK"}
    short = manager.post("/prolific", {"action": "reject", "message": "Too careless.", **choice})
    assert short.status_code == 409
    assert "100" in short.json()["error"]["what"]
    message = (
        "Most of your answers to questions with a known answer were wrong, although we asked you to read them. " * 2
    )
    preview, done = carry_out(manager, "reject", message=message, **choice)
    assert preview[0] == "p2: reject"
    assert done[0].startswith("1 submission is rejected")
    assert manager.get("/prolific").json()["submissions"] == {"AWAITING REVIEW": 1, "REJECTED": 1}
    assert manager.post("/prolific", {"action": "reject", "message": message, **choice}).json()["digest"] == ""


def test_the_pilot_is_summarised_with_a_plan_for_the_full_run(manager, folder, standin):
    assert manager.get("/pilot").status_code == 409
    carry_out(manager, "draft")
    carry_out(manager, "publish", pilot=2)
    for name, value in (("p1", 50), ("p2", 55)):
        work(folder, standin.platform, name, value=value)
    lines = manager.get("/pilot", target=0.8).json()["lines"]
    assert lines[0].startswith("2 annotators gave 8 answers")
    assert any("more judgments" in line for line in lines)


def test_a_confirmation_of_something_else_is_refused_and_nothing_is_done(manager, folder, standin):
    carry_out(manager, "draft")
    preview = manager.post("/prolific", {"action": "publish", "pilot": 1}).json()
    refused = manager.post("/prolific", {"action": "publish", "agreed": preview["digest"]})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "changed")
    [study] = standin.platform.studies.values()
    assert study["status"] == "UNPUBLISHED"
    carry_out(manager, "publish", pilot=1)
    assert (study["status"], study["total_available_places"]) == ("ACTIVE", 1)
    carry_out(manager, "stop")
    assert study["status"] in {"AWAITING REVIEW", "COMPLETED"}


def test_what_is_missing_for_prolific_is_said(make_study, serve_study, manager_of, manager, monkeypatch):
    other = manager_of(serve_study(make_study(name="plain")))
    state = other.get("/prolific").json()
    assert (state["connected"], state["actions"]) == (False, [])
    assert "Choose Edit, then Share" in state["text"]
    monkeypatch.delenv("STEELYARD_PROLIFIC_TOKEN")
    assert "Set STEELYARD_PROLIFIC_TOKEN and restart it." in manager.get("/prolific").json()["text"]
    refused = manager.post("/prolific", {"action": "draft"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "prolific")
