"""steelyard agreement: how much the annotators of a file agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.options import (
    ColumnsOption,
    EngineOption,
    Format,
    FormatOption,
    JudgmentsFiles,
    KindOption,
    MemoryOption,
    ScaleOption,
    SkipBadRowsOption,
    SparkMasterOption,
    StrictOption,
    pairs,
)

if TYPE_CHECKING:
    from steelyard.engines import LogFiles
    from steelyard.formats import JudgmentFile
    from steelyard.observations import Observations
    from steelyard.reliability import Agreement


def agreement(
    files: JudgmentsFiles,
    experts: Annotated[
        list[str] | None,
        typer.Option(
            "--expert",
            metavar="NAME",
            help="Annotator who is an expert; adds agreement of experts and others. Repeatable.",
            show_default=False,
        ),
    ] = None,
    form: FormatOption = Format.table,
    columns: ColumnsOption = None,
    kind: KindOption = None,
    scale: ScaleOption = None,
    strict: StrictOption = False,
    skip_bad_rows: SkipBadRowsOption = False,
    engine: EngineOption = None,
    spark_master: SparkMasterOption = None,
    memory: MemoryOption = None,
) -> None:
    """Measure the agreement of the annotators in one or more files.

    Example: steelyard agreement labels.csv
    """
    import polars as pl
    from rich.console import Console

    from steelyard.cli.output import print_frame, print_notes, statistics_table, with_criteria
    from steelyard.cli.reading import SeveralFiles, called, reading
    from steelyard.errors import DataError
    from steelyard.observations import Observations
    from steelyard.reliability import agreement as measure

    options = {
        "kind": kind,
        "columns": pairs(columns, "--columns"),
        "scale": scale,
        "strict": strict,
        "skip_bad_rows": skip_bad_rows,
    }
    measured = {}
    with reading(files, engine, spark_master, memory, **options) as read:
        if isinstance(read, SeveralFiles):
            raise DataError(
                "the files contain judgments of different kinds.", "Run steelyard agreement on each file separately."
            )
        for criterion, judgments in read.by_criterion.items():
            if isinstance(judgments, Observations):
                result = _with_experts(measure(judgments), judgments, experts or [])
                measured[criterion] = _with_marks(result, read, criterion)
            elif experts:
                raise DataError(
                    "--expert needs the judgments in memory.", "Leave --engine out, or use --engine memory."
                )
            else:
                from steelyard.engines.agreement import log_agreement

                measured[criterion] = log_agreement(judgments)
        total = sum(map(len, read.by_criterion.values()))
    frame = with_criteria({criterion: result.table for criterion, result in measured.items()})
    print_notes(read.notes)
    if form is Format.table:
        Console().print(statistics_table(frame, f"{called(files)}: agreement over {total:,} {read.kind}"))
        about = frame.filter(pl.col("note") != "").unique("statistic", keep="first", maintain_order=True)
        print_notes(f"{row['label']}: {row['note']}" for row in about.iter_rows(named=True))
    else:
        print_frame(frame, form)
    print_notes(dict.fromkeys(note for result in measured.values() for note in result.notes))


def _with_marks(result: Agreement, read: JudgmentFile | LogFiles, criterion: str) -> Agreement:
    """Add the agreement on marked errors, if the file has any."""
    from dataclasses import replace

    from steelyard.formats import JudgmentFile
    from steelyard.protocols.error_spans import SEVERITIES
    from steelyard.reliability import mark_agreement

    spans = read.marked_texts(criterion) if isinstance(read, JudgmentFile) else None
    if spans is None:
        return result
    marks = mark_agreement(spans, severity_order=tuple(SEVERITIES))
    return replace(result, statistics=(*result.statistics, *marks.statistics), notes=(*result.notes, *marks.notes))


def _with_experts(result: Agreement, judgments: Observations, experts: list[str]) -> Agreement:
    """Add the agreement of experts and of the other annotators, if experts are named."""
    from dataclasses import replace

    from steelyard.errors import DataError
    from steelyard.observations import Ratings
    from steelyard.reliability.ita import ita_with_experts

    if not experts:
        return result
    if not isinstance(judgments, Ratings):
        raise DataError(f"--expert needs ratings; these are {judgments.kind}.", "Leave --expert out.")
    unknown = sorted(set(experts) - set(judgments.annotators.ids))
    if unknown:
        raise DataError(f"no annotator is called '{unknown[0]}'.", "Use the names of the file's annotator column.")
    return replace(result, statistics=(*result.statistics, *ita_with_experts(judgments, experts)))
