"""steelyard fit: scores from a file of judgments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    SkipBadRowsOption,
    SparkMasterOption,
    StrictOption,
    pairs,
    settings,
)
from steelyard.cli.reading import SeveralFiles, called, reading

if TYPE_CHECKING:
    from steelyard.engines import LogFiles
    from steelyard.formats import JudgmentFile
    from steelyard.models.fit import Fit, Model


def fit(
    files: JudgmentsFiles,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", help="Model; default: the default model of the kind of judgments.", show_default=False
        ),
    ] = None,
    form: FormatOption = Format.table,
    columns: ColumnsOption = None,
    kind: KindOption = None,
    scale: ScaleOption = None,
    strict: StrictOption = False,
    skip_bad_rows: SkipBadRowsOption = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Setting of the model. Repeatable.")
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option("--gold", help="Gold answers (columns item, gold), for models that use them.", show_default=False),
    ] = None,
    annotators: Annotated[
        bool, typer.Option("--annotators", help="Print the estimates of annotators instead of the scores.")
    ] = False,
    top: Annotated[int, typer.Option("--top", min=0, help="Number of items to print; 0 for all.")] = 0,
    engine: EngineOption = None,
    spark_master: SparkMasterOption = None,
    memory: MemoryOption = None,
) -> None:
    """Fit a model to one or more files of judgments, and print the scores.

    Example: steelyard fit ratings.csv --model easl --scale 0 100

    Several files on one scale: steelyard fit sliders.csv pairs.csv --model calibrated_scale --scale 0 100
    """
    from rich.console import Console

    from steelyard import registry
    from steelyard.cli.output import annotators_table, print_frame, print_notes, print_scores
    from steelyard.errors import DataError
    from steelyard.formats import read_gold

    chosen = registry.create("models", model, settings(set_, "--set")) if model else None
    answers = read_gold(gold) if gold else None
    options = {
        "kind": kind,
        "columns": pairs(columns, "--columns"),
        "scale": scale,
        "strict": strict,
        "skip_bad_rows": skip_bad_rows,
    }
    with reading(files, engine, spark_master, memory, **options) as source:
        if chosen is None:
            chosen = registry.create("models", default_model(source.kind), settings(set_, "--set"))
        result = _fit(chosen, source, answers)
        total = sum(map(len, source.by_criterion.values()))
    print_notes(source.notes)
    title = f"{called(files)}: {chosen.name}, {total:,} {'judgments' if source.kind == 'mixed' else source.kind}"
    if not annotators:
        print_scores(result.scores, title, form, top or None, result.level)
    elif result.annotators is None:
        raise DataError(
            f"the model {chosen.name} has no annotator parameters.",
            "Choose a model with annotator parameters, e.g. --model calibrated_scale.",
        )
    elif form is Format.table:
        Console().print(annotators_table(result.annotators, title, top or None))
    else:
        print_frame(result.annotators, form)
    print_notes(result.notes)


def _fit(model: Model, source: JudgmentFile | LogFiles | SeveralFiles, gold: dict[str, dict[str, str]] | None) -> Fit:
    """Fit in memory, or in the engine that holds the judgments."""
    from steelyard.formats import JudgmentFile
    from steelyard.models.by_criterion import fit_by_criterion, fit_each_criterion

    if isinstance(source, JudgmentFile | SeveralFiles):
        return fit_by_criterion(model, source.by_criterion, gold)
    from steelyard.engines import fit_log

    return fit_each_criterion(model, source.by_criterion, fit_log, gold)


def default_model(kind: str) -> str:
    """Return the default model of the first protocol whose main kind of observations is `kind`."""
    from steelyard import registry

    if kind == "mixed":
        return next(name for name in registry.names("models") if kind in registry.find("models", name).accepts)
    protocols = [registry.find("protocols", name) for name in registry.names("protocols")]
    return next(str(protocol.default_model) for protocol in protocols if protocol.kinds[0] == kind)
