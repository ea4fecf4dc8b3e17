"""The scores section: scores or labels with their uncertainty."""

from __future__ import annotations

import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.analysis.tables import label_counts, ranked_items, score_histogram
from steelyard.models.fit import Fit
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
    rank_column,
    text_column,
)
from steelyard.report.methods_text import interval_in_words
from steelyard.study.fitting import on_rating_scale

TITLE = "Scores"


def section(analysis: Analysis) -> Section:
    """Return the ranking with intervals, as a chart and a table, by criterion."""
    fit = analysis.fit
    if isinstance(fit, str) and analysis.model_failed:
        text = f"{fit} No judgments are missing, and the other parts of this report do not depend on the model."
        return Section("scores", TITLE, (Prose(text),), absent=(fit,))
    if isinstance(fit, str):
        return Section("scores", TITLE, absent=(f"Scores: {fit}",))
    ranked = ranked_items(fit.scores, analysis.study.items)
    blocks: list[Block] = [Prose(_how(analysis, fit))]
    blocks += [Prose(f"Note: {note}.") for note in fit.notes]
    several = "criterion" in ranked.columns
    names = ranked["criterion"].unique(maintain_order=True).to_list() if several else [""]
    draw = _labels if "label" in ranked.columns else _scores
    for name in names:
        part = ranked.filter(pl.col("criterion") == name) if several else ranked
        blocks += draw(analysis, fit, part, name)
    return Section("scores", TITLE, tuple(blocks))


def _how(analysis: Analysis, fit: Fit) -> str:
    intervals = (
        fit.scores["interval"].drop_nulls().unique().sort().to_list() if "interval" in fit.scores.columns else []
    )
    text = f"The model is {fit.model}"
    if intervals:
        level = f"{100 * fit.level:g} %"
        text += f"; intervals are at {level}, {', '.join(interval_in_words(str(one)) for one in intervals)}"
    unjudged = fit.scores.filter(pl.col("judgments") == 0).height
    text += f"; {unjudged} items have no judgments" if unjudged else ""
    return text + "."


def _suffix(criterion: str) -> str:
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in criterion.lower()).strip("-")
    return f"-{plain}" if plain else ""


def _of(criterion: str) -> str:
    return f" of {criterion}" if criterion else ""


def _first_columns(part: pl.DataFrame) -> list[Column]:
    columns = [text_column("item", "item", 60)]
    if part.filter(pl.col("text") != pl.col("item")).height:
        columns.append(text_column("text", "text", 80))
    if "group" in part.columns:
        columns.append(text_column("group", "group", 40))
    return columns


def _scores(analysis: Analysis, fit: Fit, part: pl.DataFrame, criterion: str) -> list[Block]:
    of, end = _of(criterion), _suffix(criterion)
    rated = on_rating_scale(analysis.study.config.model, analysis.study.config.stages)
    scale = analysis.study.config.stages[0].protocol.scales().get(criterion) if rated else None
    level = f"{100 * fit.level:g} %"
    columns = [
        rank_column(),
        *_first_columns(part),
        interval_column("score", "score", lower="lower", upper="upper", digits=3),
    ]
    columns += [count_column("judgments", "judgments"), count_column("annotators", "annotators")]
    return [
        Figure(f"scores{end}", f"Scores{of}, with {level} intervals.", charts.caterpillar(part, level=fit.level)),
        Figure(
            f"histogram{end}", f"Distribution of the scores{of}.", charts.histogram(score_histogram(part, scale=scale))
        ),
        Table(
            f"scores{end}",
            f"Items{of} by score, with {level} intervals of scores and ranks.",
            part,
            tuple(columns),
        ),
    ]


def _labels(analysis: Analysis, fit: Fit, part: pl.DataFrame, criterion: str) -> list[Block]:
    of, end = _of(criterion), _suffix(criterion)
    counts = label_counts(part)
    columns = [*_first_columns(part), text_column("label", "label", 40)]
    columns.append(interval_column("probability", "probability", lower="lower", upper="upper"))
    columns += [count_column("judgments", "judgments"), count_column("annotators", "annotators")]
    return [
        Figure(f"labels{end}", f"Items by label{of}.", charts.labels(counts)),
        Table(
            f"label-counts{end}",
            f"Items by label{of}.",
            counts,
            (text_column("label", "label"), count_column("items", "items")),
        ),
        Table(f"labels{end}", f"The label of each item{of}.", part, tuple(columns)),
    ]
