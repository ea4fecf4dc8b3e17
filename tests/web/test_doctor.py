"""steelyard doctor: what is right, what is wrong, and the exit code."""

from __future__ import annotations

import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.cli.running import run
from tests.web.conftest import TOKEN


def doctor(folder, *arguments, code=0):
    """Run the command in a folder; return what it printed."""
    return run("doctor", *map(str, arguments), cwd=folder, code=code).stdout


@pytest.mark.server
def test_a_deployment_in_order_has_no_failures(make_study, serve_study, monkeypatch, tmp_path):
    server = serve_study(make_study())
    (tmp_path / "study.steelyard").touch()
    monkeypatch.setenv("STEELYARD_TOKEN", TOKEN)
    output = doctor(tmp_path, server.folders[0], "--url", server.url)
    for sentence in (
        "study: study.toml and 6 items are valid.",
        "study: the SQLite database is reachable, and its tables are current.",
        "a sync to disk takes",
        "study: the newest backup, study.steelyard, is 0 days old.",
        "The server can save answers.",
        "The clocks of the server and this machine agree.",
        "has no TLS",
        "The server sees this machine as 127.0.0.1.",
        "Live updates arrive at once.",
    ):
        assert sentence in output


@pytest.mark.server
def test_a_server_that_believes_forged_addresses_fails(make_study, serve_study, monkeypatch, tmp_path):
    server = serve_study(make_study(), proxies=["127.0.0.1"], public_url="https://judge.example")
    monkeypatch.setenv("STEELYARD_TOKEN", TOKEN)
    output = doctor(tmp_path, "--url", server.url, code=1)
    assert "trusts X-Forwarded-For headers from clients" in output
    assert f"Links begin with https://judge.example, not with {server.url}" in output
    monkeypatch.setenv("STEELYARD_TOKEN", "another-token-than-the-servers")
    assert "does not accept the token" in doctor(tmp_path, "--url", server.url, code=1)


def test_problems_of_a_study_are_named_and_old_backups_warned_about(make_study, tmp_path):
    folder = make_study()
    (folder / "study.db").write_bytes(b"no database" * 100)
    backup = tmp_path / "backups" / "study.steelyard"
    backup.parent.mkdir()
    backup.touch()
    os.utime(backup, (time.time() - 20 * 86400,) * 2)
    output = doctor(tmp_path, folder, "--backups", backup.parent, code=1)
    assert "file is not a database" in output
    assert "the newest backup, study.steelyard, is 20 days old." in output
    assert "The public address was not checked" in output
    (folder / "study.toml").write_text("title = 3\n")
    assert "study: study.toml" in doctor(tmp_path, folder, code=1)


@pytest.mark.server
def test_a_proxy_that_holds_events_back_is_noticed(monkeypatch, tmp_path):
    answers = {
        "/api/v1/health": {"status": "ok"},
        "/api/v1/ready": {"status": "ready"},
        "/api/v1/manage/connection": {
            "address": "192.0.2.1", "forwarded": True, "trusted": False, "https": False, "base": "",
        },
    }  # fmt: skip

    class Buffering(BaseHTTPRequestHandler):
        def do_GET(self):
            content = json.dumps(answers[self.path]) if self.path in answers else "data: 0\n\ndata: 1\n\ndata: 2\n\n"
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, *words):
            pass

    monkeypatch.setenv("STEELYARD_TOKEN", TOKEN)
    with ThreadingHTTPServer(("127.0.0.1", 0), Buffering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        output = doctor(tmp_path, "--url", f"http://127.0.0.1:{server.server_address[1]}", code=1)
        server.shutdown()
    assert "Live updates are buffered by the proxy" in output
    assert "a proxy that is not trusted" in output


def test_an_address_that_answers_nothing_fails(tmp_path):
    assert "cannot be reached" in doctor(tmp_path, "--url", "http://127.0.0.1:9", code=1)
