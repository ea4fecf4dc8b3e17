"""How many answers a second a server takes, how long each waits, and how both grow with the study (make bench-load).

For each engine the study grows to 1,000, 10,000, 100,000 and 1,000,000 judgments of 10,000 items; at each size a server
is started (one process, 50 annotators at once, as in bench_web) and measured twice: with people who look at each task
for two seconds, for the waiting times they would see, and with people who do not look at all, for the most it takes.
Older judgments are written straight into the log: a pick and an answer each, as asking and telling would.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from benchmarks.bench_web import ITEMS, PEOPLE, bare_commits, crowd
from benchmarks.served_study import TOKEN
from steelyard import Study
from steelyard.storage import Store, StoredTask
from steelyard.study import events as ev
from steelyard.study.log import append_event
from tests.postgres import PostgresServer, find_postgres
from tests.web.processes import ServeProcess

SIZES = (1_000, 10_000, 100_000, 1_000_000)
EACH_JUDGED = 1000
"""How many judgments each of the earlier annotators gave."""

_CHUNK = 20_000


def make(folder: Path) -> None:
    """Write the study's files."""
    (folder / "items.csv").write_text("id,text\n" + "".join(f"i{n},item {n}\n" for n in range(ITEMS)))
    (folder / "study.toml").write_text(
        'name = "bench"\ntitle = "B"\nquestion = "Q"\nitems = "items.csv"\n[protocol]\nname = "direct"\n'
        '[design]\nname = "per_item"\njudgments = 2000\n[annotators]\nmax_tasks = 100000\n'
    )


def grow(folder: Path, database: str, size: int) -> None:
    """Bring the log to so many judgments."""
    with Study.open(folder, database=database) as study:
        judgment_count = study.status().judgments
        design = study.config.stages[0].design
    common: dict[str, Any] = {
        "stage": 0,
        "slot": None,
        "design": design.name,
        "settings": design.settings(),
        "seed": 0,
    }
    common |= {"round": 0, "weight": 1.0, "propensity": 1e-4}
    with Store.open(database, "bench") as store:
        for start in range(judgment_count, size, _CHUNK):
            with store.write() as writer:
                tasks = []
                for number in range(start, min(size, start + _CHUNK)):
                    person, nth = divmod(number, EACH_JUDGED)
                    # 61 has no factor in common with the number of items: nobody sees one twice.
                    item, at = f"i{(37 * person + 61 * nth) % ITEMS}", time.time_ns() // 1000
                    who = {"annotator": f"old-{person}", "judgment_id": uuid.uuid4().hex}
                    end = at + 60_000_000
                    pick = ev.Picked(**common, items=(item,), state=writer.digest, lease_end=end)
                    picked = append_event(writer, pick, at=at, **who)
                    answer = ev.Judged(stage=0, items=(item,), answer={item: 50}, seconds=3.0)
                    event = append_event(writer, answer, at=at, **who)
                    tasks.append(
                        StoredTask(
                            who["judgment_id"], who["annotator"], 0, (item,), "answered", end, picked.seq, event.seq
                        )
                    )
                writer.add_tasks(tasks)


def processor_seconds(process: int) -> float:
    """How long a process has computed; unlike the clock it does not count others' work."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def p95(values: list[float]) -> float:
    """The time that nineteen of twenty stay below."""
    return statistics.quantiles(values, n=20)[-1]


def measure(folder: Path, database: str, size: int, lasting: float) -> None:
    """Serve the study at one size and print its row."""
    server = ServeProcess([folder], token=TOKEN, database=database)
    began = time.perf_counter()
    server.start()
    up, computed = time.perf_counter() - began, processor_seconds(server.pid)
    try:
        asyncio.run(crowd(server.url, 0.2, 2))
        looking = asyncio.run(crowd(server.url, 2.0, lasting))
        before, began = processor_seconds(server.pid), time.perf_counter()
        pushing = asyncio.run(crowd(server.url, 0.0, lasting))
        rate = len(pushing.submit) / (time.perf_counter() - began)
        each = (processor_seconds(server.pid) - before) / (len(pushing.submit) + len(pushing.fetch)) * 1e3
    finally:
        server.end(signal.SIGINT)
    print(
        f"{size:>10,}{up:>9.1f}{computed:>9.1f}{rate:>12.0f}{each:>12.2f}"
        f"{p95(looking.submit):>12.1f}{p95(looking.fetch):>12.1f}{p95(pushing.submit):>13.1f}"
        f"{looking.refused + pushing.refused:>9}",
        flush=True,
    )


def run(engine: str, database: str, folder: Path, wanted: argparse.Namespace) -> None:
    """Print an engine's table."""
    disk = statistics.median(bare_commits(folder))
    print(f"{engine}: load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; a bare commit to disk {disk:.1f} ms")
    print(
        f"{'judgments':>10}{'up in s':>9}{'cpu s':>9}{'submits/s':>12}{'cpu ms each':>12}"
        f"{'submit p95':>12}{'fetch p95':>12}{'pushed p95':>13}{'refused':>9}"
    )
    for size in SIZES:
        if size <= wanted.most:
            grow(folder, database, size)
            measure(folder, database, size, wanted.lasting)


def main() -> None:
    """Print a table for each engine."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=1_000_000, help="how far the study grows")
    parser.add_argument("--lasting", type=float, default=20.0, help="seconds of each measurement")
    parser.add_argument("--engine", choices=["sqlite", "postgresql"], default=None)
    options = parser.parse_args()
    print(f"{ITEMS:,} items, {PEOPLE} annotators at once over HTTP, one server process; times in ms (goal: p95 < 50)")
    if options.engine != "postgresql":
        with tempfile.TemporaryDirectory() as place:
            make(Path(place))
            run("SQLite", f"sqlite:///{place}/study.db", Path(place), options)
    binaries = find_postgres()
    if options.engine == "sqlite" or binaries is None:
        return
    with tempfile.TemporaryDirectory() as place, PostgresServer.start(binaries) as server:
        make(Path(place))
        run("PostgreSQL", server.new_database("load"), Path(place), options)


if __name__ == "__main__":
    main()
