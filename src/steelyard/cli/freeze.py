"""steelyard freeze: preregister a study in its log."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli.options import StudyFolder, open_study


def freeze(
    folder: StudyFolder,
    hypothesis: Annotated[
        list[str] | None,
        typer.Option("--hypothesis", help="Hypothesis that the study tests. Repeatable.", show_default=False),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Freeze a study that already has answers; the report states this.")
    ] = False,
) -> None:
    """Preregister a study: record plan, hypotheses and analysis in its log.

    Exclusion and stopping rules are included. The report shows the hash of this record, and lists later deviations.

    Example: steelyard freeze words --hypothesis "System A scores higher than system B."
    """
    from steelyard.cli.output import print_done, print_notes

    with open_study(folder) as study:
        frozen = study.freeze(hypothesis or [], force=force)
    print_done(f"The study is frozen. SHA-256 of the preregistration: {frozen.digest}")
    notes = [f"{frozen.planned:,} judgments are planned; later changes are listed in status and report"]
    if not frozen.hypotheses:
        notes.append("the preregistration contains no hypotheses (--hypothesis)")
    if frozen.judgments:
        notes.append(f"the study already had {frozen.judgments:,} answers; the report states this")
    print_notes(notes)
