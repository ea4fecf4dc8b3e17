"""Simulated annotators that use the HTTP API of a server that may be killed, and record what it acknowledged."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np

from steelyard.protocols import ErrorSpans, Protocol
from steelyard.simulate import answer_for

_TRY_AGAIN = {429, 503}


@dataclass(frozen=True)
class Place:
    """A study on a server: its slug and its protocol."""

    slug: str
    protocol: Protocol


@dataclass
class CrowdRecord:
    """The answers that the annotators of one study sent, the acknowledged ones, and failures."""

    sent: dict[str, str] = field(default_factory=dict)
    """The sender of each answer, acknowledged or not, by judgment id."""
    acknowledged: dict[str, Any] = field(default_factory=dict)
    """The last acknowledged answer, by judgment id."""
    last_try: dict[str, int] = field(default_factory=dict)
    """Time of the last attempt to send an answer, in microseconds since 1970."""
    skipped: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    """Unexpected responses of the server."""


class Annotator:
    """One annotator: leases tasks, answers after a delay, and sends again whatever was not acknowledged."""

    def __init__(self, url: str, place: Place, name: str, record: CrowdRecord, delay: float, seed: int) -> None:
        self.name = name
        self.waiting = False
        """Whether a request is pending."""
        self._place = place
        self._record = record
        self._delay = delay
        self._rng = np.random.default_rng([seed, *name.encode()])
        self._http = httpx.AsyncClient(base_url=f"{url}/api/v1/studies/{place.slug}", timeout=60)

    async def work(self, stop: asyncio.Event) -> None:
        """Answer tasks until `stop` is set; the current task is finished."""
        async with self._http:
            welcome = await self._send("POST", "/session", {"name": self.name})
            self._http.headers["X-CSRF-Token"] = welcome.json()["csrf"]
            while not stop.is_set():
                leased = (await self._send("POST", "/tasks", {"count": 1})).json()
                if not leased["tasks"]:
                    await asyncio.sleep(0.2 + self._rng.random())
                    continue
                await self._do(leased["tasks"][0])

    async def _do(self, task: dict[str, Any]) -> None:
        key = task["judgment_id"]
        draw = self._rng.random()
        if draw < 0.02:
            # An annotator who leaves the page open; the lease may end in the meantime.
            await asyncio.sleep(4 * self._rng.random())
        await asyncio.sleep(self._delay * (0.5 + self._rng.random()))
        if 0.02 <= draw < 0.05:
            if (await self._send("POST", f"/tasks/{key}/skip", {"reason": "cannot say"}, may_be={409})).is_success:
                self._record.skipped.add(key)
            return
        answer = self._answer(task)
        self._record.sent[key] = self.name
        if await self._sent("POST", "/judgments", {"judgment_id": key, "answer": answer, "seconds": 1.0}, key):
            self._record.acknowledged[key] = answer
        if draw > 0.95:
            answer = self._answer(task)
            if await self._sent("PUT", f"/judgments/{key}", {"answer": answer}):
                self._record.acknowledged[key] = answer
                self._record.counts["revised"] += 1

    def _answer(self, task: dict[str, Any]) -> Any:
        ids = [item["id"] for item in task["items"]]
        answer = answer_for(self._place.protocol, dict(zip(ids, self._rng.random(len(ids)).tolist(), strict=True)))
        if isinstance(self._place.protocol, ErrorSpans):
            for item in task["items"]:
                answer[item["id"]]["spans"] = self._marks(len(item["text"]))
        return answer

    def _marks(self, length: int) -> list[dict[str, Any]]:
        """Return some marks anywhere in a text, overlapping ones among them, and perhaps an omission."""
        starts = self._rng.integers(0, length, int(self._rng.integers(0, 4)))
        marks: list[dict[str, Any]] = [
            {"start": int(start), "end": int(self._rng.integers(start, length)) + 1, "severity": "major"}
            for start in starts
        ]
        return marks + [{"omission": True, "severity": "minor"}] * int(self._rng.random() < 0.2)

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
        """Send a request until the server responds, as the page does."""
        self.waiting = True
        try:
            while True:
                if key:
                    self._record.last_try[key] = time.time_ns() // 1000
                try:
                    response = await self._http.request(method, path, json=body)
                except httpx.TransportError:
                    self._record.counts["cut off"] += 1
                    await asyncio.sleep(0.05 + 0.2 * self._rng.random())
                    continue
                if response.status_code not in _TRY_AGAIN:
                    break
                self._record.counts[f"retry ({response.status_code})"] += 1
                await asyncio.sleep(0.1 + 0.3 * self._rng.random())
        finally:
            self.waiting = False
        self._record.counts["requests"] += 1
        if not response.is_success and response.status_code not in may_be:
            self._record.failures.append(f"{method} {path}: {response.status_code} {response.text[:200]}")
        return response


class Crowd:
    """Annotators distributed over the studies of a server."""

    def __init__(self, url: str, places: Sequence[Place], people: int, delay: float, seed: int = 1) -> None:
        self.records = {place.slug: CrowdRecord() for place in places}
        self.annotators = []
        for number in range(people):
            place = places[number % len(places)]
            self.annotators.append(
                Annotator(url, place, f"ann-{number}", self.records[place.slug], delay * people / 50, seed)
            )
        self._stop = asyncio.Event()
        self._work: list[asyncio.Task[None]] = []

    @property
    def waiting(self) -> int:
        """Number of annotators who wait for a response."""
        return sum(annotator.waiting for annotator in self.annotators)

    @property
    def acknowledged(self) -> int:
        """Number of acknowledged answers so far."""
        return sum(len(record.acknowledged) for record in self.records.values())

    def begin(self) -> None:
        """Start all annotators."""
        self._work = [asyncio.create_task(annotator.work(self._stop)) for annotator in self.annotators]

    def check_alive(self) -> None:
        """Raise the exception of an annotator who stopped early."""
        for task in self._work:
            if task.done():
                task.result()

    async def end(self) -> None:
        """Let all annotators finish their current task, and stop."""
        self._stop.set()
        await asyncio.gather(*self._work)
