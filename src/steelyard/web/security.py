"""What every request and response passes through: sizes, types, rates and headers."""

from __future__ import annotations

import contextlib
import hashlib
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import urlsplit, urlunsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from steelyard.web.addresses import address_of
from steelyard.web.errors import CUT_OFF, Refusal, error_body, log_refusal, too_many

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
_MANAGED_API = re.compile(r"/api/v1/manage/|/api/v1/studies/[^/]+/manage/")
_FORMS = re.compile(r"/manage/|/s/[^/]+/switch$")
"""Pages that send forms. Other sites could send those too, so these check a token of their own."""
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
    """Wrong tokens, links, signatures and session cookies from one address."""
    notes: Rate = Rate(100, 2)
    """Flags and skips from one address."""
    newcomers: int = 200
    """Annotators without any answer who hold tasks, from one address."""

    def shared_by(self, workers: int) -> Limits:
        """Give each of several processes its part of what one address may guess, so that it holds for them together.

        Who is slowed down elsewhere only waits a little longer than needed; so those limits are each process's own.
        """
        burst, per_second = max(1.0, self.guessing.burst / workers), self.guessing.per_second / workers
        return replace(self, guessing=Rate(burst, per_second))


class TokenBuckets:
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


class FailedAttempts:
    """Wrong credentials, counted by address.

    The same wrong one again tells nobody anything new and is not counted, or a dashboard left open after the
    token changed would lock its own manager out.
    """

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._buckets = TokenBuckets(rate, clock)
        self._lock = threading.Lock()
        self._counted: dict[bytes, None] = {}

    def wait(self, address: str) -> float:
        """Return how many seconds until an address may try again; 0 if it may now."""
        return self._buckets.wait(address)

    def wrong(self, address: str, credential: str) -> float:
        """Count a wrong credential; return how many seconds to wait if there were too many."""
        entry = hashlib.sha256(f"{address} {credential}".encode("utf-8", "surrogatepass")).digest()
        with self._lock:
            if entry in self._counted:
                return 0.0
        seconds = self._buckets.take(address)
        if not seconds:
            with self._lock:
                if len(self._counted) >= _MANY_KEYS:
                    self._counted.clear()
                self._counted[entry] = None
        return seconds


class Newcomers:
    """Annotators without any answer who hold tasks, by address: only so many at once."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._until: dict[str, dict[str, float]] = {}

    def enter(self, address: str, annotator: str, seconds: float) -> bool:
        """Let a newcomer hold tasks for some seconds; False if too many from the address do."""
        with self._lock:
            now = self._clock()
            if len(self._until) >= _MANY_KEYS:
                self._until = {
                    key: people for key, people in self._until.items() if max(people.values(), default=0) > now
                }
            people = self._until.setdefault(address, {})
            if annotator not in people and len(people) >= self._most:
                people = self._until[address] = {name: end for name, end in people.items() if end > now}
                if len(people) >= self._most:
                    return False
            people[annotator] = now + seconds
            return True

    def leave(self, address: str, annotator: str) -> None:
        """Count somebody no more, as they have answered."""
        with self._lock:
            self._until.get(address, {}).pop(annotator, None)


class Guard:
    """Refuse what is too big, too fast, of the wrong type or from another site; add the headers to the rest."""

    def __init__(self, app: ASGIApp, limits: Limits, require_manager: Callable[[Scope], None]) -> None:
        self._app = app
        self._limits = limits
        self._require_manager = require_manager
        self._addresses = TokenBuckets(limits.address)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check(scope)
            largest = self._limits.body
            if _MANAGED_API.match(scope["path"]):
                # Before its size is looked at: what is answered to a large body must not tell right tokens from wrong.
                await run_in_threadpool(self._require_manager, scope)
                largest = self._limits.upload
            _check_length(Headers(scope=scope), largest)
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
                if "location" in headers:
                    headers["location"] = _on_this_server(headers["location"])
            await send(message)

        with contextlib.suppress(_TooLargeError):
            await self._app(scope, counted_receive, guarded_send)
        if read > largest:
            await _refuse(scope, send, _too_large(largest))

    def _check(self, scope: Scope) -> None:
        """Look at the request before its body is read."""
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

    def _check_type(self, scope: Scope, headers: Headers) -> None:
        path = scope["path"]
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and not (kind and (_FORMS.match(path) or _MANAGED_API.match(path))):
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


def _check_length(headers: Headers, largest: int) -> None:
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > largest:
        raise _too_large(largest)


def _on_this_server(location: str) -> str:
    """Make a redirect relative: the framework builds some from the Host header, which anybody can choose."""
    parts = urlsplit(location)
    return urlunsplit(("", "", "/" + parts.path.lstrip("/"), parts.query, "")) if parts.netloc else location


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
