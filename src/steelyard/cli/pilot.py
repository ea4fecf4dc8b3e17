"""steelyard pilot: summarise a pilot and plan the full run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.options import StudyFolder, open_study

if TYPE_CHECKING:
    from steelyard.recruitment.pilot import PilotSummary, TimeQuartiles
    from steelyard.study import Study


def pilot(
    folder: StudyFolder,
    target: Annotated[
        float, typer.Option("--target-reliability", "-t", help="Target split-half reliability of the full run.")
    ] = 0.9,
    annotators: Annotated[
        int | None,
        typer.Option(
            "--annotators",
            min=2,
            help="Annotators of the full run; default: places on Prolific, or 50.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
) -> None:
    """Summarise a pilot: time, pay per hour, agreement, and cost of the full run.

    The participants may come from a panel, from Prolific or by invitation.

    Example: steelyard pilot words
    """
    with open_study(folder) as study:
        print_pilot(study, target=target, seed=seed, annotators=annotators)


def print_pilot(study: Study, *, target: float, seed: int, annotators: int | None = None) -> None:
    """Print the summary of a pilot."""
    from rich.console import Console
    from rich.text import Text

    from steelyard.cli.output import print_notes, statistics_table
    from steelyard.recruitment.pilot import summarise_pilot

    console = Console(highlight=False)
    summary = summarise_pilot(study, target=target, seed=seed, people=annotators)
    currency = study.config.pay.currency
    console.print(Text(f"{study.config.title}: {summary.people} annotators, {summary.answers:,} answers", style="bold"))
    console.print(f"time   {_time(summary.task)} per task; {_time(summary.person)} per annotator", soft_wrap=True)
    if summary.per_person is None:
        why = "study.toml does not define the pay ([pay] or [prolific])"
        console.print(f"pay    unknown: {why}", markup=False, soft_wrap=True)
    elif summary.per_hour is None:
        console.print(f"pay    {summary.per_person:,.2f} {currency} per annotator; the time is unknown")
    else:
        hourly = f"{summary.per_hour:,.2f} {currency} per hour of active time"
        console.print(f"pay    {summary.per_person:,.2f} {currency} per annotator, {hourly}")
    for criterion, table in summary.agreement.items():
        console.print(statistics_table(table, f"agreement on {criterion}" if criterion else "agreement"))
    for line in _plan_lines(summary, target, currency):
        console.print(line, soft_wrap=True)
    print_notes([summary.plan_note] if summary.plan_note else [])


def _time(quartiles: TimeQuartiles) -> str:
    """Format a time: in seconds up to two minutes, then in minutes."""
    scale, unit, digits = (1, "s", 1) if quartiles.median < 120 else (60, "min", 1)
    low, middle, high = (
        f"{value / scale:.{digits}f}" for value in (quartiles.lower, quartiles.median, quartiles.upper)
    )
    return f"{middle} {unit} (median; interquartile range {low} to {high})"


def _plan_lines(summary: PilotSummary, target: float, currency: str) -> list[str]:
    """Return lines on the judgments that the full run needs, and those that the design asks for now."""
    wants = f"full run  the design, as configured, needs {summary.remaining_judgments:,} more answers"
    if summary.plan is None:
        return [wants]
    row = summary.plan.row(0, named=True)
    how = f"{row['protocol']}, {row['design']}"
    if row["judgments"] is None:
        return [wants, f"planner   {how} does not reach {target:g}; at best {row['best']:.2f}"]
    more = f", {row['cost']:,.2f} {currency}" if row["cost"] is not None else ""
    sentence = (
        f"planner   a split-half reliability of {target:g} takes {row['judgments']:,} answers in total "
        f"({row['lower']:,} to {row['upper']:,}; {how}), {row['hours']:,.1f} hours{more}"
    )
    each = summary.tasks_each
    needed = [] if not each else [f"          = {-(-row['judgments'] // each):,} annotators with {each} tasks each"]
    return [wants, sentence, *needed]
