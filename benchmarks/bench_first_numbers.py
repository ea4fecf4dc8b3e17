"""How long the dashboard takes to show its first numbers, in a browser, right after the server starts.

The clock starts when the server answers its first request. The browser runs already; a page is opened at once. The
times are those until the number of judgments, the first scores (tab Results) and the verdict (tab Overview) are shown:
once for a study whose results were never computed, and once for one that was served before.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.served_study import CHROMIUM, NAME, TOKEN, make_study, serving
from steelyard.study.checkpoints import FOLDER

SIZES = ((150, 3_000), (1_000, 20_000))
ANNOTATORS = 50
RUNS = 3
CONDITIONS = {
    "counts": ("", "document.querySelector('[data-text=progress]')?.textContent.includes(' of ')"),
    "scores": ("results", "document.querySelector('#scores-table tbody a') !== null"),
    "verdict": ("", "!['', undefined].includes(document.querySelector('#verdict-sentence')?.textContent)"),
}
"""What is waited for: the tab that shows it, and the condition in the page."""


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
        page.goto(f"{url}/manage/{NAME}/{tab}", wait_until="commit")
        page.wait_for_function(f"() => {condition}", timeout=120_000, polling=20)
        seconds = time.perf_counter() - begin
        context.close()
    return begin - launched, seconds


def _print(size: str, what: str, was_served: bool, results: list[tuple[float, float]]) -> None:
    start = float(np.median([one for one, _ in results]))
    times = ", ".join(f"{seconds:.2f}" for _, seconds in results)
    middle = float(np.median([seconds for _, seconds in results]))
    when = "served before" if was_served else "first time"
    print(f"{size}, {when}: {what} after {middle:.2f} s ({times}); the server starts in {start:.1f} s", flush=True)


def main() -> None:
    """Print the times, the median of several starts."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for items, judgments in SIZES:
            folder = make_study(
                Path(scratch) / f"study-{judgments}",
                items=items,
                judgments=judgments,
                annotators=ANNOTATORS,
                model="calibrated_scale",
            )
            for was_served in (False, True):
                for what in CONDITIONS:
                    results = []
                    for _ in range(RUNS):
                        if not was_served:
                            shutil.rmtree(folder / FOLDER, ignore_errors=True)
                        results.append(measure(browser, folder, what))
                    _print(f"{judgments:,} judgments of {items:,} items", what, was_served, sorted(results))
        browser.close()


if __name__ == "__main__":
    main()
