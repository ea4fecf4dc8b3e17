"""Take the pictures of the product in README and the documentation, light and dark.

Run: python -m scripts.product_screenshots [dashboard] [annotate] [new-study]; without arguments, all of them.
The dashboard shows the translation study of `steelyard demo`; the steps of a new study are filled in as the tutorial
does it. Needs Chromium.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "images"
CHROMIUM = "/usr/bin/chromium"
TOKEN = "the-token-of-the-screenshots"
QUALITY = 82
SCHEMES = ("light", "dark")
TABS = {"overview": "translations/", "results": "translations/results", "annotators": "verbs/annotators"}
WORDS = ["word", "joyful", "calm", "ordinary", "tired", "angry", "miserable", "proud", "bored", "hopeful"]


@contextmanager
def running(*command: str) -> Iterator[str]:
    """Run a command of steelyard that serves pages; yield its address."""
    steelyard = Path(sys.executable).parent / "steelyard"
    environment = {**os.environ, "STEELYARD_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}
    with subprocess.Popen([steelyard, *command], stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if address := re.search(r"http://127\.0\.0\.1:\d+", line):
                    yield address[0]
                    break
        finally:
            process.terminate()


def save(page: Page, name: str) -> None:
    """Save a picture of the page as WebP, which Chromium writes and Playwright does not."""
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    session = page.context.new_cdp_session(page)
    picture = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    target = TARGET / f"{name}.webp"
    target.write_bytes(base64.b64decode(picture["data"]))
    print(f"{target.name}: {target.stat().st_size / 1000:.0f} kB")


def open_page(browser: Browser, scheme: Any, height: int = 780) -> Page:
    """Open an empty page in a browser profile of its own."""
    size = {"width": 1200, "height": height}
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    return context.new_page()


def dashboard(browser: Browser) -> None:
    """The tabs Overview and Results of the translation study, and the annotators of the verbs."""
    with running("demo", "--port", "0", "--speed", "8", "--annotators", "12") as address:
        time.sleep(25)  # the crowd answers
        for scheme in SCHEMES:
            page = open_page(browser, scheme)
            page.goto(f"{address}/manage/?token={TOKEN}")
            for tab, place in TABS.items():
                page.goto(f"{address}/manage/{place}")
                page.get_by_text("Computing").first.wait_for(state="detached", timeout=120_000)
                page.wait_for_timeout(6_000)
                save(page, f"dashboard-{tab}-{scheme}")
            page.context.close()


def annotate(browser: Browser) -> None:
    """A comparison of two translations, and five sliders side by side."""
    with running("demo", "--port", "0", "--speed", "0.01", "--annotators", "12") as address:
        for scheme in SCHEMES:
            for study, keys in (("translations", ("1",)), ("verbs", ("8", "Tab", "3", "Tab", "6", "Tab", "2"))):
                page = open_page(browser, scheme, height=620)
                page.goto(f"{address}/s/{study}/")
                page.get_by_label("Choose a name").fill(f"reader {scheme}")
                page.keyboard.press("Enter")
                page.get_by_role("button", name="Begin").click()
                page.locator(".task").wait_for()
                for key in keys:
                    page.keyboard.press(key)
                save(page, f"annotate-{study}-{scheme}")
                page.context.close()


def new_study(browser: Browser) -> None:
    """The five steps of a new study, as in the tutorial."""
    with tempfile.TemporaryDirectory() as folder:
        words = Path(folder) / "words.csv"
        words.write_text("\n".join(WORDS) + "\n", encoding="utf-8")
        with running("serve", "--workspace", f"{folder}/studies", "--port", "0") as address:
            for scheme in SCHEMES:
                page = open_page(browser, scheme)
                page.goto(f"{address}/manage/?token={TOKEN}")
                page.get_by_role("link", name="New study").first.click()
                for step in _fill_in(page, words):
                    save(page, f"new-study-{step}-{scheme}")
                page.context.close()


def _fill_in(page: Page, words: Path) -> Iterator[str]:
    """Go through the steps; yield the name of each when it is ready for its picture."""
    page.locator("#items-file").set_input_files(words)
    page.get_by_text("9 items").wait_for()
    yield "1-items"
    _continue(page, "What do you ask?")
    page.get_by_label("Title").fill("Positive words")
    page.get_by_label("Question", exact=True).fill("How positive is this word?")
    page.get_by_text("Slider", exact=True).click()
    page.locator("#aside").get_by_role("slider").first.wait_for()
    page.wait_for_timeout(600)
    yield "2-question"
    _continue(page, "How much do you need?")
    page.get_by_label("Per task", exact=True).fill("0.05")
    page.wait_for_timeout(1_200)
    yield "3-plan"
    _continue(page, "How are answers checked?")
    page.get_by_label("Instructions").fill("Rate how positive each word is, as most people use it.")
    page.wait_for_timeout(800)
    yield "4-quality"
    page.wait_for_timeout(600)
    page.get_by_role("link", name=re.compile("Share")).click()
    page.get_by_text("Everything is complete").wait_for()
    page.wait_for_timeout(400)
    yield "5-share"


def _continue(page: Page, heading: str) -> None:
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("heading", name=heading).wait_for()


PICTURES = {"dashboard": dashboard, "annotate": annotate, "new-study": new_study}


def main() -> None:
    """Take the pictures named on the command line, or all of them."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, take in PICTURES.items():
            if len(sys.argv) == 1 or name in sys.argv[1:]:
                take(browser)
        browser.close()


if __name__ == "__main__":
    main()
