"""Coming in by a panel's link, and webhooks: what the server does with them."""

from __future__ import annotations

import html
import json
import re
import time
from typing import Any

import httpx
import pytest

from steelyard.errors import ConfigError
from steelyard.recruitment.submissions import WEBHOOK_SECRET, webhook_signature
from steelyard.study.events import Arrived
from steelyard.web import Studies

PANEL = (
    '[annotators]\nmax_tasks = 2\n[link]\ncompleted = "https://panel.example/done?rid={participant}"\nfailed = "FAILED"'
)


def come(server, http: httpx.Client, **values: str) -> httpx.Response:
    return http.get(server.page, params=values, headers={"Accept": "text/html"})


@pytest.fixture
def server(make_study, serve_study):
    return serve_study(make_study(items=6, extra=PANEL))


def me(server, http: httpx.Client) -> dict[str, Any]:
    session: dict[str, Any] = http.get(f"{server.api}/me").json()
    return session


def answer_all(server, http: httpx.Client) -> dict[str, Any]:
    head = {"X-CSRF-Token": me(server, http)["csrf"]}
    while True:
        offer = http.post(f"{server.api}/tasks", json={"count": 1}, headers=head).json()
        no_task: dict[str, Any] | None = offer["no_task"]
        if no_task is not None:
            return no_task
        task = offer["tasks"][0]
        answer = {"judgment_id": task["judgment_id"], "answer": {task["items"][0]["id"]: 5}}
        assert http.post(f"{server.api}/judgments", json=answer, headers=head).status_code == 200


def test_one_participant_is_one_annotator_on_every_device_and_after_a_reload(server):
    visit = {"PROLIFIC_PID": "ann", "STUDY_ID": "s", "SESSION_ID": "v"}
    with httpx.Client() as laptop, httpx.Client() as phone:
        first = come(server, laptop, **visit)
        # Who they are does not stay in the address.
        assert (first.status_code, first.headers["location"]) == (303, f"/s/{server.slug}/")
        come(server, laptop, **visit)
        come(server, phone, **visit)
        assert me(server, laptop)["annotator"] == me(server, phone)["annotator"] == "ann"
        assert answer_all(server, laptop)["reason_code"] == "quota"
        # The quota is the person's, not the device's.
        assert answer_all(server, phone)["reason_code"] == "quota"
    assert [event.data for event in server.study.events(["arrived"])] == [Arrived(study="s", session="v")]
    assert server.study.annotators.progress("ann").answered == 2


def test_somebody_else_on_the_same_browser_is_asked_first(server):
    with httpx.Client() as shared:
        come(server, shared, PROLIFIC_PID="ann")
        question = come(server, shared, PROLIFIC_PID="bob")
        assert (question.status_code, me(server, shared)["annotator"]) == (200, "ann")
        fields = dict(re.findall(r'name="(csrf|arrival)" value="([^"]*)"', question.text))
        shared.post(f"{server.page}switch", data={name: html.unescape(value) for name, value in fields.items()})
        assert me(server, shared)["annotator"] == "bob"


def test_the_way_back_comes_with_the_end_and_not_before(server):
    with httpx.Client() as http:
        come(server, http, PROLIFIC_PID="ann")
        assert "panel.example" not in http.get(f"{server.api}/me").text
        ending = answer_all(server, http)["ending"]
        assert ending == {"kind": "completed", "code": None, "url": "https://panel.example/done?rid=ann"}
    eve = server.person("eve")
    task = eve.task()
    eve.tell(task, {task["items"][0]["id"]: 5})
    server.study.annotators.exclude("eve", "careless")
    assert eve.tasks()["no_task"]["ending"] is None


def test_who_is_excluded_gets_the_code_for_it(server):
    with httpx.Client() as http:
        come(server, http, PROLIFIC_PID="ann")
        head = {"X-CSRF-Token": me(server, http)["csrf"]}
        http.post(f"{server.api}/tasks", json={"count": 1}, headers=head)
        server.study.annotators.exclude("ann", "careless")
        ending = http.post(f"{server.api}/tasks", json={"count": 1}, headers=head).json()["no_task"]["ending"]
        assert ending == {"kind": "failed", "code": "FAILED", "url": None}


def test_a_link_that_is_wrong_is_refused_on_a_page_that_says_so(server):
    with httpx.Client() as http:
        refused = come(server, http, PROLIFIC_PID="{{%PROLIFIC_PID%}}")
        assert refused.status_code == 403
        assert "Open the study from the panel" in refused.text
        assert me(server, http)["annotator"] is None
        arabic = http.get(server.page, params={"PROLIFIC_PID": "a b", "lang": "ar"}, headers={"Accept": "text/html"})
        assert "رابط" in arabic.text


def test_the_name_of_a_participant_cannot_be_taken(server):
    with httpx.Client() as http:
        come(server, http, PROLIFIC_PID="ann")
    stranger = server.person("ann")
    task = stranger.task()
    stranger.tell(task, {task["items"][0]["id"]: 5})
    assert server.study.annotators.progress("ann").answered == 0


def test_guessing_signatures_is_slowed_down(make_study, serve_study, monkeypatch):
    monkeypatch.setenv("STEELYARD_LINK_SECRET", "0123456789abcdef0123")
    server = serve_study(make_study(extra="[link]\nsigned = true"))
    with httpx.Client() as http:
        tries = [come(server, http, PROLIFIC_PID="ann", signature=f"{n:x}", expires="9" * 10) for n in range(25)]
    assert {response.status_code for response in tries} == {403, 429}


def test_a_study_with_signed_links_is_not_served_without_the_secret(make_study, monkeypatch):
    monkeypatch.delenv("STEELYARD_LINK_SECRET", raising=False)
    with pytest.raises(ConfigError, match="STEELYARD_LINK_SECRET"):
        Studies([make_study(extra="[link]\nsigned = true")])


# Webhooks

KEY = "the workspace's own"


def hook(
    server: Any,
    body: dict[str, Any],
    *,
    event: str,
    at: int | None = None,
    secret: str = KEY,
    sent: int | None = None,
    **more: str,
) -> httpx.Response:
    raw = json.dumps(body).encode()
    stamp = str(int(time.time()) if sent is None else sent)
    headers = {
        "Content-Type": "application/json",
        "X-Prolific-Request-Timestamp": stamp,
        "X-Prolific-Request-Signature": webhook_signature(secret, stamp, raw),
        "X-Event-ID": event,
        "X-Timestamp": stamp if at is None else str(at),
        **more,
    }
    return httpx.post(f"{server.api}/hooks/prolific", content=raw, headers=headers)


def change(status: str, submission: str = "sub-ann", participant: str = "ann") -> dict[str, Any]:
    return {
        "event_type": "submission.status.change",
        "resource_id": submission,
        "participant_id": participant,
        "status": status,
    }


@pytest.fixture
def hooked(make_study, serve_study, monkeypatch):
    monkeypatch.setenv(WEBHOOK_SECRET, KEY)
    server = serve_study(make_study(items=1, design="judgments = 1", extra="[link]"))
    with httpx.Client() as http:
        come(server, http, PROLIFIC_PID="ann", SESSION_ID="sub-ann")
        head = {"X-CSRF-Token": me(server, http)["csrf"]}
        tasks = http.post(f"{server.api}/tasks", json={"count": 1}, headers=head).json()["tasks"]
        assert len(tasks) == 1
    return server


def test_a_submission_given_back_frees_its_task_at_once(hooked):
    bob = hooked.person("bob")
    assert bob.tasks()["tasks"] == []
    assert hook(hooked, change("RETURNED"), event="e1").json() == {"result": "recorded", "released_tasks": 1}
    # The only task there is goes to somebody else in the same moment.
    assert len(bob.tasks()["tasks"]) == 1


@pytest.mark.parametrize("status", ["TIMED-OUT", "REJECTED", "RETURNED"])
def test_every_way_of_leaving_frees_the_task(hooked, status):
    assert hook(hooked, change(status), event="e1").json()["released_tasks"] == 1
    assert "ann" in hooked.study.recruitment.departed


def test_the_same_webhook_twice_is_heard_once(hooked):
    first, again = (hook(hooked, change("RETURNED"), event="e1") for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json()["result"] == "unchanged"
    assert len(list(hooked.study.events(["platform"]))) == 1
    assert len(list(hooked.study.events(["departed"]))) == 1


def test_a_webhook_that_was_overtaken_changes_nothing(hooked):
    now = int(time.time())
    hook(hooked, change("AWAITING REVIEW"), event="e2", at=now)
    assert hook(hooked, change("RETURNED"), event="e1", at=now - 5).json()["result"] == "unchanged"
    assert hooked.study.recruitment.departed == {}


def test_who_timed_out_and_finished_all_the_same_is_back(hooked):
    now = int(time.time())
    hook(hooked, change("TIMED-OUT"), event="e1", at=now - 5)
    assert "ann" in hooked.study.recruitment.departed
    hook(hooked, change("AWAITING REVIEW"), event="e2", at=now)
    assert hooked.study.recruitment.departed == {}


def test_a_webhook_that_is_not_genuine_is_refused(hooked):
    body = change("RETURNED")
    wrong = [
        hook(hooked, body, event="e1", secret="another"),
        hook(hooked, body, event="e1", **{"X-Prolific-Request-Signature": ""}),
        hook(hooked, body, event="e1", sent=int(time.time()) - 3600),
        hook(hooked, body, event="e1", **{"X-Prolific-Request-Timestamp": "1"}),
    ]
    assert [response.status_code for response in wrong] == [401] * 4
    assert hooked.study.recruitment.departed == {}


def test_a_webhook_about_something_else_is_acknowledged_and_left_alone(hooked):
    other = {**change("RETURNED"), "study_id": "another"}
    assert hook(hooked, other, event="e1").json()["result"] == "unrelated"
    assert hook(hooked, {"event_type": "study.status.change"}, event="e2").json()["result"] == "unrelated"
    assert hooked.study.recruitment.departed == {}


def test_without_a_secret_no_webhook_is_taken(make_study, serve_study, monkeypatch):
    monkeypatch.delenv(WEBHOOK_SECRET, raising=False)
    server = serve_study(make_study(extra="[link]"))
    assert hook(server, change("RETURNED"), event="e1").status_code == 404
