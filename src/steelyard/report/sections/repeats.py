"""The repeats section: consistency of repeated answers."""

from __future__ import annotations

from steelyard.analysis.analysis import Analysis
from steelyard.analysis.repeats import repeat_pairs, repeat_statistics, repeats_by_time
from steelyard.reliability.statistic import statistics_table
from steelyard.report import quality_charts
from steelyard.report.document import (
    Block,
    Column,
    Figure,
    Section,
    Table,
    count_column,
    duration_column,
    interval_column,
    text_column,
)

TITLE = "Repeats"


def section(analysis: Analysis) -> Section:
    """Return how often and by how much repeated answers differ, by time between them."""
    pairs = repeat_pairs(analysis.history, analysis.study)
    if pairs.is_empty():
        why = "no task has been repeated yet" if analysis.study.config.quality.repeat_rate else "the study has none"
        return Section("repeats", TITLE, absent=(f"Repeats: {why} ([quality] repeats).",))
    statistics = statistics_table(repeat_statistics(pairs))
    by_time = repeats_by_time(pairs)
    columns: list[Column] = [duration_column("from", "interval, from"), duration_column("to", "to")]
    columns += [
        count_column("pairs", "repeated answers"),
        interval_column("rate", "proportion that differ", lower="lower", upper="upper"),
    ]
    if by_time["difference"].drop_nulls().len():
        columns.append(interval_column("difference", "mean absolute difference"))
    blocks: list[Block] = [
        Table(
            "repeats",
            "Repeated answers of annotators who are not excluded, with bootstrap intervals over annotators.",
            statistics,
            (
                text_column("label", "statistic"),
                interval_column("value", "value (95 % interval)", lower="lower", upper="upper"),
                text_column("note", "note"),
            ),
        ),
        Table("repeats-by-time", "Repeats by the time between the two answers.", by_time, tuple(columns)),
    ]
    if by_time.height > 1:
        blocks.insert(
            1,
            Figure(
                "repeats",
                "Proportion of repeats that differ, by the time between the two answers.",
                quality_charts.repeats(by_time),
            ),
        )
    return Section("repeats", TITLE, tuple(blocks))
