"""A hundred kills under fifty annotators, and two hundred annotators on four workers; everything is counted.

python -m benchmarks.crash: servers killed with SIGKILL at random moments, on SQLite and PostgreSQL (make crash).
python -m benchmarks.crash --workers 4: several processes on one PostgreSQL (make workers).
The short forms are in tests/durability/test_crashes.py; any broken promise raises.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import warnings
from pathlib import Path

from steelyard.errors import SteelyardWarning
from tests.durability.crashes import DESIGNS, LONG_LEASE, SHORT_LEASE, Tally, crash, make_studies, several_workers
from tests.postgres import PostgresServer, find_postgres

EACH = 5


def show(engine: str, tally: Tally) -> None:
    """Print what was counted."""
    rate = tally.acknowledged / tally.seconds
    print(f"{engine}: {tally.kills} kills in {tally.seconds:.0f} s, {tally.kills_during_requests} during requests,")
    print(f"  {tally.kills_at_start} while starting; load now {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(
        f"  {tally.acknowledged:,} judgments acknowledged ({rate:.0f} a second), each in the log once, as acknowledged"
    )
    print(
        f"  {tally.sent_again:,} of them were on disk when the server died before saying so: sent again, counted once"
    )
    print(f"  {tally.late:,} late, {tally.expired:,} leases ran out; nothing stuck, nothing over-assigned")
    print(
        f"  completed afterwards with {tally.finished_with:,} more; scores rebuilt from {tally.events:,} events equal"
    )
    print("  " + ", ".join(f"{count:,} {what}" for what, count in sorted(tally.counts.items())), flush=True)


def run(engine: str, database: str | None, arguments: argparse.Namespace) -> None:
    """Run one engine's half."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        lease = LONG_LEASE if arguments.workers else SHORT_LEASE
        folders = make_studies(place, arguments.items, EACH, lease)
        log = place / "server.log"
        if arguments.workers:
            assert database is not None
            tally = several_workers(
                folders,
                database,
                workers=arguments.workers,
                people=arguments.people,
                lasting=arguments.lasting,
                delay=arguments.delay,
                seed=arguments.seed,
                log=log,
            )
        else:
            tally = crash(
                folders,
                database,
                people=arguments.people,
                kills=arguments.kills,
                delay=arguments.delay,
                seed=arguments.seed,
                log=log,
            )
        show(engine, tally)
        assert "Traceback" not in log.read_text(), log.read_text()


def main() -> None:
    """Run what was asked for."""
    warnings.simplefilter("ignore", SteelyardWarning)
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--workers", type=int, default=0, help="serve with so many processes, and kill nothing")
    parser.add_argument("--people", type=int, default=None, help="annotators: 50, or 200 with --workers")
    parser.add_argument("--lasting", type=float, default=60.0, help="seconds under load with --workers")
    parser.add_argument("--delay", type=float, default=0.5, help="seconds until an annotator answers")
    parser.add_argument("--items", type=int, default=1000, help="items of each study; they must not run out meanwhile")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=["sqlite", "postgresql"], default=None)
    arguments = parser.parse_args()
    arguments.people = arguments.people or (200 if arguments.workers else 50)
    print(
        f"{arguments.people} annotators over HTTP on {len(DESIGNS)} studies at once: {', '.join(DESIGNS)}", flush=True
    )
    if not arguments.workers and arguments.engine != "postgresql":
        run("SQLite", None, arguments)
    if arguments.engine == "sqlite":
        return
    binaries = find_postgres()
    if binaries is None:
        print("PostgreSQL is not installed: its half is left out.")
        return
    with PostgresServer.start(binaries) as server:
        run("PostgreSQL", server.new_database("crash"), arguments)


if __name__ == "__main__":
    main()
