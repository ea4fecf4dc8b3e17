"""The dashboard of a large study: first paint, its tables and figures, and whether annotators notice it."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.served_study import CHROMIUM, NAME, TOKEN, make_study, serving

ITEMS, JUDGMENTS, ANNOTATORS = 10_000, 100_000, 500


def timed(act: Callable[[], Any], times: int = 20) -> float:
    """Return the median time of an act, in milliseconds."""
    durations = []
    for _ in range(times):
        begin = time.perf_counter()
        act()
        durations.append(time.perf_counter() - begin)
    return 1000 * statistics.median(durations)


class Annotator:
    """Judges through the API, and takes the time."""

    def __init__(self, url: str, name: str) -> None:
        self.http = httpx.Client(base_url=f"{url}/api/v1/studies/{NAME}", timeout=60)
        self.csrf = self.http.post("/session", json={"name": name}).json()["csrf"]

    def judge(self, until: Callable[[], bool]) -> list[float]:
        """Fetch and answer tasks until told to stop; return the times of all requests, in milliseconds."""
        durations = []
        headers = {"X-CSRF-Token": self.csrf}
        while not until():
            begin = time.perf_counter()
            [task] = self.http.post("/tasks", json={"count": 1}, headers=headers).json()["tasks"]
            between = time.perf_counter()
            answer = {"judgment_id": task["judgment_id"], "answer": {task["items"][0]["id"]: 50}, "seconds": 3}
            assert self.http.post("/judgments", json=answer, headers=headers).status_code == 200
            durations += [1000 * (between - begin), 1000 * (time.perf_counter() - between)]
            time.sleep(0.02)
        return durations


def first_paint(url: str) -> list[float]:
    """Open the dashboard in Chromium a few times; return when something was first painted, in milliseconds."""
    from playwright.sync_api import sync_playwright

    results = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for _ in range(5):
            context = browser.new_context()
            page = context.new_page()
            page.goto(f"{url}/manage/?token={TOKEN}")
            page.goto(f"{url}/manage/{NAME}/")
            page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length > 0")
            entry = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            results.append(float(page.evaluate(entry)))
            context.close()
        browser.close()
    return results


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as scratch:
        begin = time.perf_counter()
        folder = make_study(Path(scratch) / NAME, items=ITEMS, judgments=JUDGMENTS, annotators=ANNOTATORS)
        print(f"{ITEMS:,} items, {JUDGMENTS:,} judgments, made in {time.perf_counter() - begin:.1f} s")
        with serving(folder) as url:
            manager = httpx.Client(
                base_url=f"{url}/api/v1/studies/{NAME}/manage",
                headers={"Authorization": f"Bearer {TOKEN}"},
                timeout=120,
            )
            annotator = Annotator(url, "somebody")
            quiet_until = time.perf_counter() + 4
            quiet = annotator.judge(lambda: time.perf_counter() > quiet_until)
            if Path(CHROMIUM).exists():
                cold = first_paint(url)
                print(f"first paint while the figures are computed: {', '.join(f'{ms:.0f}' for ms in cold)} ms")
            begin = time.perf_counter()
            while manager.get("/summary").json()["as_of"] is None:
                time.sleep(0.2)
            print(f"first figures after another {time.perf_counter() - begin:.1f} s")
            while manager.get("/summary").json()["reliability_as_of"] is None:
                time.sleep(0.2)
            print(f"reliability after {time.perf_counter() - begin:.1f} s")
            if Path(CHROMIUM).exists():
                print(f"first paint with figures: {', '.join(f'{ms:.0f}' for ms in first_paint(url))} ms")
            print(f"summary {timed(lambda: manager.get('/summary')):.0f} ms")
            print(f"a page of the scores {timed(lambda: manager.get('/tables/scores?sort=score&search=7')):.0f} ms")
            print(f"an item's page {timed(lambda: manager.get('/item?id=i77'), 3):.0f} ms")
            print(f"a chart {timed(lambda: manager.get('/charts/scores.svg'), 3):.0f} ms")
            watched_until = time.perf_counter() + 15

            def watched() -> bool:
                # The dashboard is open all the while, so everything is computed again and again.
                return time.perf_counter() > watched_until

            with manager.stream("GET", "/live"):
                busy = annotator.judge(watched)
            p95 = [float(np.percentile(times, 95)) for times in (quiet, busy)]
            print(
                f"an annotator's requests, p95: {p95[0]:.0f} ms unwatched, {p95[1]:.0f} ms while figures are computed"
            )


if __name__ == "__main__":
    main()
