"""Commands that are killed between any two requests, and run again: the platform's books come out the same.

The stand-in ends the process that asks, with SIGKILL, at its k-th request: before the request is carried out, and
after it was but before it is answered. Then the same command is run again, as a person would. `make test` does so at
every request that changes something; `make kills` (STEELYARD_KILLS=all) at every request.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.study import Study
from steelyard.study.rebuild import check_chain
from tests.cli.running import run
from tests.recruitment.conftest import work
from tests.recruitment.platform import Platform
from tests.waiting import wait_until

_CHILDREN = multiprocessing.get_context("forkserver")
_CHILDREN.set_forkserver_preload(
    [
        "steelyard.cli.app",
        "steelyard.study",
        "steelyard.recruitment.bonuses",
        "steelyard.recruitment.review",
        "steelyard.web.studies",
    ]
)

EVERY_REQUEST = os.environ.get("STEELYARD_KILLS") == "all"
WHY = "Of the questions with a known answer, which the instructions had announced, none was answered right. " * 2
COMMANDS: dict[str, tuple[str, ...]] = {
    "draft": ("draft", "words"),
    "publish": ("publish", "words", "--yes"),
    "sync": ("sync", "words"),
    "reject": ("reject", "words", "p4", "-m", WHY, "--yes"),
    "approve": ("approve", "words", "--yes"),
    # The stand-in shows a bonus after a fifth of a second; 0.6 seconds are time enough.
    "bonus": ("bonus", "words", "--yes", "--grace", "0.01"),
    "stop": ("stop", "words", "--yes"),
}


def _child(command: tuple[str, ...], folder: str, environment: dict[str, str]) -> None:
    """Run a command in a process of its own."""
    os.environ.update(environment)
    os.chdir(folder)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        import sys

        from steelyard.cli.app import main

        sys.argv = ["steelyard", "prolific", *command]
        main()


def run_and_kill(platform: Platform, folder: Path, command: tuple[str, ...], at: int, when: str) -> bool:
    """Run a command and kill it at its request number `at`; return whether it got that far."""
    environment = {key: value for key, value in os.environ.items() if "PROLIFIC" in key}
    process = _CHILDREN.Process(target=_child, args=(command, str(folder.parent), environment))
    killed: list[str] = []

    def kill(number: int, request: str) -> Any:
        if number == at and not killed:
            killed.append(request)
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            # Dead before anything is answered.
            process.join(10)
            return "lost"
        return None

    if when == "before":
        platform.on_request = kill
    else:
        platform.on_done = kill
    process.start()
    process.join(60)
    assert killed or process.exitcode == 0, process.exitcode
    # 255 is what multiprocessing says where it could not hear how the process ended.
    assert not killed or process.exitcode in {-signal.SIGKILL, 255}
    platform.on_request, platform.on_done = (lambda number, request: None), (lambda number, request: None)
    return bool(killed)


def run_to_the_end(folder: Path, command: tuple[str, ...]) -> None:
    """Run a command again until it is content, as somebody does who reads what it says."""
    give_up = time.monotonic() + 20
    while time.monotonic() < give_up:
        try:
            run("prolific", *command, cwd=folder.parent)
        except AssertionError as error:
            if "Run this again in" not in str(error):
                raise
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"{command} does not come to an end")


def the_platform_ledger(platform: Platform, folder: Path) -> dict[str, Any]:
    """All that matters in the end, on the platform and here."""
    with Study.open(folder) as study:
        check_chain(study.events())
        gone, out = study.recruitment.departed, study.status().stages[0].leased
    return {
        "studies": [(s["status"], s["total_available_places"], s["reward"]) for s in platform.studies.values()],
        "submissions": [
            (s["participant_id"], s["status"], sum(s["bonus_payments"])) for s in platform.submissions.values()
        ],
        "rewards": platform.paid("reward"),
        "bonuses": platform.paid("bonus"),
        "balance": platform.balance,
        "gone": gone,
        "tasks out": out,
    }


def people_come(folder: Path, platform: Platform) -> None:
    for name, value in (("p1", 50), ("p2", 50), ("p4", 95)):
        work(folder, platform, name, value=value)
    left = work(folder, platform, "p3", answers=1)
    with Study.open(folder) as study:
        assert study.ask("p3") is not None
    platform.change(left, "RETURNED")


@pytest.fixture
def stages(platform: Platform, folder: Path) -> Callable[[], None]:
    text = (folder / "study.toml").read_text(encoding="utf-8")
    (folder / "study.toml").write_text(text.replace("places = 3", "places = 4"), encoding="utf-8")
    platform.pay_delay = 0.2
    return lambda: None


def test_whatever_command_is_killed_at_whatever_request_ends_as_if_it_had_not_been(platform, folder, stages, tmp_path):
    kills = 0
    snapshot = tmp_path / "kept"
    for name, command in COMMANDS.items():
        if name == "sync":
            people_come(folder, platform)
        shutil.copytree(folder, snapshot)
        before = platform.snapshot()

        platform.requests.clear()
        run_to_the_end(folder, command)
        if name == "bonus":
            wait_until(platform.bonuses_are_visible)
            run("prolific", "sync", "words", cwd=folder.parent)
        requests = platform.requests[: len(platform.requests) - (name == "bonus")]
        expected = the_platform_ledger(platform, folder)
        for at, request in enumerate(requests, start=1):
            reads = request.startswith("GET") or "cost-calculator" in request
            if reads and not EVERY_REQUEST:
                continue
            for when in ("before", "after"):
                platform.restore(before)
                shutil.rmtree(folder)
                shutil.copytree(snapshot, folder)
                assert run_and_kill(platform, folder, command, at, when), (name, at)
                run_to_the_end(folder, command)
                if name == "bonus":
                    wait_until(platform.bonuses_are_visible)
                    run("prolific", "sync", "words", cwd=folder.parent)
                assert the_platform_ledger(platform, folder) == expected, (name, at, when)
                kills += 1
        shutil.rmtree(snapshot)
    # At the end everybody has what they earned, once: 0.1 × 4 tasks and 0.25 for the checks.
    assert platform.paid("reward") == {"p1": 200, "p2": 200}
    assert platform.paid("bonus") == {"p1": 65, "p2": 65}
    assert kills >= (40 if EVERY_REQUEST else 14)


def test_the_same_for_a_real_command_line(platform, folder, stages):
    """Once with the command as it is installed, killed at the one request that must not be sent twice."""
    import subprocess
    import sys

    for command in ("draft", "publish"):
        run("prolific", *COMMANDS[command], cwd=folder.parent)
    work(folder, platform, "p1")
    run("prolific", *COMMANDS["approve"], cwd=folder.parent)
    process = None

    def kill(number: int, request: str) -> Any:
        if request.endswith("/pay/"):
            assert process is not None
            process.kill()
            process.wait(10)

    platform.on_done = kill
    process = subprocess.Popen(
        [sys.executable, "-m", "steelyard", "prolific", *COMMANDS["bonus"]],
        cwd=folder.parent,
        stdout=subprocess.DEVNULL,
    )
    assert process.wait(60) == -signal.SIGKILL
    platform.on_done = lambda number, request: None
    run_to_the_end(folder, COMMANDS["bonus"])
    assert platform.paid("bonus") == {"p1": 65}
