"""steelyard plan --judge: cost and precision of mixes of people and a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.cli.options import Format, open_study

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.observations import Observations
    from steelyard.records import Item


def plan_mixes(
    judge: str,
    pilot: Path | None,
    items: Sequence[Item],
    prices: tuple[float | None, float | None],
    target: float,
    chart: Path | None,
    form: Format,
    reading: Mapping[str, Any],
) -> None:
    """Print the mixes of people and a model, estimated from a pilot that both have judged."""
    from steelyard.cli.output import print_frame, print_notes, print_whole
    from steelyard.errors import ConfigError
    from steelyard.simulate.mixes import Prices, cheapest, mix_table, read_mix_pilot

    if pilot is None or None in prices:
        raise ConfigError(
            "a plan with a model needs a pilot and both costs.",
            "Give --pilot (a study or a file), --price for a person's judgment and --model-price for the model's.",
        )
    people, scores, notes = _pilot(judge, pilot, reading)
    fitted = read_mix_pilot(people, scores)
    count, systems = len(items), max(1, len({item.group for item in items} - {None}))
    table = mix_table(fitted, count, Prices(float(prices[0] or 0), float(prices[1] or 0)), systems=systems)
    if form is Format.table:
        print_whole(_laid_out(table, count, systems))
    else:
        print_frame(table, form)
    if chart is not None:
        from steelyard.report.mix_chart import mix_chart
        from steelyard.report.plan_chart import save_chart

        save_chart(mix_chart(table, target), chart)
        notes = [*notes, f"chart written to {chart}"]
    mixed, alone = cheapest(table, target)
    print_notes(
        [
            *notes,
            fitted.note,
            f"for a correlation of {target:g} with the true scores: {_words(mixed)} with the model, {_words(alone)} "
            "without it",
            "* no cheaper mix is as precise; the design adaptive with model_cost, which decides item by item, may cost "
            "less",
        ]
    )


def _pilot(judge: str, pilot: Path, reading: Mapping[str, Any]) -> tuple[Observations, dict[str, float], list[str]]:
    """Return people's ratings and the model's scores, from a study or from a file that has both."""
    from steelyard.errors import DataError
    from steelyard.observations import Ratings
    from steelyard.simulate.mixes import without_annotator

    if pilot.is_dir():
        from steelyard.study.judge_scores import judge_item_scores

        with open_study(pilot) as study:
            by_criterion = study.observations(study.config.stages[0].protocol.kinds[0], annotator_kind="person")
            if not by_criterion:
                raise DataError("people have not judged anything in the pilot.", "Collect judgments first.")
            criterion = next(iter(by_criterion))
            note = [f"criterion {criterion}"] if criterion else []
            return by_criterion[criterion], judge_item_scores(study, judge, criterion), note
    from steelyard.formats import read_judgments

    read = read_judgments(pilot, **reading)
    observations = next(iter(read.by_criterion.values()))
    if not isinstance(observations, Ratings):
        raise DataError(f"{pilot.name} has {observations.kind}, not ratings.", "Plan mixes from ratings.")
    return (*without_annotator(observations, judge), list(read.notes))


def _words(row: dict[str, object] | None) -> str:
    return "not reached" if row is None else f"{row['cost']:,.4g} ({row['people_per_item']:g} ratings per item)"


def _laid_out(table: Any, items: int, systems: int) -> Any:
    from rich.table import Table
    from rich.text import Text

    what = f"{items:,} items" if systems == 1 else f"{items:,} items of {systems} systems"
    title = Text(f"Mixes of people and a model for {what}", style="bold")
    laid = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    laid.padding = (0, 1, 0, 0)
    laid.add_column("ratings by people", justify="right")
    laid.add_column("model")
    for head in ("cost", "correlation", "95 % range", "± item", "± mean" if systems == 1 else "± system"):
        laid.add_column(head, justify="right", no_wrap=True)
    laid.add_column("")
    for row in table.iter_rows(named=True):
        laid.add_row(
            f"{row['people_per_item']:g} per item",
            "yes" if row["model"] else "–",
            f"{row['cost']:,.2f}" if row["cost"] < 1000 else f"{row['cost']:,.0f}",
            f"{row['correlation']:.3f}",
            f"{row['lower']:.2f}–{row['upper']:.2f}",
            f"{row['half_width']:.3g}",
            f"{row['mean_half_width']:.3g}",
            "*" if row["frontier"] else "",
        )
    return laid
