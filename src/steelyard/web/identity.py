"""Who is asking: annotators by a session cookie or a personal link, the manager by a token."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.responses import Response

from steelyard.errors import TaskError
from steelyard.recruitment.links import LinkRefusedError, link_secret, read_arrival
from steelyard.study.leases import annotator_name
from steelyard.web.errors import Refusal
from steelyard.web.security import Buckets, Limits, address_of, too_many
from steelyard.web.studies import Served

SESSION_COOKIE = "steelyard_session"
MANAGE_COOKIE = "steelyard_manage"
CSRF_HEADER = "X-CSRF-Token"
RESUME = "resume"
"""The note of a personal link that the server made for somebody who joined by name."""

_SESSION_DAYS = 90
_MANAGE_DAYS = 14
_LONGEST_TOKEN = 200
_SAFE = {"GET", "HEAD", "OPTIONS"}


@dataclass(frozen=True, slots=True)
class Session:
    """An annotator's browser."""

    annotator: str
    token: str

    @property
    def csrf(self) -> str:
        """What the page must send with whatever it changes; another site cannot know it."""
        return derived(self.token, "csrf")

    @property
    def resume_token(self) -> str:
        """The token of this person's own link, to go on elsewhere."""
        return derived(self.token, "resume")


def derived(secret: str, purpose: str) -> str:
    """Derive a token for one purpose, from which the secret cannot be found."""
    return hmac.new(secret.encode("utf-8", "surrogatepass"), purpose.encode(), hashlib.sha256).hexdigest()


class Gate:
    """How fast people may come in; one a process."""

    def __init__(self, limits: Limits) -> None:
        self.persons = Buckets(limits.person)
        self.joining = Buckets(limits.joining)
        self.guessing = Buckets(limits.guessing)


class ManageKey:
    """The manager's token, of which only a digest is kept, and the cookies it is exchanged for."""

    def __init__(self, token: str) -> None:
        self._digest = hashlib.sha256(token.encode()).digest()
        self._key = derived(token, "manage session")

    def matches(self, token: str) -> bool:
        """Whether this is the token."""
        given = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        return hmac.compare_digest(given, self._digest)

    def new_cookie(self) -> str:
        """Make a session for a browser that showed the token; it needs no table, and ends with the token."""
        text = f"{int(time.time()) + _MANAGE_DAYS * 86400}.{secrets.token_urlsafe(12)}"
        return f"{text}.{derived(self._key, text)}"

    def good_cookie(self, cookie: str) -> bool:
        """Whether a cookie is one of ours, and not too old."""
        text, _, mark = cookie.rpartition(".")
        ends = text.partition(".")[0]
        genuine = hmac.compare_digest(mark.encode("utf-8", "surrogatepass"), derived(self._key, text).encode())
        return genuine and ends.isdecimal() and int(ends) > time.time()

    def csrf(self, cookie: str) -> str:
        """What the manager's pages must send with whatever they change."""
        return derived(self._key, f"csrf {cookie}")

    def admits(self, headers: Headers) -> bool:
        """Whether a request's headers hold the token or a session made with it."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.matches(token.strip())
        cookie = cookie_in(headers, MANAGE_COOKIE)
        return cookie is not None and self.good_cookie(cookie)


def cookie_in(headers: Headers, name: str) -> str | None:
    """Find a cookie in a request's headers."""
    for part in headers.get("cookie", "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return None


async def find_served(study: str, request: Request) -> Served:
    """Find the study an address names."""
    served: Served | None = request.app.state.studies.get(study)
    if served is None:
        raise Refusal(404, "no_such_study", "There is no such study here.", "Check the link you were given.")
    return served


ServedStudy = Annotated[Served, Depends(find_served)]


async def require_manager(request: Request) -> None:
    """Refuse anybody but the manager; a browser must show its CSRF token for whatever changes something."""
    gate: Gate = request.app.state.gate
    key: ManageKey = request.app.state.manage_key
    address = address_of(request.scope)
    if wait := gate.guessing.wait(address):
        raise too_many(wait)
    if not key.admits(request.headers):
        if request.headers.get("authorization"):
            gate.guessing.take(address)
        raise Refusal(
            401, "manager_only", "This is for the manager of the study.", "Open the link that steelyard serve printed."
        )
    if request.method not in _SAFE and not request.headers.get("authorization"):
        expected = key.csrf(cookie_in(request.headers, MANAGE_COOKIE) or "")
        check_csrf(request, expected)
    request.state.who = "the manager"


Manager = Annotated[None, Depends(require_manager)]


def manage_csrf(request: Request) -> str:
    """The CSRF token for the manager's pages."""
    key: ManageKey = request.app.state.manage_key
    return key.csrf(cookie_in(request.headers, MANAGE_COOKIE) or "")


def check_csrf(request: Request, expected: str) -> None:
    """Refuse a request that another site could have made a browser send."""
    given = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode()):
        raise Refusal(
            403,
            "stale_page",
            "This page is out of date.",
            "Nothing is lost. Reload the page; it goes on where you were.",
            field=CSRF_HEADER,
        )


def session_of(request: Request, served: Served) -> Session | None:
    """Return the annotator's session, if the request holds a good one."""
    token = request.cookies.get(SESSION_COOKIE, "")
    if not token or len(token) > _LONGEST_TOKEN:
        return None
    grant = served.study.access.find("session", token)
    if grant is None or grant.annotator is None:
        return None
    request.state.who = grant.annotator
    return Session(grant.annotator, token)


def signed_in(request: Request, served: Served) -> Session:
    """Return the annotator's session; refuse those without one, with a stale page, or too fast."""
    session = session_of(request, served)
    if session is None:
        raise Refusal(
            401,
            "no_session",
            "You are not signed in here, or no longer.",
            "Nothing is lost. Open your personal link, or the study's page, and go on.",
        )
    if request.method not in _SAFE:
        check_csrf(request, session.csrf)
    gate: Gate = request.app.state.gate
    if wait := gate.persons.take(f"{served.slug} {session.annotator}"):
        raise too_many(wait)
    return session


def join_by_name(request: Request, served: Served, given: str) -> Session:
    """Let somebody in under a name they chose; one that somebody else works under is refused."""
    study = served.study
    try:
        name = annotator_name(given)
    except TaskError as error:
        problem = error.problems[0]
        raise Refusal(422, "name_invalid", "That cannot be a name.", problem.remedy, field="name") from None
    current = session_of(request, served)
    if current is not None and current.annotator == name:
        return current
    if not study.config.people.open:
        raise Refusal(
            403, "by_invitation", "This study is by invitation.", "Open the personal link that you were sent."
        )
    gate: Gate = request.app.state.gate
    if wait := gate.joining.take(address_of(request.scope)):
        raise too_many(wait)
    invited = any(grant.annotator == name and grant.note != RESUME for grant in study.access.grants("invite"))
    if invited or study.recruitment.arrivals_of(name) or study.annotators.progress(name).answered:
        raise Refusal(
            409,
            "name_taken",
            "Somebody already works here under this name.",
            "If that is you, open your personal link; otherwise choose another name.",
            field="name",
        )
    return new_session(served, name)


def join_by_invite(request: Request, served: Served, token: str) -> Session:
    """Let somebody in by a personal link."""
    gate: Gate = request.app.state.gate
    address = address_of(request.scope)
    if wait := gate.guessing.wait(address):
        raise too_many(wait)
    grant = served.study.access.find("invite", token) if 0 < len(token) <= _LONGEST_TOKEN else None
    if grant is None or grant.annotator is None:
        gate.guessing.take(address)
        raise Refusal(
            403,
            "invite_unknown",
            "This personal link is not valid, or no longer.",
            "Check that you copied the whole of it, or ask for a new one.",
            field="invite",
        )
    current = session_of(request, served)
    if current is not None and current.annotator == grant.annotator:
        return current
    return new_session(served, grant.annotator)


def join_by_link(request: Request, served: Served) -> Session | None:
    """Let somebody in by a panel's link; None where the address says nothing of a participant.

    One participant is one annotator: on another device, or after a reload, they go on where they were.
    """
    link = served.study.config.link
    if link is None:
        return None
    gate: Gate = request.app.state.gate
    address = address_of(request.scope)
    if wait := gate.guessing.wait(address):
        raise too_many(wait)
    try:
        arrival = read_arrival(
            link,
            request.query_params.multi_items(),
            slug=served.slug,
            now=time.time(),
            study_id=served.platform_ledger().study_id or None,
            secret=link_secret() if link.signed else None,
        )
    except LinkRefusedError as error:
        if error.forged:
            gate.guessing.take(address)
        problem = error.problems[0]
        raise Refusal(403, "link_invalid", problem.what, problem.remedy) from None
    if arrival is None:
        return None
    current = session_of(request, served)
    annotator = served.study.recruitment.arrive(arrival.participant, arrival.study, arrival.session)
    if current is not None and current.annotator == annotator:
        return current
    if wait := gate.joining.take(address):
        raise too_many(wait)
    return new_session(served, annotator)


def new_session(served: Served, annotator: str) -> Session:
    """Make a session, and the personal link that goes with it; only their digests are stored."""
    access = served.study.access
    session = Session(annotator, access.grant("session", annotator=annotator, lifetime=timedelta(days=_SESSION_DAYS)))
    access.grant("invite", annotator=annotator, note=RESUME, token=session.resume_token)
    return session


def set_session_cookie(request: Request, response: Response, served: Served, session: Session) -> None:
    """Give the browser its session, for this study's addresses only: people may be in several."""
    for path in (f"/api/v1/studies/{served.slug}", served.url.rstrip("/")):
        response.set_cookie(
            SESSION_COOKIE,
            session.token,
            max_age=_SESSION_DAYS * 86400,
            path=path,
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="lax",
        )


def set_manage_cookie(request: Request, response: Response) -> None:
    """Give the manager's browser its session."""
    key: ManageKey = request.app.state.manage_key
    response.set_cookie(
        MANAGE_COOKIE,
        key.new_cookie(),
        max_age=_MANAGE_DAYS * 86400,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def check_manage_token(request: Request, token: str) -> None:
    """Refuse a wrong token of the manager, and too many of them."""
    gate: Gate = request.app.state.gate
    address = address_of(request.scope)
    if wait := gate.guessing.wait(address):
        raise too_many(wait)
    key: ManageKey = request.app.state.manage_key
    if not key.matches(token):
        gate.guessing.take(address)
        raise Refusal(
            403,
            "token_wrong",
            "That is not this server's token.",
            "Copy it from where steelyard serve was started.",
        )
