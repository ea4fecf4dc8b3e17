"""Write a dump of a small study in every database schema there has been, for the tests of upgrading.

python -m scripts.old_schemas: run it once after adding a migration. Dumps that are there already stay as they are:
they are what people have.
"""

from __future__ import annotations

import sqlite3
import subprocess
import tempfile
from pathlib import Path

from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, inspect, text

from steelyard import Study
from steelyard.storage.engine import APPLICATION_ID, alembic_config
from tests.postgres import PostgresServer, find_postgres
from tests.storage.old_studies import ANSWERS, DUMPS, dump_of, write_folder


def revisions() -> list[str]:
    """Return every schema there has been, the oldest first."""
    revisions = ScriptDirectory.from_config(alembic_config())
    return [script.revision for script in reversed(list(revisions.walk_revisions()))]


def fill(folder: Path, database: str) -> None:
    """Let the study be judged."""
    with Study.open(folder, database=database) as study:
        for annotator, answers in ANSWERS.items():
            for _ in answers:
                task = study.ask(annotator)
                assert task is not None
                (item,) = task.item_ids
                study.tell(task, {item: answers[item]})
        study.ask("cleo")
        study.access.grant("invite", annotator="ann", token="ann-may-come-in")


def make_old(newest: Engine, old: Engine, revision: str) -> None:
    """Bring an empty database to an old schema, and copy into it what that can hold."""
    config = alembic_config()
    with old.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        if old.dialect.name == "sqlite":
            connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    with newest.connect() as source, old.begin() as target:
        for table in ("studies", *sorted(set(inspect(target).get_table_names()) - {"studies", "steelyard_version"})):
            columns = [column["name"] for column in inspect(target).get_columns(table)]
            rows = source.execute(text(f"SELECT {', '.join(columns)} FROM {table}")).mappings().all()
            if rows:
                values = ", ".join(f":{name}" for name in columns)
                insert = text(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})")
                target.execute(insert, [dict(row) for row in rows])


def sqlite_dump(path: Path) -> str:
    """Write an SQLite file as SQL."""
    with sqlite3.connect(path) as database:
        mark = f"PRAGMA application_id = {APPLICATION_ID};"
        lines = [mark, *database.iterdump()]
    database.close()
    return "\n".join(lines) + "\n"


def postgresql_dump(binaries: Path, url: str) -> str:
    """Write a PostgreSQL database as SQL."""
    options = ["--inserts", "--no-owner", "--no-privileges", "--no-comments"]
    done = subprocess.run([binaries / "pg_dump", *options, url], check=True, capture_output=True, text=True)
    # What begins with a backslash is for psql; the rest is SQL.
    lines = [line for line in done.stdout.splitlines() if line.strip() and not line.startswith(("--", "\\"))]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the dumps that are missing."""
    DUMPS.mkdir(exist_ok=True)
    missing = [r for r in revisions() if not all(dump_of(r, e).exists() for e in ("sqlite", "postgresql"))]
    binaries = find_postgres()
    if not missing or binaries is None:
        print("nothing to do" if not missing else "PostgreSQL is not installed")
        return
    with tempfile.TemporaryDirectory() as scratch, PostgresServer.start(binaries) as server:
        folder = write_folder(Path(scratch) / "old")
        newest = f"sqlite:///{scratch}/newest.db"
        fill(folder, newest)
        for revision in missing:
            source = create_engine(newest)
            file = Path(scratch) / f"{revision}.db"
            old = create_engine(f"sqlite:///{file}")
            make_old(source, old, revision)
            old.dispose()
            dump_of(revision, "sqlite").write_text(sqlite_dump(file))
            url = server.new_database(f"old_{revision}")
            old = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
            make_old(source, old, revision)
            old.dispose()
            source.dispose()
            dump_of(revision, "postgresql").write_text(postgresql_dump(binaries, url))
            print(f"schema {revision} written")


if __name__ == "__main__":
    main()
