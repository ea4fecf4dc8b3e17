"""Options of steelyard prolific, opening the study and the client, and confirmation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from steelyard.recruitment.client import Client

DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Print every request, but send only read requests.")]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Api: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--api", envvar="STEELYARD_PROLIFIC_API", help="Address of Prolific's API, for tests.", show_default=False
    ),
]
Url: TypeAlias = Annotated[
    str | None,
    typer.Option("--url", help="Address of the server, if not in study.toml.", show_default=False),
]


def open_client(api: str | None, dry: bool) -> Client:
    """Open a client for Prolific's API; a dry run prints requests instead of sending them."""
    from steelyard.recruitment.client import PROLIFIC, Client, token_from_environment

    return Client(token_from_environment(), address=api or PROLIFIC, show=typer.echo if dry else None, dry=dry)


def ask(question: str, yes: bool) -> None:
    """Ask for confirmation; abort without it."""
    if not yes and not typer.confirm(question):
        typer.echo("Cancelled; nothing was changed.", err=True)
        raise typer.Exit(1)
