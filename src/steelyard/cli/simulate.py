"""steelyard simulate: simulate a study before running it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.options import Format, FormatOption, StudyFolder, existing_folder, settings

if TYPE_CHECKING:
    from rich.console import Console

    from steelyard.simulate import Population, StudyForecast
    from steelyard.study.config import StudyConfig


def simulate(
    folder: StudyFolder,
    annotators: Annotated[int, typer.Option("--annotators", min=1, help="Number of annotators.")] = 30,
    careless: Annotated[
        float, typer.Option("--careless", min=0, max=0.9, help="Fraction of careless annotators.")
    ] = 0.0,
    price: Annotated[
        float | None,
        typer.Option("--price", min=0, help="Cost per task; default: from study.toml.", show_default=False),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", min=0.1, help="Seconds per task; default: by protocol.", show_default=False),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Property of annotators, e.g. noise=0.2. Repeatable."),
    ] = None,
    show: Annotated[int, typer.Option("--show", min=0, help="Number of example tasks to print.")] = 3,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=0, help="Number of processes; 0 for one per core.")] = 1,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="DIR", help="Write one simulated study to a new folder.", show_default=False),
    ] = None,
    form: FormatOption = Format.table,
) -> None:
    """Simulate a study before running it: tasks, time, cost and reliability.

    The study's data are not changed.

    Example: steelyard simulate words --annotators 40 --careless 0.1

    With judgments, to try dashboard, report and export: steelyard simulate words --save words-simulated
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    from steelyard.cli.output import err_console, print_notes
    from steelyard.simulate import Population, forecast_study
    from steelyard.simulate.forecast import STUDIES
    from steelyard.study.opening import check_study, read_checks

    path = existing_folder(folder)
    config, items = check_study(path)
    population = Population.of({"careless": careless, **settings(set_, "--set")})
    console = err_console()
    if save is not None:
        _save(path, save, annotators, population, seed)
        return
    with Progress(TextColumn("simulating"), BarColumn(), console=console, transient=True) as progress:
        bar = progress.add_task("", total=STUDIES)
        forecast = forecast_study(
            config,
            items,
            checks=read_checks(path, config, items),
            people=annotators,
            population=population,
            price=price,
            seconds=seconds,
            examples=show,
            seed=seed,
            jobs=jobs or -1,
            on_progress=lambda: progress.advance(bar),
        )
    if form is Format.table:
        _print(Console(highlight=False), config, forecast)
    else:
        _print_rows(forecast, form)
    print_notes(
        [
            *forecast.warnings,
            f"annotators and scores are simulated ({STUDIES} studies); the 90 % range is over these studies",
        ]
    )


def _save(folder: Path, target: Path, people: int, population: Population, seed: int) -> None:
    """Write one simulated study to a new folder."""
    from rich.progress import Progress, TextColumn

    from steelyard.cli.output import err_console, print_done
    from steelyard.simulate.saved_study import save_simulated_study

    columns = (TextColumn("simulating"), TextColumn("{task.completed:,} judgments"))
    with Progress(*columns, console=err_console(), transient=True) as progress:
        bar = progress.add_task("", total=None)
        count = save_simulated_study(
            folder, target, people=people, population=population, seed=seed, on_progress=lambda: progress.advance(bar)
        )
    print_done(f"Wrote a simulated study with {count:,} judgments to {target}. Try: steelyard report {target}")


def _print(console: Console, config: StudyConfig, found: StudyForecast) -> None:
    import polars as pl
    from rich.text import Text

    from steelyard.cli.output import plain_table

    console.print(Text(config.title, style="bold"))
    for example in found.examples:
        question = next(
            (config.question_of(one) for one in config.stages if one.name == example.stage), config.question
        )
        console.print(Text(f"{question}  ", style="bold"), Text(f"[{example.stage}]", style="dim"), sep="")
        for item in example.items:
            console.print(Text(f"    {item.text}"))
        console.print(Text(f"  → {_said(example.answer, len(example.items))}", style="blue"))
    low, middle, high = found.tasks_each[0], found.tasks_each[len(found.tasks_each) // 2], found.tasks_each[-1]
    cost = "" if found.cost is None else f" · {config.pay.currency}{found.cost:,.2f}"
    console.print(
        f"{found.tasks:,} tasks · {found.people} annotators, {low} to {high} tasks each (median {middle}) · "
        f"{found.hours:,.1f} hours in total{cost}"
    )
    rows = [
        {
            "stage": stage.name,
            "design": stage.design,
            "tasks": f"{stage.tasks:,}",
            "reliability": "–" if stage.reliability is None else f"{stage.reliability:.3f}",
            "90 % range": "–" if stage.lower is None else f"{stage.lower:.3f} … {stage.upper:.3f}",
            "measure": stage.measure,
        }
        for stage in found.stages
    ]
    console.print(plain_table(pl.DataFrame(rows), ""))


def _said(answer: Any, n_items: int) -> str:
    """Write an answer shortly."""
    if isinstance(answer, list):
        return " > ".join(" = ".join(tier) for tier in answer)
    if n_items == 1 and len(answer) == 1:
        return str(next(iter(answer.values())))
    return ", ".join(f"{key}: {'a tie' if value is None else value}" for key, value in answer.items())


def _print_rows(found: StudyForecast, form: Format) -> None:
    from dataclasses import asdict

    import polars as pl

    from steelyard.cli.output import print_frame

    whole = {
        "annotators": found.people,
        "all_tasks": found.tasks,
        "fewest_each": found.tasks_each[0],
        "most_each": found.tasks_each[-1],
        "all_hours": found.hours,
        "cost": found.cost,
        "complete": found.complete,
    }
    print_frame(pl.DataFrame([{**asdict(stage), **whole} for stage in found.stages]), form)
