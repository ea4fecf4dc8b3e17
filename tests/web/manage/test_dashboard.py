"""Results are computed in another process, at limited frequency, and a computation that fails is reported."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from steelyard import Study
from steelyard.web import calculator
from steelyard.web.calculator_process import CalculatorProcess, Source
from steelyard.web.dashboard import Dashboards, RefreshIntervals
from steelyard.web.studies import Studies
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


async def until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true"
        await asyncio.sleep(0.02)


def test_a_burst_of_answers_is_computed_at_most_once_per_pause(studies):
    async def scenario():
        dashboards = Dashboards(RefreshIntervals(poll=0.02, pause=1.0, pause_factor=0.0))
        dashboard = dashboards.of(studies.all()[0])
        async with dashboard.listen() as updates:
            await until(lambda: dashboard.scores is not None)
            begin, computations = time.monotonic(), 0
            for number in range(10):
                await asyncio.to_thread(rate_once, studies.all()[0].folder, f"p{number // 5}")
                await asyncio.sleep(0.05)
            await until(lambda: dashboard.scores.judgments == 15)
            elapsed = time.monotonic() - begin
            while not updates.empty():
                computations += updates.get_nowait() == "scores"
        dashboards.close()
        return computations, elapsed

    computations, elapsed = asyncio.run(scenario())
    assert 1 <= computations <= elapsed / 1.0 + 2


def test_results_are_not_computed_while_nobody_is_watching(studies):
    async def scenario():
        dashboards = Dashboards(RefreshIntervals(poll=0.02, pause=0.0, pause_factor=0.0, idle=0.3))
        dashboard = dashboards.of(studies.all()[0])
        dashboard.keep_fresh()
        await until(lambda: dashboard.reliability is not None)
        # There was no request for the idle time, so the refresh loop ends.
        await until(dashboard._task.done)
        before = dashboard.scores.judgments
        await asyncio.to_thread(rate_once, studies.all()[0].folder, "late")
        await asyncio.sleep(0.1)  # five polls
        unseen = dashboard.scores.judgments
        assert dashboard._task.done()
        dashboard.keep_fresh()
        await until(lambda: dashboard.scores.judgments == before + 1)
        dashboards.close()
        return before, unseen

    before, unseen = asyncio.run(scenario())
    assert unseen == before


def test_a_killed_calculator_process_is_replaced(studies):
    async def scenario():
        process = CalculatorProcess()
        first = await process.run(os.getpid)
        assert first != os.getpid()
        os.kill(first, signal.SIGKILL)
        return first, await process.run(os.getpid)

    first, second = asyncio.run(scenario())
    assert second not in {first, os.getpid()}


def test_a_study_that_cannot_be_computed_reports_the_reason(studies, caplog):
    async def scenario():
        dashboards = Dashboards(RefreshIntervals(poll=0.02, pause=0.1))
        served = studies.all()[0]
        dashboard = dashboards.of(served)
        toml = served.folder / "study.toml"
        text = toml.read_text(encoding="utf-8")
        toml.write_text(text.replace('title = "Words"', ""), encoding="utf-8")
        dashboard.keep_fresh()
        await until(lambda: dashboard.error)
        error = dashboard.error
        toml.write_text(text, encoding="utf-8")
        await until(lambda: not dashboard.error and dashboard.reliability is not None)
        dashboards.close()
        return error, dashboard.error

    error, after = asyncio.run(scenario())
    assert "'title' is missing" in error
    assert after == ""
    assert "cannot be computed" in caplog.text


def test_a_changed_configuration_is_used_in_the_next_computation(studies):
    served = studies.all()[0]
    source = Source(str(served.folder), None)
    try:
        before = calculator.compute(source, "progress")
        toml = served.folder / "study.toml"
        toml.write_text(toml.read_text(encoding="utf-8").replace("judgments = 3", "judgments = 4"), encoding="utf-8")
        served.reopen()
        after = calculator.compute(source, "progress")
        assert [sum(stage.total for stage in part.status.stages) for part in (before, after)] == [15, 20]
    finally:
        calculator.close(source)
