"""The costs section: the table of Snow et al. (2008), and a forecast."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.analysis.history import observations_of
from steelyard.analysis.tables import answers_to_target, costs, forecast, paid_people
from steelyard.quality.pay import with_times
from steelyard.report.document import (
    Block,
    Prose,
    Section,
    Table,
    count_column,
    duration_column,
    money_column,
    number_column,
    text_column,
)
from steelyard.report.sections.stopping import interim_analysis_table
from steelyard.study.config.tables import Pay

TITLE = "Costs"
IN_ALL = "in total"
_SCHEMA: dict[str, Any] = {
    "stage": pl.String,
    "answers": pl.Int64,
    "labels": pl.Int64,
    "bonus": pl.Float64,
    "cost": pl.Float64,
    "hours": pl.Float64,
    "elapsed": pl.Float64,
    "labels_per_unit": pl.Float64,
    "labels_per_hour": pl.Float64,
}


def section(analysis: Analysis) -> Section:
    """Return labels, cost, hours, labels per unit of money and per hour, and the remaining cost."""
    table = cost_table(analysis)
    if table.is_empty():
        return Section("costs", TITLE, absent=("Costs: there are no answers collected by this study.",))
    pay = analysis.study.config.pay
    columns = [
        text_column("stage", "stage"),
        count_column("answers", "answers"),
        count_column("labels", "labels"),
        duration_column("hours", "time worked"),
        duration_column("elapsed", "time elapsed"),
        number_column("labels_per_hour", "labels per elapsed hour"),
    ]
    absent: tuple[str, ...] = ()
    if pay.nothing:
        absent = ("Cost: study.toml does not define the pay ([pay]).",)
        text = "Labels are the single ratings, labels, comparisons or choices that count."
    else:
        columns.insert(3, money_column("cost", f"cost ({pay.currency})"))
        if pay.bonus is not None:
            columns.insert(4, money_column("bonus", f"of which bonuses ({pay.currency})"))
        columns.append(number_column("labels_per_unit", f"labels per {pay.currency}"))
        text = pay_in_words(pay, several_stages=table.height > 1)
    blocks: tuple[Block, ...] = (
        Prose(text),
        Table("costs", "Labels, costs and times (after Table 3 of Snow et al., 2008).", table, tuple(columns)),
        *_forecast(analysis),
    )
    return Section("costs", TITLE, blocks, absent)


def pay_in_words(pay: Pay, *, several_stages: bool = False) -> str:
    """Describe the rates of pay."""
    paid = [
        f"{amount:g} {pay.currency} {per}"
        for amount, per in (
            (pay.per_task, "for each answer"),
            (pay.per_visit, "to each annotator"),
            (pay.per_hour, "for each hour of active time"),
        )
        if amount
    ]
    text = f"Paid: {', '.join(paid) or 'only a bonus'}" + (f", and a fee of {100 * pay.fee:g} %. " if pay.fee else ". ")
    if pay.bonus is not None:
        text += f"Bonus of each annotator who is not excluded: {pay.bonus} ({pay.currency}). "
    if several_stages and (pay.per_visit or pay.bonus is not None):
        text += "Payments per annotator belong to no stage and are included in the last row only. "
    text += "Labels are the single ratings, labels, comparisons or choices that count; checks, repeats and "
    return text + "discarded judgments were paid as well."


def cost_table(analysis: Analysis) -> pl.DataFrame:
    """Return a row for each stage in which somebody answered here, and one for all where there are several.

    Columns: `answers` (all that were paid), `labels` that count, `bonus` and `cost` with the fee, `hours` of active
    time, hours `elapsed` from the first answer to the last, `labels_per_unit` of money and `labels_per_hour` elapsed.
    Answers without a time count with the mean of the others. Pay per annotator rather than per answer (visits,
    bonuses) is in the last row only.
    """
    names = [stage.name for stage in analysis.study.config.stages]
    answered = [name for name in names if (analysis.history.judgments["stage"] == name).any()]
    rows = [row for name in answered if (row := _row(analysis, name, [name], people=len(answered) == 1)) is not None]
    if len(rows) > 1:
        total = _row(analysis, IN_ALL, names, people=True)
        rows += [] if total is None else [total]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _row(analysis: Analysis, called: str, stages: list[str], *, people: bool) -> tuple[Any, ...] | None:
    rates = analysis.study.config.pay.rates
    own = with_times(analysis.history.judgments.filter(pl.col("stage").is_in(stages)))
    if own.is_empty():
        return None
    hours = float(own["seconds"].sum()) / 3600
    paid = paid_people(analysis.history, analysis.study) if people else None
    visits, bonuses = (0, 0.0) if paid is None else (paid.height, float(paid["bonus"].sum()))
    cost = rates.cost(own.height, hours, visits, bonuses)
    ends: Any = (own["at"].min(), own["at"].max())
    elapsed = (ends[1] - ends[0]).total_seconds() / 3600
    labels = _labels(analysis, stages)
    each = (labels / cost if cost else None, labels / elapsed if elapsed else None)
    bonus = rates.cost(0, 0, 0, bonuses) if people else None
    return (called, own.height, labels, bonus, cost, hours, elapsed, *each)


def _forecast(analysis: Analysis) -> tuple[Block, ...]:
    """Return the remaining cost of a study that is not closed, if pay is known."""
    study, history = analysis.study, analysis.history
    status, pay = study.status(), study.config.pay
    planned = forecast(history, status, datetime.now(UTC)).tasks
    if pay.nothing or status.state == "closed" or not planned:
        return ()
    people = paid_people(history, study)
    table = costs(history, study.config, planned, people, left="all planned tasks")
    text = "Expected remaining cost at the current pace; the bounds are those of the mean time per task."
    target = _left_to_target(analysis)
    if target is not None:
        to_target = costs(history, study.config, min(target, planned), people, left="until the target (estimate)")
        table = pl.concat([table[:1], to_target[1:2], table[1:]])
        text += " The number of answers until the target is an estimate from the last interim analysis."
        if target > planned:
            text += " The planned tasks are probably not sufficient."
    columns = (
        text_column("part", ""),
        number_column("judgments", "answers", 4),
        duration_column("hours", "time worked"),
        money_column("cost", f"cost ({pay.currency})"),
        money_column("lower", "at least"),
        money_column("upper", "at most"),
    )
    return (Table("forecast", text, table, columns),)


def _left_to_target(analysis: Analysis) -> float | None:
    """Estimate the number of answers until the target, from the last interim analysis."""
    rule, analyses = analysis.study.config.stop, interim_analysis_table(analysis)
    if rule is None or analyses.is_empty() or analyses["value"][-1] is None:
        return None
    answered = analysis.history.judgments.filter(~pl.col("imported"))
    then = float((answered["at"] <= analyses["at"][-1]).sum())
    predicted = answers_to_target(float(analyses["value"][-1]), rule, then)
    return None if predicted is None else max(0.0, predicted - answered.height)


def _labels(analysis: Analysis, stages: list[str]) -> int:
    """Count the observations that count and were collected in this study."""
    counted = analysis.history.counted
    count = 0
    for stage in analysis.study.config.stages:
        if stage.name in stages:
            if counted.filter((pl.col("stage") == stage.name) & pl.col("imported")).height:
                made_here = (
                    judgment for judgment in analysis.history.records if judgment.counts and not judgment.imported
                )
                parts = observations_of(analysis.study, made_here, stage=stage.name)
            else:
                parts = analysis.observations(stage)
            count += sum(len(part) for part in parts.values())
    return count
