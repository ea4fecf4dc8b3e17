"""A client for Prolific's API: requests, safe retries, and a dry run that changes nothing.

Source: the public reference at docs.prolific.com (studies, submissions, bonuses, webhooks). A request whose answer was
lost may have been carried out. Reads and idempotent writes are sent again; other writes raise `UnsureError`, and the
caller checks the state on the platform before it sends them again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx

from steelyard.errors import ConfigError, SteelyardError
from steelyard.version import __version__

TOKENS = ("STEELYARD_PROLIFIC_TOKEN", "PROLIFIC_TOKEN")
ADDRESS = "STEELYARD_PROLIFIC_API"
PROLIFIC = "https://api.prolific.com"
_LOCAL = {"localhost", "127.0.0.1", "::1"}
_MAX_ATTEMPTS = 5
_MAX_WAIT = 60.0
_PAGE = 100


class PlatformError(SteelyardError):
    """Prolific refused a request. `status` is HTTP's."""

    def __init__(self, what: str, remedy: str, status: int = 0) -> None:
        super().__init__(what, remedy)
        self.status = status


class UnsureError(PlatformError):
    """A request was sent and no answer came: it may have been carried out, or not."""


class Client:
    """Prolific's API, for one command.

    Parameters
    ----------
    token: the API token; may be None in a dry run, whose reads then return nothing
    address: base URL of the API; Prolific's own by default
    show: called with each request as text
    dry: whether requests that change something are only shown
    sleep: function that waits; tests replace it
    """

    def __init__(
        self,
        token: str | None,
        *,
        address: str = PROLIFIC,
        show: Callable[[str], None] | None = None,
        dry: bool = False,
        timeout: float = 30.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if token is None and not dry:
            raise ConfigError(
                "there is no token for Prolific's API.",
                f"Set {TOKENS[0]} in the environment (Prolific: Settings, API tokens). The token is read from the "
                "environment only.",
            )
        parts = urlsplit(address)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOCAL):
            raise ConfigError(
                f"'{address}' is not a safe address to send a token to.", "Use https://, or a server on this machine."
            )
        self.dry = dry
        self._address = address.rstrip("/")
        self._token = token
        self._show = show
        self._sleep = sleep
        self._answered_at: float | None = None
        headers = {"User-Agent": f"steelyard/{__version__}"}
        if token is not None:
            headers["Authorization"] = f"Token {token}"
        self._http = httpx.Client(base_url=self._address, headers=headers, timeout=timeout)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def wait(self, seconds: float) -> None:
        """Wait for some seconds."""
        self._sleep(seconds)

    # Studies

    def find_study(self, internal_name: str) -> dict[str, Any] | None:
        """Return the study with an internal name, drafts included."""
        studies = self._pages("/api/v1/studies/")
        return next((study for study in studies if study.get("internal_name") == internal_name), None)

    def create_study(self, body: dict[str, Any]) -> dict[str, Any]:
        """Create a draft. This is not idempotent: call `find_study` first."""
        return self._send("POST", "/api/v1/studies/", body, instead={"id": "STUDY"})

    def study(self, study_id: str) -> dict[str, Any]:
        """Return a study as it is now."""
        return self._send("GET", f"/api/v1/studies/{study_id}/", instead={"id": study_id, "status": "UNPUBLISHED"})

    def update_study(self, study_id: str, changes: dict[str, Any]) -> dict[str, Any]:
        """Change a study; idempotent."""
        return self._send("PATCH", f"/api/v1/studies/{study_id}/", changes, instead={}, again=True)

    def transition(self, study_id: str, action: str) -> dict[str, Any]:
        """Publish or stop a study."""
        return self._send("POST", f"/api/v1/studies/{study_id}/transition/", {"action": action}, instead={})

    def cost(self, reward: int, places: int) -> int | None:
        """Return the cost of places with fees and taxes, in minor units; None if unknown."""
        body = {"reward": reward, "total_available_places": places}
        # It only calculates, so it is sent in a dry run too, and again if the answer is lost.
        answer = self._send("POST", "/api/v1/study-cost-calculator/", body, instead={}, again=True, reads=True)
        cost = answer.get("total_cost")
        return None if cost is None else round(float(cost))

    def filters(self) -> list[dict[str, Any]]:
        """Return the available filters, with the ids of their choices."""
        return list(self._pages("/api/v1/filters/"))

    # Submissions

    def submissions(self, study_id: str) -> tuple[list[dict[str, Any]], float]:
        """Return all submissions of a study, and the platform's time of the answer in seconds since 1970."""
        self._answered_at = None
        submissions = list(self._pages(f"/api/v1/studies/{study_id}/submissions/"))
        return submissions, time.time() if self._answered_at is None else self._answered_at

    def approve(self, submissions: list[str]) -> None:
        """Approve submissions; one that is approved already stays so."""
        self._send("POST", "/api/v1/submissions/bulk-approve/", {"submission_ids": submissions}, instead={})

    def reject(self, submission: str, category: str, message: str) -> None:
        """Reject a submission."""
        body = {"action": "REJECT", "rejection_category": category, "message": message}
        self._send("POST", f"/api/v1/submissions/{submission}/transition/", body, instead={})

    # Bonuses

    def set_up_bonuses(self, study_id: str, amounts: dict[str, int]) -> dict[str, Any]:
        """Set up bonuses, in minor units by participant, without paying them."""
        rows = "\n".join(f"{participant},{amount // 100}.{amount % 100:02d}" for participant, amount in amounts.items())
        body = {"study_id": study_id, "csv_bonuses": rows}
        return self._send("POST", "/api/v1/submissions/bonus-payments/", body, instead={"id": "BONUSES"})

    def pay_bonuses(self, batch_id: str) -> None:
        """Pay bonuses that were set up. This is not idempotent: sent twice, it pays twice."""
        self._send("POST", f"/api/v1/bulk-bonus-payments/{batch_id}/pay/", instead={})

    # Webhooks

    def hook_secrets(self, workspace: str) -> list[dict[str, Any]]:
        """Return the workspace's secrets for webhooks."""
        answer = self._send("GET", f"/api/v1/hooks/secrets/?workspace_id={workspace}", instead={})
        return list(answer.get("results", []))

    def create_hook_secret(self, workspace: str) -> dict[str, Any]:
        """Create the workspace's secret; it replaces an earlier one."""
        return self._send("POST", "/api/v1/hooks/secrets/", {"workspace_id": workspace}, instead={"value": "SECRET"})

    def hooks(self, workspace: str) -> list[dict[str, Any]]:
        """Return the workspace's subscriptions."""
        return list(self._pages(f"/api/v1/hooks/subscriptions/?workspace_id={workspace}"))

    def subscribe(self, workspace: str, event_type: str, target: str) -> None:
        """Subscribe to an event and confirm it."""
        body = {"workspace_id": workspace, "event_type": event_type, "target_url": target}
        response = self._request("POST", "/api/v1/hooks/subscriptions/", body)
        if response is None:
            return
        subscription = _json(response)
        confirmation = {"secret": response.headers.get("x-hook-secret", "")}
        self._send("POST", f"/api/v1/hooks/subscriptions/{subscription['id']}/", confirmation, instead={}, again=True)

    # Requests

    def _pages(self, path: str) -> Iterator[dict[str, Any]]:
        ids: set[str] = set()
        offset = 0
        while True:
            mark = "&" if "?" in path else "?"
            answer = self._send("GET", f"{path}{mark}limit={_PAGE}&offset={offset}", instead={})
            results = answer.get("results", [])
            # A list without paging returns the same rows for every offset.
            fresh = [row for row in results if str(row.get("id") or row.get("filter_id")) not in ids]
            ids |= {str(row.get("id") or row.get("filter_id")) for row in fresh}
            yield from fresh
            offset += len(results)
            if not fresh or len(results) < _PAGE:
                return

    def _send(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        instead: dict[str, Any],
        again: bool = False,
        reads: bool = False,
    ) -> dict[str, Any]:
        response = self._request(method, path, body, again=again, reads=reads)
        return instead if response is None else _json(response)

    def _request(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, again: bool = False, reads: bool = False
    ) -> httpx.Response | None:
        """Send a request until it is answered; None if a dry run does not send it."""
        reads = reads or method == "GET"
        if self._show is not None:
            text = "" if body is None else "\n" + json.dumps(body, indent=2, ensure_ascii=False)
            self._show(self._scrubbed(f"{method} {self._address}{path}{text}"))
        if self.dry and (not reads or self._token is None):
            return None
        for attempt in range(_MAX_ATTEMPTS):
            response = self._try(method, path, body, repeatable=reads or again)
            if response is not None and response.status_code < 400:
                if self._answered_at is None:
                    self._answered_at = _date(response)
                return response
            if attempt < _MAX_ATTEMPTS - 1:
                self._sleep(min(_wait(response, attempt), _MAX_WAIT))
        problem = "cannot be reached" if response is None else f"answers {response.status_code} to {method} {path}"
        raise PlatformError(f"Prolific {problem}.", "Nothing is lost. Run the same command again later.")

    def _try(self, method: str, path: str, body: dict[str, Any] | None, *, repeatable: bool) -> httpx.Response | None:
        """Send a request once; return its answer, successful or to be retried, or None if there was no answer."""
        try:
            response = self._http.request(method, path, json=body)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            # The request did not reach the server.
            return None
        except httpx.TransportError:
            if not repeatable:
                raise self._unsure(method, path) from None
            return None
        if response.status_code >= 500 and not repeatable:
            raise self._unsure(method, path)
        # A request that is refused with 429 was not carried out.
        if 400 <= response.status_code < 500 and response.status_code != 429:
            raise self._refused(method, path, response)
        return response

    def _unsure(self, method: str, path: str) -> UnsureError:
        return UnsureError(
            f"Prolific did not respond to {method} {path}; the request may have been carried out.",
            "Run the same command again.",
        )

    def _refused(self, method: str, path: str, response: httpx.Response) -> PlatformError:
        if response.status_code in {401, 403}:
            return PlatformError(
                f"Prolific does not accept the token for {method} {path}.",
                f"Check {TOKENS[0]}: the token may be revoked, or belong to another workspace.",
                response.status_code,
            )
        return PlatformError(
            f"Prolific refuses {method} {path}: {self._scrubbed(_reason(response))}.",
            "Correct this, and run the command again.",
            response.status_code,
        )

    def _scrubbed(self, text: str) -> str:
        """Replace the token wherever it occurs in a text."""
        return text if not self._token else text.replace(self._token, "•••")


def _json(response: httpx.Response) -> dict[str, Any]:
    try:
        data = response.json() if response.content else {}
    except ValueError:
        raise PlatformError("Prolific's response is not JSON.", "Check the address of the API.") from None
    return data if isinstance(data, dict) else {"results": data}


def _wait(response: httpx.Response | None, attempt: int) -> float:
    """Return the seconds to wait: the Retry-After header, else doubling with each attempt."""
    retry_after = "" if response is None else response.headers.get("retry-after", "")
    return float(retry_after) if retry_after.isdecimal() else 0.5 * 2.0**attempt


def _date(response: httpx.Response) -> float | None:
    """Return the date of an answer in seconds since 1970, if it has one."""
    try:
        return parsedate_to_datetime(response.headers["date"]).timestamp()
    except (KeyError, ValueError):
        return None


def _reason(response: httpx.Response) -> str:
    """Return the message of an error, in either of the two formats that the API uses."""
    try:
        error = response.json()
    except ValueError:
        return f"{response.status_code} {response.text[:200]}".strip()
    inner = error.get("error", error) if isinstance(error, dict) else error
    detail = inner.get("detail") or inner.get("message") or inner.get("title") if isinstance(inner, dict) else inner
    return f"{response.status_code} {json.dumps(detail) if not isinstance(detail, str) else detail}"[:500].rstrip(".")


def token_from_environment() -> str | None:
    """Return the API token, if one is set."""
    return next((os.environ[name] for name in TOKENS if os.environ.get(name)), None)
