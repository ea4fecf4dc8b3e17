"""Refusals: HTTP status, a code for programs, and a message for people."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from steelyard.errors import (
    AnswerError,
    LimitError,
    ModelFailedError,
    Problem,
    SteelyardError,
    StoreError,
    StudyChangedError,
    TaskError,
)

log = logging.getLogger("steelyard.web")
T = TypeVar("T")

CUT_OFF = "steelyard.cut_off"
"""Marks the scope of a request whose body was not read completely; `Guard` responds to it."""

_LONGEST = 500
_NOTHING_LOST = "Nothing is lost. Try again in a moment."
_BY_STATUS = {
    404: ("not_found", "There is no page at this address.", "Check the link you were given."),
    405: (
        "method_not_allowed",
        "This address does not accept requests of this kind.",
        "See the description at /api/v1/openapi.json.",
    ),
}


class Refusal(Exception):  # noqa: N818 - it is what the server says, and often no error of ours
    """A refused request and the reason: `what` and `remedy` for people, `code` for programs."""

    def __init__(
        self,
        status: int,
        code: str,
        what: str,
        remedy: str = "",
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{status} {code}: {what}")
        self.status = status
        self.code = code
        self.what = what
        self.remedy = remedy
        self.field = field
        self.headers = dict(headers or {})


def too_many(seconds: float) -> Refusal:
    """Return the refusal of a request over the rate limit."""
    wait = max(1, round(seconds + 0.5))
    return Refusal(
        429,
        "too_many",
        "Too many requests have come from your network.",
        f"Nothing is lost. Wait {wait} seconds and try again.",
        headers={"Retry-After": str(wait)},
    )


def refusal_for(error: SteelyardError) -> Refusal:
    """Turn an error of the study into an HTTP response."""
    problem = error.problems[0] if error.problems else Problem(str(error))
    if isinstance(error, LimitError):
        return too_many(error.seconds)
    if isinstance(error, AnswerError | TaskError):
        status, code = (422, "answer_invalid") if isinstance(error, AnswerError) else (409, "task_refused")
        return Refusal(status, code, _short(problem.what), _short(problem.remedy), field=problem.field)
    if isinstance(error, ModelFailedError):
        # Not 503: clients would retry, and the model would fail again.
        return Refusal(409, "model_failed", _short(problem.what), _short(problem.remedy), field=problem.field)
    if isinstance(error, StoreError):
        return Refusal(
            503,
            "try_again",
            "The database of the study cannot be reached at the moment.",
            _NOTHING_LOST,
            headers={"Retry-After": "2"},
        )
    return Refusal(
        500,
        "study_broken",
        "This study has a configuration error and cannot continue.",
        "Please contact the people who run the study.",
    )


def refusing(action: Callable[[], T]) -> T:
    """Turn the problems of a file or a value into a refusal that names them all."""
    try:
        return action()
    except SteelyardError as error:
        problems = [str(problem) for problem in error.problems]
        raise Refusal(422, "file_invalid", " ".join(problems[:5]), "Nothing was changed.") from None


def _short(text: str) -> str:
    """Shorten a text that quotes too much of the request."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 2]}…."


def error_body(refusal: Refusal) -> bytes:
    """The JSON of a refusal, in ASCII: quoted input may contain characters that UTF-8 cannot encode."""
    return json.dumps(
        {
            "error": {
                "code": refusal.code,
                "what": refusal.what,
                "remedy": refusal.remedy,
                "field": refusal.field,
            }
        }
    ).encode()


def log_refusal(method: str, path: str, refusal: Refusal, who: str | None = None, cause: object = "") -> None:
    """Log a refusal in one line; URLs are logged without their query, which may contain tokens."""
    write = log.error if refusal.status >= 500 else log.warning
    fields = {"method": method, "path": path, "who": who, "status": refusal.status, "code": refusal.code}
    write(
        "refused %s %s from %s: %d %s: %s %s",
        method,
        ascii(path)[1:-1],
        "nobody known" if who is None else repr(who),
        refusal.status,
        refusal.code,
        _one_line(refusal.what),
        _one_line(cause),
        extra={"fields": fields},
    )


def _one_line(text: object) -> str:
    """Remove line breaks and control characters, which could forge log lines or control a terminal."""
    words = " ".join(str(text)[:_LONGEST].split())
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in words)


def respond(request: Request, refusal: Refusal, cause: object = "") -> Response:
    """Log a refusal and respond with it: JSON for the API, otherwise a page."""
    if not request.scope.get(CUT_OFF):
        log_refusal(request.method, request.url.path, refusal, getattr(request.state, "who", None), cause)
    if not request.url.path.startswith("/api/") and "text/html" in request.headers.get("accept", ""):
        from steelyard.web.pages import error_page

        return error_page(request, refusal)
    return Response(error_body(refusal), refusal.status, refusal.headers, "application/json")


def _on_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)  # noqa: S101 - Starlette's handlers are typed for any exception
    return respond(request, error)


def _on_steelyard_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, SteelyardError)  # noqa: S101
    if isinstance(error, StudyChangedError):
        request.app.state.studies.reopen_soon(request.path_params.get("study"))
    return respond(request, refusal_for(error), cause="" if isinstance(error, AnswerError | TaskError) else error)


def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    details: Any = error.errors()[0]
    place = [str(part) for part in details["loc"] if part not in {"body", "query", "path"}]
    if details["type"] == "json_invalid":
        refusal = Refusal(400, "malformed", "The request is not valid JSON.", "Reload the page and try again.")
    else:
        refusal = Refusal(
            400,
            "malformed",
            f"The request is not valid: {details['msg']}.",
            "Reload the page and try again.",
            field=".".join(place) or None,
        )
    return respond(request, refusal)


def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    if error.status_code == 400:
        refusal = Refusal(400, "malformed", "The request cannot be read.", "Reload the page and try again.")
    else:
        code, what, remedy = _BY_STATUS.get(error.status_code, ("refused", str(error.detail), ""))
        refusal = Refusal(error.status_code, code, what, remedy, headers=error.headers)
    return respond(request, refusal)


def _on_crash(request: Request, error: Exception) -> Response:
    refusal = Refusal(500, "server_error", "Something went wrong on the server.", _NOTHING_LOST)
    return respond(request, refusal, cause=repr(error))


def add_handlers(app: FastAPI) -> None:
    """Register the handlers, so that all errors have the same form."""
    app.add_exception_handler(Refusal, _on_refusal)
    app.add_exception_handler(SteelyardError, _on_steelyard_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_crash)
