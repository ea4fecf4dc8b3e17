"""Reproduce published tables and figures, and print our numbers beside the published ones: python -m reproductions."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.options import Format, FormatOption
from steelyard.errors import SteelyardError, SteelyardWarning

if TYPE_CHECKING:
    from rich.console import Console

    from reproductions.base import Experiment
    from reproductions.base import Progress as ProgressCallback
    from reproductions.running import Reproduction

app = typer.Typer(
    name="reproductions",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
def run(
    name: Annotated[
        str | None,
        typer.Argument(
            help="An experiment, a paper's package (tournament) or all; without a name, list the experiments.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path,
        typer.Option("--data", metavar="DIR", envvar="STEELYARD_DATA", help="Folder of recorded judgments."),
    ] = Path("data"),
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Write figures (SVG, PNG) and tables (CSV) to this folder.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=0, help="Experiments run in parallel; 0: one per core.")] = 1,
    small: Annotated[bool, typer.Option("--small", help="Run the small versions, which take seconds.")] = False,
    output_format: FormatOption = Format.table,
) -> None:
    """Reproduce published tables and figures, and print our numbers beside the published ones.

    Example: python -m reproductions tournament.reconstruction --data DIR --out figures
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from reproductions.catalogue import select
    from reproductions.running import claims_table, reproduce_all
    from steelyard.cli.output import err_console, print_done, print_frame

    if name is None:
        _list(output_format)
        return
    experiments = [cls().small() if small else cls() for cls in select(name)]
    console = Console(highlight=False)
    results: list[Reproduction] = []
    files: list[Path] = []
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    screen = err_console()
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        bar = progress.add_task(f"{len(experiments)} experiments", total=None)

        def progress_of(experiment: Experiment) -> ProgressCallback:
            description = f"{experiment.name} ({len(results) + 1} of {len(experiments)})"
            progress.reset(bar, description=description, total=None)
            return lambda steps, total: progress.update(bar, completed=steps, total=total)

        for result in reproduce_all(experiments, data, jobs=jobs or -1, draw=out is not None, progress_of=progress_of):
            results.append(result)
            if out is not None:
                files += result.write(out)
            if output_format is Format.table:
                # The progress bar and the result may share one terminal.
                progress.stop()
                _print(console, result)
                progress.start()
    if output_format is not Format.table:
        print_frame(claims_table(results), output_format)
    elif out is not None:
        print_done(f"{len(files)} files are in {out}")


def _list(output_format: Format) -> None:
    import polars as pl
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from reproductions.catalogue import experiments
    from steelyard.cli.output import print_frame

    rows = [(cls.name, cls.paper, cls.title) for cls in experiments().values()]
    if output_format is not Format.table:
        print_frame(pl.DataFrame(rows, schema=("name", "paper", "title"), orient="row"), output_format)
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
    console.print("Run one: python -m reproductions NAME. Run all: python -m reproductions all", soft_wrap=True)


def _print(console: Console, result: Reproduction) -> None:
    """Print our numbers beside the published ones; reasons for a difference are numbered below the table."""
    from rich.table import Table
    from rich.text import Text

    from reproductions.formatting import difference, format_number, interval, numbered_reasons, published

    experiment = result.experiment
    reasons = numbered_reasons(result.claims)
    table = Table(
        title=Text(
            f"{experiment.title}\n{experiment.paper} · {experiment.name} · {result.seconds:.1f} s", style="bold"
        ),
        title_justify="left",
        header_style="bold",
        box=None,
        pad_edge=False,
    )
    table.add_column("", overflow="fold")
    for column in ("ours", "95 % interval", "published", "difference", ""):
        table.add_column(column, justify="right", no_wrap=True)
    for claim in result.claims:
        table.add_row(
            Text(f"{claim.what} ({claim.unit})" if claim.unit else claim.what),
            format_number(claim.ours),
            interval(claim),
            published(claim),
            difference(claim),
            Text(f"({reasons[claim.why]})" if claim.why else "", style="dim"),
        )
    console.print(table)
    for why, number in reasons.items():
        console.print(Text(f"  ({number}) {why}", style="dim"), soft_wrap=True)
    for note in result.notes:
        console.print(Text(f"  · {note}", style="dim"), soft_wrap=True)
    console.print()


def main() -> None:
    """Run the command; exit 1 when data are missing or a name is unknown."""
    # The notes of a result repeat what its models warn about.
    warnings.simplefilter("ignore", SteelyardWarning)
    try:
        app()
    except SteelyardError as error:
        from steelyard.cli.output import print_problems

        print_problems(error)
        sys.exit(1)


if __name__ == "__main__":
    main()
