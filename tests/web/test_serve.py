"""steelyard serve and steelyard invite, as typed."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys

import httpx
import pytest
import typer

from steelyard import Study
from steelyard.cli.app import app
from steelyard.cli.serve import start_calculator
from steelyard.web.calculator_process import CalculatorProcess, Source
from tests.cli.running import run
from tests.web.conftest import TOKEN
from tests.web.processes import wait_until_up

pytestmark = pytest.mark.server


def test_it_prints_the_links_and_they_work(make_study, tmp_path):
    folder = make_study()
    environment = {key: value for key, value in os.environ.items() if key != "STEELYARD_TOKEN"}
    process = subprocess.Popen(
        [sys.executable, "-m", "steelyard", "serve", str(folder), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(4)]
    dashboard, token = re.search(r"dashboard +(http://\S+/manage/study/)\?token=(\S+)", lines[1]).groups()
    page = re.search(r"annotate +(http://127.0.0.1:\d+/s/study/)\n", lines[2])[1]
    assert httpx.get(page).status_code == 200
    assert httpx.get(dashboard, params={"token": token}, follow_redirects=True).status_code == 200
    assert len(token) >= 32
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in err
    assert token not in (folder / "study.db").read_bytes().decode("latin-1")


def test_answers_survive_a_killed_server(make_study, serve_study):
    folder = make_study(extra="[annotators]\nopen = false")
    (folder / "media").mkdir()
    (folder / "media" / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 20)
    server = serve_study(folder, process=True)
    ann = server.person()
    ann.join_by(server.invite("ann").rpartition("=")[2])
    task, following = ann.tasks(2)["tasks"]
    assert ann.tell(task, {task["items"][0]["id"]: 60}).json()["saved"] is True
    server.kill()
    with pytest.raises(httpx.TransportError):
        ann.tell(following, {following["items"][0]["id"]: 70})
    server.restart()
    # The cookie, the CSRF token and the task are as good as before; so is the token that was chosen.
    for token, status in ((TOKEN, 200), ("other", 401)):
        assert (
            httpx.get(f"{server.page}media/a.png", headers={"Authorization": f"Bearer {token}"}).status_code == status
        )
    assert ann.tell(following, {following["items"][0]["id"]: 70}).json()["progress"]["answered"] == 2
    with Study.open(server.folders[0]) as study:
        assert study.judgments().height == 2


@pytest.mark.full
def test_several_workers_serve_one_study(make_study, serve_study):
    server = serve_study(make_study(items=40), process=True, workers=2)
    people = [server.person(f"ann {number}") for number in range(6)]
    for _ in range(4):
        for person in people:
            # A new connection each time, so that either worker may get it.
            with httpx.Client(base_url=server.api, cookies=person.http.cookies, timeout=30) as http:
                headers = {"X-CSRF-Token": person.csrf}
                task = http.post("/tasks", json={"count": 1}, headers=headers).json()["tasks"][0]
                body = {"judgment_id": task["judgment_id"], "answer": {task["items"][0]["id"]: 5}}
                assert http.post("/judgments", json=body, headers=headers).status_code == 200
    with Study.open(server.folders[0]) as study:
        assert study.judgments().height == 24


def test_a_taken_port_is_said_plainly(make_study, tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = run("serve", str(make_study()), "--port", str(port), cwd=tmp_path, code=1)
    assert done.stdout == ""
    assert done.stderr.startswith(f"✗ port {port} is in use by another program.")
    assert f"--port {port + 1}" in done.stderr


def test_a_wrong_study_is_said_before_anything_listens(make_study, tmp_path):
    assert "there is no folder" in run("serve", "gone", cwd=tmp_path, code=1).stderr
    folder = make_study()
    (folder / "study.toml").write_text("title = 'x'\n")
    assert "'question' is missing" in run("serve", str(folder), cwd=tmp_path, code=1).stderr


def test_invitations_are_links_that_work_and_can_be_replaced(make_study, serve_study, tmp_path):
    folder = make_study(extra="[annotators]\nopen = false")
    server = serve_study(folder)
    first = run("invite", "study", "ann", "bob", "--url", server.url + "/", cwd=tmp_path).stdout.splitlines()
    assert [line.split()[0] for line in first] == ["ann", "bob"]
    with httpx.Client() as ann:
        assert ann.get(first[0].split()[1]).status_code == 303
        assert ann.get(f"{server.api}/me").json()["annotator"] == "ann"
        again = run("invite", "study", "ann", "--url", server.url, "--replace", "-f", "json", cwd=tmp_path)
        (row,) = json.loads(again.stdout)
        assert ann.get(f"{server.api}/me").json()["annotator"] is None
        assert ann.get(first[0].split()[1]).status_code == 403
        assert ann.get(row["link"]).status_code == 303
    assert httpx.get(first[1].split()[1]).status_code == 303


def test_without_folders_it_serves_a_workspace_to_which_every_worker_adds_new_studies(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "steelyard", "serve", "--port", "0", "--workers", "2"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "STEELYARD_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        text = "".join(process.stdout.readline() for _ in range(3))
        assert "Create your first study" in text
        url = re.search(r"(http://127.0.0.1:\d+)/manage/\?token=", text)[1]
        wait_until_up(url, lambda: process.poll() is None)
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as manager:
            draft = f"/api/v1/manage/drafts/{manager.post('/api/v1/manage/drafts', json={}).json()['id']}"
            manager.put(f"{draft}/items?name=w.csv", content=b"text\na\nb\n", headers={"Content-Type": "text/csv"})
            values = {"title": "Mood", "question": "How?", "protocol": {"name": "direct"}}
            assert manager.put(draft, json={"values": values}).json()["problems"] == []
            assert manager.post(f"{draft}/finish", json={}).status_code == 201
        # A connection each, so that both processes are asked.
        assert {httpx.get(f"{url}/s/mood/", timeout=60).status_code for _ in range(12)} == {200}
        assert (tmp_path / "steelyard-studies" / "mood" / "study.toml").is_file()
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=30)


@pytest.mark.parametrize(("setting", "count"), [(None, 1), ("1", 1), ("0", 0)])
def test_dashboards_are_computed_at_the_start_unless_the_environment_says_no(
    make_study, monkeypatch, setting: str | None, count: int
):
    """The variable is for small machines, and for tests that start many servers."""
    if setting is None:
        monkeypatch.delenv("STEELYARD_PREPARE_DASHBOARDS", raising=False)
    else:
        monkeypatch.setenv("STEELYARD_PREPARE_DASHBOARDS", setting)
    starts: list[tuple[Source, ...]] = []
    monkeypatch.setattr(CalculatorProcess, "start", lambda *sources: starts.append(sources))
    folder = make_study()
    context = typer.Context(typer.main.get_command(app))
    start_calculator(context, [folder], None)
    context.close()
    assert [[source.folder for source in sources] for sources in starts] == [[str(folder.resolve())]] * count
