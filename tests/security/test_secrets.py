"""Passwords in a database address never appear in errors, logs or the manager's pages."""

from __future__ import annotations

import traceback

import httpx
import pytest

from steelyard import Study
from steelyard.errors import ConfigError, StoreError
from steelyard.storage.engine import without_password
from tests.web.conftest import TOKEN

MANAGER = {"Authorization": f"Bearer {TOKEN}"}

ADDRESSES = [
    "postgresql://u:hunter2@127.0.0.1:1/x",
    "postgresql://u@127.0.0.1:1/x?password=hunter2",
    "postgresql://u@127.0.0.1:1/x?a=b&sslpassword=hunter2&c=d",
    "postgresql://u@127.0.0.1:1/x?p%61ssword=hunter2",
    "postgresql://u@127.0.0.1:1/x?PASSWORD=hunter2",
    "postgresql://u@127.0.0.1:1/x?password=hunter2;hunter2",
    "postgresql://u@127.0.0.1:1/x?password=one hunter2",
    "postgresql://u:a/hunter2@127.0.0.1:1/x",
    "postgresql://u:a@hunter2@127.0.0.1:1/x",
    "postgresql://u:a:hunter2/x",
    "postgresql://u@127.0.0.1:hunter2/x",
    "postgresql://u:hunter2",
    "mysql://u:hunter2@h/x?password=hunter2",
    "nonsense://u:hunter2@h/x",
    "nonsense://h/x?password=hunter2",
    "postgresql+psycopg://u@127.0.0.1:1/x?password=hunter2&connect_timeout=hunter",
    "postgresql://u@127.0.0.1:1/x?unknown=1&password=hunter2",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_error_shows_a_password_wherever_it_stands_in_the_address(make_study, address):
    folder = make_study()
    with pytest.raises(StoreError) as refusal:
        Study.open(folder, database=address)
    assert "hunter2" not in "".join(traceback.format_exception(refusal.value))


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://u:p@ss@h:5/x?a=b", "postgresql://u:***@h:5/x?a=b"),
        ("postgresql://h/x?user=u&password=p&a=b", "postgresql://h/x?user=u&password=***&a=b"),
        ("postgresql://h/x?sslpassword=p", "postgresql://h/x?sslpassword=***"),
        ("postgresql://u@h/x?application_name=steelyard", "postgresql://u@h/x?application_name=steelyard"),
        ("sqlite:///study.db", "sqlite:///study.db"),
    ],
)
def test_only_the_secret_parts_of_an_address_are_hidden(address, shown):
    assert without_password(address) == shown


def test_a_wrong_type_of_database_does_not_show_its_password(make_study):
    folder = make_study(extra='database = ["postgresql://h/x?password=hunter2"]')
    with pytest.raises(ConfigError) as refusal:
        Study.open(folder)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    "written",
    [
        "sqlite:///study.db?password=hunter2",
        # The same address with an escape of TOML: a plain search for the address does not find it in the text.
        "sqlite:///study.db?p\\u0061ssword=hunter2",
    ],
)
def test_the_managers_pages_hide_a_password_in_the_query(make_study, serve_study, written):
    server = serve_study(make_study(extra=f'database = "{written}"'))
    config = httpx.get(f"{server.api}/manage/config", headers=MANAGER)
    assert config.status_code == 200
    assert "hunter2" not in config.text
    draft = {"text": config.json()["text"], "study": server.slug}
    checked = httpx.post(f"{server.url}/api/v1/manage/check", json=draft, headers=MANAGER)
    assert (checked.status_code, checked.json()["problems"]) == (200, [])
    assert "hunter2" not in checked.text
    saved = httpx.put(f"{server.api}/manage/config", json=draft, headers=MANAGER)
    assert saved.status_code == 200, saved.text
    with Study.open(server.folders[0]) as study:
        assert study.config.database == "sqlite:///study.db?password=hunter2"
