"""Who may come in, what other sites can do, and how fast anybody may go."""

from __future__ import annotations

import re
import sqlite3
import stat
import time
from urllib.parse import urljoin

import httpx
import pytest

from steelyard.web import Studies
from steelyard.web.identity import ManageKey
from steelyard.web.security import Limits, Rate, TokenBuckets
from tests.web.conftest import TOKEN


def test_every_answer_carries_the_headers(make_study, serve_study):
    server = serve_study(make_study())
    for url in (server.url, server.page, f"{server.api}/me", f"{server.url}/static/steelyard.css", f"{server.url}/x"):
        headers = httpx.get(url).headers
        policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
    refused = httpx.post(f"{server.api}/tasks", content="x")
    assert "default-src 'none'" in refused.headers["content-security-policy"]


def test_the_page_has_no_inline_script_or_style(make_study, serve_study):
    text = httpx.get(serve_study(make_study()).page).text
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=|javascript:|https?://", text)


def test_the_session_cookie_is_out_of_reach_of_scripts_and_other_sites(make_study, serve_study):
    server = serve_study(make_study())
    response = httpx.post(f"{server.api}/session", json={"name": "ann"})
    cookies = response.headers.get_list("set-cookie")
    assert {re.search(r"Path=(\S+?);", cookie)[1] for cookie in cookies} == {"/api/v1/studies/study", "/s/study"}
    for cookie in cookies:
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert "Secure" not in cookie


def test_cookies_are_secure_behind_a_trusted_proxy_or_a_public_address_with_tls(make_study, serve_study):
    folder = make_study()
    proxied = serve_study(folder, proxies=["127.0.0.1"])
    forwarded = {"X-Forwarded-Proto": "https"}
    for server, headers in ((proxied, forwarded), (serve_study(folder, public_url="https://judge.example"), {})):
        cookies = httpx.post(f"{server.api}/session", json={"name": "bob"}, headers=headers).headers
        assert all("Secure" in cookie for cookie in cookies.get_list("set-cookie"))
    plain = httpx.post(f"{serve_study(folder).api}/session", json={"name": "bob"}, headers=forwarded)
    assert "Secure" not in plain.headers["set-cookie"]


def test_no_token_is_in_the_database(make_study, serve_study):
    folder = make_study()
    server = serve_study(folder)
    welcome = server.person("ann").get("/me").json()
    link = server.invite("bob")
    ann = server.people[0]
    secrets = [
        ann.http.cookies.get("steelyard_session", path="/api/v1/studies/study"),
        welcome["csrf"],
        welcome["resume_url"].rpartition("=")[2],
        link.rpartition("=")[2],
        TOKEN,
    ]
    with sqlite3.connect(folder / "study.db") as database:
        whole = "\n".join(database.iterdump())
    database.close()
    assert "access" in whole
    for secret in secrets:
        assert secret
        assert len(secret) >= 20
        assert secret not in whole


def test_a_personal_link_signs_in_and_leaves_the_address_bar(make_study, serve_study):
    server = serve_study(make_study(extra="[annotators]\nopen = false"))
    link = server.invite("ann")
    with httpx.Client() as browser:
        first = browser.get(link)
        assert (first.status_code, first.headers["location"]) == (303, "/s/study/")
        assert browser.get(f"{server.api}/me").json()["annotator"] == "ann"
        # The same link again, as after a bookmark, keeps the session that is there.
        before = {cookie.value for cookie in browser.cookies.jar}
        browser.get(link)
        assert {cookie.value for cookie in browser.cookies.jar} == before


def test_work_goes_on_elsewhere_with_the_resume_link(make_study, serve_study):
    server = serve_study(make_study())
    ann = server.person("ann")
    task = ann.task()
    link = ann.get("/me").json()["resume_url"]
    assert urljoin(server.page, link).startswith(f"{server.page}?invite=")
    phone = server.person()
    assert phone.join_by(link.rpartition("=")[2])["annotator"] == "ann"
    assert phone.task()["judgment_id"] == task["judgment_id"]
    assert phone.tell(task, {task["items"][0]["id"]: 1}).status_code == 200
    assert ann.get("/me").json()["progress"]["answered"] == 1


@pytest.mark.parametrize("how", ["joined", "answered", "invited", "asked in Python"])
def test_a_name_in_use_cannot_be_taken_over(how, make_study, serve_study):
    server = serve_study(make_study())
    if how == "invited":
        server.invite("ann")
    elif how == "asked in Python":
        server.study.ask("ann")
    else:
        ann = server.person("ann")
        task = ann.task()
        if how == "answered":
            ann.tell(task, {task["items"][0]["id"]: 1})
        assert ann.join("ann")["progress"]["answered"] == (how == "answered")
    before = server.study.annotators.progress("ann").answered
    stranger = server.person(" ann ")
    task = stranger.task()
    assert stranger.tell(task, {task["items"][0]["id"]: 1}).status_code == 200
    assert server.study.annotators.progress("ann").answered == before
    assert server.study.judgments()["annotator"].n_unique() == 1 + (how == "answered")


def test_a_study_by_invitation_takes_no_names_and_shows_no_media(make_study, serve_study):
    folder = make_study(extra="[annotators]\nopen = false")
    (folder / "media").mkdir()
    (folder / "media" / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 20)
    server = serve_study(folder)
    refused = httpx.post(f"{server.api}/session", json={"name": "ann"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "by_invitation")
    assert httpx.get(f"{server.api}/me").json()["study"]["open"] is False
    picture = f"{server.page}media/a.png"
    assert httpx.get(picture).status_code == 401
    assert httpx.get(picture, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    with httpx.Client() as ann:
        ann.get(server.invite("ann"))
        assert ann.get(picture).status_code == 200
    assert "Words" not in httpx.get(server.url).text


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_cannot_post(site, make_study, serve_study):
    server = serve_study(make_study())
    response = httpx.post(f"{server.api}/session", json={"name": "ann"}, headers={"Sec-Fetch-Site": site})
    assert (response.status_code, response.json()["error"]["code"]) == (403, "other_site")
    own = httpx.post(f"{server.api}/session", json={"name": "ann"}, headers={"Sec-Fetch-Site": "same-origin"})
    assert own.status_code == 200


def test_a_bucket_lets_its_burst_through_and_then_its_rate():
    now = [0.0]
    buckets = TokenBuckets(Rate(3, 2), clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert buckets.take("b") == 0
    now[0] = 0.5
    assert buckets.wait("a") == 0
    assert [buckets.take("a"), buckets.take("a")] == [0, 0.5]
    now[0] = 100
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0.5]


def test_guessing_tokens_is_slowed_down(make_study, serve_study):
    server = serve_study(make_study(), limits=Limits(guessing=Rate(3, 0.01)))
    codes = [httpx.post(f"{server.api}/session", json={"invite": f"guess {n}"}).status_code for n in range(5)]
    assert codes == [403, 403, 403, 429, 429]
    right = server.invite("ann").rpartition("=")[2]
    late = httpx.post(f"{server.api}/session", json={"invite": right})
    assert (late.status_code, late.json()["error"]["code"]) == (429, "too_many")
    assert int(late.headers["retry-after"]) >= 1


def test_one_annotator_cannot_crowd_out_the_others(make_study, serve_study):
    server = serve_study(make_study(), limits=Limits(annotator=Rate(5, 0.01)))
    ann, bob = server.person("ann"), server.person("bob")
    assert [ann.post("/tasks").status_code for _ in range(7)] == [200] * 5 + [429] * 2
    assert bob.post("/tasks").status_code == 200


def test_the_managers_session_is_made_with_the_token_and_ends_with_it(make_study):
    studies = Studies([make_study()])
    key, other = ManageKey("a", studies), ManageKey("b", studies)
    cookie = key.new_session()
    assert key.is_session(cookie)
    assert not other.is_session(cookie)
    assert not key.is_session("")
    assert not key.is_session(cookie[:-1])
    assert cookie != key.new_session()
    assert key.matches("a")
    assert not key.matches("")
    assert not key.matches("\ud800")
    studies.close()


def test_an_old_session_of_the_manager_lets_nobody_in(make_study, monkeypatch):
    studies = Studies([make_study()])
    key = ManageKey("a", studies)
    cookie = key.new_session()
    later = time.time_ns() // 1000 + 15 * 86400 * 1_000_000
    monkeypatch.setattr(studies.all()[0].study.access, "_clock", lambda: later)
    assert not key.is_session(cookie)
    studies.close()


def test_the_database_is_not_below_the_media_folder(make_study, serve_study):
    folder = make_study()
    server = serve_study(folder)
    assert stat.S_ISREG((folder / "study.db").stat().st_mode)
    for path in ("study.db", "../study.db", "%2e%2e%2fstudy.db", "....//study.db"):
        assert httpx.get(f"{server.page}media/{path}").status_code == 404


def test_what_everybody_may_see_is_compressed_and_what_holds_a_secret_is_not(make_study, serve_study):
    server = serve_study(make_study())
    accept = {"Accept-Encoding": "gzip"}
    assert httpx.get(f"{server.url}/static/steelyard.css", headers=accept).headers["content-encoding"] == "gzip"
    assert httpx.get(f"{server.url}/api/v1/messages/en", headers=accept).headers["content-encoding"] == "gzip"
    ann = server.person("ann")
    assert "content-encoding" not in ann.http.get("/me", headers=accept).headers


def test_static_files_are_kept_by_the_browser_and_asked_about(make_study, serve_study):
    server = serve_study(make_study())
    first = httpx.get(f"{server.url}/static/steelyard.css")
    assert first.headers["cache-control"] == "no-cache"
    again = httpx.get(f"{server.url}/static/steelyard.css", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
