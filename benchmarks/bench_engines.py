"""Fit Bradley–Terry to more comparisons than one would load: DuckDB under 2 GB beside a bare GROUP BY, and Spark.

Each job runs in a process of its own; that of DuckDB's fit is ended at once when it holds more than 2 GB.
Run: python -m benchmarks.bench_engines [--rows 1e6 1e7 1e8] [--items 10000] [--opponents 200] [--spark 1e7]
     make bench-engines
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

LIMIT = 2_000_000_000
ENGINE_SHARE = "800MB"
"""What DuckDB may take of the limit: the solver, polars and the libraries themselves want their part."""

PART = 5_000_000
BARE = "SELECT left_item, right_item, winner, COUNT(*) AS n FROM log GROUP BY left_item, right_item, winner"


def generate(folder: Path, rows: int, items: int, opponents: int, seed: int = 0) -> list[Path]:
    """Write comparisons between items and some opponents each, drawn from Bradley–Terry, in files of 5 million."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=items)
    names = pl.Series([f"item-{code:06}" for code in range(items)])
    words = pl.Series(["left", "right", "tie"])
    steps = 1 + rng.permutation(items - 1)[: max(1, opponents // 2)]
    files = []
    for start in range(0, rows, PART):
        count = min(PART, rows - start)
        left = rng.integers(0, items, count, np.int32)
        right = ((left + steps[rng.integers(0, len(steps), count)]) % items).astype(np.int32)
        swap = rng.random(count) < 0.5
        left, right = np.where(swap, right, left), np.where(swap, left, right)
        gap = theta[left] - theta[right] + rng.logistic(size=count)
        word = np.where(np.abs(gap) < 0.2, 2, (gap < 0).astype(np.int8))
        frame = pl.DataFrame(
            {
                "left": names.gather(left),
                "right": names.gather(right),
                "winner": words.gather(word),
            }
        )
        files.append(folder / f"part-{start // PART:03}.parquet")
        frame.write_parquet(files[-1], row_group_size=500_000)
    return files


def bare(folder: str) -> dict[str, float]:
    """Run the GROUP BY alone, in as much memory as it likes, and keep what it gives."""
    import duckdb

    with tempfile.TemporaryDirectory() as spill:
        connection = duckdb.connect(config={"temp_directory": spill})
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(
            'CREATE VIEW log AS SELECT "left" AS left_item, "right" AS right_item, winner '
            f"FROM read_parquet('{folder}/*.parquet')"
        )
        connection.execute(f"CREATE TEMP TABLE counted AS {BARE}")
        return {"groups": connection.sql("SELECT COUNT(*) AS n FROM counted").pl()["n"][0]}


def duckdb_fit(folder: str) -> dict[str, float]:
    """Fit with DuckDB."""
    from steelyard.engines import DuckDBEngine, fit_files
    from steelyard.models.comparisons.bradley_terry import BradleyTerry

    with DuckDBEngine(memory=ENGINE_SHARE) as engine:
        scores = fit_files(BradleyTerry(), f"{folder}/*.parquet", engine=engine).scores
    scores.write_parquet(f"{folder}/duckdb.scores")
    return {"items": scores.height}


def spark_fit(folder: str) -> dict[str, float]:
    """Fit with Spark on this machine."""
    from steelyard.engines import SparkEngine, fit_files
    from steelyard.models.comparisons.bradley_terry import BradleyTerry

    settings = {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "8"}
    with SparkEngine(settings=settings) as engine:
        scores = fit_files(BradleyTerry(), f"{folder}/*.parquet", engine=engine).scores
    scores.write_parquet(f"{folder}/spark.scores")
    return {"items": scores.height}


JOBS: dict[str, Callable[[str], dict[str, float]]] = {"bare": bare, "duckdb": duckdb_fit, "spark": spark_fit}


def watch() -> None:
    """End this process when it holds more memory than it may (RLIMIT_DATA would count what is merely reserved)."""
    page = os.sysconf("SC_PAGE_SIZE")
    while True:
        resident_bytes = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * page
        if resident_bytes > LIMIT:
            print(f"the process held {resident_bytes / 1e6:,.0f} MB", file=sys.stderr, flush=True)
            os._exit(3)
        time.sleep(0.02)


def run_job(name: str, folder: str) -> None:
    """Run one job here, and print what it took."""
    if name == "duckdb":
        threading.Thread(target=watch, daemon=True).start()
    began = time.perf_counter()
    result = JOBS[name](folder)
    took = {"seconds": time.perf_counter() - began, **used()}
    print(json.dumps(result | took))


def used() -> dict[str, float]:
    """Return the CPU time and the most memory that this process and those it started (Spark's JVM) took."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            fields = stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            parents[int(stat.parent.name)] = int(fields[1])
            ticks[int(stat.parent.name)] = int(fields[11]) + int(fields[12])
    family = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    cpu = sum(ticks.get(member, 0) for member in family) / os.sysconf("SC_CLK_TCK")
    return {"cpu": cpu, "peak_mb": sum(map(_peak, family)) / 1024}


def _peak(process: int) -> int:
    """Return the most memory a process ever held, in KiB."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return 0


def measured(name: str, folder: Path) -> dict[str, float]:
    """Run one job in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bench_engines", "--job", name, "--folder", str(folder)]
    quiet = os.environ | {"PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=quiet)
    measurements: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return measurements


def difference(folder: Path) -> float:
    """Return the largest difference between the scores and intervals of the two engines."""
    one, other = (pl.read_parquet(folder / f"{name}.scores").sort("item") for name in ("duckdb", "spark"))
    columns = ("score", "lower", "upper", "rank", "rank_lower", "rank_upper")
    return max(float((one[name] - other[name]).abs().max() or 0.0) for name in columns)  # type: ignore[arg-type]


def main() -> None:
    """Measure all sizes, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="*", type=float, default=[1e6, 1e7])
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--opponents", type=int, default=200)
    parser.add_argument("--spark", type=float, default=1e6, help="the largest size that Spark runs too; 0 for none")
    parser.add_argument("--job", choices=JOBS)
    parser.add_argument("--folder")
    options = parser.parse_args()
    if options.job:
        run_job(options.job, options.folder)
        return
    for rows in map(int, options.rows):
        with tempfile.TemporaryDirectory(prefix="steelyard-bench-") as name:
            folder = Path(name)
            files = generate(folder, rows, options.items, options.opponents)
            size = sum(file.stat().st_size for file in files) / 1e6
            print(f"\n{rows:,} comparisons of {options.items:,} items, {len(files)} files, {size:,.0f} MB", flush=True)
            seconds = {}
            for job in ("bare", "duckdb", *(["spark"] if rows <= options.spark else [])):
                took = measured(job, folder)
                seconds[job] = took
                times = took["seconds"] / seconds["bare"]["seconds"]
                goal = "  goal: under 3× and 2,000 MB" if job == "duckdb" else ""
                print(
                    f"  {job:8} {took['seconds']:8.1f} s  {took['cpu']:8.1f} s CPU  {took['peak_mb']:7,.0f} MB  "
                    f"{times:5.2f}×{goal}",
                    flush=True,
                )
            if "spark" in seconds:
                print(f"  largest difference between DuckDB and Spark: {difference(folder):.1e}")


if __name__ == "__main__":
    main()
