"""A real browser on a real server: Debian's Chromium driven by Playwright."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import missing_tool, need_marker
from tests.web.conftest import Server, start_in_thread
from tests.web.pages.judge import Judge, quiet_address
from tests.web.pages.profiles import Profiles
from tests.web.pages.studies import PROTOCOLS, write_study

CHROMIUM = Path("/usr/bin/chromium")


# Not for the session: while Playwright runs, nothing else in this thread can run an event loop.
@pytest.fixture(scope="package")
def profiles() -> Iterator[Profiles]:
    """One Chromium for all pages."""
    need_marker("browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing_tool("playwright is not installed")
    if not CHROMIUM.exists():
        missing_tool(f"there is no {CHROMIUM} (apt-get install chromium)")
    with sync_playwright() as playwright:
        # The limit keeps Chromium from starting processes in advance.
        flags = ["--no-sandbox", "--renderer-process-limit=1"]
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=flags)
        yield Profiles(chromium)
        chromium.close()


@pytest.fixture
def judge(profiles: Profiles) -> Iterator[Callable[..., Judge]]:
    """Return a function that opens a study's page in a browser profile of its own; with a name, at the first task.

    Whatever a page writes to its console as an error fails the test, unless the network was to fail.
    """
    opened: list[Judge] = []

    def come(address: str, name: str | None = None, *, device: str = "desktop", context: Any = None) -> Judge:
        page = context.new_page() if context else profiles.take(device)
        new = Judge(page, address)
        opened.append(new)
        if name is not None:
            new.join(name)
        new.page.goto(address)
        if name is not None:
            new.wait_for_task()
        return new

    yield come
    for one in opened:
        one.leave()
    for context in {one.context for one in opened if one.spoilt}:
        profiles.drop(context)
    if opened:
        profiles.take_back(quiet_address(opened[0].address))
    assert not [trouble for one in opened for trouble in one.troubles]


@pytest.fixture(scope="package")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with one small study for every protocol, each under its own name."""
    folder = tmp_path_factory.mktemp("studies")
    server = start_in_thread([write_study(folder / name, **study) for name, study in PROTOCOLS.items()])
    yield server
    server.stop()
