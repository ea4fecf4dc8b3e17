"""How the experiments' figures look: ours as lines with bands, the published values as hollow marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from steelyard.report.charts import HEIGHT, WIDTH, Chart, titled, values_of

COLOURS = ("#2c5e8a", "#b85a10", "#4f8a5b", "#8a4f7d", "#7a7f35", "#53606d", "#9c3d3d")
_WIDE_PANELS = 3
"""Maximum number of panels in one row."""


_LEGEND_LETTERS = 70
"""As many letters of all names as stand in one row of a legend; beyond, names stand in two columns."""


def colour(field: str, names: Sequence[str]) -> alt.Color:
    """Return one colour for each name, in their order, with a legend above."""
    columns = 2 if sum(map(len, names)) > _LEGEND_LETTERS else len(names)
    return alt.Color(
        f"{field}:N",
        sort=list(names),
        scale=alt.Scale(domain=list(names), range=list(COLOURS[: len(names)])),
        legend=alt.Legend(
            title=None,
            orient="top",
            columns=columns,
            columnPadding=48,
            symbolType="stroke",
            symbolStrokeWidth=3,
            symbolOpacity=1,
            labelLimit=320,
        )
        if len(names) > 1
        else None,
    )


def curves(
    table: pl.DataFrame,
    x: str,
    y: str,
    by: str,
    *,
    title: str,
    subtitle: str | Sequence[str] = "",
    x_title: str = "",
    y_title: str = "",
    y_format: str = ".2f",
    whole_numbers: bool = True,
    facet: str | None = None,
    points: bool = True,
) -> Chart:
    """Draw a line for each value of `by`; bands where there are `lower` and `upper`; `published` as hollow marks."""
    names = table[by].unique(maintain_order=True).to_list()
    tint = colour(by, names)
    axis = alt.Axis(tickMinStep=1, format="d") if whole_numbers else alt.Axis(grid=False)
    across = alt.X(f"{x}:Q", title=x_title or x, axis=axis, scale=alt.Scale(zero=False, nice=False, padding=8))
    scale = alt.Scale(zero=False)
    up_title = y_title or y
    base = alt.Chart().encode(x=across)
    layers: list[Any] = []
    if {"lower", "upper"} <= set(table.columns):
        layers.append(
            base.mark_area(opacity=0.15).encode(
                y=alt.Y("lower:Q", title=up_title, scale=scale), y2="upper:Q", color=tint
            )
        )
    up = alt.Y(f"{y}:Q", title=up_title, scale=scale, axis=alt.Axis(format=y_format, tickCount=6))
    mark = alt.OverlayMarkDef(size=28) if points else False
    layers.append(base.mark_line(strokeWidth=2.2, point=mark).encode(y=up, color=tint))
    if "published" in table.columns and table["published"].is_not_null().any():
        layers.append(
            base.transform_filter("isValid(datum.published)")
            .mark_point(filled=False, size=90, strokeWidth=1.8, opacity=1, shape="diamond")
            .encode(y=alt.Y("published:Q", title=up_title), color=tint)
        )
    panels = [] if facet is None else table[facet].unique(maintain_order=True).to_list()
    if not panels:
        chart: Any = alt.layer(*layers, data=values_of(table)).properties(width=WIDTH, height=HEIGHT)
    elif len(panels) <= _WIDE_PANELS:
        chart = alt.hconcat(
            *(
                alt.layer(*layers, data=values_of(table.filter(pl.col(str(facet)) == panel))).properties(
                    width=WIDTH // len(panels) - 60, height=HEIGHT - 40, title=alt.Title(str(panel), fontSize=12)
                )
                for panel in panels
            )
        )
    else:
        # The data belongs to the whole, so that layers can be repeated by facet.
        chart = (
            alt.layer(*layers, data=values_of(table))
            .properties(width=150, height=150)
            .facet(alt.Facet(f"{facet}:N", title=None, sort=panels), columns=4)
            .resolve_scale(y="independent")
        )
    return titled(chart, title, subtitle)  # type: ignore[no-any-return]


def bars(
    table: pl.DataFrame,
    label: str,
    value: str,
    *,
    title: str,
    subtitle: str | Sequence[str] = "",
    value_title: str = "",
    value_format: str = ".2f",
) -> Chart:
    """Draw a bar for each row with its interval, where there is one; `published` as hollow marks."""
    names = table[label].to_list()
    down = alt.Y(f"{label}:N", sort=names, title=None, axis=alt.Axis(labelLimit=260))
    up_title = value_title or value
    base = alt.Chart().encode(y=down)
    across = alt.X(f"{value}:Q", title=up_title, axis=alt.Axis(format=value_format, tickCount=6))
    layers: list[Any] = [base.mark_bar(opacity=0.85, height={"band": 0.6}).encode(x=across)]
    if {"lower", "upper"} <= set(table.columns):
        layers.append(
            base.mark_rule(strokeWidth=1.6, color="#1b232b").encode(x=alt.X("lower:Q", title=up_title), x2="upper:Q")
        )
    if "published" in table.columns and table["published"].is_not_null().any():
        layers.append(
            base.transform_filter("isValid(datum.published)")
            .mark_point(filled=False, size=90, strokeWidth=2, opacity=1, shape="diamond", color=COLOURS[1])
            .encode(x=alt.X("published:Q", title=up_title))
        )
    chart = alt.layer(*layers, data=values_of(table)).properties(width=WIDTH - 140, height=alt.Step(24))
    return titled(chart, title, subtitle)  # type: ignore[no-any-return]
