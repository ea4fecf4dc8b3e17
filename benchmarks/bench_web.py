"""fetch-next and submit over HTTP: 10,000 items and 100,000 judgments in SQLite, one process, 50 annotators at once.

Each annotator works as on the page: fetch, look, submit, fetch. `--looks` says how long they look, drawn anew each
time from half to one and a half of it (2 seconds, which is faster than people are); with 0 nobody looks at all, and
what is measured is how much the server can take. A busy machine shows: compare with the bare commit of the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import secrets
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np

from steelyard import Study
from steelyard.study.study import ImportedAnswer

ITEMS = 10_000
JUDGMENTS = 100_000
PEOPLE = 50
STAGES = {
    "direct, per_item": ('name = "direct"', 'name = "per_item"\njudgments = 2000', 1),
    "best_worst, random_tuples": ('name = "best_worst"', 'name = "random_tuples"\njudgments = 2000', 4),
}


@dataclass
class Times:
    """Milliseconds of each request, by what was asked."""

    fetch: list[float] = field(default_factory=list)
    submit: list[float] = field(default_factory=list)
    refused: int = 0
    is_over: bool = False
    """Set to end the work early."""


def make(folder: Path, protocol: str, design: str, size: int) -> None:
    """Make the study with its items and judgments."""
    (folder / "items.csv").write_text("id,text\n" + "".join(f"i{n},item {n}\n" for n in range(ITEMS)))
    (folder / "study.toml").write_text(
        f'name = "bench"\ntitle = "B"\nquestion = "Q"\nitems = "items.csv"\n[protocol]\n{protocol}\n'
        f"[design]\n{design}\n[annotators]\nmax_tasks = 100000\n"
    )
    rng = np.random.default_rng(0)
    answers = []
    for number in range(JUDGMENTS):
        ids = tuple(f"i{n}" for n in rng.choice(ITEMS, size, replace=False))
        answer = {ids[0]: 50} if size == 1 else {"best": ids[0], "worst": ids[-1]}
        answers.append(ImportedAnswer(f"old-{number}", f"old-{number % 200}", ids, answer, 3.0))
    with Study.open(folder) as study:
        study.import_answers(0, answers)


def start(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """Start `steelyard serve`; return it and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "steelyard", "serve", str(folder), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    for line in process.stdout:
        match = re.search(r"(http://\S+?)/s/", line)
        if match:
            return process, match[1]
    raise RuntimeError("the server did not start")


async def annotator(
    url: str, crowd: str, number: int, everybody: asyncio.Barrier, seconds: float, look: float, times: Times
) -> None:
    """Come in, wait for the others, and work until the time is over."""
    rng = np.random.default_rng(number)
    # Each comes from an address of their own: the limits for one address are not what is measured.
    place = httpx.AsyncHTTPTransport(local_address=f"127.0.1.{number + 1}")
    async with httpx.AsyncClient(base_url=f"{url}/api/v1/studies/bench", timeout=60, transport=place) as http:
        welcome = await http.post("/session", json={"name": f"{crowd}-{number}"})
        http.headers["X-CSRF-Token"] = welcome.json()["csrf"]
        await everybody.wait()
        until = time.perf_counter() + seconds
        await asyncio.sleep(look * rng.random())
        while time.perf_counter() < until and not times.is_over:
            began = time.perf_counter()
            got = await http.post("/tasks", json={"count": 1})
            fetched = time.perf_counter()
            if got.status_code != 200:
                times.refused += 1
                await asyncio.sleep(0.2)
                continue
            times.fetch.append((fetched - began) * 1e3)
            await asyncio.sleep(look * (0.5 + rng.random()))
            task = got.json()["tasks"][0]
            ids = [item["id"] for item in task["items"]]
            answer = {ids[0]: 50} if len(ids) == 1 else {"best": ids[0], "worst": ids[-1]}
            body = {"judgment_id": task["judgment_id"], "answer": answer, "seconds": 2.0}
            began = time.perf_counter()
            response = await http.post("/judgments", json=body)
            times.submit.append((time.perf_counter() - began) * 1e3)
            times.refused += response.status_code != 200


async def crowd(url: str, look: float, seconds: float, times: Times | None = None) -> Times:
    """Let all annotators work at once, until the time is over or `times.is_over` is set."""
    times, everybody, name = times or Times(), asyncio.Barrier(PEOPLE), secrets.token_hex(4)
    await asyncio.gather(*(annotator(url, name, number, everybody, seconds, look, times) for number in range(PEOPLE)))
    return times


def bare_commits(folder: Path, count: int = 200) -> list[float]:
    """Milliseconds of a commit that does nothing else: what the disk takes before we do anything."""
    times = []
    with sqlite3.connect(folder / "bare.db", isolation_level=None) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("CREATE TABLE t (x)")
        for number in range(count):
            began = time.perf_counter()
            database.execute("INSERT INTO t VALUES (?)", (number,))
            times.append((time.perf_counter() - began) * 1e3)
    database.close()
    return times


def show(name: str, values: list[float]) -> str:
    """The figures of one kind of request."""
    p95 = statistics.quantiles(values, n=20)[-1]
    return f"{name} p50 {statistics.median(values):5.1f} ms, p95 {p95:5.1f} ms, worst {max(values):6.1f} ms"


def main() -> None:
    """Print the figures for each design."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--looks", type=float, nargs="+", default=[2.0, 0.0], help="seconds an annotator looks at a task"
    )
    parser.add_argument("--lasting", type=float, default=20.0, help="how long to measure")
    options = parser.parse_args()
    print(f"{ITEMS:,} items, {JUDGMENTS:,} judgments, {PEOPLE} annotators, one process, SQLite (goal: p95 < 50 ms)")
    for name, (protocol, design, size) in STAGES.items():
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            make(folder, protocol, design, size)
            server, url = start(folder)
            try:
                disk = show("a bare commit", bare_commits(folder))
                print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {disk}")
                asyncio.run(crowd(url, 0.2, 2))
                for look in options.looks:
                    began = time.perf_counter()
                    times = asyncio.run(crowd(url, look, options.lasting))
                    rate = (len(times.fetch) + len(times.submit)) / (time.perf_counter() - began)
                    how = f"looking {look:g} s" if look else "looking not at all (the most it takes)"
                    print(f"{name}, {how}: {rate:.0f} requests/s, {times.refused} refused")
                    print(f"  {show('fetch-next', times.fetch)}\n  {show('submit    ', times.submit)}", flush=True)
            finally:
                server.terminate()
                server.wait(20)


if __name__ == "__main__":
    main()
