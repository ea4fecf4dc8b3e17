"""Take the pictures of the annotators' page for README and docs: every protocol, desktop and phone.

Run: python -m scripts.screenshots [--only NAME] [--into FOLDER]. Needs playwright and Debian's Chromium.
"""

from __future__ import annotations

import argparse
import base64
import csv
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright

from steelyard.web import Studies, create_app

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "images"
CHROMIUM = "/usr/bin/chromium"
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}
TASKS_TO_GO = 40
"""How many tasks a person gets in the pictures, so that the page shows how far along they are."""
DOUBLE_CLICK_MS = 400
"""How long after a task has come the page takes no answer yet."""


@dataclass(frozen=True)
class Shot:
    """One study, and how it is answered for its picture."""

    name: str
    title: str
    question: str
    protocol: str
    items: list[dict[str, str]]
    answer: Callable[[Page], None]
    files: dict[str, str] = field(default_factory=dict)
    tasks: int = TASKS_TO_GO
    by_link: bool = False
    """Whether people come from a panel rather than by a name."""


def _words(*words: str) -> list[dict[str, str]]:
    return [{"id": word, "text": word} for word in words]


def _press(*keys: str) -> Callable[[Page], None]:
    def answer(page: Page) -> None:
        for key in keys:
            page.keyboard.press(key)

    return answer


def _fail_the_check(page: Page) -> None:
    """Answer the first task wrongly, and begin with the next."""
    before = page.locator(".task").inner_text()
    page.keyboard.press("1")
    page.wait_for_timeout(DOUBLE_CLICK_MS)
    page.keyboard.press("Enter")
    page.locator("#feedback section").wait_for()
    page.wait_for_function("before => document.querySelector('.task').innerText !== before", arg=before)
    page.keyboard.press("4")


def _mark_errors(page: Page) -> None:
    """Mark two errors, the second one of several words, and score."""
    words = page.locator(".marked-text span")
    words.nth(6).click()
    page.get_by_role("button", name="major").click()
    page.locator(".marked-text").focus()
    for key in ("End", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft", "Shift+ArrowRight", " ", "1"):
        page.keyboard.press(key)
    page.locator("main input[type=range]").focus()
    for key in ("4", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)


def _finish(page: Page) -> None:
    """Answer the only task, and come to the end."""
    page.keyboard.press("4")
    page.wait_for_timeout(DOUBLE_CLICK_MS)
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Go back").wait_for()


VERBS = _words("ambulate", "bring", "cook", "dwell", "go", "mend", "ponder", "swim")
REVIEWS = [
    "The staff went out of their way to help, and the room was spotless.",
    "Fine for one night, but the walls are thin and breakfast ends at eight.",
    "We waited forty minutes for a table that we had booked.",
    "A quiet place with a lovely garden; we would come again.",
    "The heating did not work and nobody came to look at it.",
]
SOURCE = "Der Zug fährt heute wegen Bauarbeiten nicht, aber es gibt einen Bus."
REFERENCE = "The train is not running today because of engineering works, but there is a bus."
TRANSLATIONS = [
    "The train does not run today due to construction work, but there is a bus.",
    "Today the train drives not because of building works, but it gives a bus.",
    "There is no train today, but you can take the bus.",
]


def _translations(*, reference: bool) -> list[dict[str, str]]:
    shared = {"context": SOURCE, **({"reference": REFERENCE} if reference else {})}
    return [{"id": f"t{number}", "text": text, **shared} for number, text in enumerate(TRANSLATIONS, 1)]


def _reviews() -> list[dict[str, str]]:
    return [{"id": f"r{number}", "text": text} for number, text in enumerate(REVIEWS, 1)]


SHOTS = [
    Shot(
        "scored-ranking",
        "Verb frequency",
        "How often do people use these verbs?",
        'name = "scored_ranking"\nsize = 5\nlabels = ["very rare", "very frequent"]',
        VERBS,
        _press("2", "Tab", "8", "Tab", "7", "ArrowRight", "ArrowRight", "Tab", "4"),
    ),
    Shot(
        "direct",
        "Translations",
        "How much of the meaning is kept?",
        'name = "direct"\nlabels = ["nothing", "about half", "everything"]',
        _translations(reference=True),
        _press("7", "ArrowRight", "ArrowRight", "ArrowRight"),
    ),
    Shot(
        "criteria",
        "Headlines",
        "How strongly does this headline express each feeling?",
        'name = "direct"\n[protocol.criteria.anger]\nlabels = ["not at all", "extremely"]\n'
        '[protocol.criteria.joy]\nlabels = ["not at all", "extremely"]\n'
        '[protocol.criteria.valence]\nscale = [-100, 100]\nlabels = ["very negative", "neutral", "very positive"]',
        [
            {"id": "h1", "text": "Village saves its last cinema"},
            {"id": "h2", "text": "Storm closes the coast road"},
            {"id": "h3", "text": "New bridge opens two years late"},
        ],
        _press("2", "Tab", "8", "ArrowLeft", "Tab", "7"),
    ),
    Shot(
        "likert",
        "Hotel reviews",
        "How satisfied is the writer?",
        'name = "likert"\nlabels = ["very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"]',
        _reviews(),
        _press("4"),
    ),
    Shot(
        "pairwise",
        "Translations",
        "Which translation is better?",
        'name = "pairwise"',
        _translations(reference=False),
        _press("1"),
    ),
    Shot(
        "pairwise-graded",
        "Translations",
        "Which translation is better, and by how much?",
        'name = "pairwise"\nsteps = 5',
        _translations(reference=False),
        _press("2"),
    ),
    Shot(
        "best-worst",
        "Feelings in words",
        "Which word is the most positive, which the most negative?",
        'name = "best_worst"\nlabels = ["most positive", "most negative"]',
        _words("delight", "rumour", "harvest", "betrayal", "errand", "picnic", "grief", "paper"),
        _press("1", "d"),
    ),
    Shot(
        "ranking",
        "Jokes",
        "Put these in order, the funniest first.",
        'name = "ranking"\nsize = 4',
        [
            {"id": "a", "text": "I told my plants a joke. They are still rooted to the spot."},
            {"id": "b", "text": "My clock is hungry: it goes back four seconds."},
            {"id": "c", "text": "Parallel lines have so much in common. A pity that they never meet."},
            {"id": "d", "text": "I have a joke about paper, but it is tearable."},
        ],
        _press("ArrowDown", "ArrowDown", "3", "="),
    ),
    Shot(
        "choice",
        "Support mail",
        "What is this message about, and how does it sound?",
        'name = "choice"\n[protocol.criteria.topic]\nlabels = ["billing", "delivery", "product", "other"]\n'
        '[protocol.criteria.tone]\nlabels = ["friendly", "neutral", "angry"]',
        [
            {
                "id": "m1",
                "text": "My parcel was due on Monday and the tracking page has not moved. Can you look?",
            },
            {"id": "m2", "text": "You have charged me twice this month. I want the money back."},
            {"id": "m3", "text": "Does the lamp also come in green?"},
        ],
        _press("2", "2"),
    ),
    Shot(
        "error-spans",
        "Translations",
        "Mark the errors in this translation. Then score it.",
        'name = "error_spans"\nlabels = ["very bad", "perfect"]',
        [{"id": "t2", "text": TRANSLATIONS[1], "context": SOURCE}],
        _mark_errors,
    ),
    Shot(
        "check",
        "Hotel reviews",
        "How satisfied is the writer?",
        'name = "likert"\nlabels = ["very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"]\n'
        '[quality.checks]\nfile = "checks.csv"\nrate = 0.999999\nfeedback = true',
        _reviews(),
        _fail_the_check,
        files={
            "checks.csv": "items,answer,feedback\n"
            '"The best week we ever had, thank you all!",4..5,"Thanks and praise, without a but."\n'
        },
    ),
    Shot(
        "finished",
        "Hotel reviews",
        "How satisfied is the writer?",
        'name = "likert"\nlabels = ["very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"]\n'
        '[link]\ncompleted = "https://panel.example/complete?rid={participant}"',
        _reviews(),
        _finish,
        tasks=1,
        by_link=True,
    ),
]


def write_study(folder: Path, shot: Shot) -> Path:
    """Write one study's folder."""
    folder = folder / shot.name
    folder.mkdir()
    columns = list(dict.fromkeys(key for item in shot.items for key in item))
    with (folder / "items.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(shot.items)
    text = (
        f'name = "{shot.name}"\ntitle = "{shot.title}"\nquestion = "{shot.question}"\nitems = "items.csv"\n'
        f"[annotators]\nmax_tasks = {shot.tasks}\n[protocol]\n{shot.protocol}\n"
    )
    (folder / "study.toml").write_text(text, encoding="utf-8")
    for name, content in shot.files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder


@contextmanager
def serving(folders: list[Path]) -> Iterator[str]:
    """Serve studies from a thread; yield the address."""
    studies = Studies(folders)
    config = uvicorn.Config(
        create_app(studies, token="the-token-of-the-screenshots"), port=0, log_level="warning", access_log=False
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)


def take(browser: Browser, address: str, shot: Shot, size: dict[str, Any], scheme: Any, target: Path) -> None:
    """Open a study as a new person, answer the first task, and take its picture."""
    phone = size is PHONE
    context = browser.new_context(
        viewport=size,  # type: ignore[arg-type]
        color_scheme=scheme,
        reduced_motion="reduce",
        is_mobile=phone,
        has_touch=phone,
        device_scale_factor=2 if phone else 1,
    )
    page = context.new_page()
    if shot.by_link:
        page.goto(f"{address}/s/{shot.name}/?PROLIFIC_PID=p{size['width']}-{scheme}")
    else:
        page.goto(f"{address}/s/{shot.name}/")
        page.get_by_label("Choose a name").fill(f"ann {size['width']} {scheme}")
        page.keyboard.press("Enter")
    page.get_by_role("button", name="Begin").click()
    page.locator(".task").wait_for()
    shot.answer(page)
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    page.evaluate("async () => { await document.fonts.ready; }")
    page.wait_for_timeout(300)  # until the text is laid out in the loaded typeface
    # Asked of Chromium itself, because Playwright has no WebP; a PNG is two to four times as large.
    picture = context.new_cdp_session(page).send("Page.captureScreenshot", {"format": "webp", "quality": 90})
    target.write_bytes(base64.b64decode(picture["data"]))
    context.close()


def main() -> None:
    """Take all pictures, or those of one study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="name of one study")
    parser.add_argument("--into", type=Path, default=TARGET, help="folder for the pictures")
    parser.add_argument("--dark", action="store_true", help="dark pictures too")
    chosen = parser.parse_args()
    shots = [shot for shot in SHOTS if chosen.only in {None, shot.name}]
    chosen.into.mkdir(parents=True, exist_ok=True)
    schemes = ["light", "dark"] if chosen.dark else ["light"]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        folders = [write_study(Path(folder), shot) for shot in shots]
        with serving(folders) as address:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            for shot in shots:
                for device, size in (("desktop", DESKTOP), ("phone", PHONE)):
                    for scheme in schemes:
                        suffix = "" if scheme == "light" else "-dark"
                        target = chosen.into / f"judge-{shot.name}-{device}{suffix}.webp"
                        take(browser, address, shot, size, scheme, target)
                        print(f"{target.name}: {target.stat().st_size / 1000:.0f} kB")
            browser.close()


if __name__ == "__main__":
    main()
