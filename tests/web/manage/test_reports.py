"""Reports created through the server: in the background, kept in the study's folder, downloaded, deleted."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime

import pytest

from steelyard.report import pdf
from steelyard.study.team import Team
from steelyard.web import reports
from tests.web.manage.conftest import Manager, wait_for
from tests.web.manage.test_manage_api import DESIGN, judge


@pytest.fixture
def served(make_study, serve_study, manager_of):
    folder = make_study(design=DESIGN, items=5)
    judge(folder, "ann", "bob")
    server = serve_study(folder)
    return server, manager_of(server)


def finished(manager):
    [report] = manager.get("/reports").json()["reports"]
    return report if report["state"] != "running" else None


def test_a_report_is_created_in_the_background_and_downloaded(served):
    server, manager = served
    created = manager.post("/reports", {"forms": ["html", "pdf"] if pdf.find_chromium() else ["html"]})
    assert created.status_code == 202, created.text
    assert (created.json()["state"], created.json()["judgments"]) == ("running", 10)
    # While it is being created, asking again gives the same one.
    assert manager.post("/reports", {"forms": ["html"]}).json()["id"] == created.json()["id"]
    report = wait_for(lambda: finished(manager), 120)
    assert (report["state"], report["error"], report["progress"]) == ("done", "", 1.0)
    page = manager.get(f"/reports/{report['id']}.html")
    assert page.headers["content-disposition"].startswith('attachment; filename="study-report-')
    assert len(page.content) == report["files"]["html"]
    assert "How positive?" in page.text
    # Annotators have pseudonyms.
    assert "bob" not in page.text
    assert server.study.privacy.pseudonym("bob") in page.text
    if "pdf" in report["files"]:
        assert manager.get(f"/reports/{report['id']}.pdf").content.startswith(b"%PDF")
    activity = manager.get("/tables/activity").json()["rows"]
    assert activity[0]["text"].startswith("Report created (HTML")
    # Forgetting an annotator deletes reports, as these may describe them.
    done = manager.post("/forget", {"annotator": "bob", "confirm": True}).json()
    assert "The reports kept on the server are deleted; create them again." in done["effects"]
    assert manager.get("/reports").json()["reports"] == []
    assert manager.get(f"/reports/{report['id']}.html").status_code == 404


def record(folder, **fields):
    """Write the record of a report as a server would have left it."""
    (folder / reports.FOLDER).mkdir(exist_ok=True)
    now = datetime.now(UTC).isoformat()
    data = {"id": "20260101-120000-abcd", "wanted": ["html"], "judgments": 10, "created": now, "pid": os.getpid()}
    (folder / reports.FOLDER / f"{data['id']}.json").write_text(json.dumps({**data, **fields}), encoding="utf-8")
    (folder / reports.FOLDER / f"{data['id']}.html").write_text("<p>a report</p>", encoding="utf-8")
    return data["id"]


def test_a_report_whose_process_ended_has_failed_and_says_what_to_do(served):
    server, manager = served
    # No process has this number: Linux gives out none above 4194304.
    record(server.folders[0], state="running", pid=4_194_305)
    [report] = manager.get("/reports").json()["reports"]
    assert report["state"] == "failed"
    assert report["error"] == "The server was stopped while this report was created. Create it again."


def test_a_model_that_fails_does_not_fail_the_report_and_an_unreadable_study_does(served, monkeypatch):
    server, manager = served
    toml = server.folders[0] / "study.toml"
    toml.write_text(toml.read_text(encoding="utf-8").replace('title = "Words"', ""), encoding="utf-8")
    manager.post("/reports", {"forms": ["html"]})
    report = wait_for(lambda: finished(manager), 120)
    assert report["state"] == "failed"
    assert "'title' is missing" in report["error"]


def test_a_pdf_without_a_browser_is_refused_at_once(served, monkeypatch):
    _, manager = served
    monkeypatch.setattr(pdf, "find_chromium", lambda: None)
    refused = manager.post("/reports", {"forms": ["pdf"]})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "no_chromium")
    assert manager.get("/reports").json() == {"reports": [], "can_print": False}


def test_viewers_download_reports_without_names_and_create_none(served, manager_of):
    server, _ = served
    viewer = Manager(server)
    viewer.http.headers["Authorization"] = f"Bearer {Team(server.study).add('Vera', 'viewer')}"
    report = record(server.folders[0], state="done", files={"html": 15}, real_ids=False)
    assert viewer.get(f"/reports/{report}.html").text == "<p>a report</p>"
    record(server.folders[0], state="done", files={"html": 15}, real_ids=True)
    assert viewer.get("/reports").json()["reports"] == []
    assert viewer.get(f"/reports/{report}.html").status_code == 404
    assert viewer.post("/reports", {"forms": ["html"]}).status_code == 403
    assert viewer.get("/reports/..%2Fstudy.html").status_code == 404
    texts = " ".join(row["text"] for row in viewer.table("activity")["rows"])
    assert "bob" not in texts
    assert server.study.privacy.pseudonym("bob") in texts
    viewer.http.close()
