"""steelyard invite: personal links to a study."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli.options import Format, FormatOption, StudyFolder, existing_folder


def invite(
    folder: StudyFolder,
    names: Annotated[list[str], typer.Argument(help="Whom to invite.", metavar="NAME...", show_default=False)],
    url: Annotated[str, typer.Option(help="Where the study is served.")] = "http://127.0.0.1:8000",
    replace: Annotated[bool, typer.Option("--replace", help="Earlier links of these people stop working.")] = False,
    database: Annotated[
        str | None, typer.Option(help="Another database than the study's own, as for serve.", show_default=False)
    ] = None,
    form: FormatOption = Format.table,
) -> None:
    """Make personal links, one for each name. Each is shown this once: only a digest of it is kept.

    Example: steelyard invite words ann bob --url https://judge.example.org
    """
    import polars as pl
    from rich.console import Console

    from steelyard.cli.output import print_frame
    from steelyard.study import Study
    from steelyard.study.tasks import annotator_name
    from steelyard.web.studies import slug_of

    existing_folder(folder)
    base = f"{url.rstrip('/')}/s/{slug_of(folder)}/?invite="
    people = list(dict.fromkeys(map(annotator_name, names)))
    links = []
    with Study.open(folder, database=database) as study:
        for name in people:
            if replace:
                study.access.revoke("invite", annotator=name)
                study.access.revoke("session", annotator=name)
            links.append({"annotator": name, "link": base + study.access.grant("invite", annotator=name)})
    if form is not Format.table:
        print_frame(pl.DataFrame(links), form)
        return
    console = Console(highlight=False)
    width = max(map(len, people))
    for row in links:
        console.print(f"{row['annotator']:<{width}}  {row['link']}", soft_wrap=True, markup=False)
