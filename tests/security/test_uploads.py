"""What a manager sends from the browser never leads out of the study's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from steelyard import Study
from steelyard.errors import ConfigError
from tests.web.conftest import TOKEN, Server

MANAGER = {"Authorization": f"Bearer {TOKEN}"}
ITEMS = "id,text\na,b\nc,d\n"
SECRET = "the-secret-of-another-project"
PLAIN = 'title = "t"\nquestion = "q"\nitems = "items.csv"\n'
PROTOCOL = '[protocol]\nname = "direct"\n'


@pytest.fixture
def server(make_study, serve_study, tmp_path) -> Server:
    other = tmp_path / "elsewhere" / "project"
    other.mkdir(parents=True)
    (other / "consent.md").write_text(SECRET)
    (other / "items.csv").write_text(f"id,text\nx,{SECRET}\ny,z\n")
    (other / "checks.csv").write_text(f"items,answer,feedback\na,1,{SECRET}\n")
    served: Server = serve_study(make_study())
    return served


def post(server: Server, path: str, draft: Any) -> httpx.Response:
    return httpx.post(f"{server.url}/api/v1/manage/{path}", json=draft, headers=MANAGER, timeout=60)


def put(server: Server, draft: Any) -> httpx.Response:
    return httpx.put(f"{server.api}/manage/config", json=draft, headers=MANAGER, timeout=60)


def hostile_config(tmp_path: Path) -> str:
    consent = tmp_path / "elsewhere" / "project" / "consent.md"
    database = tmp_path / "elsewhere" / "written.db"
    return f'{PLAIN}database = "sqlite:///{database}"\n[annotators]\nconsent = "{consent}"\n{PROTOCOL}'


NAMES = [
    "study.toml",
    "Study.TOML",
    "study.toml.",
    "study.toml ",
    "./study.toml",
    "study.db",
    ".made-in-browser",
    "consent.md",
    "s\N{LATIN SMALL LETTER T}udy\N{ONE DOT LEADER}toml",
    "\N{FULLWIDTH LATIN SMALL LETTER S}tudy.toml",
    "words.csv",
    "../items.csv",
]


@pytest.mark.parametrize("name", NAMES)
def test_an_upload_is_saved_under_a_name_of_the_servers_choice(server, tmp_path, name):
    text = PLAIN.replace("items.csv", name) + PROTOCOL
    folder = server.folders[0]
    before = {path.name: path.read_bytes() for path in folder.iterdir() if ".db" not in path.name}
    for upload in (name, "items.csv", f"{name}.csv"):
        draft = {"text": text, "items": {"name": upload, "text": hostile_config(tmp_path)}}
        created = post(server, "studies", draft)
        assert created.status_code == 422, created.text
        assert put(server, draft).status_code == 422
        checked = post(server, "check", draft)
        assert checked.json()["problems"]
        for response in (created, checked):
            assert SECRET not in response.text
    assert {path.name: path.read_bytes() for path in folder.iterdir() if ".db" not in path.name} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "study"]
    assert not (tmp_path / "elsewhere" / "written.db").exists()


def test_an_uploaded_file_keeps_nothing_of_its_name_but_the_suffix(server, tmp_path):
    draft = {"text": PLAIN + PROTOCOL, "items": {"name": "study.toml.csv", "text": ITEMS}}
    assert post(server, "studies", draft).status_code == 201
    names = {path.name for path in (tmp_path / "t").iterdir() if ".db" not in path.name}
    assert names == {"items.csv", "study.toml", ".made-in-browser"}


PLACES = [
    '[annotators]\nconsent = "{}/consent.md"\n',
    '[annotators]\ninstructions = "{}/consent.md"\n',
    '[annotators]\ntraining = "{}/checks.csv"\n',
    '[quality.checks]\nfile = "{}/checks.csv"\n',
    '[quality.qualification]\nfile = "{}/checks.csv"\n',
    '[page]\nmedia = "{}"\n',
]


@pytest.mark.parametrize("where", ["absolute", "up", "link", "file link"])
@pytest.mark.parametrize("table", PLACES)
def test_no_table_leads_out_of_a_study_made_in_the_browser_even_after_a_restart(
    server, serve_study, tmp_path, table, where
):
    draft = {"text": PLAIN + PROTOCOL, "items": {"name": "items.csv", "text": ITEMS}}
    assert post(server, "studies", draft).status_code == 201
    folder, other = tmp_path / "t", tmp_path / "elsewhere" / "project"
    target = {"absolute": str(other), "up": "../elsewhere/project", "link": "link", "file link": "."}[where]
    if where == "link":
        (folder / "link").symlink_to(other)
    if where == "file link":
        for name in ("consent.md", "checks.csv"):
            (folder / name).symlink_to(other / name)
        (folder / "media").symlink_to(other)
        table = table.replace("{}/", "").replace("{}", "media")
    text = PLAIN + table.format(target) + PROTOCOL
    # From the browser …
    api = f"{server.url}/api/v1/studies/t/manage/config"
    refused = httpx.put(api, json={"text": text}, headers=MANAGER)
    assert refused.status_code == 422, refused.text
    assert "not in the study's folder" in refused.text
    checked = post(server, "check", {"text": text, "study": "t"})
    assert "not in the study's folder" in checked.text
    assert SECRET not in refused.text + checked.text
    # … and when it got into the file all the same.
    (folder / "study.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"study\.toml line \d+ .*not in the study's folder"):
        Study.open(folder)


@pytest.mark.parametrize(
    "address", ["sqlite:////tmp/x.db", "sqlite:///other.db", "postgresql://evil.example/x", "mysql://h/x", "x"]
)
def test_a_study_made_in_the_browser_names_no_database(server, tmp_path, address):
    items = {"name": "items.csv", "text": ITEMS}
    text = f'database = "{address}"\n{PLAIN}{PROTOCOL}'
    for draft in ({"text": text, "items": items}, {"values": {"database": address, "title": "t"}, "items": items}):
        refused = post(server, "studies", draft)
        assert refused.status_code == 422
        assert "cannot be chosen in the browser" in refused.text
    assert post(server, "studies", {"text": PLAIN + PROTOCOL, "items": items}).status_code == 201
    (tmp_path / "t" / "study.toml").write_text(text)
    with pytest.raises(ConfigError, match="cannot be chosen in the browser"):
        Study.open(tmp_path / "t")


def test_a_study_made_on_the_command_line_stays_trusted_and_can_be_changed(make_study, serve_study, tmp_path):
    other = tmp_path / "shared"
    other.mkdir()
    (other / "words.csv").write_text(ITEMS)
    folder = make_study(extra=f'database = "sqlite:///{other}/here.db"')
    (folder / "items.csv").unlink()
    (folder / "items.csv").symlink_to(other / "words.csv")
    server = serve_study(folder)
    config = httpx.get(f"{server.api}/manage/config", headers=MANAGER).json()
    saved = put(server, {"text": config["text"].replace('"Words"', '"Other words"')})
    assert saved.status_code == 200, saved.text
    assert server.study.config.title == "Other words"
    # A new file replaces the link in the configuration, not what the link leads to.
    draft = {"values": {**config["values"], "items": None}, "items": {"name": "i.csv", "text": ITEMS + "e,f\n"}}
    saved = put(server, draft)
    assert saved.status_code == 200, saved.text
    assert (other / "words.csv").read_text() == ITEMS
    assert len(server.study.items) == 3


def test_uploaded_items_do_not_replace_a_file_with_another_purpose(make_study, serve_study):
    folder = make_study(extra='[quality.checks]\nfile = "items.tsv"')
    (folder / "items.tsv").write_text("items\tanswer\nw0\t5\n")
    server = serve_study(folder)
    text = (folder / "study.toml").read_text().replace("items.csv", "items-2.tsv")
    rows = "".join(f"w{number}\tword w{number}\n" for number in range(6))
    saved = put(server, {"text": text, "items": {"name": "items.tsv", "text": f"id\ttext\n{rows}"}})
    assert saved.status_code == 200, saved.text
    assert (folder / "items.tsv").read_text() == "items\tanswer\nw0\t5\n"


@pytest.fixture
def draft(server):
    """A draft of a new study, and a client that manages it."""
    with httpx.Client(base_url=server.url, headers=MANAGER, timeout=60) as http:
        url = f"/api/v1/manage/drafts/{http.post('/api/v1/manage/drafts', json={}).json()['id']}"
        http.put(f"{url}/items?name=i.csv", content=ITEMS.encode(), headers={"Content-Type": "text/csv"})
        yield http, url


@pytest.mark.parametrize("where", ["absolute", "up"])
@pytest.mark.parametrize("table", PLACES)
def test_a_draft_reads_nothing_outside_its_folder(draft, tmp_path, table, where):
    http, url = draft
    target = {"absolute": str(tmp_path / "elsewhere" / "project"), "up": "../../../elsewhere/project"}[where]
    answer = http.put(url, json={"text": PLAIN + table.format(target) + PROTOCOL})
    assert "not in the study's folder" in answer.text
    assert SECRET not in answer.text
    assert http.post(f"{url}/finish", json={}).status_code == 422
    elsewhere = http.put(url, json={"text": PLAIN.replace("items.csv", f"{target}/items.csv") + PROTOCOL})
    assert SECRET not in elsewhere.text


@pytest.mark.parametrize(
    "name", ["../../study.toml", "..\\..\\x.png", "/etc/x.png", ".hidden.png", "a/../../b.png", "\0.png"]
)
def test_media_of_a_draft_are_saved_in_its_media_folder_only(draft, tmp_path, name):
    http, url = draft
    before = sorted(str(path) for path in tmp_path.rglob("*") if "drafts" not in path.parts)
    picture = b"\x89PNG\r\n\x1a\n" + bytes(20)
    http.put(f"{url}/media", params={"name": name}, content=picture, headers={"Content-Type": "image/png"})
    assert sorted(str(path) for path in tmp_path.rglob("*") if "drafts" not in path.parts) == before
    folder = tmp_path / ".steelyard" / "drafts" / url.rpartition("/")[2]
    assert {path.name for path in folder.iterdir()} <= {"draft.json", "study.toml", "items.csv", "upload.csv", "media"}
    assert http.get(f"{url}/media/..%2Fstudy.toml").status_code == 404


@pytest.mark.parametrize("name", ["..", "../drafts", "0123456789abcdeg", "0" * 16, "%2e%2e"])
def test_drafts_are_found_by_their_random_names_only(draft, name):
    http, _ = draft
    assert http.get(f"/api/v1/manage/drafts/{name}").status_code in {401, 404, 405}


def test_the_draft_of_a_new_study_is_the_owners_alone(server, draft):
    http, url = draft
    below = url.replace("/api/v1/manage/", "/api/v1/studies/study/manage/")
    assert http.get(below).status_code == 404
    assert httpx.get(f"{server.url}{url}").status_code == 401
