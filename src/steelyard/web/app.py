"""The ASGI application that serves studies."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from steelyard.report import typeface
from steelyard.version import __version__
from steelyard.web import (
    api,
    live_updates,
    manage_api,
    manage_pages,
    new_study_api,
    pages,
    prolific,
    reports,
    sharing_api,
    team_api,
    webhooks,
)
from steelyard.web.addresses import Network, TrustedProxies, read_proxies, read_public_url
from steelyard.web.background import BackgroundJobs
from steelyard.web.calculator_process import prepares_dashboards
from steelyard.web.catalogue import catalogues
from steelyard.web.errors import add_handlers
from steelyard.web.identity import ManageKey, RateLimiters, check_manager, check_strength
from steelyard.web.security import CompressPublic, Guard, Limits
from steelyard.web.studies import Studies

TOKEN = "STEELYARD_TOKEN"  # noqa: S105 - the name of the variable, not a token
LISTING = "STEELYARD_STUDIES"
DATABASE = "STEELYARD_DATABASE"
WORKSPACE = "STEELYARD_WORKSPACE"
WORKERS = "STEELYARD_WORKERS"
TRUSTED_PROXIES = "STEELYARD_TRUSTED_PROXIES"
PUBLIC_URL = "STEELYARD_PUBLIC_URL"
_DESCRIPTION = (
    "The API behind the pages, also for scripts. Annotators use a session cookie; the owner and team "
    "members a bearer token."
)


def create_app(
    studies: Studies,
    *,
    token: str,
    limits: Limits | None = None,
    proxies: Sequence[Network] = (),
    public_url: str | None = None,
    prepare_dashboards: bool = False,
) -> FastAPI:
    """Build the application for these studies; `token` authenticates the manager.

    `X-Forwarded-…` headers are trusted from `proxies` only: the ASGI server must not apply them itself (uvicorn does
    unless `proxy_headers` is False). `public_url` is the address used in links. `prepare_dashboards` computes the first
    results when the server starts rather than when the first page is opened.
    """
    check_strength(token)
    limits = limits or Limits()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        dashboards = live_updates.dashboards_of(app)
        if prepare_dashboards:
            dashboards.warm_up(studies.all())
        background = BackgroundJobs(studies, dashboards)
        background.start()
        yield
        await background.stop()
        studies.close()

    app = FastAPI(
        title="Steelyard",
        version=__version__,
        description=_DESCRIPTION,
        openapi_url="/api/v1/openapi.json",
        # Interactive API pages would load scripts from other hosts; the OpenAPI description is enough.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.studies = studies
    app.state.manage_key = ManageKey(token, studies)
    app.state.public_url = public_url
    app.state.rate_limiters = RateLimiters(limits)
    catalogues()
    add_handlers(app)
    app.include_router(api.router)
    app.include_router(api.languages)
    app.include_router(api.service)
    app.include_router(webhooks.router)
    app.include_router(pages.router)
    app.include_router(manage_api.router)
    app.include_router(reports.router)
    app.include_router(prolific.router)
    app.include_router(new_study_api.router)
    app.include_router(sharing_api.router)
    app.include_router(team_api.router)
    app.include_router(live_updates.router)
    app.include_router(manage_pages.router)
    app.mount("/static/fonts", StaticFiles(directory=typeface.FOLDER), name="fonts")
    app.mount("/static", StaticFiles(directory=pages.HERE / "static"), name="static")
    app.add_middleware(CompressPublic)
    app.add_middleware(Guard, limits=limits, require_manager=check_manager)
    app.add_middleware(TrustedProxies, proxies=proxies)
    return app


def app_from_environment() -> FastAPI:
    """Build the application in a worker process of `steelyard serve`, with settings from the environment."""
    configure_logging()
    listing = Path(os.environ[LISTING])
    workspace = os.environ.get(WORKSPACE)
    studies = Studies(
        database=os.environ.get(DATABASE), listing=listing, workspace=Path(workspace) if workspace else None
    )
    limits = Limits().shared_by(int(os.environ.get(WORKERS, "1")))
    public_url = os.environ.get(PUBLIC_URL)
    return create_app(
        studies,
        token=os.environ[TOKEN],
        limits=limits,
        proxies=read_proxies([os.environ.get(TRUSTED_PROXIES, "")]),
        public_url=read_public_url(public_url) if public_url else None,
        prepare_dashboards=prepares_dashboards(),
    )


def configure_logging() -> None:
    """Write the server's log to standard error, one line per event."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    log = logging.getLogger("steelyard")
    log.handlers[:] = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False
    # Requests that wait for a computation when the server stops are no errors.
    logging.getLogger("uvicorn.error").addFilter(_is_error)


def _is_error(record: logging.LogRecord) -> bool:
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or not issubclass(kind, asyncio.CancelledError)
