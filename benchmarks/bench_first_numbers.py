"""How long the dashboard takes to show its first numbers, in a browser, right after the server starts.

The clock starts when the server answers its first request. The browser runs already; a page is opened at once. The
times are those until the number of judgments, the first scores (tab Results) and the verdict (tab Overview) are shown.
"""

from __future__ import annotations

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

import httpx
import numpy as np

from steelyard.study import Study
from steelyard.study.study import ImportedAnswer

CHROMIUM = "/usr/bin/chromium"
TOKEN = "a-token-of-the-benchmark"
SIZES = ((150, 3_000), (1_000, 20_000))
ANNOTATORS = 50
RUNS = 3
CONDITIONS = {
    "counts": ("", "document.querySelector('[data-text=progress]')?.textContent.includes(' of ')"),
    "scores": ("results", "document.querySelector('#scores-table tbody a') !== null"),
    "verdict": ("", "!['', undefined].includes(document.querySelector('#verdict-sentence')?.textContent)"),
}
"""What is waited for: the tab that shows it, and the condition in the page."""


def make_study(folder: Path, items: int, judgments: int) -> Path:
    """Write a study of ratings with the model of new studies, and import ratings by simulated annotators."""
    folder.mkdir()
    rows = "".join(f"i{n},Text of item {n}\n" for n in range(items))
    (folder / "items.csv").write_text("id,text\n" + rows, encoding="utf-8")
    lines = ['name = "bench"', 'title = "Bench"', 'question = "How good?"', 'items = "items.csv"', "[protocol]"]
    lines += ['name = "direct"', "[design]", 'name = "per_item"', f"judgments = {judgments // items + 2}"]
    lines += ["[model]", 'name = "calibrated_scale"']
    (folder / "study.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    rng = np.random.default_rng(0)
    truth, bias = rng.random(items) * 100, rng.normal(0, 8, ANNOTATORS)
    rounds = judgments // items
    answers = []
    for number in range(rounds):
        for item in rng.permutation(items).tolist():
            # In each round, another annotator judges an item.
            annotator = (item + number) % ANNOTATORS
            value = float(np.clip(truth[item] + bias[annotator] + rng.normal(0, 12), 0, 100).round())
            name = f"i{item}"
            answers.append(ImportedAnswer(f"{number}-{item}", f"annotator-{annotator}", (name,), {name: value}, 5.0))
    with Study.open(folder) as study:
        for start in range(0, len(answers), 10_000):
            study.import_answers(0, answers[start : start + 10_000])
    return folder


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a study with `steelyard serve`; give its address as soon as it answers."""
    environment = {**os.environ, "STEELYARD_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "steelyard", "serve", str(folder), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        url = next(match[1] for line in process.stdout if (match := re.search(r"(http://[^/\s]+)", line)))
        while True:
            try:
                httpx.get(f"{url}/static/icon.svg", timeout=60)
                break
            except httpx.TransportError:
                time.sleep(0.02)
        yield url
    finally:
        process.terminate()
        process.wait()


def measure(browser: Any, folder: Path, what: str) -> tuple[float, float]:
    """Start a server and open the page; return the seconds of the start, and from then until it is on the page."""
    tab, condition = CONDITIONS[what]
    launched = time.perf_counter()
    with serving(folder) as url:
        begin = time.perf_counter()
        context = browser.new_context()
        page = context.new_page()
        # The link of the terminal leads to the studies; the redirect from there is part of what is measured.
        page.goto(f"{url}/manage/?token={TOKEN}", wait_until="commit")
        page.goto(f"{url}/manage/bench/{tab}", wait_until="commit")
        page.wait_for_function(f"() => {condition}", timeout=120_000, polling=20)
        seconds = time.perf_counter() - begin
        context.close()
    return begin - launched, seconds


def main() -> None:
    """Print the times, the median of several starts."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for items, judgments in SIZES:
            folder = make_study(Path(scratch) / f"study-{judgments}", items, judgments)
            for what in CONDITIONS:
                results = sorted(measure(browser, folder, what) for _ in range(RUNS))
                start = float(np.median([one for one, _ in results]))
                times = ", ".join(f"{seconds:.2f}" for _, seconds in results)
                middle = float(np.median([seconds for _, seconds in results]))
                print(
                    f"{judgments:,} judgments of {items:,} items: {what} after {middle:.2f} s ({times}); "
                    f"the server takes {start:.1f} s to start",
                    flush=True,
                )
        browser.close()


if __name__ == "__main__":
    main()
