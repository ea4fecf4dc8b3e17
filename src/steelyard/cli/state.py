"""steelyard state: open, pause or close a study."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from steelyard.cli.options import StudyFolder, open_study


class State(StrEnum):
    """States of a study."""

    open = "open"
    paused = "paused"
    closed = "closed"


def state(
    folder: StudyFolder,
    wanted: Annotated[State, typer.Argument(help="open, paused or closed.", metavar="STATE", show_default=False)],
    reason: Annotated[str, typer.Option("--reason", help="Message shown to annotators.")] = "",
) -> None:
    """Open, pause or close a study.

    Answers to leased tasks are still accepted.

    Example: steelyard state words paused --reason "Back tomorrow at nine."
    """
    from steelyard.cli.output import print_done

    with open_study(folder) as study:
        study.set_state(wanted.value, reason)
    print_done(f"The study is {wanted.value}.")
