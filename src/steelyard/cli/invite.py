"""steelyard invite, remind, link: links for annotators and participants."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from steelyard.cli.options import DatabaseOption, Format, FormatOption, StudyFolder, existing_folder, open_study

Url: TypeAlias = Annotated[str, typer.Option(help="Address of the server.")]
AnnotatorsFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--from", help="Table of annotators: name, and optionally tasks (quota) and email.", show_default=False
    ),
]
_HERE = "http://127.0.0.1:8000"


def invite(
    folder: StudyFolder,
    names: Annotated[
        list[str] | None, typer.Argument(help="Names of annotators to invite.", metavar="NAME...", show_default=False)
    ] = None,
    table: AnnotatorsFile = None,
    url: Url = _HERE,
    replace: Annotated[bool, typer.Option("--replace", help="Revoke earlier links of these annotators.")] = False,
    database: DatabaseOption = None,
    form: FormatOption = Format.table,
) -> None:
    """Create personal links, one per name.

    Each link is printed only once: the study stores its digest.

    Example: steelyard invite words ann bob --url https://judge.example.org
    """
    import polars as pl
    from rich.console import Console

    from steelyard.cli.output import print_frame
    from steelyard.errors import ConfigError
    from steelyard.recruitment.invitations import Invitee, read_invitees
    from steelyard.study.leases import annotator_name
    from steelyard.web.studies import slug_of

    existing_folder(folder)
    invited = {name: Invitee(name) for name in map(annotator_name, names or [])}
    invited |= {} if table is None else {invitee.name: invitee for invitee in read_invitees(table)}
    if not invited:
        raise ConfigError("no annotators are named.", "Give their names, or a table: --from experts.csv")
    base = f"{url.rstrip('/')}/s/{slug_of(folder)}/?invite="
    links = []
    with open_study(folder, database) as study:
        for name, invitee in invited.items():
            if replace:
                study.access.revoke("invite", annotator=name)
                study.access.revoke("session", annotator=name)
            if invitee.tasks is not None:
                study.recruitment.set_quota(name, invitee.tasks)
            link = base + study.access.grant("invite", annotator=name)
            links.append({"annotator": name, "link": link} | ({"email": invitee.email} if table else {}))
    if form is not Format.table:
        print_frame(pl.DataFrame(links), form)
        return
    console = Console(highlight=False)
    width = max(map(len, invited))
    for row in links:
        console.print(f"{row['annotator']:<{width}}  {row['link']}", soft_wrap=True, markup=False)


def remind(
    folder: StudyFolder,
    table: AnnotatorsFile = None,
    url: Url = _HERE,
    database: DatabaseOption = None,
    form: FormatOption = Format.table,
) -> None:
    """Write a reminder for each invited annotator who has not finished.

    Each is text to paste, with a new link.

    Nothing is sent. Earlier links remain valid.

    Example: steelyard remind words --url https://judge.example.org
    """
    import polars as pl
    from rich.console import Console

    from steelyard.cli.output import print_frame, print_notes
    from steelyard.recruitment.invitations import read_invitees, reminder, unfinished_work
    from steelyard.web.identity import is_resume
    from steelyard.web.studies import slug_of

    existing_folder(folder)
    emails = {} if table is None else {invitee.name: invitee.email for invitee in read_invitees(table)}
    base = f"{url.rstrip('/')}/s/{slug_of(folder)}/?invite="
    rows = []
    with open_study(folder, database) as study:
        grants = study.access.grants("invite")
        invited = [grant.annotator for grant in grants if grant.annotator is not None and not is_resume(grant.note)]
        for left in unfinished_work(study, invited):
            text = reminder(study, left, base + study.access.grant("invite", annotator=left.name))
            rows.append({"annotator": left.name, "email": emails.get(left.name, ""), "text": text})
    if form is not Format.table:
        print_frame(pl.DataFrame(rows, schema=dict.fromkeys(("annotator", "email", "text"), pl.String)), form)
        return
    console = Console(highlight=False)
    for row in rows:
        to = f" <{row['email']}>" if row["email"] else ""
        console.print(f"── {row['annotator']}{to}\n\n{row['text']}", soft_wrap=True, markup=False)
    print_notes([f"{len(rows)} of {len(set(invited))} invited annotators have not finished"])


def link(
    folder: StudyFolder,
    participants: Annotated[
        list[str] | None,
        typer.Argument(
            help="Participants to create links for; default: a template for the panel.",
            metavar="PARTICIPANT...",
            show_default=False,
        ),
    ] = None,
    url: Url = _HERE,
    days: Annotated[float, typer.Option("--days", min=0.01, help="Days until signed links expire.")] = 14.0,
    study_id: Annotated[str, typer.Option("--study", help="Study ID on the panel.", show_default=False)] = "",
    form: FormatOption = Format.table,
) -> None:
    """Print the study's link for a panel, or links for participants.

    Links are signed if study.toml requires it.

    Example: steelyard link words --url https://judge.example.org
    """
    import time

    import polars as pl

    from steelyard.cli.output import print_frame, print_notes
    from steelyard.errors import ConfigError
    from steelyard.recruitment.links import SECRET, link_for, link_secret, link_template
    from steelyard.study.config import CONFIG_FILE, read_config
    from steelyard.study.recruitment_state import Arrival
    from steelyard.web.studies import slug_of

    table = read_config(existing_folder(folder) / CONFIG_FILE).link
    if table is None:
        raise ConfigError(
            "study.toml has no [link] table, which describes the panel.",
            "Add [link] with the key completed. See: steelyard docs crowd",
            field="link",
        )
    slug = slug_of(folder)
    if not participants:
        typer.echo(link_template(table, url, slug, ("PARTICIPANT", study_id or "STUDY", "SESSION")))
        print_notes(["the panel replaces the words in capitals; only the participant ID is required"])
        if table.signed:
            print_notes(
                [
                    f"links must be signed with the secret in {SECRET} (steelyard docs crowd); name participants "
                    "to print signed links"
                ]
            )
        return
    secret = link_secret() if table.signed else None
    expires = int(time.time() + days * 86400)
    expected = study_id or table.study_id or ""
    rows = [
        {
            "participant": name,
            "link": link_for(table, url, slug, Arrival(name, expected, ""), expires=expires, secret=secret),
        }
        for name in participants
    ]
    if form is not Format.table:
        print_frame(pl.DataFrame(rows), form)
        return
    for row in rows:
        typer.echo(f"{row['participant']}  {row['link']}")
