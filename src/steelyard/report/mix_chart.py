"""The chart of mixes of people and a model: precision by cost."""

from __future__ import annotations

import altair as alt
import polars as pl

from steelyard.report.charts import HEIGHT, WIDTH, Chart, values_of

PEOPLE_ALONE, WITH_MODEL = "people alone", "people and model"
_COLOURS = ["#b85a10", "#2c5e8a"]


def mix_finding(table: pl.DataFrame, target: float) -> str:
    """Return the title: what the model saves at the target, or that it is not reached."""
    costs = [
        table.filter((pl.col("model") == has_model) & (pl.col("correlation") >= target))["cost"].min()
        for has_model in (True, False)
    ]
    mixed, alone = (None if cost is None else float(cost) for cost in costs)  # type: ignore[arg-type]
    if mixed is None and alone is None:
        return f"No mix reaches a correlation of {target:g}"
    if mixed is None or alone is None:
        return f"Only {PEOPLE_ALONE if mixed is None else WITH_MODEL + ' together'} reach a correlation of {target:g}"
    if mixed < alone:
        return f"The model saves {100 * (1 - mixed / alone):.0f} % of the cost of a correlation of {target:g}"
    return f"The model saves nothing at a correlation of {target:g}"


def mix_chart(table: pl.DataFrame, target: float) -> Chart:
    """Draw the correlation with the true scores against the cost, with and without the model."""
    points = table.with_columns(
        pl.when("model").then(pl.lit(WITH_MODEL)).otherwise(pl.lit(PEOPLE_ALONE)).alias("mix")
    ).select("mix", "cost", "correlation", "lower", "upper", "people_per_item")
    names = [PEOPLE_ALONE, WITH_MODEL]
    colour = alt.Color(
        "mix:N",
        sort=names,
        scale=alt.Scale(domain=names, range=_COLOURS),
        legend=alt.Legend(title=None, orient="bottom", symbolType="stroke", symbolStrokeWidth=3, symbolOpacity=1),
    )
    across = alt.X(
        "cost:Q",
        title="cost (logarithmic)",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(format=",~g", grid=False),
    )
    lowest = max(0.0, float(points["lower"].min() or 0) - 0.05)  # type: ignore[arg-type]
    scale = alt.Scale(domain=[lowest, 1], nice=False)
    title = "correlation with the true scores"
    up = alt.Y("correlation:Q", title=title, scale=scale, axis=alt.Axis(format=".1f", tickCount=5))
    base = alt.Chart(values_of(points)).encode(x=across)
    band = base.mark_area(opacity=0.15, clip=True).encode(
        y=alt.Y("lower:Q", title=title, scale=scale), y2="upper:Q", color=colour
    )
    line = base.mark_line(strokeWidth=2.2, clip=True).encode(y=up, color=colour)
    dots = base.mark_point(filled=True, size=40, opacity=1, clip=True).encode(y=up, color=colour)
    goal = alt.Chart(alt.InlineData(values=[{"target": target}]))
    rule = goal.mark_rule(strokeDash=[5, 4], strokeWidth=1).encode(y="target:Q", color=alt.value("#8a959b"))
    return alt.layer(band, line, dots, rule).properties(
        width=WIDTH,
        height=HEIGHT + 40,
        title=alt.Title(mix_finding(table, target), subtitle=["Expected from the pilot, with 95 % intervals"]),
    )
