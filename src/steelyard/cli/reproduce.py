"""steelyard reproduce: published tables and figures made again, ours beside the published numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from rich.console import Console

    from steelyard.experiments.base import Experiment
    from steelyard.experiments.base import Progress as Told
    from steelyard.experiments.outcome import Reproduction


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            help="An experiment, a paper's folder of them (tournament), or all; without a name they are listed.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="The folder of recorded judgments.")] = Path(
        "../shared/data"
    ),
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Write figures (SVG, PNG) and tables (CSV) into this folder.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=0, help="Experiments at a time; 0 for one a core.")] = 1,
    small: Annotated[bool, typer.Option("--small", help="Run the small versions, which take seconds.")] = False,
    form: FormatOption = Format.table,
) -> None:
    """Make published tables and figures again, and print ours beside the published numbers.

    Example: steelyard reproduce tournament.reconstruction --data ../shared/data --out figures
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from steelyard.cli.output import err_console, print_done, print_frame
    from steelyard.experiments.catalogue import chosen
    from steelyard.experiments.outcome import claims_table, reproduce_all

    if name is None:
        _list(form)
        return
    experiments = [cls().small() if small else cls() for cls in chosen(name)]
    console = Console(highlight=False)
    done: list[Reproduction] = []
    files: list[Path] = []
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    screen = err_console()
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        bar = progress.add_task(f"{len(experiments)} experiments", total=None)

        def told_of(experiment: Experiment) -> Told:
            description = f"{experiment.name} ({len(done) + 1} of {len(experiments)})"
            progress.reset(bar, description=description, total=None)
            return lambda steps, total: progress.update(bar, completed=steps, total=total)

        for found in reproduce_all(experiments, data, jobs=jobs or -1, draw=out is not None, told_of=told_of):
            done.append(found)
            if out is not None:
                files += found.write(out)
            if form is Format.table:
                # The bar and the result may be on one screen.
                progress.stop()
                _print(console, found)
                progress.start()
    if form is not Format.table:
        print_frame(claims_table(done), form)
    elif out is not None:
        print_done(f"{len(files)} files are in {out}")


def _list(form: Format) -> None:
    import polars as pl
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from steelyard.cli.output import print_frame
    from steelyard.experiments.catalogue import experiments

    rows = [(cls.name, cls.paper, cls.title) for cls in experiments().values()]
    if form is not Format.table:
        print_frame(pl.DataFrame(rows, schema=("name", "paper", "title"), orient="row"), form)
        return
    console = Console(highlight=False)
    for paper in dict.fromkeys(paper for _, paper, _ in rows):
        table = Table(
            title=Text(paper, style="bold"), title_justify="left", box=None, pad_edge=False, show_header=False
        )
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for name, _, title in (row for row in rows if row[1] == paper):
            table.add_row(Text(name), Text(title, style="dim"))
        console.print(table)
    console.print("Run one with: steelyard reproduce NAME, or all with: steelyard reproduce all", soft_wrap=True)


def _print(console: Console, found: Reproduction) -> None:
    """Print ours beside the published numbers; reasons for a difference are numbered below."""
    from rich.table import Table
    from rich.text import Text

    from steelyard.experiments.wording import difference, interval, numbered_reasons, published, written

    experiment = found.experiment
    reasons = numbered_reasons(found.claims)
    table = Table(
        title=Text(f"{experiment.title}\n{experiment.paper} · {experiment.name} · {found.seconds:.1f} s", style="bold"),
        title_justify="left",
        header_style="bold",
        box=None,
        pad_edge=False,
    )
    table.add_column("", overflow="fold")
    for column in ("ours", "95 % interval", "published", "difference", ""):
        table.add_column(column, justify="right", no_wrap=True)
    for claim in found.claims:
        table.add_row(
            Text(f"{claim.what} ({claim.unit})" if claim.unit else claim.what),
            written(claim.ours),
            interval(claim),
            published(claim),
            difference(claim),
            Text(f"({reasons[claim.why]})" if claim.why else "", style="dim"),
        )
    console.print(table)
    for why, number in reasons.items():
        console.print(Text(f"  ({number}) {why}", style="dim"), soft_wrap=True)
    for note in found.notes:
        console.print(Text(f"  · {note}", style="dim"), soft_wrap=True)
    console.print()
