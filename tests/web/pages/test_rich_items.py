"""Items with more in them: columns, conversations, code, pictures, PDFs and recordings."""

from __future__ import annotations

import gzip
import io
import json
import math
import struct
import wave
import zlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.web.conftest import start_in_thread
from tests.web.pages.judge import log_of

pytestmark = [pytest.mark.browser, pytest.mark.server]

PROMPT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How do I count words?"}]
CODE = "```python\ndef count(path):\n    return len(open(path).read().split())  # all\n```\n\n"
LONG = [{"id": s, "source": PROMPT, "text": CODE + f"Paragraph {s}. " * (150 if s == "a" else 300)} for s in "ab"]
PDF = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]>>endobj
trailer<</Root 1 0 R>>
"""


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes(200 for _ in range(3 * width)) for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b"".join(rows)))
        + chunk(b"IEND", b"")
    )


def wav(frequency: int, seconds: int = 2) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        tone = (int(9000 * math.sin(2 * math.pi * frequency * t / 8000)) for t in range(8000 * seconds))
        sound.writeframes(b"".join(struct.pack("<h", value) for value in tone))
    return file.getvalue()


def write(folder: Path, settings: str, rows: list[dict[str, Any]], media: dict[str, bytes] | None = None) -> Path:
    folder.mkdir()
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    head = f'name = "{folder.name}"\ntitle = "T"\nquestion = "Which is better?"\nitems = "items.jsonl"\n'
    (folder / "study.toml").write_text(head + settings, encoding="utf-8")
    for name, data in (media or {}).items():
        (folder / "media").mkdir(exist_ok=True)
        (folder / "media" / name).write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    chat = 'content = "markdown"\nfields = ["text", { column = "context", label = "Talk", format = "conversation" }]'
    fields = 'fields = ["title", "text", { column = "note", label = "" }]'
    rows = [{"id": s, "text": f"body {s}", "title": f"Title {s}", "note": "ملاحظة", "secret": "x"} for s in "ab"]
    pictures = [{"id": s, "image": f"{s}.png"} for s in "ab"]
    sounds = [{"id": s, "audio": f"{s}.wav"} for s in "ab"]
    papers = [{"id": s, "text": s, "media": "p.pdf#page=1"} for s in "ab"]
    started = start_in_thread(
        [
            write(folder / "chat", f'[page]\n{chat}\n[protocol]\nname = "pairwise"\n', LONG),
            write(folder / "fields", f'[page]\n{fields}\n[protocol]\nname = "likert"\n', rows),
            write(folder / "marked", f'[page]\n{fields}\n[protocol]\nname = "error_spans"\n', rows),
            write(
                folder / "pictures",
                '[protocol]\nname = "pairwise"\n',
                pictures,
                {"a.png": png(240, 160), "b.png": png(160, 240)},
            ),
            write(
                folder / "sounds",
                '[page]\nsync_audio = true\nmust_play = true\n[protocol]\nname = "pairwise"\n',
                sounds,
                {"a.wav": wav(300), "b.wav": wav(500)},
            ),
            write(folder / "papers", '[protocol]\nname = "direct"\n', papers, {"p.pdf": PDF}),
        ]
    )
    yield started
    started.stop()


def test_columns_are_shown_in_order_with_headings_and_directions_and_no_others(server, judge):
    person = judge(f"{server.url}/s/fields/", "reader", device="phone")
    page = person.page
    assert page.locator(".field-label").all_inner_texts() == ["title"]
    title, body, note = page.locator(".field-text").all_inner_texts()
    assert (title.split()[0], body.split()[0], note) == ("Title", "body", "ملاحظة")
    assert page.locator(".field-text").nth(2).get_attribute("dir") == "rtl"
    assert page.evaluate("document.documentElement.scrollWidth") == page.evaluate("innerWidth")
    task = person.context.request.post(f"{server.url}/api/v1/studies/fields/tasks", data={"count": 1})
    assert task.status == 403, "the page's token is needed"
    assert "secret" not in page.content()


def test_error_marking_shows_the_other_columns_beside_the_text(server, judge):
    person = judge(f"{server.url}/s/marked/", "marker")
    assert person.page.locator(".beside .field-text").all_inner_texts()[1] == "ملاحظة"
    assert person.page.locator(".beside .field-text").count() == 2


def test_a_conversation_has_its_roles_in_the_readers_language(server, judge):
    person = judge(f"{server.url}/s/chat/", "leserin")
    person.context.set_extra_http_headers({"Accept-Language": "de"})
    person.page.reload()
    person.wait_for_task()
    assert person.page.locator(".turn-role").all_inner_texts() == ["Systemnachricht", "Nutzer"]
    assert person.page.locator(".panel-title").inner_text() == "Talk"
    assert person.page.locator(".code-keyword").first.inner_text() == "def"


def test_long_answers_scroll_in_step_and_the_choices_stay_in_view(server, judge):
    person = judge(f"{server.url}/s/chat/", "reader")
    page = person.page
    places = "[...document.querySelectorAll('.scrolls')].map(b => b.scrollTop / (b.scrollHeight - b.clientHeight))"
    person.press("?")
    # The example has its answers below the texts, as the task.
    person.says("Click an answer or press its key.")
    person.press("Escape")
    choices = page.locator("main .step").all()
    assert len(choices) == 3
    bottom = page.locator("#actions").bounding_box()["y"]
    assert all(box["y"] + box["height"] <= bottom + 1 for box in (choice.bounding_box() for choice in choices))
    first = page.locator(".scrolls").first
    first.focus()
    person.press("End")
    page.wait_for_function(f"() => {places}.every(place => place > 0.98)")
    page.get_by_label("Scroll both together").uncheck()
    first.focus()
    person.press("Home")
    page.wait_for_function(f"() => {places}[0] < 0.02")
    assert page.evaluate(places)[1] > 0.98
    # The same keys as on cards: 1 and 2, 0 between them, and arrows.
    for pressed, words in (("2", "B is better"), ("0", "About the same"), ("ArrowLeft", "A is better")):
        person.press(pressed)
        assert page.locator("main .step:has(input:checked) .step-words").inner_text() == words
    person.submit()
    person.saved()
    (answer,) = log_of(server, "chat", "judgment", "reader")
    assert answer["answer"]["winner"] in {"a", "b"}
    assert "strength" not in answer["answer"]


def test_a_phone_shows_long_pairs_without_scrolling_sideways(server, judge):
    person = judge(f"{server.url}/s/chat/", "walker", device="phone")
    page = person.page
    assert page.evaluate("document.documentElement.scrollWidth") == page.evaluate("innerWidth")
    page.evaluate("document.querySelectorAll('.read-card')[0].scrollIntoView()")
    box = page.locator(".step").first.bounding_box()
    assert box["y"] + box["height"] <= page.locator("#actions").bounding_box()["y"] + 1


def test_the_page_of_a_conversation_weighs_less_than_100_kilobytes(server, judge):
    """In Hindi, whose catalogue is the largest; without the answers themselves, which the study decides."""
    person = judge(f"{server.url}/s/chat/", "weigher")
    person.context.set_extra_http_headers({"Accept-Language": "hi"})
    person.page.reload()
    person.page.wait_for_load_state("networkidle")
    loaded = person.page.evaluate(
        "[location.href, ...performance.getEntriesByType('resource').map(entry => entry.name)]"
    )
    bodies = [person.context.request.get(url).body() for url in loaded if not url.endswith("/tasks")]
    assert len(bodies) > 20
    assert sum(len(gzip.compress(body)) for body in bodies) < 100_000


def test_a_picture_is_enlarged_by_mouse_and_keys_without_choosing_it(server, judge):
    person = judge(f"{server.url}/s/pictures/", "looker")
    page = person.page
    page.get_by_role("button", name="Enlarge").first.click()
    picture = page.locator("dialog.zoom img")
    page.wait_for_function("() => document.querySelector('dialog.zoom img').style.width !== ''")
    before = picture.bounding_box()["width"]
    person.press("+", "+")
    assert picture.bounding_box()["width"] == pytest.approx(before * 1.25**2, abs=3)
    person.press("0")
    assert picture.bounding_box()["width"] == pytest.approx(before, abs=3)
    person.press("1")
    person.press("Escape")
    assert page.locator("dialog.zoom").count() == 0
    assert page.locator("input:checked").count() == 0
    page.locator("img.media").first.click(position={"x": 5, "y": 5})
    assert page.locator("input:checked").count() == 1


def test_recordings_share_a_player_and_must_be_played_before_an_answer(server, judge):
    person = judge(f"{server.url}/s/sounds/", "listener")
    page = person.page
    person.press("1")
    person.submit(by="click")
    person.says("Please play this to the end first: Listen to A")
    page.evaluate("document.querySelectorAll('audio').forEach(sound => { sound.muted = true; })")
    times = "[...document.querySelectorAll('audio')].map(sound => [sound.paused, sound.currentTime])"
    person.press("p")
    page.wait_for_function(f"() => {times}[0][1] > 0.5")
    person.press("x")
    (_, first), (paused, second) = page.evaluate(times)
    assert not paused
    assert abs(first - second) < 0.4
    person.press("p")
    # From the beginning to the end, one after the other.
    for place in (0, 1):
        page.evaluate(f"document.querySelectorAll('audio')[{place}].currentTime = 0")
        page.evaluate(f"document.querySelectorAll('audio')[{place}].play()")
        page.wait_for_function(f"() => document.querySelectorAll('audio')[{place}].ended")
    assert page.locator("#submit").get_attribute("aria-disabled") == "false"
    person.submit(by="click")
    person.saved()
    (event,) = log_of(server, "sounds", "judgment", "listener")
    assert set(event["effort"]["played"]) == {"a", "b"}
    assert min(event["effort"]["played"].values()) >= 0.95


def test_the_server_refuses_an_answer_about_recordings_that_were_not_played(server):
    with httpx.Client(base_url=f"{server.url}/api/v1/studies/sounds") as http:
        http.headers["X-CSRF-Token"] = http.post("/session", json={"name": "script"}).json()["csrf"]
        (task,) = http.post("/tasks", json={"count": 1}).json()["tasks"]
        ids = [item["id"] for item in task["items"]]
        body = {"judgment_id": task["judgment_id"], "answer": {"winner": ids[0]}}
        for effort in (None, {"played": {ids[0]: 1.0}}, {"played": {ids[0]: 1.0, ids[1]: 0.5}}):
            refused = http.post("/judgments", json=body | ({"effort": effort} if effort else {}))
            assert (refused.status_code, refused.json()["error"]["code"]) == (422, "not_played")
        played = {"effort": {"played": dict.fromkeys(ids, 1.0)}}
        assert http.post("/judgments", json=body | played).status_code == 200


def test_a_pdf_opens_in_the_browsers_viewer_beside_a_link(server, judge):
    person = judge(f"{server.url}/s/papers/", "scholar")
    page = person.page
    link = page.get_by_role("link", name="Open the PDF in a new tab")
    assert link.get_attribute("href").endswith("/media/p.pdf#page=1")
    assert page.locator("iframe.pdf").get_attribute("src").endswith("p.pdf#page=1&navpanes=0")
    page.wait_for_function("() => document.querySelector('iframe.pdf')")
    response = httpx.get(f"{server.url}/s/papers/media/p.pdf")
    assert response.headers["content-type"] == "application/pdf"
    assert response.headers["x-frame-options"] == "SAMEORIGIN"
    assert "frame-ancestors 'self'" in response.headers["content-security-policy"]
    assert "script-src" not in response.headers["content-security-policy"]
    assert httpx.get(f"{server.url}/s/papers/").headers["x-frame-options"] == "DENY"
