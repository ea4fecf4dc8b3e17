"""A model behind an OpenAI-compatible HTTP endpoint, with retries, rate limits and error handling."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

import httpx

from steelyard.errors import SteelyardError

RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses after which the same request may succeed."""
LONGEST_WAIT = 120.0
"""Seconds to wait at most before a retry, whatever the endpoint asks for."""
PATIENCE = 3
"""Connections that may be refused before the first answer; an endpoint that is not there ends the run."""
Structure = Literal["schema", "json", "none"]
_WEAKER: dict[Structure, Structure] = {"schema": "json", "json": "none"}


class EndpointError(SteelyardError):
    """The endpoint cannot be used at all: no further request would succeed."""


class CallError(SteelyardError):
    """One request failed in spite of all retries; others may succeed.

    `kind` groups failures in summaries; `pause` is the time in seconds that the endpoint asks to wait.
    """

    def __init__(self, kind: str, what: str, remedy: str = "", pause: float | None = None) -> None:
        super().__init__(what, remedy)
        self.kind = kind
        self.pause = pause


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply, with the tokens it took."""

    text: str
    input_tokens: int
    output_tokens: int
    finish_reason: str = "stop"
    is_refusal: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """How requests are sent. `requests_per_minute` 0 is unlimited; times are in seconds."""

    temperature: float = 0.0
    max_tokens: int = 400
    timeout: float = 60.0
    retries: int = 5
    concurrency: int = 4
    requests_per_minute: float = 0.0
    structure: Structure = "schema"
    first_wait: float = 1.0
    """Wait before the first retry; doubled for each further one."""


class Pace:
    """Limit the rate of requests, evenly spaced, and pause all of them when the endpoint is busy."""

    def __init__(self, per_minute: float) -> None:
        self._gap = 60 / per_minute if per_minute > 0 else 0.0
        self._next = 0.0

    async def wait(self) -> None:
        """Wait for the next turn."""
        now = time.monotonic()
        turn = max(now, self._next)
        self._next = turn + self._gap
        if turn > now:
            await asyncio.sleep(turn - now)

    def hold(self, seconds: float) -> None:
        """Start no request within this time."""
        self._next = max(self._next, time.monotonic() + seconds)


@dataclass(eq=False)
class Endpoint:
    """A chat model behind an OpenAI-compatible endpoint.

    `base_url` is the address before `/chat/completions`, such as http://127.0.0.1:11434/v1.
    """

    base_url: str
    model: str
    key: str | None = field(default=None, repr=False)
    settings: Settings = Settings()
    on_retry: Callable[[str], None] = lambda reason: None

    def __post_init__(self) -> None:
        self._structure: Structure = self.settings.structure
        self._pace = Pace(self.settings.requests_per_minute)
        self._http: httpx.AsyncClient | None = None
        self._is_reachable = False
        self._refused_connections = 0

    async def __aenter__(self) -> Endpoint:
        limits = httpx.Limits(max_connections=self.settings.concurrency)
        self._http = httpx.AsyncClient(timeout=self.settings.timeout, limits=limits)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def reply(self, messages: Sequence[dict[str, str]], schema: dict[str, Any], max_tokens: int = 0) -> Reply:
        """Ask for the next message of a conversation; retry while that may help."""
        wait = self.settings.first_wait
        last = CallError("failed", "the request was not sent.")
        for attempt in range(self.settings.retries + 1):
            if attempt:
                self.on_retry(last.kind)
            await self._pace.wait()
            structure = self._structure
            try:
                return _read(await self._post(messages, schema, structure, max_tokens), messages)
            except CallError as error:
                last = error
                if error.kind == "structure":
                    # The endpoint does not know this form of structured output: ask for a weaker one from now on.
                    self._structure = _WEAKER[structure]
                    continue
                pause = min(wait if error.pause is None else error.pause, LONGEST_WAIT)
                if error.kind == "rate limit":
                    self._pace.hold(pause)
                if attempt < self.settings.retries:
                    await asyncio.sleep(pause)
                wait *= 2
        raise last

    async def _post(
        self, messages: Sequence[dict[str, str]], schema: dict[str, Any], structure: Structure, max_tokens: int
    ) -> httpx.Response:
        assert self._http is not None, "use the endpoint as a context manager"  # noqa: S101 - a programming error
        body: dict[str, Any] = {
            "model": self.model,
            "messages": list(messages),
            "temperature": self.settings.temperature,
            "max_tokens": max_tokens or self.settings.max_tokens,
        }
        if structure == "schema":
            form = {"name": "answer", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif structure == "json":
            body["response_format"] = {"type": "json_object"}
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        url = f"{self.base_url.rstrip('/')}/chat/completions"
        try:
            response = await self._http.post(url, json=body, headers=headers)
        except httpx.TimeoutException:
            seconds = f"{self.settings.timeout:g} s"
            raise CallError("timeout", f"no answer within {seconds}.", "Increase --timeout.") from None
        except httpx.InvalidURL as error:
            raise EndpointError(f"{url} is not a valid URL: {error}.", "Check --base-url.") from None
        except httpx.ConnectError as error:
            self._refused_connections += 1
            if not self._is_reachable and self._refused_connections > PATIENCE:
                raise EndpointError(f"{url} cannot be reached: {error}.", "Check --base-url.") from None
            raise CallError("connection", f"{url} cannot be reached: {error}.", "Check --base-url.") from None
        except httpx.TransportError as error:
            raise CallError("connection", f"the connection was lost: {error}.") from None
        self._is_reachable = True
        self._check_status(response, structure)
        return response

    def _check_status(self, response: httpx.Response, structure: Structure) -> None:
        status, said = response.status_code, _error_text(response)
        if status == 200:
            return
        if status in {401, 403}:
            raise EndpointError(
                f"the endpoint refuses the key (status {status}): {said}", "Set the environment variable of the key."
            )
        if status == 404:
            raise EndpointError(
                f"the endpoint does not know the model '{self.model}' or the address: {said}",
                "Check --model and --base-url.",
            )
        if status in {400, 422} and structure != "none" and _is_about_structure(said):
            raise CallError("structure", f"structured output is not supported: {said}")
        if status not in RETRYABLE:
            raise EndpointError(f"the endpoint refuses the request (status {status}): {said}", "")
        pause = retry_after(response.headers.get("retry-after"))
        raise CallError("rate limit" if status == 429 else "server error", f"status {status}: {said}", pause=pause)


def _is_about_structure(said: str) -> bool:
    return any(word in said.lower() for word in ("response_format", "json_schema", "schema", "json mode", "structured"))


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds that a Retry-After header asks to wait, given as seconds or as a date."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())


def _error_text(response: httpx.Response) -> str:
    try:
        error = response.json().get("error", {})
        text = error.get("message", "") if isinstance(error, dict) else str(error)
    except (ValueError, AttributeError):
        text = response.text
    return " ".join(str(text).split())[:300]


def _read(response: httpx.Response, messages: Sequence[dict[str, str]]) -> Reply:
    try:
        data = response.json()
        choice = data["choices"][0]
        message = choice["message"]
        text, refusal = str(message.get("content") or ""), message.get("refusal")
        finish = str(choice.get("finish_reason") or "stop")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        raise CallError(
            "malformed response", "the response is not in the format of a chat API.", "Check --base-url."
        ) from None
    usage = data.get("usage") if isinstance(data.get("usage"), dict) else {}
    sent = usage.get("prompt_tokens")
    received = usage.get("completion_tokens")
    return Reply(
        text=str(refusal) if refusal else text,
        input_tokens=sent if isinstance(sent, int) else estimated_tokens(json.dumps(list(messages))),
        output_tokens=received if isinstance(received, int) else estimated_tokens(text),
        finish_reason=finish,
        is_refusal=bool(refusal) or finish == "content_filter",
    )


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of a text: about four bytes each."""
    return max(1, len(text.encode()) // 4)
