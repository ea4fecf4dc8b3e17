"""A server that is killed loses no acknowledged answer; nor do several processes that serve one study.

The full forms, with a hundred kills under fifty annotators and two hundred annotators on four workers, are
benchmarks/crash.py (make crash, make workers).
"""

from __future__ import annotations

import pytest

from tests.durability.crashes import crash, make_studies, several_workers
from tests.sizes import FULL

pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")


@pytest.mark.parametrize(
    ("engine", "kills"),
    [("sqlite", 3 if FULL else 1), pytest.param("postgresql", 2 if FULL else 1, marks=pytest.mark.postgres)],
)
def test_nothing_acknowledged_is_lost_when_the_server_is_killed(request, tmp_path, engine, kills):
    database = None if engine == "sqlite" else request.getfixturevalue("postgres_url")
    folders = make_studies(tmp_path, items=60, each=3)
    tally = crash(folders, database, people=12, kills=kills, delay=0.05, seed=3, log=tmp_path / "server.log")
    assert tally.kills == kills
    assert tally.acknowledged >= 5 * kills
    assert "Traceback" not in (tmp_path / "server.log").read_text()


@pytest.mark.postgres
def test_several_workers_on_one_study_lose_no_acknowledged_answer(postgres_url, tmp_path):
    folders = make_studies(tmp_path, items=60, each=3)
    tally = several_workers(
        folders,
        postgres_url,
        workers=3 if FULL else 2,
        people=24,
        lasting=2,
        delay=0.05,
        seed=4,
        log=tmp_path / "server.log",
    )
    assert tally.acknowledged >= 72
    assert "Traceback" not in (tmp_path / "server.log").read_text()
