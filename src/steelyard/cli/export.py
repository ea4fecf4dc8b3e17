"""steelyard export: a study's judgments, scores or whole log as a file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.options import Format, StudyFolder, existing_folder

if TYPE_CHECKING:
    from steelyard.study import Study


class What(StrEnum):
    """What to export."""

    judgments = "judgments"
    answers = "answers"
    scores = "scores"
    log = "log"


def export(
    folder: StudyFolder,
    what: Annotated[
        What,
        typer.Option(
            "--what",
            "-w",
            help="judgments: as `import` and `fit` read them; answers: one row an answer, with times; "
            "scores: the scores table; log: every event, from which the study can be rebuilt.",
        ),
    ] = What.judgments,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The file (.csv .tsv .jsonl .parquet); else it is printed.", show_default=False
        ),
    ] = None,
    stage: Annotated[
        str | None, typer.Option("--stage", help="Which stage's judgments, if there are several.", show_default=False)
    ] = None,
    form: Annotated[Format, typer.Option("--format", "-f", help="How to print it without --output.")] = Format.csv,
    dataset: Annotated[
        Path | None,
        typer.Option(
            "--dataset",
            metavar="FOLDER",
            help="Write scores, judgments and items as a data set to publish: Parquet and a card.",
            show_default=False,
        ),
    ] = None,
    anonymous: Annotated[
        bool, typer.Option("--anonymous/--names", help="Call annotators A1, A2 … in the data set.")
    ] = True,
) -> None:
    """Write a study's judgments, scores or whole log to a file, or all of it as a data set.

    Example: steelyard export words --what scores -o scores.csv
    """
    from rich.console import Console

    from steelyard.cli.output import plain_table, print_frame
    from steelyard.formats import write_table
    from steelyard.study import Study
    from steelyard.study.exporting import conventional_judgments
    from steelyard.study.rebuild import write_log

    with Study.open(existing_folder(folder)) as study:
        if dataset is not None:
            from steelyard.report.dataset import write_dataset

            files = write_dataset(study, dataset, names=not anonymous)
            typer.echo(f"{len(files)} files written to {dataset}: fill in the licence in README.md", err=True)
            return
        if what is What.log:
            if output is None:
                for event in study.events():
                    typer.echo(event.as_json())
                return
            count = write_log(study, output)
            typer.echo(f"{count:,} events written to {output}", err=True)
            return
        if output is not None and output.suffix == ".parquet" and what is not What.scores:
            rows = _stream(study, what, output, stage)
            typer.echo(f"{rows:,} rows written to {output}", err=True)
            return
        if what is What.scores:
            frame = study.scores()
        elif what is What.answers:
            frame = study.judgments()
        else:
            frame = conventional_judgments(study, stage)
    if output is not None:
        write_table(frame, output)
        typer.echo(f"{frame.height:,} rows written to {output}", err=True)
    elif form is Format.table:
        Console().print(plain_table(frame, ""))
    else:
        print_frame(frame, form)


def _stream(study: Study, what: What, output: Path, stage: str | None) -> int:
    """Write Parquet some rows at a time, and show how far it is."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from steelyard.cli.output import err_console
    from steelyard.study.exporting import write_answers, write_judgments

    screen = err_console()
    columns = (TextColumn("writing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        bar = progress.add_task("", total=study.count_judgments())
        told = lambda count: progress.advance(bar, count)  # noqa: E731
        if what is What.answers:
            return write_answers(study, output, told)
        return write_judgments(study, output, stage, told)
