"""Tables and charts of a comparison of systems, for the report, the dashboard, the command line and notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt
import polars as pl

from steelyard.models.systems.comparison import SystemComparison
from steelyard.report.charts import WIDTH, Chart, titled, values_of
from steelyard.report.document import (
    DASH,
    Cell,
    Column,
    Row,
    Table,
    count_column,
    interval_column,
    number_column,
    rank_column,
    text_column,
)
from steelyard.report.formatting import shorten

MOST_IN_MATRIX = 40
"""Systems up to which every pair is drawn in the significance matrix."""


def keys_of(comparison: SystemComparison) -> list[str]:
    """Return the columns before the system: criterion and subsets, where there are any."""
    columns = comparison.scores.columns
    return columns[: columns.index("system")]


def parts_of(comparison: SystemComparison) -> Iterator[tuple[str, pl.DataFrame, pl.DataFrame]]:
    """Yield the name, the scores and the differences of each criterion and subset."""
    keys = keys_of(comparison)
    if not keys:
        yield "", comparison.scores, comparison.differences
        return
    differences = comparison.differences.partition_by(keys, as_dict=True)
    for values, scores in comparison.scores.partition_by(keys, as_dict=True, maintain_order=True).items():
        name = ", ".join(str(value) for value in values)
        yield name, scores, differences.get(values, comparison.differences.head(0))


def systems_table(scores: pl.DataFrame, level: float, part: str = "") -> Table:
    """Return the table of one criterion or subset, with a rule after each cluster."""
    percent = f"{100 * level:g} %"
    columns = [
        count_column("cluster", "cluster"),
        rank_column(),
        text_column("system", "system", 60),
        interval_column("score", "score", lower="lower", upper="upper", digits=3),
        Column("wins", "wins–ties–losses", _record),
        count_column("judgments", "judgments"),
    ]
    if scores["sources"].null_count() < scores.height:
        columns.append(count_column("sources", "sources"))
    if scores["annotators"].null_count() < scores.height:
        columns.append(count_column("annotators", "annotators"))
    caption = (
        f"Systems{f' ({part})' if part else ''} by score, with {percent} intervals of "
        "scores and ranges of ranks; rules separate clusters."
    )
    clusters = scores["cluster"].to_list()
    rules = tuple(row for row in range(1, len(clusters)) if clusters[row] != clusters[row - 1])
    return Table(f"systems{_suffix(part)}", caption, scores, tuple(columns), rules=rules)


def differences_table(differences: pl.DataFrame, level: float, part: str = "") -> Table:
    """Return the table of pairwise differences of one criterion or subset."""
    columns = (
        text_column("system", "system", 60),
        text_column("other", "compared with", 60),
        interval_column("difference", "difference", lower="lower", upper="upper", digits=2),
        number_column("p_value", "p", 2),
        number_column("p_holm", "p (Holm)", 2),
        number_column("probability", "P(better)", 3),
        Column("wins", "wins–ties–losses", _record),
    )
    caption = (
        f"Pairwise differences of systems{f' ({part})' if part else ''}, with simultaneous {100 * level:g} % "
        "intervals, p-values before and after Holm's correction, and the probability that the first system is better."
    )
    return Table(f"system-differences{_suffix(part)}", caption, differences, columns)


def _record(row: Row) -> Cell:
    return (
        Cell(DASH) if row["wins"] is None else Cell(f"{row['wins']:,}–{row['ties']:,}–{row['losses']:,}", row["wins"])
    )


def _suffix(part: str) -> str:
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in part.lower()).strip("-")
    return f"-{plain}" if plain else ""


def leaderboard(scores: pl.DataFrame, *, level: float = 0.95) -> Chart:
    """Draw the systems' scores with their intervals, the highest on top, and a line between clusters."""
    scored = scores.filter(pl.col("score").is_not_null()).with_row_index("place")
    rows = scored.select(
        "place", "score", "lower", "upper", pl.col("system").map_elements(shorten, pl.String).alias("name")
    )
    last = scored.filter(pl.col("cluster") != pl.col("cluster").shift(-1)).select(
        pl.col("system").map_elements(shorten, pl.String).alias("name")
    )
    y = alt.Y("name:N", sort=rows["name"].to_list(), title=None, axis=alt.Axis(labelLimit=220))
    is_labelled = "label" in scores.columns and scores.height > 0
    name = f"proportion of “{shorten(scores['label'][0])}”" if is_labelled else "score"
    title = f"{name}, with {level:.0%} intervals".replace("%", " %")
    base = alt.Chart(values_of(rows)).encode(y=y)
    ranges = base.mark_rule().encode(x=alt.X("lower:Q", title=title, scale=alt.Scale(zero=False)), x2="upper:Q")
    points = base.mark_point(filled=True, size=46, opacity=1).encode(x=alt.X("score:Q", title=title))
    layers: list[Any] = [ranges, points]
    if last.height:
        # At the lower end of the band of the last system of a cluster.
        lines = alt.Chart(values_of(last)).mark_rule(strokeDash=[4, 3], opacity=0.7, yOffset=10)
        layers.append(lines.encode(y=y))
    chart = alt.layer(*layers).properties(width=WIDTH - 140, height=alt.Step(20))
    return titled(chart, _finding(scored))  # type: ignore[no-any-return]


def _finding(scored: pl.DataFrame) -> str:
    if scored.is_empty():
        return "No system has a score yet"
    top = scored.filter(pl.col("cluster") == 1)["system"].to_list()
    n_clusters = scored["cluster"].n_unique()
    if n_clusters == 1:
        return f"The {scored.height} systems form one cluster: they cannot be separated"
    if len(top) == 1:
        return f"{shorten(top[0], 40)} is significantly better than all others; {n_clusters} clusters"
    return f"{len(top)} of {scored.height} systems are in the first of {n_clusters} clusters"


def significance_matrix(differences: pl.DataFrame, order: list[str]) -> Chart:
    """Draw, for every two systems, the difference and whether it is significant; `order` lists the best first."""
    names = [name for name in order[:MOST_IN_MATRIX] if name is not None]
    pairs = differences.filter(
        pl.col("system").is_in(names) & pl.col("other").is_in(names) & pl.col("difference").is_not_null()
    )
    rows = pairs.select(
        pl.col("system").map_elements(shorten, pl.String).alias("row"),
        pl.col("other").map_elements(shorten, pl.String).alias("column"),
        pl.when("significant").then(pl.lit("better (p < .05)")).otherwise(pl.lit("not significant")).alias("result"),
        # Without enough annotators or sources there is no p-value.
        pl.col("p_holm").map_elements(_short_p, pl.String).fill_null("–").alias("label"),
    )
    domain = [shorten(name) for name in names]
    base = alt.Chart(values_of(rows)).encode(
        x=alt.X("column:N", sort=domain, title="than", axis=alt.Axis(labelAngle=-40, labelLimit=140)),
        y=alt.Y("row:N", sort=domain, title="better", axis=alt.Axis(labelLimit=200)),
    )
    colour = alt.Color(
        "result:N",
        title=None,
        scale=alt.Scale(domain=["better (p < .05)", "not significant"], range=["#2c5e8a", "#cdd5dd"]),
        legend=alt.Legend(orient="top"),
    )
    layers: list[Any] = [base.mark_rect().encode(color=colour)]
    if len(names) <= MOST_IN_MATRIX // 2:
        ink = alt.condition(alt.datum.result == "not significant", alt.value("#1b232b"), alt.value("#ffffff"))
        layers.append(base.mark_text(fontSize=10).encode(text="label:N", color=ink))
    count, total = int(differences["significant"].sum()), differences.height
    title = f"{count} of {total} differences are significant"
    subtitle = ["p-values after Holm's correction"]
    if len(order) > len(names):
        subtitle = [f"the first {len(names)} of {len(order)} systems"]
    size = alt.Step(34 if len(names) <= MOST_IN_MATRIX // 2 else 14)
    return titled(alt.layer(*layers).properties(width=size, height=size), title, subtitle)  # type: ignore[no-any-return]


def _short_p(value: float) -> str:
    if value < 0.001:
        return "<.001"
    digits = 3 if value < 0.1 else 2
    return f"{value:.{digits}f}".lstrip("0") if value < 0.995 else "1"
