"""Hostile contents on real pages in a real browser: no script runs, and nobody else hears of it.

The rendered contents are also put on a page without a content security policy, so that it is the sanitiser that is
tried, and not what stands behind it.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from markdown_it import MarkdownIt

from steelyard import Study
from steelyard.report.builder import build_report
from steelyard.report.dataset import write_dataset
from steelyard.report.html import html_page
from steelyard.web.content import Kind, render
from tests.conftest import missing_tool
from tests.fuzz import FULL
from tests.fuzz.hostile import CLASSES, RUNNING, contents
from tests.web.conftest import Server, ServeStudy

CHROMIUM = "/usr/bin/chromium"
HOST = "http://harness.test"
MEDIA = "/s/words/media/"
BATCH = 250
COUNT = 10_000 if FULL else 300
KINDS: list[Kind] = ["html", "markdown", "text"]

LISTEN = """
window.hits = 0;
window.hit = window.alert = window.confirm = window.prompt = () => { window.hits += 1; };
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));
"""
USE = """() => {
  const events = ["click", "mouseover", "focus", "error", "load", "toggle", "pointerenter", "animationstart", "input"];
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    for (const { name, value } of element.attributes) {
      if (name.startsWith("on") || name === "srcdoc" || name === "formaction") found.push(`${element.tagName} ${name}`);
      if (/^(href|src|action|data|xlink:href|poster)$/.test(name)) {
        let protocol = "";
        try { protocol = new URL(value, document.baseURI).protocol; } catch {}
        if (/^(javascript|vbscript):/.test(protocol)) found.push(`${name} ${value}`);
        if (protocol === "data:" && !/^(IMG|LINK)$/.test(element.tagName)) found.push(`${name} ${value}`);
      }
    }
    if (/^(SCRIPT|IFRAME|OBJECT|EMBED|BASE|META|LINK|STYLE|FORM|INPUT|SVG|MATH|TEMPLATE)$/i.test(element.tagName))
      found.push(element.tagName);
    for (const name of events) element.dispatchEvent(new Event(name, { bubbles: false, cancelable: true }));
  }
  return found;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync = pytest.importorskip("playwright.sync_api")
    if not Path(CHROMIUM).exists():
        missing_tool(f"{CHROMIUM} was not found (apt-get install chromium)")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Harness:
    """A page without any policy that shows whatever it is given, and notes what that does."""

    def __init__(self, browser: Any) -> None:
        self.context = browser.new_context()
        self.page = self.context.new_page()
        self.page.add_init_script(LISTEN)
        self.body = ""
        self.asked: list[str] = []
        self.page.route("**/*", self._answer)

    def _answer(self, route: Any) -> None:
        if route.request.url == f"{HOST}/":
            route.fulfill(status=200, content_type="text/html; charset=utf-8", body=self.body)
            return
        self.asked.append(route.request.url)
        route.abort()

    def show(self, body: str, *, whole: bool = False) -> list[str]:
        """Load a page with this in it, use everything on it, and return what is wrong."""
        self.body = body if whole else f"<!doctype html><meta charset=utf-8><body>{body}"
        self.asked.clear()
        self.page.goto(f"{HOST}/", wait_until="load")
        problems = list(self.page.evaluate(USE))
        self.page.wait_for_timeout(30)
        hits = self.page.evaluate("window.hits")
        away = [url for url in self.asked if not url.startswith((HOST + MEDIA, "data:"))]
        return [*([f"{hits} scripts ran"] if hits else []), *problems, *(f"asked {url}" for url in away)]

    def put(self, pieces: list[str]) -> list[str]:
        """Set each piece as the annotators' page does, in a page that is there already."""
        self.show("")
        self.page.evaluate(
            "all => { for (const one of all) { const at = document.createElement('div'); at.innerHTML = one; "
            "document.body.append(at); } }",
            pieces,
        )
        problems = list(self.page.evaluate(USE))
        self.page.wait_for_timeout(30)
        hits = self.page.evaluate("window.hits")
        away = [url for url in self.asked if not url.startswith((HOST + MEDIA, "data:"))]
        return [*([f"{hits} scripts ran"] if hits else []), *problems, *(f"asked {url}" for url in away)]


@pytest.fixture
def harness(browser: Any) -> Iterator[Harness]:
    new_harness = Harness(browser)
    yield new_harness
    new_harness.context.close()


def test_the_harness_notices(harness: Harness) -> None:
    """A test that cannot fail is none: left as they are, these contents do run."""
    tried = RUNNING if FULL else RUNNING[::5]
    ran = 0
    for content in tried:
        assert harness.show(content), content
        ran += bool(harness.page.evaluate("window.hits"))
    assert ran > 0.6 * len(tried)


def _culprits(harness: Harness, texts: list[str], kind: Kind) -> list[tuple[str, list[str]]]:
    results = [(text, harness.show(render(text, kind, MEDIA).html)) for text in texts]
    return [(text, wrong) for text, wrong in results if wrong][:5]


@pytest.mark.parametrize("kind", KINDS)
def test_no_content_runs_a_script_or_reaches_anybody(harness: Harness, kind: Kind) -> None:
    texts = contents(COUNT // len(KINDS) + 1, seed=KINDS.index(kind))
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        pieces = [render(text, kind, MEDIA).html for text in batch]
        wrong = harness.show("".join(f"<div>{piece}</div>" for piece in pieces)) or harness.put(pieces)
        assert not wrong, (wrong, _culprits(harness, batch, kind))


# The pages themselves


def hostile_study(folder: Path, kind: Kind) -> Path:
    """A study in which everything that can be written is hostile."""
    folder.mkdir()
    texts = contents(240 if FULL else 40, seed=9)
    plain = [text.replace("\0", "") for text in texts]
    with (folder / "items.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "group", "context", "reference", "tags", "media"])
        for number, text in enumerate(plain):
            other = plain[-number - 1].replace("\n", " ")
            writer.writerow([f"{number} {text}".strip(), text or "x", other, text, other, other, f"{number}.png"])
    one, two, three = (json.dumps(f"{place} {CLASSES[place]}") for place in (5, 0, 9))
    everything = json.dumps("\n\n".join(CLASSES))
    (folder / "study.toml").write_text(
        f"title = {one}\nquestion = {two}\nitems = 'items.csv'\n"
        f"[protocol]\nname = 'choice'\nlabels = [{one}, {two}, {three}]\nitems_per_page = 10\n"
        f"[design]\njudgments = 2\n[page]\ncontent = '{kind}'\n"
        f"[annotators]\nconsent = {everything}\ninstructions = {everything}\ncontact = {three}\n",
        encoding="utf-8",
    )
    return folder


NAME = "<img src=x onerror=hit(1)>"


def judged(folder: Path) -> Path:
    with Study.open(folder) as study:
        labels = study.config.stages[0].protocol.classes()[""]
        for name in (NAME, '"><script>hit(1)</script>', "ann"):
            study.annotators.record_consent(name)
            for _ in range(3):
                task = study.ask(name)
                if task is not None:
                    study.tell(task, {item: labels[len(item) % 3] for item in task.item_ids}, seconds=2)
                    study.flag(task, CLASSES[0])
        study.annotators.exclude(NAME, f"like {CLASSES[5]}")
        study.set_state("paused", CLASSES[5])
        study.set_state("open", "")
    return folder


def quiet(page: Any, where: str) -> None:
    """Nothing ran on a page, and its policy had nothing to stop."""
    page.wait_for_timeout(100)
    assert page.evaluate("window.hits") == 0, where
    assert page.evaluate("window.violations") == [], where


@pytest.mark.parametrize("kind", KINDS if FULL else ["html"])
def test_pages_show_hostile_studies_and_nothing_runs(
    browser: Any, serve_study: ServeStudy, tmp_path: Path, kind: Kind
) -> None:
    server: Server = serve_study(judged(hostile_study(tmp_path / "study", kind)))
    context = browser.new_context()
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.add_init_script(LISTEN)
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
    page.goto(server.url)
    quiet(page, "landing")
    page.goto(f"{server.url}/s/%3Cscript%3Ehit(1)%3C/script%3E/")
    quiet(page, "no such study")
    page.goto(server.page)
    page.get_by_label("Choose a name").fill(NAME.replace("1", "2"))
    page.keyboard.press("Enter")
    page.get_by_role("button", name="I agree").click()
    quiet(page, "consent")
    page.get_by_role("button", name="Begin").click()
    for _ in range(24 if FULL else 2):
        page.locator("main .task:not([inert])").wait_for()
        quiet(page, "task")
        page.wait_for_timeout(400)
        for group in page.locator("main .task [role=radiogroup]").all():
            group.locator("input[type=radio]").first.check(force=True)
        before = page.locator("main .task").inner_text()
        page.get_by_role("button", name="Submit").click()
        page.wait_for_function("before => document.querySelector('main')?.innerText !== before", arg=before)
    page.goto(server.manage_url)
    quiet(page, "studies")
    page.goto(f"{server.url}/manage/{server.slug}/")
    page.locator("#verdict-sentence:not(:empty)").wait_for()
    quiet(page, "overview")
    page.goto(f"{server.url}/manage/{server.slug}/results")
    page.locator("#scores-table tbody tr").first.wait_for()
    quiet(page, "results")
    page.goto(f"{server.url}/manage/{server.slug}/annotators")
    page.locator("#annotators-table tbody tr").first.wait_for()
    quiet(page, "annotators")
    for tab in ("quality", "activity", "export"):
        page.goto(f"{server.url}/manage/{server.slug}/{tab}")
        page.get_by_role("heading", level=2).first.wait_for()
        quiet(page, tab)
    item = server.study.items[3].id
    page.goto(f"{server.url}/manage/{server.slug}/item?" + str(httpx.QueryParams(id=item)))
    page.get_by_role("heading", level=1).wait_for()
    quiet(page, "item")
    page.goto(f"{server.url}/manage/{server.slug}/edit#question")
    page.get_by_label("Title").wait_for()
    page.locator("#aside .task").wait_for()
    quiet(page, "edit")
    context.close()


def test_files_that_leave_the_study_run_nothing(harness: Harness, tmp_path: Path) -> None:
    """The report, what notebooks show, and the data set's card; the report's own policy is taken out first."""
    folder = judged(hostile_study(tmp_path / "study", "html"))
    with Study.open(folder) as study:
        report = html_page(build_report(study, real_ids=True))
        notebook_html = study._repr_html_() + (study.fit()._repr_html_() or "")
        write_dataset(study, tmp_path / "hub", real_ids=True)
    without_policy = report.replace('http-equiv="Content-Security-Policy"', "")
    assert without_policy != report
    allowed = {"STYLE", "META", "SVG", "LINK"}
    wrong = [what for what in harness.show(without_policy, whole=True) if what.upper() not in allowed]
    assert not wrong
    assert not harness.show(notebook_html)
    card = (tmp_path / "hub" / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2]
    assert not harness.show(MarkdownIt("commonmark", {"html": True}).enable("table").render(card))
