"""The manager's dashboards: results of each study, kept up to date by another process while somebody is watching."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from starlette.concurrency import run_in_threadpool

from steelyard.errors import SteelyardError
from steelyard.web import calculator
from steelyard.web.calculator import CalculatorProcess, Overview, Reliability, Source
from steelyard.web.studies import ServedStudy

log = logging.getLogger("steelyard.web")

T = TypeVar("T")
Update: TypeAlias = Literal["changed", "overview", "reliability", "error"]


@dataclass(frozen=True, slots=True)
class RefreshIntervals:
    """How often the study is checked and results are computed. Times are in seconds."""

    poll: float = 1.0
    """Between two checks for new events, which read one row of the database."""
    pause: float = 2.0
    """Minimum pause between two computations."""
    pause_factor: float = 4.0
    """Minimum pause as a multiple of the last computation's duration, so that a large study does not occupy a core."""
    idle: float = 60.0
    """Time without any request after which results are no longer computed."""


class Dashboard:
    """The latest results of one study, and notifications of new ones."""

    def __init__(self, served: ServedStudy, process: CalculatorProcess, intervals: RefreshIntervals) -> None:
        self.served = served
        self.overview: Overview | None = None
        self.reliability: Reliability | None = None
        self._errors = {"overview": "", "reliability": ""}
        self._model_failure = ""
        self._process = process
        self._intervals = intervals
        self._task: asyncio.Task[None] | None = None
        self._listeners: set[asyncio.Queue[Update]] = set()
        self._last_request = time.monotonic()
        self._seq = -1

    @property
    def error(self) -> str:
        """Why some results cannot be computed; empty if they can."""
        return " ".join(text for text in self._errors.values() if text)

    @property
    def source(self) -> Source:
        """Where the study is stored."""
        return Source(str(self.served.folder), self.served.database)

    def keep_fresh(self) -> None:
        """Compute new results as judgments arrive, until nobody has asked for the idle time."""
        self._last_request = time.monotonic()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._refresh_loop())
            self._task.add_done_callback(self._on_loop_end)

    async def refresh(self) -> Overview:
        """Compute the overview now, as after an exclusion."""
        return await self._compute_overview()

    async def _compute_overview(self) -> Overview:
        overview = await self._process.run(calculator.compute_overview, self.source)
        if overview.failure and overview.problem != self._model_failure:
            # Once for each failure, not at every computation.
            log.error("the scores of %s cannot be computed\n%s", self.served.slug, overview.failure)
        self._model_failure = overview.problem if overview.failure else ""
        self.overview, self._errors["overview"] = overview, ""
        self._notify("overview")
        return overview

    async def _compute_reliability(self) -> Reliability:
        reliability = await self._process.run(calculator.compute_reliability, self.source)
        self.reliability, self._errors["reliability"] = reliability, ""
        self._notify("reliability")
        return reliability

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function in the calculator process, with the study's source as its first argument."""
        return await self._process.run(function, self.source, *arguments)

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[asyncio.Queue[Update]]:
        """Receive updates in a queue while in the block."""
        queue: asyncio.Queue[Update] = asyncio.Queue(maxsize=100)
        self._listeners.add(queue)
        self.keep_fresh()
        try:
            yield queue
        finally:
            self._listeners.discard(queue)
            self._last_request = time.monotonic()

    def close(self) -> None:
        """Stop computing, and close the study in the calculator process."""
        if self._task is not None:
            self._task.cancel()
        self._process.close_study(self.source)

    def _notify(self, update: Update) -> None:
        for queue in self._listeners:
            if not queue.full():
                queue.put_nowait(update)

    async def _refresh_loop(self) -> None:
        intervals = self._intervals
        next_overview = next_reliability = 0.0
        while self._listeners or time.monotonic() - self._last_request < intervals.idle:
            part = "overview"
            try:
                seq = await run_in_threadpool(self.served.study.last_seq)
                if seq != self._seq:
                    self._seq = seq
                    self._notify("changed")
                now = time.monotonic()
                if (self.overview is None or self.overview.seq < seq) and now >= next_overview:
                    part, next_overview = "overview", now + 5 * intervals.pause
                    overview = await self._compute_overview()
                    pause = max(intervals.pause, intervals.pause_factor * overview.duration)
                    next_overview = time.monotonic() + pause
                if (
                    (self.reliability is None or self.reliability.seq < seq)
                    and now >= next_reliability
                    and self.overview is not None
                ):
                    part, next_reliability = "reliability", now + 5 * intervals.pause
                    reliability = await self._compute_reliability()
                    pause = max(intervals.pause, 2 * intervals.pause_factor * reliability.duration)
                    next_reliability = time.monotonic() + pause
            except (SteelyardError, BrokenProcessPool) as error:
                self._on_error(part, str(error).splitlines()[0] if str(error) else type(error).__name__)
            except Exception as error:
                # Every exception: a loop that ended here would leave the dashboard on "computing…" for ever.
                self._on_error(part, f"{type(error).__name__}, see the server's log.", error)
            await asyncio.sleep(intervals.poll)

    def _on_loop_end(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("the results of %s cannot be computed", self.served.slug, exc_info=error)
            self._errors["overview"] = "an error that is in the server's log."
            self._notify("error")

    def _on_error(self, part: str, reason: str, error: Exception | None = None) -> None:
        if reason != self._errors[part]:
            log.error("the results of %s cannot be computed: %s", self.served.slug, reason, exc_info=error)
        self._errors[part] = reason
        self._notify("error")


class Dashboards:
    """The dashboards of a server, one for each study; they share one calculator process."""

    def __init__(self, intervals: RefreshIntervals | None = None) -> None:
        self._process = CalculatorProcess()
        self._intervals = intervals or RefreshIntervals()
        self._by_slug: dict[str, Dashboard] = {}
        self._starting: asyncio.Task[bool] | None = None

    def warm_up(self) -> None:
        """Start the calculator process, so that it is running when the first dashboard is opened."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._process.run(calculator.load_modules))

    def of(self, served: ServedStudy) -> Dashboard:
        """Return the dashboard of a study."""
        if served.slug not in self._by_slug:
            self._by_slug[served.slug] = Dashboard(served, self._process, self._intervals)
        return self._by_slug[served.slug]

    def close(self) -> None:
        """Close every dashboard."""
        for dashboard in self._by_slug.values():
            dashboard.close()
