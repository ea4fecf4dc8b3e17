"""steelyard agreement: how much the annotators of a file agree."""

from __future__ import annotations

from steelyard.cli.options import (
    ColumnsOption,
    Format,
    FormatOption,
    JudgmentsFile,
    KindOption,
    ScaleOption,
    StrictOption,
    pairs,
)


def agreement(
    file: JudgmentsFile,
    form: FormatOption = Format.table,
    columns: ColumnsOption = None,
    kind: KindOption = None,
    scale: ScaleOption = None,
    strict: StrictOption = False,
) -> None:
    """Measure how much the annotators of a file agree.

    Example: steelyard agreement labels.csv
    """
    import polars as pl
    from rich.console import Console

    from steelyard.cli.output import figures_table, print_frame, print_notes
    from steelyard.formats import read_judgments
    from steelyard.reliability import agreement as measure

    read = read_judgments(file, kind=kind, columns=pairs(columns, "--columns"), scale=scale, strict=strict)
    measured = {criterion: measure(observations) for criterion, observations in read.by_criterion.items()}
    tables = [
        result.table.select(pl.lit(criterion).alias("criterion"), pl.all()) if criterion else result.table
        for criterion, result in measured.items()
    ]
    frame = pl.concat(tables, how="diagonal")
    print_notes(read.notes)
    if form is Format.table:
        total = sum(map(len, read.by_criterion.values()))
        Console().print(figures_table(frame, f"{file.name}: agreement over {total:,} {read.kind}"))
        about = frame.filter(pl.col("note") != "").unique("figure", keep="first", maintain_order=True)
        print_notes(f"{row['figure']}: {row['note']}" for row in about.iter_rows(named=True))
    else:
        print_frame(frame, form)
    print_notes(dict.fromkeys(note for result in measured.values() for note in result.notes))
