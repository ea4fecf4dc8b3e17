"""steelyard import: judgments made elsewhere join a study."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli.options import (
    ColumnsOption,
    JudgmentsFile,
    KindOption,
    SkipBadRowsOption,
    StrictOption,
    StudyFolder,
    open_study,
    pairs,
)


def import_judgments(
    folder: StudyFolder,
    file: JudgmentsFile,
    stage: Annotated[
        str | None, typer.Option("--stage", help="Stage of the judgments, if several are possible.", show_default=False)
    ] = None,
    columns: ColumnsOption = None,
    kind: KindOption = None,
    strict: StrictOption = False,
    skip_bad_rows: SkipBadRowsOption = False,
) -> None:
    """Import judgments from a file into a study.

    A file is imported completely or not at all, unless bad rows are skipped.

    Example: steelyard import words ratings.csv
    """
    from steelyard.cli.output import print_done, print_notes
    from steelyard.study.importing import import_file

    with open_study(folder) as study:
        result = import_file(
            study,
            file,
            stage=stage,
            kind=kind,
            columns=pairs(columns, "--columns"),
            strict=strict,
            skip_bad_rows=skip_bad_rows,
        )
    print_notes(result.notes)
    text = f"{result.added:,} {'judgment' if result.added == 1 else 'judgments'} imported from {file.name}"
    if result.already:
        text += f"; {result.already:,} {'was' if result.already == 1 else 'were'} already imported"
    print_done(f"{text}.")
