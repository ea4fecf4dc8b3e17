"""steelyard split-half: split-half reliability of judgments, by budget, by subset or by annotators."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    import polars as pl

    from steelyard.observations import Observations


class SplitBy(StrEnum):
    """What is divided into halves."""

    unit = "unit"
    tuple = "tuple"
    annotator = "annotator"


def split_half(
    sources: Annotated[
        list[str],
        typer.Argument(help="A study's folder, or files of judgments.", metavar="SOURCE…", show_default=False),
    ],
    by_budget: Annotated[
        bool, typer.Option("--by-budget", help="Print a row for each number of judgments per half.")
    ] = False,
    subsets: Annotated[
        Path | None,
        typer.Option("--subsets", metavar="FILE", help="Table of items and their subsets.", show_default=False),
    ] = None,
    subset_column: Annotated[
        str, typer.Option("--subset-column", metavar="NAME", help="Column of the subset in that table.")
    ] = "subset",
    by: Annotated[
        SplitBy, typer.Option("--by", help="Split each unit's judgments, or whole tuples or annotators.")
    ] = SplitBy.unit,
    per_half: Annotated[
        int | None,
        typer.Option("--per-half", min=1, help="Judgments per unit in each half; default: half.", show_default=False),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="Model; default: the mean, or counting.", show_default=False),
    ] = None,
    fixed_items: Annotated[
        bool,
        typer.Option("--fixed-items", help="Intervals for fixed items also with --model, which is slow."),
    ] = False,
    trials: Annotated[int, typer.Option("--trials", min=1, help="Number of random splits.")] = 100,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    form: FormatOption = Format.table,
    columns: ColumnsOption = None,
    kind: KindOption = None,
    scale: ScaleOption = None,
    skip_bad_rows: SkipBadRowsOption = False,
) -> None:
    """Measure split-half reliability, optionally by budget or subset of items.

    Each item's (pair's, tuple's) judgments are split into random halves; the scores of both halves are correlated.
    Intervals are for other items of the same kind, judged by other annotators and, in the rows named "fixed items",
    for these items, judged by other annotators.

    Example: steelyard split-half ratings.csv --by-budget

    Within subsets: steelyard split-half words --subsets words/items.csv --subset-column genre
    """
    from rich.console import Console

    from steelyard import registry
    from steelyard.cli.output import plain_table, print_frame, print_notes, statistics_table, with_criteria
    from steelyard.cli.reading import called, judgments_by_criterion
    from steelyard.reliability import split_half as measure
    from steelyard.reliability import split_half_by_budget, split_half_by_subset

    _refuse_combinations(by_budget, subsets, by, per_half, fixed_items)
    options = {
        "kind": kind,
        "columns": pairs(columns, "--columns"),
        "scale": scale,
        "skip_bad_rows": skip_bad_rows,
    }
    by_criterion, notes = judgments_by_criterion(sources, options)
    chosen = registry.create("models", model) if model else None
    further: dict[str, None] = {}
    compute: Callable[[Observations], pl.DataFrame]
    if by_budget:

        def compute(observations: Observations) -> pl.DataFrame:
            return split_half_by_budget(observations, model=chosen, trials=trials, seed=seed)

    elif subsets is not None:
        tags = _read_subsets(subsets, subset_column)

        def compute(observations: Observations) -> pl.DataFrame:
            in_use = {item: names for item, names in tags.items() if item in observations.items}
            further.setdefault(_missing(observations, in_use), None)
            return split_half_by_subset(observations, in_use, model=chosen, per_half=per_half, trials=trials, seed=seed)

    else:

        def compute(observations: Observations) -> pl.DataFrame:
            fixed = fixed_items or (chosen is None and per_half is None)
            result = measure(
                observations, model=chosen, by=by.value, per_half=per_half, fixed_items=fixed, trials=trials, seed=seed
            )
            further.update(dict.fromkeys(result.notes))
            return result.table

    frame = with_criteria({name: compute(part) for name, part in by_criterion.items()})
    print_notes(notes)
    if form is Format.table:
        console, title = Console(highlight=False), f"{called(sources)}: split-half reliability"
        wide = _wide(frame)
        console.print(statistics_table(frame, title) if wide is None else plain_table(wide, title))
    else:
        print_frame(frame, form)
    print_notes(filter(None, further))


def _refuse_combinations(
    by_budget: bool, subsets: Path | None, by: SplitBy, per_half: int | None, fixed_items: bool
) -> None:
    """Refuse options that cannot be combined."""
    if fixed_items and (by_budget or subsets is not None or per_half is not None):
        raise typer.BadParameter(
            "cannot be combined with --by-budget, --subsets or --per-half.", param_hint="--fixed-items"
        )
    if by_budget and (subsets is not None or per_half is not None):
        raise typer.BadParameter("cannot be combined with --subsets or --per-half.", param_hint="--by-budget")
    if by is not SplitBy.unit and (by_budget or subsets is not None or per_half is not None):
        raise typer.BadParameter(
            f"'{by.value}' cannot be combined with --by-budget, --subsets or --per-half.", param_hint="--by"
        )


def _read_subsets(path: Path, column: str) -> dict[str, list[str]]:
    """Read the subsets of each item; an item may be in several, one per row."""
    from steelyard.errors import DataError
    from steelyard.formats import read_table

    frame = read_table(path)
    item = next((name for name in ("item", "id") if name in frame.columns), None)
    if item is None or column not in frame.columns:
        missing = "item" if item is None else column
        raise DataError(
            f"there is no column '{missing}'; it has {', '.join(frame.columns)}.",
            "Give a table with the columns item and subset, or name the column: --subset-column genre.",
            file=str(path),
        )
    subsets: dict[str, list[str]] = {}
    for name, subset in frame.select(item, column).drop_nulls().iter_rows():
        subsets.setdefault(str(name), []).append(str(subset))
    return subsets


def _wide(frame: pl.DataFrame) -> pl.DataFrame | None:
    """Return a row for each budget or subset; None if there is neither."""
    import polars as pl

    group = next((name for name in ("per_half", "subset") if name in frame.columns), None)
    if group is None:
        return None
    names = {
        "split_half_spearman": "Spearman",
        "split_half_spearman_corrected": "Spearman, corrected",
        "split_half_pearson": "Pearson",
        "split_half_pearson_corrected": "Pearson, corrected",
    }
    rows = [name for name in ("criterion", group) if name in frame.columns]
    by_statistic = frame.with_columns(pl.col("statistic").replace(names)).pivot(
        "statistic", index=[*rows, "n"], values="value", aggregate_function="first"
    )
    return by_statistic.select(*rows, *names.values(), "n").rename({group: group.replace("_", " ")})


def _missing(observations: Observations, tags: dict[str, list[str]]) -> str:
    count = len(observations.items) - len(tags)
    return f"{count:,} items have no subset" if count else ""
