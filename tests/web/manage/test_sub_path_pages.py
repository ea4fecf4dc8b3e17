"""The pages at /x/y/, behind nginx with TLS, in a real browser: from the first study to its report."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.web.conftest import TOKEN
from tests.web.pages.judge import TOO_SOON
from tests.web.proxies import proxy

pytestmark = [pytest.mark.browser, pytest.mark.server, pytest.mark.slow]
ROOT = "/x/y"
PICTURES = os.environ.get("STEELYARD_PICTURES")


def look(page, name: str) -> None:
    """Keep a picture, for somebody who wants to see the page."""
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


def answer(page) -> None:
    before = page.locator("main .task").inner_text()
    page.wait_for_timeout(1000 * TOO_SOON + 50)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    page.wait_for_function("before => document.querySelector('main .task')?.innerText !== before", arg=before)


def test_a_study_from_its_creation_to_its_report_under_a_sub_path(serve_study, browser, tmp_path):
    server = serve_study(workspace=tmp_path / "workspace", root_path=ROOT, proxies=["127.0.0.1"])
    with proxy("nginx", tmp_path / "proxy", urlsplit(server.url).port, ROOT) as url:
        context = browser.new_context(ignore_https_errors=True, viewport={"width": 1280, "height": 900})
        page = context.new_page()
        paths: set[str] = set()
        errors: list[str] = []
        context.on("request", lambda request: paths.add(urlsplit(request.url).path))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{url}/manage/?token={TOKEN}")
        page.get_by_role("link", name="New study").first.click()
        page.get_by_text("Paste lines instead").click()
        page.locator("textarea").first.fill("happy\nglad\nsad\nangry")
        page.get_by_role("button", name="Use these lines").click()
        page.get_by_text("4 items").wait_for()
        assert urlsplit(page.url).path.startswith(f"{ROOT}/manage/drafts/")
        page.get_by_role("button", name="Continue").click()
        page.get_by_label("Title").fill("Mood")
        page.get_by_label("Question", exact=True).fill("Which is better?")
        page.get_by_text("Compare two").click()
        page.locator("#aside .task").wait_for()
        look(page, "sub-path-question")
        page.get_by_role("link", name=re.compile("Share")).click()
        page.get_by_role("button", name="Create study").click()
        page.get_by_text("The study is ready").wait_for()
        page.get_by_text("Personal invitations").click()
        page.get_by_label("Names").fill("ann")
        page.get_by_role("button", name="Create links").click()
        personal = page.get_by_role("textbox", name="ann", exact=True)
        personal.wait_for()
        link = personal.input_value()
        assert link.startswith(f"{url}/s/mood/?invite=")

        page.goto(f"{url}/manage/mood/")
        live = page.locator("[data-text=progress]").first
        other = context.new_page()
        other.goto(link)
        assert other.url == f"{url}/s/mood/"
        start = other.get_by_role("button", name=re.compile("Start|Begin"))
        other.locator("main .task").or_(start).first.wait_for()
        if start.count():
            start.click()
        other.locator("main .task").wait_for()
        look(other, "sub-path-annotate")
        answer(other)
        # Answers made offline wait in the browser until the connection is back.
        context.set_offline(True)
        other.wait_for_timeout(1000 * TOO_SOON + 50)
        other.keyboard.press("2")
        other.keyboard.press("Enter")
        waiting = "Object.keys(localStorage).filter(name => name.startsWith('steelyard:out:')).length"
        other.wait_for_function(f"() => {waiting} === 1")
        context.set_offline(False)
        other.wait_for_function(f"() => {waiting} === 0", timeout=20_000)
        page.wait_for_function("() => /^2\\b/.test(document.querySelector('[data-text=progress]')?.textContent)")
        assert live.is_visible()
        look(page, "sub-path-dashboard")

        page.goto(f"{url}/manage/mood/export")
        page.get_by_role("button", name="Create report").click()
        report = page.get_by_role("list", name="Reports").get_by_role("link", name="Download HTML")
        report.wait_for(timeout=90_000)
        with page.expect_download() as download:
            report.click()
        assert "Mood" in download.value.path().read_text(encoding="utf-8")
        cookies = {(cookie["name"], cookie["path"], cookie["secure"]) for cookie in context.cookies()}
        assert ("steelyard_manage", ROOT, True) in cookies
        assert ("steelyard_session", f"{ROOT}/s/mood", True) in cookies
        assert ("steelyard_session", f"{ROOT}/api/v1/studies/mood", True) in cookies
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Token").wait_for()
        assert not [cookie for cookie in context.cookies() if cookie["name"] == "steelyard_manage"]
        assert {path for path in paths if not path.startswith(f"{ROOT}/")} == set()
        assert errors == []
        context.close()
