"""The live demo: simulated annotators answer, a person may join, and it ends when it should."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import httpx
import pytest

pytestmark = pytest.mark.server

TOKEN = "demo-of-the-tests"


@pytest.fixture
def start(tmp_path):
    running: list[subprocess.Popen[str]] = []

    def begin(*options: str) -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-m", "steelyard", "demo", "--port", "0", "--speed", "200", *options]
        environment = {**os.environ, "STEELYARD_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
        )
        running.append(process)
        assert process.stdout is not None
        link = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+token=\S+", line)))
        give_up = time.monotonic() + 60
        while time.monotonic() < give_up:
            try:
                httpx.get(link)
                break
            except httpx.TransportError:
                time.sleep(0.05)
        return process, link

    yield begin
    for process in running:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def test_the_crowd_answers_a_person_joins_the_next_study_follows_and_ctrl_c_ends_it(start, tmp_path):
    process, link = start("--keep", "verbs")
    base = link.partition("/manage/")[0]
    with httpx.Client(follow_redirects=True, timeout=60) as browser:
        page = browser.get(link)
        assert page.status_code == 200
        assert "Verb frequency" in page.text
        assert TOKEN not in str(page.url)
        api = f"{base}/api/v1/studies/verbs"
        person = browser.post(f"{api}/session", json={"name": "me"}).json()
        headers = {"X-CSRF-Token": person["csrf"]}
        task = browser.post(f"{api}/tasks", json={"count": 1}, headers=headers).json()["tasks"][0]
        answer = {item["id"]: 50 for item in task["items"]}
        saved = browser.post(
            f"{api}/judgments", json={"judgment_id": task["judgment_id"], "answer": answer}, headers=headers
        )
        assert saved.json()["saved"]
        progress = browser.get(f"{api}/manage/summary").json()
        assert progress["judgments"] >= 90
        assert progress["annotators"] >= 5
        # When a study is complete, the next one is created.
        give_up = time.monotonic() + 120
        while "Verb frequency 2" not in browser.get(f"{base}/manage/").text:
            assert time.monotonic() < give_up
            time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    process.wait(30)
    errors = process.stderr.read()
    assert process.returncode == 0, errors
    assert re.search(r"Stopped after \d+ judgments", errors)
    assert "Traceback" not in errors
    assert (tmp_path / "verbs" / "study.db").exists()


def test_it_ends_by_itself_after_so_many_seconds_and_leaves_nothing_behind(start, tmp_path):
    process, _ = start("--seconds", "1")
    process.wait(60)
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []
