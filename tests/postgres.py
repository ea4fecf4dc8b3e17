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

import psycopg


def find_postgres() -> Path | None:
    """Return the folder with initdb and postgres, wherever this system keeps it."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if found := shutil.which("postgres"):
        places.insert(0, Path(found).resolve().parent)
    return next((place for place in places if (place / "initdb").exists()), None)


@dataclass(frozen=True)
class PostgresServer:
    """A running server that listens on the loopback address only."""

    port: int
    user: str

    def url(self, database: str) -> str:
        """The URL of one of its databases."""
        return f"postgresql://{self.user}@127.0.0.1:{self.port}/{database}"

    def new_database(self, name: str) -> str:
        """Create an empty database and return its URL."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)

    @classmethod
    @contextmanager
    def start(cls, binaries: Path) -> Iterator[PostgresServer]:
        """Run a server on a fresh data folder until the block ends."""
        # The server refuses to run as root; Debian's package brings a user for it.
        owner = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        as_owner = {"user": owner, "extra_groups": []} if os.geteuid() == 0 else {}
        folder = Path(tempfile.mkdtemp(prefix="steelyard-pg-"))
        if os.geteuid() == 0:
            shutil.chown(folder, owner)
        data = folder / "data"
        try:
            subprocess.run(
                [binaries / "initdb", "-D", data, "-U", owner, "-A", "trust", "-E", "UTF8", "--locale=C"],
                check=True,
                capture_output=True,
                cwd=folder,
                **as_owner,  # type: ignore[call-overload]
            )
            port = _free_port()
            with (folder / "log").open("wb") as log:
                process = subprocess.Popen(
                    [binaries / "postgres", "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", folder, "-N", "300"],
                    stdout=log,
                    stderr=log,
                    cwd=folder,
                    **as_owner,  # type: ignore[call-overload]
                )
            try:
                server = cls(port, owner)
                server.wait_until_up(process, folder / "log")
                yield server
            finally:
                # At once, without a last checkpoint: the data folder is thrown away.
                process.send_signal(signal.SIGQUIT)
                process.wait(timeout=30)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def wait_until_up(self, process: subprocess.Popen[bytes], log: Path) -> None:
        """Wait until the server takes connections."""
        for _ in range(200):
            if process.poll() is not None:
                raise RuntimeError(f"PostgreSQL did not start: {log.read_text()}")
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=1).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return
        raise RuntimeError("PostgreSQL did not come up")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
