"""Limits and headers of every request and response: sizes, content types, rates, security headers."""

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
        "frame-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
    )
)
EXTERNAL_REDIRECT = "steelyard.external_redirect"
"""Key in the scope of a request whose response leads to another server on purpose."""
FRAME_ANCESTORS = "steelyard.frame_ancestors"
"""Key in the scope of a request: the origins that may show the response in a frame. By default none may."""
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    # For browsers that do not know frame-ancestors.
    "X-Frame-Options": "DENY",
    # URLs may contain a personal token, so no referrer is sent to other sites.
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
_MANAGED_API = re.compile(r"/api/v1/manage/|/api/v1/studies/[^/]+/manage/")
_FORMS = re.compile(r"/manage/|/s/[^/]+/switch$")
"""Pages that send HTML forms, which other sites could send too; they check a CSRF token in the form."""
_SAFE = {"GET", "HEAD", "OPTIONS"}
_MANY_KEYS = 20_000


@dataclass(frozen=True, slots=True)
class Rate:
    """Token bucket: size of a burst, and refills per second."""

    burst: float
    per_second: float


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one server. Rates per address are generous, because a whole class may share one."""

    body: int = 1_000_000
    """Maximum size of an annotator's request, in bytes."""
    upload: int = 100_000_000
    """Maximum size of a manager's request, in bytes."""
    address: Rate = Rate(1000, 300)
    """Requests from one address."""
    annotator: Rate = Rate(200, 30)
    """Requests of one annotator."""
    joining: Rate = Rate(200, 2)
    """New annotators from one address."""
    guessing: Rate = Rate(20, 0.2)
    """Wrong tokens, links, signatures and session cookies from one address."""
    notes: Rate = Rate(100, 2)
    """Flags and skips from one address."""
    newcomers: int = 200
    """Annotators without answers who have leased tasks, from one address."""

    def shared_by(self, workers: int) -> Limits:
        """Divide the limit of failed attempts among worker processes, so that it holds for the server as a whole.

        The other limits apply to each process separately.
        """
        burst, per_second = max(1.0, self.guessing.burst / workers), self.guessing.per_second / workers
        return replace(self, guessing=Rate(burst, per_second))


class TokenBuckets:
    """Token buckets by key, each with `burst` tokens that refill at `per_second`."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}

    def _remaining(self, key: str, now: float) -> float:
        left, at = self._left.get(key, (self._rate.burst, now))
        return min(self._rate.burst, left + (now - at) * self._rate.per_second)

    def wait(self, key: str) -> float:
        """Return the seconds until the next request is allowed; 0 if it is allowed now."""
        with self._lock:
            return max(0.0, (1 - self._remaining(key, self._clock())) / self._rate.per_second)

    def take(self, key: str) -> float:
        """Take a token; return 0, or the seconds to wait if there is none."""
        with self._lock:
            now = self._clock()
            left = self._remaining(key, now)
            if left < 1:
                return (1 - left) / self._rate.per_second
            if len(self._left) >= _MANY_KEYS:
                self._left = {k: v for k, v in self._left.items() if self._remaining(k, now) < self._rate.burst}
            self._left[key] = (left - 1, now)
            return 0.0


class FailedAttempts:
    """Wrong credentials, counted by address.

    Repeating the same wrong credential is not counted: it reveals nothing new, and a dashboard left open after a
    change of the token would lock its manager out.
    """

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._buckets = TokenBuckets(rate, clock)
        self._lock = threading.Lock()
        self._counted: dict[bytes, None] = {}

    def wait(self, address: str) -> float:
        """Return the seconds until an address may try again; 0 if it may now."""
        return self._buckets.wait(address)

    def wrong(self, address: str, credential: str) -> float:
        """Count a wrong credential; return the seconds to wait if there were too many."""
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
    """Annotators without answers who have leased tasks, by address; their number is limited."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._until: dict[str, dict[str, float]] = {}

    def enter(self, address: str, annotator: str, seconds: float) -> bool:
        """Allow a newcomer to lease tasks for `seconds`; False if the address has too many newcomers."""
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
        """Stop counting an annotator, who has answered."""
        with self._lock:
            self._until.get(address, {}).pop(annotator, None)


class Guard:
    """Refuse requests that are too large, too many, of the wrong type or from another site; add security headers."""

    def __init__(
        self, app: ASGIApp, limits: Limits, require_manager: Callable[[Scope], object], root_path: str = ""
    ) -> None:
        self._app = app
        self._limits = limits
        self._root_path = root_path
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
                # Before the size is checked: the response to a large body must not reveal whether a token is right.
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
                # If the body was cut off, this response replaces that of the application.
                return
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if scope["path"].startswith("/static/"):
                    # The browser caches it but revalidates each time, so that a new version is used at once.
                    headers.setdefault("Cache-Control", "no-cache")
                for name, value in _headers_for(scope).items():
                    headers.setdefault(name, value)
                if "location" in headers and not scope.get(EXTERNAL_REDIRECT):
                    headers["location"] = _on_this_server(headers["location"], self._root_path)
            await send(message)

        with contextlib.suppress(_TooLargeError):
            await self._app(scope, counted_receive, guarded_send)
        if read > largest:
            await _refuse(scope, send, _too_large(largest))

    def _check(self, scope: Scope) -> None:
        """Check a request before its body is read."""
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
    """Compress public responses only: the size of a compressed response could reveal a secret in it."""

    def __init__(self, app: ASGIApp) -> None:
        self._plain = app
        self._compressed = GZipMiddleware(app, minimum_size=500)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        public = scope["type"] == "http" and scope["path"].startswith(_PUBLIC)
        await (self._compressed if public else self._plain)(scope, receive, send)


def _headers_for(scope: Scope) -> dict[str, str]:
    """Return the security headers of a response."""
    origins = scope.get(FRAME_ANCESTORS, ())
    if not origins:
        return _HEADERS
    policy = CONTENT_SECURITY_POLICY.replace("frame-ancestors 'none'", f"frame-ancestors {' '.join(origins)}")
    # X-Frame-Options cannot name origins; browsers prefer frame-ancestors.
    headers = {name: value for name, value in _HEADERS.items() if name != "X-Frame-Options"}
    return {**headers, "Content-Security-Policy": policy}


def _check_length(headers: Headers, largest: int) -> None:
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > largest:
        raise _too_large(largest)


def _on_this_server(location: str, root_path: str) -> str:
    """Make the framework's redirects relative: it builds them from the Host header, which the client chooses.

    They do not contain the root path; those of the application do, and have no host.
    """
    parts = urlsplit(location)
    path = f"{root_path}/{parts.path.lstrip('/')}"
    return urlunsplit(("", "", path, parts.query, "")) if parts.netloc else location


class _TooLargeError(Exception):
    """The body is larger than allowed."""


def _too_large(largest: int) -> Refusal:
    return Refusal(
        413,
        "too_large",
        f"The request is too large; at most {largest / 1e6:g} MB are accepted.",
        "Nothing was stored. Send less.",
    )


async def _refuse(scope: Scope, send: Send, refusal: Refusal) -> None:
    log_refusal(scope["method"], scope["path"], refusal, address_of(scope))
    body = error_body(refusal)
    headers = MutableHeaders()
    # The rest of the body is not read, so the connection cannot be reused.
    for name, value in {**_HEADERS, **refusal.headers, "Connection": "close"}.items():
        headers[name] = value
    headers["Content-Type"] = "application/json"
    headers["Content-Length"] = str(len(body))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers.raw})
    await send({"type": "http.response.body", "body": body})
