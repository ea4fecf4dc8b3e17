"""The team of a study: a viewer sees it without names and changes nothing, a manager is named in the log."""

from __future__ import annotations

import re
from contextlib import contextmanager

import httpx
import pytest

from steelyard import Study
from steelyard.errors import ConfigError
from steelyard.study.team import Team
from tests.web.conftest import TOKEN
from tests.web.manage.conftest import wait_for

OWNER = {"Authorization": f"Bearer {TOKEN}"}
NAMES = ["ann-the-annotator", "bob-the-annotator"]


@pytest.fixture
def folder(make_study):
    folder = make_study(design="judgments = 3", items=4)
    with Study.open(folder) as study:
        for name in NAMES:
            for value in (10.0, 40.0, 60.0, 90.0):
                task = study.ask(name)
                study.tell(task, {task.items[0].id: value})
        study.flag(study.ask("cleo-the-annotator"), "this one is odd")
    return folder


@pytest.fixture
def server(folder, serve_study):
    return serve_study(folder)


@contextmanager
def member(server, name, role):
    """Somebody who opened their link: a client with the session's cookie and CSRF token, and the link's token."""
    answer = httpx.post(f"{server.api}/manage/team", json={"name": name, "role": role}, headers=OWNER)
    assert answer.status_code == 201, answer.text
    with httpx.Client(base_url=server.url, follow_redirects=True, timeout=30) as client:
        page = client.get(answer.json()["link"])
        assert page.status_code == 200
        assert "token" not in str(page.url)
        csrf = re.search(r'data-csrf="(\w+)"', page.text)
        assert csrf is not None
        client.headers["X-CSRF-Token"] = csrf[1]
        yield client, answer.json()["link"].partition("token=")[2]


def managed_routes(server, methods):
    paths = httpx.get(f"{server.url}/api/v1/openapi.json").json()["paths"]
    return [
        (method, path.replace("{study}", server.slug))
        for path, operations in paths.items()
        for method in operations
        if "/manage" in path and method in methods
    ]


def test_a_viewer_sees_results_without_names_and_can_change_nothing(server):
    api = f"/api/v1/studies/{server.slug}/manage"
    with member(server, "Vera", "viewer") as (viewer, _):
        wait_for(lambda: viewer.get(f"{api}/tables/annotators").json()["rows"])
        answers = [viewer.get(path) for path in readable(server)]
        assert sum(answer.status_code == 200 for answer in answers) >= 12
        for answer in answers:
            assert not [name for name in NAMES if name in answer.text], answer.url
        # The owner does see the names in the same places, or this would prove nothing.
        owner = [httpx.get(server.url + path, headers=OWNER) for path in readable(server)]
        assert sum(NAMES[0] in answer.text for answer in owner) >= 3
        for what in ("download/judgments.csv", "download/log.jsonl", "charts/annotators.svg"):
            assert viewer.get(f"{api}/{what}", params={"real_ids": True}).status_code == 403
        routes = managed_routes(server, {"post", "put", "delete", "patch"})
        assert len(routes) >= 8
        before = server.study.last_seq()
        for method, path in routes:
            answer = viewer.request(method, path, json={})
            assert answer.status_code in {401, 403}, (method, path, answer.text)
        assert server.study.last_seq() == before
        assert viewer.get(f"/manage/{server.slug}/team").status_code == 401
        assert "New study" not in viewer.get("/manage/").text


def readable(server):
    """Every address of the manager's API that can be read, with values for its parameters."""
    values = {
        "{name}.{form}": ["annotators.svg", "annotators.csv", "annotators.json", "scores.svg"],
        "{name}": ["annotators", "notes", "leased_tasks", "scores", "checks"],
        "{what}.{form}": ["judgments.csv", "answers.csv", "annotators.csv", "scores.csv"],
    }
    paths = []
    for _, path in managed_routes(server, {"get"}):
        if path.endswith("/live"):
            continue  # a stream that does not end
        parameter = next((key for key in values if key in path), None)
        paths += [path] if parameter is None else [path.replace(parameter, value) for value in values[parameter]]
    return [path + ("?id=w0" if path.endswith("/item") else "") for path in paths if "{" not in path]


def test_what_a_manager_does_is_in_the_log_under_their_name(server):
    api = f"/api/v1/studies/{server.slug}/manage"
    with member(server, "Mara", "manager") as (manager, token):
        assert manager.post(f"{api}/exclude", json={"annotator": NAMES[0], "reason": "spam"}).status_code == 200
        assert manager.post(f"{api}/readmit", json={"annotator": NAMES[0], "reason": ""}).status_code == 200
        assert manager.post(f"{api}/state", json={"state": "paused", "reason": "lunch"}).status_code == 200
        assert manager.post(f"{api}/team", json={"name": "Vera", "role": "viewer"}).status_code == 201
        assert manager.post(f"{api}/forget", json={"annotator": NAMES[1], "confirm": True}).status_code == 200
        config = manager.get(f"{api}/config").json()
        changed = config["text"].replace('title = "', 'title = "Renamed: ')
        assert changed != config["text"]
        assert manager.put(f"{api}/config", json={"text": changed}).status_code == 200
        assert manager.post("/api/v1/manage/studies", json={}).status_code == 401
        # With a bearer token, as a script would.
        assert httpx.get(f"{server.api}/manage/summary", headers={"Authorization": f"Bearer {token}"}).is_success
    kinds = ["exclusion", "readmission", "state", "member_added", "forgotten", "config"]
    with Study.open(server.folders[0]) as study:
        done = [(event.kind, event.data.member) for event in study.events(kinds)]
    assert {kind for kind, name in done if name == "Mara"} == set(kinds)
    assert ("member_added", "") in done
    assert done.count(("config", "Mara")) == 1


def test_a_removed_member_is_out_at_once_and_a_link_of_one_study_opens_no_other(make_study, folder, serve_study):
    other = make_study(name="other")
    server = serve_study(folder, other)
    summary = f"/api/v1/studies/{server.slug}/manage/summary"
    with member(server, "Vera", "viewer") as (viewer, token):
        bearer = {"Authorization": f"Bearer {token}"}
        assert viewer.get(summary).is_success
        assert viewer.get("/manage/other/").status_code == 401
        assert viewer.get("/api/v1/studies/other/manage/summary").status_code == 401
        assert httpx.get(f"{server.url}/api/v1/studies/other/manage/summary", headers=bearer).status_code == 401
        assert httpx.post(f"{server.api}/manage/team/remove", json={"name": "Vera"}, headers=OWNER).is_success
        assert viewer.get(summary).status_code == 401
        assert httpx.get(f"{server.api}/manage/summary", headers=bearer).status_code == 401
        assert httpx.get(f"{server.url}/manage/{server.slug}/?token={token}").status_code == 403


def test_signing_out_ends_a_members_session_on_the_server(server):
    with member(server, "Vera", "viewer") as (viewer, _):
        cookies = dict(viewer.cookies)
        csrf = viewer.headers["X-CSRF-Token"]
        assert viewer.post("/manage/sign-out", data={"csrf": "wrong"}).status_code == 403
        viewer.post("/manage/sign-out", data={"csrf": csrf})
    with httpx.Client(base_url=server.url, cookies=cookies) as again:
        assert again.get(f"/api/v1/studies/{server.slug}/manage/summary").status_code == 401


def test_a_change_without_the_csrf_token_is_refused(server):
    with member(server, "Mara", "manager") as (manager, _):
        del manager.headers["X-CSRF-Token"]
        answer = manager.post(f"/api/v1/studies/{server.slug}/manage/state", json={"state": "closed"})
        assert answer.status_code == 403
        assert server.study.state == "open"


def test_names_are_checked_and_tokens_are_not_stored(folder):
    with Study.open(folder) as study:
        team = Team(study)
        token = team.add("  Ann   Lee ", "viewer")
        assert [member.name for member in team.members()] == ["Ann Lee"]
        for name in ("", " ", "ann lee", "x" * 81, "a\x00b"):
            with pytest.raises(ConfigError):
                team.add(name, "manager")
        with pytest.raises(ConfigError, match="not in the team"):
            team.remove("Bob")
        assert team.by_token(token) is not None
        assert team.by_token(token + "x") is None
    stored = b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())
    assert token.encode() not in stored
