"""How long annotators wait while a command works on the study they judge (make bench-maintenance).

A study is grown as in `benchmarks.load` and served by one process; 50 annotators look at each task for a second. Then
one command after another runs beside them. For each, the table shows how long it took, and how long annotators waited
for a response: at the median, the 95th percentile, and at most (goal: nobody longer than 1 s).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from benchmarks.bench_web import ITEMS, Times, crowd
from benchmarks.load import EACH_JUDGED, grow, make, p95, processor_seconds
from benchmarks.served_study import TOKEN
from tests.postgres import PostgresServer, find_postgres
from tests.web.processes import ServeProcess

LOOK_SECONDS = 1.0
BASELINE_SECONDS = 15.0


def steelyard(database: str, *arguments: str) -> Callable[[str], None]:
    """Return a function that runs a command; its argument, the server's address, is not needed."""

    def run(url: str) -> None:
        command = [sys.executable, "-m", "steelyard", *arguments]
        environment = {**os.environ, "STEELYARD_DATABASE": database}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)

    return run


def look_at_dashboard(url: str) -> None:
    """Open the dashboard and wait until the scores have been computed twice."""
    with httpx.Client(base_url=url, timeout=600, headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        for _ in range(2):
            http.get("/api/v1/studies/bench/manage/summary").raise_for_status()
            http.get("/api/v1/studies/bench/manage/tables/scores").raise_for_status()
            time.sleep(5)


def write_judgments(path: Path, count: int) -> None:
    """Write a file of judgments to import: by annotators who are not in the study yet."""
    rows = [f"new-{n // EACH_JUDGED},i{(61 * n) % ITEMS},{n % 101}\n" for n in range(count)]
    path.write_text("annotator,item,value\n" + "".join(rows))


def measure(name: str, url: str, server: int, run: Callable[[str], None]) -> Times:
    """Run a command while annotators work; print how long they waited."""
    times = Times()

    async def both() -> float:
        work = asyncio.create_task(crowd(url, LOOK_SECONDS, 3600, times))
        await asyncio.sleep(3)
        times.fetch.clear()
        times.submit.clear()
        began = time.perf_counter()
        await asyncio.to_thread(run, url)
        seconds = time.perf_counter() - began
        times.is_over = True
        await work
        return seconds

    before = processor_seconds(server)
    seconds = asyncio.run(both())
    waits = times.fetch + times.submit
    used = processor_seconds(server) - before
    print(
        f"{name:<12}{seconds:>9.1f}{used:>12.1f}{len(waits):>10,}{statistics.median(waits):>9.1f}{p95(waits):>9.1f}"
        f"{max(waits):>9.0f}{times.refused:>9}",
        flush=True,
    )
    return times


def run_all(engine: str, folder: Path, database: str, options: argparse.Namespace) -> None:
    """Print the table of one engine."""
    grow(folder, database, options.size)
    file = folder / "more.csv"
    write_judgments(file, options.imported)
    place = str(folder)
    commands: dict[str, Callable[[str], None]] = {
        "nothing": lambda url: time.sleep(BASELINE_SECONDS),
        "forget": steelyard(database, "forget", place, "old-0", "--yes"),
        "import": steelyard(database, "import", place, str(file)),
        "backup": steelyard(database, "backup", place, "-o", f"{place}-backup.steelyard"),
        "export": steelyard(database, "export", place, "--what", "log", "-o", f"{place}-log.jsonl"),
        "dashboard": look_at_dashboard,
    }
    print(f"{engine}: {options.size:,} judgments, load {os.getloadavg()[0]:.1f}; waits in ms")
    columns = f"{'requests':>10}{'median':>9}{'p95':>9}{'longest':>9}{'refused':>9}"
    print(f"{'command':<12}{'seconds':>9}{'server cpu':>12}{columns}")
    server = ServeProcess([folder], token=TOKEN, database=database)
    server.start()
    try:
        for name in options.only or commands:
            measure(name, server.url, server.pid, commands[name])
    finally:
        server.end(signal.SIGINT)
        for left in Path(tempfile.gettempdir()).glob(f"{folder.name}-*"):
            left.unlink()


def main() -> None:
    """Print a table for each engine."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=1_000_000, help="judgments in the study")
    parser.add_argument("--imported", type=int, default=50_000, help="judgments in the imported file")
    parser.add_argument("--engine", choices=["sqlite", "postgresql"], default=None)
    parser.add_argument("--only", nargs="+", help="commands to run")
    parser.add_argument("--folder", type=Path, help="keep the SQLite study here, to grow it only once")
    options = parser.parse_args()
    if options.engine != "postgresql":
        with tempfile.TemporaryDirectory() as place:
            folder = options.folder or Path(place)
            if not (folder / "study.toml").exists():
                folder.mkdir(exist_ok=True)
                make(folder)
            run_all("SQLite", folder, f"sqlite:///{folder}/study.db", options)
    binaries = find_postgres()
    if options.engine == "sqlite" or binaries is None:
        return
    with tempfile.TemporaryDirectory() as place, PostgresServer.start(binaries) as server:
        make(Path(place))
        run_all("PostgreSQL", Path(place), server.new_database("load"), options)


if __name__ == "__main__":
    main()
