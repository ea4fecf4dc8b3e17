"""A database of every schema there has been opens, comes up to date, and goes on; a newer one is refused."""

from __future__ import annotations

import sqlite3

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from steelyard import Study
from steelyard.errors import StoreError
from steelyard.storage.engine import HEAD, alembic_config, open_engine
from steelyard.storage.tables import metadata
from steelyard.study.forgetting import take_out
from steelyard.study.rebuild import unaltered
from tests.storage.old_studies import ANSWERS, dump_of, write_folder

REVISIONS = [script.revision for script in ScriptDirectory.from_config(alembic_config()).walk_revisions()]


@pytest.fixture
def old_database(request, database_url):
    """A database of an old schema, with a small study in it."""
    engine = "sqlite" if database_url.startswith("sqlite") else "postgresql"
    dump = dump_of(request.param, engine)
    assert dump.exists(), f"schema {request.param} has no dump: run python -m scripts.old_schemas"
    if engine == "sqlite":
        with sqlite3.connect(database_url.removeprefix("sqlite:///")) as connection:
            connection.executescript(dump.read_text())
        connection.close()
    else:
        with psycopg.connect(database_url) as connection:
            connection.execute(dump.read_text())
    return database_url


@pytest.mark.parametrize("old_database", REVISIONS, indirect=True)
def test_a_database_of_every_schema_opens_and_goes_on(old_database, tmp_path):
    with Study.open(write_folder(tmp_path / "old"), database=old_database) as study:
        status = study.status()
        assert (status.judgments, status.annotators, status.stages[0].leased) == (6, 3, 1)
        list(unaltered(study.events()))
        scores = dict(study.scores().select("item", "score").iter_rows())
        means = {item: sum(said[item] for said in ANSWERS.values()) / len(ANSWERS) for item in "abc"}
        assert scores == pytest.approx(means)
        task = study.ask("cleo")
        assert study.tell(task, {task.item_ids[0]: 55}).late in {True, False}
        assert study.status().judgments == 7
        token = study.access.grant("session", annotator="cleo")
        assert study.access.find("session", token).annotator == "cleo"
        # Events without seals get them when somebody is forgotten for the first time.
        take_out(study, "ann")
        list(unaltered(study.events()))
        assert study.status().judgments == 7 - len(ANSWERS["ann"])
        assert "ann" not in {event.annotator for event in study.events()}
    engine = open_engine(old_database)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": "steelyard_version"})
        assert context.get_current_revision() == HEAD
        assert compare_metadata(context, metadata) == []
    engine.dispose()


@pytest.mark.parametrize("old_database", [HEAD], indirect=True)
def test_a_database_newer_than_the_software_is_refused_and_left_alone(old_database, tmp_path):
    folder = write_folder(tmp_path / "old")
    engine = open_engine(old_database)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE steelyard_version SET version_num = '9000'")
    engine.dispose()
    with pytest.raises(
        StoreError, match=rf"written by a newer version of Steelyard \(schema 9000; this version supports {HEAD}\)"
    ) as caught:
        Study.open(folder, database=old_database)
    assert "pip install -U steelyard" in str(caught.value)


@pytest.mark.parametrize("old_database", [REVISIONS[0]], indirect=True)
def test_tokens_of_the_newest_schema_still_let_people_in(old_database, tmp_path):
    with Study.open(write_folder(tmp_path / "old"), database=old_database) as study:
        assert study.access.find("invite", "ann-may-come-in").annotator == "ann"
