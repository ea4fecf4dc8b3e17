"""Many annotators at once: threads and processes, SQLite and PostgreSQL."""

from __future__ import annotations

import multiprocessing
import threading
from collections import Counter
from pathlib import Path

import pytest

from steelyard import Study
from tests.sizes import FULL

ITEMS, JUDGMENTS, PEOPLE = 12, 3, 8
PROCESSES = 4 if FULL else 3


def work(folder: str, database: str, annotator: str, failures: list[str] | None = None) -> None:
    try:
        with Study.open(folder, database=database) as study:
            while (task := study.ask(annotator)) is not None:
                study.tell(task, {item.id: 50 for item in task.items})
    except Exception as error:
        # A thread's failure must reach the test.
        if failures is None:
            raise
        failures.append(repr(error))


def check(folder: Path, database: str) -> None:
    with Study.open(folder, database=database) as study:
        frame = study.judgments()
        items = frame.explode("items")
        assert set(Counter(items["items"]).values()) == {JUDGMENTS}
        assert frame.height == ITEMS * JUDGMENTS
        assert items.select("annotator", "items").is_unique().all()
        status = study.status()
        assert (status.stages[0].done, status.stages[0].leased, status.late) == (ITEMS * JUDGMENTS, 0, 0)


@pytest.fixture
def folder(make_study) -> Path:
    path: Path = make_study(design=f"judgments = {JUDGMENTS}", items=ITEMS)
    return path


def test_threads_never_over_assign_or_lose_anything(folder, database_url):
    failures: list[str] = []
    threads = [
        threading.Thread(target=work, args=(str(folder), database_url, f"ann-{n}", failures)) for n in range(PEOPLE)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    check(folder, database_url)


def test_threads_may_share_one_study(folder, database_url):
    failures: list[str] = []
    with Study.open(folder, database=database_url) as study:

        def share(annotator: str) -> None:
            try:
                while (task := study.ask(annotator)) is not None:
                    study.tell(task, {item.id: 50 for item in task.items})
            except Exception as error:
                failures.append(repr(error))

        threads = [threading.Thread(target=share, args=(f"ann-{n}",)) for n in range(PEOPLE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    check(folder, database_url)


@pytest.mark.slow
def test_processes_never_over_assign_or_lose_anything(folder, database_url):
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=work, args=(str(folder), database_url, f"ann-{n}")) for n in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=120)
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    check(folder, database_url)
