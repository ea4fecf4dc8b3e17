"""A server that is killed repeatedly while annotators use it, and the invariants that must hold afterwards.

The short form runs in the tests, the full one by `make crash` and `make workers` (benchmarks/crash.py).
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg

from steelyard import Study
from steelyard.designs import PerItem
from steelyard.study import differing_picks, rebuild
from steelyard.study.events import Event
from tests.durability.crowd import Crowd, CrowdRecord, Place
from tests.study.crowds import SETUPS, answer_as, check_places, check_shown_once, write_items
from tests.web.processes import ServeProcess

DESIGNS = ("per_item", "balanced_tuples", "match_quality")
"""A design that counts items, one that plans its tasks, and one that learns from the answers."""

PROTOCOLS = {"per_item": 'name = "error_spans"'}
"""Protocols that are not those of the crowds: marks of errors are the longest answers."""

TOKEN = "the-manager-of-these-crashes"
SHORT_LEASE, LONG_LEASE = 4.0, 20.0
"""Leases in seconds: the short one ends while a server is down, the long one only if its annotator leaves."""
_AT_WORK = 10
"""Minimum number of answers acknowledged between two kills."""


@dataclass
class Tally:
    """Counts over a run and its checks."""

    kills: int = 0
    kills_during_requests: int = 0
    """Kills while an annotator waited for a response."""
    kills_at_start: int = 0
    seconds: float = 0.0
    acknowledged: int = 0
    sent_again: int = 0
    """Answers on disk whose acknowledgement was lost: they were sent again, and counted once."""
    late: int = 0
    expired: int = 0
    events: int = 0
    finished_with: int = 0
    """Number of judgments that completed the studies afterwards."""
    counts: Counter[str] = field(default_factory=Counter)


def make_studies(place: Path, items: int, each: int, lease: float = SHORT_LEASE) -> list[Path]:
    """Write a study for each design; `lease` is in seconds."""
    folders = []
    for design in DESIGNS:
        folder = place / design
        folder.mkdir()
        protocol, settings = SETUPS[design]
        protocol = PROTOCOLS.get(design, protocol)
        (folder / "study.toml").write_text(
            f'name = "{design}"\ntitle = "{design}"\nquestion = "Which?"\nitems = "items.csv"\n'
            f"[protocol]\n{protocol}\n[design]\n{settings.format(each=each)}\n"
            f"[annotators]\nlease_minutes = {lease / 60}\n"
        )
        write_items(folder, design, items)
        folders.append(folder)
    return folders


def crash(
    folders: list[Path], database: str | None, *, people: int, kills: int, delay: float, seed: int, log: Path
) -> Tally:
    """Kill a server `kills` times while annotators use it; return the counts."""
    process = ServeProcess(folders, token=TOKEN, database=database, log=log)
    return _run(process, folders, database, people, delay, seed, kills=kills, lasting=0.0)


def several_workers(
    folders: list[Path], database: str, *, workers: int, people: int, lasting: float, delay: float, seed: int, log: Path
) -> Tally:
    """Serve annotators with several processes for some seconds; return the counts."""
    process = ServeProcess(folders, token=TOKEN, workers=workers, database=database, log=log)
    return _run(process, folders, database, people, delay, seed, kills=0, lasting=lasting, workers=workers)


def _run(
    process: ServeProcess,
    folders: list[Path],
    database: str | None,
    people: int,
    delay: float,
    seed: int,
    *,
    kills: int,
    lasting: float,
    workers: int = 1,
) -> Tally:
    tally = Tally()
    places = []
    for folder in folders:
        with Study.open(folder, database=database) as study:
            places.append(Place(folder.name.replace("_", "-"), study.config.stages[0].protocol))
    began = time.monotonic()
    process.start()
    if workers > 1:
        _wait_for_workers(str(database), len(folders) * workers)
    try:
        crowd, live = asyncio.run(_under_load(process, places, tally, people, delay, seed, kills, lasting))
    finally:
        process.end(signal.SIGKILL if kills else signal.SIGINT)
    tally.seconds = time.monotonic() - began
    with Study.open(folders[0], database=database) as study:
        time.sleep(_lease_of(study))
    for folder, place in zip(folders, places, strict=True):
        with Study.open(folder, database=database) as study:
            _check(study, crowd.records[place.slug], live[place.slug], tally)
    return tally


def _wait_for_workers(database: str, connections: int) -> None:
    """Wait until every worker has opened every study; otherwise the first one would serve all requests."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    give_up = time.monotonic() + 120
    with psycopg.connect(database, autocommit=True) as connection:
        while connection.execute(others).fetchall()[0][0] < connections:
            assert time.monotonic() < give_up, "not all workers came up"
            time.sleep(0.05)


async def _under_load(
    process: ServeProcess,
    places: list[Place],
    tally: Tally,
    people: int,
    delay: float,
    seed: int,
    kills: int,
    lasting: float,
) -> tuple[Crowd, dict[str, dict[str, object]]]:
    crowd = Crowd(process.url, places, people, delay, seed)
    crowd.begin()
    if kills:
        await _kill(process, crowd, tally, kills, random.Random(seed))
    else:
        until = time.monotonic() + lasting
        # On a slow machine it takes longer until every annotator has answered.
        while time.monotonic() < until or crowd.acknowledged < 3 * people:
            assert time.monotonic() < until + 120, "too few answers are acknowledged"
            await asyncio.sleep(0.5)
            crowd.check_alive()
    await asyncio.sleep(1)
    await crowd.end()
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as manager:
        live = {
            place.slug: (await manager.get(f"{process.url}/api/v1/studies/{place.slug}/manage/summary")).json()
            for place in places
        }
    return crowd, live


async def _kill(process: ServeProcess, crowd: Crowd, tally: Tally, kills: int, rng: random.Random) -> None:
    """Kill the server at random times, and restart it each time."""
    while tally.kills < kills:
        # On a slow machine it takes a while until annotators answer again.
        wanted, patience = crowd.acknowledged + _AT_WORK, time.monotonic() + 30
        await asyncio.sleep(0.1 + rng.random())
        while crowd.acknowledged < wanted and time.monotonic() < patience:
            await asyncio.sleep(0.02)
        await asyncio.sleep(rng.random() / 2)
        crowd.check_alive()
        tally.kills_during_requests += crowd.waiting > 0
        await asyncio.to_thread(process.end, signal.SIGKILL)
        tally.kills += 1
        while tally.kills < kills and rng.random() < 0.15:
            # Killed again while it starts, possibly while it opens its databases.
            process.launch()
            await asyncio.sleep(3 * rng.random())
            await asyncio.to_thread(process.end, signal.SIGKILL)
            tally.kills += 1
            tally.kills_at_start += 1
        await asyncio.to_thread(process.start)


def _check(study: Study, record: CrowdRecord, live: dict[str, object], tally: Tally) -> None:
    """Compare a study with the annotators' record, its design, the live server's counts, and its own log."""
    assert record.failures == []
    events = list(study.events())
    counted = Counter(event.judgment_id for event in events if event.kind == "judgment")
    assert set(counted.values()) <= {1}, "an answer is there twice"
    lost = set(record.acknowledged) - set(counted)
    assert not lost, f"{len(lost)} acknowledged answers are lost"
    assert set(counted) <= set(record.sent), "an answer is there that nobody sent"
    answers = {event.judgment_id: event for event in events if event.kind in {"judgment", "revision"}}
    for key, answer in record.acknowledged.items():
        assert answers[key].data.answer == answer, f"{key} is not as it was acknowledged"
        # A sign-in that was repeated because its response was lost got a suffix, as for a name in use.
        assert str(answers[key].annotator).partition("~")[0] == record.sent[key]
    status = study.status()
    assert live["judgments"] == status.judgments == len(counted), "the server's count differs from the log"
    check_shown_once(events)
    check_places(study, events)
    _check_quota(study, events)
    assert differing_picks(events) == [], "a pick does not replay"
    tally.acknowledged += len(record.acknowledged)
    first = {event.judgment_id: event.at for event in events if event.kind == "judgment"}
    tally.sent_again += sum(first[key] < record.last_try[key] for key in record.acknowledged)
    tally.late += status.late
    tally.counts += record.counts
    _check_leases(study)
    tally.finished_with += _finish(study)
    _check_rebuilt(study)
    tally.expired += study.status().expired
    tally.events += sum(1 for _ in study.events())


def _check_quota(study: Study, events: list[Event]) -> None:
    """No item is assigned more often than the design allows, except for answers after their lease."""
    leases: Counter[str] = Counter()
    tasks = {}
    for event in events:
        if event.kind == "picked":
            design = study.config.stages[event.data.stage].design
            if not isinstance(design, PerItem):
                return
            tasks[event.judgment_id] = event.data.items
            for item in event.data.items:
                assert leases[item] < design.judgments, f"{item} is over-assigned"
                leases[item] += 1
        elif event.kind in {"expired", "skip"}:
            leases.subtract(tasks[event.judgment_id])


def _check_leases(study: Study) -> None:
    """The next request releases every task whose lease has ended."""
    study.ask("a-later-annotator")
    now = time.time_ns() // 1000
    with study._log.write() as transaction:
        assert transaction.store.untimely_tasks(now, 2 * now) == []


def _lease_of(study: Study) -> float:
    return study.config.annotators.lease_minutes * 60


def _finish(study: Study) -> int:
    """Complete the study with new annotators; a task lost in a crash would make that impossible."""
    done = 0
    for number in range(1000):
        answers = answer_as(study, f"fresh-{number}", 10_000, seed=number)
        done += len(answers)
        (stage,) = study.status().stages
        if stage.done >= stage.total:
            return done
        if not answers:
            # The last tasks may still be leased; their leases end soon.
            time.sleep(_lease_of(study) / 8)
    raise AssertionError(f"the study cannot be completed: {study.status()}")


def _check_rebuilt(study: Study) -> None:
    """Status, judgments and scores rebuilt from the log equal those of the live study."""
    again = study.folder / f"rebuilt-{os.getpid()}.db"
    with rebuild(study.events(), study.folder, f"sqlite:///{again}") as rebuilt:
        assert rebuilt.status() == study.status()
        assert rebuilt.judgments().equals(study.judgments())
        assert rebuilt.scores().write_csv() == study.scores().write_csv()
