"""`steelyard serve` as a process of its own, that can be killed and started again on its port."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx


def wait_until_up(url: str, alive: Callable[[], bool]) -> None:
    """Wait until a server answers."""
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        with contextlib.suppress(httpx.TransportError):
            httpx.get(f"{url}/api/v1/openapi.json", timeout=5)
            return
        assert alive(), "the server ended"
        time.sleep(0.02)
    raise AssertionError("the server did not come up")


class ServeProcess:
    """Runs `steelyard serve`; `url` and `slugs` are known once it has printed its links."""

    def __init__(
        self,
        folders: Sequence[Path],
        *,
        token: str,
        workers: int = 1,
        port: int = 0,
        database: str | None = None,
        log: Path | None = None,
    ) -> None:
        self.url = ""
        self.slugs: list[str] = []
        self._folders = folders
        self._options = ["--workers", str(workers), *([] if database is None else ["--database", database])]
        self._port = port
        # The process for dashboards takes longer to start than the server; tests that look at one start it by doing so.
        environment = {"STEELYARD_TOKEN": token, "STEELYARD_PREPARE_DASHBOARDS": "0", "PYTHONUNBUFFERED": "1"}
        self._environment = {**os.environ, **environment}
        self._log = log
        self._process: subprocess.Popen[str] | None = None

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The number of the process that was started last."""
        assert self._process is not None
        return self._process.pid

    def launch(self) -> None:
        """Start it, and do not wait."""
        command = [sys.executable, "-m", "steelyard", "serve", *map(str, self._folders), "--port", str(self._port)]
        with contextlib.ExitStack() as stack:
            errors = None if self._log is None else stack.enter_context(self._log.open("a"))
            self._process = subprocess.Popen(
                [*command, *self._options],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=self._environment,
                start_new_session=True,
            )

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.launch()
        assert self._process is not None
        assert self._process.stdout is not None
        self.slugs = []
        for line in self._process.stdout:
            match = re.search(r"(http://\S+?)/s/(\S+)/", line)
            if match:
                self.url = match[1]
                self.slugs.append(match[2])
            if len(self.slugs) == len(self._folders):
                self._port = int(self.url.rpartition(":")[2])
                wait_until_up(self.url, lambda: self.alive)
                return
        raise AssertionError("the server printed no links")

    def end(self, how: signal.Signals) -> None:
        """Send it and all its children a signal, and wait until it is gone."""
        assert self._process is not None
        if self.alive:
            os.killpg(self._process.pid, how)
            self._process.wait(20)
        assert self._process.stdout is not None
        self._process.stdout.close()
