"""A stand-in for Prolific's API, written from its public documentation (docs.prolific.com), with books of its own.

What it is faithful to: drafts that can be changed and published studies that cannot, except for places, which only
grow; submissions and their states; completion codes; approval that pays once; bonuses that are set up and then paid
by a request that is NOT idempotent ("will result in participants being paid multiple times") and asynchronous; rate
limits with Retry-After; the two forms of errors; webhooks that are signed, sent at least once and in any order.
On top it can fail: answer 429 or 500, carry a request out and lose its answer, or end the process that asked.

Try it: python -m tests.recruitment.standin, then export STEELYARD_PROLIFIC_API to the address it prints.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.recruitment.platform import Platform, RefusedError

TOKEN = "token-of-the-stand-in-do-not-print"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    platform: Platform

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def do_PATCH(self) -> None:
        self._serve("PATCH")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _serve(self, method: str) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = urlsplit(self.path)
        platform = self.platform
        request = f"{method} {parts.path}"
        with platform._lock:
            platform.requests.append(request)
            number = len(platform.requests)
            queued = platform.troubles.popleft() if platform.troubles else None
        trouble = platform.on_request(number, request) or queued
        if trouble == "lost":
            self.close_connection = True
            return
        if self.headers.get("authorization") != f"Token {TOKEN}":
            self._respond(401, {"error": {"status": 401, "detail": "Invalid token.", "title": "Unauthorized"}})
            return
        if trouble == "429":
            self._respond(429, {"detail": "Request was throttled.", "message": "slow down"}, {"Retry-After": "1"})
            return
        if trouble == "500":
            self._respond(500, {"detail": "Something went wrong."})
            return
        headers: dict[str, str] = {}
        try:
            body = json.loads(raw) if raw else None
            status, found, headers = platform.answer(method, parts.path, parse_qs(parts.query), body)
        except RefusedError as error:
            status, found = error.status, error.body
        platform.on_done(number, request)
        if trouble == "lost after":
            self.close_connection = True
            return
        if trouble == "500 after":
            status, found = 502, {"detail": "Bad gateway"}
        self._respond(status, found, headers)

    def _respond(self, status: int, found: Any, headers: dict[str, str] | None = None) -> None:
        text = json.dumps(found).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        # Whoever asked may be dead by now.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.end_headers()
            self.wfile.write(text)


@dataclass
class StandIn:
    """A running stand-in."""

    url: str
    platform: Platform
    stop: Callable[[], None]


def start(port: int = 0) -> StandIn:
    """Run a stand-in in a thread."""
    platform = Platform()
    handler = type("Handler", (_Handler,), {"platform": platform})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join(5)

    return StandIn(f"http://127.0.0.1:{server.server_address[1]}", platform, stop)


if __name__ == "__main__":
    running = start(8765)
    sys.stdout.write(f"export STEELYARD_PROLIFIC_API={running.url} STEELYARD_PROLIFIC_TOKEN={TOKEN}\n")
    sys.stdout.write("Ctrl-C ends it; nobody comes by themselves.\n")
    sys.stdout.flush()
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        running.stop()
