"""The exclusions section: excluded annotators, times and reasons."""

from __future__ import annotations

import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.report.document import Section, Table, count_column, text_column, time_column

TITLE = "Exclusions"


def section(analysis: Analysis) -> Section:
    """Return the exclusions and readmissions with their reasons."""
    table = exclusion_table(analysis)
    if table.is_empty():
        return Section("exclusions", TITLE, absent=("Exclusions: no annotator was excluded.",))
    columns = (
        text_column("annotator", "annotator"),
        text_column("what", "what"),
        time_column("at", "when (UTC)"),
        text_column("reason", "reason"),
        count_column("set_aside", "judgments not counted now"),
    )
    caption = (
        "Exclusions and readmissions in chronological order. Judgments of excluded annotators are kept, but "
        "do not count."
    )
    return Section("exclusions", TITLE, (Table("exclusions", caption, table, columns),))


def exclusion_table(analysis: Analysis) -> pl.DataFrame:
    """Return the exclusions and readmissions: `annotator`, `what`, `at`, `reason`, `set_aside`."""
    history = analysis.history
    notes = history.notes.filter(pl.col("kind").is_in(["exclusion", "readmission"]))
    aside = history.judgments.filter(pl.col("excluded") & ~pl.col("purpose").is_in(["check", "repeat"]))
    counts = aside.group_by("annotator").agg(pl.len().cast(pl.Int64).alias("set_aside"))
    return (
        notes.join(counts, on="annotator", how="left", maintain_order="left")
        .with_columns(
            pl.col("kind").replace({"exclusion": "excluded", "readmission": "readmitted"}).alias("what"),
            pl.col("set_aside").fill_null(0),
            pl.col("reason").map_elements(analysis.names.within, pl.String),
            analysis.names.column(),
        )
        .select("annotator", "what", "at", "reason", "set_aside")
    )
