"""steelyard distributions: how many annotators gave each answer to an item."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli.options import (
    ColumnsOption,
    Format,
    FormatOption,
    KindOption,
    ScaleOption,
    SkipBadRowsOption,
    pairs,
)


def distributions(
    sources: Annotated[
        list[str],
        typer.Argument(help="A study's folder, or files of judgments.", metavar="SOURCE…", show_default=False),
    ],
    soft: Annotated[bool, typer.Option("--soft", help="Soft labels: one row per item, p(answer) per answer.")] = False,
    bins: Annotated[int, typer.Option("--bins", min=2, help="Bins of a slider's scale.")] = 10,
    top: Annotated[int, typer.Option("--top", min=0, help="Items with most disagreement to print; 0: all.")] = 0,
    form: FormatOption = Format.table,
    columns: ColumnsOption = None,
    kind: KindOption = None,
    scale: ScaleOption = None,
    skip_bad_rows: SkipBadRowsOption = False,
) -> None:
    """Count how many annotators gave each answer, item by item, or print soft labels.

    Answers are labels, steps of a rating scale, bins of a slider, losses, ties and wins, or best and worst.

    Example: steelyard distributions labels.csv --soft --format csv
    """
    from steelyard.cli.output import plain_table, print_frame, print_notes, print_whole, with_criteria
    from steelyard.cli.reading import called, judgments_by_criterion
    from steelyard.reliability import answer_distributions, soft_labels

    options = {
        "kind": kind,
        "columns": pairs(columns, "--columns"),
        "scale": scale,
        "skip_bad_rows": skip_bad_rows,
    }
    by_criterion, notes = judgments_by_criterion(sources, options)
    frame = with_criteria({name: answer_distributions(part, bins=bins) for name, part in by_criterion.items()})
    summary = soft_labels(frame)
    if top:
        chosen = summary.sort("entropy", descending=True, maintain_order=True).head(top)
        keys = [name for name in ("criterion", "item") if name in frame.columns]
        summary, frame = chosen, chosen.select(keys).join(frame, on=keys, how="left", maintain_order="left")
    table = summary if soft else frame
    if form is Format.table:
        print_whole(plain_table(table, f"{called(sources)}: {'soft labels' if soft else 'answers by item'}"))
    else:
        print_frame(table, form)
    print_notes(notes)
