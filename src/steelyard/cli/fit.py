"""steelyard fit: scores from a file of judgments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.options import (
    ColumnsOption,
    EngineOption,
    Format,
    FormatOption,
    JudgmentsFiles,
    KindOption,
    MemoryOption,
    ScaleOption,
    SparkMasterOption,
    StrictOption,
    pairs,
    settings,
)


def fit(
    files: JudgmentsFiles,
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
    gold: Annotated[
        Path | None,
        typer.Option(
            "--gold", help="Known answers (columns item, gold), for models that use them.", show_default=False
        ),
    ] = None,
    annotators: Annotated[
        bool, typer.Option("--annotators", help="Print what the model found about the annotators instead.")
    ] = False,
    top: Annotated[int, typer.Option("--top", min=0, help="Print only so many items; 0 for all.")] = 0,
    engine: EngineOption = None,
    spark_master: SparkMasterOption = None,
    memory: MemoryOption = None,
) -> None:
    """Score the items of one or more files of judgments.

    Example: steelyard fit ratings.csv --model easl --scale 0 100

    Several files on one scale: steelyard fit sliders.csv pairs.csv --model calibrated_scale --scale 0 100
    """
    from rich.console import Console

    from steelyard import registry
    from steelyard.cli.output import annotators_table, print_frame, print_notes, print_scores
    from steelyard.cli.reading import called, reading
    from steelyard.errors import DataError
    from steelyard.formats import read_gold
    from steelyard.study.fitting import fit_by_criterion

    chosen = registry.create("models", model, settings(set_, "--set")) if model else None
    known = read_gold(gold) if gold else None
    options = {"kind": kind, "columns": pairs(columns, "--columns"), "scale": scale, "strict": strict}
    with reading(files, engine, spark_master, memory, **options) as read:
        if chosen is None:
            chosen = registry.create("models", usual_model(read.kind), settings(set_, "--set"))
        fitted = fit_by_criterion(chosen, read.by_criterion, known)
        total = sum(map(len, read.by_criterion.values()))
    print_notes(read.notes)
    title = f"{called(files)}: {chosen.name} of {total:,} {'judgments' if read.kind == 'mixed' else read.kind}"
    if not annotators:
        print_scores(fitted.scores, title, form, top or None, fitted.level)
    elif fitted.annotators is None:
        raise DataError(f"{chosen.name} says nothing about annotators.", "Choose a model that does.")
    elif form is Format.table:
        Console().print(annotators_table(fitted.annotators, title, top or None))
    else:
        print_frame(fitted.annotators, form)
    print_notes(fitted.notes)


def usual_model(kind: str) -> str:
    """Return the default model of the first protocol that gives this kind of observations above all."""
    from steelyard import registry

    if kind == "mixed":
        return next(name for name in registry.names("models") if kind in registry.find("models", name).accepts)

    protocols = [registry.find("protocols", name) for name in registry.names("protocols")]
    return next(str(protocol.default_model) for protocol in protocols if protocol.kinds[0] == kind)
