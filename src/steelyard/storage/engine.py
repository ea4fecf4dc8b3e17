"""Opening a database: SQLite by file, PostgreSQL by URL. Older databases are migrated, newer ones refused."""

from __future__ import annotations

import re
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from steelyard.errors import StoreError
from steelyard.storage.failures import said_plainly

if TYPE_CHECKING:
    from alembic.config import Config

APPLICATION_ID = 0x57EE1
"""Marks an SQLite file as ours (PRAGMA application_id)."""

HEAD = "0004"
"""The newest migration; a test keeps it equal to Alembic's."""

DATABASE_FILE = "study.db"
"""Where a study's judgments are if nothing else is said."""

_TIMEOUT_SECONDS = 30
_SILENT_SECONDS = 300
_USERINFO = re.compile(r"(//[^/@:]*:).*@", re.DOTALL)
_PARAMETER = re.compile(r"([?&])([^=&]+)=([^&]*)")
_SECRET_WORDS = ("pass", "pwd", "secret", "token")
"""Query parameters whose name contains one of these hold a secret: password, sslpassword, passfile …"""


def database_url(given: str, folder: Path) -> URL:
    """Read a database URL; an SQLite file that is not given with its whole path is in `folder`."""
    parsed = _parsed(given)
    if parsed.get_backend_name() == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise StoreError("a study needs a database file, not one in memory.", "Name a file: sqlite:///study.db")
        return sqlite_url(folder / parsed.database)
    return parsed


def study_url(folder: Path, own: str | None, given: str | None = None) -> URL:
    """Return where a study's judgments are: as given, as its own configuration says, or beside that."""
    if given is not None:
        return database_url(given, Path.cwd())
    return sqlite_url(folder / DATABASE_FILE) if own is None else database_url(own, folder)


def sqlite_url(path: Path) -> URL:
    """Return the URL of an SQLite file, whatever characters its path has."""
    return URL.create("sqlite", database=str(path.resolve()))


def sqlite_files(url: URL) -> set[Path]:
    """Return the files that an SQLite database may consist of; none for another engine."""
    if url.get_backend_name() != "sqlite":
        return set()
    return {Path(f"{url.database}{end}") for end in ("", "-wal", "-shm", "-journal")}


def open_engine(url: str | URL, *, create: bool = True) -> Engine:
    """Connect, check that the database is ours or empty, and bring its tables up to date.

    A database that is not there yet is made, or refused if `create` is False.
    """
    parsed = _parsed(url)
    if not create and parsed.get_backend_name() == "sqlite" and not Path(str(parsed.database)).is_file():
        raise StoreError(f"there is no database {parsed.database}.", "Check the study's folder.")
    engine = _sqlite(parsed) if parsed.get_backend_name() == "sqlite" else _postgresql(parsed)
    address = _shown(parsed)
    remedy = "Check that it exists, is reachable and may be written to."
    try:
        with said_plainly(f"the database {address} cannot be opened", remedy, secrets=_secrets(parsed)):
            with engine.connect().execution_options(writes=False) as connection:
                version = _checked_version(connection, address)
            if version != HEAD:
                _migrate(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def schema_version(url: str | URL) -> str | None:
    """Read the version of a database's tables without changing anything; None if it is empty or not there yet."""
    parsed = _parsed(url)
    if parsed.get_backend_name() == "sqlite" and not Path(str(parsed.database)).is_file():
        return None
    engine = _sqlite(parsed) if parsed.get_backend_name() == "sqlite" else _postgresql(parsed)
    try:
        with (
            said_plainly(f"the database {_shown(parsed)} cannot be opened", "Check it.", secrets=_secrets(parsed)),
            engine.connect().execution_options(writes=False) as connection,
        ):
            return _checked_version(connection, _shown(parsed))
    finally:
        engine.dispose()


def _parsed(url: str | URL) -> URL:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, NoSuchModuleError, ValueError):
        # Not chained: SQLAlchemy quotes parts of the address, such as a port that is really part of a password.
        # For the same reason only the scheme is shown of what looks like an address.
        scheme, separator, _ = str(url).partition("://")
        address = f"{scheme}://…" if separator else str(url)
        raise StoreError(
            f"'{address}' is not a database URL.", "Use sqlite:///file.db or postgresql://user@host/name."
        ) from None
    if "@" in (parsed.host or ""):
        raise StoreError(
            "the user name or password in the database URL contains an @.", "Write it as %40 (and / as %2F, : as %3A)."
        )
    if backend == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise StoreError(f"{backend} is not supported.", "Use SQLite or PostgreSQL.")
    return parsed


def without_password(url: str) -> str:
    """Return a database's URL as it may be shown: without passwords in its user part or its query."""
    # The query first: a password in it may hold an @, which would end the user part.
    return _USERINFO.sub(r"\g<1>***@", _PARAMETER.sub(_hide_parameter, url))


def _hide_parameter(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}=***" if _is_secret(unquote_plus(match[2])) else match[0]


def _is_secret(name: str) -> bool:
    return any(word in name.lower() for word in _SECRET_WORDS)


def _secrets(url: URL) -> tuple[str, ...]:
    """Return the passwords in a URL, so that they can be removed from messages of the driver."""
    values = [value for name, value in url.normalized_query.items() if _is_secret(name)]
    secrets = {str(url.password or ""), *(part for value in values for part in value)}
    return tuple(sorted((secret for secret in secrets if secret), key=len, reverse=True))


def _shown(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    query = {name: "***" if _is_secret(name) else value for name, value in url.query.items()}
    return url.set(query=query).render_as_string(hide_password=True).replace("%2A%2A%2A", "***")


def _sqlite(url: URL) -> Engine:
    if url.database and url.database != ":memory:" and not Path(url.database).parent.is_dir():
        raise StoreError(f"the folder of {url.database} does not exist.", "Create it first.")
    engine = create_engine(url, connect_args={"timeout": _TIMEOUT_SECONDS})

    opened: list[tuple[int, int]] = []

    def check_file() -> None:
        # Answers written to a file that was deleted or replaced under us would be gone with it.
        now = _file_id(str(url.database))
        if opened and now != opened[0]:
            raise StoreError(
                f"the database {url.database} was removed or replaced after it was opened.",
                "Restore the file, or stop all programs that use it and start again.",
            )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: object) -> None:
        check_file()
        # pysqlite would begin transactions by itself, and too late; the BEGIN below is ours.
        connection.isolation_level = None
        cursor = connection.cursor()
        _turn_on_wal(cursor)
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        # Deleted bytes are overwritten at once: when an annotator is forgotten, the file need not be written anew.
        cursor.execute("PRAGMA secure_delete = ON")
        cursor.close()
        file_id = _file_id(str(url.database))
        if not opened and file_id is not None:
            opened.append(file_id)

    @event.listens_for(engine, "checkout")
    def checkout(_connection: object, _record: object, _proxy: object) -> None:
        check_file()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes", True)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _file_id(path: str) -> tuple[int, int] | None:
    """Return what tells a file from any other, whatever its name; None if it is not there."""
    try:
        stats = Path(path).stat()
    except OSError:
        return None
    return stats.st_dev, stats.st_ino


def _turn_on_wal(cursor: Any) -> None:
    """Switch a new file to write-ahead logging; others who are just opening it are waited for."""
    # For this one statement SQLite does not wait by itself.
    give_up = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.01)
        else:
            return


def _postgresql(url: URL) -> Engine:
    try:
        # A process that stops while it holds a study must not stop everybody else for ever: others give up
        # waiting, and the server takes the study from one that says nothing for minutes.
        patience = {
            "options": f"-c lock_timeout={_TIMEOUT_SECONDS}s -c idle_in_transaction_session_timeout={_SILENT_SECONDS}s",
            "connect_timeout": 10,
        }
        return create_engine(url, pool_pre_ping=True, connect_args=patience)
    except ModuleNotFoundError as error:
        raise StoreError("PostgreSQL needs the psycopg package.", "pip install 'steelyard[postgres]'") from error


def _checked_version(connection: Connection, shown: str) -> str | None:
    """Return the schema version, None for an empty database; refuse one that is not ours, or newer."""
    names = set(inspect(connection).get_table_names())
    if not names:
        return None
    is_sqlite = connection.dialect.name == "sqlite"
    marked = not is_sqlite or connection.exec_driver_sql("PRAGMA application_id").scalar() == APPLICATION_ID
    if not marked or not {"steelyard_version", "studies", "events"} <= names:
        if not is_sqlite and "steelyard_version" not in names and not {"studies", "events", "tasks"} & names:
            return None
        raise StoreError(
            f"the database {shown} was not created by Steelyard.", "Choose another file, or an empty database."
        )
    version = connection.execute(text("SELECT version_num FROM steelyard_version")).scalar()
    if version is None or str(version) > HEAD:
        raise StoreError(
            f"the database {shown} was written by a newer version of Steelyard (schema {version}; this version "
            f"supports {HEAD}).",
            "Upgrade Steelyard: pip install -U steelyard.",
        )
    return str(version)


def alembic_config() -> Config:
    """Return what Alembic needs to know to find the migrations."""
    # Alembic takes a while to import and is only needed for a database that is new or old.
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _migrate(engine: Engine) -> None:
    from alembic import command

    config = alembic_config()
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            # Two processes may open a new database at once; the second waits and finds nothing to do.
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": APPLICATION_ID})
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
