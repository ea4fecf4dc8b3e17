"""A real HTTP server that speaks the chat API, and misbehaves as told."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Handler", dict[str, Any], int], None]


class ChatServer(ThreadingHTTPServer):
    """Handles each request by `behave(handler, body, number)`; keeps the requests."""

    daemon_threads = True

    def __init__(self, behave: Behaviour) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behave = behave
        self.requests: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    server: ChatServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests.append({"path": self.path, "key": self.headers.get("Authorization"), **body})
            self.server.times.append(time.monotonic())
            number = len(self.server.requests)
        self.server.behave(self, body, number)

    def send(self, status: int, data: object, headers: dict[str, str] | None = None) -> None:
        text = data.encode() if isinstance(data, str) else json.dumps(data).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(text)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def say(self, content: str | None, finish: str = "stop", refusal: str | None = None) -> None:
        message = {"role": "assistant", "content": content, "refusal": refusal}
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        self.send(200, {"choices": [{"message": message, "finish_reason": finish}], "usage": usage})

    def hang_up(self) -> None:
        """Promise a body and close the connection halfway."""
        self.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"choices": [')
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


def word_in(body: dict[str, Any]) -> int:
    """The number in the first item's text, as in 'word 7'."""
    match = re.search(r"<item A>\D*(\d+)", body["messages"][1]["content"])
    assert match, body["messages"][1]["content"]
    return int(match[1])


def sensible(handler: Handler, body: dict[str, Any], number: int) -> None:
    """Rate each word by its number."""
    handler.say(json.dumps({"A": 10 * word_in(body)}))
