"""When the study was looked at to see whether it is enough."""

from __future__ import annotations

import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.analysis.history import TIME
from steelyard.report import quality_charts
from steelyard.report.document import (
    Block,
    Cell,
    Column,
    Figure,
    Prose,
    Section,
    Table,
    count_column,
    number_column,
    text_column,
    time_column,
)

TITLE = "Stopping"
MEASURES = {
    "split_half": "split-half reliability",
    "interval_width": "mean width of the intervals",
    "top_k": "probability that the top k are others",
}
_SCHEMA = {
    "number": pl.Int64,
    "at": pl.Int64,
    "judgments": pl.Int64,
    "value": pl.Float64,
    "bound": pl.Float64,
    "target": pl.Float64,
    "reached": pl.Boolean,
    "summary": pl.String,
}


def section(analysis: Analysis) -> Section:
    """Return the rule and what each look saw."""
    rule = analysis.study.config.stop
    if rule is None:
        return Section("stopping", TITLE, absent=("Stopping: the study has no rule ([stop]).",))
    table = look_table(analysis)
    if table.is_empty():
        return Section("stopping", TITLE, absent=("Stopping: no look was due yet.",))
    blocks: list[Block] = [Prose(rule_in_words(analysis))]
    if rule.measure == "split_half" and table["bound"].drop_nulls().len() > 1:
        chart = quality_charts.looks(table, MEASURES[rule.measure])
        blocks.append(Figure("looks", "What each look saw, and what it was sure of.", chart))
    columns = (
        count_column("number", "look"),
        time_column("at", "at (UTC)"),
        count_column("judgments", "observations"),
        number_column("value", MEASURES[rule.measure]),
        number_column("bound", "held against the target"),
        number_column("target", "target"),
        Column("reached", "reached", lambda row: Cell("yes" if row["reached"] else "no"), numeric=False),
        text_column("summary", "result"),
    )
    blocks.append(Table("looks", "Looks at whether the study may stop.", table, columns))
    return Section("stopping", TITLE, tuple(blocks))


def look_table(analysis: Analysis) -> pl.DataFrame:
    """List the looks that were taken."""
    rows = [
        (event.data.number, event.at, *(getattr(event.data, key) for key in list(_SCHEMA)[2:]))
        for event in analysis.study.events(("interim_analysis",))
    ]
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    return frame.with_columns(pl.col("at").cast(pl.Datetime("us")).dt.replace_time_zone("UTC").cast(TIME))


def rule_in_words(analysis: Analysis) -> str:
    """Say when the study stops."""
    rule = analysis.study.config.stop
    if rule is None:
        return ""
    what = {
        "split_half": f"the split-half reliability{' (stepped up)' if rule.spearman_brown else ''} is surely "
        f"at least {rule.target:g}",
        "interval_width": f"the intervals, at a level that holds over all looks, are at most {rule.target:g} wide "
        "on average",
        "top_k": f"the top {rule.target:g} are surely the top {rule.target:g}",
    }[rule.measure]
    return (
        f"The study stops when {what}. It is looked at {rule.interim_analyses} times at most, after even shares of "
        f"what is planned; all looks together may stop too soon with probability {100 * rule.alpha:g} % (Bonferroni)."
    )
