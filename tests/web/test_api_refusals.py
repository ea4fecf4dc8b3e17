"""What is refused: a clear message to the person, one log line for the researcher, nothing stored, nothing lost."""

from __future__ import annotations

import itertools
import json
import logging
import socket
from typing import Any

import httpx
import pytest

from steelyard import Study
from tests.web.conftest import start_in_thread

pytestmark = pytest.mark.server

NUMBERS = itertools.count()
HEADERS = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server for the whole module; every test comes with people of its own."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "items.csv").write_text("id,text\n" + "".join(f"w{number},word {number}\n" for number in range(200)))
    (folder / "study.toml").write_text(
        'name = "study"\ntitle = "Words"\nquestion = "Q"\nitems = "items.csv"\n[protocol]\nname = "direct"\n'
    )
    server = start_in_thread([folder])
    yield server
    server.stop()


@pytest.fixture
def ann(server):
    """Somebody new, who has a task."""
    person = server.person(f"ann {next(NUMBERS)}")
    yield person
    person.http.close()


@pytest.fixture
def bob(server):
    """Somebody else."""
    person = server.person(f"bob {next(NUMBERS)}")
    yield person
    person.http.close()


@pytest.fixture
def stored(server):
    """How many judgments came in since the test began."""
    before = server.study.status().judgments
    return lambda: server.study.status().judgments - before


@pytest.fixture
def log(caplog):
    """The lines the researcher sees."""
    caplog.set_level(logging.INFO, "steelyard.web")
    return lambda: [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]


def check(response: httpx.Response, status: int, code: str, lines: list[str]) -> dict[str, str]:
    """It was refused so, in words, and in one line of the log."""
    assert response.status_code == status, response.text
    error: dict[str, str] = response.json()["error"]
    assert set(error) == {"code", "what", "remedy", "field"}
    assert error["code"] == code
    assert error["what"].endswith(".")
    assert error["remedy"].endswith(".")
    assert len(lines) == 1
    assert f"{status} {code}" in lines[0]
    return error


def answer_to(task: dict[str, Any], value: object = 50) -> dict[str, Any]:
    return {"judgment_id": task["judgment_id"], "answer": {task["items"][0]["id"]: value}}


def test_an_answer_that_does_not_fit_names_the_field(server, ann, stored, log):
    task = ann.task()
    error = check(ann.post("/judgments", answer_to(task, 500)), 422, "answer_invalid", log())
    assert error["field"] == task["items"][0]["id"]
    assert "0 to 100" in error["remedy"]
    assert stored() == 0
    assert ann.task()["judgment_id"] == task["judgment_id"]


def test_another_answer_from_a_stale_tab_does_not_replace_the_first(server, ann, log):
    task = ann.task()
    assert ann.post("/judgments", answer_to(task, 10)).status_code == 200
    check(ann.post("/judgments", answer_to(task, 90)), 409, "task_refused", log())
    assert server.study.judgments()["answer"].to_list() == [
        json.dumps(answer_to(task, 10)["answer"], separators=(",", ":"))
    ]


def test_an_answer_after_the_lease_is_kept(make_study, serve_study):
    server = serve_study(make_study(items=["a"], design='name = "per_item"\njudgments = 1'))
    ann, bob = server.person("ann"), server.person("bob")
    task = ann.task()
    server.study.release(task["judgment_id"])
    assert bob.task()["items"][0]["id"] == "a"
    assert ann.post("/judgments", answer_to(task)).status_code == 200
    assert server.study.judgments()["late"].to_list() == [True]


def test_a_page_of_another_session_is_out_of_date(server, ann, bob, stored, log):
    task = ann.task()
    for stale in ("", "0" * 64, bob.csrf, "ü"):
        ann.csrf = stale
        response = ann.http.post("/judgments", json=answer_to(task), headers={"X-CSRF-Token": stale.encode()})
        assert (response.status_code, response.json()["error"]["code"]) == (403, "stale_page")
    assert len(log()) == 4
    assert stored() == 0


def test_a_foreign_task_is_refused(server, ann, bob, stored, log):
    task = ann.task()
    check(bob.post("/judgments", answer_to(task)), 403, "not_yours", log())
    for action in ("skip", "flag", "renew"):
        body = {} if action == "renew" else {"reason": "x"}
        assert bob.post(f"/tasks/{task['judgment_id']}/{action}", body).status_code == 403
    assert bob.put(f"/judgments/{task['judgment_id']}", {"answer": {}}).status_code == 403
    assert stored() == 0
    assert not [event for event in server.study.events(("skip", "flag")) if event.judgment_id == task["judgment_id"]]


@pytest.mark.parametrize("name", ["nothing", "x" * 150, "%00", "%F0%9F%90%88"])
def test_an_unknown_task_is_refused(server, ann, log, name):
    check(ann.post(f"/tasks/{name}/skip", {"reason": "x"}), 404, "no_such_task", log())


def test_a_revoked_session_is_refused_and_nothing_is_lost(server, ann, log):
    task = ann.task()
    name = ann.get("/me").json()["annotator"]
    server.study.access.revoke("session", annotator=name)
    error = check(ann.post("/judgments", answer_to(task)), 401, "no_session", log())
    assert "Nothing is lost" in error["remedy"]
    invite = server.study.access.grant("invite", annotator=name)
    ann.join_by(invite)
    assert ann.post("/judgments", answer_to(task)).status_code == 200


@pytest.mark.parametrize("token", ["", "wrong", "x" * 10_000, "\ud800", "🐈", "' OR 1=1 --"])
def test_a_made_up_session_is_nobody(server, token):
    cookie = f"steelyard_session={token}".encode("utf-8", "surrogatepass")
    response = httpx.get(f"{server.api}/me", headers={"Cookie": cookie})
    assert (response.status_code, response.json()["annotator"]) == (200, None)


def test_a_replayed_invite_that_was_revoked_lets_nobody_in(server, log):
    link = server.invite("ann")
    token = link.rpartition("=")[2]
    server.study.access.revoke("invite", annotator="ann")
    check(httpx.post(f"{server.api}/session", json={"invite": token}), 403, "invite_unknown", log())
    page = httpx.get(link, headers={"Accept": "text/html"})
    assert page.status_code == 403
    assert "not valid, or has been revoked" in page.text
    assert token not in "".join(log())


def test_ten_megabytes_are_refused_unread(server, ann, stored, log):
    task = ann.task()
    body = json.dumps({**answer_to(task), "padding": "x" * 10_000_000}).encode()
    response = httpx.post(f"{server.api}/judgments", content=body, headers=HEADERS)
    error = check(response, 413, "too_large", log())
    assert "1 MB" in error["what"]
    assert stored() == 0


def test_the_refusal_of_a_large_body_does_not_wait_for_it(server):
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        path = server.api.removeprefix(server.url)
        head = f"POST {path}/judgments HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        raw.sendall(f"{head}Content-Length: 10000000\r\n\r\n{{".encode())
        # One byte of ten million was sent, and yet the answer is here.
        assert raw.recv(1000).startswith(b"HTTP/1.1 413")


def test_a_body_that_hides_its_size_is_cut_off(server, log):
    def endless():
        for _ in range(1000):
            yield b"x" * 10_000

    response = httpx.post(f"{server.api}/judgments", content=endless(), headers=HEADERS)
    check(response, 413, "too_large", log())


@pytest.mark.parametrize("length", ["-1", "x", "1e9", "99999999999999999999"])
def test_a_nonsensical_length_is_refused(server, length):
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        raw.sendall(
            f"POST {server.api.removeprefix(server.url)}/session HTTP/1.1\r\nHost: {host}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{{}}".encode()
        )
        assert raw.recv(1000)[9:12] in {b"400", b"413"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"not json",
        b"[]",
        b'"text"',
        b"null",
        b"\xff\xfe",
        b'{"count": "three"}',
        b'{"count": 0}',
        b'{"count": 1000}',
        b'{"count": 1.5}',
        b'{"count": true}',
        b'{"count": 1, "more": 2}',
        b"[" * 100_000,
        b'{"count": ' + b"9" * 5000 + b"}",
    ],
)
def test_malformed_json_is_refused(server, ann, log, body):
    response = ann.http.post("/tasks", content=body, headers={**HEADERS, "X-CSRF-Token": ann.csrf})
    check(response, 400, "malformed", log())


@pytest.mark.parametrize("seconds", ["-1", "NaN", "Infinity", '"2"', "true"])
def test_an_impossible_time_is_refused(server, ann, stored, seconds):
    body = json.dumps(answer_to(ann.task()))[:-1] + f', "seconds": {seconds}}}'
    response = ann.http.post("/judgments", content=body, headers={**HEADERS, "X-CSRF-Token": ann.csrf})
    assert (response.status_code, response.json()["error"]["field"]) == (400, "seconds")
    assert stored() == 0


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        "x",
        5,
        {},
        {"\ud800": 1},
        {"ITEM": "\ud800"},
        {"ITEM": None},
        {"ITEM": [1]},
        {"ITEM": True},
        {"ITEM": float("nan")},
        {"ITEM": float("inf")},
        {"ITEM": 10**400},
        {"ITEM": {"a": {"b": {}}}},
        {"ITEM": "x" * 100_000},
    ],
)
def test_whatever_comes_as_an_answer_is_refused_in_words(ann, stored, log, answer):
    task = ann.task()
    body = json.dumps({"judgment_id": task["judgment_id"], "answer": answer}).replace("ITEM", task["items"][0]["id"])
    response = ann.http.post("/judgments", content=body, headers={**HEADERS, "X-CSRF-Token": ann.csrf})
    check(response, 422, "answer_invalid", log())
    assert len(log()[0]) < 1000
    assert stored() == 0


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None])
def test_only_json_is_taken(server, ann, log, kind):
    headers = {"X-CSRF-Token": ann.csrf} | ({"Content-Type": kind} if kind else {})
    check(ann.http.post("/tasks", content=b'{"count": 1}', headers=headers), 415, "not_json", log())


@pytest.mark.parametrize("name", ["", "   ", "x" * 201, "a\nb", "\ud800", "a\u202eb"])
def test_an_impossible_name_is_refused(server, log, name):
    body = json.dumps({"name": name}).encode()
    response = httpx.post(f"{server.api}/session", content=body, headers=HEADERS)
    assert response.json()["error"]["field"] == "name"
    assert response.status_code in {400, 422}
    assert len(log()) == 1


def test_a_name_or_an_invite_but_not_both(server):
    for body in ({}, {"name": "ann", "invite": "x"}):
        assert httpx.post(f"{server.api}/session", json=body).status_code == 400


def test_an_unknown_study_or_address_is_refused(server, log):
    response = httpx.get(f"{server.url}/api/v1/studies/other/me")
    check(response, 404, "no_such_study", log())
    assert httpx.get(f"{server.url}/api/v1/nothing").json()["error"]["code"] == "not_found"
    assert httpx.delete(f"{server.api}/me", headers=HEADERS).json()["error"]["code"] == "method_not_allowed"
    page = httpx.get(f"{server.url}/nowhere", headers={"Accept": "text/html"})
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")


def test_a_busy_database_is_said_and_the_answer_can_be_sent_again(make_study, serve_study, monkeypatch, log):
    server = serve_study(make_study())
    ann = server.person("ann")
    task = ann.task()
    from steelyard.errors import StoreError

    def busy(*_args, **_options):
        raise StoreError("the database could not be written: database is locked.", "Send it again.")

    with monkeypatch.context() as patch:
        patch.setattr(Study, "tell", busy)
        response = ann.post("/judgments", answer_to(task))
        error = check(response, 503, "try_again", log())
    assert response.headers["retry-after"] == "2"
    assert "Nothing is lost" in error["remedy"]
    assert "database is locked" in log()[0]
    assert ann.post("/judgments", answer_to(task)).status_code == 200


def test_what_is_sent_cannot_forge_lines_of_the_log(server, ann, log):
    httpx.get(f"{server.url}/api/v1/x%0a2026-01-01 refused nothing%1b[31m")
    ann.post("/judgments", {"judgment_id": "x\n2026-01-01 refused\x1b[31m", "answer": 1})
    assert len(log()) == 2
    assert not any(sign in line for line in log() for sign in "\n\r\x1b")


def test_a_crash_is_said_without_its_details(make_study, serve_study, monkeypatch, log):
    ann = serve_study(make_study()).person("ann")
    monkeypatch.setattr(Study, "offer_many", lambda *_: 1 / 0)
    error = check(ann.post("/tasks"), 500, "server_error", log())
    assert "division" not in json.dumps(error)
    assert "ZeroDivisionError" in log()[0]
