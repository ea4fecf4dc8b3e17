"""Starting and stopping a real PostgreSQL for the tests."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg


def find_postgres() -> Path | None:
    """Return the folder with initdb and postgres, wherever this system keeps it."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if found := shutil.which("postgres"):
        places.insert(0, Path(found).resolve().parent)
    return next((place for place in places if (place / "initdb").exists()), None)


@dataclass
class PostgresServer:
    """A server that listens on the loopback address only."""

    binaries: Path
    folder: Path
    port: int
    user: str
    _process: subprocess.Popen[bytes] | None = None

    def url(self, database: str) -> str:
        """The URL of one of its databases."""
        return f"postgresql://{self.user}@127.0.0.1:{self.port}/{database}"

    def new_database(self, name: str, tablespace: str = "pg_default") -> str:
        """Create an empty database and return its URL."""
        self.run(f'CREATE DATABASE "{name}" TABLESPACE {tablespace}')
        return self.url(name)

    def run(self, command: str) -> list[tuple[object, ...]]:
        """Run a command as the superuser; return the rows it gives, if any."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            done = connection.execute(command)
            return done.fetchall() if done.description else []

    @classmethod
    @contextmanager
    def start(cls, binaries: Path) -> Iterator[PostgresServer]:
        """Run a server on a fresh data folder until the block ends."""
        owner = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        folder = Path(tempfile.mkdtemp(prefix="steelyard-pg-"))
        if os.geteuid() == 0:
            shutil.chown(folder, owner)
        try:
            server = cls(binaries, folder, _free_port(), owner)
            subprocess.run(
                [binaries / "initdb", "-D", folder / "data", "-U", owner, "-A", "trust", "-E", "UTF8", "--locale=C"],
                check=True,
                capture_output=True,
                cwd=folder,
                **server._as_owner(),
            )
            server.go_up()
            try:
                yield server
            finally:
                # At once, without a last checkpoint: the data folder is thrown away.
                server.go_down(signal.SIGQUIT)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def go_up(self) -> None:
        """Start the server, and wait until it takes connections."""
        where: list[str | Path] = [
            "-D",
            self.folder / "data",
            "-p",
            str(self.port),
            "-h",
            "127.0.0.1",
            "-k",
            self.folder,
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = process = subprocess.Popen(
                [self.binaries / "postgres", *where, "-N", "300"],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **self._as_owner(),
            )
        for _ in range(600):
            if process.poll() is not None:
                raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'log').read_text()}")
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=1).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return
        raise RuntimeError("PostgreSQL did not come up")

    def go_down(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server; sessions are cut off."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(timeout=120)

    def _as_owner(self) -> dict[str, Any]:
        # The server refuses to run as root; Debian's package brings a user for it.
        return {"user": self.user, "extra_groups": []} if os.geteuid() == 0 else {}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
