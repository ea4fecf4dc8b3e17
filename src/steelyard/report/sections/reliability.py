"""The reliability section: split-half reliability and agreement."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.analysis.reliability import StageReliability
from steelyard.reliability.statistic import EXPLANATIONS, statistics_table
from steelyard.reliability.statistic import Statistic as Number
from steelyard.report import charts
from steelyard.report.document import (
    Block,
    Column,
    Figure,
    Prose,
    Section,
    Table,
    count_column,
    interval_column,
    text_column,
)

TITLE = "Reliability and agreement"


def section(analysis: Analysis) -> Section:
    """Return the reliability statistics with their intervals, and the curve by number of judgments."""
    rows = [(part, statistic) for part in analysis.reliability for statistic in part.statistics]
    if not rows:
        return Section("reliability", TITLE, absent=("Reliability: there are no judgments yet.",))
    blocks: list[Block] = []
    absent = []
    for part in analysis.reliability:
        of = called(analysis, part)
        if part.curve.height:
            chart = charts.reliability(part.curve, target=analysis.split_half_target)
            end = "-".join(part for part in ("split-half", part.stage if of else "", part.criterion) if part)
            blocks.append(
                Figure(_file_name(end), f"Split-half reliability by number of judgments per half{of}.", chart)
            )
        elif part.kind == "labels":
            absent.append(f"Split-half curve{of}: labels have no scores to correlate.")
        else:
            absent.append(f"Split-half curve{of}: too few items, pairs or tuples were judged four times or more.")
    blocks.append(numbers_table(analysis, "reliability", "Reliability and agreement statistics.", rows))
    blocks.append(meanings(statistic for _, statistic in rows))
    if analysis.agreement_by_kind:
        blocks.append(_by_kind(analysis))
    notes = dict.fromkeys(note for part in analysis.reliability for note in part.notes)
    blocks += [Prose("How the statistics were computed: " + "; ".join(notes) + ".")] if notes else []
    return Section("reliability", TITLE, tuple(blocks), tuple(dict.fromkeys(absent)))


def _by_kind(analysis: Analysis) -> Table:
    """Return the agreement of people, of models, and between them."""
    rows = analysis.agreement_by_kind
    frame = pl.concat(row.table() for row in rows)
    columns: list[Column] = [
        *([text_column("stage", "stage")] if frame["stage"].n_unique() > 1 else []),
        *([text_column("criterion", "criterion")] if frame["criterion"].n_unique() > 1 else []),
        text_column("label", "between"),
        interval_column("value", "value (95 % interval)", lower="lower", upper="upper"),
        count_column("n", "questions"),
    ]
    caption = f"People and models: {rows[0].measure}."
    note = (
        "The statistics above are computed from people's judgments only. A model agrees with people as well as people "
        "agree with each other if the value in the third row is at least that in the first."
    )
    return Table("people-and-models", caption, frame, tuple(columns), note)


def meanings(statistics: Iterable[Number]) -> Prose:
    """Explain statistics: what each is and which values are good; statistics with the same explanation share it."""
    labels: dict[str, list[str]] = {}
    for statistic in statistics:
        names = labels.setdefault(EXPLANATIONS.get(statistic.key, ""), [])
        if statistic.label not in names:
            names.append(statistic.label)
    texts = [f"{', '.join(names)}: {text}" for text, names in labels.items() if text]
    return Prose("Interpretation of the statistics. " + " ".join(f"{text[:1].upper()}{text[1:]}" for text in texts))


def called(analysis: Analysis, part: StageReliability) -> str:
    """Return the stage and criterion of a statistic, if there are several."""
    several = len(analysis.study.config.stages) > 1
    parts = [part for part in (part.stage if several else "", part.criterion) if part]
    return f", {' '.join(parts)}" if parts else ""


def _file_name(text: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in text.lower()).strip("-")


def numbers_table(
    analysis: Analysis, name: str, caption: str, rows: Iterable[tuple[StageReliability, Number]]
) -> Table:
    """Return a table of statistics, one per row; undefined ones have the reason."""
    pairs = list(rows)
    frame = statistics_table(statistic for _, statistic in pairs).select(
        pl.Series("stage", [part.stage for part, _ in pairs], dtype=pl.String),
        pl.Series("criterion", [part.criterion for part, _ in pairs], dtype=pl.String),
        pl.all(),
    )
    columns: list[Column] = []
    if frame["stage"].n_unique() > 1:
        columns.append(text_column("stage", "stage"))
    if frame["criterion"].n_unique() > 1:
        columns.append(text_column("criterion", "criterion"))
    columns += [
        text_column("label", "statistic"),
        interval_column("value", "value (95 % interval)", lower="lower", upper="upper"),
        count_column("n", "n"),
        text_column("interval", "interval by"),
        text_column("note", "note"),
    ]
    return Table(name, caption, frame, tuple(columns))
