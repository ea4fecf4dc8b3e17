"""steelyard exclude, readmit: exclude an annotator, and undo an exclusion."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli.options import StudyFolder, open_study

Annotator = Annotated[str, typer.Argument(help="The annotator's name.", metavar="ANNOTATOR")]
Reason = Annotated[str, typer.Option("--reason", help="Reason, stored in the log.")]


def exclude(folder: StudyFolder, annotator: Annotator, reason: Reason) -> None:
    """Exclude an annotator: no further tasks, and their judgments do not count.

    The judgments are kept, and their tasks are reassigned. `steelyard readmit` undoes an exclusion.

    Example: steelyard exclude words bob --reason "always chose the left item"
    """
    from steelyard.cli.output import print_done

    with open_study(folder) as study:
        before = study.status().set_aside
        study.annotators.exclude(annotator, reason)
        aside = study.status().set_aside - before
    print_done(f"{annotator} is excluded; {aside:,} judgments no longer count, and their tasks will be reassigned.")


def readmit(folder: StudyFolder, annotator: Annotator, reason: Reason = "") -> None:
    """Undo an exclusion: the annotator's judgments count again.

    Example: steelyard readmit words bob
    """
    from steelyard.cli.output import print_done
    from steelyard.errors import TaskError

    with open_study(folder) as study:
        if annotator not in study.annotators.excluded:
            excluded = ", ".join(study.annotators.excluded) or "nobody"
            raise TaskError(f"'{annotator}' is not excluded.", f"Excluded: {excluded}.")
        before = study.status().set_aside
        study.annotators.readmit(annotator, reason)
        again = before - study.status().set_aside
    print_done(f"{annotator} is readmitted; {again:,} judgments count again.")
