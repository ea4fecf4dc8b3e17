"""steelyard forget: erase an annotator's data from a study."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli.options import StudyFolder, open_study


def forget(
    folder: StudyFolder,
    annotator: Annotated[str, typer.Argument(help="The annotator's name.", metavar="ANNOTATOR", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Erase an annotator's data from a study.

    This removes judgments, consent, tokens, sessions, and free text.

    The effect on the scores is printed first, and you are asked to confirm. This cannot be undone. To keep the
    judgments but leave them out of the scores, use `steelyard exclude`.

    Example: steelyard forget words bob
    """
    from steelyard.cli.output import err_console, print_done
    from steelyard.study import forgetting

    with open_study(folder) as study:
        if not yes:
            for line in forgetting.preview(study, annotator).would():
                err_console().print(line, highlight=False, markup=False, soft_wrap=True)
            typer.confirm(f"Erase all data of {annotator}? This cannot be undone.", abort=True, err=True)
        done = forgetting.forget(study, annotator)
    for line in done.did():
        print_done(line)
    for line in done.still_to_do():
        err_console().print(line, highlight=False, markup=False, soft_wrap=True)
