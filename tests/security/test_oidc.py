"""Managers sign in with an identity provider: allowed people do, and no wrong token is taken."""

from __future__ import annotations

import time
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from steelyard.errors import ConfigError
from steelyard.web.oidc import OidcSettings
from tests.web.conftest import start_in_thread
from tests.web.oidc_issuer import CLIENT, stand_in_issuer
from tests.web.pages.studies import write_study
from tests.web.proxies import free_port

ROOT = "/x"


@pytest.fixture(scope="module")
def issuer():
    with stand_in_issuer() as standing_in:
        yield standing_in


@pytest.fixture(scope="module")
def server(issuer, tmp_path_factory):
    port = free_port()
    redirect = f"http://127.0.0.1:{port}{ROOT}/manage/oidc/callback"
    settings = OidcSettings(issuer.url, CLIENT, frozenset({"bo@else.example", "@lab.example"}), redirect)
    folder = write_study(tmp_path_factory.mktemp("oidc") / "words")
    started = start_in_thread([folder], root_path=ROOT, oidc=settings)
    yield started
    started.stop()


@pytest.fixture(autouse=True)
def honest(issuer):
    issuer.email, issuer.claims, issuer.forge = "ann@lab.example", {}, ""


def begin(browser: httpx.Client, server) -> tuple[str, httpx.Response]:
    """Go to the provider; return the path and query with which it sends the browser back."""
    away = browser.get(f"{server.url}/manage/oidc/start", params={"path": "/manage/words/results"})
    back = httpx.get(away.headers["location"])
    return back.headers["location"].partition("/manage/")[2], away


def sign_in(browser: httpx.Client, server) -> httpx.Response:
    back, _ = begin(browser, server)
    return browser.get(f"{server.url}/manage/{back}")


@pytest.mark.server
@pytest.mark.parametrize("email", ["ann@lab.example", "BO@else.example"])
def test_whoever_is_allowed_becomes_an_owner(server, issuer, email):
    issuer.email = email
    with httpx.Client() as browser:
        assert "Sign in with your organisation" in browser.get(f"{server.url}/manage/").text
        response = sign_in(browser, server)
        assert response.status_code == 200
        # A page of ours that goes on by itself: a strict cookie does not come along with a provider's redirect.
        assert f'content="0; url={ROOT}/manage/words/results"' in response.text
        cookie = next(c for c in response.headers.get_list("set-cookie") if c.startswith("steelyard_manage="))
        assert "samesite=strict" in cookie.lower()
        assert browser.get(f"{server.url}/manage/words/results").status_code == 200


@pytest.mark.server
def test_the_request_to_the_provider_has_pkce_state_and_nonce_anew_each_time(server, issuer):
    with httpx.Client() as browser:
        queries = [parse_qs(urlsplit(begin(browser, server)[1].headers["location"]).query) for _ in range(2)]
    for name in ("state", "nonce", "code_challenge"):
        assert queries[0][name] != queries[1][name]
        assert len(queries[0][name][0]) >= 43
    assert queries[0]["client_id"] == [CLIENT]


@pytest.mark.server
@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"claims": {"nonce": "another"}}, "belongs to another sign-in"),
        ({"claims": {"aud": "another-client"}}, "Audience"),
        ({"claims": {"aud": [CLIENT, "x"], "azp": "x"}}, "another application"),
        ({"claims": {"iss": "https://evil.example"}}, "issuer"),
        ({"claims": {"exp": int(time.time()) - 3600}}, "expired"),
        ({"claims": {"exp": None}}, "not valid"),
        ({"claims": {"email_verified": False}}, "no verified e-mail"),
        ({"claims": {"email_verified": "true"}}, "no verified e-mail"),
        ({"claims": {"email": ""}}, "no verified e-mail"),
        ({"email": "eve@evil.example"}, "not allowed"),
        ({"email": "ann@lab.example.evil.example"}, "not allowed"),
        ({"forge": "unsigned"}, "no signature"),
        ({"forge": "shared secret"}, "no signature"),
        ({"forge": "another key"}, "Signature verification failed"),
        ({"forge": "unknown key"}, "unknown key"),
    ],
)
def test_a_wrong_token_signs_nobody_in(server, issuer, wrong, reason):
    for name, value in wrong.items():
        setattr(issuer, name, value)
    with httpx.Client(transport=httpx.HTTPTransport(local_address=f"127.0.1.{len(str(wrong))}")) as browser:
        response = sign_in(browser, server)
        assert response.status_code == 403
        assert reason in response.text
        assert not any(cookie.startswith("steelyard_manage=") for cookie in response.headers.get_list("set-cookie"))
        assert browser.get(f"{server.url}/manage/words/").status_code == 401


@pytest.mark.server
def test_a_sign_in_ends_in_the_browser_that_began_it_and_once_only(server, issuer):
    with httpx.Client() as browser, httpx.Client() as other:
        back, _ = begin(browser, server)
        # Another's callback in this browser would sign its user in as somebody else.
        assert "another browser" in other.get(f"{server.url}/manage/{back}").text
        begin(other, server)
        assert other.get(f"{server.url}/manage/{back}").status_code == 403
        assert browser.get(f"{server.url}/manage/{back}").status_code == 200
        assert browser.get(f"{server.url}/manage/{back}").status_code == 403
        forged = {"Cookie": "steelyard_oidc=e30=.0000"}
        assert httpx.get(f"{server.url}/manage/{back}", headers=forged).status_code == 403


@pytest.mark.server
def test_without_an_issuer_there_is_no_such_sign_in(serve_study, make_study):
    server = serve_study(make_study())
    assert httpx.get(f"{server.url}/manage/oidc/start").status_code == 404
    assert "organisation" not in httpx.get(f"{server.url}/manage/").text


def test_settings_that_would_let_anybody_in_are_refused(monkeypatch):
    monkeypatch.setenv("STEELYARD_OIDC_ISSUER", "https://id.example")
    monkeypatch.setenv("STEELYARD_OIDC_CLIENT_ID", CLIENT)
    with pytest.raises(ConfigError, match="STEELYARD_OIDC_ALLOWED"):
        OidcSettings.from_environment("https://judge.example")
    for allowed in ("*", "@", "lab.example"):
        monkeypatch.setenv("STEELYARD_OIDC_ALLOWED", allowed)
        with pytest.raises(ConfigError, match="contains"):
            OidcSettings.from_environment("https://judge.example")
    monkeypatch.setenv("STEELYARD_OIDC_ALLOWED", "Ann@Lab.example, @else.example")
    settings = OidcSettings.from_environment("https://judge.example")
    assert settings.admits("ann@lab.example")
    assert settings.admits("x@ELSE.example")
    assert not settings.admits("bo@lab.example")
    monkeypatch.setenv("STEELYARD_OIDC_ISSUER", "http://id.example")
    with pytest.raises(ConfigError, match="https://"):
        OidcSettings.from_environment("https://judge.example")
