"""What every request and response passes through: sizes, types, rates and headers."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from steelyard.web.errors import CUT_OFF, Refusal, error_body, log_refusal

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "media-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
    )
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    # For browsers that do not know frame-ancestors.
    "X-Frame-Options": "DENY",
    # Addresses may hold a personal token; nobody else is told where people come from.
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
_MANAGED = re.compile(r"/manage/|/api/v1/manage/|/api/v1/studies/[^/]+/manage/")
_SAFE = {"GET", "HEAD", "OPTIONS"}
_MANY_KEYS = 20_000


@dataclass(frozen=True, slots=True)
class Rate:
    """So many at once, and so many a second after that."""

    burst: float
    per_second: float


@dataclass(frozen=True, slots=True)
class Limits:
    """What one server takes. A whole class may share one address, so those rates are generous."""

    body: int = 1_000_000
    """Largest request of an annotator, in bytes."""
    upload: int = 100_000_000
    """Largest request of a manager, in bytes."""
    address: Rate = Rate(1000, 300)
    """Requests from one address."""
    person: Rate = Rate(200, 30)
    """Requests of one annotator."""
    joining: Rate = Rate(200, 2)
    """New annotators from one address."""
    guessing: Rate = Rate(20, 0.2)
    """Wrong tokens from one address."""

    def shared_by(self, workers: int) -> Limits:
        """Give each of several processes its part of what one address may guess, so that it holds for them together.

        Who is slowed down elsewhere only waits a little longer than needed; so those limits are each process's own.
        """
        burst, per_second = max(1.0, self.guessing.burst / workers), self.guessing.per_second / workers
        return replace(self, guessing=Rate(burst, per_second))


class Buckets:
    """Token buckets by key: each holds `burst`, and refills at `per_second`."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}

    def _now_left(self, key: str, now: float) -> float:
        left, at = self._left.get(key, (self._rate.burst, now))
        return min(self._rate.burst, left + (now - at) * self._rate.per_second)

    def wait(self, key: str) -> float:
        """Return how many seconds until one more is allowed; 0 if it is now."""
        with self._lock:
            return max(0.0, (1 - self._now_left(key, self._clock())) / self._rate.per_second)

    def take(self, key: str) -> float:
        """Use one up, if there is one; return how many seconds to wait otherwise."""
        with self._lock:
            now = self._clock()
            left = self._now_left(key, now)
            if left < 1:
                return (1 - left) / self._rate.per_second
            if len(self._left) >= _MANY_KEYS:
                self._left = {k: v for k, v in self._left.items() if self._now_left(k, now) < self._rate.burst}
            self._left[key] = (left - 1, now)
            return 0.0


def too_many(seconds: float) -> Refusal:
    """The refusal of somebody who is too fast."""
    wait = max(1, round(seconds + 0.5))
    return Refusal(
        429,
        "too_many",
        "There are too many requests from here just now.",
        f"Nothing is lost. Wait {wait} seconds and try again.",
        headers={"Retry-After": str(wait)},
    )


def address_of(scope: Scope) -> str:
    """The address a request came from; behind a proxy, the one uvicorn was told to trust it about."""
    client = scope.get("client")
    return client[0] if client else "unknown"


class Guard:
    """Refuse what is too big, too fast, of the wrong type or from another site; add the headers to the rest."""

    def __init__(self, app: ASGIApp, limits: Limits, is_manager: Callable[[Headers], bool]) -> None:
        self._app = app
        self._limits = limits
        self._is_manager = is_manager
        self._addresses = Buckets(limits.address)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            largest = self._admit(scope)
        except Refusal as refusal:
            await _refuse(scope, send, refusal)
            return
        read = 0

        async def counted_receive() -> Message:
            nonlocal read
            message = await receive()
            if message["type"] == "http.request":
                read += len(message.get("body", b""))
                if read > largest:
                    scope[CUT_OFF] = True
                    raise _TooLargeError
            return message

        async def guarded_send(message: Message) -> None:
            if read > largest:
                # Whatever the application makes of a body that was cut off, the answer is ours.
                return
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if scope["path"].startswith("/static/"):
                    # Kept by the browser, but asked about each time: a new version is seen at once.
                    headers.setdefault("Cache-Control", "no-cache")
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        with contextlib.suppress(_TooLargeError):
            await self._app(scope, counted_receive, guarded_send)
        if read > largest:
            await _refuse(scope, send, _too_large(largest))

    def _admit(self, scope: Scope) -> int:
        """Look at the request before its body is read; return how much may be read."""
        wait = self._addresses.take(address_of(scope))
        if wait:
            raise too_many(wait)
        headers = Headers(scope=scope)
        if scope["method"] not in _SAFE:
            if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
                raise Refusal(
                    403, "other_site", "The request came from another site.", "Open the study's own page and try again."
                )
            self._check_type(scope, headers)
        managing = _MANAGED.match(scope["path"]) and self._is_manager(headers)
        largest = self._limits.upload if managing else self._limits.body
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > largest:
            raise _too_large(largest)
        return largest

    def _check_type(self, scope: Scope, headers: Headers) -> None:
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        # Forms need no script, so other sites could send them; the manager's pages check a token of their own.
        if kind != "application/json" and not (kind and _MANAGED.match(scope["path"])):
            raise Refusal(
                415, "not_json", "The request is not marked as JSON.", "Send it with Content-Type: application/json."
            )


_PUBLIC = ("/static/", "/api/v1/messages/")


class CompressPublic:
    """Compress what everybody may see anyway. Answers that hold a secret are not: their size could betray it."""

    def __init__(self, app: ASGIApp) -> None:
        self._plain = app
        self._compressed = GZipMiddleware(app, minimum_size=500)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        public = scope["type"] == "http" and scope["path"].startswith(_PUBLIC)
        await (self._compressed if public else self._plain)(scope, receive, send)


class _TooLargeError(Exception):
    """More of the body came than is taken."""


def _too_large(largest: int) -> Refusal:
    return Refusal(
        413,
        "too_large",
        f"The request is too large; at most {largest / 1e6:g} MB are taken.",
        "Nothing was stored. Send less.",
    )


async def _refuse(scope: Scope, send: Send, refusal: Refusal) -> None:
    log_refusal(scope["method"], scope["path"], refusal, address_of(scope))
    body = error_body(refusal)
    headers = MutableHeaders()
    # The rest of the request is not read, so the connection cannot be used again.
    for name, value in {**_HEADERS, **refusal.headers, "Connection": "close"}.items():
        headers[name] = value
    headers["Content-Type"] = "application/json"
    headers["Content-Length"] = str(len(body))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers.raw})
    await send({"type": "http.response.body", "body": body})
