"""Who somebody is here changes only when they say so; names, tokens and sessions give nothing away."""

from __future__ import annotations

import html
import re
from urllib.parse import urljoin

import httpx
import pytest

from steelyard.errors import ConfigError
from steelyard.web import Studies, create_app
from steelyard.web.addresses import read_proxies, read_public_url
from steelyard.web.security import FailedAttempts, Limits, Rate
from tests.web.conftest import TOKEN, Server

MANAGER = {"Authorization": f"Bearer {TOKEN}"}
PANEL = "[link]\n"
FEW = Limits(guessing=Rate(3, 0.001))


def form_of(page: httpx.Response) -> dict[str, str]:
    fields = re.findall(r'name="(csrf|arrival)" value="([^"]*)"', page.text)
    return {name: html.unescape(value) for name, value in fields}


def who(server: Server, browser: httpx.Client) -> str | None:
    name: str | None = browser.get(f"{server.api}/me").json()["annotator"]
    return name


# Session swapping


@pytest.mark.parametrize("kind", ["invite", "panel"])
def test_a_link_of_somebody_else_asks_before_it_switches(kind, make_study, serve_study):
    server = serve_study(make_study(extra=PANEL))
    link = server.invite("mallory") if kind == "invite" else f"{server.page}?PROLIFIC_PID=mallory"
    with httpx.Client() as browser:
        assert browser.get(server.invite("ann")).status_code == 303
        before = server.study.last_seq()
        question = browser.get(link, headers={"Sec-Fetch-Site": "cross-site", "Accept-Language": "de"})
        assert question.status_code == 200
        assert "set-cookie" not in question.headers
        assert "Als jemand anderes weitermachen?" in question.text
        assert {"ann", "mallory"} <= set(re.findall(r"<bdi>(\w+)</bdi>", question.text))
        assert who(server, browser) == "ann"
        assert server.study.last_seq() == before
        form = form_of(question)
        for wrong in ({"csrf": ""}, {**form, "csrf": "0" * 64}, {**form, "arrival": f"{form['arrival']}&x=1"}):
            assert browser.post(f"{server.page}switch", data=wrong).status_code == 403
        other_site = browser.post(f"{server.page}switch", data=form, headers={"Sec-Fetch-Site": "cross-site"})
        assert other_site.status_code == 403
        assert who(server, browser) == "ann"
        old = browser.cookies.get("steelyard_session", path="/s/study")
        assert browser.post(f"{server.page}switch", data=form).headers["location"] == "/s/study/"
        assert who(server, browser) == "mallory"
    # The session that was left is over.
    with httpx.Client(cookies={"steelyard_session": old}) as left_behind:
        assert who(server, left_behind) is None


def test_a_first_arrival_is_one_click_and_ones_own_link_too(make_study, serve_study):
    server = serve_study(make_study(extra=PANEL))
    with httpx.Client() as browser:
        for _ in range(2):
            arrival = browser.get(f"{server.page}?PROLIFIC_PID=ann", headers={"Sec-Fetch-Site": "cross-site"})
            assert (arrival.status_code, who(server, browser)) == (303, "ann")


@pytest.mark.parametrize("kind", ["image", "iframe", "script"])
def test_a_link_that_another_site_loads_as_something_else_signs_nobody_in(kind, make_study, serve_study):
    server = serve_study(make_study(extra=PANEL))
    for link in (server.invite("ann"), f"{server.page}?PROLIFIC_PID=ann"):
        loaded = httpx.get(link, headers={"Sec-Fetch-Dest": kind, "Sec-Fetch-Site": "cross-site"})
        assert "set-cookie" not in loaded.headers
    assert not server.study.recruitment.arrivals


# Names


def test_a_taken_name_is_answered_as_a_free_one(make_study, serve_study):
    server = serve_study(make_study())
    ann = server.person("ann")
    task = ann.task()
    ann.tell(task, {task["items"][0]["id"]: 5})
    secrets = ("csrf", "key", "resume_url")
    answers = []
    for name in ("ann", "nobody"):
        stranger = server.person()
        joined = stranger.join(name)
        resumed = server.person().join_by(joined["resume_url"].rpartition("=")[2])
        seen_again = stranger.get("/me").json()
        for welcome in (joined, resumed, seen_again):
            assert welcome["annotator"] == name
            assert all(welcome[field] for field in secrets)
            answers.append({key: value for key, value in welcome.items() if key not in {*secrets, "annotator"}})
    assert all(answer == answers[0] for answer in answers)
    assert joined["key"] == resumed["key"]
    # Ann herself goes on, with her session and with her link.
    link = ann.get("/me").json()["resume_url"]
    again = server.person()
    assert again.join_by(link.rpartition("=")[2])["progress"]["answered"] == 1
    assert ann.join("ann")["progress"]["answered"] == 1


def test_people_of_one_name_are_kept_apart(make_study, serve_study):
    server = serve_study(make_study())
    first, second = server.person("ann"), server.person("ann")
    for person in (first, second):
        task = person.task()
        assert person.tell(task, {task["items"][0]["id"]: 5}).status_code == 200
    assert first.get("/me").json()["key"] != second.get("/me").json()["key"]
    names = sorted(server.study.judgments()["annotator"].to_list())
    assert names[0] == "ann"
    assert re.fullmatch(r"ann~[0-9a-f]{6}", names[1])


# Signing out


def test_an_annotator_signs_out_and_the_session_is_over(make_study, serve_study):
    server = serve_study(make_study())
    ann = server.person("ann")
    token = ann.http.cookies.get("steelyard_session", path="/api/v1/studies/study")
    link = ann.get("/me").json()["resume_url"]
    assert ann.http.post("/sign-out", json={}).status_code == 403
    assert ann.post("/sign-out").json() == {"signed_out": True}
    assert ann.get("/me").json()["annotator"] is None
    assert httpx.get(f"{server.api}/me", headers={"Cookie": f"steelyard_session={token}"}).json()["annotator"] is None
    assert server.person().join_by(link.rpartition("=")[2])["annotator"] == "ann"


def test_a_manager_signs_out_and_the_session_is_over(make_study, serve_study):
    server = serve_study(make_study())
    with httpx.Client(base_url=server.url) as browser:
        page = browser.get(f"/manage/?token={TOKEN}", follow_redirects=True)
        cookie = {"Cookie": f"steelyard_manage={browser.cookies['steelyard_manage']}"}
        assert browser.post("/manage/sign-out", data={"csrf": "wrong"}).status_code == 403
        assert httpx.get(f"{server.api}/manage/summary", headers=cookie).status_code == 200
        assert browser.post("/manage/sign-out", data=form_of(page)).headers["location"] == "/manage/"
        assert browser.get("/manage/").status_code == 401
        assert httpx.get(f"{server.api}/manage/summary", headers=cookie).status_code == 401


# Guessing


def test_a_forwarded_address_is_believed_from_a_trusted_proxy_only(make_study, serve_study):
    folder = make_study()

    def guess(server: Server, number: int, **headers: str) -> int:
        forwarded = {"X-Forwarded-For": f"203.0.113.{number}", **headers}
        return httpx.post(f"{server.api}/session", json={"invite": f"guess {number}"}, headers=forwarded).status_code

    direct = serve_study(folder, limits=FEW)
    assert [guess(direct, number) for number in range(60)] == [403] * 3 + [429] * 57
    proxied = serve_study(folder, limits=FEW, proxies=["127.0.0.0/8"])
    assert [guess(proxied, number) for number in range(20)] == [403] * 20
    # What the client wrote itself stands left of what the proxy has seen.
    spoofed = [guess(proxied, n, **{"X-Forwarded-For": f"203.0.113.{n}, 198.51.100.7"}) for n in range(5)]
    assert spoofed == [403] * 3 + [429] * 2


def test_serve_itself_believes_nobody(make_study, serve_study):
    """The command as people start it: uvicorn by itself would believe whoever connects from this machine."""
    server = serve_study(make_study(), process=True)
    statuses = [
        httpx.post(
            f"{server.api}/session", json={"invite": f"guess {n}"}, headers={"X-Forwarded-For": f"203.0.113.{n}"}
        ).status_code
        for n in range(30)
    ]
    assert statuses.count(429) >= 5


def credentials(server: Server, number: int) -> dict[str, httpx.Request]:
    wrong = f"a-wrong-one-{number:03d}"
    return {
        "manager's link": httpx.Request("GET", f"{server.url}/manage/?token={wrong}"),
        "manager's header": httpx.Request(
            "GET", f"{server.api}/manage/summary", headers={"Authorization": f"Bearer {wrong}"}
        ),
        "manager's cookie": httpx.Request(
            "GET", f"{server.api}/manage/summary", headers={"Cookie": f"steelyard_manage={wrong}"}
        ),
        "manager's cookie on a page": httpx.Request(
            "GET", f"{server.url}/manage/", headers={"Cookie": f"steelyard_manage={wrong}"}
        ),
        "large upload": httpx.Request(
            "POST",
            f"{server.url}/api/v1/manage/check",
            headers={"Authorization": f"Bearer {wrong}", "Content-Type": "application/json"},
            content=b"x" * 2_000_000,
        ),
        "invite": httpx.Request("GET", f"{server.page}?invite={wrong}"),
        "session": httpx.Request("GET", f"{server.api}/me", headers={"Cookie": f"steelyard_session={wrong}"}),
        "signed link": httpx.Request(
            "GET", f"{server.page}?PROLIFIC_PID=ann&STUDY_ID=s&SESSION_ID=v&signature={wrong}&expires=9999999999"
        ),
    }


@pytest.mark.parametrize("kind", list(credentials(Server("http://x", "study", [], lambda: None), 0)))
def test_every_kind_of_wrong_credential_is_limited_alike(kind, make_study, serve_study, monkeypatch):
    monkeypatch.setenv("STEELYARD_LINK_SECRET", "0123456789abcdef0123")
    server = serve_study(make_study(extra="[link]\nsigned = true"), limits=FEW)
    with httpx.Client(base_url=server.url) as manager:
        manager.get(f"/manage/?token={TOKEN}")
        ann = server.person("ann")
        statuses = []
        for number in range(6):
            with httpx.Client() as sender:
                statuses.append(sender.send(credentials(server, number)[kind]).status_code)
        assert statuses[3:] == [429] * 3, statuses
        assert 429 not in statuses[:3]
        # Whoever is signed in at the same address goes on.
        assert manager.get("/manage/").status_code == 200
        assert manager.get(f"{server.api}/manage/summary").status_code == 200
        assert ann.task()
        # The right token is no way to find out that it is right.
        assert httpx.get(f"{server.api}/manage/summary", headers=MANAGER).status_code == 429


def test_the_size_of_a_request_does_not_tell_a_right_token_from_a_wrong_one(make_study, serve_study):
    server = serve_study(make_study(), limits=Limits(body=1000, upload=5000, guessing=Rate(1, 0.001)))
    url = f"{server.url}/api/v1/manage/check"

    def status(token: str, size: int) -> int:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        return httpx.post(url, content=b" " * size, headers=headers).status_code

    assert status(TOKEN, 10_000) == 413
    assert status(TOKEN, 2000) == 400
    assert [status(f"wrong-{size}", size) for size in (2000, 10, 10_000)] == [401, 429, 429]
    assert [status(TOKEN, size) for size in (10, 2000, 10_000)] == [429, 429, 429]


def test_the_same_wrong_credential_is_one_guess():
    guesses = FailedAttempts(Rate(2, 0.001))
    assert [guesses.wrong("here", "a"), guesses.wrong("here", "a"), guesses.wrong("here", "b")] == [0, 0, 0]
    assert guesses.wait("here") > 0
    assert guesses.wrong("here", "a") == 0
    assert guesses.wrong("here", "c") > 0
    assert guesses.wait("there") == 0


@pytest.mark.parametrize("token", ["", "short", "secret", "a" * 24, "ab" * 10, "x" * 200])
def test_a_weak_token_is_refused_at_the_start(token, make_study):
    studies = Studies([make_study()])
    with pytest.raises(ConfigError, match="too easy to guess"):
        create_app(studies, token=token)
    studies.close()


def test_refused_arrivals_write_nothing(make_study, serve_study):
    server = serve_study(make_study(extra=PANEL), limits=Limits(joining=Rate(5, 0.001)))
    statuses = [httpx.get(f"{server.page}?PROLIFIC_PID=p{number}").status_code for number in range(20)]
    assert statuses == [303] * 5 + [429] * 15
    assert len(list(server.study.events(["arrived"]))) == 5
    with httpx.Client() as browser:
        again = [browser.get(f"{server.page}?PROLIFIC_PID=p0&SESSION_ID=s{number}").status_code for number in range(3)]
        assert again == [429] * 3
    assert len(list(server.study.events(["arrived"]))) == 5


# Addresses


def test_the_host_header_is_in_no_link(make_study, serve_study):
    server = serve_study(make_study())
    evil = {"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    ann = server.person("ann")
    welcome = ann.http.get("/me", headers=evil).json()
    assert welcome["resume_url"].startswith("/s/study/?invite=")
    for path in ("/s/study", "/manage", f"/manage/?token={TOKEN}", "/", "/s/study/", "/x"):
        response = httpx.get(f"{server.url}{path}", headers=evil)
        assert "evil.example" not in response.text + str(response.headers), path
    assert httpx.get(f"{server.url}/s/study", follow_redirects=True).url == server.page


def test_links_have_the_public_address_or_the_trusted_proxys(make_study, serve_study):
    folder = make_study()
    forwarded = {"X-Forwarded-Host": "judge.example", "X-Forwarded-Proto": "https"}
    public = serve_study(folder, public_url="https://public.example")
    proxied = serve_study(folder, proxies=["127.0.0.1"])
    for server, base in ((public, "https://public.example"), (proxied, "https://judge.example")):
        # Not by /me: over plain HTTP a client does not send the secure cookie back.
        link = httpx.post(f"{server.api}/session", json={"name": "ann"}, headers=forwarded).json()["resume_url"]
        assert link.startswith(f"{base}/s/study/?invite=")
    strange = {**forwarded, "X-Forwarded-Host": 'x"/><script>'}
    joined = httpx.post(f"{proxied.api}/session", json={"name": "bob"}, headers=strange).json()
    assert joined["resume_url"].startswith("/s/study/")


@pytest.mark.parametrize(
    "text", ["judge.example", "ftp://x", "https://", "https://u:p@x", "https://x/?y", "https://x:0"]
)
def test_a_public_address_that_is_none_is_refused(text):
    with pytest.raises(ConfigError, match="--public-url https://"):
        read_public_url(text)
    assert read_public_url("https://judge.example:8443/") == ("https://judge.example:8443", "")


def test_a_proxys_address_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="not the address of a proxy"):
        read_proxies(["proxy.example"])
    assert [str(network) for network in read_proxies(["10.1.2.3/8, ::1", "127.0.0.1"])] == [
        "10.0.0.0/8",
        "::1/128",
        "127.0.0.1/32",
    ]


@pytest.mark.parametrize(
    ("place", "kept"),
    [
        ("/manage/../../evil", "/manage/"),
        ("/manage/%2e%2e/%2e%2e/evil", "/manage/"),
        ("/manage/%252e%252e/evil", "/manage/"),
        ("/manage/./study/../study/", "/manage/study/"),
        ("/manage//study/", "/manage/study/"),
        ("//manage/study/", "/manage/study/"),
        ("/manage/study/edit", "/manage/study/edit"),
        ("/manage/..", "/manage/"),
        ("/manage/;@evil.example/", "/manage/"),
    ],
)
def test_the_return_address_is_normalised(place, kept, make_study, serve_study):
    server = serve_study(make_study())
    answer = httpx.post(f"{server.url}/manage/", data={"token": TOKEN, "next": place})
    assert answer.headers["location"] == kept
    refused = httpx.post(f"{server.url}/manage/", data={"token": "wrong", "next": place})
    assert urljoin("/", re.search(r'name="next" value="([^"]*)"', refused.text)[1]) == kept
