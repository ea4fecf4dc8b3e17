"""The annotation page in a frame of another site: only of named ones, with messages, with or without cookies."""

from __future__ import annotations

import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from steelyard.errors import ConfigError
from steelyard.study.config.parsing import parse_config
from tests.web.pages.judge import TOO_SOON
from tests.web.pages.studies import write_study

PARENT = """<!doctype html><title>Survey</title><body><h1>Survey</h1>
<iframe id="task" src="{src}" width="700" height="200" style="border: 0"></iframe>
<script>
window.messages = [];
addEventListener("message", (event) => {{
  messages.push({{ origin: event.origin, ...event.data }});
  if (event.data.type === "height") document.getElementById("task").style.height = `${{event.data.height}}px`;
}});
</script>"""
TRAINING = "items,answer,feedback\nsun | mud,sun,\nrain | gold,gold,\n"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


@pytest.fixture
def survey(tmp_path):
    """A site of its own; its name in the browser decides its origin."""
    folder = tmp_path / "survey"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield folder, site.server_address[1]
        site.shutdown()


def embedded_study(folder: Path, port: int) -> Path:
    study = write_study(
        folder,
        people='training = "training.csv"\nmax_tasks = 2\nopen = false',
        files={"training.csv": TRAINING},
    )
    text = (study / "study.toml").read_text()
    embed = f'[embed]\norigins = ["https://lab.example", "http://localhost:{port}"]\n'
    (study / "study.toml").write_text(
        f'{text}\n{embed}[link]\nparticipant_parameter = "participant"\ncompleted = "DONE1"\n'
    )
    return study


@pytest.mark.browser
@pytest.mark.slow
def test_a_participant_judges_in_a_frame_of_a_named_site_and_the_site_learns_of_it(
    serve_study, profiles, survey, tmp_path
):
    folder, port = survey
    server = serve_study(embedded_study(tmp_path / "pairs", port))
    (folder / "index.html").write_text(PARENT.format(src=f"{server.page}?participant=R_1"))
    context = profiles.take("desktop").context
    try:
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.goto(f"http://localhost:{port}/")
        walk(page, context)
        picture(page, "embedded-end")
        messages = page.evaluate("messages")
        assert {message["origin"] for message in messages} == {server.url}
        assert {message["source"] for message in messages} == {"steelyard"}
        completed = next(message for message in messages if message["type"] == "completed")
        assert completed["answered"] == 2
        assert (completed["reason"], completed["code"], completed["study"]) == ("quota", "DONE1", "pairs")
        assert messages[-1]["type"] in {"completed", "height"}
        heights = [message["height"] for message in messages if message["type"] == "height"]
        assert page.evaluate("document.getElementById('task').clientHeight") == heights[-1]
        # The frame is as tall as the page in it: nothing scrolls.
        inner = page.frames[1]
        assert inner.evaluate("document.documentElement.scrollHeight <= innerHeight")
        assert server.study.judgments().filter(annotator="R_1").height == 2
        # A site that the study does not name shows nothing and learns nothing.
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_timeout(500)
        assert page.frames[1].url.startswith("chrome-error:")
        assert page.evaluate("messages") == []
    finally:
        profiles.drop(context)


def walk(page, context) -> None:
    """Read what there is to read and answer what is asked, until the end; without cookies."""
    inner = page.frame_locator("#task")
    for _ in range(40):
        if page.evaluate("messages.some((message) => message.type === 'completed')"):
            return
        context.clear_cookies()
        if inner.locator("#submit").is_visible():
            page.wait_for_timeout(1000 * TOO_SOON + 50)
            inner.locator("main .task label, main .task [role=radio]").first.click(force=True)
            picture(page, "embedded-task")
            inner.locator("#submit").click(force=True)
        elif inner.locator("main button.primary").first.is_visible():
            inner.locator("main button.primary").first.click()
        page.wait_for_timeout(100)
    raise AssertionError("the study did not end")


def picture(page, name: str) -> None:
    if folder := os.environ.get("STEELYARD_PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.mark.server
def test_cookies_of_a_frame_are_partitioned_and_the_page_names_its_frames(serve_study, tmp_path):
    server = serve_study(embedded_study(tmp_path / "pairs", 8080))
    page = httpx.get(server.page, headers={"Sec-Fetch-Dest": "iframe"})
    policy = page.headers["content-security-policy"]
    assert "frame-ancestors https://lab.example http://localhost:8080;" in policy
    assert "x-frame-options" not in page.headers
    # Loading the link in a frame signs nobody in; the page's own script does.
    assert "set-cookie" not in httpx.get(f"{server.page}?participant=R_1", headers={"Sec-Fetch-Dest": "iframe"}).headers
    arrival = {"arrival": "participant=R_1", "embedded": True}
    session = httpx.post(f"{server.api}/session", json=arrival)
    cookies = session.headers.get_list("set-cookie")
    assert len(cookies) == 2
    assert all("; SameSite=None; Secure; Partitioned" in cookie and "HttpOnly" in cookie for cookie in cookies)
    token = {"X-Session-Token": session.json()["session"]}
    assert httpx.get(f"{server.api}/me", headers=token).json()["annotator"] == "R_1"
    # The token alone changes nothing: the page's CSRF token is needed as ever.
    assert httpx.post(f"{server.api}/tasks", json={"count": 1}, headers=token).status_code == 403
    # Other pages are in no frame.
    for path in ("/", "/manage/", "/manage/pairs/"):
        response = httpx.get(server.url + path)
        assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
        assert response.headers["x-frame-options"] == "DENY"


@pytest.mark.server
def test_a_study_without_named_sites_is_in_no_frame_and_takes_no_token_in_a_header(serve_study, make_study):
    server = serve_study(make_study())
    page = httpx.get(server.page)
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    refusal = httpx.post(f"{server.api}/session", json={"name": "ann", "embedded": True})
    assert refusal.json()["error"]["code"] == "not_embedded"
    session = httpx.post(f"{server.api}/session", json={"name": "ann"})
    assert session.json()["session"] is None
    token = {"X-Session-Token": session.headers["set-cookie"].partition("=")[2].partition(";")[0]}
    assert httpx.get(f"{server.api}/me", headers=token).json()["annotator"] is None


@pytest.mark.parametrize(
    "origin",
    ["*", "https://*.example", "http://lab.example", "https://lab.example/", "lab.example", "https://a b", "https://a;x",
     "https://LAB.example", "null", "https://u@lab.example"],
)  # fmt: skip
def test_an_origin_that_is_none_is_refused(origin):
    study = {"title": "T", "question": "Q", "items": "items.csv", "protocol": {"name": "pairwise"}}
    with pytest.raises(ConfigError, match="origin"):
        parse_config({**study, "embed": {"origins": [origin]}})
