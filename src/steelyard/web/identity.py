"""Authentication: annotators by session cookie or personal link; owner and team of a study by token."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Literal, TypeAlias
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from steelyard.errors import ConfigError, TaskError
from steelyard.recruitment.links import LinkRefusedError, link_secret, read_arrival
from steelyard.storage.access import Access
from steelyard.study.leases import annotator_name
from steelyard.study.recruitment_state import Arrival
from steelyard.study.team import Member, Team
from steelyard.web.addresses import address_of, is_https
from steelyard.web.errors import Refusal, too_many
from steelyard.web.security import FailedAttempts, Limits, Newcomers, TokenBuckets
from steelyard.web.studies import ServedStudy, Studies

SESSION_COOKIE = "steelyard_session"
MANAGE_COOKIE = "steelyard_manage"
CSRF_HEADER = "X-CSRF-Token"
SESSION_HEADER = "X-Session-Token"
"""Holds the session of a page in a frame of another site, where browsers may not send cookies."""
RESUME = "resume"
"""Note of a personal link that the server created for an annotator who joined by name."""
_RESUME_PREFIX = f"{RESUME}: "
"""Prefix of that note if the annotator's id differs from the name they typed; the name follows."""

_SESSION_DAYS = 90
_MANAGE_DAYS = 14
_MAX_LENGTH = 200
_MIN_LENGTH = 16
_MIN_CHARACTERS = 8
_SAFE = {"GET", "HEAD", "OPTIONS"}
_TEAM_COOKIE = "steelyard_team_"
"""Prefix of the cookie of a team member's session; the study's slug follows, since one may be in several teams."""
_IDENTITY = "steelyard.identity"
_STUDY_PATH = re.compile(r"/(?:api/v1/studies|manage|s)/([^/]+)(?:/|$)")
Role: TypeAlias = Literal["owner", "manager", "viewer"]


@dataclass(frozen=True, slots=True)
class Session:
    """An annotator's session in one browser. `name` is the name they typed, or their id."""

    annotator: str
    token: str
    name: str

    @property
    def csrf(self) -> str:
        """The CSRF token, which every request that changes something must contain."""
        return derived(self.token, "csrf")

    @property
    def resume_token(self) -> str:
        """The token of the annotator's personal link, to continue on another device."""
        return derived(self.token, "resume")


@dataclass(frozen=True, slots=True)
class Newcomer:
    """An annotator whose link is valid, before the sign-in."""

    annotator: str
    name: str
    visit: Arrival | None = None


def is_resume(note: str) -> bool:
    """Whether a personal link was created by the server for an annotator who joined by name."""
    return note == RESUME or note.startswith(_RESUME_PREFIX)


def derived(secret: str, purpose: str) -> str:
    """Derive a token for one purpose; the secret cannot be recovered from it."""
    return hmac.new(secret.encode("utf-8", "surrogatepass"), purpose.encode(), hashlib.sha256).hexdigest()


class RateLimiters:
    """Rate limiters of sign-ins, one set per process."""

    def __init__(self, limits: Limits) -> None:
        self.annotators = TokenBuckets(limits.annotator)
        self.joining = TokenBuckets(limits.joining)
        self.guessing = FailedAttempts(limits.guessing)
        self.notes = TokenBuckets(limits.notes)
        self.newcomers = Newcomers(limits.newcomers)


def check_strength(token: str, variable: str = "STEELYARD_TOKEN") -> None:
    """Refuse a token that is easy to guess; `variable` is where it was set."""
    if len(token) < _MIN_LENGTH or len(set(token)) < _MIN_CHARACTERS:
        raise ConfigError(
            f"the token in {variable} is too easy to guess: {len(token)} characters, "
            f"{len(set(token))} of them different.",
            f"Set {variable} to {_MIN_LENGTH} or more random characters, {_MIN_CHARACTERS} or more different, "
            'e.g. from: python -c "import secrets; print(secrets.token_urlsafe(24))". '
            + ("Or leave it unset: then a new one is created at each start." if variable == "STEELYARD_TOKEN" else ""),
        )


class ManageKey:
    """The manager's token, of which only a digest is kept, and the sessions it is exchanged for.

    Sessions are random and stored like the annotators', in the database of the workspace or of the first study. They
    cannot be derived from the token, so forging them is no way to guess it; they end when they are signed out or the
    token changes.
    """

    def __init__(self, token: str, studies: Studies) -> None:
        self._digest = hashlib.sha256(token.encode()).digest()
        self._key = derived(token, "manage session")
        self._studies = studies

    def matches(self, token: str) -> bool:
        """Whether this is the token."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        return hmac.compare_digest(digest, self._digest)

    def new_session(self) -> str:
        """Create a session for a browser that sent the token, and return its cookie."""
        cookie = secrets.token_urlsafe(24)
        # Bound to the token by a digest that only the owner of the cookie can verify; it does not reveal the token.
        note = derived(self._key, f"session {cookie}")
        self._stores()[0].grant("manage", note=note, lifetime=timedelta(days=_MANAGE_DAYS), token=cookie)
        return cookie

    def is_session(self, cookie: str) -> bool:
        """Whether a cookie belongs to a session that has not ended."""
        if not 0 < len(cookie) <= _MAX_LENGTH:
            return False
        grants = (store.find("manage", cookie) for store in self._stores())
        grant = next((grant for grant in grants if grant is not None), None)
        expected = derived(self._key, f"session {cookie}")
        return grant is not None and hmac.compare_digest(grant.note.encode(), expected.encode())

    def end_session(self, cookie: str) -> None:
        """Invalidate a session."""
        for store in self._stores():
            store.revoke("manage", token=cookie)

    def csrf(self, cookie: str) -> str:
        """The CSRF token of the manager's pages."""
        return derived(self._key, f"csrf {cookie}")

    def signature(self, purpose: str, text: str) -> str:
        """Sign a text that a browser keeps for this server."""
        return derived(self._key, f"{purpose} {text}")

    def _stores(self) -> list[Access]:
        return self._studies.access_stores()


@dataclass(frozen=True, slots=True)
class Identity:
    """Who sent a request to the manager's pages: the owner of the server, or a member of the study's team."""

    role: Role
    name: str = ""
    """Name in the team; empty for the owner."""
    session: str = ""
    """The session's cookie; empty for a request with a bearer token."""

    @property
    def may_manage(self) -> bool:
        """Whether they may change the study, and see annotators' names."""
        return self.role != "viewer"


def identity_of(scope: Scope) -> Identity | None:
    """Return who sent a request to the manager's pages; None if nobody with access, and wrong tokens are counted."""
    if _IDENTITY not in scope:
        scope[_IDENTITY] = _identity(scope)
    identity: Identity | None = scope[_IDENTITY]
    return identity


def is_manager(scope: Scope) -> bool:
    """Whether a request has the owner's token or session, or those of a team member of the study in its path."""
    return identity_of(scope) is not None


def _identity(scope: Scope) -> Identity | None:
    limiters: RateLimiters = scope["app"].state.rate_limiters
    key: ManageKey = scope["app"].state.manage_key
    headers, address = Headers(scope=scope), address_of(scope)
    served = _study_in_path(scope)
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return _identity_by_token(limiters, key, address, token.strip(), served)
    owner = cookie_in(headers, MANAGE_COOKIE)
    # A valid session passes even if its address is locked for guessing.
    if owner and key.is_session(owner):
        return Identity("owner", session=owner)
    team = cookie_in(headers, team_cookie(served.slug)) if served is not None else None
    if served is not None and team and (member := _member_by_session(served, team)) is not None:
        return Identity(member.role, member.name, team)
    wrong = [cookie for cookie in (owner, team) if cookie]
    for cookie in wrong:
        if wait := limiters.guessing.wrong(address, cookie):
            raise too_many(wait)
    return None


def _study_in_path(scope: Scope) -> ServedStudy | None:
    match = _STUDY_PATH.match(scope["path"])
    studies: Studies = scope["app"].state.studies
    return studies.get(match[1]) if match else None


def _member_by_session(served: ServedStudy, cookie: str) -> Member | None:
    return Team(served.study).by_session(cookie) if len(cookie) <= _MAX_LENGTH else None


def _identity_by_token(
    limiters: RateLimiters, key: ManageKey, address: str, token: str, served: ServedStudy | None
) -> Identity | None:
    if wait := limiters.guessing.wait(address):
        raise too_many(wait)
    if key.matches(token):
        return Identity("owner")
    member = Team(served.study).by_token(token) if served is not None and 0 < len(token) <= _MAX_LENGTH else None
    if member is not None:
        return Identity(member.role, member.name)
    limiters.guessing.wrong(address, token)
    return None


def check_manager(scope: Scope) -> Identity:
    """Return who sent the request; raise unless it is the owner or a team member of the study in its path."""
    identity = identity_of(scope)
    if identity is None:
        raise Refusal(
            401,
            "manager_only",
            "This is for the people who run the study.",
            "Open the link that steelyard serve printed, or the one that you were given.",
        )
    return identity


def cookie_in(headers: Headers, name: str) -> str | None:
    """Find a cookie in a request's headers."""
    for part in headers.get("cookie", "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return None


async def find_served(study: str, request: Request) -> ServedStudy:
    """Find the study with this slug."""
    served: ServedStudy | None = request.app.state.studies.get(study)
    if served is None:
        raise Refusal(404, "no_such_study", "There is no such study here.", "Check the link you were given.")
    return served


StudyDep = Annotated[ServedStudy, Depends(find_served)]


def require_viewer(request: Request) -> Identity:
    """Raise unless the request comes from the owner or the team; browsers send the CSRF token with every change."""
    identity = check_manager(request.scope)
    if request.method not in _SAFE and not request.headers.get("authorization"):
        check_csrf(request, manage_csrf(request))
    request.state.who = identity.name or "the owner"
    return identity


def require_manager(request: Request) -> Identity:
    """Raise unless the request comes from somebody who may change the study."""
    identity = require_viewer(request)
    if not identity.may_manage:
        raise Refusal(
            403,
            "viewer",
            "Your link is for viewing only.",
            "Ask the people who run the study to do it, or ask them for a manager's link.",
        )
    return identity


def require_owner(request: Request) -> Identity:
    """Raise unless the request comes from the owner of the server."""
    identity = require_manager(request)
    if identity.role != "owner":
        raise Refusal(
            403,
            "owner_only",
            "Only the owner of this server may do that.",
            "Ask the person who started steelyard serve.",
        )
    return identity


Viewer = Annotated[Identity, Depends(require_viewer)]
"""A person who may view the study."""
Manager = Annotated[Identity, Depends(require_manager)]
"""A person who may change the study."""
Owner = Annotated[Identity, Depends(require_owner)]
"""The person who started the server."""


def manage_csrf(request: Request, identity: Identity | None = None) -> str:
    """The CSRF token for the manager's pages, of the session in the request unless another identity is given."""
    key: ManageKey = request.app.state.manage_key
    identity = identity or identity_of(request.scope)
    return key.csrf(identity.session if identity is not None else "")


def sign_out(request: Request, response: Response, csrf: str) -> None:
    """End the sessions of the owner and of team members in this browser, on the server too."""
    key: ManageKey = request.app.state.manage_key
    studies: Studies = request.app.state.studies
    names = [MANAGE_COOKIE, *(team_cookie(served.slug) for served in studies.all())]
    cookies = {name: cookie for name in names if 0 < len(cookie := request.cookies.get(name, "")) <= _MAX_LENGTH}
    # The form may be on a page of any of these sessions.
    pages = [key.csrf(cookie) for cookie in cookies.values()]
    check_csrf_token(
        csrf, next((token for token in pages if hmac.compare_digest(token.encode(), csrf.encode())), key.csrf(""))
    )
    key.end_session(cookies.get(MANAGE_COOKIE, ""))
    for served in studies.all():
        Team(served.study).end_session(cookies.get(team_cookie(served.slug), ""))
    for name in cookies:
        response.delete_cookie(name, path=_manage_path(request), httponly=True, samesite="strict")


def check_csrf(request: Request, expected: str) -> None:
    """Refuse a request without the CSRF token, which another site may have forged."""
    check_csrf_token(request.headers.get(CSRF_HEADER, ""), expected)


def check_csrf_token(token: str, expected: str) -> None:
    """Refuse a wrong CSRF token, from a header or a form."""
    if not hmac.compare_digest(token.encode("utf-8", "surrogatepass"), expected.encode()):
        raise Refusal(
            403,
            "stale_page",
            "This page is out of date.",
            "Nothing is lost. Reload the page; it continues where you were.",
            field=CSRF_HEADER,
        )


def session_of(request: Request, served: ServedStudy) -> Session | None:
    """Return the annotator's session, if the cookie is valid; wrong ones count as failed attempts."""
    token = request.cookies.get(SESSION_COOKIE, "")
    if is_embedded(request, served):
        token = request.headers[SESSION_HEADER]
    if not token:
        return None
    grant = served.study.access.find("session", token) if len(token) <= _MAX_LENGTH else None
    if grant is None or grant.annotator is None:
        limiters: RateLimiters = request.app.state.rate_limiters
        if wait := limiters.guessing.wrong(address_of(request.scope), token):
            raise too_many(wait)
        return None
    request.state.who = grant.annotator
    return Session(grant.annotator, token, grant.note or grant.annotator)


def is_embedded(request: Request, served: ServedStudy) -> bool:
    """Whether the request comes from a page in a frame of another site, which the study allows."""
    return SESSION_HEADER in request.headers and bool(served.study.config.embed.origins)


def signed_in(request: Request, served: ServedStudy) -> Session:
    """Return the annotator's session; refuse requests without one, with a wrong CSRF token, or over the rate limit."""
    session = session_of(request, served)
    if session is None:
        raise Refusal(
            401,
            "no_session",
            "You are not signed in, or your session has ended.",
            "Nothing is lost. Open your personal link or the study's page to continue.",
        )
    if request.method not in _SAFE:
        check_csrf(request, session.csrf)
    limiters: RateLimiters = request.app.state.rate_limiters
    if wait := limiters.annotators.take(f"{served.slug} {session.annotator}"):
        raise too_many(wait)
    return session


def join_by_name(request: Request, served: ServedStudy, text: str) -> Session:
    """Sign an annotator in under a name of their choice.

    A name in use gets a suffix that only the researcher sees. The response is the same as for a free name, so that it
    does not reveal who takes part. Continuing as an existing annotator requires their personal link.
    """
    study = served.study
    try:
        name = annotator_name(text)
    except TaskError as error:
        problem = error.problems[0]
        raise Refusal(422, "name_invalid", "This name is not valid.", problem.remedy, field="name") from None
    current = session_of(request, served)
    if current is not None and current.name == name:
        return current
    if not study.config.annotators.open:
        raise Refusal(
            403, "by_invitation", "This study is by invitation.", "Open the personal link that you were sent."
        )
    limiters: RateLimiters = request.app.state.rate_limiters
    if wait := limiters.joining.take(address_of(request.scope)):
        raise too_many(wait)
    with served.joining:
        annotator = name
        while study.annotators.knows(annotator) or study.access.of(annotator):
            annotator = f"{name[:190]}~{secrets.token_hex(3)}"
        return new_session(served, annotator, name)


def newcomer_by_invite(request: Request, served: ServedStudy, token: str) -> Newcomer:
    """Return the annotator of a personal link; refuse an invalid one."""
    limiters: RateLimiters = request.app.state.rate_limiters
    address = address_of(request.scope)
    if wait := limiters.guessing.wait(address):
        raise too_many(wait)
    grant = served.study.access.find("invite", token) if 0 < len(token) <= _MAX_LENGTH else None
    if grant is None or grant.annotator is None:
        limiters.guessing.wrong(address, token)
        raise Refusal(
            403,
            "invite_unknown",
            "This personal link is not valid, or has been revoked.",
            "Check that you copied the complete link, or ask for a new one.",
            field="invite",
        )
    name = grant.note.removeprefix(_RESUME_PREFIX) if grant.note.startswith(_RESUME_PREFIX) else grant.annotator
    return Newcomer(grant.annotator, name)


def newcomer_of(request: Request, served: ServedStudy, arrival: str) -> Newcomer | None:
    """Return the annotator of a personal link or a panel's link, from the query of its URL; None if it names nobody."""
    query = parse_qsl(arrival, keep_blank_values=True)
    invites = [value for name, value in query if name == "invite"]
    return newcomer_by_invite(request, served, invites[-1]) if invites else newcomer_by_link(request, served, query)


def newcomer_by_link(request: Request, served: ServedStudy, query: Sequence[tuple[str, str]]) -> Newcomer | None:
    """Return the participant of a panel's link; None if the URL has no participant.

    One participant is one annotator, also on another device or after a reload.
    """
    link = served.study.config.link
    if link is None:
        return None
    limiters: RateLimiters = request.app.state.rate_limiters
    address = address_of(request.scope)
    if wait := limiters.guessing.wait(address):
        raise too_many(wait)
    try:
        arrival = read_arrival(
            link,
            query,
            slug=served.slug,
            now=time.time(),
            study_id=served.platform_ledger().study_id or None,
            secret=link_secret() if link.signed else None,
        )
    except LinkRefusedError as error:
        if error.forged:
            limiters.guessing.wrong(address, repr(query))
        problem = error.problems[0]
        raise Refusal(403, "link_invalid", problem.what, problem.remedy) from None
    return None if arrival is None else Newcomer(arrival.participant, arrival.participant, arrival)


def admit(request: Request, served: ServedStudy, newcomer: Newcomer) -> Session:
    """Sign an annotator in and record the visit; nothing is written for arrivals over the rate limit."""
    study, visit = served.study, newcomer.visit
    is_noted = visit is None or (visit.study, visit.session) in {
        (earlier.study, earlier.session) for earlier in study.recruitment.arrivals_of(newcomer.annotator)
    }
    current = session_of(request, served)
    if current is not None and current.annotator != newcomer.annotator:
        current = None
    if current is not None and is_noted:
        return current
    limiters: RateLimiters = request.app.state.rate_limiters
    if wait := limiters.joining.take(address_of(request.scope)):
        raise too_many(wait)
    if visit is not None:
        study.recruitment.arrive(visit.participant, visit.study, visit.session)
    return current or new_session(served, newcomer.annotator, newcomer.name)


def new_session(served: ServedStudy, annotator: str, name: str) -> Session:
    """Create a session and its personal link; only their digests are stored."""
    access = served.study.access
    note = "" if name == annotator else name
    lifetime = timedelta(days=_SESSION_DAYS)
    session = Session(annotator, access.grant("session", annotator=annotator, note=note, lifetime=lifetime), name)
    resume = f"{_RESUME_PREFIX}{name}" if note else RESUME
    access.grant("invite", annotator=annotator, note=resume, token=session.resume_token)
    return session


def end_session(served: ServedStudy, session: Session) -> None:
    """Sign an annotator out; their personal link remains valid."""
    served.study.access.revoke("session", token=session.token)


def set_session_cookie(
    request: Request, response: Response, served: ServedStudy, session: Session, *, embedded: bool = False
) -> None:
    """Set the session cookie, for the URLs of this study only: an annotator may take part in several."""
    for path in _session_paths(served):
        if embedded:
            set_embedded_cookie(response, SESSION_COOKIE, session.token, path, _SESSION_DAYS * 86400)
            continue
        response.set_cookie(
            SESSION_COOKIE,
            session.token,
            max_age=_SESSION_DAYS * 86400,
            path=path,
            secure=is_https(request),
            httponly=True,
            samesite="lax",
        )


def set_embedded_cookie(response: Response, name: str, value: str, path: str, seconds: int) -> None:
    """Set a cookie that browsers send in a frame of another site, and only in frames of that site (partitioned)."""
    # By hand: the standard library knows the attribute Partitioned only since Python 3.14.
    attributes = f"HttpOnly; Max-Age={seconds}; Path={path}; SameSite=None; Secure; Partitioned"
    response.headers.append("set-cookie", f"{name}={value}; {attributes}")


def delete_session_cookie(response: Response, served: ServedStudy) -> None:
    """Delete the session cookie."""
    for path in _session_paths(served):
        response.delete_cookie(SESSION_COOKIE, path=path, httponly=True, samesite="lax")


def _session_paths(served: ServedStudy) -> tuple[str, str]:
    return served.api_url, served.url.rstrip("/")


def _manage_path(request: Request) -> str:
    """The path of managers' cookies: of this server only, if several are behind one host."""
    studies: Studies = request.app.state.studies
    return studies.root_path or "/"


def set_manage_cookie(request: Request, response: Response) -> None:
    """Set the manager's session cookie."""
    key: ManageKey = request.app.state.manage_key
    response.set_cookie(
        MANAGE_COOKIE,
        key.new_session(),
        max_age=_MANAGE_DAYS * 86400,
        path=_manage_path(request),
        secure=is_https(request),
        httponly=True,
        samesite="strict",
    )


def check_manage_token(request: Request, token: str, served: ServedStudy | None = None) -> Identity:
    """Return whose token this is: the owner's, or that of a member of a study's team. Refuse a wrong one."""
    key, limiters = request.app.state.manage_key, request.app.state.rate_limiters
    identity = _identity_by_token(limiters, key, address_of(request.scope), token, served)
    if identity is None:
        raise Refusal(
            403,
            "token_wrong",
            "This link or token is not valid, or has expired.",
            "Copy it again from where steelyard serve was started, or ask for a new link.",
        )
    return identity


def team_cookie(slug: str) -> str:
    """Return the name of the cookie of a team member's session."""
    return _TEAM_COOKIE + slug


def set_team_cookie(request: Request, response: Response, served: ServedStudy, token: str) -> None:
    """Start a session of the team member whose token this is."""
    response.set_cookie(
        team_cookie(served.slug),
        Team(served.study).new_session(token),
        max_age=_MANAGE_DAYS * 86400,
        path=_manage_path(request),
        secure=is_https(request),
        httponly=True,
        samesite="strict",
    )


def teams_of(request: Request) -> dict[str, Identity]:
    """Return the studies, by slug, whose team this browser has a session of."""
    studies: Studies = request.app.state.studies
    identities = {}
    for served in studies.all():
        cookie = request.cookies.get(team_cookie(served.slug), "")
        if cookie and (member := _member_by_session(served, cookie)) is not None:
            identities[served.slug] = Identity(member.role, member.name, cookie)
    return identities
