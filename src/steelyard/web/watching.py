"""Watching studies for the manager: figures are computed elsewhere, at most every few seconds, while somebody looks."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from starlette.concurrency import run_in_threadpool

from steelyard.errors import SteelyardError
from steelyard.web import calculator
from steelyard.web.calculator import Board, Reliability, Source
from steelyard.web.studies import Served

log = logging.getLogger("steelyard.web")

T = TypeVar("T")
News: TypeAlias = Literal["changed", "board", "reliability", "trouble"]


@dataclass(frozen=True, slots=True)
class Pace:
    """How often things are looked at, in seconds."""

    poll: float = 1.0
    """Whether anything was judged: one row of the database."""
    rest: float = 2.0
    """At least so long between two computations."""
    share: float = 4.0
    """And at least so many times as long as the last one took, so that a large study does not fill a core."""
    idle: float = 60.0
    """Nobody looked for so long: nothing is computed any more."""


@contextmanager
def _interrupted_later() -> Iterator[None]:
    """Let a process that is started in the block know nothing of Ctrl-C: its parent ends it, and it prints nothing."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Calculator:
    """A process that computes for all studies of this one; it starts when it is first needed, and ends with us."""

    _pool: ClassVar[ProcessPoolExecutor | None] = None

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Compute something elsewhere, and wait for it without holding anybody up."""
        try:
            return await self._submitted(function, *arguments)
        except BrokenProcessPool:
            # It was killed, or ran out of memory; a new one may do better.
            Calculator._pool = None
            return await self._submitted(function, *arguments)

    def _submitted(self, function: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        if Calculator._pool is None:
            context = multiprocessing.get_context("spawn")
            Calculator._pool = ProcessPoolExecutor(1, mp_context=context, initializer=calculator.prepare)
        with _interrupted_later():
            return asyncio.get_running_loop().run_in_executor(Calculator._pool, function, *arguments)

    @staticmethod
    def end() -> None:
        """Stop the process at once, whatever it computes: nothing of it is worth waiting for."""
        pool, Calculator._pool = Calculator._pool, None
        if pool is not None:
            # From Python 3.14 on there is pool.terminate_workers().
            for process in list(pool._processes.values()):
                process.terminate()
            pool.shutdown(wait=True, cancel_futures=True)

    def forget(self, source: Source) -> None:
        """Let the process close a study, if there is one."""
        if Calculator._pool is not None:
            with suppress(BrokenProcessPool, RuntimeError):
                Calculator._pool.submit(calculator.close, source)


class Watch:
    """One study as the manager sees it: the last figures, and news of new ones for whoever listens."""

    def __init__(self, served: Served, calculator: Calculator, pace: Pace) -> None:
        self.served = served
        self.board: Board | None = None
        self.reliability: Reliability | None = None
        self._troubles = {"board": "", "reliability": ""}
        self._failure = ""
        self._calculator = calculator
        self._pace = pace
        self._task: asyncio.Task[None] | None = None
        self._listeners: set[asyncio.Queue[News]] = set()
        self._wanted = time.monotonic()
        self._seq = -1

    @property
    def trouble(self) -> str:
        """Why some figures cannot be computed, if they cannot."""
        return " ".join(text for text in self._troubles.values() if text)

    @property
    def source(self) -> Source:
        """Where the study is."""
        return Source(str(self.served.folder), self.served.database)

    def look(self) -> None:
        """Say that somebody is looking: figures are kept up to date for a while."""
        self._wanted = time.monotonic()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep_up())
            self._task.add_done_callback(self._ended)

    async def figures(self, seconds: float = 30.0) -> Board | None:
        """Return the last figures, or the first ones as soon as they are there; None if that takes too long."""
        self.look()
        with_patience = time.monotonic() + seconds
        while self.board is None and not self.trouble and time.monotonic() < with_patience:
            await asyncio.sleep(0.05)
        return self.board

    async def fresh_figures(self) -> Board:
        """Compute the figures now, as after an exclusion."""
        return await self._compute_board()

    async def _compute_board(self) -> Board:
        board = await self._calculator.run(calculator.compute_board, self.source)
        if board.failure and board.problem != self._failure:
            # Once for each failure, not at every computation.
            log.error("the scores of %s cannot be computed\n%s", self.served.slug, board.failure)
        self._failure = board.problem if board.failure else ""
        self.board, self._troubles["board"] = board, ""
        self._tell("board")
        return board

    async def _compute_reliability(self) -> Reliability:
        reliability = await self._calculator.run(calculator.compute_reliability, self.source)
        self.reliability, self._troubles["reliability"] = reliability, ""
        self._tell("reliability")
        return reliability

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Compute something else of this study."""
        return await self._calculator.run(function, self.source, *arguments)

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[asyncio.Queue[News]]:
        """Hear of news while in the block."""
        queue: asyncio.Queue[News] = asyncio.Queue(maxsize=100)
        self._listeners.add(queue)
        self.look()
        try:
            yield queue
        finally:
            self._listeners.discard(queue)
            self._wanted = time.monotonic()

    def close(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()
        self._calculator.forget(self.source)

    def _tell(self, news: News) -> None:
        for queue in self._listeners:
            if not queue.full():
                queue.put_nowait(news)

    async def _keep_up(self) -> None:
        next_board = next_reliability = 0.0
        while self._listeners or time.monotonic() - self._wanted < self._pace.idle:
            part = "board"
            try:
                seq = await run_in_threadpool(self.served.study.last_seq)
                if seq != self._seq:
                    self._seq = seq
                    self._tell("changed")
                now = time.monotonic()
                if (self.board is None or self.board.seq < seq) and now >= next_board:
                    part, next_board = "board", now + 5 * self._pace.rest
                    board = await self._compute_board()
                    next_board = time.monotonic() + max(self._pace.rest, self._pace.share * board.took)
                if (
                    (self.reliability is None or self.reliability.seq < seq)
                    and now >= next_reliability
                    and self.board is not None
                ):
                    part, next_reliability = "reliability", now + 5 * self._pace.rest
                    reliability = await self._compute_reliability()
                    next_reliability = time.monotonic() + max(self._pace.rest, 2 * self._pace.share * reliability.took)
            except (SteelyardError, BrokenProcessPool) as error:
                self._stumbled(part, str(error).splitlines()[0] if str(error) else type(error).__name__)
            except Exception as error:
                # Every exception: a task that ended here would leave the dashboard on "computing…" for ever.
                self._stumbled(part, f"{type(error).__name__}, see the server's log.", error)
            await asyncio.sleep(self._pace.poll)

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("the figures of %s cannot be computed", self.served.slug, exc_info=error)
            self._troubles["board"] = "an error that is in the server's log."
            self._tell("trouble")

    def _stumbled(self, part: str, why: str, error: Exception | None = None) -> None:
        if why != self._troubles[part]:
            log.error("the figures of %s cannot be computed: %s", self.served.slug, why, exc_info=error)
        self._troubles[part] = why
        self._tell("trouble")


class Watches:
    """The watches of a server's studies."""

    def __init__(self, pace: Pace | None = None) -> None:
        self._calculator = Calculator()
        self._pace = pace or Pace()
        self._by_slug: dict[str, Watch] = {}
        self._starting: asyncio.Task[bool] | None = None

    def warm_up(self) -> None:
        """Start the process that computes, so that it is there when the first dashboard is opened."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._calculator.run(calculator.ready))

    def of(self, served: Served) -> Watch:
        """Return the watch of a study."""
        if served.slug not in self._by_slug:
            self._by_slug[served.slug] = Watch(served, self._calculator, self._pace)
        return self._by_slug[served.slug]

    def close(self) -> None:
        """Stop all of them."""
        for watch in self._by_slug.values():
            watch.close()
