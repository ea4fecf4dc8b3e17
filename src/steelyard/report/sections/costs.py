"""What it cost: the table of Snow et al. (2008)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from steelyard.report.document import Block, Prose, Section, Table, count_column, number_column, text_column
from steelyard.report.history import observations_of
from steelyard.report.material import Material

TITLE = "Costs"
IN_ALL = "in all"
_SCHEMA: dict[str, Any] = {
    "stage": pl.String,
    "answers": pl.Int64,
    "labels": pl.Int64,
    "cost": pl.Float64,
    "hours": pl.Float64,
    "elapsed": pl.Float64,
    "labels_per_unit": pl.Float64,
    "labels_per_hour": pl.Float64,
}


def section(material: Material) -> Section:
    """Return labels, cost, hours, labels per unit of money and labels per hour."""
    table = cost_table(material)
    if table.is_empty():
        return Section("costs", TITLE, absent=("Costs: nobody has answered here.",))
    pay = material.study.config.pay
    free = not (pay.per_task or pay.per_hour)
    columns = [
        text_column("stage", "stage"),
        count_column("answers", "answers"),
        count_column("labels", "labels"),
        number_column("hours", "hours of work"),
        number_column("elapsed", "hours elapsed"),
        number_column("labels_per_hour", "labels per hour elapsed"),
    ]
    absent: tuple[str, ...] = ()
    if free:
        absent = ("Cost: the study does not say what is paid ([pay]).",)
        said = "Labels are the single values, labels, comparisons or choices that count."
    else:
        columns.insert(3, number_column("cost", f"cost ({pay.currency})", 4))
        columns.append(number_column("labels_per_unit", f"labels per {pay.currency}"))
        paid = [
            f"{amount:g} {pay.currency} {per}"
            for amount, per in ((pay.per_task, "for each answer"), (pay.per_hour, "for each hour of active time"))
            if amount
        ]
        said = f"Paid: {' and '.join(paid)}" + (f", with a fee of {100 * pay.fee:g} % on top. " if pay.fee else ". ")
        said += "Labels are the single values, labels, comparisons or choices that count; checks, repeats and "
        said += "judgments set aside were paid for, too."
    blocks: tuple[Block, ...] = (
        Prose(said),
        Table("costs", "Labels, costs and times (after Table 3 of Snow et al., 2008).", table, tuple(columns)),
    )
    return Section("costs", TITLE, blocks, absent)


def cost_table(material: Material) -> pl.DataFrame:
    """Return a row for each stage in which somebody answered here, and one for all where there are several.

    Columns: `answers` (all that were paid), `labels` that count, `cost`, `hours` of active time, hours `elapsed` from
    the first answer to the last, `labels_per_unit` of money and `labels_per_hour` elapsed. Where an answer has
    no time, the mean of the others stands in.
    """
    names = [stage.name for stage in material.study.config.stages]
    rows = [row for name in names if (row := _row(material, name, [name])) is not None]
    if len(rows) > 1:
        total = _row(material, IN_ALL, names)
        rows += [] if total is None else [total]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _row(material: Material, called: str, stages: list[str]) -> tuple[Any, ...] | None:
    pay = material.study.config.pay
    here = pl.col("stage").is_in(stages)
    own = material.history.judgments.filter(here & ~pl.col("imported"))
    if own.is_empty():
        return None
    # A mean for each stage: tasks of one may take longer than those of another.
    seconds = own.with_columns(pl.col("seconds").fill_null(pl.col("seconds").mean().over("stage")))["seconds"].sum()
    hours = float(seconds) / 3600
    cost = (pay.per_task * own.height + pay.per_hour * hours) * (1 + pay.fee)
    ends: Any = (own["at"].min(), own["at"].max())
    elapsed = (ends[1] - ends[0]).total_seconds() / 3600
    labels = _labels(material, stages)
    each = (labels / cost if cost else None, labels / elapsed if elapsed else None)
    return (called, own.height, labels, cost, hours, elapsed, *each)


def _labels(material: Material, stages: list[str]) -> int:
    """Count the observations that count and were made here."""
    counted = material.history.counted
    found = 0
    for stage in material.study.config.stages:
        if stage.name in stages:
            if counted.filter((pl.col("stage") == stage.name) & pl.col("imported")).height:
                made_here = replace(material.history, judgments=counted.filter(~pl.col("imported")))
                parts = observations_of(made_here, material.study, stage=stage.name)
            else:
                parts = material.observations(stage)
            found += sum(len(part) for part in parts.values())
    return found
