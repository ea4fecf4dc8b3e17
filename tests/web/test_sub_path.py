"""A server under a sub-path, alone and behind real proxies: addresses, redirects, cookies, events."""

from __future__ import annotations

import json
import re
import time
from urllib.parse import urlsplit

import httpx
import pytest
import yaml

from steelyard.errors import ConfigError
from steelyard.web import pages
from steelyard.web.addresses import read_public_url, read_root_path
from tests.web.conftest import TOKEN
from tests.web.proxies import CONFIGURATIONS, DOCUMENTED_PATH, proxy

ROOT = "/x/y"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def addresses_in(html: str) -> list[str]:
    return [
        address
        for address in re.findall(r'(?:href|src|action|data-api|data-judge)="([^"]*)"', html)
        if address.startswith(("/", "http"))
    ]


def test_no_template_or_script_names_an_address_without_the_root_path():
    folder = pages.HERE
    addresses = [
        f"{path.name}: {match[0]}"
        for path in (*folder.rglob("templates/**/*.html"), *folder.rglob("static/**/*.js"))
        for match in re.finditer(r"""(="|["'`(])/(api|manage|static|s)/""", path.read_text(encoding="utf-8"))
    ]
    assert addresses == []


@pytest.mark.server
@pytest.mark.parametrize("prefix", [ROOT, ""], ids=["path passed on", "path removed by the proxy"])
def test_every_address_of_every_page_is_under_the_root_path(make_study, serve_study, prefix):
    server = serve_study(make_study(), root_path=ROOT)
    base = server.url.removesuffix(ROOT) + prefix
    with httpx.Client(timeout=60) as browser:
        sign_in = browser.get(f"{base}/manage/", params={"token": TOKEN})
        assert sign_in.headers["location"] == f"{ROOT}/manage/"
        assert "Path=/x/y;" in sign_in.headers["set-cookie"]
        cookie = {"Cookie": sign_in.headers["set-cookie"].partition(";")[0]}
        paths = ["/", "/s/study/", "/nothing-here", "/manage/", "/manage/new", "/manage/study/", "/manage/study/team"]
        paths += [f"/manage/study/{tab}" for tab in ("results", "quality", "annotators", "activity", "export", "edit")]
        for page in paths:
            html = browser.get(base + page, headers={**cookie, "Accept": "text/html"}).text
            addresses = addresses_in(html)
            assert addresses, page
            assert [address for address in addresses if not address.startswith(f"{ROOT}/")] == [], page
            assets = {address for address in addresses if "/static/" in address}
            for asset in assets:
                assert browser.get(base + asset.removeprefix(ROOT)).status_code == 200, asset
        # The framework's own redirect, too.
        slash = browser.get(f"{base}/manage/study", headers={"Host": "evil.example"})
        assert urlsplit(slash.headers["location"])[:3] == ("", "", f"{ROOT}/manage/study/")
        session = browser.post(f"{base}/api/v1/studies/study/session", json={"name": "ann"})
        paths = re.findall(r"Path=([^;]+)", session.headers["set-cookie"])
        assert set(paths) == {f"{ROOT}/api/v1/studies/study", f"{ROOT}/s/study"}
        assert session.json()["resume_url"].startswith(f"{ROOT}/s/study/?invite=")


@pytest.mark.server
def test_links_for_annotators_panels_and_the_team_have_the_public_address_and_path(make_study, serve_study):
    public = f"https://lab.example{ROOT}"
    server = serve_study(make_study(extra='[link]\nparticipant_parameter = "PID"'), root_path=ROOT, public_url=public)
    api = f"{server.api}/manage"
    sharing = httpx.get(f"{api}/sharing", headers=BEARER).json()
    assert sharing["link"] == f"{public}/s/study/"
    assert sharing["panel_link"].startswith(f"{public}/s/study/?PID=")
    invitation = httpx.post(f"{api}/invitations", json={"names": ["bo"]}, headers=BEARER).json()[0]["link"]
    assert invitation.startswith(f"{public}/s/study/?invite=")
    response = httpx.get(server.page, params={"invite": invitation.partition("=")[2]})
    assert response.headers["location"] == f"{ROOT}/s/study/"
    member = httpx.post(f"{api}/team", json={"name": "Cy", "role": "viewer"}, headers=BEARER).json()["link"]
    assert member.startswith(f"{public}/manage/study/?token=")
    assert httpx.get(server.url, follow_redirects=False).headers["location"] == f"{ROOT}/"
    description = httpx.get(f"{server.url}/api/v1/openapi.json").json()
    assert description["servers"] == [{"url": ROOT}]


def test_a_path_in_the_public_address_is_the_root_path():
    assert read_public_url("https://a.example/tools/x/") == ("https://a.example/tools/x", "/tools/x")
    assert read_public_url("https://a.example", "/tools/x") == ("https://a.example/tools/x", "/tools/x")
    with pytest.raises(ConfigError, match="has the path '/a', but the root path is '/b'"):
        read_public_url("https://a.example/a", "/b")
    for text in ("x/y", "/x//y", "/x y", "/../x", "/x?y", "//host"):
        with pytest.raises(ConfigError, match="not a path"):
            read_root_path(text)


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.parametrize("name", ["nginx", "caddy"])
def test_the_documented_configurations_serve_a_sub_path(name, make_study, serve_study, tmp_path, caplog):
    server = serve_study(make_study(), root_path=ROOT, proxies=["127.0.0.1"])
    port = urlsplit(server.url).port
    # From an address of its own, so that it can be told from the proxy's.
    sender = httpx.HTTPTransport(local_address="127.0.0.2", verify=False)
    with proxy(name, tmp_path / "proxy", port, ROOT) as url, httpx.Client(transport=sender, timeout=60) as browser:
        assert browser.get(url).headers["location"].endswith(f"{ROOT}/")
        page = browser.get(f"{url}/s/study/", headers={"Accept-Encoding": "gzip"})
        assert page.status_code == 200
        assert "content-encoding" not in page.headers
        script = browser.get(f"{url}/static/annotate/flow.js", headers={"Accept-Encoding": "gzip"})
        assert script.headers["content-encoding"] == "gzip"
        forged = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "http", "X-Forwarded-Host": "evil.example"}
        session = browser.post(f"{url}/api/v1/studies/study/session", json={"name": "ann"}, headers=forged)
        assert "Secure" in session.headers["set-cookie"]
        assert session.json()["resume_url"].startswith(f"{url}/s/study/?invite=")
        browser.post(f"{url}/api/v1/studies/study/session", content="no JSON", headers=forged)
        assert "from '127.0.0.2': 415 not_json" in caplog.text
        tasks = {"X-CSRF-Token": session.json()["csrf"]}
        task = browser.post(f"{url}/api/v1/studies/study/tasks", json={"count": 1}, headers=tasks).json()["tasks"][0]
        headers = {**BEARER, "Accept-Encoding": "gzip"}
        with browser.stream("GET", f"{url}/api/v1/studies/study/manage/live", headers=headers) as live:
            assert "content-encoding" not in live.headers
            lines = live.iter_lines()
            assert summary_in(lines)["judgments"] == 0
            answer = {"judgment_id": task["judgment_id"], "answer": {task["items"][0]["id"]: 60}, "seconds": 2}
            sent_at = time.monotonic()
            assert browser.post(f"{url}/api/v1/studies/study/judgments", json=answer, headers=tasks).json()["saved"]
            while summary_in(lines)["judgments"] == 0:
                pass
            # A proxy that buffers would wait for more, or for the heartbeat after 15 s.
            assert time.monotonic() - sent_at < 10


def summary_in(lines):
    data = next(line for line in lines if line.startswith("data: "))
    return json.loads(data.removeprefix("data: "))


def test_the_configuration_for_traefik_serves_the_same_path_without_compression():
    configuration = yaml.safe_load((CONFIGURATIONS / "traefik.yaml").read_text())["http"]
    router = configuration["routers"]["steelyard"]
    assert f"PathPrefix(`{DOCUMENTED_PATH}/`)" in router["rule"]
    assert "middlewares" not in router
    assert "tls" in router
    assert router["service"] in configuration["services"]
