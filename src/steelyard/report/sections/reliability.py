"""Whether the scores can be trusted: split-half reliability and agreement."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from steelyard.reliability.statistic import Statistic as Number
from steelyard.reliability.statistic import statistics_table
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
from steelyard.report.material import Material, Trust

TITLE = "Reliability and agreement"


def section(material: Material) -> Section:
    """Return every figure of reliability with its interval, and the curve by number of judgments."""
    rows = [(trust, figure) for trust in material.trust for figure in trust.statistics]
    if not rows:
        return Section("reliability", TITLE, absent=("Reliability: there are no judgments that count.",))
    blocks: list[Block] = []
    absent = []
    for trust in material.trust:
        of = called(material, trust)
        if trust.curve.height:
            chart = charts.reliability(trust.curve, target=_target(material))
            end = "-".join(part for part in ("split-half", trust.stage if of else "", trust.criterion) if part)
            blocks.append(Figure(_file_name(end), f"Split-half reliability by the judgments in each half{of}.", chart))
        elif trust.kind == "labels":
            absent.append(f"Split-half curve{of}: labels have no scores to correlate.")
        else:
            absent.append(f"Split-half curve{of}: too few items, pairs or tuples were judged four times or more.")
    blocks.append(numbers_table(material, "reliability", "Figures of reliability and agreement.", rows))
    notes = dict.fromkeys(note for trust in material.trust for note in trust.notes)
    blocks += [Prose("How the figures were taken: " + "; ".join(notes) + ".")] if notes else []
    return Section("reliability", TITLE, tuple(blocks), tuple(dict.fromkeys(absent)))


def called(material: Material, trust: Trust) -> str:
    """Say of what a figure is, where there are several stages or criteria."""
    several = len(material.study.config.stages) > 1
    parts = [part for part in (trust.stage if several else "", trust.criterion) if part]
    return f", {' '.join(parts)}" if parts else ""


def _file_name(text: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in text.lower()).strip("-")


def _target(material: Material) -> float | None:
    """Return the plain split-half reliability at which the study stops, if that is when it does."""
    stop = material.study.config.stop
    if stop is None or stop.measure != "split_half":
        return None
    # Spearman and Brown's formula, turned round.
    return stop.target / (2 - stop.target) if stop.spearman_brown else stop.target


def numbers_table(material: Material, name: str, caption: str, rows: Iterable[tuple[Trust, Number]]) -> Table:
    """Lay figures out as a table, a row each, undefined ones with the reason."""
    kept = list(rows)
    frame = statistics_table(figure for _, figure in kept).select(
        pl.Series("stage", [trust.stage for trust, _ in kept], dtype=pl.String),
        pl.Series("criterion", [trust.criterion for trust, _ in kept], dtype=pl.String),
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
