"""Python client of the REST API: ask and tell on a server, for scripts and language models."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, overload
from urllib.parse import parse_qs, urlsplit

import httpx
import polars as pl

from steelyard import registry
from steelyard.designs.base import NoTask
from steelyard.errors import AnswerError, ConfigError, Problem, SteelyardError, StoreError, TaskError
from steelyard.protocols.base import Protocol
from steelyard.records import Item, Task

_TRY_AGAIN = {429, 502, 503, 504}
_LONGEST_WAIT = 30.0


class Client:
    """Answer tasks of a study on a server, or read its scores.

    Parameters
    ----------
    url
        A personal link, a study's page (`http://host/s/words/`), or the server's address with `study`.
    study
        Slug of the study, if `url` does not contain it.
    name
        Name of the annotator, in studies that are open to everybody.
    token
        The manager's token, for `scores`.
    retries
        Number of retries if the server is busy or cannot be reached. Answers are never counted twice.
    """

    def __init__(
        self,
        url: str,
        study: str | None = None,
        *,
        name: str | None = None,
        token: str | None = None,
        retries: int = 5,
        timeout: float = 30.0,
    ) -> None:
        server, found, self._invite = _parts(url)
        if study is None and found is None:
            raise ConfigError(f"'{url}' does not name a study.", "Give the address of its page, or study=.")
        self.study = study or found
        self._name = name
        self._token = token
        self._retries = retries
        self._csrf: str | None = None
        self._welcome: dict[str, Any] = {}
        self._settings: dict[str, tuple[str, dict[str, Any]]] = {}
        self._http = httpx.Client(base_url=f"{server}/api/v1/studies/{self.study}", timeout=timeout)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({str(self._http.base_url)!r}, name={self._name!r})"

    # Study

    @property
    def annotator(self) -> str:
        """The id of the annotator."""
        return str(self._session()["annotator"])

    @property
    def question(self) -> str:
        """The question of the study."""
        return str(self._session()["study"]["question"])

    @property
    def instructions(self) -> str | None:
        """The instructions, as HTML."""
        html: str | None = self._session()["instructions_html"]
        return html

    @property
    def needs(self) -> list[str]:
        """The steps required before the first task: `consent`, `questionnaire`, `training`."""
        return list(self._session()["needs"])

    def protocol_of(self, task: Task) -> Protocol:
        """Return the protocol of a task leased by this client, with its settings."""
        name, settings = self._settings[task.stage]
        criteria = settings.get("criteria")
        if isinstance(criteria, list):
            scales = [{k: v for k, v in criterion.items() if v is not None} for criterion in criteria]
            settings = {**settings, "criteria": {criterion.pop("name"): criterion for criterion in scales}}
        own_settings = {"choice": {"labels"}, "pairwise": set(), "best_worst": set(), "ranking": set()}.get(name)
        if own_settings is not None and settings.get("criteria"):
            settings["criteria"] = {
                key: {own: setting for own, setting in value.items() if own in own_settings}
                for key, value in settings["criteria"].items()
            }
        protocol: Protocol = registry.create("protocols", name, settings)
        return protocol

    # Ask and tell

    @overload
    def ask(self) -> Task | None: ...
    @overload
    def ask(self, count: int) -> list[Task]: ...
    def ask(self, count: int | None = None) -> Task | list[Task] | None:
        """Lease the next task, or None when there is none (see `offer` for why); with `count`, a list.

        Until a task is answered or skipped, `ask` returns the same one again.
        """
        tasks, _ = self._lease(1 if count is None else count)
        if count is not None:
            return tasks
        return tasks[0] if tasks else None

    def offer(self) -> Task | NoTask:
        """Like `ask`, but return the reason if there is no task."""
        tasks, nothing = self._lease(1)
        return tasks[0] if tasks else nothing or NoTask("There are no tasks.")

    def tell(self, task: Task | str, answer: Any, *, seconds: float | None = None, comment: str = "") -> None:
        """Send an answer; it is on the server's disk when this returns. Sending it again changes nothing."""
        body = {"judgment_id": _id(task), "answer": answer, "seconds": seconds, "comment": comment}
        self._change("POST", "/judgments", body)

    def revise(self, task: Task | str, answer: Any, *, comment: str | None = None) -> None:
        """Revise a recent answer, and its comment if one is given."""
        self._change("PUT", f"/judgments/{_id(task)}", {"answer": answer, "comment": comment})

    def skip(self, task: Task | str, reason: str) -> None:
        """Skip a task; it is not assigned to this annotator again."""
        self._change("POST", f"/tasks/{_id(task)}/skip", {"reason": reason})

    def flag(self, task: Task | str, reason: str) -> None:
        """Flag a task, with a reason."""
        self._change("POST", f"/tasks/{_id(task)}/flag", {"reason": reason})

    def consent(self) -> None:
        """Record consent to the study's consent text."""
        self._welcome = self._change("POST", "/consent", {})

    @property
    def questionnaire(self) -> list[dict[str, Any]]:
        """The questions about the annotator that are still to be answered: name, question, type, choices and more."""
        return list(self._session()["questionnaire"])

    def answer_questionnaire(self, answers: Mapping[str, str | float | None]) -> None:
        """Answer the questionnaire by the names of the questions; None stands for “Prefer not to say”."""
        self._welcome = self._change("POST", "/questionnaire", {"answers": dict(answers)})

    # Results

    def scores(self) -> pl.DataFrame:
        """Return the table of `Study.scores`; requires the manager's token."""
        # The server adds the items' texts, for readers of the file in a spreadsheet.
        return self._download("scores").drop("text", strict=False)

    def systems(self) -> pl.DataFrame:
        """Return the scores of `Study.systems`; requires the manager's token."""
        return self._download("systems")

    def _download(self, what: str) -> pl.DataFrame:
        if self._token is None:
            raise ConfigError(f"{what} are for the study's manager.", "Give token=, which steelyard serve printed.")
        headers = {"Authorization": f"Bearer {self._token}"}
        response = self._send("GET", f"/manage/download/{what}.parquet", headers=headers)
        return pl.read_parquet(io.BytesIO(response.content))

    # Requests

    def _session(self) -> dict[str, Any]:
        if self._csrf is None:
            if self._invite is None and self._name is None:
                raise ConfigError("no annotator is named.", "Give name=, or a personal link as the address.")
            body = {"name": self._name} if self._invite is None else {"invite": self._invite}
            self._welcome = self._send("POST", "/session", json=body).json()
            self._csrf = self._welcome["csrf"]
        return self._welcome

    def _change(self, method: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        self._session()
        content: dict[str, Any] = self._send(method, path, json=body, headers={"X-CSRF-Token": self._csrf or ""}).json()
        return content

    def _lease(self, count: int) -> tuple[list[Task], NoTask | None]:
        reply = self._change("POST", "/tasks", {"count": count})
        for task in reply["tasks"]:
            self._settings[task["stage"]] = (task["protocol"], task["settings"])
        nothing = reply["no_task"]
        tasks = [_task(self.annotator, task) for task in reply["tasks"]]
        return tasks, None if nothing is None else NoTask(nothing["reason"], reason_code=nothing["reason_code"])

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            wait = min(_LONGEST_WAIT, 0.25 * 2**attempt)
            try:
                response = self._http.request(method, path, **options)
            except httpx.TransportError as error:
                if last:
                    raise StoreError(
                        f"{self._http.base_url} cannot be reached: {error}.",
                        "Check the address, and try again: saved answers are never counted twice.",
                    ) from error
            else:
                if response.is_success:
                    return response
                if response.status_code not in _TRY_AGAIN or last:
                    raise _error(response)
                wait = max(wait, min(_LONGEST_WAIT, _seconds(response.headers.get("Retry-After"))))
            time.sleep(wait)
        raise AssertionError("the last attempt returns or raises")


def _parts(url: str) -> tuple[str, str | None, str | None]:
    """Split a URL into the server's address, the study's slug and the personal token."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ConfigError(f"'{url}' is not a web address.", "Give one such as http://127.0.0.1:8000/s/words/")
    before, found, after = parts.path.partition("/s/")
    study = after.strip("/").partition("/")[0] or None
    server = f"{parts.scheme}://{parts.netloc}{before if found else parts.path}".rstrip("/")
    invite = parse_qs(parts.query).get("invite", [None])[0]
    return server, study, invite


def _id(task: Task | str) -> str:
    return task.judgment_id if isinstance(task, Task) else task


def _task(annotator: str, data: Mapping[str, Any]) -> Task:
    shared = data["shared"]
    items = tuple(
        Item(
            item["id"],
            item["text"],
            context=item["context"] if item["context"] is not None else shared["context"],
            reference=item["reference"] if item["reference"] is not None else shared["reference"],
            media=None if item["media"] is None else item["media"]["url"],
        )
        for item in data["items"]
    )
    ends = datetime.fromisoformat(data["lease_end"])
    return Task(data["judgment_id"], annotator, data["stage"], data["protocol"], items, ends)


def _seconds(text: str | None) -> float:
    return float(text) if text and text.isdecimal() else 0.0


def _error(response: httpx.Response) -> SteelyardError:
    """Turn a refusal into the error that the study itself would have raised."""
    try:
        error = response.json()["error"]
        problem = Problem(error["what"], error["remedy"], field=error["field"])
    except (ValueError, KeyError, TypeError):
        return StoreError(f"{response.url} answered {response.status_code}.", "Check that this is a Steelyard server.")
    if response.status_code == 422 and error["code"] == "answer_invalid":
        return AnswerError([problem])
    if response.status_code in {403, 404, 409}:
        return TaskError([problem])
    return StoreError([problem]) if response.status_code >= 500 else SteelyardError([problem])
