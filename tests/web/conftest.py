"""Real servers for tests: uvicorn on a free port, in a thread, or as a process of its own that can be killed."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from steelyard.cli.serve import SERVER_OPTIONS
from steelyard.study import Study
from steelyard.web import Studies, create_app
from steelyard.web.addresses import read_proxies
from steelyard.web.security import Limits
from tests.conftest import need_marker
from tests.web.processes import ServeProcess

TOKEN = "the-manager-of-these-tests"


@dataclass
class Server:
    """A running server. `url` has no slash at its end; `page`, `api` and `study` are those of the first study."""

    url: str
    slug: str
    folders: list[Path]
    stop: Callable[[], None]
    token: str = TOKEN
    studies: Studies | None = None
    restart: Callable[[], None] = field(default=lambda: None)
    kill: Callable[[], None] = field(default=lambda: None)
    people: list[Person] = field(default_factory=list)

    @property
    def page(self) -> str:
        return f"{self.url}/s/{self.slug}/"

    @property
    def api(self) -> str:
        return f"{self.url}/api/v1/studies/{self.slug}"

    @property
    def manage_url(self) -> str:
        return f"{self.url}/manage/?token={self.token}"

    @property
    def study(self) -> Study:
        """The study inside the server, when it runs in this process."""
        assert self.studies is not None
        return self.studies.all()[0].study

    def invite(self, name: str) -> str:
        """Make a personal link."""
        with Study.open(self.folders[0]) as study:
            return f"{self.page}?invite={study.access.grant('invite', annotator=name)}"

    def person(self, name: str | None = None) -> Person:
        """Somebody with a browser of their own; already in, if a name is given."""
        person = Person(self)
        self.people.append(person)
        if name is not None:
            person.join(name)
        return person


class Person:
    """Speaks the API as the page does: keeps the cookie, sends the CSRF token."""

    def __init__(self, server: Server) -> None:
        self.http = httpx.Client(base_url=server.api, timeout=30)
        self.csrf = ""

    def join(self, name: str) -> dict[str, Any]:
        return self._welcomed(self.http.post("/session", json={"name": name}))

    def join_by(self, token: str) -> dict[str, Any]:
        return self._welcomed(self.http.post("/session", json={"invite": token}))

    def _welcomed(self, response: httpx.Response) -> dict[str, Any]:
        assert response.status_code == 200, response.text
        welcome: dict[str, Any] = response.json()
        self.csrf = welcome["csrf"]
        return welcome

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.http.get(path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return self.http.post(path, json={} if body is None else body, headers={"X-CSRF-Token": self.csrf}, **options)

    def put(self, path: str, body: Any) -> httpx.Response:
        return self.http.put(path, json=body, headers={"X-CSRF-Token": self.csrf})

    def tasks(self, count: int = 1) -> dict[str, Any]:
        response = self.post("/tasks", {"count": count})
        assert response.status_code == 200, response.text
        data: dict[str, Any] = response.json()
        return data

    def task(self) -> dict[str, Any]:
        first: dict[str, Any] = self.tasks()["tasks"][0]
        return first

    def tell(self, task: dict[str, Any], answer: Any, seconds: float | None = 2.0) -> httpx.Response:
        return self.post("/judgments", {"judgment_id": task["judgment_id"], "answer": answer, "seconds": seconds})


def start_in_thread(
    folders: list[Path],
    *,
    limits: Limits | None = None,
    token: str = TOKEN,
    database: str | None = None,
    proxies: Sequence[str] = (),
    public_url: str | None = None,
    workspace: Path | None = None,
    root_path: str = "",
    **options: Any,
) -> Server:
    """Serve studies from a thread of this process."""
    need_marker("server")
    studies = Studies(folders, database=database, workspace=workspace, root_path=root_path)
    app = create_app(
        studies, token=token, limits=limits, proxies=read_proxies(proxies), public_url=public_url, **options
    )
    config = uvicorn.Config(app, host="127.0.0.1", port=0, **SERVER_OPTIONS)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    give_up = time.monotonic() + 60
    while not server.started and time.monotonic() < give_up:
        assert thread.is_alive(), "the server ended"
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]

    def stop() -> None:
        server.should_exit = True
        thread.join(20)
        studies.close()

    slug = next((served.slug for served in studies.all()), "")
    return Server(f"http://127.0.0.1:{port}{root_path}", slug, folders, stop, token, studies)


def start_process(
    folders: list[Path], *, workers: int = 1, port: int = 0, token: str = TOKEN, database: str | None = None
) -> Server:
    """Serve studies with `steelyard serve`, in a process that can be killed and started again on its port."""
    need_marker("server")
    process = ServeProcess(folders, token=token, workers=workers, port=port, database=database)
    process.start()

    def restart() -> None:
        process.end(signal.SIGKILL)
        process.start()

    server = Server(process.url, process.slugs[0], folders, lambda: process.end(signal.SIGINT), token)
    server.restart = restart
    server.kill = lambda: process.end(signal.SIGKILL)
    return server


ServeStudy = Callable[..., Server]


@pytest.fixture
def serve_study() -> Iterator[ServeStudy]:
    """Return a function that serves folders: in a thread, or with process=True by `steelyard serve`."""
    servers: list[Server] = []

    def serve(*folders: Path, process: bool = False, **options: Any) -> Server:
        start = start_process if process else start_in_thread
        server = start(list(folders), **options)
        servers.append(server)
        return server

    yield serve
    for server in servers:
        for person in server.people:
            person.http.close()
        server.stop()
