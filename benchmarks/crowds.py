"""Two hundred annotators at once on every design, in threads and in processes, on SQLite and PostgreSQL.

python -m benchmarks.crowds: the full form of tests/study/test_crowds.py (make crowds).
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from steelyard import Study
from tests.postgres import PostgresServer, find_postgres
from tests.study.crowds import EVERYTHING, MODES, SETUPS, check, write_items

PEOPLE, MOST, ITEMS = 200, 8, 400


def run(design: str, mode: str, database: str) -> tuple[int, float]:
    """Let the crowd work and check the log; return the judgments and the seconds."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        protocol, settings = SETUPS[design]
        url = database or f"sqlite:///{folder / 'crowd.db'}"
        (folder / "study.toml").write_text(
            f'title = "Crowd"\nname = "crowd"\nquestion = "Which?"\nitems = "items.csv"\n'
            f"[protocol]\n{protocol}\n[design]\n{settings.format(each=3)}\n"
        )
        write_items(folder, design, ITEMS)
        names = [f"ann-{number}" for number in range(PEOPLE)]
        start = time.perf_counter()
        count = MODES[mode](folder, url, names, MOST)
        seconds = time.perf_counter() - start
        with Study.open(folder, database=url) as study:
            check(study, count)
    return len(count), seconds


def main() -> None:
    """Print a row for each design, mode and engine; any broken promise raises."""
    binaries = find_postgres()
    print(f"{PEOPLE} annotators, up to {MOST} tasks each, {ITEMS} items; nothing over-assigned, lost or shown twice:")
    print(f"{'design':18}{'mode':12}{'engine':12}{'judgments':>10}{'seconds':>9}{'a second':>10}")
    for design, mode in EVERYTHING:
        _report(design, mode, "sqlite", *run(design, mode, ""))
    if binaries is None:
        print("PostgreSQL is not installed: its half is left out.")
    else:
        with PostgresServer.start(binaries) as server:
            for number, (design, mode) in enumerate(EVERYTHING):
                _report(design, mode, "postgresql", *run(design, mode, server.new_database(f"crowd_{number}")))


def _report(design: str, mode: str, engine: str, judgments: int, seconds: float) -> None:
    print(f"{design:18}{mode:12}{engine:12}{judgments:>10,}{seconds:>9.1f}{judgments / seconds:>10.0f}", flush=True)


if __name__ == "__main__":
    main()
