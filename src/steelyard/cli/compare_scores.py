"""steelyard compare-scores: how far two scorings of the same items differ."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.options import Format, FormatOption


def compare_scores(
    first: Annotated[Path, typer.Argument(help="Table of scores: item, score.", metavar="FIRST", show_default=False)],
    second: Annotated[Path, typer.Argument(help="Another table of scores.", metavar="SECOND", show_default=False)],
    moved: Annotated[
        int, typer.Option("--moved", min=0, help="Number of items to print, with the largest changes in rank.")
    ] = 10,
    items: Annotated[bool, typer.Option("--items", help="Print all items instead of the statistics.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed of the intervals.")] = 0,
    form: FormatOption = Format.table,
) -> None:
    """Compare two scorings of the same items: differences and correlations.

    Both are rescaled to 0–1 first. Tables come from `steelyard fit`, `scores` or `export`, with --format csv.

    Example: steelyard compare-scores ratings-scores.csv best-worst-scores.csv
    """
    from rich.console import Console

    from steelyard.cli.output import plain_table, print_frame, print_notes, statistics_table
    from steelyard.formats import read_table
    from steelyard.reliability import compare_scorings

    comparison = compare_scorings(read_table(first), read_table(second), seed=seed)
    console = Console(highlight=False)
    title = f"{first.name} and {second.name}"
    if form is not Format.table:
        print_frame(comparison.moved if items else comparison.table, form)
    elif items:
        console.print(plain_table(comparison.moved, title))
    else:
        console.print(statistics_table(comparison.table, title))
        if moved:
            console.print(plain_table(comparison.moved.head(moved), "Items with the largest changes in rank"))
    print_notes(comparison.notes)
