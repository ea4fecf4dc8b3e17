"""steelyard scores: scores of items, or of systems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.options import (
    ColumnsOption,
    Format,
    FormatOption,
    ScaleOption,
    existing_folder,
    open_study,
    pairs,
    settings,
)

if TYPE_CHECKING:
    from steelyard.models.systems.comparison import SystemComparison, SystemOptions
    from steelyard.study import Study

ITEM, SYSTEM, GROUP = "item", "system", "group"


def scores(
    source: Annotated[
        Path,
        typer.Argument(
            help="The study's folder; with --by system also a file of judgments.",
            metavar="DIR|FILE",
            show_default=False,
        ),
    ],
    form: FormatOption = Format.table,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Model instead of the study's.", show_default=False)
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Setting of the model. Repeatable.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="item|system|COLUMN",
            help="item or system; add a column of the items to compare systems within it.",
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=0, help="Number of items to print; 0 for all.")] = 0,
    differences: Annotated[
        bool, typer.Option("--differences", help="Print the pairwise differences of systems.")
    ] = False,
    method: Annotated[
        str, typer.Option("--method", help="Comparison of systems: two_way, bootstrap or wmt.")
    ] = "two_way",
    unit: Annotated[str, typer.Option("--unit", help="Unit of systems' scores from comparisons: natural or elo.")] = (
        "natural"
    ),
    label: Annotated[
        str | None,
        typer.Option(
            "--label", help="Label whose proportion is the systems' score; default: each.", show_default=False
        ),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option("--items", help="Items with system and source, for a file of judgments.", show_default=False),
    ] = None,
    columns: ColumnsOption = None,
    scale: ScaleOption = None,
    annotator_group: Annotated[
        str | None,
        typer.Option(
            "--annotator-group",
            metavar="NAME",
            help="Score by group of annotators: a question or a column.",
            show_default=False,
        ),
    ] = None,
    annotators: Annotated[
        Path | None,
        typer.Option(
            "--annotators",
            help="Table with 'annotator' and columns of groups; default: the questionnaire.",
            show_default=False,
        ),
    ] = None,
    min_group: Annotated[
        int | None,
        typer.Option("--min-group", min=2, help="Smallest group to show; default: the study's, 5.", show_default=False),
    ] = None,
    latex: Annotated[
        Path | None,
        typer.Option("--latex", help="Write the systems as a LaTeX table to this file.", show_default=False),
    ] = None,
) -> None:
    """Print the scores of a study's items, or compare its systems.

    Example: steelyard scores words --top 10

    Groups of annotators, by an answer to the study's questionnaire or by a column of a table:
    steelyard scores words --annotator-group age --differences

    Systems, from a study or from votes: steelyard scores mt --by system · steelyard scores votes.csv --by system
    """
    if annotator_group is not None:
        _print_groups(source, annotator_group, annotators, min_group, differences, form, (columns, scale))
        return
    names = by or [ITEM]
    if names == [ITEM]:
        _print_items(existing_folder(source), form, model, set_, top)
        return
    from steelyard import registry
    from steelyard.models.comparisons.latent import LatentScale
    from steelyard.models.systems.comparison import SystemOptions

    chosen = registry.create("models", model, settings(set_, "--set")) if model else None
    if chosen is not None and not isinstance(chosen, LatentScale):
        raise typer.BadParameter(f"the model {model} scores items, not systems.", param_hint="--model")
    options = SystemOptions(method=method, model=chosen, unit=unit, label=label)  # type: ignore[arg-type]  # it checks them itself
    subsets = [name for name in names if name not in (SYSTEM, GROUP)]
    if source.is_file():
        comparison, title = _compare_file(source, items, columns, scale, options, subsets), source.name
    else:
        comparison, title = _compare_study(existing_folder(source), options, subsets)
    _print_systems(comparison, title, form, differences)
    if latex is not None:
        _write_latex(comparison, latex)


def _print_groups(
    source: Path,
    column: str,
    annotators: Path | None,
    min_group: int | None,
    differences: bool,
    form: Format,
    reading: tuple[list[str] | None, tuple[float, float] | None],
) -> None:
    """Print scores by group of annotators, from a study or a file of ratings."""
    from steelyard.cli.output import plain_table, print_frame, print_notes, print_whole
    from steelyard.formats import read_judgments
    from steelyard.models.perspectives import MIN_GROUP, group_scores
    from steelyard.observations import Observations, Ratings

    observations: Observations | None
    if source.is_file():
        if annotators is None:
            raise typer.BadParameter("give the table of annotators and their groups.", param_hint="--annotators")
        groups = _groups(annotators, column)
        observations = read_judgments(source, columns=pairs(reading[0], "--columns"), scale=reading[1]).observations
    else:
        with open_study(existing_folder(source)) as study:
            observations = next(iter(study.observations("ratings").values()), None)
            groups = _groups_of_study(study, annotators, column)
            min_group = min_group or study.config.annotators.min_group
    min_group = min_group or MIN_GROUP
    if not isinstance(observations, Ratings):
        raise typer.BadParameter("scores by group need ratings.", param_hint="--annotator-group")
    result = group_scores(observations, groups, min_group=min_group)
    frame = result.differences if differences else result.scores
    if form is not Format.table:
        print_frame(frame, form)
        return
    print_whole(plain_table(frame, f"{'differences' if differences else 'scores'} by {column}, 95 % intervals"))
    print_whole(plain_table(result.groups, "groups"))
    notes = [f"one scale for all groups? permutation test of group × item differences: p = {result.p_value:.3g}"]
    if result.hidden:
        notes.append(f"{result.hidden} group(s) with fewer than {min_group} annotators are not shown")
    print_notes(notes)


def _groups_of_study(study: Study, annotators: Path | None, column: str) -> dict[str, str]:
    """Return each annotator's group by the questionnaire, or by a table of names or pseudonyms."""
    if annotators is None:
        return study.annotators.groups(column)
    groups = _groups(annotators, column)
    called = study.privacy.names().called
    return groups | {name: groups[pseudonym] for name, pseudonym in called.items() if pseudonym in groups}


def _groups(file: Path, column: str) -> dict[str, str]:
    from steelyard.errors import DataError, did_you_mean
    from steelyard.formats import read_table

    table = read_table(file)
    for name in ("annotator", column):
        if name not in table.columns:
            raise DataError(f"there is no column '{name}'.", did_you_mean(name, table.columns), file=str(file))
    return {str(name): str(group) for name, group in table.select("annotator", column).iter_rows() if group is not None}


def _print_items(folder: Path, form: Format, model: str | None, set_: list[str] | None, top: int) -> None:
    from steelyard import registry
    from steelyard.cli.output import print_notes, print_scores

    chosen = registry.create("models", model, settings(set_, "--set")) if model else None
    with open_study(folder) as study:
        fitted = study.fit(chosen)
        title = f"{study.config.title}: {fitted.model}, {study.status().judgments:,} judgments"
    print_scores(fitted.scores, title, form, top or None, fitted.level)
    print_notes(fitted.notes)


def _compare_study(folder: Path, options: SystemOptions, subsets: list[str]) -> tuple[SystemComparison, str]:

    with open_study(folder) as study:
        return study.systems(options, by=subsets), study.config.title


def _compare_file(
    file: Path,
    items: Path | None,
    columns: list[str] | None,
    scale: tuple[float, float] | None,
    options: SystemOptions,
    subsets: list[str],
) -> SystemComparison:
    from steelyard.models.systems.compare_systems import compare_systems

    mapping = pairs(columns, "--columns")
    system, source = mapping.pop("system", None), mapping.pop("source", None)
    return compare_systems(
        file,
        items=items,
        system=system,
        source=source.split("+") if source and "+" in source else source,
        by=subsets,
        columns=mapping,
        scale=scale,
        method=options.method,
        model=options.model,
        unit=options.unit,
        label=options.label,
    )


def _print_systems(comparison: SystemComparison, title: str, form: Format, differences: bool) -> None:
    from rich.console import Console

    from steelyard.cli.output import (
        differences_table,
        plain_table,
        print_frame,
        print_notes,
        print_whole,
        systems_table,
    )

    frame = comparison.differences if differences else comparison.scores
    if form is not Format.table:
        print_frame(frame, form)
    elif differences:
        print_whole(differences_table(frame, title, comparison.level))
    else:
        print_whole(systems_table(frame, title, comparison.level))
    if comparison.coefficients is not None and form is Format.table:
        Console().print(plain_table(comparison.coefficients, "covariates"))
    print_notes(comparison.notes)


def _write_latex(comparison: SystemComparison, file: Path) -> None:
    from steelyard.report.latex import latex_table
    from steelyard.report.systems import parts_of, systems_table

    tables = [latex_table(systems_table(scores, comparison.level, name)) for name, scores, _ in parts_of(comparison)]
    file.write_text("\n".join(tables), encoding="utf-8")
    typer.echo(f"{len(tables)} LaTeX table{'s' if len(tables) > 1 else ''} written to {file}", err=True)
