"""The web application: studies in, an ASGI app out."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from steelyard.version import __version__
from steelyard.web import api, hooks, live, manage, manage_api, pages
from steelyard.web.catalogue import catalogues
from steelyard.web.errors import add_handlers
from steelyard.web.identity import Gate, ManageKey
from steelyard.web.security import CompressPublic, Guard, Limits
from steelyard.web.studies import Studies
from steelyard.web.tending import Tender

TOKEN = "STEELYARD_TOKEN"  # noqa: S105 - the name of the variable, not a token
LISTING = "STEELYARD_STUDIES"
DATABASE = "STEELYARD_DATABASE"
WORKERS = "STEELYARD_WORKERS"
_DESCRIPTION = "What the pages do, for scripts too. Annotators have a session cookie; the manager a bearer token."


def create_app(studies: Studies, *, token: str, limits: Limits | None = None) -> FastAPI:
    """Build the application for some studies; `token` lets the manager in."""
    limits = limits or Limits()
    key = ManageKey(token)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        tender = Tender(studies, live.watches_of(app))
        tender.start()
        yield
        await tender.stop()
        studies.close()

    app = FastAPI(
        title="Steelyard",
        version=__version__,
        description=_DESCRIPTION,
        openapi_url="/api/v1/openapi.json",
        # Their pages load scripts from elsewhere; the description itself is enough.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.studies = studies
    app.state.manage_key = key
    app.state.gate = Gate(limits)
    catalogues()
    add_handlers(app)
    app.include_router(api.router)
    app.include_router(api.languages)
    app.include_router(hooks.router)
    app.include_router(pages.router)
    app.include_router(manage_api.router)
    app.include_router(live.router)
    app.include_router(manage.router)
    app.mount("/static", StaticFiles(directory=pages.HERE / "static"), name="static")
    app.add_middleware(CompressPublic)
    app.add_middleware(Guard, limits=limits, is_manager=key.admits)
    return app


def app_from_environment() -> FastAPI:
    """Build the application in a worker process of `steelyard serve`, which left its settings in the environment."""
    configure_logging()
    listing = Path(os.environ[LISTING])
    studies = Studies(database=os.environ.get(DATABASE), listing=listing)
    limits = Limits().shared_by(int(os.environ.get(WORKERS, "1")))
    return create_app(studies, token=os.environ[TOKEN], limits=limits)


def configure_logging() -> None:
    """Write the server's log to standard error, a line an event."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    log = logging.getLogger("steelyard")
    log.handlers[:] = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False
