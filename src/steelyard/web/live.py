"""Live updates of the dashboard, as server-sent events."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from steelyard.web.identity import Manager, ServedStudy
from steelyard.web.studies import Served
from steelyard.web.summary import SummaryOut, summary
from steelyard.web.watching import Calculator, Watch, Watches

_HEARTBEAT = 15


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    watches_of(app).close()
    if stopping():
        Calculator.end()


router = APIRouter(prefix="/api/v1/studies/{study}/manage", tags=["manage"], lifespan=_lifespan)


def watches_of(app: FastAPI) -> Watches:
    """Return the watches of a server, made when they are first needed."""
    if not hasattr(app.state, "watches"):
        app.state.watches = Watches()
    found: Watches = app.state.watches
    return found


def watch_of(request: Request, served: Served) -> Watch:
    """Return the watch of a study, and say that somebody is looking."""
    watch = watches_of(request.app).of(served)
    watch.look()
    return watch


async def summary_of(watch: Watch) -> SummaryOut:
    """Say how far a study is now."""

    def now() -> SummaryOut:
        study = watch.served.study
        return summary(watch, study.status(), watch.served.state_reason())

    return await run_in_threadpool(now)


@router.get("/live", response_class=StreamingResponse, responses={200: {"content": {"text/event-stream": {}}}})
async def live(served: ServedStudy, request: Request, _: Manager) -> StreamingResponse:
    """Send an event whenever something changes: `summary` (as /summary), and `board` or `trust` for new figures."""
    watch = watch_of(request, served)

    async def events() -> AsyncIterator[str]:
        async with watch.listen() as queue:
            yield f"retry: 2000\nevent: summary\ndata: {(await summary_of(watch)).model_dump_json()}\n\n"
            silent = 0
            while not stopping():
                try:
                    news = {await asyncio.wait_for(queue.get(), 1)}
                except TimeoutError:
                    silent += 1
                    if silent % _HEARTBEAT == 0:
                        yield ": still here\n\n"
                    continue
                while not queue.empty():
                    news.add(queue.get_nowait())
                yield f"event: summary\ndata: {(await summary_of(watch)).model_dump_json()}\n\n"
                for name in sorted(news & {"board", "trust"}):
                    yield f"event: {name}\ndata: {{}}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def stopping() -> bool:
    """Whether the server is about to stop: it waits for open streams, so they have to end by themselves."""
    # uvicorn tells applications only after the last stream has ended; its signal handler knows before.
    server = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    return bool(getattr(server, "should_exit", False))
