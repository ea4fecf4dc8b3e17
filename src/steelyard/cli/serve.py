"""steelyard serve: the annotation pages and the dashboard."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.options import DATABASE_VARIABLE, existing_folder
from steelyard.errors import ConfigError

if TYPE_CHECKING:
    from socket import socket

    from steelyard.web.studies import Studies

# uvicorn would believe forwarded addresses of whoever connects from this machine; --trusted-proxy names who may.
# Its own log would hold addresses with their tokens. Dashboards that stay open must not hold up the end. People
# look at a task for longer than the five seconds after which uvicorn would close their connection.
SERVER_OPTIONS: dict[str, Any] = {
    "log_level": "warning",
    "access_log": False,
    "proxy_headers": False,
    "timeout_graceful_shutdown": 5,
    "timeout_keep_alive": 75,
}

_MOST_PREPARED = 3
"""Number of studies whose results are computed before the first page is opened."""


def serve(
    context: typer.Context,
    folders: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders of studies; default: a workspace.", metavar="[DIR...]", show_default=False),
    ] = None,
    workspace: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of all studies, created if missing. Default: steelyard-studies.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for other machines.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free port.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, help="Number of server processes.")] = 1,
    database: Annotated[
        str | None,
        typer.Option(
            envvar=DATABASE_VARIABLE,
            help="Database URL, e.g. postgresql://user@host/name; default: each study's own.",
            show_default=False,
        ),
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            envvar="STEELYARD_TRUSTED_PROXIES",
            metavar="ADDRESS",
            help="Proxy (IP or CIDR) whose X-Forwarded headers are trusted. Repeatable.",
            show_default=False,
        ),
    ] = None,
    public_url: Annotated[
        str | None,
        typer.Option(
            envvar="STEELYARD_PUBLIC_URL",
            metavar="URL",
            help="Public address for links, e.g. https://judge.example.org.",
            show_default=False,
        ),
    ] = None,
    root_path: Annotated[
        str | None,
        typer.Option(
            envvar="STEELYARD_ROOT_PATH",
            metavar="PATH",
            help="Path under which a proxy serves this, e.g. /tools/annotation.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Serve studies: pages for annotators, and a dashboard for you.

    Without folders, serve a workspace, where studies are created and managed in the browser.

    The management link contains a token, which is new at each start unless you set STEELYARD_TOKEN.
    Stop the server with Ctrl-C.

    Example: steelyard serve
    """
    import os
    import secrets

    if workers == 1:
        start_calculator(context, folders or [], database)

    from steelyard.web.addresses import read_proxies, read_public_url, read_root_path
    from steelyard.web.app import (
        DATABASE,
        PUBLIC_URL,
        ROOT_PATH,
        TOKEN,
        TRUSTED_PROXIES,
        WORKERS,
        WORKSPACE,
        configure_logging,
        oidc_settings,
    )
    from steelyard.web.identity import check_strength
    from steelyard.web.studies import Studies
    from steelyard.web.workspace import DEFAULT_WORKSPACE

    folders = folders or []
    for folder in folders:
        existing_folder(folder)
    if not folders and workspace is None:
        workspace = DEFAULT_WORKSPACE
    token = os.environ.get(TOKEN) or secrets.token_urlsafe(24)
    check_strength(token)
    proxies = read_proxies(trusted_proxy or ())
    root = None if root_path is None else read_root_path(root_path)
    public, root = read_public_url(public_url, root) if public_url else (None, root or "")
    oidc = oidc_settings(public)
    # Opened here even when workers serve them: what is wrong is reported before anything listens.
    studies = Studies(folders, database=database, workspace=workspace, root_path=root)
    listener = listen(host, port)
    configure_logging()
    _print_links(studies, public or _local_url(host, listener.getsockname()[1]) + root, token)
    if workers == 1:
        _serve_here(studies, listener, token=token, proxies=proxies, public_url=public, oidc=oidc)
    else:
        studies.close()
        settings = {
            TOKEN: token,
            WORKERS: str(workers),
            DATABASE: database,
            TRUSTED_PROXIES: ",".join(map(str, proxies)),
            PUBLIC_URL: public,
            ROOT_PATH: root,
            WORKSPACE: None if workspace is None else str(workspace.resolve()),
        }
        os.environ |= {name: value for name, value in settings.items() if value is not None}
        _serve_in_workers([served.folder for served in studies.all()], listener, workers)


def start_calculator(context: typer.Context, folders: list[Path], database: str | None) -> None:
    """Start the process that computes for the dashboards, before anything that takes long to import.

    So it imports and computes while this process imports the server and opens the studies. It ends with the command.
    """
    from steelyard.web.calculator_process import CalculatorProcess, Source, prepares_dashboards

    sources = [Source(str(folder.resolve()), database) for folder in folders if (folder / "study.toml").is_file()]
    if prepares_dashboards():
        CalculatorProcess.start(*sources[:_MOST_PREPARED])
    context.call_on_close(CalculatorProcess.end)


def listen(host: str, port: int) -> socket:
    """Take a port, before anything is said about it."""
    import errno
    import socket as sockets

    family = sockets.AF_INET6 if ":" in host else sockets.AF_INET
    # Named as TCP, or asyncio would leave Nagle's algorithm on, and every answer would wait 40 ms.
    listener = sockets.socket(family, sockets.SOCK_STREAM, sockets.IPPROTO_TCP)
    listener.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"port {port} is in use by another program.",
                f"Stop that program, or choose another port: --port {port + 1}",
            ) from None
        raise ConfigError(
            f"cannot listen on {host}:{port}: {error.strerror}.", "Choose another --host or --port."
        ) from None
    listener.set_inheritable(True)
    return listener


def _is_everywhere(host: str) -> bool:
    """Whether an address means all addresses of the machine, as 0.0.0.0 and :: do."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:  # a name
        return False


def _local_url(host: str, port: int) -> str:
    name = "127.0.0.1" if _is_everywhere(host) else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}"


def _print_links(studies: Studies, base: str, token: str) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    all_studies = studies.all()
    if studies.workspace_folder is not None:
        console.print(Text(f"Studies are in {studies.workspace_folder}", style="dim"), soft_wrap=True)
    for name, reason in studies.unreadable.items():
        console.print(Text(f"{name} cannot be served: {reason}", style="yellow"), soft_wrap=True)
    for served in all_studies:
        console.print(Text(served.study.config.title, style="bold"), soft_wrap=True)
        invited = "" if served.study.config.annotators.open else "   (by invitation: steelyard invite)"
        if studies.workspace_folder is None:
            console.print(Text(f"  dashboard  {base}/manage/{served.slug}/?token={token}"), soft_wrap=True)
        console.print(Text(f"  annotate   {base}/s/{served.slug}/{invited}"), soft_wrap=True)
    if studies.workspace_folder is not None:
        purpose = "Manage your studies" if all_studies else "Create your first study"
        console.print(Text(f"{purpose}: open this link in a browser", style="bold"))
        console.print(Text(f"  {base}/manage/?token={token}"), soft_wrap=True)
    console.print(Text("Stop with Ctrl-C; every answer is saved as it arrives.", style="dim"), soft_wrap=True)


def _serve_here(studies: Studies, listener: socket, **options: Any) -> None:
    import os

    import uvicorn

    from steelyard.web.app import create_app
    from steelyard.web.calculator_process import prepares_dashboards
    from steelyard.web.observation import METRICS_TOKEN

    metrics_token = os.environ.get(METRICS_TOKEN)
    app = create_app(studies, prepare_dashboards=prepares_dashboards(), metrics_token=metrics_token, **options)
    config = uvicorn.Config(app, **SERVER_OPTIONS)
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    finally:
        studies.close()


def _serve_in_workers(folders: list[Path], listener: socket, workers: int) -> None:
    """Start worker processes, which read their settings from the environment."""
    import os
    import tempfile

    import uvicorn
    from uvicorn.supervisors import Multiprocess

    from steelyard.web.app import LISTING
    from steelyard.web.observation import METRICS_FOLDER

    with (
        tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="steelyard-", suffix=".txt") as listing,
        tempfile.TemporaryDirectory(prefix="steelyard-metrics-") as metrics,
    ):
        os.environ[METRICS_FOLDER] = metrics
        listing.write("".join(f"{folder}\n" for folder in folders))
        listing.flush()
        os.environ[LISTING] = listing.name
        config = uvicorn.Config(
            "steelyard.web.app:app_from_environment",
            factory=True,
            workers=workers,
            **SERVER_OPTIONS,
        )
        Multiprocess(config, sockets=[listener]).run()
