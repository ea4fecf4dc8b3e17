"""Somebody at the page: what tests do and read in the browser, in one place."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urljoin

from msgspec import to_builtins

from tests.web.conftest import Server

TOO_SOON = 0.32


def quiet_address(address: str) -> str:
    """An address of the same server without scripts: the browser goes there and on in the same process."""
    return urljoin(address, "/static/icon.svg")


class Judge:
    """A person with a browser profile of their own (`context`) and one tab (`page`)."""

    def __init__(self, page: Any, address: str) -> None:
        self.context = page.context
        self.address = address
        self.page = page
        self.page.set_default_timeout(10_000)
        self.troubles: list[str] = []
        self.spoilt = False
        """Whether the test has changed the profile for good, so that no other test can use it."""
        self._shown_at = 0.0
        self.page.on("pageerror", self._note_error)
        self.page.on("console", self._note)

    def leave(self) -> None:
        """The test is over: what happens now is no longer its business."""
        self.page.remove_listener("pageerror", self._note_error)
        self.page.remove_listener("console", self._note)

    def _note_error(self, error: Any) -> None:
        self.troubles.append(str(error))

    def _note(self, message: Any) -> None:
        # What the browser itself says about requests that fail is the tests' own doing.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.troubles.append(message.text)

    # The way in

    def join(self, name: str) -> None:
        """Sign in without the page, and as somebody who has seen the instructions; tests of the way in do not."""
        study = self.address.rstrip("/").rpartition("/")[2]
        api = self.address.replace("/s/", "/api/v1/studies/") + "session"
        response = self.context.request.post(api, data={"name": name})
        assert response.ok
        if not self.page.url.startswith(urljoin(self.address, "/")):
            self.page.goto(quiet_address(self.address))
        self.page.evaluate(
            "seen => localStorage.setItem(seen, '1')", f"steelyard:seen:{study}:{response.json()['key']}"
        )

    def give_name(self, name: str) -> None:
        self.page.get_by_label("Choose a name").fill(name)
        self.page.keyboard.press("Enter")

    # Tasks

    def wait_for_task(self, other_than: str | None = None) -> None:
        """Wait until a task (another one) is there."""
        self.page.wait_for_function(
            """before => {
                const content = document.querySelector("main .task:not([inert])");
                return content && content.innerText !== before;
            }""",
            arg=other_than,
        )
        self._shown_at = time.monotonic()

    def shown(self) -> str:
        """What the task says, to tell one from another."""
        return str(self.page.locator("main .task").inner_text())

    def items(self) -> list[str]:
        """The ids of what is shown, in order."""
        texts = self.page.locator("main .task .content").all_inner_texts()
        return [text.removeprefix("word ") for text in texts if text.startswith("word ")]

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def change_language(self, code: str) -> None:
        """Choose another language in the help dialog; wait until the dialog, which holds an example answer, is gone."""
        self.press("?")
        self.page.get_by_label("Language").select_option(code)
        self.page.locator("dialog").wait_for(state="detached")

    def submit(self, *, by: str = "Enter") -> None:
        self.settle()
        if by == "Enter":
            self.page.keyboard.press("Enter")
        elif by == "tap":
            self.page.locator("#submit").tap()
        else:
            # Playwright waits for what is aria-disabled; people can press it.
            self.page.locator("#submit").click(force=True)

    def settle(self) -> None:
        """Let the first moments of a task pass, in which the page takes no answer: two clicks must not answer two."""
        time.sleep(max(0.0, self._shown_at + TOO_SOON - time.monotonic()))

    def answer(self, *keys: str) -> None:
        """Answer by keys, submit, and wait for the next task."""
        before = self.shown()
        self.press(*keys)
        self.submit()
        self.wait_for_task(other_than=before)

    def hold(self, address: str) -> list[Any]:
        """Keep requests to an address from going out; they gather in the list that is returned."""
        routes: list[Any] = []

        def keep(route: Any) -> None:
            routes.append(route)

        self.page.route(address, keep)
        return routes

    # What the page says

    def saved(self) -> None:
        """Wait until the page says that the server has everything."""
        self.page.wait_for_function('() => document.getElementById("saved").textContent === "✓ saved"')

    def says(self, words: str) -> None:
        self.page.get_by_text(words).first.wait_for()

    def kept(self) -> int:
        """How many answers this browser keeps because the server has not confirmed them."""
        names = "Object.keys(localStorage).filter(name => name.startsWith('steelyard:out:')).length"
        return int(self.page.evaluate(names))

    @property
    def progress(self) -> str:
        return str(self.page.locator("#progress").inner_text())


def judgments_of(server: Server, study: str, annotator: str) -> list[Any]:
    """The answers a study has from somebody, oldest first."""
    assert server.studies is not None
    served = server.studies.get(study)
    assert served is not None
    rows = served.study.judgments().filter(annotator=annotator).sort("at")
    return [json.loads(answer) for answer in rows["answer"]]


def log_of(server: Server, study: str, kind: str, annotator: str) -> list[Any]:
    """What a study's log says about somebody, of one kind of event."""
    assert server.studies is not None
    served = server.studies.get(study)
    assert served is not None
    return [to_builtins(event.data) for event in served.study.events((kind,)) if event.annotator == annotator]


def wait_until(holds: Callable[[], bool], what: str, seconds: float = 10) -> None:
    """Wait for something outside the browser."""
    give_up = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < give_up, what
        time.sleep(0.02)
