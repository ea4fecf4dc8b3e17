"""What operators observe: health, readiness, metrics for Prometheus, and the log as JSON.

Metrics and logs of requests contain no names, tokens or answers: requests are counted by the pattern of their path.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from steelyard.errors import StoreError
from steelyard.storage.engine import HEAD
from steelyard.version import __version__
from steelyard.web.addresses import FROM_TRUSTED_PROXY, address_of, is_https, origin_of
from steelyard.web.errors import Refusal, too_many
from steelyard.web.identity import Owner
from steelyard.web.studies import Studies

METRICS_TOKEN = "STEELYARD_METRICS_TOKEN"  # noqa: S105 - the name of the variable, not a token
METRICS_FOLDER = "STEELYARD_METRICS_FOLDER"
LOG_FORMAT = "STEELYARD_LOG_FORMAT"

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the histogram of response times, in seconds."""
_SAVE_SECONDS = 1.0
"""How often a worker process writes its counts for the others at most."""

requests_log = logging.getLogger("steelyard.requests")
router = APIRouter()


@router.get("/api/v1/health", tags=["service"])
def health() -> dict[str, str]:
    """Whether the server answers; for monitoring and for containers."""
    return {"status": "ok"}


@router.get("/api/v1/ready", tags=["service"], responses={503: {"description": "A database cannot be used."}})
def ready(request: Request) -> dict[str, str]:
    """Whether the server can save answers: every database is reachable and has the tables of this version."""
    studies: Studies = request.app.state.studies
    versions = {}
    try:
        for access in studies.access_stores():
            if access.database not in versions:
                versions[access.database] = access.schema_version()
    except StoreError as error:
        raise Refusal(503, "not_ready", "A database cannot be reached.", "See the server's log.") from error
    if set(versions.values()) - {HEAD}:
        raise Refusal(503, "not_ready", "A database was migrated by another version of Steelyard.", "Restart it.")
    return {"status": "ready"}


class ConnectionOut(BaseModel):
    """How the server sees a request."""

    address: Annotated[str, Field(description="the client's address, by which limits count")]
    forwarded: Annotated[bool, Field(description="whether a proxy has sent the request, by its headers")]
    trusted: Annotated[bool, Field(description="whether that proxy is trusted")]
    https: Annotated[bool, Field(description="whether browsers reach the server over TLS, so that cookies are secure")]
    base: Annotated[str, Field(description="what links begin with; empty if they are relative")]


@router.get("/api/v1/manage/connection", tags=["service"])
def connection(request: Request, _: Owner) -> ConnectionOut:
    """How the server sees this request: to check proxies, as `steelyard doctor` does."""
    origin = origin_of(request)
    return ConnectionOut(
        address=address_of(request.scope),
        forwarded=any(name in request.headers for name in ("x-forwarded-proto", "x-forwarded-host", "via")),
        trusted=bool(request.scope.get(FROM_TRUSTED_PROXY)),
        https=is_https(request),
        base=origin + request.app.state.studies.root_path if origin else "",
    )


@router.get(
    "/api/v1/manage/connection/events",
    tags=["service"],
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def connection_events(_: Owner) -> StreamingResponse:
    """Three events within a second, to check that a proxy does not hold them back."""

    async def events() -> AsyncIterator[str]:
        for number in range(3):
            await asyncio.sleep(0.3 if number else 0)
            yield f"data: {number}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


class Metrics:
    """Counts of requests in this process, and those of other worker processes, which are exchanged by files."""

    def __init__(self, folder: Path | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._buckets: Counter[tuple[str, str]] = Counter()
        self._seconds: dict[str, float] = {}
        self._file = None if folder is None else folder / f"{os.getpid()}-{time.time_ns()}.json"
        self._clock = clock
        self._saved_at = -_SAVE_SECONDS

    def note(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request; `seconds` is the time until the response began."""
        with self._lock:
            self._requests[method, route, str(status)] += 1
            self._seconds[route] = self._seconds.get(route, 0.0) + seconds
            self._buckets[route, str(bisect_left(_BUCKETS, seconds))] += 1
            is_due = self._file is not None and self._clock() - self._saved_at >= _SAVE_SECONDS
            if is_due:
                self._save()

    def _save(self) -> None:
        """Write the counts for the other processes."""
        if self._file is not None:
            self._saved_at = self._clock()
            part = self._file.with_suffix(".part")
            part.write_text(json.dumps([list(counts.items()) for counts in self._all()]), encoding="utf-8")
            part.replace(self._file)

    def _all(self) -> tuple[Counter[Any], ...]:
        return self._requests, self._buckets, Counter(self._seconds)

    def totals(self) -> tuple[Counter[Any], ...]:
        """Return requests, buckets and seconds of all processes; of those that ended, too."""
        with self._lock:
            self._save()
            totals = tuple(counts.copy() for counts in self._all())
        for file in self._file.parent.glob("*.json") if self._file is not None else ():
            if file != self._file:
                for total, counts in zip(totals, json.loads(file.read_text(encoding="utf-8")), strict=True):
                    total.update({tuple(key) if isinstance(key, list) else key: value for key, value in counts})
        return totals

    def text(self, studies: Studies) -> str:
        """Return everything in Prometheus' text format."""
        requests, buckets, seconds = self.totals()
        lines = [*_family("steelyard_info", "gauge", "Version of the server.", [(f'{{version="{__version__}"}}', 1)])]
        rows = [
            (f'{{method="{method}",route="{_escaped(route)}",status="{status}"}}', count)
            for (method, route, status), count in sorted(requests.items())
        ]
        lines += _family("steelyard_requests_total", "counter", "Requests by route and status.", rows)
        lines += _histogram(buckets, seconds)
        lines += _of_studies(studies)
        cpu = [("", time.process_time())]
        lines += _family("steelyard_process_cpu_seconds_total", "counter", "CPU time of the process that answers.", cpu)
        return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _family(name: str, kind: str, purpose: str, rows: Sequence[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP {name} {purpose}"
    yield f"# TYPE {name} {kind}"
    for labels, value in rows:
        yield f"{name}{labels} {value:.10g}"


def _histogram(buckets: Counter[tuple[str, str]], seconds: Mapping[str, float]) -> Iterator[str]:
    name = "steelyard_response_seconds"
    yield f"# HELP {name} Seconds until a response began."
    yield f"# TYPE {name} histogram"
    for route in sorted(seconds):
        count = 0
        for number, bound in enumerate((*map(str, _BUCKETS), "+Inf")):
            count += buckets[route, str(number)]
            yield f'{name}_bucket{{route="{_escaped(route)}",le="{bound}"}} {count}'
        yield f'{name}_sum{{route="{_escaped(route)}"}} {seconds[route]:.10g}'
        yield f'{name}_count{{route="{_escaped(route)}"}} {count}'


def _of_studies(studies: Studies) -> Iterator[str]:
    statuses = [(f'{{study="{_escaped(served.slug)}"}}', served.study.status()) for served in studies.all()]
    for name, purpose, value in (
        ("judgments", "Judgments by people.", lambda status: status.judgments),
        ("annotators", "People who have answered.", lambda status: status.annotators),
        ("tasks_planned", "Judgments that the design plans.", lambda status: sum(s.total for s in status.stages)),
        (
            "tasks_done",
            "Planned judgments that have been collected.",
            lambda status: sum(s.done for s in status.stages),
        ),
        ("open", "1 while the study accepts answers.", lambda status: int(status.state == "open")),
    ):
        rows = [(labels, value(status)) for labels, status in statuses]
        yield from _family(f"steelyard_study_{name}", "gauge", purpose, rows)
    yield from _family(
        "steelyard_studies_unreadable", "gauge", "Studies that cannot be opened.", [("", len(studies.unreadable))]
    )


@router.get("/metrics", include_in_schema=False)
def metrics(request: Request) -> PlainTextResponse:
    """Metrics in Prometheus' text format; requires the metrics token, and is not found unless one is set."""
    expected: str | None = request.app.state.metrics_token
    if not expected:
        raise Refusal(404, "not_found", "There is no page at this address.", "Check the link you were given.")
    limiters, address = request.app.state.rate_limiters, address_of(request.scope)
    if wait := limiters.guessing.wait(address):
        raise too_many(wait)
    token = request.headers.get("authorization", "").partition(" ")[2].strip()
    if not hmac.compare_digest(token.encode("utf-8", "surrogatepass"), expected.encode()):
        limiters.guessing.wrong(address, token)
        raise Refusal(
            401, "metrics_only", "Metrics require the monitoring token.", f"Send the token in {METRICS_TOKEN}."
        )
    counts: Metrics = request.app.state.metrics
    text = counts.text(request.app.state.studies)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


class Observe:
    """Count requests, and log each if the log is JSON."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()

        async def observed_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                seconds = time.perf_counter() - began
                route = _route_of(scope)
                self._metrics.note(scope["method"], route, message["status"], seconds)
                if requests_log.isEnabledFor(logging.INFO):
                    fields = {"method": scope["method"], "route": route, "status": message["status"]}
                    requests_log.info("request", extra={"fields": {**fields, "seconds": round(seconds, 4)}})
            await send(message)

        await self._app(scope, receive, observed_send)


def _route_of(scope: Scope) -> str:
    """Return the pattern of a request's path, such as /s/{study}/; the path itself may hold names."""
    if scope["path"].startswith("/static/"):
        return "/static"
    return getattr(scope.get("route"), "path", "") or "unmatched"


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and the fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True)
