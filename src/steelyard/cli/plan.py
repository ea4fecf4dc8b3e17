"""steelyard plan: how many judgments a reliability takes, by protocol and design."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.options import (
    ColumnsOption,
    Format,
    FormatOption,
    KindOption,
    ScaleOption,
    SkipBadRowsOption,
    pairs,
    settings,
)

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

    from steelyard.simulate import Plan, Population
    from steelyard.simulate.plan_layout import Layout


def plan(
    items: Annotated[
        str | None,
        typer.Option(
            "--items",
            "-n",
            metavar="N|FILE",
            help="Number of items, or a file of items or outputs.",
            show_default=False,
        ),
    ] = None,
    systems: Annotated[
        int | None,
        typer.Option("--systems", min=2, help="Number of systems to compare, with --sources.", show_default=False),
    ] = None,
    sources: Annotated[
        int | None,
        typer.Option(
            "--sources", min=4, help="Number of sources; every system has an output for each.", show_default=False
        ),
    ] = None,
    effects: Annotated[
        list[str] | None,
        typer.Option(
            "--set-systems",
            metavar="KEY=VALUE",
            help="Set system_sd, source_sd or interaction_sd, from 0 to 1. Repeatable.",
        ),
    ] = None,
    target: Annotated[
        float,
        typer.Option(
            "--target-reliability", "-t", help="Target split-half Spearman correlation, not Spearman–Brown corrected."
        ),
    ] = 0.9,
    protocol: Annotated[
        list[str] | None,
        typer.Option("--protocol", "-p", help="Protocol to plan with; default: the common ones. Repeatable."),
    ] = None,
    design: Annotated[
        list[str] | None,
        typer.Option("--design", "-d", help="Design to plan with; default: all suitable ones. Repeatable."),
    ] = None,
    pilot: Annotated[
        Path | None,
        typer.Option("--pilot", help="Pilot judgments to estimate annotators and items from.", show_default=False),
    ] = None,
    annotators: Annotated[int, typer.Option("--annotators", min=2, help="Number of annotators.")] = 50,
    price: Annotated[
        float | None, typer.Option("--price", min=0, help="Cost per judgment, in any currency.", show_default=False)
    ] = None,
    wage: Annotated[
        float | None, typer.Option("--wage", min=0, help="Cost per hour, instead of --price.", show_default=False)
    ] = None,
    seconds: Annotated[
        list[str] | None,
        typer.Option("--seconds", metavar="[PROTOCOL=]S", help="Seconds per judgment. Repeatable."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Property of annotators, e.g. noise=0.2. Repeatable."),
    ] = None,
    chart: Annotated[
        Path | None, typer.Option("--chart", help="Draw a chart: .svg, .png or .html file.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=0, help="Number of processes; 0 for one per core.")] = 0,
    form: FormatOption = Format.table,
    columns: ColumnsOption = None,
    kind: KindOption = None,
    scale: ScaleOption = None,
    skip_bad_rows: SkipBadRowsOption = False,
) -> None:
    """Estimate by simulation how many judgments a target reliability needs.

    Example: steelyard plan --items 500 --protocol best_worst --target-reliability 0.9 --price 0.15

    Systems compared on the same sources: steelyard plan --systems 6 --sources 50 · steelyard plan --items outputs.csv
    """
    import os

    import numpy as np
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from steelyard.cli.output import err_console, print_frame, print_notes, print_whole
    from steelyard.errors import ConfigError
    from steelyard.simulate import Population, SystemLayout, choose_options, read_pilot
    from steelyard.simulate import plan as simulate_plan
    from steelyard.simulate.plan_options import DEFAULT_OPTIONS, SYSTEM_OPTIONS
    from steelyard.simulate.planner import REPLICATES

    if price is not None and wage is not None:
        raise ConfigError(
            "--price and --wage exclude each other.", "Give the cost per judgment (--price) or per hour (--wage)."
        )
    if chart is not None and chart.suffix.lower() not in {".svg", ".png", ".html"}:
        raise ConfigError(f"'{chart.name}' has no known chart format.", "Use a name that ends in .svg, .png or .html.")
    layout = _layout(items, systems, sources, settings(effects, "--set-systems"))
    default = SYSTEM_OPTIONS if isinstance(layout, SystemLayout) else DEFAULT_OPTIONS
    options = choose_options(layout.n_comparable, protocol or (), design or (), default=default)
    paces = _paces(seconds, [option.protocol for option in options])
    values = settings(set_, "--set")
    populations: tuple[Population, ...] = (Population.of(values),)
    notes: list[str] = []
    if pilot is not None:
        from steelyard.formats import read_judgments

        read = read_judgments(
            pilot, kind=kind, columns=pairs(columns, "--columns"), scale=scale, skip_bad_rows=skip_bad_rows
        )
        fitted = read_pilot(read, np.random.default_rng(seed), start=populations[0])
        populations = fitted.samples
        notes += [*read.notes, _pilot_note(fitted.population), *fitted.notes]
    console = err_console()
    bar_columns = (TextColumn("simulating"), BarColumn(), TextColumn("{task.percentage:.0f} %"), TimeElapsedColumn())
    with Progress(*bar_columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=len(options) * REPLICATES)
        result = simulate_plan(
            layout,
            target,
            options,
            populations=populations,
            people=annotators,
            seed=seed,
            jobs=jobs or os.cpu_count() or 1,
            on_progress=lambda steps: progress.advance(bar, steps),
        )
    table = result.table(price=price, wage=wage, seconds=paces)
    if form is Format.table:
        print_whole(_laid_out(table, result))
    else:
        print_frame(table, form)
    if chart is not None:
        from steelyard.report.plan_chart import plan_chart, save_chart

        save_chart(plan_chart(result.curve, table, target), chart)
        notes.append(f"chart written to {chart}")
    print_notes([*notes, *_notes(result, populations[0], pilot is not None)])


def _layout(items: str | None, systems: int | None, sources: int | None, effects: dict[str, Any]) -> Layout:
    """Return what is planned: items, or systems on the same sources."""
    from steelyard.errors import ConfigError
    from steelyard.formats import read_items
    from steelyard.formats.outputs import has_systems, read_outputs
    from steelyard.simulate import ItemLayout, SystemLayout
    from steelyard.simulate.plan_layout import SystemEffects

    if (systems is None) != (sources is None) or (items is None) == (systems is None):
        raise ConfigError(
            "a plan needs either items, or systems and sources.",
            "Give --items N, --items FILE, or both --systems and --sources.",
        )
    if systems is not None and sources is not None:
        return SystemLayout.of_counts(systems, sources, SystemEffects.of(effects))
    if items is None or items.isdecimal():
        return ItemLayout(int(items or 0))
    if has_systems(items):
        outputs = read_outputs(items).frame.select("system", "source").rows()
        return SystemLayout.of_outputs(outputs, SystemEffects.of(effects))
    return ItemLayout(len(read_items(items)))


def _paces(given: list[str] | None, protocols: list[str]) -> dict[str, float]:
    from steelyard.errors import ConfigError, did_you_mean

    seconds_by_protocol: dict[str, float] = {}
    for text in given or []:
        name, equals, value = text.rpartition("=")
        try:
            pace = float(value)
        except ValueError:
            raise ConfigError(
                f"'{value}' is not a number of seconds.", "Write --seconds 12, or --seconds pairwise=9."
            ) from None
        if equals and name not in protocols:
            raise ConfigError(f"'{name}' is not one of the protocols of this plan.", did_you_mean(name, protocols))
        if not pace > 0:
            raise ConfigError(
                f"--seconds must be positive, but is {pace:g}.", "Give the seconds that one judgment takes."
            )
        if not equals and len(set(protocols)) > 1:
            raise ConfigError(
                "--seconds gives one time for several protocols.", "Write --seconds pairwise=9, or choose a --protocol."
            )
        seconds_by_protocol |= {name: pace} if equals else dict.fromkeys(protocols, pace)
    return seconds_by_protocol


def _pilot_note(population: Population) -> str:
    parts = (
        f"{name} {getattr(population, name):.2f}" for name in ("mean", "item_sd", "noise", "bias", "stretch", "lapse")
    )
    return f"estimated from the pilot, on a scale from 0 to 1: {', '.join(parts)}"


def _laid_out(table: pl.DataFrame, found: Plan) -> Table:
    from rich.table import Table
    from rich.text import Text

    title = f"Judgments needed for {found.layout.description}, split-half reliability {found.target:g}"
    laid = Table(title=Text(title, style="bold"), title_justify="left", header_style="bold", box=None, pad_edge=False)
    laid.padding = (0, 1, 0, 0)
    laid.add_column("protocol", overflow="fold")
    laid.add_column("design", overflow="fold")
    has_cost = table["cost"].is_not_null().any()
    for head in ("judgments", "90 % range", "items", "hours", *(("cost",) if has_cost else ()), "truth"):
        laid.add_column(head, justify="right", no_wrap=True)
    for row in table.iter_rows(named=True):
        if row["judgments"] is None:
            cells = ["–", f"best {row['best']:.2f}", str(row["items_per_judgment"])]
            cells += [""] * (3 if has_cost else 2)
        else:
            cells = [
                f"{row['judgments']:,}",
                f"{_short(row['lower'])}–{_short(row['upper'])}",
                str(row["items_per_judgment"]),
                f"{row['hours']:,.1f}" if row["hours"] < 100 else f"{row['hours']:,.0f}",
                *((f"{row['cost']:,.2f}" if row["cost"] < 1000 else f"{row['cost']:,.0f}",) if has_cost else ()),
                f"{row['truth']:.3f}",
            ]
        laid.add_row(row["protocol"], row["design"], *cells)
    return laid


def _short(count: int) -> str:
    """Write an end of a range, which is uncertain anyway, in three digits once it has more than four."""
    if count < 10_000:
        return f"{count:,}"
    size, sign = (1_000_000, "M") if count >= 999_500 else (1000, "k")
    return f"{count / size:.{2 if count < 9.995 * size else 1 if count < 99.95 * size else 0}f}{sign}"


def _notes(found: Plan, population: Population, from_pilot: bool) -> list[str]:
    from steelyard.simulate import SystemLayout
    from steelyard.simulate.planner import spearman_brown

    layout = found.layout
    by_system = isinstance(layout, SystemLayout)
    halves = (
        "the systems' scores from two halves of the sources" if by_system else "scores from two halves of the judgments"
    )
    notes = [
        f"the target is an uncorrected split-half correlation: {halves} correlate at {found.target:g}; the expected "
        f"reliability of all judgments is {spearman_brown(found.target):.3f} (Spearman–Brown corrected)",
        "90 % range: over simulated studies; items: items per judgment; truth: correlation of the scores "
        "with the true scores of the simulation",
        *found.notes,
    ]
    if isinstance(layout, SystemLayout):
        notes.append(
            "assumed standard deviations on a scale from 0 to 1: systems {:g}, sources {:g}, interaction of system "
            "and source "
            "{:g}; systems closer to each other need more judgments (--set-systems system_sd=0.02), and more sources "
            "help most".format(*layout.effects)
        )
    if not from_pilot:
        notes.append(
            f"annotators are simulated (noise {population.noise:g}, bias {population.bias:g} of the scale, "
            f"{100 * population.lapse:g} % lapses); estimate them from a pilot with --pilot"
        )
    return notes
