"""Managers' sign-in by OpenID Connect: authorization code with PKCE. Allowed accounts become owners of the server.

The server calls the issuer that its operator has configured, and no other address.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import httpx
from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from steelyard.errors import ConfigError
from steelyard.web.addresses import address_of, is_https
from steelyard.web.errors import Refusal, log_refusal, too_many
from steelyard.web.identity import ManageKey, set_manage_cookie
from steelyard.web.manage_pages import next_page, show_login
from steelyard.web.pages import page
from steelyard.web.security import EXTERNAL_REDIRECT

if TYPE_CHECKING:
    from jwt import PyJWK

ISSUER = "STEELYARD_OIDC_ISSUER"
CLIENT_ID = "STEELYARD_OIDC_CLIENT_ID"
CLIENT_SECRET = "STEELYARD_OIDC_CLIENT_SECRET"  # noqa: S105 - the name of the variable, not a secret
ALLOWED = "STEELYARD_OIDC_ALLOWED"

_COOKIE = "steelyard_oidc"
_PURPOSE = "oidc sign-in"
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]
"""Public-key signatures only. Tokens without one, or with a shared secret, could be forged by anybody or any client."""
_SIGN_IN_SECONDS = 600
_CACHE_SECONDS = 3600
_TIMEOUT_SECONDS = 10
_LEEWAY_SECONDS = 60
"""Clocks of server and issuer may differ by this much."""
_LOCAL = {"127.0.0.1", "localhost", "::1"}

log = logging.getLogger("steelyard.web")
router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """The issuer, the registration of this server there, and who may sign in: addresses or domains (@example.org)."""

    issuer: str
    client_id: str
    allowed: frozenset[str]
    redirect_url: str
    client_secret: str | None = field(default=None, repr=False)

    @classmethod
    def from_environment(cls, public_url: str | None) -> OidcSettings | None:
        """Read the settings; None if no issuer is set."""
        issuer = os.environ.get(ISSUER)
        if not issuer:
            return None
        client_id, texts = os.environ.get(CLIENT_ID), os.environ.get(ALLOWED, "")
        allowed = frozenset(text.lower() for text in re.split(r"[,\s]+", texts) if text)
        if not client_id or not allowed or not public_url:
            raise ConfigError(
                f"{ISSUER} is set, but {CLIENT_ID}, {ALLOWED} or the public URL is missing.",
                f"Set all of them, e.g. {ALLOWED}='ann@example.org @lab.example.org' and --public-url https://….",
            )
        strange = sorted(text for text in allowed if not re.fullmatch(r"[^@\s]*@[a-z0-9.-]+", text))
        if strange:
            raise ConfigError(
                f"{ALLOWED} contains '{strange[0]}'.", "Use ann@example.org, or @example.org for a domain."
            )
        _check_address(issuer, "the issuer")
        try:
            import jwt  # noqa: F401 - whether it is there
        except ModuleNotFoundError:
            raise ConfigError("sign-in by OpenID Connect needs PyJWT.", "pip install 'steelyard[oidc]'") from None
        return cls(issuer, client_id, allowed, f"{public_url}/manage/oidc/callback", os.environ.get(CLIENT_SECRET))

    def admits(self, email: str) -> bool:
        """Whether the owner of this e-mail address may sign in."""
        plain = email.lower()
        return plain in self.allowed or f"@{plain.rpartition('@')[2]}" in self.allowed


class SignInError(Exception):
    """The sign-in failed; the text is for the person who tried."""


class Issuer:
    """The issuer's addresses and keys, fetched when they are needed and cached for an hour."""

    def __init__(self, settings: OidcSettings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._addresses: dict[str, Any] = {}
        self._keys: dict[str, PyJWK] = {}
        self._addresses_at = self._keys_at = -1e9

    def addresses(self) -> Mapping[str, Any]:
        """Return the issuer's description (OpenID Connect Discovery)."""
        with self._lock:
            if time.monotonic() - self._addresses_at > _CACHE_SECONDS:
                description = _fetch(f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration")
                if description.get("issuer") != self.settings.issuer:
                    raise SignInError("The issuer's description names another issuer.")
                for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
                    _check_address(str(description.get(name, "")), name)
                self._addresses, self._addresses_at = description, time.monotonic()
            return self._addresses

    def _key(self, name: str) -> PyJWK:
        """Return a signing key; keys are fetched again if it is new, but at most once a minute."""
        from jwt import PyJWKSet, PyJWTError

        uri = self.addresses()["jwks_uri"]
        with self._lock:
            age = time.monotonic() - self._keys_at
            if age > _CACHE_SECONDS or (name not in self._keys and age > 60):
                try:
                    keys = PyJWKSet.from_dict(_fetch(uri)).keys
                except PyJWTError:
                    raise SignInError("The issuer's keys cannot be read.") from None
                self._keys, self._keys_at = {key.key_id or "": key for key in keys}, time.monotonic()
            if name not in self._keys:
                raise SignInError("The ID token is signed with an unknown key.")
            return self._keys[name]

    def redeem(self, code: str, verifier: str) -> str:
        """Exchange the code for an ID token."""
        settings = self.settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": settings.redirect_url,
            "client_id": settings.client_id,
            "code_verifier": verifier,
        }
        if settings.client_secret:
            form["client_secret"] = settings.client_secret
        answer = _fetch(self.addresses()["token_endpoint"], form)
        return str(answer.get("id_token", ""))

    def email_of(self, token: str, nonce: str) -> str:
        """Check an ID token (OpenID Connect Core, 3.1.3.7) and return its verified e-mail address."""
        import jwt

        settings = self.settings
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in _ALGORITHMS:
                raise SignInError("The ID token has no signature that can be checked.")
            claims = jwt.decode(
                token,
                self._key(str(header.get("kid", ""))),
                algorithms=_ALGORITHMS,
                audience=settings.client_id,
                issuer=settings.issuer,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iat", "aud", "iss", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise SignInError(f"The ID token is not valid: {error}.") from None
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise SignInError("The ID token belongs to another sign-in.")
        if claims.get("azp", settings.client_id) != settings.client_id:
            raise SignInError("The ID token was issued to another application.")
        if claims.get("email_verified") is not True or "@" not in str(claims.get("email", "")):
            raise SignInError("Your account has no verified e-mail address.")
        return str(claims["email"])


def _check_address(text: str, name: str) -> None:
    parts = urlsplit(text)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOCAL):
        raise ConfigError(f"{name} of OpenID Connect, '{text}', does not begin with https://.", f"Check {ISSUER}.")


def _fetch(url: str, form: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Call the issuer; redirects are not followed."""
    try:
        with httpx.Client(timeout=_TIMEOUT_SECONDS, follow_redirects=False) as client:
            response = client.get(url) if form is None else client.post(url, data=dict(form))
        response.raise_for_status()
        answer = response.json()
    except (httpx.HTTPError, ValueError) as error:
        log.warning("sign-in: %s failed: %s", urlsplit(url).path, type(error).__name__)
        raise SignInError("The identity provider did not answer as expected.") from None
    return answer if isinstance(answer, dict) else {}


def _issuer(request: Request) -> Issuer:
    issuer: Issuer | None = request.app.state.oidc
    if issuer is None:
        raise Refusal(404, "not_found", "There is no page at this address.", "Check the link you were given.")
    return issuer


@router.get("/manage/oidc/start")
def start(request: Request, path: str = "/manage/") -> Response:
    """Send a manager to the identity provider."""
    issuer = _issuer(request)
    settings = issuer.settings
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    try:
        endpoint = str(issuer.addresses()["authorization_endpoint"])
    except (SignInError, ConfigError) as error:
        return _refuse(request, str(error), 503)
    query = {
        "response_type": "code",
        "client_id": settings.client_id,
        "redirect_uri": settings.redirect_url,
        "scope": "openid email",
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    request.scope[EXTERNAL_REDIRECT] = True
    response = RedirectResponse(f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}", 303)
    key: ManageKey = request.app.state.manage_key
    values = {"state": state, "nonce": nonce, "verifier": verifier, "next": next_page(path), "until": time.time() + 600}
    text = base64.urlsafe_b64encode(json.dumps(values).encode()).decode()
    response.set_cookie(
        _COOKIE,
        f"{text}.{key.signature(_PURPOSE, text)}",
        max_age=_SIGN_IN_SECONDS,
        path=_cookie_path(request),
        secure=is_https(request),
        httponly=True,
        # The provider's redirect comes from another site.
        samesite="lax",
    )
    return response


@router.get("/manage/oidc/callback")
def callback(request: Request, code: str = "", state: str = "") -> Response:
    """Take a manager back from the identity provider, and start a session if the address is allowed."""
    issuer = _issuer(request)
    limiters, address = request.app.state.rate_limiters, address_of(request.scope)
    if wait := limiters.guessing.wait(address):
        raise too_many(wait)
    try:
        sign_in = _sign_in_of(request, state)
        if not code:
            raise SignInError("The identity provider refused the sign-in.")
        email = issuer.email_of(issuer.redeem(code, sign_in["verifier"]), sign_in["nonce"])
        if not issuer.settings.admits(email):
            raise SignInError("Your account is not allowed to manage this server.")
    except (SignInError, ConfigError) as error:
        limiters.guessing.wrong(address, f"{state} {code}")
        return _refuse(request, str(error))
    log.info("sign-in of %r by OpenID Connect", email)
    # Not a redirect: the session's cookie is not sent with a redirect that began on another site.
    root = request.app.state.studies.root_path
    response = page(request, "manage/signed_in.html", language="en", url=root + sign_in["next"])
    set_manage_cookie(request, response)
    response.delete_cookie(_COOKIE, path=_cookie_path(request), httponly=True, samesite="lax")
    return response


def _cookie_path(request: Request) -> str:
    return f"{request.app.state.studies.root_path}/manage/oidc"


def _sign_in_of(request: Request, state: str) -> dict[str, Any]:
    """Return the sign-in that this browser began; refuse one that it did not begin."""
    key: ManageKey = request.app.state.manage_key
    text, _, signature = request.cookies.get(_COOKIE, "")[:4000].rpartition(".")
    if not hmac.compare_digest(signature.encode(), key.signature(_PURPOSE, text).encode()):
        raise SignInError("The sign-in was begun in another browser, or too long ago. Try again.")
    values: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text))
    if not hmac.compare_digest(state.encode(), str(values["state"]).encode()) or values["until"] < time.time():
        raise SignInError("The sign-in was begun in another browser, or too long ago. Try again.")
    return values


def _refuse(request: Request, what: str, status: int = 403) -> Response:
    log_refusal(request.method, request.url.path, Refusal(status, "sign_in_failed", what), address_of(request.scope))
    response = show_login(request, what, status, "/manage/")
    response.delete_cookie(_COOKIE, path=_cookie_path(request), httponly=True, samesite="lax")
    return response
