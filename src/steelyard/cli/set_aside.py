"""steelyard set-aside, ask-again: ask nobody about an item any more, and undo it."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli.options import StudyFolder, open_study

ItemId = Annotated[str, typer.Argument(help="The item's id.", metavar="ITEM")]
Reason = Annotated[str, typer.Option("--reason", help="Reason, stored in the log.")]


def set_aside(folder: StudyFolder, item: ItemId, reason: Reason) -> None:
    """Set an item aside: nobody is asked about it any more.

    Its judgments are kept and count as before. `steelyard ask-again` undoes it.

    Example: steelyard set-aside words w12 --reason "the recording is empty"
    """
    from steelyard.cli.output import print_done

    with open_study(folder) as study:
        study.quality.set_item_aside(item, reason)
    print_done(f"{item} is set aside; nobody is asked about it any more.")


def ask_again(folder: StudyFolder, item: ItemId, reason: Reason = "") -> None:
    """Ask about an item again that was set aside.

    It does not matter whether you set it aside, or the rule for items that nobody can judge did.

    Example: steelyard ask-again words w12
    """
    from steelyard.cli.output import print_done
    from steelyard.errors import TaskError

    with open_study(folder) as study:
        set_aside = study.quality.items_set_aside()
        if item not in set_aside:
            raise TaskError(f"'{item}' is not set aside.", f"Set aside: {', '.join(set_aside) or 'nothing'}.")
        study.quality.restore_item(item, reason)
    print_done(f"{item} is asked about again, and is no longer set aside by itself.")
