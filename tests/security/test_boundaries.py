"""One claim for each class of attack in docs/security.md that no other test makes."""

from __future__ import annotations

import json
import logging
import re
import socket
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
import polars as pl
import pytest

from steelyard import Study
from steelyard.errors import StoreError
from steelyard.storage.engine import without_password
from steelyard.web.security import Limits, Rate
from tests.web.conftest import TOKEN, Server

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
MANAGER = {"Authorization": f"Bearer {TOKEN}"}


class Page(HTMLParser):
    """The elements of a page that could run or load something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.inline: list[str] = []
        self.loaded: list[str] = []
        self._script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self._script = tag == "script" and "src" not in attributes
        self.inline += [name for name in attributes if name.startswith("on") or name == "style"]
        self.inline += ["style"] if tag == "style" else []
        self.loaded += [str(attributes[name]) for name in ("src", "href") if attributes.get(name) and tag != "a"]

    def handle_data(self, data: str) -> None:
        if self._script and data.strip():
            self.inline.append(data)
        self._script = False


@pytest.fixture
def server(make_study, serve_study) -> Server:
    folder = make_study(design="judgments = 3")
    (folder / "media").mkdir()
    (folder / "media" / "cat.png").write_bytes(PNG)
    (folder / "media" / "page.html").write_text("<script>alert(1)</script>")
    (folder / "media" / "liar.png").write_text("<script>alert(1)</script>")
    (folder / "media" / "out.png").symlink_to(folder / "items.csv")
    (folder / "secret.png").write_bytes(PNG)
    new_server: Server = serve_study(folder)
    return new_server


def test_no_page_runs_or_loads_anything_of_others(server):
    """Every page, those of errors and of nobody in particular too."""
    paths = ["/", "/s/study/", "/s/nothing/", "/nowhere", "/manage/", "/manage/?token=wrong", "/manage/nothing/"]
    managed = ["/manage/", "/manage/new", "/manage/study/", "/manage/study/item?id=w0", "/manage/study/edit"]
    requests = [(path, {}) for path in paths] + [(path, MANAGER) for path in managed]
    for path, headers in requests:
        response = httpx.get(server.url + path, headers={"Accept": "text/html", **headers})
        assert response.headers["content-type"].startswith("text/html"), path
        policy = response.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert response.headers["x-frame-options"] == "DENY"
        page = Page(response.text)
        assert page.inline == [], path
        assert all(urljoin(server.url, place).startswith(server.url) for place in page.loaded), path


@pytest.mark.parametrize(
    "name",
    [
        "../secret.png", "..%2fsecret.png", "%2e%2e/secret.png", "%2e%2e%2fsecret.png", "..%252fsecret.png",
        "..\\secret.png", "..%5csecret.png", "....//secret.png", "x/../../secret.png", "/etc/passwd", "%2fetc%2fpasswd",
        "//etc/passwd", "cat.png%00.html", "cat.png%00", "page.html", "PAGE.HTML", "liar.png", "out.png", ".", "..",
        "../study.toml", "../items.csv", "../study.db", "cat.png/../../study.db", "CAT.PNG", "file:///etc/passwd",
    ],
)  # fmt: skip
def test_media_come_from_their_folder_and_nowhere_else(server, name):
    raw = f"GET /s/study/media/{name} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    answer = _raw(server, raw)
    assert answer.split()[1] in {b"404", b"400"}, answer[:200]
    good = httpx.get(f"{server.page}media/cat.png")
    assert (good.status_code, good.headers["content-type"]) == (200, "image/png")
    assert "sandbox" in good.headers["content-security-policy"]


def _raw(server: Server, request: bytes) -> bytes:
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(request)
        received = b""
        while part := connection.recv(65536):
            received += part
    return received


def test_nothing_is_fetched_whatever_address_a_study_holds(make_study, monkeypatch, tmp_path):
    """No name is looked up and no connection made while contents are rendered, drawn, reported and published."""
    connections: list[Any] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: connections.append(a) or _refused())
    monkeypatch.setattr(socket.socket, "connect", lambda self, address: connections.append(address) or _refused())
    from steelyard.report.builder import build_report
    from steelyard.report.dataset import write_dataset
    from steelyard.report.html import html_page
    from steelyard.web.content import MediaFolder, render

    evil = "http://203.0.113.7/x.png"
    folder = make_study(items=["a", "b"], extra="[page]\ncontent = 'html'")
    (folder / "items.csv").write_text(
        f"id,text,media,context\na,<img src={evil}>,{evil},{evil}\nb,![x]({evil}),{evil},x\n"
    )
    with Study.open(folder) as study:
        for name in ("ann", "bob"):
            for task in study.ask(name, 2):
                study.tell(task, {task.items[0].id: 5.0})
        for item in study.items:
            assert "203.0.113.7" not in render(item.text, "html", "/m/").html.replace(f"![x]({evil})", "")
            assert MediaFolder(folder, "/m/").media(item.media) is None
        html_page(build_report(study))
        write_dataset(study, tmp_path / "hub")
    assert connections == []


def _refused() -> None:
    raise OSError("no network in this test")


def test_every_change_needs_the_pages_own_token(server):
    """CSRF: a session's cookie alone changes nothing, in no request that the description knows."""
    ann = server.person("ann")
    task = ann.task()
    description = httpx.get(f"{server.url}/api/v1/openapi.json").json()
    with httpx.Client(base_url=server.url, follow_redirects=True) as manager:
        manager.get(f"/manage/?token={TOKEN}")
        before = server.study.last_seq()
        tried = 0
        for path, operations in description["paths"].items():
            for method in set(operations) & {"post", "put", "delete", "patch"}:
                if path.endswith("/session"):
                    continue
                place = path.format(study="study", judgment_id=task["judgment_id"], draft="0" * 16, kind="checks")
                for client in (manager, ann.http):
                    response = client.request(method, server.url + place, json={})
                    assert response.status_code in {400, 401, 403, 404}, (path, response.text)
                    tried += 1
        assert tried > 20
        assert server.study.last_seq() == before


def test_a_session_is_never_one_that_somebody_else_chose(server):
    """Session fixation: a cookie that was planted is not made good by signing in."""
    planted = "x" * 32
    response = httpx.post(
        f"{server.api}/session", json={"name": "ann"}, headers={"Cookie": f"steelyard_session={planted}"}
    )
    assert planted not in response.headers["set-cookie"]
    assert httpx.get(f"{server.api}/me", headers={"Cookie": f"steelyard_session={planted}"}).json()["annotator"] is None
    managed = httpx.get(f"{server.url}/manage/?token={TOKEN}", headers={"Cookie": "steelyard_manage=planted"})
    assert "planted" not in managed.headers["set-cookie"]


@pytest.mark.parametrize(
    "place",
    [
        "https://evil.example/", "//evil.example/", "/\\evil.example", "\\\\evil.example", "/manage/\\evil.example",
        "javascript:alert(1)", "/manage//..//..//evil.example", "manage/", "/manageevil", " //evil.example",
        "/s/study/", "/manage/\r\nSet-Cookie: a=b", "",
    ],
)  # fmt: skip
def test_the_login_leads_to_pages_of_ours_only(server, place):
    response = httpx.post(f"{server.url}/manage/", data={"token": TOKEN, "next": place})
    assert response.status_code == 303
    assert urljoin(f"{server.url}/manage/", response.headers["location"]).startswith(f"{server.url}/manage/")
    assert "a=b" not in str(response.headers.get_list("set-cookie"))


def test_nobody_reaches_what_is_anothers_by_its_id(make_study, serve_study):
    """IDOR, between annotators and between studies."""
    first, second = make_study(name="first"), make_study(name="second")
    server = serve_study(first, second)
    ann, bob = server.person("zelda"), server.person("bob")
    task = ann.task()
    body = {"answer": {task["items"][0]["id"]: 5}, "seconds": 1}
    attempts = [
        bob.post("/judgments", {"judgment_id": task["judgment_id"], **body}),
        bob.put(f"/judgments/{task['judgment_id']}", {"answer": body["answer"]}),
        *(bob.post(f"/tasks/{task['judgment_id']}/{what}", {"reason": "x"}) for what in ("skip", "flag")),
        bob.post(f"/tasks/{task['judgment_id']}/renew"),
    ]
    for response in attempts:
        assert (response.status_code, response.json()["error"]["code"]) == (403, "not_yours")
        assert "zelda" not in response.text
    assert server.study.status().judgments == 0
    # Ann's session, link and task of the one study are nothing in the other.
    elsewhere = server.api.replace("/first", "/second")
    cookie = {"Cookie": f"steelyard_session={ann.http.cookies.get('steelyard_session', path='/api/v1/studies/first')}"}
    own = ann.get("/me").json()
    assert own["annotator"] == "zelda"
    assert httpx.get(f"{elsewhere}/me", headers=cookie).json()["annotator"] is None
    assert httpx.post(f"{elsewhere}/tasks", json={}, headers={**cookie, "X-CSRF-Token": own["csrf"]}).status_code == 401
    token = own["resume_url"].rpartition("=")[2]
    assert httpx.post(f"{elsewhere}/session", json={"invite": token}).status_code == 403
    joined = httpx.post(f"{elsewhere}/session", json={"name": "zelda"})
    other = {"Cookie": joined.headers["set-cookie"].partition(";")[0], "X-CSRF-Token": joined.json()["csrf"]}
    foreign = httpx.post(f"{elsewhere}/judgments", json={"judgment_id": task["judgment_id"], **body}, headers=other)
    assert (foreign.status_code, foreign.json()["error"]["code"]) == (404, "no_such_task")


def test_guessing_is_slowed_for_all_processes_together():
    shared = Limits(guessing=Rate(20, 0.2)).shared_by(4)
    assert (shared.guessing.burst * 4, shared.guessing.per_second * 4) == (20, pytest.approx(0.2))
    assert shared.address == Limits().address


@pytest.mark.parametrize("managed", [False, True])
@pytest.mark.parametrize("body", ["[" * 100_000, '{"a":' * 50_000, "[" * 100_000 + "]" * 100_000, "1" * 100_000])
def test_deep_and_long_json_is_refused(server, body, managed):
    url = f"{server.api}/manage/exclude" if managed else f"{server.api}/session"
    headers = {"Content-Type": "application/json", **(MANAGER if managed else {})}
    assert httpx.post(url, content=body, headers=headers).status_code == 400


def test_a_form_of_very_many_parts_is_refused(server):
    part = b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n'
    body = part * 10_000 + b"--b--\r\n"
    response = httpx.post(
        f"{server.url}/manage/", content=body, headers={"Content-Type": "multipart/form-data; boundary=b"}
    )
    assert response.status_code == 400


FORMULAS = ["=1+1", "+1+cmd|' /C calc'!A0", "-2+3+x", "@SUM(A1)"]


def test_no_export_holds_a_formula(make_study, serve_study, tmp_path):
    """Ids, texts, annotators and reasons that a spreadsheet would run, in every file of every export."""
    from steelyard.formats import write_table
    from steelyard.report.assets import write_assets
    from steelyard.report.builder import build_report
    from steelyard.study.exporting import conventional_judgments, people_table

    folder = make_study(items=["x", "y"], design="judgments = 4")
    with (folder / "items.csv").open("w") as file:
        file.write("id,text,group\n" + "".join(f'"{text}","{text}","{text}"\n' for text in FORMULAS))
    with Study.open(folder) as study:
        for name in FORMULAS:
            for task in study.ask(name, 4):
                study.tell(task, {task.items[0].id: 3.0})
        write_table(conventional_judgments(study, real_ids=True), tmp_path / "judgments.csv")
        write_table(study.judgments(), tmp_path / "answers.csv")
        write_table(study.scores(), tmp_path / "scores.tsv")
        write_table(people_table(study), tmp_path / "people.csv")
        write_assets(build_report(study, real_ids=True), tmp_path / "assets")
    server = serve_study(folder)
    for what in ("scores", "judgments", "answers", "annotators", "items"):
        url = f"{server.api}/manage/download/{what}.csv?real_ids=true"
        (tmp_path / f"{what}-web.csv").write_bytes(httpx.get(url, headers=MANAGER, timeout=60).content)
    files = [*tmp_path.glob("*.csv"), *tmp_path.glob("*.tsv"), *(tmp_path / "assets").glob("**/*.csv")]
    assert len(files) > 10
    cells = 0
    for path in files:
        frame = pl.read_csv(path, separator="\t" if path.suffix == ".tsv" else ",", infer_schema=False)
        for text in [*frame.columns, *(cell for row in frame.iter_rows() for cell in row if cell)]:
            number = re.fullmatch(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", text)
            assert number or not text.startswith(("=", "+", "-", "@", "\t", "\r")), (path.name, text)
            cells += text.startswith("'=")
    assert cells > 5


def test_no_secret_is_in_logs_exports_reports_or_configurations(make_study, serve_study, tmp_path, caplog):
    from steelyard.report.builder import build_report
    from steelyard.report.html import html_page
    from steelyard.study import exported_log

    folder = make_study()
    server = serve_study(folder)
    with caplog.at_level(logging.DEBUG, logger="steelyard"):
        ann = server.person("ann")
        task = ann.task()
        ann.tell(task, {task["items"][0]["id"]: 5})
        invite = server.invite("bob").rpartition("=")[2]
        me = ann.get("/me").json()
        wrong = "a-wrong-token-that-somebody-mistyped"
        for url in (
            f"{server.url}/manage/?token={wrong}",
            f"{server.page}?invite={wrong}",
            f"{server.url}/x?token={TOKEN}",
        ):
            httpx.get(url)
        httpx.get(f"{server.api}/manage/summary", headers={"Authorization": f"Bearer {wrong}"})
        ann.post(f"/tasks/{invite}/skip", {"reason": "x"})
        ann.http.post("/tasks", json={}, headers={"X-CSRF-Token": wrong})
    session = ann.http.cookies.get("steelyard_session", path="/api/v1/studies/study")
    secrets = [session, me["csrf"], me["resume_url"].rpartition("=")[2], TOKEN, wrong, server.study.privacy.secret]
    assert "refused" in caplog.text
    study = server.study
    texts = {
        "log": caplog.text,
        "events": "".join(event.line() for event in study.events()),
        "export": "".join(event.line() for event in exported_log(study)),
        "report": html_page(build_report(study)),
        "config": httpx.get(f"{server.api}/manage/config", headers=MANAGER).text,
        "description": httpx.get(f"{server.url}/api/v1/openapi.json").text,
        "files": "".join(path.read_text() for path in folder.iterdir() if path.suffix in {".toml", ".csv"}),
    }
    for place, text in texts.items():
        for secret in [*secrets, *([invite] if place != "log" else [])]:
            assert secret
            assert secret not in text, place


def test_a_databases_password_is_never_shown(make_study, serve_study, tmp_path):
    assert without_password("postgresql://u:p@ss@h:5/x?a=b") == "postgresql://u:***@h:5/x?a=b"
    folder = make_study(name="first")
    with pytest.raises(StoreError) as refused:
        Study.open(folder, database="postgres://u:hunter2@h/x")
    assert "hunter2" not in str(refused.value)
    with pytest.raises(StoreError) as refused:
        Study.open(folder, database="postgresql://u:hunter2@127.0.0.1:1/x")
    assert "hunter2" not in str(refused.value)


def test_a_draft_names_no_file_or_database_elsewhere(server):
    """Who may manage studies need not be who may read everything."""
    base = {"title": "t", "question": "q", "protocol": {"name": "direct"}}
    items = {"name": "items.csv", "text": "id,text\na,b\nc,d\n"}
    away = [
        {"database": "postgresql://evil.example/x"},
        {"database": "sqlite:////etc/passwd"},
        {"quality": {"checks": {"file": "../../etc/passwd"}}},
        {"quality": {"qualification": {"file": "/etc/passwd"}}},
        {"annotators": {"consent": "/etc/motd.txt"}},
        {"annotators": {"training": "..\\x.csv"}},
        {"page": {"media": "/"}},
    ]
    for extra in away:
        for path in ("/api/v1/manage/check", "/api/v1/manage/studies"):
            response = httpx.post(
                f"{server.url}{path}", json={"values": {**base, **extra}, "items": items}, headers=MANAGER
            )
            problems = json.dumps(response.json()["problems"])
            assert "not in the study's folder" in problems or "cannot be chosen in the browser" in problems, (
                extra,
                problems,
            )
    assert not (Path(server.folders[0]).parent / "t").exists()
