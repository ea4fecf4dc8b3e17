"""The section on marked errors: by system, category and position, suggestions, and agreement on severities."""

from __future__ import annotations

import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.analysis.marked_errors import PLACES, error_places, errors_by_system, suggestion_counts
from steelyard.report.document import (
    Block,
    Column,
    Fact,
    Prose,
    Section,
    Table,
    count_column,
    facts_table,
    number_column,
    percent,
    share_column,
    text_column,
)
from steelyard.study.marks import marking_stages

TITLE = "Marked errors"


def section(analysis: Analysis) -> Section:
    """Return where errors lie, by system, category and part of the text, and how annotators compare."""
    if not marking_stages(analysis.study):
        return Section("marks", TITLE)
    systems = errors_by_system(analysis.study, analysis.judgments)
    if not systems.height:
        return Section("marks", TITLE, absent=("Marked errors: there are no marks yet.",))
    texts = int(systems["texts"].sum())
    share = float((systems["texts"] * systems["with_errors"]).sum()) / texts
    blocks: list[Block] = [
        Prose(
            f"{percent(share)} of {texts:,} judged texts have at least one marked error. {_places(analysis)}".strip()
        ),
        _system_table(systems),
    ]
    categories = _categories(analysis.error_counts)
    if categories.height:
        names = [name for name in ("category", "system") if name in categories.columns]
        columns = (
            *(text_column(name, name) for name in names),
            count_column("errors", "errors"),
            number_column("per_text", "per text"),
        )
        blocks.append(Table("error-categories", "Errors by category.", categories, columns))
    blocks += [*_suggestions(analysis), *_severities(analysis)]
    return Section("marks", TITLE, tuple(blocks))


def _system_table(systems: pl.DataFrame) -> Table:
    severities = systems.columns[3:]
    columns: list[Column] = [
        count_column("texts", "judged texts"),
        share_column("with_errors", "with any error"),
        *(number_column(name, name.replace("_", " ")) for name in severities),
    ]
    if systems["system"].drop_nulls().len():
        columns.insert(0, text_column("system", "system"))
    return Table("errors", "Errors per judged text, by severity.", systems, tuple(columns))


def _categories(counts: pl.DataFrame) -> pl.DataFrame:
    """Sum over severities; systems are told apart where there are any."""
    names = ["category", *(["system"] if counts["system"].drop_nulls().len() else [])]
    sums = counts.drop_nulls("category").group_by(names).agg(pl.col("errors").sum(), pl.col("per_text").sum())
    return sums.sort("errors", *names, descending=[True, *(False for _ in names)])


def _places(analysis: Analysis) -> str:
    places = error_places(analysis.study, analysis.judgments)
    if not places.height:
        return ""
    first = float(places.filter(pl.col("part") <= PLACES // 2)["proportion"].sum())
    return f"{percent(first)} of the marked characters are in the first half of their text."


def _suggestions(analysis: Analysis) -> list[Block]:
    counts = suggestion_counts(analysis.study, analysis.judgments)
    if not counts:
        return []
    words = {"kept": "kept as they were", "changed": "changed", "removed": "removed", "added": "marks added"}
    return [
        facts_table("suggestions", "Suggested marks.", [Fact(words[name], count) for name, count in counts.items()])
    ]


def _severities(analysis: Analysis) -> list[Block]:
    columns = (
        text_column("first", "one annotator"),
        text_column("second", "another"),
        share_column("proportion", "characters"),
    )
    tables = []
    for stage, agreement in analysis.mark_agreement.items():
        if agreement.severities.height:
            table = agreement.severities.with_columns(pl.col("first", "second").replace("", "not marked"))
            name = "severities" if len(analysis.mark_agreement) == 1 else f"severities-{stage}"
            caption = "Severities that two annotators gave to the same characters, if at least one marked them."
            tables.append(Table(name, caption, table, columns))
    return list(tables)
