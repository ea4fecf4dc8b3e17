"""The ASGI application that serves studies."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from steelyard.errors import ConfigError
from steelyard.report import typeface
from steelyard.version import __version__
from steelyard.web import (
    api,
    live_updates,
    manage_api,
    manage_pages,
    new_study_api,
    observation,
    pages,
    prolific,
    reports,
    sharing_api,
    team_api,
    webhooks,
)
from steelyard.web.addresses import Network, RootPath, TrustedProxies, read_proxies
from steelyard.web.background import BackgroundJobs
from steelyard.web.calculator_process import prepares_dashboards
from steelyard.web.catalogue import catalogues
from steelyard.web.errors import add_handlers
from steelyard.web.identity import ManageKey, RateLimiters, check_manager, check_strength
from steelyard.web.security import CompressPublic, Guard, Limits
from steelyard.web.studies import Studies

if TYPE_CHECKING:
    from steelyard.web.oidc import OidcSettings

TOKEN = "STEELYARD_TOKEN"  # noqa: S105 - the name of the variable, not a token
LISTING = "STEELYARD_STUDIES"
DATABASE = "STEELYARD_DATABASE"
WORKSPACE = "STEELYARD_WORKSPACE"
WORKERS = "STEELYARD_WORKERS"
TRUSTED_PROXIES = "STEELYARD_TRUSTED_PROXIES"
PUBLIC_URL = "STEELYARD_PUBLIC_URL"
ROOT_PATH = "STEELYARD_ROOT_PATH"
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
    metrics_token: str | None = None,
    oidc: OidcSettings | None = None,
) -> FastAPI:
    """Build the application for these studies; `token` authenticates the manager.

    `X-Forwarded-…` headers are trusted from `proxies` only: the ASGI server must not apply them itself (uvicorn does
    unless `proxy_headers` is False). `public_url` is the address used in links; it ends with the root path of the
    studies. `prepare_dashboards` computes the first results when the server starts rather than when the first page is
    opened. With `metrics_token`, `/metrics` answers requests that have it. With `oidc`, managers may sign in with an
    identity provider.
    """
    check_strength(token)
    if metrics_token:
        check_strength(metrics_token, observation.METRICS_TOKEN)
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
        servers=[{"url": studies.root_path}] if studies.root_path else None,
    )
    app.state.studies = studies
    app.state.manage_key = ManageKey(token, studies)
    app.state.public_url = public_url
    app.state.rate_limiters = RateLimiters(limits)
    app.state.metrics_token = metrics_token
    folder = os.environ.get(observation.METRICS_FOLDER)
    app.state.metrics = observation.Metrics(Path(folder) if folder else None)
    _add_routes(app, oidc)
    app.add_middleware(CompressPublic)
    app.add_middleware(Guard, limits=limits, require_manager=check_manager, root_path=studies.root_path)
    app.add_middleware(observation.Observe, metrics=app.state.metrics)
    app.add_middleware(RootPath, root_path=studies.root_path)
    app.add_middleware(TrustedProxies, proxies=proxies)
    return app


def _add_routes(app: FastAPI, oidc: OidcSettings | None) -> None:
    catalogues()
    add_handlers(app)
    app.include_router(api.router)
    app.include_router(api.languages)
    app.include_router(observation.router)
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
    app.state.oidc = None
    if oidc is not None:
        # Imported only if it is used: it needs the extra oidc.
        from steelyard.web import oidc as openid

        app.state.oidc = openid.Issuer(oidc)
        app.include_router(openid.router)


def app_from_environment() -> FastAPI:
    """Build the application in a worker process of `steelyard serve`, with settings from the environment."""
    configure_logging()
    listing = Path(os.environ[LISTING])
    workspace = os.environ.get(WORKSPACE)
    studies = Studies(
        database=os.environ.get(DATABASE),
        listing=listing,
        workspace=Path(workspace) if workspace else None,
        root_path=os.environ.get(ROOT_PATH, ""),
    )
    limits = Limits().shared_by(int(os.environ.get(WORKERS, "1")))
    return create_app(
        studies,
        token=os.environ[TOKEN],
        limits=limits,
        proxies=read_proxies([os.environ.get(TRUSTED_PROXIES, "")]),
        public_url=os.environ.get(PUBLIC_URL) or None,
        prepare_dashboards=prepares_dashboards(),
        metrics_token=os.environ.get(observation.METRICS_TOKEN),
        oidc=oidc_settings(os.environ.get(PUBLIC_URL) or None),
    )


def oidc_settings(public_url: str | None) -> OidcSettings | None:
    """Read the settings of the sign-in by OpenID Connect from the environment; None if there are none."""
    if not os.environ.get("STEELYARD_OIDC_ISSUER"):
        return None
    from steelyard.web.oidc import OidcSettings

    return OidcSettings.from_environment(public_url)


def configure_logging() -> None:
    """Write the server's log to standard error, one line per event; as JSON, with requests, if STEELYARD_LOG_FORMAT."""
    handler = logging.StreamHandler()
    is_json = log_format() == "json"
    plain = logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S")
    handler.setFormatter(observation.JsonFormatter() if is_json else plain)
    observation.requests_log.setLevel(logging.INFO if is_json else logging.WARNING)
    log = logging.getLogger("steelyard")
    log.handlers[:] = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False
    # Requests that wait for a computation when the server stops are no errors.
    logging.getLogger("uvicorn.error").addFilter(_is_error)


def log_format() -> str:
    """Return the format of the log: text, or json."""
    name = os.environ.get(observation.LOG_FORMAT, "text")
    if name not in {"text", "json"}:
        raise ConfigError(f"{observation.LOG_FORMAT} is '{name}'.", "Use text or json.")
    return name


def _is_error(record: logging.LogRecord) -> bool:
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or not issubclass(kind, asyncio.CancelledError)
