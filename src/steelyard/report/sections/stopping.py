"""The stopping section: the stopping rule and its interim analyses."""

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
    "top_k": "probability that the top k are wrong",
    "systems": "fraction of pairs of systems that differ significantly",
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
    """Return the rule and the result of each interim analysis."""
    rule = analysis.study.config.stop
    if rule is None:
        return Section("stopping", TITLE, absent=("Stopping: the study has no stopping rule ([stop]).",))
    table = interim_analysis_table(analysis)
    if table.is_empty():
        return Section("stopping", TITLE, absent=("Stopping: no interim analysis has been due yet.",))
    blocks: list[Block] = [Prose(rule_in_words(analysis))]
    if rule.measure == "split_half" and table["bound"].drop_nulls().len() > 1:
        chart = quality_charts.interim_analyses(table, MEASURES[rule.measure])
        blocks.append(Figure("interim_analyses", "Estimate and bound of each interim analysis.", chart))
    columns = (
        count_column("number", "analysis"),
        time_column("at", "at (UTC)"),
        count_column("judgments", "observations"),
        number_column("value", MEASURES[rule.measure]),
        number_column("bound", "compared with the target"),
        number_column("target", "target"),
        Column("reached", "reached", lambda row: Cell("yes" if row["reached"] else "no"), numeric=False),
        text_column("summary", "result"),
    )
    blocks.append(Table("interim_analyses", "Interim analyses of the stopping rule.", table, columns))
    return Section("stopping", TITLE, tuple(blocks))


def interim_analysis_table(analysis: Analysis) -> pl.DataFrame:
    """Return the interim analyses so far."""
    rows = [
        (event.data.number, event.at, *(getattr(event.data, key) for key in list(_SCHEMA)[2:]))
        for event in analysis.study.events(("interim_analysis",))
    ]
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    return frame.with_columns(pl.col("at").cast(pl.Datetime("us")).dt.replace_time_zone("UTC").cast(TIME))


def rule_in_words(analysis: Analysis) -> str:
    """Describe the stopping rule."""
    rule = analysis.study.config.stop
    if rule is None:
        return ""
    what = {
        "split_half": f"the lower bound of the split-half reliability"
        f"{' (Spearman–Brown corrected)' if rule.spearman_brown else ''} is at least {rule.target:g}",
        "interval_width": f"the upper bound of the mean width of the intervals is at most {rule.target:g}",
        "top_k": f"the error probability of the top {rule.target:g} is small enough",
        "systems": f"{100 * rule.target:g} % of the pairs of systems differ significantly",
    }[rule.measure]
    return (
        f"The study stops when {what}. There are at most {rule.interim_analyses} interim analyses, equally spaced over "
        f"the planned judgments; the probability of stopping too early at any of them is at most "
        f"{100 * rule.alpha:g} % (group-sequential bounds of Pocock)."
    )
