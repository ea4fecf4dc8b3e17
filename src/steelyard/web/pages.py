"""The annotators' pages and their media files."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from steelyard.protocols import Pairwise
from steelyard.web.catalogue import catalogue_for, catalogues
from steelyard.web.content import media_policy
from steelyard.web.errors import Refusal
from steelyard.web.identity import (
    Newcomer,
    Session,
    StudyDep,
    admit,
    check_csrf_token,
    derived,
    end_session,
    is_manager,
    newcomer_of,
    session_of,
    set_session_cookie,
)
from steelyard.web.security import FRAME_ANCESTORS
from steelyard.web.studies import ServedStudy

HERE = Path(__file__).parent

router = APIRouter(include_in_schema=False)
_RATED = dict.fromkeys(("direct", "likert", "choice", "scored_ranking"), "rated")
_WIDGETS = {**_RATED, **{name: name for name in ("best_worst", "error_spans", "pairwise", "ranking")}}
"""The script of each protocol."""
_STYLES = {
    "criteria": "extras",
    "error_spans": "error_spans",
    "graded": "extras",
    "media": "media",
    "questionnaire": "questionnaire",
    "reading": "reading",
    "unjudged": "extras",
}
"""Style sheets of the scripts that only some studies load."""


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
    )


def page(
    request: Request, template: str, status: int = 200, *, language: str | None = None, **context: Any
) -> HTMLResponse:
    """Render a template, in the given language, the study's, or the browser's."""
    catalogue = catalogue_for(request.query_params.get("lang"), language, request.headers.get("accept-language"))
    names = {
        "root": request.app.state.studies.root_path,
        "language": catalogue.language,
        "direction": catalogue.direction,
        "languages": [(code, known.own_name) for code, known in catalogues().items()],
        "_": catalogue.gettext,
    }
    return HTMLResponse(_environment().get_template(template).render(**names, **context), status)


def error_page(request: Request, refusal: Refusal) -> Response:
    """Render a refusal as a page."""
    response = page(request, "error.html", refusal.status, what=refusal.what, remedy=refusal.remedy)
    response.headers.update(refusal.headers)
    return response


@router.get("/")
def landing(request: Request) -> Response:
    """List the studies that anyone can join."""
    studies = [
        {
            "url": served.url,
            "title": served.study.config.title,
            "question": served.study.config.question,
            "state": served.study.state,
        }
        for served in request.app.state.studies.all()
        if served.study.config.annotators.open
    ]
    return page(request, "landing.html", studies=studies)


@router.get("/s/{study}/")
def annotate(served: StudyDep, request: Request) -> Response:
    """Show the annotators' page; a personal link or a panel's link signs them in first."""
    arrival = request.url.query
    newcomer = newcomer_of(request, served, arrival) if _is_page_load(request) else None
    if newcomer is not None:
        current = session_of(request, served)
        if current is not None and current.annotator != newcomer.annotator:
            # Another site may have opened this link, so ask before the annotator changes.
            return _ask_to_switch(request, served, current, newcomer, arrival)
        return _sign_in(request, served, newcomer)
    config = served.study.config
    request.scope[FRAME_ANCESTORS] = config.embed.origins
    scripts = _scripts(served)
    return page(
        request,
        "annotate.html",
        language=config.annotators.language,
        study=served.slug,
        title=config.title,
        question=config.question,
        scripts=scripts,
        styles=list(dict.fromkeys(_STYLES[name] for name in scripts if name in _STYLES)),
        origins=config.embed.origins,
    )


def _scripts(served: ServedStudy) -> list[str]:
    """Return the scripts that only some studies need."""
    config = served.study.config
    answers = config.answers
    protocols = [stage.protocol for stage in config.stages]
    pairs = [protocol for protocol in protocols if isinstance(protocol, Pairwise)]
    has_criteria = any(getattr(protocol, "criteria", None) for protocol in protocols)
    contents = served.contents()
    is_graded = any(protocol.steps > 3 or protocol.criteria for protocol in pairs)
    return [
        *(["unjudged"] if answers.cannot_judge or answers.comments else []),
        *(["criteria"] if has_criteria else []),
        *(["graded"] if is_graded or (pairs and contents.for_reading) else []),
        *(["reading"] if contents.is_formatted or contents.for_reading else []),
        *(["media"] if contents.media else []),
        *(["questionnaire"] if config.annotators.questionnaire else []),
        *sorted({_WIDGETS[protocol.name] for protocol in protocols if protocol.name in _WIDGETS}),
    ]


@router.post("/s/{study}/switch")
def switch(
    served: StudyDep, request: Request, csrf: Annotated[str, Form()] = "", arrival: Annotated[str, Form()] = ""
) -> Response:
    """Sign in as another annotator, after confirmation on the page."""
    current = session_of(request, served)
    check_csrf_token(csrf, "-" if current is None else _switch_csrf(current, arrival))
    newcomer = newcomer_of(request, served, arrival)
    if newcomer is None or current is None:
        return RedirectResponse(served.url, 303)
    response = _sign_in(request, served, newcomer)
    if current.annotator != newcomer.annotator:
        end_session(served, current)
    return response


def _is_page_load(request: Request) -> bool:
    """Whether a browser loads this as a page, rather than as an image or frame of another site."""
    return request.headers.get("sec-fetch-dest", "document") in {"document", "empty"}


def _sign_in(request: Request, served: ServedStudy, newcomer: Newcomer) -> Response:
    session = admit(request, served, newcomer)
    # Redirect, so that names and tokens do not stay in the address bar or the history.
    response = RedirectResponse(served.url, 303)
    set_session_cookie(request, response, served, session)
    return response


def _ask_to_switch(
    request: Request, served: ServedStudy, current: Session, newcomer: Newcomer, arrival: str
) -> Response:
    return page(
        request,
        "switch.html",
        language=served.study.config.annotators.language,
        title=served.study.config.title,
        url=served.url,
        current=current.name,
        newcomer=newcomer.name,
        csrf=_switch_csrf(current, arrival),
        arrival=arrival,
    )


def _switch_csrf(current: Session, arrival: str) -> str:
    return derived(current.token, f"switch {arrival}")


@router.get("/s/{study}/media/{name:path}")
def media(served: StudyDep, request: Request, name: str) -> Response:
    """Send a file from the study's media folder; studies by invitation require a session."""
    is_open = served.study.config.annotators.open
    if not is_open and session_of(request, served) is None and not is_manager(request.scope):
        raise Refusal(401, "no_session", "You are not signed in here.", "Open your personal link first.")
    file = served.media.find(name)
    if file is None:
        raise Refusal(404, "no_such_media", "There is no such image, audio, video or PDF file.")
    path, kind = file
    origins = served.study.config.embed.origins
    request.scope[FRAME_ANCESTORS] = origins
    return FileResponse(
        path, media_type=kind, headers={"Cache-Control": "private, max-age=3600", **media_policy(kind, origins)}
    )
