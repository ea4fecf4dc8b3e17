"""The process that computes for the dashboards, as the server sees it. Nothing that takes long to import is here.

`steelyard serve` starts the process first of all, so that it imports and opens the studies while the server does.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")
PRIORITY = 5
"""Nice value of processes beside the server, so that annotators do not notice them."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a study is stored."""

    folder: str
    database: str | None


def initialise() -> None:
    """Set up a process beside the server: it ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when the server's process ends, even if that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)


@contextmanager
def without_sigint() -> Iterator[None]:
    """Block SIGINT in processes started in the block: the parent ends them, so they print nothing at Ctrl-C."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def new_pool() -> ProcessPoolExecutor:
    """Return a pool of one process beside the server; the process starts at the first call."""
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=initialise)


def lower_priority() -> None:
    """Let the server go first, which annotators wait for: lower the priority of a process beside it, never its own."""
    if multiprocessing.parent_process() is None:
        return
    if os.getpriority(os.PRIO_PROCESS, 0) < PRIORITY:
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)


def prepares_dashboards() -> bool:
    """Whether dashboards are computed when the server starts; `STEELYARD_PREPARE_DASHBOARDS=0` leaves that out."""
    return os.environ.get("STEELYARD_PREPARE_DASHBOARDS", "1") != "0"


def prepare(sources: tuple[Source, ...]) -> bool:
    """Import everything, and compute the first results of some studies, so that no page has to wait for them."""
    from steelyard.web import calculator

    for source in sources:
        calculator.prepare(source)
    # Only now: while the server starts, nobody waits for anything but these results.
    lower_priority()
    calculator.load_modules()
    return True


class CalculatorProcess:
    """The calculator process, which all studies of a server share. It starts at `start` or at the first call."""

    _pool: ClassVar[ProcessPoolExecutor | None] = None

    @classmethod
    def start(cls, *sources: Source) -> None:
        """Start the process, if it is not running, and have it compute the first results of these studies."""
        if cls._pool is None:
            cls._submit(prepare, sources)

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function in the process, and wait for the result without blocking the event loop."""
        try:
            return await asyncio.wrap_future(self._submit(function, *arguments))
        except BrokenProcessPool:
            # The process was killed or ran out of memory; try once in a new one.
            CalculatorProcess._pool = None
            return await asyncio.wrap_future(self._submit(function, *arguments))

    @classmethod
    def _submit(cls, function: Callable[..., T], *arguments: Any) -> Future[T]:
        if cls._pool is None:
            cls._pool = new_pool()
        with without_sigint():
            return cls._pool.submit(function, *arguments)

    @classmethod
    def end(cls) -> None:
        """End the process at once; a running computation is abandoned."""
        pool, cls._pool = cls._pool, None
        if pool is not None:
            end_pool(pool)

    def close_study(self, source: Source) -> None:
        """Close a study in the process, if it is running."""
        if CalculatorProcess._pool is not None:
            from steelyard.web import calculator

            with suppress(BrokenProcessPool, RuntimeError):
                CalculatorProcess._pool.submit(calculator.close, source)


def end_pool(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool at once."""
    # From Python 3.14 on there is pool.terminate_workers().
    for process in list((pool._processes or {}).values()):
        process.terminate()
    pool.shutdown(wait=True, cancel_futures=True)
