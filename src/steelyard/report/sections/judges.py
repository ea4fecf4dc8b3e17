"""The judges section: each model compared with people."""

from __future__ import annotations

import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.analysis.judge_report import JudgeReport, judge_reports, judge_table
from steelyard.report.document import (
    Block,
    Column,
    Prose,
    Section,
    Table,
    count_column,
    interval_column,
    number_column,
    share_column,
    text_column,
)

TITLE = "Models as judges"


def section(analysis: Analysis) -> Section:
    """Return how far each model agrees with people, its biases, and where they disagree most."""
    if not analysis.history.model_records:
        return Section("judges", TITLE)
    reports = judge_reports(analysis)
    if not reports:
        return Section("judges", TITLE, absent=("Models as judges: no item was judged by both a model and people.",))
    blocks: list[Block] = [Prose(f"{analysis.basis.sentence}"), _table(reports)]
    for report in reports:
        blocks += _details(report)
    return Section("judges", TITLE, tuple(blocks))


def _table(reports: list[JudgeReport]) -> Table:
    frame = judge_table(reports)

    def has_values(name: str) -> bool:
        return frame[name].drop_nulls().len() > 0

    columns: list[Column] = [text_column("judge", "model", 40)]
    if frame["criterion"].n_unique() > 1:
        columns.append(text_column("criterion", "criterion"))
    columns += [
        count_column("judgments", "answers"),
        interval_column("agreement", "agreement with a person"),
        interval_column("people", "of two people", lower="people_lower", upper="people_upper"),
    ]
    optional = [
        ("winning_rate", share_column("winning_rate", "wins against")),
        ("advantage", number_column("advantage", "advantage")),
        ("first_share", share_column("first_share", "first wins")),
        ("flips", share_column("flips", "flips")),
        ("self_consistency", number_column("self_consistency", "self-consistency")),
        ("length_bias", number_column("length_bias", "length bias")),
    ]
    columns += [column for name, column in optional if has_values(name)]
    note = (
        f"Agreement: {reports[0].measure}. Wins against, advantage: alternative annotator test (Calderon et al., "
        "2025), with ε = 0.1: a model may replace people if it wins against at least half of them. Flips: pairs "
        "decided differently in the other order. Length bias: 0 means that length matters no more than for people."
    )
    return Table("judges", "Models compared with people; intervals are at 95 %.", frame, tuple(columns), note)


def _details(report: JudgeReport) -> list[Block]:
    name = " ".join(part for part in (report.judge, report.criterion) if part)
    key = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.lower()).strip("-")
    blocks: list[Block] = []
    columns: tuple[Column, ...]
    if report.calibration.height > 1:
        columns = (
            number_column("judge", "score by the model"),
            interval_column("people", "people’s mean", lower="lower", upper="upper"),
            count_column("items", "items"),
        )
        caption = f"Calibration of {name}: people’s mean by the model’s score."
        blocks.append(Table(f"calibration-{key}", caption, report.calibration, columns))
    if report.disagreements.height:
        is_rated = report.disagreements.schema["judge"] == pl.Float64
        value = number_column if is_rated else text_column
        columns = (
            text_column("item", "item", 40),
            text_column("text", "text", 120),
            value("judge", "model"),
            value("people", "people"),
        )
        caption = f"Where {name} and people disagree most."
        blocks.append(Table(f"disagreements-{key}", caption, report.disagreements, columns))
    if report.subgroups.height:
        columns = (
            text_column("subgroup", "subgroup"),
            count_column("items", "items"),
            number_column("agreement", "correlation"),
            number_column("bias", "model minus people"),
        )
        blocks.append(Table(f"subgroups-{key}", f"{name} by subgroup.", report.subgroups, columns))
    return blocks
