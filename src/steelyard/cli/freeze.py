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
    force: Annotated[bool, typer.Option("--force", help="Freeze although there are answers; reported.")] = False,
) -> None:
    """Write plan, hypotheses, rules and analysis into the log, before any answer.

    The report shows their hash, and lists what was done differently later.

    Example: steelyard freeze words --hypothesis "System A scores higher than system B."
    """
    from steelyard.cli.output import print_done, print_notes

    with open_study(folder) as study:
        frozen = study.freeze(hypothesis or [], force=force)
    print_done(f"The study is frozen. SHA-256 of the preregistration: {frozen.digest}")
    notes = [f"{frozen.planned:,} judgments are planned; later changes are listed in status and report"]
    if not frozen.hypotheses:
        notes.append("no hypothesis was given: add them with --hypothesis, before you freeze")
    if frozen.judgments:
        notes.append(f"the study had {frozen.judgments:,} answers already, which the report states")
    print_notes(notes)
