"""steelyard annotators-needed: how accurate n annotators are together, and how many match an expert."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.options import ColumnsOption, Format, FormatOption, KindOption, ScaleOption, pairs

if TYPE_CHECKING:
    from steelyard.observations import Observations
    from steelyard.reliability.meta_annotator import MetaAnnotator


def annotators_needed(
    sources: Annotated[
        list[str],
        typer.Argument(help="A study's folder, or files of ratings or labels.", metavar="SOURCE…", show_default=False),
    ],
    gold: Annotated[
        Path, typer.Option("--gold", metavar="FILE", help="Known answers (columns item, gold).", show_default=False)
    ],
    expert: Annotated[
        float | None,
        typer.Option("--expert", help="Accuracy (or r) of one expert.", show_default=False),
    ] = None,
    experts: Annotated[
        Path | None,
        typer.Option(
            "--experts", metavar="FILE", help="Experts' ratings; their agreement is used.", show_default=False
        ),
    ] = None,
    most: Annotated[int, typer.Option("--most", min=1, help="Largest number of annotators.")] = 10,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    form: FormatOption = Format.table,
    columns: ColumnsOption = None,
    kind: KindOption = None,
    scale: ScaleOption = None,
) -> None:
    """Measure how many annotators together are as accurate as an expert.

    Labels: accuracy of the majority of n annotators. Ratings: correlation of the mean of n ratings with the known
    values.

    Example: steelyard annotators-needed labels.csv --gold gold.csv --expert 0.91
    """
    from rich.console import Console

    from steelyard.cli.output import plain_table, print_frame, print_notes, with_criteria
    from steelyard.cli.reading import called, judgments_by_criterion
    from steelyard.formats import read_gold

    if expert is not None and experts is not None:
        raise typer.BadParameter("cannot be combined with --experts.", param_hint="--expert")
    options = {"kind": kind, "columns": pairs(columns, "--columns"), "scale": scale}
    by_criterion, notes = judgments_by_criterion(sources, options)
    panels = judgments_by_criterion([str(experts)], options)[0] if experts is not None else {}
    answers = read_gold(gold)
    curves = {
        name: _curve(part, answers.get(name, answers.get("", {})), panels.get(name, expert), most, seed)
        for name, part in by_criterion.items()
    }
    frame = with_criteria({name: curve.table for name, curve in curves.items()})
    print_notes(notes)
    if form is not Format.table:
        print_frame(frame, form)
    else:
        names = [name for name in ("criterion",) if name in frame.columns]
        console = Console(highlight=False)
        title = f"{called(sources)}: accuracy of several annotators together"
        console.print(plain_table(frame.select(*names, "annotators", "value", "lower", "upper", "n"), title))
        for name, curve in curves.items():
            if curve.least is not None and curve.expert is not None:
                what = f"{name}: " if name else ""
                count = f"{curve.least} annotator{'' if curve.least == 1 else 's'}"
                console.print(f"{what}{count} together match one expert ({curve.expert:.3f}).")
    print_notes(dict.fromkeys(note for curve in curves.values() for note in curve.notes))


def _curve(
    observations: Observations, gold: dict[str, str], expert: float | Observations | None, most: int, seed: int
) -> MetaAnnotator:
    """Compute the curve of one criterion; the known values of ratings are numbers."""
    from steelyard.errors import DataError
    from steelyard.observations import Ratings
    from steelyard.reliability import meta_annotator

    if not isinstance(expert, Ratings | float | None):
        raise DataError("the experts' file does not contain ratings.", "Give their accuracy instead: --expert 0.9.")
    values: dict[str, float] | dict[str, str] = gold
    if isinstance(observations, Ratings):
        try:
            values = {item: float(answer) for item, answer in gold.items()}
        except ValueError as error:
            raise DataError(f"a known value is not a number: {error}.", "Give numbers on the ratings' scale.") from None
    return meta_annotator(observations, values, sizes=range(1, most + 1), expert=expert, seed=seed)
