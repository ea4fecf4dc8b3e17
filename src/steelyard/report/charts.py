"""Charts of a study, as Altair specifications; each title states the finding, and the data comes from `tables`.

They are public as `steelyard.plot`. `svg` and `png` draw one without a browser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from textwrap import wrap
from typing import Any, Literal, TypeAlias
from xml.sax.saxutils import quoteattr  # nosec B406 - it only quotes

import altair as alt
import polars as pl

from steelyard.analysis.tables import Estimate, Forecast
from steelyard.quality.signals import far_below
from steelyard.report import typeface
from steelyard.report.formatting import format_duration, format_interval, format_number, format_rounded, shorten

Chart: TypeAlias = "alt.Chart | alt.LayerChart | alt.HConcatChart | alt.FacetChart | alt.VConcatChart"
Theme: TypeAlias = Literal["light", "dark"]

WIDTH, HEIGHT = 640, 260
MOST_ITEMS = 40
"""Maximum number of items in a caterpillar plot; of more items, some are drawn, spread evenly over the ranks."""
MOST_ANNOTATORS = 40
"""Maximum number of annotators in a chart with one row for each; of more, those with the lowest agreement are drawn."""
_RHO = "split-half Spearman’s ρ"

_COLOURS: dict[str, dict[str, str]] = {
    "light": {"ink": "#1b232b", "muted": "#53606d", "line": "#cdd5dd", "accent": "#2c5e8a", "warm": "#b85a10"},
    "dark": {"ink": "#e8edf2", "muted": "#a5b1bd", "line": "#36414c", "accent": "#8ebbe4", "warm": "#f2ab6b"},
}
_SHADES = {"light": ["#eef3f8", "#2c5e8a"], "dark": ["#232b34", "#8ebbe4"]}


def values_of(frame: pl.DataFrame) -> alt.InlineData:
    """Return a frame as chart data, with times as text."""
    plain = [
        {key: value.isoformat() if isinstance(value, datetime) else value for key, value in row.items()}
        for row in frame.iter_rows(named=True)
    ]
    return alt.InlineData(values=plain)


def count_axis(counts: pl.Series, **options: Any) -> alt.Axis:
    """Return an axis for whole numbers; every tick is a whole number."""
    most = max([0, *counts.to_list()])
    # Vega places ticks at fractions on short axes and rounds their labels: 1 1 2 2 3.
    if most <= 10:
        options["values"] = list(range(int(most) + 1))
    return alt.Axis(format=",d", tickMinStep=1, labelOverlap="greedy", **options)


def item_labels(scores: pl.DataFrame) -> list[str]:
    """Return a label for each row: the item's id; with its text, if the ids are numbers, which would read as ranks."""
    ids = [str(identifier) for identifier in scores[scores.columns[0]].to_list()]
    if "text" not in scores.columns or not all(identifier.isdecimal() for identifier in ids):
        return [shorten(identifier) for identifier in ids]
    texts = scores["text"].fill_null("").to_list()
    return [
        shorten(f"{identifier}: {text}" if text else identifier) for identifier, text in zip(ids, texts, strict=True)
    ]


def titled(chart: Any, title: str, subtitle: str | Sequence[str] = "") -> Any:
    """Set the title of a chart, which states the finding."""
    lines = [subtitle] if isinstance(subtitle, str) else list(subtitle)
    return chart.properties(title=alt.Title(title, subtitle=[line for line in lines if line] or alt.Undefined))


def _time(field: str, table: pl.DataFrame) -> alt.X:
    """Return a time axis in UTC; its range determines how much of the date is shown."""
    days = (table["at"][-1] - table["start"][0]) / timedelta(days=1) if table.height else 0
    form = "%H:%M:%S" if days < 1 / 48 else "%H:%M" if days < 1.5 else "%d %b"
    axis = alt.Axis(format=form, tickCount=6, labelOverlap="greedy", labelSeparation=8)
    return alt.X(f"{field}:T", title="time (UTC)", axis=axis, scale=alt.Scale(type="utc"))


# Progress


def progress(table: pl.DataFrame, done: int, total: int, left: Forecast) -> Chart:
    """Draw the judgments so far over time; `table` is that of `progress_over_time`."""
    begin = table.head(1).select(pl.col("start").alias("at"), pl.lit(0, pl.Int64).alias("cumulative"))
    line = pl.concat([begin, table.select("at", "cumulative")])
    title = f"{done:,} of {total:,} judgments ({100 * done // max(total, 1)} %)"
    if left.hours is not None:
        title += f", done in about {format_duration(left.hours.value)}"
    elif total and done >= total:
        title = f"All {total:,} judgments are collected"
    chart = (
        alt.Chart(values_of(line))
        .mark_area(line=True, opacity=0.25)
        .encode(
            x=_time("at", table),
            y=alt.Y("cumulative:Q", title="judgments", axis=count_axis(line["cumulative"])),
        )
    )
    return titled(chart.properties(width=WIDTH, height=HEIGHT), title)  # type: ignore[no-any-return]


def speed(table: pl.DataFrame, rate: Estimate | None) -> Chart:
    """Draw the judgments per hour over time."""
    if rate is None or not rate.value:
        title = "Nobody has judged in the last hour"
    else:
        low, high = format_rounded(rate.lower or 0), format_rounded(rate.upper or 0)
        title = f"{format_rounded(rate.value)} judgments per hour now ({low}–{high})"
    chart = (
        alt.Chart(values_of(table))
        .mark_rect()
        .encode(
            x=_time("start", table),
            x2="at:T",
            y=alt.Y("per_hour:Q", title="judgments per hour", axis=alt.Axis(format="~s")),
            y2=alt.datum(0),
        )
    )
    return titled(chart.properties(width=WIDTH, height=HEIGHT), title)  # type: ignore[no-any-return]


# Scores


def caterpillar(ranked: pl.DataFrame, *, level: float = 0.95) -> Chart:
    """Draw scores with their intervals, the highest on top; `ranked` is that of `ranked_items`."""
    scored = ranked.filter(pl.col("score").is_not_null()).with_row_index("place", offset=1)
    selection = scored if scored.height <= MOST_ITEMS else scored[_spread(scored.height, MOST_ITEMS)]
    labels = item_labels(selection.drop("place"))
    rows = selection.select("place", "score", "lower", "upper", pl.Series("name", labels, pl.String))
    # By place, as two items may have the same label.
    named = {str(place): label for place, label in zip(rows["place"], labels, strict=True)}
    axis = alt.Axis(labelLimit=220, labelExpr=f"({json.dumps(named)})[datum.value]")
    y = alt.Y("place:O", sort=None, title=None, axis=axis)
    x = f"score, with {level:.0%} intervals".replace("%", " %")
    scale = alt.Scale(zero=False)
    base = alt.Chart(values_of(rows)).encode(y=y)
    rules = base.mark_rule().encode(x=alt.X("lower:Q", title=x, scale=scale), x2="upper:Q")
    points = base.mark_point(filled=True, size=46, opacity=1).encode(x=alt.X("score:Q", title=x))
    return titled(  # type: ignore[no-any-return]
        alt.layer(rules, points).properties(width=WIDTH - 140, height=alt.Step(20)),
        _finding(scored.drop("place")),
        ""
        if selection.height == scored.height
        else f"{selection.height} of {scored.height:,} items, evenly spaced by rank",
    )


def _spread(count: int, wanted: int) -> list[int]:
    return sorted({round(step * (count - 1) / (wanted - 1)) for step in range(wanted)})


def _finding(known: pl.DataFrame) -> str:
    if known.is_empty():
        return "No item has a score yet"
    ends = known[[0, -1]]
    first, last = (
        {**row, "label": label} for row, label in zip(ends.iter_rows(named=True), item_labels(ends), strict=True)
    )

    def placed(row: dict[str, Any]) -> str:
        return f"{shorten(row['label'], 24)}, {format_interval(Estimate(row['score'], row['lower'], row['upper']))}"

    if known.height == 1:
        return f"One item has a score: {placed(first)}"
    return f"Highest: {placed(first)}; lowest: {placed(last)}"


def histogram(table: pl.DataFrame, *, what: str = "score") -> Chart:
    """Draw the distribution of the scores; `table` is that of `score_histogram`."""
    if table.is_empty():
        title = "No item has a score yet"
    else:
        total = int(table["items"].sum())
        used = table.filter(pl.col("items") > 0)
        title = f"{total:,} items lie between {format_number(used['lower'][0])} and {format_number(used['upper'][-1])}"
        middle = table.with_columns(pl.col("items").cum_sum().alias("sum")).filter(pl.col("sum") * 2 >= total)
        title += f", half of them below {format_number(middle['upper'][0])}"
    chart = (
        alt.Chart(values_of(table))
        .mark_bar(binSpacing=1)
        .encode(
            x=alt.X("lower:Q", bin="binned", title=what, axis=alt.Axis(labelOverlap="greedy", labelSeparation=8)),
            x2="upper:Q",
            y=alt.Y("items:Q", title="items", axis=count_axis(table["items"])),
        )
    )
    return titled(chart.properties(width=WIDTH, height=HEIGHT), title)  # type: ignore[no-any-return]


def labels(table: pl.DataFrame) -> Chart:
    """Draw the number of items by label; `table` is that of `label_counts`."""
    if table.is_empty():
        title = "No item has a label yet"
    else:
        share = table["items"][0] / table["items"].sum()
        title = f"{shorten(table['label'][0])} is the most frequent label: {share:.0%} of the items".replace("%", " %")
    chart = (
        alt.Chart(values_of(table))
        .mark_bar()
        .encode(
            x=alt.X("items:Q", title="items", axis=count_axis(table["items"])),
            y=alt.Y("label:N", sort=None, title=None, axis=alt.Axis(labelLimit=220)),
        )
    )
    return titled(chart.properties(width=WIDTH - 140, height=alt.Step(28)), title)  # type: ignore[no-any-return]


# Reliability


def reliability(table: pl.DataFrame, *, target: float | None = None) -> Chart:
    """Draw split-half reliability against judgments; `table` is that of `split_half_by_budget`, plain Spearman."""
    rated = table.filter(pl.col("value").is_not_null())
    if rated.is_empty():
        title = "Split-half reliability cannot be estimated yet: too few items have two judgments"
    else:
        last = rated.row(-1, named=True)
        value = format_interval(Estimate(last["value"], last["lower"], last["upper"]), 2)
        each = last["per_half"]
        title = f"Split-half reliability is {value} with {each} judgment{'s' if each != 1 else ''} in each half"
    most = max([1, *rated["per_half"]])
    base = alt.Chart(values_of(rated.select("per_half", "value", "lower", "upper"))).encode(
        x=alt.X(
            "per_half:Q",
            title="judgments in each half, of an item or task",
            axis=count_axis(rated["per_half"]),
            scale=alt.Scale(domain=[0.5, most + 0.5], nice=False),
        )
    )
    y = alt.Y("value:Q", title=_RHO, scale=alt.Scale(domain=[0, 1], clamp=True))
    layers = [
        base.mark_rule(strokeWidth=2, opacity=0.5).encode(y=alt.Y("lower:Q", title=_RHO), y2="upper:Q"),
        base.mark_line(point=alt.OverlayMarkDef(size=50, filled=True)).encode(y=y),
    ]
    if target is not None:
        goal = alt.Chart(alt.InlineData(values=[{"target": target}])).mark_rule(strokeDash=[6, 4])
        layers.append(goal.encode(y="target:Q"))
    return titled(alt.layer(*layers).properties(width=WIDTH, height=HEIGHT), title)  # type: ignore[no-any-return]


# Annotators


def annotators(table: pl.DataFrame) -> Chart:
    """Draw each person's agreement with the others, one row for each; `table` is that of `annotator_table`.

    Models have a table of their own.
    """
    if "kind" in table.columns:
        table = table.filter(pl.col("kind") == "person")
    comparable = (
        table.filter(pl.col("agreement").is_not_null())
        .with_columns(
            pl.when(pl.col("excluded").is_null()).then(pl.lit("counted")).otherwise(pl.lit("excluded")).alias("state"),
        )
        .sort("agreement")
    )
    low = far_below(comparable.filter(pl.col("excluded").is_null()))
    if comparable.is_empty():
        title = "Agreement cannot be estimated yet: annotators share too few items"
    elif low:
        named = ", ".join(shorten(name, 16) for name in low[:3]) + ("…" if len(low) > 3 else "")
        title = f"{len(low)} of {comparable.height} annotators agree clearly less than average: {named}"
    else:
        title = f"None of {comparable.height} annotators agrees clearly less with the others than average"
    measure = str(comparable["measure"][0]) if comparable.height else "agreement"
    rows = comparable.head(MOST_ANNOTATORS).reverse()
    columns = rows.select("annotator", "judgments", "agreement", "agreement_lower", "agreement_upper", "state")
    states, legend = _states(rows["state"].n_unique() > 1)
    base = alt.Chart(values_of(columns)).encode(
        y=alt.Y("annotator:N", sort=None, title=None, axis=alt.Axis(labelLimit=160)),
        color=alt.Color("state:N", title=None, scale=states, legend=legend),
    )
    x = alt.X("agreement:Q", title="agreement, with 95 % intervals", scale=alt.Scale(zero=False))
    points = base.mark_point(filled=True, size=60, opacity=1).encode(x=x)
    if legend is not None:
        points = points.encode(shape=alt.Shape("state:N", title=None, scale=states, legend=legend))
    intervals = base.mark_rule(opacity=0.5).encode(
        x=alt.X("agreement_lower:Q", title="agreement, with 95 % intervals"), x2="agreement_upper:Q"
    )
    chart = alt.layer(intervals, points).properties(width=WIDTH - 140, height=alt.Step(20))
    lines = [measure]
    if rows.height < comparable.height:
        lines.append(f"the {rows.height} with the lowest agreement of {comparable.height}")
    return titled(chart, title, lines)  # type: ignore[no-any-return]


def _states(both: bool) -> tuple[alt.Scale, Any]:
    """Return the scale of counted and excluded, and its legend, if both occur."""
    return alt.Scale(domain=["counted", "excluded"]), alt.Legend() if both else None


def item_ratings(table: pl.DataFrame, name: str, scale: tuple[float, float]) -> Chart:
    """Draw the ratings of one item by annotator; `table` is that of `item_judgments`."""
    rated = table.filter(pl.col("value").is_not_null())
    counted = rated.filter(~pl.col("excluded"))
    title = f"There are no ratings of {shorten(name)} yet"
    if counted.height:
        low, high, mean = counted["value"].min(), counted["value"].max(), counted["value"].mean()
        title = f"{counted.height} ratings of {shorten(name)}: {format_number(float(mean or 0))} on average"  # type: ignore[arg-type]
        title += f", from {format_number(float(low or 0))} to {format_number(float(high or 0))}"  # type: ignore[arg-type]
    points = rated.select("annotator", "value", pl.col("excluded").replace_strict({True: "excluded", False: "counted"}))
    states, legend = _states(counted.height < rated.height)
    chart = (
        alt.Chart(values_of(points))
        .mark_tick(thickness=3, height=40, opacity=0.7)
        .encode(
            x=alt.X("value:Q", title="value", scale=alt.Scale(domain=list(scale))),
            color=alt.Color("excluded:N", title=None, scale=states, legend=legend),
        )
    )
    return titled(chart.properties(width=WIDTH, height=60), title)  # type: ignore[no-any-return]


# Selection of tasks


def match_quality_map(table: pl.DataFrame) -> Chart:
    """Draw the match quality of every two items by round; `table` is that of `match_quality_by_round`.

    As Fig. 8 of Sakaguchi & Van Durme (2018), with the items in the order of their present scores.
    """
    rounds = sorted(table["round"].unique().to_list()) if table.height else []
    title = "No round has started yet"
    if rounds:
        last = table.filter(pl.col("round") == rounds[-1])
        near = last.filter((pl.col("row") - pl.col("column")).abs() <= 2)["quality"].mean()
        far = last.filter((pl.col("row") - pl.col("column")).abs() > 2)["quality"].mean()
        if isinstance(near, float) and isinstance(far, float) and far > 0:
            title = (
                f"In round {rounds[-1] + 1}, neighbouring items match {near / far:.1f} times as well as items "
                "further apart"
            )
    chart = (
        alt.Chart(values_of(table))
        .mark_rect()
        .encode(
            x=alt.X("column:O", title=None, axis=None),
            y=alt.Y("row:O", title=None, axis=None),
            color=alt.Color("quality:Q", title="match quality", scale=alt.Scale(domainMin=0)),
        )
        .properties(width=150, height=150)
        .facet(alt.Facet("label:N", title=None, sort=[f"round {number + 1}" for number in rounds]), columns=4)
    )
    return titled(chart, title, "items ordered by score, lowest at the left and top")  # type: ignore[no-any-return]


# Drawing


def title_of(chart: Chart) -> str:
    """Return the title of a chart."""
    title = chart.to_dict(validate=False)["title"]
    return str(title["text"] if isinstance(title, dict) else title)


def spec(chart: Chart, theme: Theme = "light", width: int = WIDTH) -> dict[str, Any]:
    """Return a chart as a Vega-Lite specification, with the colours of a theme and about `width` pixels wide."""
    colours = _COLOURS[theme]
    specification: dict[str, Any] = chart.to_dict(validate=False)
    specification["background"] = None
    _fit(specification, width)
    specification["config"] = {
        # An ARIA label for every mark would make the file several times as large; the page describes the chart.
        "aria": False,
        "font": typeface.FAMILY,
        "view": {"stroke": None},
        "title": {
            "anchor": "start",
            "frame": "bounds",
            "color": colours["ink"],
            "subtitleColor": colours["muted"],
            "fontSize": 15,
            "subtitleFontSize": 12,
            "fontWeight": 600,
            "offset": 12,
        },
        "axis": {
            "labelColor": colours["muted"],
            "titleColor": colours["muted"],
            "gridColor": colours["line"],
            "gridOpacity": 0.7,
            "domainColor": colours["line"],
            "tickColor": colours["line"],
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": 400,
            "titlePadding": 10,
        },
        "legend": {
            "labelColor": colours["muted"],
            "titleColor": colours["muted"],
            "labelFontSize": 12,
            "orient": "top",
        },
        "header": {"labelColor": colours["muted"], "titleColor": colours["muted"], "titleFontWeight": 400},
        "range": {
            "category": [colours["accent"], colours["warm"], colours["muted"]],
            "ramp": _SHADES[theme],
            "heatmap": _SHADES[theme],
        },
        **{
            mark: {"color": colours["accent"]}
            for mark in ("mark", "bar", "area", "rect", "rule", "point", "line", "tick")
        },
    }
    return specification


def _fit(made: dict[str, Any], width: int) -> None:
    """Scale a chart to a width; its title is wrapped rather than cut."""
    if isinstance(made.get("width"), int):
        made["width"] = made["width"] + width - WIDTH
    elif "spec" in made:
        made["columns"] = 4 if width >= WIDTH else 2
        made["spec"] |= dict.fromkeys(("width", "height"), width // made["columns"] - 16)
    title = made.get("title")
    if isinstance(title, dict):
        title["text"] = wrap(str(title["text"]), width // 8)
        title |= (
            {"subtitle": [line for text in title["subtitle"] for line in wrap(text, width // 7)]}
            if "subtitle" in title
            else {}
        )


def load_renderer() -> None:
    """Start the library that draws charts, which takes about a second, before the first chart is needed."""
    svg(histogram(pl.DataFrame({"lower": [0.0], "upper": [1.0], "items": [1]})))


_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _drawable(value: Any) -> Any:
    """Replace characters that XML cannot hold, such as control characters in the id of an item: the renderer aborts."""
    if isinstance(value, str):
        return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, dict):
        return {_drawable(key): _drawable(inner) for key, inner in value.items()}
    return [_drawable(inner) for inner in value] if isinstance(value, list) else value


def svg(chart: Chart, theme: Theme = "light", *, width: int = WIDTH, embed_font: bool = True) -> str:
    """Draw a chart as SVG, with its title as the drawing's name.

    With `embed_font`, it holds its typeface and looks the same everywhere.
    """
    drawing = str(typeface.renderer().vegalite_to_svg(_drawable(spec(chart, theme, width)), allowed_base_urls=[]))
    drawing = drawing.replace("<svg ", f"<svg aria-label={quoteattr(title_of(chart))} ", 1)
    return typeface.embed_in_svg(drawing) if embed_font else drawing


def png(chart: Chart, theme: Theme = "light", *, width: int = WIDTH, scale: float = 2.0) -> bytes:
    """Draw a chart as PNG, on the background of the page."""
    specification = {**_drawable(spec(chart, theme, width)), "background": "#ffffff" if theme == "light" else "#1a2027"}
    return bytes(typeface.renderer().vegalite_to_png(specification, scale=scale, allowed_base_urls=[]))
