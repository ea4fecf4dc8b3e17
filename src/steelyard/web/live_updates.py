"""Live updates of the dashboard as server-sent events."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from steelyard.web.calculator_process import CalculatorProcess
from steelyard.web.dashboard import Dashboard, Dashboards
from steelyard.web.identity import StudyDep, Viewer
from steelyard.web.studies import ServedStudy
from steelyard.web.summary import SummaryOut, summary

_HEARTBEAT = 15


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    dashboards_of(app).close()
    if stopping():
        CalculatorProcess.end()
        if hasattr(app.state, "report_processes"):
            app.state.report_processes.end()


router = APIRouter(prefix="/api/v1/studies/{study}/manage", tags=["manage"], lifespan=_lifespan)


def dashboards_of(app: FastAPI) -> Dashboards:
    """Return the dashboards of a server; they are created at the first call."""
    if not hasattr(app.state, "dashboards"):
        app.state.dashboards = Dashboards()
    dashboards: Dashboards = app.state.dashboards
    return dashboards


def dashboard_of(request: Request, served: ServedStudy) -> Dashboard:
    """Return the dashboard of a study, and keep its results up to date."""
    dashboard = dashboards_of(request.app).of(served)
    dashboard.keep_fresh()
    return dashboard


async def summary_of(dashboard: Dashboard) -> SummaryOut:
    """Return the progress of a study."""

    def now() -> SummaryOut:
        study = dashboard.served.study
        return summary(dashboard, study.status(), dashboard.served.state_reason())

    return await run_in_threadpool(now)


@router.get("/live", response_class=StreamingResponse, responses={200: {"content": {"text/event-stream": {}}}})
async def live(served: StudyDep, request: Request, _: Viewer) -> StreamingResponse:
    """Send an event `summary` (as /summary) now and at each change; its `parts` say which results are new."""
    dashboard = dashboard_of(request, served)

    async def events() -> AsyncIterator[str]:
        async with dashboard.listen() as queue:
            yield f"retry: 2000\nevent: summary\ndata: {(await summary_of(dashboard)).model_dump_json()}\n\n"
            silent = 0
            while not stopping():
                try:
                    await asyncio.wait_for(queue.get(), 1)
                except TimeoutError:
                    silent += 1
                    if silent % _HEARTBEAT == 0:
                        yield ": still here\n\n"
                    continue
                while not queue.empty():
                    queue.get_nowait()
                yield f"event: summary\ndata: {(await summary_of(dashboard)).model_dump_json()}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def stopping() -> bool:
    """Whether the server is stopping: it waits for open streams, so they must end by themselves."""
    # uvicorn notifies applications only after the last stream has ended; its signal handler knows earlier.
    server = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    return bool(getattr(server, "should_exit", False))
