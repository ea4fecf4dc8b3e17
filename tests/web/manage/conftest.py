"""A manager for the tests: with the token for the API, with a browser for the pages."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.conftest import missing_tool, need_marker
from tests.web.conftest import Server

CHROMIUM = "/usr/bin/chromium"


class Manager:
    """Speaks the manager's API with the token."""

    def __init__(self, server: Server) -> None:
        self.http = httpx.Client(headers={"Authorization": f"Bearer {server.token}"}, timeout=60)
        self.server = server
        self.api = f"{server.api}/manage"

    def get(self, path: str, **query: Any) -> httpx.Response:
        url = self.server.url + path if path.startswith("/api") else self.api + path
        return self.http.get(url, params=query)

    def post(self, path: str, body: Any) -> httpx.Response:
        url = self.server.url + path if path.startswith("/api") else self.api + path
        return self.http.post(url, json=body)

    def put(self, path: str, body: Any) -> httpx.Response:
        return self.http.put(self.api + path, json=body)

    def table(self, name: str, **query: Any) -> dict[str, Any]:
        """A table, once it rests on all judgments there are."""

        def read() -> dict[str, Any] | None:
            page: dict[str, Any] = self.get(f"/tables/{name}", **query).json()
            return page if page["as_of"] is not None else None

        table: dict[str, Any] = wait_for(read)
        return table


def wait_for(look: Callable[[], Any], seconds: float = 60) -> Any:
    """Look again until there is something."""
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        result = look()
        if result:
            return result
        time.sleep(0.05)
    raise AssertionError("it did not come")


@pytest.fixture
def manager_of() -> Iterator[Callable[[Server], Manager]]:
    """Return a function that gives a server its manager."""
    managers: list[Manager] = []

    def make(server: Server) -> Manager:
        managers.append(Manager(server))
        return managers[-1]

    yield make
    for manager in managers:
        manager.http.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium."""
    need_marker("browser")
    sync = pytest.importorskip("playwright.sync_api")
    from pathlib import Path

    if not Path(CHROMIUM).exists():
        missing_tool(f"{CHROMIUM} was not found (apt-get install chromium)")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a page as the manager; errors on it fail the test."""
    contexts = []
    errors: list[str] = []

    def note(kind: str, text: str) -> None:
        # A form that is refused (422) is no error of the page.
        if kind == "error" and "of 422" not in text and "ERR_FAILED" not in text:
            errors.append(text)

    def open_it(server: Server, path: str, *, width: int = 1280, height: int = 900, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: note(said.type, said.text))
        page.goto(server.manage_url)
        page.goto(server.url + path)
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert not errors, errors


@pytest.fixture(scope="module")
def axe() -> Any:
    """axe-core, which finds barriers on a page."""
    try:
        # By name, because the package has no types.
        return importlib.import_module("axe_playwright_python.sync_playwright").Axe()
    except ImportError:
        missing_tool("axe-playwright-python is not installed")
