"""steelyard plan: the number of judgments needed for a target, by protocol and design."""

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

    from steelyard.formats import JudgmentFile
    from steelyard.simulate import Plan, PlanOption, Population
    from steelyard.simulate.plan_layout import Layout
    from steelyard.simulate.plan_targets import Target


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
    study: Annotated[
        Path | None,
        typer.Option(
            "--study", metavar="DIR", help="Plan the protocol, design and model of this study.", show_default=False
        ),
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(
            "--target-reliability",
            "-t",
            help="Target split-half Spearman correlation, uncorrected; default: 0.9.",
            show_default=False,
        ),
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(
            "--target-width", help="Target width of 95 % intervals, as a fraction of the scale.", show_default=False
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            "--top", min=1, help="Number of top items to identify correctly, with --probability.", show_default=False
        ),
    ] = None,
    probability: Annotated[
        float, typer.Option("--probability", help="Probability that the top items are correct.")
    ] = 0.9,
    difference: Annotated[
        float | None,
        typer.Option(
            "--difference",
            help="Difference between two systems to detect, as a fraction of the scale.",
            show_default=False,
        ),
    ] = None,
    power: Annotated[float, typer.Option("--power", help="Probability that --difference is significant.")] = 0.8,
    hours: Annotated[
        float | None,
        typer.Option("--hours", min=0.01, help="Report what this many hours of work can achieve.", show_default=False),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            min=0.01,
            help="Report what this budget can achieve, with --price or --wage.",
            show_default=False,
        ),
    ] = None,
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
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge", help="Plan mixes of people and this model or column, from --pilot.", show_default=False
        ),
    ] = None,
    model_price: Annotated[
        float | None, typer.Option("--model-price", min=0, help="Cost per judgment of --judge.", show_default=False)
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
    """Estimate by simulation how many judgments a target needs.

    Targets: reliability, width of intervals, correct top items, or the power to detect a difference between systems.

    Example: steelyard plan --items 500 --protocol best_worst --target-reliability 0.9 --price 0.15

    An existing study: steelyard plan --study words

    Two systems: steelyard plan --systems 2 --sources 100 --difference 0.05 --power 0.8

    Systems compared on the same sources: steelyard plan --systems 6 --sources 50 · steelyard plan --items outputs.csv

    People and a model: steelyard plan --items 500 --pilot words --judge gpt-4o --price 0.2 --model-price 0.002
    """
    from steelyard.cli.output import print_frame, print_notes, print_whole
    from steelyard.simulate import Population, Reliability

    _check_options(price, wage, budget, chart)
    goal = _target(target, width, (top, probability), (difference, power))
    system_effects = settings(effects, "--set-systems")
    layout, own, notes = (
        (_layout(items, systems, sources, system_effects), [], [])
        if study is None
        else _of_study(study, system_effects)
    )
    reading: dict[str, Any] = {
        "kind": kind,
        "columns": pairs(columns, "--columns"),
        "scale": scale,
        "skip_bad_rows": skip_bad_rows,
    }
    if judge is not None:
        from steelyard.cli.plan_mixes import plan_mixes

        plan_mixes(judge, pilot, layout.items, (price, model_price), target or 0.9, chart, form, reading)
        return
    options = _options(layout, own, protocol or [], design or [])
    paces = _paces(seconds, [option.protocol for option in options])
    populations: tuple[Population, ...] = (Population.of(settings(set_, "--set")),)
    if pilot is not None:
        from steelyard.formats import read_judgments

        populations, pilot_notes = _fitted(read_judgments(pilot, **reading), populations[0], seed)
        notes += pilot_notes
    result = _simulated(layout, goal, options, populations, annotators, seed, jobs)
    table = result.table(price=price, wage=wage, seconds=paces)
    if form is Format.table:
        print_whole(_laid_out(table, result))
    else:
        print_frame(table, form)
    if chart is not None:
        from steelyard.report.plan_chart import plan_chart, save_chart

        measure = {} if isinstance(goal, Reliability) else {"measure": goal.measure}
        save_chart(plan_chart(result.curve, table, goal.goal, **measure), chart)
        notes.append(f"chart written to {chart}")
    notes += _reached(result, table, hours, budget, price, wage)
    sentence = result.preregistration(table.row(0, named=True))
    print_notes([*notes, *_notes(result, populations[0], pilot is not None), f"for a preregistration: {sentence}"])


def _check_options(price: float | None, wage: float | None, budget: float | None, chart: Path | None) -> None:
    from steelyard.errors import ConfigError

    if price is not None and wage is not None:
        raise ConfigError(
            "--price and --wage cannot be combined.", "Give the cost per judgment (--price) or per hour (--wage)."
        )
    if budget is not None and price is None and wage is None:
        raise ConfigError("--budget needs the cost of a judgment.", "Add --price (per judgment) or --wage (per hour).")
    if chart is not None and chart.suffix.lower() not in {".svg", ".png", ".html"}:
        raise ConfigError(f"'{chart.name}' has no known chart format.", "Use a name that ends in .svg, .png or .html.")


def _options(layout: Layout, own: list[PlanOption], protocols: list[str], designs: list[str]) -> list[PlanOption]:
    """Return the study's own option, and those that were named; the common ones where there is neither."""
    from steelyard.simulate import SystemLayout, choose_options
    from steelyard.simulate.plan_options import DEFAULT_OPTIONS, SYSTEM_OPTIONS

    if own and not protocols and not designs:
        return own
    default = SYSTEM_OPTIONS if isinstance(layout, SystemLayout) else DEFAULT_OPTIONS
    names = protocols or [option.protocol for option in own]
    others = choose_options(layout.n_comparable, names, designs, default=default)
    return [*own, *(option for option in others if option.name not in {one.name for one in own})]


def _fitted(read: JudgmentFile, start: Population, seed: int) -> tuple[tuple[Population, ...], list[str]]:
    """Return populations that could have produced a pilot, and notes about them."""
    import numpy as np

    from steelyard.simulate import read_pilot

    fitted = read_pilot(read, np.random.default_rng(seed), start=start)
    return fitted.samples, [*read.notes, _pilot_note(fitted.population), *fitted.notes]


def _simulated(
    layout: Layout,
    goal: Target,
    options: list[PlanOption],
    populations: tuple[Population, ...],
    annotators: int,
    seed: int,
    jobs: int,
) -> Plan:
    """Simulate the options, with a progress bar."""
    import os

    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from steelyard.cli.output import err_console
    from steelyard.simulate import plan as simulate_plan
    from steelyard.simulate.planner import REPLICATES

    bar_columns = (TextColumn("simulating"), BarColumn(), TextColumn("{task.percentage:.0f} %"), TimeElapsedColumn())
    with Progress(*bar_columns, console=err_console(), transient=True) as progress:
        bar = progress.add_task("", total=len(options) * REPLICATES)
        return simulate_plan(
            layout,
            goal,
            options,
            populations=populations,
            people=annotators,
            seed=seed,
            jobs=jobs or os.cpu_count() or 1,
            on_progress=lambda steps: progress.advance(bar, steps),
        )


def _target(
    reliability: float | None,
    width: float | None,
    top: tuple[int | None, float],
    difference: tuple[float | None, float],
) -> Target:
    """Return the one target that was given; by default a reliability of 0.9."""
    from steelyard.errors import ConfigError
    from steelyard.simulate import IntervalWidth, Reliability, SystemDifference, TopItems

    targets: list[Target] = []
    if reliability is not None:
        targets.append(Reliability(reliability))
    if width is not None:
        targets.append(IntervalWidth(width))
    if top[0] is not None:
        targets.append(TopItems(top[0], top[1]))
    if difference[0] is not None:
        targets.append(SystemDifference(difference[0], difference[1]))
    if len(targets) > 1:
        raise ConfigError(
            "a plan can have only one target.",
            "Give one of --target-reliability, --target-width, --top and --difference.",
        )
    return targets[0] if targets else Reliability(0.9)


def _of_study(folder: Path, effects: dict[str, Any]) -> tuple[Layout, list[PlanOption], list[str]]:
    """Return the items of a study, its protocol, design and model, and notes on when its checks can act."""
    from steelyard.cli.options import existing_folder
    from steelyard.simulate import PlanOption
    from steelyard.simulate.plan_layout import SystemEffects, layout_of_items
    from steelyard.study.check_plan import describe_checks
    from steelyard.study.opening import check_study, read_checks

    config, items = check_study(existing_folder(folder))
    checks = describe_checks(config, len(read_checks(folder, config, items)))
    notes = [f"checks: {line}" for line in (*checks.sentences, *checks.warnings)]
    return layout_of_items(items, SystemEffects.of(effects)), [PlanOption.of_study(config)], notes


def _reached(
    result: Plan,
    table: pl.DataFrame,
    hours: float | None,
    budget: float | None,
    price: float | None,
    wage: float | None,
) -> list[str]:
    """Return notes on what a number of hours or a budget achieves, for each option."""
    notes = []
    for row in table.iter_rows(named=True):
        for amount, unit in ((hours, "hours"), (budget, "of cost")):
            if amount is None:
                continue
            judgments = amount * 3600 / row["seconds"]
            if unit == "of cost":
                judgments = amount / price if price is not None else amount / (wage or 1) * 3600 / row["seconds"]
            value, low, high = result.at(row["protocol"], row["design"], judgments)
            note = (
                f"{amount:g} {unit} allow {judgments:,.0f} judgments with {row['protocol']} · {row['design']}: "
                f"{result.target.measure} {value:.2f} (90 % range {low:.2f}–{high:.2f})"
            )
            least, most = result.simulated(row["protocol"], row["design"])
            if not least <= judgments <= most:
                limit = (
                    f"the most simulated judgments, {most:,.0f}"
                    if judgments > most
                    else f"the fewest simulated judgments, {least:,.0f}"
                )
                note += f". These are the values for {limit}"
            notes.append(note)
    return notes


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

    title = f"Judgments needed for {found.layout.description}, {found.target.sentence}"
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
    from steelyard.reliability.split_trials import spearman_brown
    from steelyard.simulate import Reliability, SystemLayout

    layout = found.layout
    by_system = isinstance(layout, SystemLayout)
    halves = (
        "the systems' scores from two halves of the sources" if by_system else "scores from two halves of the judgments"
    )
    notes = [
        "90 % range: over simulated studies; items: items per judgment; truth: correlation of the scores "
        "with the true scores of the simulation",
        *found.notes,
    ]
    if isinstance(found.target, Reliability):
        notes.insert(
            0,
            f"the target is an uncorrected split-half correlation: {halves} correlate at {found.target.goal:g}; the "
            f"expected reliability of all judgments is {spearman_brown(found.target.goal):.3f} (Spearman–Brown "
            "corrected)",
        )
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
