"""Figures are computed elsewhere, not too often, and a computation that fails says so."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from steelyard import Study
from steelyard.web import calculator
from steelyard.web.studies import Studies
from steelyard.web.watching import Calculator, Pace, Watches
from tests.web.manage.test_manage_api import DESIGN, judge

pytestmark = pytest.mark.server


@pytest.fixture
def studies(make_study):
    folder = make_study(design=DESIGN, items=5)
    judge(folder, "ann")
    opened = Studies([folder])
    yield opened
    opened.close()


def rate_once(folder, name):
    with Study.open(folder) as study:
        task = study.ask(name)
        study.tell(task, {task.item_ids[0]: 9})


async def until(true, seconds=60.0):
    give_up = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < give_up, "it did not come"
        await asyncio.sleep(0.02)


def test_a_burst_of_answers_is_computed_at_most_once_a_rest(studies):
    async def watch():
        watches = Watches(Pace(poll=0.02, rest=1.0, share=0.0))
        watched = watches.of(studies.all()[0])
        async with watched.listen() as news:
            await until(lambda: watched.board is not None)
            begin, boards = time.monotonic(), 0
            for number in range(10):
                await asyncio.to_thread(rate_once, studies.all()[0].folder, f"p{number // 5}")
                await asyncio.sleep(0.05)
            await until(lambda: watched.board.judgments == 15)
            took = time.monotonic() - begin
            while not news.empty():
                boards += news.get_nowait() == "board"
        watches.close()
        return boards, took

    boards, took = asyncio.run(watch())
    assert 1 <= boards <= took / 1.0 + 2


def test_when_nobody_looks_nothing_is_computed(studies):
    async def watch():
        watches = Watches(Pace(poll=0.02, rest=0.0, share=0.0, idle=0.3))
        watched = watches.of(studies.all()[0])
        watched.look()
        await until(lambda: watched.reliability is not None)
        # Nobody has looked for the idle time, so the task that computes ends.
        await until(watched._task.done)
        before = watched.board.judgments
        await asyncio.to_thread(rate_once, studies.all()[0].folder, "late")
        await asyncio.sleep(0.1)  # five polls
        unseen = watched.board.judgments
        assert watched._task.done()
        watched.look()
        await until(lambda: watched.board.judgments == before + 1)
        watches.close()
        return before, unseen

    before, unseen = asyncio.run(watch())
    assert unseen == before


def test_the_computing_process_may_be_killed_and_another_takes_over(studies):
    async def watch():
        calculator = Calculator()
        first = await calculator.run(os.getpid)
        assert first != os.getpid()
        os.kill(first, signal.SIGKILL)
        return first, await calculator.run(os.getpid)

    first, second = asyncio.run(watch())
    assert second not in {first, os.getpid()}


def test_a_study_that_cannot_be_computed_says_why(studies, caplog):
    async def watch():
        watches = Watches(Pace(poll=0.02, rest=0.1))
        served = studies.all()[0]
        watched = watches.of(served)
        toml = served.folder / "study.toml"
        text = toml.read_text(encoding="utf-8")
        toml.write_text(text.replace('title = "Words"', ""), encoding="utf-8")
        watched.look()
        await until(lambda: watched.trouble)
        trouble = watched.trouble
        toml.write_text(text, encoding="utf-8")
        await until(lambda: watched.board is not None)
        watches.close()
        return trouble, watched.trouble

    trouble, after = asyncio.run(watch())
    assert "'title' is missing" in trouble
    assert after == ""
    assert "cannot be computed" in caplog.text


def test_a_changed_configuration_is_taken_up(studies):
    served = studies.all()[0]
    source = calculator.Source(str(served.folder), None)
    try:
        before = calculator.compute_board(source)
        toml = served.folder / "study.toml"
        toml.write_text(toml.read_text(encoding="utf-8").replace("judgments = 3", "judgments = 4"), encoding="utf-8")
        served.reopen()
        after = calculator.compute_board(source)
        assert [sum(stage.total for stage in found.status.stages) for found in (before, after)] == [15, 20]
    finally:
        calculator.close(source)
