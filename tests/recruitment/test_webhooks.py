"""Webhooks from the platform to the server, end to end: subscribed by the command, sent twice and out of order."""

from __future__ import annotations

import time

import httpx
import pytest

from steelyard.recruitment.submissions import WEBHOOK_SECRET
from steelyard.study import Study
from tests.recruitment.conftest import work
from tests.web.conftest import start_in_thread


@pytest.fixture
def served(prolific, platform, folder, monkeypatch):
    prolific("draft")
    prolific("publish", "--yes")
    server = start_in_thread([folder])
    output = prolific("hook", "--workspace", "w1", "--url", server.url).stdout
    name, _, secret = output.splitlines()[0].partition("=")
    assert name == WEBHOOK_SECRET
    monkeypatch.setenv(name, secret)
    yield server
    server.stop()


def test_the_subscription_is_made_once_and_confirmed(served, prolific, platform):
    prolific("hook", "--workspace", "w1", "--url", served.url)
    (hook,) = platform.hooks
    assert hook["is_enabled"]
    assert hook["target_url"] == f"{served.url}/api/v1/studies/words/hooks/prolific"
    assert hook["event_type"] == "submission.status.change"


def test_a_return_told_twice_and_late_frees_the_task_once(served, prolific, platform, folder):
    submission = work(folder, platform, "p1", answers=1)
    with Study.open(folder) as study:
        assert study.ask("p1") is not None
    platform.change(submission, "RETURNED")
    answers = platform.tell(submission, event="e2", times=3)
    assert [answer.status_code for answer in answers] == [200] * 3
    assert [answer.json()["result"] for answer in answers] == ["recorded", "unchanged", "unchanged"]
    assert served.study.status().stages[0].leased == 0
    # What happened before comes after: it changes nothing.
    platform.change(submission, "ACTIVE")
    assert platform.tell(submission, event="e1", at=time.time() - 60)[0].json()["result"] == "unchanged"
    platform.change(submission, "RETURNED")
    assert served.study.recruitment.departed == {"p1": "returned"}
    # Whatever was missed is found by asking.
    assert "0 changed" in prolific("sync").stdout


def test_who_comes_from_another_study_is_not_let_in(served, platform, folder):
    own = next(iter(platform.studies))
    with httpx.Client(headers={"Accept": "text/html"}) as http:
        visit = {"PROLIFIC_PID": "p1", "SESSION_ID": "s1"}
        assert http.get(served.page, params={**visit, "STUDY_ID": "another"}).status_code == 403
        assert http.get(served.page, params={**visit, "STUDY_ID": own}).status_code == 303
