"""steelyard team: people who may see or manage a study besides its owner."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from steelyard.cli.invite import Url
from steelyard.cli.options import DatabaseOption, Format, FormatOption, StudyFolder, open_study

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Share a study with colleagues: view-only links, and managers' links.\n\n"
    "Example: steelyard team add words Ann",
)

_HERE = "http://127.0.0.1:8000"


class Role(StrEnum):
    """What a member of the team may do."""

    viewer = "viewer"
    manager = "manager"


@app.command("add")
def add(
    folder: StudyFolder,
    name: Annotated[str, typer.Argument(help="Name of the colleague.", metavar="NAME", show_default=False)],
    role: Annotated[Role, typer.Option(help="viewer (read only) or manager (can change the study).")] = Role.viewer,
    url: Url = _HERE,
    database: DatabaseOption = None,
) -> None:
    """Add a colleague and print their link, which is shown only once.

    Example: steelyard team add words Ann --role manager --url https://judge.example.org
    """
    from steelyard.study.team import Team
    from steelyard.web.studies import slug_of

    with open_study(folder, database) as study:
        token = Team(study).add(name, role.value)
    typer.echo(f"{url.rstrip('/')}/manage/{slug_of(folder)}/?token={token}")


@app.command("list")
def list_members(folder: StudyFolder, database: DatabaseOption = None, form: FormatOption = Format.table) -> None:
    """List the people in a study's team.

    Example: steelyard team list words
    """
    import polars as pl

    from steelyard.cli.output import print_frame, print_notes
    from steelyard.study.team import Team

    with open_study(folder, database) as study:
        rows = [
            {"name": member.name, "role": member.role, "added": study_time(member.added)}
            for member in Team(study).members()
        ]
    print_frame(pl.DataFrame(rows, schema=dict.fromkeys(("name", "role", "added"), pl.String)), form)
    if form is Format.table and not rows:
        print_notes(["nobody yet, except the owner of the server"])


@app.command("remove")
def remove(
    folder: StudyFolder,
    name: Annotated[str, typer.Argument(help="Name as in `steelyard team list`.", metavar="NAME", show_default=False)],
    database: DatabaseOption = None,
) -> None:
    """Remove a colleague: their link and their sessions end at once.

    Example: steelyard team remove words Ann
    """
    from steelyard.study.team import Team

    with open_study(folder, database) as study:
        member = Team(study).remove(name)
    typer.echo(f"{member.name} no longer has access.")


def study_time(microseconds: int) -> str:
    """Return a time of the log as text, to the minute, in UTC."""
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(microseconds / 1e6, UTC):%Y-%m-%d %H:%M}"
