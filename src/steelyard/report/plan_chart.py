"""The chart of a plan: the expected value of its target by budget, for each protocol and design."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from steelyard.errors import ConfigError
from steelyard.report.charts import HEIGHT, WIDTH, Chart, png, spec, svg, values_of

MOST_LINES = 4
"""With more options than this, only the best design of each protocol is drawn."""
_FEW_LINES = 2
"""Up to this many options, the range over simulated studies is drawn too."""
_COLOURS = ["#2c5e8a", "#b85a10", "#4f8a5b", "#8a4f7d", "#7a7f35", "#53606d"]
_OVERSHOOT = 1.35
RELIABILITY = "split-half reliability (Spearman’s ρ)"


def plan_points(curve: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """Return the points to draw, with the name of each option and the hours of work of each budget.

    `curve` and `table` are those of a plan: a row for each option and budget, and a row for each option, the
    quickest first. Options are named by what differs among them: protocol, design, or both.
    """
    options = table.filter(pl.col("judgments").is_not_null())
    if options.height > MOST_LINES:
        options = options.unique("protocol", keep="first", maintain_order=True)
    protocols = options["protocol"].n_unique()
    option = pl.format("{} · {}", "protocol", "design")
    if protocols == options.height:
        option = pl.col("protocol")
    elif protocols == 1:
        option = pl.col("design")
    named = options.select(
        "protocol", "design", "seconds", "items_per_judgment", pl.col("judgments").alias("needed"), option=option
    )
    points = named.with_row_index("place").join(curve, on=["protocol", "design"], how="inner")
    return points.sort("place", "judgments").with_columns(hours=pl.col("judgments") * pl.col("seconds") / 3600)


def finding(points: pl.DataFrame, target: float) -> str:
    """Return the title: which option reaches the target with how many judgments."""
    needed = points.unique("option", keep="first", maintain_order=True).sort("place")
    first, last = needed.row(0, named=True), needed.row(-1, named=True)
    text = f"{first['option']} reaches {target:.2f} with {first['needed']:,} judgments"
    if needed.height > 1:
        text += f", {last['option']} with {last['needed']:,}"
    only_designs = needed.height > 1 and needed["protocol"].n_unique() == 1
    return f"{first['protocol']}: {text}" if only_designs else text


def _needed(points: pl.DataFrame, target: float) -> pl.DataFrame:
    """Return one row for each option: the judgments and hours at which it reaches the target."""
    return (
        points.unique("option", keep="first", maintain_order=True)
        .sort("place")
        .with_columns(pl.lit(target).alias("target"), hours=pl.col("needed") * pl.col("seconds") / 3600)
        .with_columns(judgments=pl.col("needed"))
    )


def plan_chart(curve: pl.DataFrame, table: pl.DataFrame, target: float, measure: str = RELIABILITY) -> Chart:
    """Draw what is measured against budget: in judgments, or in hours where judgments differ in size."""
    points = plan_points(curve, table)
    by_hours = points["items_per_judgment"].n_unique() > 1
    x = "hours" if by_hours else "judgments"
    needed = _needed(points, target)
    longest = float(needed[x].max() or 1) * _OVERSHOOT  # type: ignore[arg-type]
    names = needed["option"].to_list()
    colour = alt.Color(
        "option:N",
        sort=names,
        scale=alt.Scale(domain=names, range=_COLOURS[: len(names)]),
        legend=alt.Legend(
            title=None, orient="right", symbolType="stroke", symbolStrokeWidth=3, symbolOpacity=1, labelLimit=240
        )
        if len(names) > 1
        else None,
    )
    across = alt.X(
        f"{x}:Q",
        title="hours of work, all annotators together" if by_hours else "judgments",
        scale=alt.Scale(domain=[0, longest], nice=False),
        axis=alt.Axis(format=",.1f" if by_hours and longest < 10 else ",.0f", grid=False, tickCount=6),
    )
    lowest = max(0.0, min(target, float(points["value"].min() or 0)) - 0.05)  # type: ignore[arg-type]
    highest = 1.0 if measure == RELIABILITY else max(target, float(points["value"].max() or 1)) * 1.05  # type: ignore[arg-type]
    height = alt.Scale(domain=[lowest, highest], nice=False)
    title = measure
    up = alt.Y("value:Q", title=title, scale=height, axis=alt.Axis(format=".2~f", tickCount=5))
    base = alt.Chart(values_of(points)).encode(x=across)
    layers: list[Any] = []
    if len(names) <= _FEW_LINES:
        layers.append(
            base.mark_area(opacity=0.15, clip=True).encode(
                y=alt.Y("lower:Q", title=title, scale=height), y2="upper:Q", color=colour
            )
        )
    layers.append(base.mark_line(strokeWidth=2.2, clip=True, interpolate="monotone").encode(y=up, color=colour))
    goal = alt.Chart(alt.InlineData(values=[{"target": target}]))
    layers.append(goal.mark_rule(strokeDash=[5, 4], strokeWidth=1).encode(y="target:Q", color=alt.value("#8a959b")))
    layers.append(
        alt.Chart(values_of(needed))
        .mark_point(filled=True, size=70, opacity=1)
        .encode(x=across, y="target:Q", color=colour)
    )
    subtitle = "Mean over simulated studies"
    subtitle += ", with 90 % range" if len(names) <= _FEW_LINES else "; dots mark where the target is reached"
    return alt.layer(*layers).properties(
        width=WIDTH - (150 if len(names) > 1 else 0),
        height=HEIGHT + 40,
        title=alt.Title(finding(points, target), subtitle=[subtitle]),
    )


def save_chart(chart: Chart, path: Path) -> None:
    """Write a chart as SVG, PNG or an HTML page that needs no network, by the file's ending."""
    ending = path.suffix.lower()
    if ending == ".svg":
        path.write_text(svg(chart), encoding="utf-8")
    elif ending == ".png":
        path.write_bytes(png(chart))
    elif ending in {".html", ".htm"}:
        import vl_convert

        page = vl_convert.vegalite_to_html({**spec(chart), "background": "#ffffff"}, bundle=True)
        path.write_text(page, encoding="utf-8")
    else:
        raise ConfigError(f"'{path.name}' has no known chart format.", "Use a name that ends in .svg, .png or .html.")
