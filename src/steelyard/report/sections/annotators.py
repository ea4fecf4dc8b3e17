"""The annotators section: agreement, bias, noise, accuracy, and signs of careless work."""

from __future__ import annotations

import numpy as np
import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.analysis.annotator_profile import annotator_profile
from steelyard.analysis.history import observations_of
from steelyard.models.labels.majority import wilson
from steelyard.observations import Labels
from steelyard.report import charts, quality_charts
from steelyard.report.document import (
    Block,
    Cell,
    Column,
    Figure,
    Prose,
    Row,
    Section,
    Table,
    count_column,
    interval_column,
    number_column,
    share_column,
    text_column,
)

TITLE = "Annotators"


def section(analysis: Analysis) -> Section:
    """Return the table of annotators, and the charts for which there is data."""
    table = analysis.annotators
    if table.is_empty():
        return Section("annotators", TITLE, absent=("Annotators: the judgments have no annotator names.",))
    blocks: list[Block] = []
    absent = []
    if table["agreement"].drop_nulls().len() > 1:
        blocks.append(
            Figure(
                "agreement",
                "Agreement of each annotator with the other annotators, with 95 % intervals.",
                charts.annotators(table),
            )
        )
    else:
        absent.append("Agreement per annotator: annotators share too few items.")
    if table["bias"].drop_nulls().len() > 1:
        blocks.append(
            Figure(
                "bias-and-noise",
                "Bias and noise of each annotator, in the units of the scale.",
                quality_charts.bias_and_noise(table),
            )
        )
    blocks += _accuracy(analysis, table)
    if not any(isinstance(block, Figure) and block.name == "accuracy" for block in blocks):
        absent.append("Accuracy of annotators: there are no answers to checks or to items with gold labels.")
    blocks.append(_table(table, analysis.study.config.judges.count))
    if table["measure"].drop_nulls().len():
        measure = table["measure"].drop_nulls()[0]
        has_models = (table["kind"] == "model").any()
        people = " Models are compared with people only, and people only with people." if has_models else ""
        text = f"Agreement is the {measure}; excluded annotators are not among the other annotators.{people}"
        blocks.append(Prose(text))
    blocks += _rater_effects(analysis)
    return Section("annotators", TITLE, tuple(blocks), tuple(absent))


def _rater_effects(analysis: Analysis) -> list[Block]:
    """Return what infit, severity and drift mean, how work changes within sessions, and what is worth discussing."""
    effects = analysis.rater_effects
    if effects.annotators.is_empty():
        return []
    text = (
        "Infit and outfit are mean squares of the deviations from what all answers together predict, weighted by "
        "information and unweighted: 1 is as expected; an infit above the mean + 2 standard deviations is flagged."
    )
    if effects.annotators["severity"].drop_nulls().len():
        text += (
            " Severity is in logits above the average annotator (0.3 lowers a rating in the middle of the scale by 7 % "
            "of its length), and drift is its change from the first answer to the last."
        )
    blocks: list[Block] = [Prose(text)]
    change = effects.mean_change.row(0, named=True)
    if change["time_change"] is not None:
        blocks.append(
            Prose(
                "From the beginning to the end of a session, the time per answer changes by "
                f"{_percents(change, 'time_change')} and the mean deviation by "
                f"{_numbers(change, 'error_change')} standard deviations."
            )
        )
    rows = [
        (name, finding.aspect, finding.sentence)
        for name in analysis.annotators.filter(pl.col("excluded").is_null())["annotator"].to_list()
        for finding in annotator_profile(analysis, name).findings
        if finding.notable
    ]
    if rows:
        notes = pl.DataFrame(rows, schema=["annotator", "aspect", "finding"], orient="row")
        columns = (text_column("annotator", "annotator", 40), text_column("aspect", "aspect"))
        caption = "Findings worth discussing with annotators; each may have a good explanation."
        blocks.append(Table("findings", caption, notes, (*columns, text_column("finding", "finding", 400))))
    return blocks


def _percents(row: Row, name: str) -> str:
    values = [f"{100 * row[key]:+.0f}".replace("-", "−") for key in (name, f"{name}_lower", f"{name}_upper")]
    return f"{values[0]} % ({values[1]} to {values[2]})"


def _numbers(row: Row, name: str) -> str:
    if row[name] is None:
        return "an unknown number of"
    values = [f"{row[key]:+.2f}".replace("-", "−") for key in (name, f"{name}_lower", f"{name}_upper")]
    return f"{values[0]} ({values[1]} to {values[2]})"


def _accuracy(analysis: Analysis, table: pl.DataFrame) -> list[Block]:
    rule = analysis.study.config.quality.checks
    caption = "Each point is an annotator (after Fig. 6 of Snow et al., 2008), with Wilson’s 95 % intervals."
    if table["accuracy"].drop_nulls().len():
        chart = quality_charts.accuracy(table, passed=rule.min_accuracy if rule else None)
        return [Figure("accuracy", caption, chart)]
    gold = gold_accuracy(analysis)
    if gold.is_empty():
        return []
    points = table.drop("accuracy", "accuracy_lower", "accuracy_upper").join(gold, on="annotator", how="inner")
    chart = quality_charts.accuracy(points, against="the items with gold")
    columns = (
        text_column("annotator", "annotator"),
        count_column("items", "items with gold"),
        interval_column("accuracy", "share right"),
    )
    return [
        Figure("accuracy", caption, chart),
        Table("gold-accuracy", "Accuracy on items with gold labels, with Wilson’s 95 % interval.", gold, columns),
    ]


def gold_accuracy(analysis: Analysis) -> pl.DataFrame:
    """Return the proportion of each annotator's labels that equal gold: `items`, `accuracy` with its interval."""
    gold = {item.id: item.gold for item in analysis.study.items if item.gold is not None}
    parts = list(observations_of(analysis.study, analysis.history.about_items()).values()) if gold else []
    labels = [part for part in parts if isinstance(part, Labels)]
    empty = pl.DataFrame(schema={"annotator": pl.String})
    if len(labels) != 1 or not labels[0].knows_annotators:
        return empty
    part = labels[0]
    frame = pl.DataFrame(
        {
            "annotator": [part.annotators[int(code)] for code in part.annotator],
            "item": [part.items[int(code)] for code in part.item],
            "label": [part.classes[int(code)] for code in part.label],
        }
    ).filter(pl.col("item").is_in(list(gold)))
    if frame.is_empty():
        return empty
    right = (pl.col("label") == pl.col("item").replace_strict(gold, return_dtype=pl.String)).sum()
    counts = frame.group_by("annotator").agg(pl.len().alias("items"), right.alias("right")).sort("annotator")
    hits, of = (counts[name].to_numpy().astype(np.float64) for name in ("right", "items"))
    lower, upper = wilson(hits, of, 0.95)
    return counts.with_columns(
        pl.Series("accuracy", hits / of), pl.Series("accuracy_lower", lower), pl.Series("accuracy_upper", upper)
    ).with_columns(analysis.names.column())


def _state(row: Row, counts_models: bool) -> str:
    if row["excluded"] is not None:
        return "excluded"
    return "counted" if row["kind"] == "person" or counts_models else "not counted"


def _table(table: pl.DataFrame, counts_models: bool) -> Table:
    def has_values(name: str) -> bool:
        return name in table.columns and table[name].drop_nulls().len() > 0

    columns: list[Column] = [text_column("annotator", "annotator", 40), count_column("judgments", "answers")]
    if (table["kind"] == "model").any():
        columns.insert(1, text_column("kind", "kind"))
    optional = [
        ("median_seconds", number_column("median_seconds", "median seconds")),
        ("first_action", number_column("first_action", "seconds to first action")),
        ("changed", share_column("changed", "changed before sending")),
        ("agreement", interval_column("agreement", "agreement")),
        ("bias", number_column("bias", "bias")),
        ("noise", number_column("noise", "noise")),
        ("infit", number_column("infit", "infit")),
        ("severity", interval_column("severity", "severity")),
        ("drift", interval_column("drift", "drift")),
        ("accuracy", interval_column("accuracy", "checks right")),
        ("checks", count_column("checks", "checks")),
        ("self_consistency", number_column("self_consistency", "self-consistency")),
        ("too_fast", share_column("too_fast", "too fast")),
        ("constant", share_column("constant", "most frequent answer")),
        ("place_share", share_column("place_share", "most frequent position")),
    ]
    columns += [column for name, column in optional if has_values(name)]
    state = Column("excluded", "state", lambda row: Cell(_state(row, counts_models)), False)
    note = (
        "Too fast: proportion of answers faster than the text can be read. Most frequent answer, most frequent "
        "position: proportion of "
    )
    note += "answers that are identical, or that choose the same screen position."
    caption = "Annotators by number of judgments, with 95 % intervals."
    return Table("annotators", caption, table, (*columns, state), note)
