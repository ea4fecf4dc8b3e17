"""Charts of annotation quality: accuracy, bias and noise, repeats, and interim analyses."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from steelyard.analysis.tables import Estimate
from steelyard.report.charts import HEIGHT, WIDTH, Chart, titled, values_of
from steelyard.report.formatting import format_interval, format_number


def _state() -> pl.Expr:
    return pl.when(pl.col("excluded").is_null()).then(pl.lit("counted")).otherwise(pl.lit("excluded")).alias("state")


def _colours(table: pl.DataFrame) -> dict[str, Any]:
    """Distinguish counted and excluded annotators by colour and shape, if there are both."""
    scale = alt.Scale(domain=["counted", "excluded"])
    legend: Any = alt.Legend() if table["state"].n_unique() > 1 else None
    encoded: dict[str, Any] = {"color": alt.Color("state:N", title=None, scale=scale, legend=legend)}
    if legend is not None:
        encoded["shape"] = alt.Shape("state:N", title=None, scale=scale, legend=legend)
    return encoded


def work_over_time(blocks: pl.DataFrame) -> Chart:
    """Draw how an annotator's ratings, or errors, change from block to block of the work."""
    is_rated = "difference" in blocks.columns and blocks["difference"].null_count() < blocks.height
    column = "difference" if is_rated else "error"
    values = blocks.drop_nulls(column).select("block", column)
    if values.is_empty():
        values = blocks.select("block", pl.lit(0.0).alias(column))
    first, last = float(values[column][0]), float(values[column][-1])
    what = (
        "Difference from this annotator’s expected ratings" if is_rated else "Mean deviation from the expected answers"
    )
    signed = "{:+.2g}" if is_rated else "{:.2g}"
    title = f"{what}: {signed.format(first)} at first, {signed.format(last)} in the end".replace("-", "−")
    base = alt.Chart(values_of(values)).encode(
        x=alt.X("block:O", title="part of the work, in order", axis=alt.Axis(labelAngle=0)),
        y=alt.Y(f"{column}:Q", title="points of the scale" if is_rated else "standard deviations"),
    )
    zero = alt.Chart(values_of(pl.DataFrame({"zero": [0.0]}))).mark_rule(opacity=0.4).encode(y="zero:Q")
    layers = [base.mark_line(), base.mark_point(filled=True, size=60)]
    chart = alt.layer(*([zero, *layers] if is_rated else layers))
    return titled(chart.properties(width=WIDTH, height=180), title)  # type: ignore[no-any-return]


def accuracy(table: pl.DataFrame, *, passed: float | None = None, against: str = "the checks") -> Chart:
    """Draw each annotator's accuracy against the number of judgments, as in Fig. 6 of Snow et al. (2008).

    `table` has `annotator`, `judgments`, `accuracy` with `accuracy_lower` and `accuracy_upper`, and `excluded`;
    `passed` is the required accuracy.
    """
    checked = table.filter(pl.col("accuracy").is_not_null()).with_columns(_state())
    title = f"There are no answers to {against} yet"
    if checked.height:
        median = float(checked["accuracy"].median() or 0)  # type: ignore[arg-type]
        title = f"Half of the {checked.height} annotators get more than {100 * median:.0f}\u00a0% of {against} right"
        if passed is not None:
            below = checked.filter(pl.col("accuracy") < passed).height
            title += f"; {below} {'is' if below == 1 else 'are'} below {100 * passed:.0f}\u00a0%"
    columns = ["annotator", "judgments", "accuracy", "accuracy_lower", "accuracy_upper", "state"]
    base = alt.Chart(values_of(checked.select(columns))).encode(
        x=alt.X(
            "judgments:Q",
            title="judgments",
            axis=alt.Axis(format=",d", tickMinStep=1, tickCount=6),
            scale=alt.Scale(zero=False),
        )
    )
    share = f"accuracy on {against}"
    y = alt.Y("accuracy:Q", title=share, axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1]))
    colours = _colours(checked)
    layers = [
        base.mark_rule(opacity=0.3).encode(
            y=alt.Y("accuracy_lower:Q", title=share), y2="accuracy_upper:Q", color=colours["color"]
        ),
        base.mark_point(filled=True, size=60, opacity=0.9).encode(y=y, **colours),
    ]
    if passed is not None:
        goal = alt.Chart(alt.InlineData(values=[{"pass": passed}])).mark_rule(strokeDash=[6, 4])
        layers.append(goal.encode(y="pass:Q"))
    return titled(alt.layer(*layers).properties(width=WIDTH, height=HEIGHT), title)  # type: ignore[no-any-return]


def bias_and_noise(table: pl.DataFrame) -> Chart:
    """Draw each annotator's bias and noise relative to the others (ratings only)."""
    rated = table.filter(pl.col("bias").is_not_null() & pl.col("noise").is_not_null()).with_columns(_state())
    title = "Bias and noise cannot be estimated yet: annotators share too few items"
    if rated.height:
        furthest = rated.sort(pl.col("bias").abs(), descending=True).row(0, named=True)
        noisiest = rated.sort("noise", descending=True).row(0, named=True)
        title = f"Biases reach {furthest['bias']:+.3g} ({furthest['annotator']})"
        title += f", noise {format_number(noisiest['noise'])} ({noisiest['annotator']})"
    chart = (
        alt.Chart(values_of(rated.select("annotator", "bias", "noise", "state")))
        .mark_point(filled=True, size=60, opacity=0.9)
        .encode(
            x=alt.X("bias:Q", title="bias: mean difference from the other annotators"),
            y=alt.Y("noise:Q", title="noise: standard deviation of the difference"),
            **_colours(rated),
        )
    )
    return titled(chart.properties(width=WIDTH, height=HEIGHT), title)  # type: ignore[no-any-return]


def interim_analyses(table: pl.DataFrame, measure: str) -> Chart:
    """Draw the estimate and bound of each interim analysis, and the target."""
    bounded = table.filter(pl.col("bound").is_not_null())
    last = table.row(-1, named=True)
    analyses = f"{table.height} interim {'analysis' if table.height == 1 else 'analyses'}"
    title = f"The target was {'reached' if last['reached'] else 'not reached'} after {analyses}"
    base = alt.Chart(values_of(bounded.select("judgments", "value", "bound"))).encode(
        x=alt.X(
            "judgments:Q",
            title="judgments at the analysis",
            axis=alt.Axis(format=",d", tickCount=6),
            scale=alt.Scale(zero=False),
        )
    )
    target = alt.Chart(alt.InlineData(values=[{"target": last["target"]}]))
    y: dict[str, Any] = {"title": measure, "scale": alt.Scale(zero=False)}
    layers = [
        target.mark_rule(strokeDash=[6, 4]).encode(y=alt.Y("target:Q", **y)),
        base.mark_rule(opacity=0.5).encode(y=alt.Y("bound:Q", **y), y2="value:Q"),
        base.mark_point(filled=True, size=60, opacity=1).encode(y=alt.Y("value:Q", **y)),
        base.mark_tick(thickness=3, width=14).encode(y=alt.Y("bound:Q", **y)),
    ]
    subtitle = "dots: estimate; bars: confidence bound; dashed: target"
    return titled(alt.layer(*layers).properties(width=WIDTH, height=200), title, subtitle)  # type: ignore[no-any-return]


def repeats(table: pl.DataFrame) -> Chart:
    """Draw the proportion of repeats that differ, by time between them; `table` is that of `repeats_by_time`."""
    first, last = table.row(0, named=True), table.row(-1, named=True)

    def percentage(row: dict[str, Any]) -> str:
        ends = (None if row[key] is None else 100 * row[key] for key in ("lower", "upper"))
        return format_interval(Estimate(100 * row["rate"], *ends), 2)

    title = f"{percentage(first)}\u00a0% of repeats differ"
    if table.height > 1:
        title = f"{percentage(first)}\u00a0% of repeats differ after the shortest time"
        title += f", {percentage(last)}\u00a0% after the longest"
    middle = ((pl.col("from") + pl.col("to")) / 2).alias("hours")
    base = alt.Chart(values_of(table.select(middle, "rate", "lower", "upper"))).encode(
        x=alt.X("hours:Q", title="hours between", axis=alt.Axis(tickCount=6), scale=alt.Scale(zero=True))
    )
    share = "proportion that differ"
    y = alt.Y("rate:Q", title=share, axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1]))
    layers = [
        base.mark_rule(opacity=0.5).encode(y=alt.Y("lower:Q", title=share), y2="upper:Q"),
        base.mark_line(point=alt.OverlayMarkDef(size=50, filled=True)).encode(y=y),
    ]
    return titled(alt.layer(*layers).properties(width=WIDTH, height=200), title)  # type: ignore[no-any-return]
