"""steelyard fit: scores from a file of judgments."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli.options import (
    ColumnsOption,
    Format,
    FormatOption,
    JudgmentsFile,
    KindOption,
    ScaleOption,
    StrictOption,
    pairs,
    settings,
)


def fit(
    file: JudgmentsFile,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", help="Which model; the usual one for the judgments if left out.", show_default=False
        ),
    ] = None,
    form: FormatOption = Format.table,
    columns: ColumnsOption = None,
    kind: KindOption = None,
    scale: ScaleOption = None,
    strict: StrictOption = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the model. Repeatable.")
    ] = None,
    top: Annotated[int, typer.Option("--top", min=0, help="Print only so many items; 0 for all.")] = 0,
) -> None:
    """Score the items of a file of judgments.

    Example: steelyard fit ratings.csv --model easl --scale 0 100
    """
    import polars as pl

    from steelyard import registry
    from steelyard.cli.output import print_notes, print_scores
    from steelyard.formats import read_judgments

    chosen = registry.create("models", model, settings(set_, "--set")) if model else None
    read = read_judgments(file, kind=kind, columns=pairs(columns, "--columns"), scale=scale, strict=strict)
    if chosen is None:
        chosen = registry.create("models", usual_model(read.kind), settings(set_, "--set"))
    fits = {criterion: chosen.fit(observations) for criterion, observations in read.by_criterion.items()}
    tables = [
        fitted.scores.select("item", pl.lit(criterion).alias("criterion"), pl.exclude("item"))
        if criterion
        else fitted.scores
        for criterion, fitted in fits.items()
    ]
    print_notes(read.notes)
    total = sum(map(len, read.by_criterion.values()))
    print_scores(
        pl.concat(tables, how="diagonal"), f"{file.name}: {chosen.name} of {total:,} {read.kind}", form, top or None
    )
    print_notes(note for fitted in fits.values() for note in fitted.notes)


def usual_model(kind: str) -> str:
    """Return the default model of the first protocol that gives this kind of observations above all."""
    from steelyard import registry

    protocols = [registry.find("protocols", name) for name in registry.names("protocols")]
    return next(str(protocol.default_model) for protocol in protocols if protocol.kinds[0] == kind)
