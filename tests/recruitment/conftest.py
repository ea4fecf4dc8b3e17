"""A stand-in for Prolific, and a study to put there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steelyard.study import Study
from tests.cli.running import Done, run
from tests.recruitment.platform import Platform
from tests.recruitment.standin import TOKEN, StandIn, start

STUDY = """
name = "words"
title = "Words"
question = "How positive is it?"
items = "items.csv"
[protocol]
name = "direct"
[design]
judgments = 3
[annotators]
max_tasks = 4
open = false
[quality]
checks = { file = "gold.csv", rate = 0.25, min_checks = 50 }
[pay]
per_task = 0.5
bonus = "0.1 * tasks + 0.25 * passed"
[prolific]
places = 3
url = "https://judge.example.org"
countries = ["United States", "United Kingdom"]
languages = ["English"]
min_approval_rate = 99
min_approved = 501
"""


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A stand-in, with the environment that leads to it."""
    running = start()
    monkeypatch.setenv("STEELYARD_PROLIFIC_API", running.url)
    monkeypatch.setenv("STEELYARD_PROLIFIC_TOKEN", TOKEN)
    yield running
    running.stop()


@pytest.fixture
def platform(standin: StandIn) -> Platform:
    """The platform behind the stand-in."""
    return standin.platform


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study for Prolific."""
    study_folder = tmp_path / "words"
    study_folder.mkdir()
    (study_folder / "study.toml").write_text(STUDY, encoding="utf-8")
    (study_folder / "items.csv").write_text(
        "id,text\n" + "".join(f"w{n},word {n}\n" for n in range(12)), encoding="utf-8"
    )
    (study_folder / "gold.csv").write_text(
        "items,answer\n" + "".join(f"w{n},40..60\n" for n in range(6)), encoding="utf-8"
    )
    return study_folder


Prolific = Callable[..., Done]


@pytest.fixture
def prolific(folder: Path, standin: StandIn) -> Prolific:
    """Return a function that runs `steelyard prolific COMMAND words …`."""

    def command(name: str, *options: str, code: int = 0, text: str = "") -> Done:
        return run("prolific", name, "words", *options, cwd=folder.parent, code=code, text=text)

    return command


def work(folder: Path, platform: Platform, participant: str, *, answers: int = 4, value: float = 50) -> str:
    """Somebody takes a place, answers so many tasks, and comes back with the code if that was all."""
    submission = platform.take_place(participant)
    study_id = platform.submissions[submission]["study_id"]
    with Study.open(folder) as study:
        study.recruitment.arrive(participant, study_id, submission)
        for _ in range(answers):
            task = study.ask(participant)
            assert task is not None
            study.tell(task, {task.item_ids[0]: value}, seconds=6.0)
        codes = {entry["code_type"]: entry["code"] for entry in platform.studies[study_id]["completion_codes"]}
    if answers == 4:
        platform.finish(submission, codes["COMPLETED"])
    return submission


@pytest.fixture
def approved(prolific, platform, folder):
    """Three people whose work is approved; the formula gives them 0.65, 0.65 and 0.40."""
    prolific("draft")
    prolific("publish", "--yes")
    for name, value in (("p1", 50), ("p2", 50), ("p3", 95)):
        work(folder, platform, name, value=value)
    prolific("approve", "p1", "p2", "p3", "--yes")
    return platform
