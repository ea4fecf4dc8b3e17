"""steelyard doctor: check a deployment."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from steelyard.cli.options import DATABASE_VARIABLE, existing_folder

if TYPE_CHECKING:
    import httpx

_FREE_BYTES = 1e9
_SLOW_SYNC_SECONDS = 0.05
"""Every answer waits for a sync to disk: about 1 ms on a solid-state disk, 10 ms on a spinning one."""
_SKEW_SECONDS = 5
_CERTIFICATE_DAYS = 14
_BACKUP_DAYS = 7
_FORGED = "203.0.113.77"
"""An address for documentation (RFC 5737), which no client has."""


class Finding(NamedTuple):
    """One result: fine, a warning, a failure, or not checked."""

    state: Literal["ok", "warning", "failure", "skipped"]
    text: str


def doctor(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders of studies; default: those of the workspace.", metavar="[DIR...]"),
    ] = None,
    workspace: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of all studies, if no folders are given.")
    ] = Path("steelyard-studies"),
    url: Annotated[
        str | None,
        typer.Option(
            envvar="STEELYARD_PUBLIC_URL", metavar="URL", help="Public address of the server.", show_default=False
        ),
    ] = None,
    backups: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of backups. Default: beside the studies.")
    ] = None,
) -> None:
    """Check a deployment: studies, databases, disk, backups and public address.

    With STEELYARD_TOKEN, the server is asked how it sees requests that come through the proxy. The exit code is 1 if
    something fails, and 0 if there are only warnings.

    Example: steelyard doctor words --url https://judge.example.org
    """
    from rich.console import Console
    from rich.text import Text

    from steelyard.study.config import CONFIG_FILE

    studies = [existing_folder(folder) for folder in folders or []]
    if not studies and workspace.is_dir():
        studies = sorted(folder for folder in workspace.iterdir() if (folder / CONFIG_FILE).is_file())
    console = Console(highlight=False)
    styles = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "failure": ("✗", "red"), "skipped": ("–", "dim")}
    has_failed = False
    for finding in _findings(studies, url, backups):
        sign, style = styles[finding.state]
        console.print(Text(f"{sign} ", style=style) + Text(finding.text), soft_wrap=True)
        has_failed = has_failed or finding.state == "failure"
    raise typer.Exit(int(has_failed))


def _findings(studies: list[Path], url: str | None, backups: Path | None) -> Iterator[Finding]:
    yield _versions()
    if not studies:
        yield Finding("skipped", "No study was checked: name its folder, or the workspace with --workspace.")
    for folder in studies:
        yield _study(folder)
        yield _database(folder)
        yield _disk(folder)
        yield _backup(folder, backups)
    if url is None:
        yield Finding("skipped", "The public address was not checked: give --url or STEELYARD_PUBLIC_URL.")
    else:
        yield from _server(url.rstrip("/"))


def _versions() -> Finding:
    import platform
    import sqlite3

    from steelyard.version import __version__

    return Finding(
        "ok", f"Steelyard {__version__} on Python {platform.python_version()} with SQLite {sqlite3.sqlite_version}."
    )


def _study(folder: Path) -> Finding:
    from steelyard.errors import SteelyardError
    from steelyard.study.opening import check_study

    try:
        _, items = check_study(folder)
    except SteelyardError as error:
        return Finding("failure", f"{folder.name}: {error.problems[0]}")
    return Finding("ok", f"{folder.name}: study.toml and {len(items):,} items are valid.")


def _database(folder: Path) -> Finding:
    from steelyard.errors import SteelyardError
    from steelyard.storage.engine import HEAD, schema_version, study_url
    from steelyard.study.config import CONFIG_FILE, read_config

    try:
        address = study_url(folder, read_config(folder / CONFIG_FILE).database, os.environ.get(DATABASE_VARIABLE))
        version = schema_version(address)
    except SteelyardError as error:
        return Finding("failure", f"{folder.name}: {error.problems[0]}")
    kind = "SQLite" if address.get_backend_name() == "sqlite" else "PostgreSQL"
    if version is None:
        return Finding("warning", f"{folder.name}: the {kind} database is empty; it is created at the first start.")
    if version != HEAD:
        text = f"the {kind} database has schema {version}, this version needs {HEAD}; it is migrated at the next start."
        return Finding("warning", f"{folder.name}: {text}")
    return Finding("ok", f"{folder.name}: the {kind} database is reachable, and its tables are current.")


def _disk(folder: Path) -> Finding:
    import shutil
    import statistics
    import tempfile

    free = shutil.disk_usage(folder).free
    times = []
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".steelyard-doctor-") as file:
            for _ in range(10):
                file.write(b"\0" * 4096)
                file.flush()
                began = time.perf_counter()
                os.fsync(file.fileno())
                times.append(time.perf_counter() - began)
    except OSError as error:
        return Finding("failure", f"{folder.name}: the folder cannot be written to: {error.strerror}.")
    sync = statistics.median(times)
    text = f"{folder.name}: {free / 1e9:,.1f} GB free; a sync to disk takes {1000 * sync:.1f} ms."
    if free < _FREE_BYTES:
        return Finding("failure", f"{text} Free some space: answers cannot be saved on a full disk.")
    if sync > _SLOW_SYNC_SECONDS:
        return Finding("warning", f"{text} Every answer waits for it; use a faster disk.")
    return Finding("ok", text)


def _backup(folder: Path, backups: Path | None) -> Finding:
    places = [backups] if backups is not None else [folder, folder.parent]
    files = [file for place in places if place.is_dir() for file in place.glob("*.steelyard") if file.is_file()]
    files = [file for file in files if backups is None or file.name.startswith(folder.name)] or files
    if not files:
        return Finding("warning", f"{folder.name}: no backup was found. Make one: steelyard backup {folder}")
    newest = max(files, key=lambda file: file.stat().st_mtime)
    days = (time.time() - newest.stat().st_mtime) / 86400
    state: Literal["ok", "warning"] = "warning" if days > _BACKUP_DAYS else "ok"
    return Finding(state, f"{folder.name}: the newest backup, {newest.name}, is {days:.0f} days old.")


# The server


def _server(url: str) -> Iterator[Finding]:
    import httpx

    with httpx.Client(timeout=10, follow_redirects=False) as client:
        try:
            before = time.time()
            response = client.get(f"{url}/api/v1/health")
            after = time.time()
            is_ours = response.status_code == 200 and response.json() == {"status": "ok"}
        except (httpx.HTTPError, ValueError) as error:
            yield Finding("failure", f"{url} cannot be reached: {error or type(error).__name__}.")
            return
        if not is_ours:
            yield Finding("failure", f"{url} answers with status {response.status_code}; it is not a Steelyard server.")
            return
        yield Finding("ok", f"{url} is reachable.")
        is_ready = client.get(f"{url}/api/v1/ready").status_code == 200
        yield (
            Finding("ok", "The server can save answers.")
            if is_ready
            else Finding("failure", "The server is not ready: a database cannot be used. See its log.")
        )
        yield _clock(response, (before + after) / 2)
        yield _tls(url)
        token = os.environ.get("STEELYARD_TOKEN")
        if not token:
            yield Finding("skipped", "Proxy, cookies and live updates were not checked: set STEELYARD_TOKEN.")
            return
        client.headers["Authorization"] = f"Bearer {token}"
        checks: tuple[Callable[[httpx.Client, str], Iterator[Finding]], ...] = (_proxy, _live_updates)
        for check in checks:
            try:
                yield from check(client, url)
            except (httpx.HTTPError, ValueError, KeyError) as error:
                yield Finding("failure", f"The server did not answer as expected: {error or type(error).__name__}.")


def _clock(response: httpx.Response, now: float) -> Finding:
    from email.utils import parsedate_to_datetime

    try:
        skew = abs(parsedate_to_datetime(response.headers["date"]).timestamp() + 0.5 - now)
    except (KeyError, ValueError):
        return Finding("skipped", "The clocks were not compared: the server sends no date.")
    if skew > _SKEW_SECONDS:
        return Finding("warning", f"The clocks of the server and this machine differ by {skew:.0f} s. Use NTP.")
    return Finding("ok", "The clocks of the server and this machine agree.")


def _tls(url: str) -> Finding:
    import socket
    import ssl
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if parts.scheme != "https":
        return Finding("warning", f"{url} has no TLS: tokens and answers can be read on the way. Put a proxy in front.")
    try:
        context = ssl.create_default_context()
        with (
            socket.create_connection((parts.hostname or "", parts.port or 443), 10) as plain,
            context.wrap_socket(plain, server_hostname=parts.hostname) as secure,
        ):
            ends = ssl.cert_time_to_seconds(str((secure.getpeercert() or {}).get("notAfter", "")))
    except (OSError, ValueError) as error:
        return Finding("failure", f"The TLS certificate cannot be verified: {error}.")
    days = (ends - time.time()) / 86400
    state: Literal["ok", "warning"] = "warning" if days < _CERTIFICATE_DAYS else "ok"
    return Finding(state, f"The TLS certificate is valid for another {days:.0f} days.")


def _proxy(client: httpx.Client, url: str) -> Iterator[Finding]:
    """Ask the server how it sees a request with forged headers."""
    response = client.get(f"{url}/api/v1/manage/connection", headers={"X-Forwarded-For": _FORGED})
    if response.status_code == 401:
        yield Finding("failure", "The server does not accept the token in STEELYARD_TOKEN.")
        return
    view = response.json()
    if view["address"] == _FORGED:
        yield Finding(
            "failure",
            "The server trusts X-Forwarded-For headers from clients: name only the proxy with --trusted-proxy. (If "
            "this machine is the proxy, run the command on another one.)",
        )
    elif view["forwarded"] and not view["trusted"]:
        yield Finding(
            "warning",
            "Requests come through a proxy that is not trusted, so that all annotators count as one address: "
            "set --trusted-proxy.",
        )
    else:
        yield Finding("ok", f"The server sees this machine as {view['address']}.")
    if url.startswith("https:") and not view["https"]:
        yield Finding("failure", "The server does not know that it is behind TLS: set --public-url https://….")
    elif url.startswith("https:"):
        yield Finding("ok", "Cookies are marked secure.")
    if view["base"] and view["base"] != url:
        yield Finding("warning", f"Links begin with {view['base']}, not with {url}: check --public-url.")


def _live_updates(client: httpx.Client, url: str) -> Iterator[Finding]:
    """Measure whether events arrive one by one."""
    times = []
    with client.stream("GET", f"{url}/api/v1/manage/connection/events") as response:
        encoding = response.headers.get("content-encoding")
        times = [time.monotonic() for line in response.iter_lines() if line.startswith("data:")]
    if len(times) < 3 or times[-1] - times[0] < 0.3:
        yield Finding("failure", "Live updates are buffered by the proxy: see deploy/proxies for configurations.")
    elif encoding:
        yield Finding("warning", f"The proxy compresses responses ({encoding}), which can reveal secrets: turn it off.")
    else:
        yield Finding("ok", "Live updates arrive at once.")
