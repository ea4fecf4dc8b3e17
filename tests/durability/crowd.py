"""A crowd that speaks HTTP to a server which may vanish at any moment, and keeps books of what it was promised."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np

from steelyard.protocols import Protocol
from steelyard.simulate import answer_for

_TRY_AGAIN = {429, 503}


@dataclass(frozen=True)
class Place:
    """A study on a server: its name in addresses, and how it asks."""

    slug: str
    protocol: Protocol


@dataclass
class CrowdRecord:
    """What the crowd of one study sent, what was acknowledged, and what went wrong."""

    sent: dict[str, str] = field(default_factory=dict)
    """Who sent an answer, by its judgment id, acknowledged or not."""
    acknowledged: dict[str, Any] = field(default_factory=dict)
    """The answer that was last acknowledged, by judgment id."""
    last_try: dict[str, int] = field(default_factory=dict)
    """When an answer was sent for the last time, in microseconds since 1970."""
    skipped: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    """Answers of the server that nobody should ever get."""


class Annotator:
    """One person with a browser: asks, looks, answers, and sends again whatever was not acknowledged."""

    def __init__(self, url: str, place: Place, name: str, books: CrowdRecord, look: float, seed: int) -> None:
        self.name = name
        self.waiting = False
        """Whether a request is under way."""
        self._place = place
        self._platform_ledger = books
        self._look = look
        self._rng = np.random.default_rng([seed, *name.encode()])
        self._http = httpx.AsyncClient(base_url=f"{url}/api/v1/studies/{place.slug}", timeout=60)

    async def work(self, stop: asyncio.Event) -> None:
        """Work until told to stop; what was begun is brought to its end."""
        async with self._http:
            welcome = await self._send("POST", "/session", {"name": self.name})
            self._http.headers["X-CSRF-Token"] = welcome.json()["csrf"]
            while not stop.is_set():
                got = (await self._send("POST", "/tasks", {"count": 1})).json()
                if not got["tasks"]:
                    await asyncio.sleep(0.2 + self._rng.random())
                    continue
                await self._do(got["tasks"][0])

    async def _do(self, task: dict[str, Any]) -> None:
        key = task["judgment_id"]
        draw = self._rng.random()
        if draw < 0.02:
            # Somebody who leaves the page open: the lease may well end meanwhile.
            await asyncio.sleep(4 * self._rng.random())
        await asyncio.sleep(self._look * (0.5 + self._rng.random()))
        if 0.02 <= draw < 0.05:
            if (await self._send("POST", f"/tasks/{key}/skip", {"reason": "cannot say"}, may_be={409})).is_success:
                self._platform_ledger.skipped.add(key)
            return
        answer = self._answer(task)
        self._platform_ledger.sent[key] = self.name
        if await self._sent("POST", "/judgments", {"judgment_id": key, "answer": answer, "seconds": 1.0}, key):
            self._platform_ledger.acknowledged[key] = answer
        if draw > 0.95:
            answer = self._answer(task)
            if await self._sent("PUT", f"/judgments/{key}", {"answer": answer}):
                self._platform_ledger.acknowledged[key] = answer
                self._platform_ledger.counts["revised"] += 1

    def _answer(self, task: dict[str, Any]) -> Any:
        ids = [item["id"] for item in task["items"]]
        return answer_for(self._place.protocol, dict(zip(ids, self._rng.random(len(ids)).tolist(), strict=True)))

    async def _sent(self, method: str, path: str, body: dict[str, Any], key: str = "") -> bool:
        response = await self._send(method, path, body, key=key)
        return response.is_success and response.json()["saved"] is True

    async def _send(
        self,
        method: str,
        path: str,
        body: dict[str, Any],
        may_be: frozenset[int] | set[int] = frozenset(),
        key: str = "",
    ) -> httpx.Response:
        """Send until the server has said something: a page that waits for the connection does the same."""
        self.waiting = True
        try:
            while True:
                if key:
                    self._platform_ledger.last_try[key] = time.time_ns() // 1000
                try:
                    response = await self._http.request(method, path, json=body)
                except httpx.TransportError:
                    self._platform_ledger.counts["cut off"] += 1
                    await asyncio.sleep(0.05 + 0.2 * self._rng.random())
                    continue
                if response.status_code not in _TRY_AGAIN:
                    break
                self._platform_ledger.counts[f"told to try again ({response.status_code})"] += 1
                await asyncio.sleep(0.1 + 0.3 * self._rng.random())
        finally:
            self.waiting = False
        self._platform_ledger.counts["requests"] += 1
        if not response.is_success and response.status_code not in may_be:
            self._platform_ledger.failures.append(f"{method} {path}: {response.status_code} {response.text[:200]}")
        return response


class Crowd:
    """Annotators spread over the studies of a server."""

    def __init__(self, url: str, places: Sequence[Place], people: int, look: float, seed: int = 1) -> None:
        self.books = {place.slug: CrowdRecord() for place in places}
        self.annotators = []
        for number in range(people):
            place = places[number % len(places)]
            self.annotators.append(
                Annotator(url, place, f"ann-{number}", self.books[place.slug], look * people / 50, seed)
            )
        self._stop = asyncio.Event()
        self._work: list[asyncio.Task[None]] = []

    @property
    def waiting(self) -> int:
        """How many wait for an answer of the server."""
        return sum(annotator.waiting for annotator in self.annotators)

    @property
    def acknowledged(self) -> int:
        """How many answers were acknowledged so far."""
        return sum(len(books.acknowledged) for books in self.books.values())

    def begin(self) -> None:
        """Let everybody begin."""
        self._work = [asyncio.create_task(annotator.work(self._stop)) for annotator in self.annotators]

    def check_alive(self) -> None:
        """Raise what made anybody stop early."""
        for task in self._work:
            if task.done():
                task.result()

    async def end(self) -> None:
        """Let everybody finish what they do, and go."""
        self._stop.set()
        await asyncio.gather(*self._work)
