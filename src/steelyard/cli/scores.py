"""steelyard scores: a study's scores so far."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from steelyard.cli.options import Format, FormatOption, StudyFolder, existing_folder, settings


class By(StrEnum):
    """What is scored."""

    item = "item"
    group = "group"


def scores(
    folder: StudyFolder,
    form: FormatOption = Format.table,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Another model than the study's.", show_default=False)
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of that model. Repeatable.")
    ] = None,
    by: Annotated[By, typer.Option("--by", help="Score the items, or the groups they belong to.")] = By.item,
    top: Annotated[int, typer.Option("--top", min=0, help="Print only so many items; 0 for all.")] = 0,
) -> None:
    """Print a study's scores with their intervals.

    Example: steelyard scores words --top 10
    """
    from steelyard import registry
    from steelyard.cli.output import print_notes, print_scores
    from steelyard.study import Study

    chosen = registry.create("models", model, settings(set_, "--set")) if model else None
    with Study.open(existing_folder(folder)) as study:
        fitted = study.fit(chosen, by=by.value)
        title = f"{study.config.title}: {fitted.model} of {study.status().judgments:,} judgments"
    print_scores(fitted.scores, title, form, top or None, fitted.level)
    print_notes(fitted.notes)
