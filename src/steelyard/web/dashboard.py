"""The manager's dashboards: results of each study, kept up to date by another process while a page is open."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from starlette.concurrency import run_in_threadpool

from steelyard.errors import SteelyardError
from steelyard.web import calculator
from steelyard.web.calculator import PARTS, Annotators, Part, PartName, Progress, Reliability, Scores
from steelyard.web.calculator_process import CalculatorProcess, Source
from steelyard.web.saved_results import load_parts
from steelyard.web.studies import ServedStudy

log = logging.getLogger("steelyard.web")

T = TypeVar("T")
Update: TypeAlias = Literal["changed", "error"] | PartName


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
        self.parts: dict[PartName, Any] = {
            name: part for name, part in load_parts(served.study, calculator.PART_TYPES).items() if name in PARTS
        }
        self._errors: dict[PartName, str] = dict.fromkeys(PARTS, "")
        self._model_failure = ""
        self._process = process
        self._intervals = intervals
        self._due: dict[PartName, float] = dict.fromkeys(PARTS, 0.0)
        self._task: asyncio.Task[None] | None = None
        self._listeners: set[asyncio.Queue[Update]] = set()
        self._last_request = time.monotonic()
        self._seq = -1

    @property
    def progress(self) -> Progress | None:
        """How far the study is; None before it was computed."""
        return self.parts.get("progress")

    @property
    def scores(self) -> Scores | None:
        """The latest scores; None before they were computed."""
        return self.parts.get("scores")

    @property
    def annotators(self) -> Annotators | None:
        """The latest table of annotators; None before it was computed."""
        return self.parts.get("annotators")

    @property
    def reliability(self) -> Reliability | None:
        """The latest reliability; None before it was computed."""
        return self.parts.get("reliability")

    @property
    def error(self) -> str:
        """Why some results cannot be computed; empty if they can."""
        return " ".join(dict.fromkeys(text for text in self._errors.values() if text))

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

    async def current(self, name: PartName) -> Any:
        """Return a part of the results that includes every event, computed now if necessary."""
        part = self.parts.get(name)
        seq = await run_in_threadpool(self.served.study.last_seq)
        return part if part is not None and part.seq >= seq else await self._compute(name, None)

    async def _compute(self, name: PartName, seq: int | None) -> Part:
        part: Part = await self._process.run(calculator.compute, self.source, name, seq)
        if isinstance(part, Scores):
            if part.failure and part.problem != self._model_failure:
                # Once for each failure, not at every computation.
                log.error("the scores of %s cannot be computed\n%s", self.served.slug, part.failure)
            self._model_failure = part.problem if part.failure else ""
        self.parts[name], self._errors[name] = part, ""
        self._notify(name)
        return part

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
        while self._listeners or time.monotonic() - self._last_request < self._intervals.idle:
            try:
                seq = await run_in_threadpool(self.served.study.last_seq)
                if seq != self._seq:
                    self._seq = seq
                    self._notify("changed")
                for name in PARTS:
                    await self._refresh(name, seq)
            except Exception as error:
                # Every exception: a loop that ended here would leave the dashboard on "computing…" for ever.
                self._on_error("progress", error)
            await asyncio.sleep(self._intervals.poll)

    async def _refresh(self, name: PartName, seq: int) -> None:
        """Compute a part again if there are new events, or if it is out of date, and enough time has passed."""
        intervals, now = self._intervals, time.monotonic()
        latest = self.parts.get(name)
        lifetime = calculator.PROGRESS_LIFETIME.total_seconds()
        is_stale = name == "progress" and now > self._due[name] + lifetime
        if now < self._due[name] or (latest is not None and latest.seq >= seq and not is_stale):
            return
        self._due[name] = now + 5 * intervals.pause
        try:
            part = await self._compute(name, seq)
        except Exception as error:
            # Every exception: the other parts are computed all the same.
            self._on_error(name, error)
            return
        factor = intervals.pause_factor * (2 if name == "reliability" else 1)
        self._due[name] = time.monotonic() + max(intervals.pause, factor * part.duration)

    def _on_loop_end(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("the results of %s cannot be computed", self.served.slug, exc_info=error)
            self._errors["progress"] = "an error that is in the server's log."
            self._notify("error")

    def _on_error(self, part: PartName, error: Exception) -> None:
        if isinstance(error, SteelyardError | BrokenProcessPool):
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            cause = None
        else:
            reason, cause = f"{type(error).__name__}, see the server's log.", error
        if reason not in self._errors.values():
            log.error("the results of %s cannot be computed: %s", self.served.slug, reason, exc_info=cause)
        self._errors[part] = reason
        self._notify("error")


class Dashboards:
    """The dashboards of a server, one for each study; they share one calculator process."""

    MOST_PREPARED = 3
    """Results are computed when the server starts if it has no more studies than this."""

    def __init__(self, intervals: RefreshIntervals | None = None) -> None:
        self._process = CalculatorProcess()
        self._intervals = intervals or RefreshIntervals()
        self._by_slug: dict[str, Dashboard] = {}

    def warm_up(self, studies: Sequence[ServedStudy] = ()) -> None:
        """Start the calculator process, and compute the results of a few studies before their pages are opened."""
        CalculatorProcess.start()
        if len(studies) <= self.MOST_PREPARED:
            for served in studies:
                self.of(served).keep_fresh()

    def of(self, served: ServedStudy) -> Dashboard:
        """Return the dashboard of a study."""
        if served.slug not in self._by_slug:
            self._by_slug[served.slug] = Dashboard(served, self._process, self._intervals)
        return self._by_slug[served.slug]

    def close(self) -> None:
        """Close every dashboard."""
        for dashboard in self._by_slug.values():
            dashboard.close()
