"""The pages for people who judge, and the files that go with them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from steelyard.web.catalogue import catalogue_for, catalogues
from steelyard.web.errors import Refusal
from steelyard.web.identity import (
    ManageKey,
    ServedStudy,
    join_by_invite,
    join_by_link,
    session_of,
    set_session_cookie,
)

HERE = Path(__file__).parent

router = APIRouter(include_in_schema=False)


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
    """Fill in a template, in the language asked for, the study's, or the browser's."""
    catalogue = catalogue_for(request.query_params.get("lang"), language, request.headers.get("accept-language"))
    names = {
        "language": catalogue.language,
        "direction": catalogue.direction,
        "languages": [(code, known.own_name) for code, known in catalogues().items()],
        "_": catalogue.gettext,
    }
    return HTMLResponse(_environment().get_template(template).render(**names, **context), status)


def error_page(request: Request, refusal: Refusal) -> Response:
    """Say on a page what was refused."""
    response = page(request, "error.html", refusal.status, what=refusal.what, remedy=refusal.remedy)
    response.headers.update(refusal.headers)
    return response


@router.get("/")
def landing(request: Request) -> Response:
    """List the studies that anybody may join."""
    studies = [
        {
            "url": served.url,
            "title": served.study.config.title,
            "question": served.study.config.question,
            "state": served.study.state,
        }
        for served in request.app.state.studies.all()
        if served.study.config.people.open
    ]
    return page(request, "landing.html", studies=studies)


@router.get("/s/{study}/")
def annotate(served: ServedStudy, request: Request, invite: str | None = None) -> Response:
    """Show the page that people judge on; a personal link, or a panel's, lets them in first."""
    session = join_by_link(request, served) if invite is None else join_by_invite(request, served, invite)
    if session is not None:
        # Who they are, or their token, must not stay in the address bar, nor in the history.
        response: Response = RedirectResponse(served.url, 303)
        set_session_cookie(request, response, served, session)
        return response
    config = served.study.config
    return page(
        request,
        "annotate.html",
        language=config.people.language,
        study=served.slug,
        title=config.title,
        question=config.question,
    )


@router.get("/s/{study}/media/{name:path}")
def media(served: ServedStudy, request: Request, name: str) -> Response:
    """Send a picture, sound or film from the study's media folder; by invitation where the study is."""
    key: ManageKey = request.app.state.manage_key
    if not served.study.config.people.open and not key.admits(request.headers) and session_of(request, served) is None:
        raise Refusal(401, "no_session", "You are not signed in here.", "Open your personal link first.")
    found = served.media.find(name)
    if found is None:
        raise Refusal(404, "no_such_media", "There is no such picture, sound or film here.")
    path, kind = found
    return FileResponse(
        path,
        media_type=kind,
        headers={"Cache-Control": "private, max-age=3600", "Content-Security-Policy": "default-src 'none'; sandbox"},
    )
