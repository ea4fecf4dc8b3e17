"""steelyard link-scales: scores of several studies on one scale, by the items that they share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.options import Format, FormatOption, ScaleOption, open_study, settings

if TYPE_CHECKING:
    from steelyard.models.fit import Fit, Model


def link_scales(
    sources: Annotated[
        list[Path],
        typer.Argument(
            help="Two or more studies' folders or files of judgments; the first has the scale.",
            metavar="DIR|FILE...",
            show_default=False,
        ),
    ],
    anchors: Annotated[
        Path | None,
        typer.Option(
            "--anchors", help="Table with the anchors (column item); default: all shared items.", show_default=False
        ),
    ] = None,
    method: Annotated[
        str, typer.Option("--method", help="mean_sigma: shift and stretch; mean: shift only.")
    ] = "mean_sigma",
    keep_drifting: Annotated[
        bool, typer.Option("--keep-drifting", help="Keep anchors in the link whose scores differ unusually.")
    ] = False,
    show: Annotated[str, typer.Option("--show", help="Table for --format csv or json: scores, links, anchors.")] = (
        "scores"
    ),
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Model instead of the studies' own.", show_default=False)
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Setting of the model. Repeatable.")
    ] = None,
    scale: ScaleOption = None,
    top: Annotated[int, typer.Option("--top", min=0, help="Number of items to print; 0 for all.")] = 20,
    form: FormatOption = Format.table,
) -> None:
    """Place the scores of several studies on the scale of the first.

    Studies are linked by anchors: items that were judged in both. Anchors whose scores differ unusually are reported
    and left out of the link. Intervals include the error of the link.

    Example: steelyard link-scales spring autumn --format csv > common.csv
    """
    from steelyard import registry
    from steelyard.cli.output import plain_table, print_frame, print_notes, print_whole
    from steelyard.models.linking import LEAST_ANCHORS
    from steelyard.models.linking import link_scales as link

    if method not in LEAST_ANCHORS:
        raise typer.BadParameter(f"choose one of {', '.join(LEAST_ANCHORS)}.", param_hint="--method")
    if show not in ("scores", "links", "anchors"):
        raise typer.BadParameter("choose one of scores, links, anchors.", param_hint="--show")
    chosen = registry.create("models", model, settings(set_, "--set")) if model else None
    names = _names(sources)
    fits = {name: _fit(source, chosen, scale) for name, source in zip(names, sources, strict=True)}
    result = link(fits, anchors=_anchors(anchors), method=method, keep_drifting=keep_drifting)
    if form is not Format.table:
        print_frame(getattr(result, show), form)
        print_notes(result.notes)
        return
    scores = result.scores.head(top) if top else result.scores
    print_whole(plain_table(scores, f"scores on the scale of {names[0]}, 95 % intervals"))
    print_whole(plain_table(result.links, "links: score on the reference's scale = slope × score + intercept"))
    drifted = result.anchors.filter("drifted")
    if drifted.height:
        print_whole(plain_table(drifted, "anchors that drifted"))
    print_notes(result.notes)


def _names(sources: list[Path]) -> list[str]:
    """Name each source by its folder or file; by its whole path where two have the same name."""
    short = [source.resolve().name if source.is_dir() else source.name for source in sources]
    return short if len(set(short)) == len(short) else [str(source) for source in sources]


def _anchors(file: Path | None) -> list[str] | None:
    if file is None:
        return None
    from steelyard.errors import DataError, did_you_mean
    from steelyard.formats import read_table

    table = read_table(file)
    if "item" not in table.columns:
        raise DataError("there is no column 'item'.", did_you_mean("item", table.columns), file=str(file))
    return [str(item) for item in table["item"].drop_nulls()]


def _fit(source: Path, model: Model | None, scale: tuple[float, float] | None) -> Fit:
    """Fit a study, or the judgments of a file."""
    from steelyard import registry
    from steelyard.cli.fit import default_model
    from steelyard.errors import ConfigError
    from steelyard.formats import read_judgments
    from steelyard.models.by_criterion import fit_by_criterion

    if source.is_dir():
        with open_study(source) as study:
            return study.fit(model)
    if not source.exists():
        raise ConfigError(f"there is no folder or file {source}.", "Give studies' folders or files of judgments.")
    judgments = read_judgments(source, scale=scale)
    chosen = model or registry.create("models", default_model(judgments.kind), {})
    return fit_by_criterion(chosen, judgments.by_criterion, None)
