"""Charts: their titles state the finding, their data is the table's, and they can be drawn."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from steelyard.analysis.tables import Estimate, Forecast
from steelyard.report import charts
from steelyard.report.formatting import format_duration, format_interval, format_number, format_rounded, shorten
from steelyard.report.systems import significance_matrix

START = datetime(2026, 1, 1, tzinfo=UTC)
PROGRESS = pl.DataFrame(
    {
        "start": [START, START + timedelta(hours=1)],
        "at": [START + timedelta(hours=1), START + timedelta(hours=2)],
        "judgments": [10, 30],
        "cumulative": [10, 40],
        "per_hour": [10.0, 30.0],
    }
)
RANKED = pl.DataFrame(
    {
        "item": ["go", "be", "ask"],
        "text": ["go", "be", "ask"],
        "score": [97.0, 50.0, 4.0],
        "lower": [90.0, 40.0, 0.0],
        "upper": [100.0, 60.0, 9.0],
    }
)


def annotators(*agreement: tuple[float, float, float]) -> pl.DataFrame:
    value, lower, upper = zip(*agreement, strict=True)
    return pl.DataFrame(
        {
            "annotator": [f"p{n}" for n in range(len(agreement))],
            "judgments": [10 + n for n in range(len(agreement))],
            "agreement": value,
            "agreement_lower": lower,
            "agreement_upper": upper,
            "excluded": [None] * len(agreement),
            "measure": ["correlation"] * len(agreement),
        },
        schema_overrides={"excluded": pl.String},
    )


def data_of(chart):
    """All the rows a chart is drawn from."""
    return [row for rows in chart.to_dict(validate=False)["datasets"].values() for row in rows]


ALIKE = [(0.9, 0.85, 0.95)] * 4


@pytest.mark.parametrize(
    ("chart", "title"),
    [
        (
            charts.progress(PROGRESS, 40, 100, Forecast(60, Estimate(2.0, 1.5, 3.0))),
            "40 of 100 judgments (40 %), done in about 2 h",
        ),
        (charts.progress(PROGRESS, 100, 100, Forecast(0, None)), "All 100 judgments are collected"),
        (charts.speed(PROGRESS, Estimate(30.4, 20.2, 42.9)), "30 judgments per hour now (20–43)"),
        (charts.speed(PROGRESS, Estimate(0.0, 0.0, 3.7)), "Nobody has judged in the last hour"),
        (charts.caterpillar(RANKED), "Highest: go, 97 (90–100); lowest: ask, 4 (0–9)"),
        (charts.caterpillar(RANKED.head(1)), "One item has a score: go, 97 (90–100)"),
        (charts.caterpillar(RANKED.head(0)), "No item has a score yet"),
        (
            charts.labels(pl.DataFrame({"label": ["yes", "no"], "items": [3, 1]})),
            "yes is the most frequent label: 75 % of the items",
        ),
        (
            charts.annotators(annotators(*ALIKE, (0.1, -0.2, 0.4))),
            "1 of 5 annotators agree clearly less than average: p4",
        ),
        (
            charts.annotators(annotators(*ALIKE, (0.7, 0.4, 0.9))),
            "None of 5 annotators agrees clearly less with the others than average",
        ),
    ],
)
def test_titles_state_the_finding(chart, title):
    assert charts.title_of(chart) == title


def test_a_histogram_says_where_the_items_lie_and_where_the_middle_is():
    table = pl.DataFrame({"lower": [0.0, 25.0, 50.0, 75.0], "upper": [25.0, 50.0, 75.0, 100.0], "items": [0, 3, 2, 0]})
    assert charts.title_of(charts.histogram(table)) == "5 items lie between 25 and 75, half of them below 50"


def test_reliability_names_the_last_budget_and_draws_the_target():
    table = pl.DataFrame({"per_half": [1, 2], "value": [0.6, 0.75], "lower": [0.5, 0.7], "upper": [0.7, 0.8]})
    chart = charts.reliability(table, target=0.9)
    assert charts.title_of(chart) == "Split-half reliability is 0.75 (0.70–0.80) with 2 judgments in each half"
    assert {"target": 0.9} in data_of(chart)


def test_a_chart_is_drawn_in_either_theme_and_as_narrow_as_a_phone():
    chart = charts.caterpillar(RANKED)
    light, dark = charts.svg(chart), charts.svg(chart, "dark", width=300)
    assert light.startswith("<svg")
    assert dark != light
    wide, narrow = (int(float(svg.split('width="')[1].split('"')[0])) for svg in (light, dark))
    assert narrow < 360 < wide < 760
    assert charts.png(chart).startswith(b"\x89PNG")


def test_long_titles_are_wrapped_and_hostile_names_stay_text():
    ranked = RANKED.with_columns(pl.Series("item", ["<script>alert(1)</script> & a very long name", "b", "c"]))
    svg = charts.svg(charts.caterpillar(ranked), width=300)
    assert "<script>" not in svg
    assert len(charts.spec(charts.caterpillar(ranked), width=300)["title"]["text"]) > 1


def test_a_large_study_is_drawn_by_items_spread_over_its_ranks():
    scores = pl.DataFrame({"item": [str(n) for n in range(10_000)], "score": [float(-n) for n in range(10_000)]})
    chart = charts.caterpillar(scores.with_columns(lower=pl.col("score") - 1, upper=pl.col("score") + 1))
    values = data_of(chart)
    assert len(values) == charts.MOST_ITEMS
    assert (values[0]["place"], values[-1]["place"]) == (1, 10_000)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (format_number(0), "0"),
        (format_number(12345.6), "12,346"),
        (format_number(87.25), "87.2"),
        (format_number(0.0421), "0.0421"),
        (format_number(5.0), "5"),
        (format_rounded(12345), "12,000"),
        (format_rounded(7.26), "7.3"),
        (format_interval(Estimate(0.8549, 0.8150, 0.8867), 2), "0.855 (0.815–0.887)"),
        (format_interval(Estimate(99.6, 85.9, 100)), "99.6 (85.9–100.0)"),
        (format_interval(Estimate(3, 1, 20)), "3 (1–20)"),
        (format_interval(Estimate(5.0)), "5"),
        (format_duration(1 / 60), "60 s"),
        (format_duration(0.5), "30 min"),
        (format_duration(3.25), "3.2 h"),
        (format_duration(96), "4 days"),
        (shorten("a  b\nc"), "a b c"),
        (shorten("x" * 50, 10), "x" * 9 + "…"),
    ],
)
def test_numbers_are_written_as_people_read_them(said, words):
    assert said == words


def ticks_of(drawing: str) -> list[str]:
    """The labels of the horizontal axis of a drawing."""
    axis = drawing.split('class="mark-text role-axis-label"')[1].split("</g>", maxsplit=1)[0]
    return re.findall(r">([^<]+)</text>", axis)


@pytest.mark.parametrize("most", [2, 3, 7])
@pytest.mark.parametrize("width", [300, 640])
def test_an_axis_of_counts_has_each_whole_number_once(most, width):
    """The split-half chart once had the ticks 1 1 2 2 3."""
    halves = list(range(1, most + 1))
    table = pl.DataFrame({"per_half": halves, "value": [0.5] * most, "lower": [0.4] * most, "upper": [0.6] * most})
    assert ticks_of(charts.svg(charts.reliability(table), width=width)) == [str(half) for half in halves]


def test_the_agreement_chart_has_a_row_for_each_annotator():
    table = annotators(*[(0.9, 0.85, 0.95)] * 10)
    drawing = charts.svg(charts.annotators(table), embed_font=False)
    heights = re.findall(r'translate\([\d.]+,([\d.]+)\)" d="M[\d.]+,0A', drawing)
    assert len(set(heights)) == 10
    assert all(f">p{number}</text>" in drawing for number in range(10))


def test_items_with_numbers_as_ids_are_labelled_by_their_texts_and_equal_labels_keep_their_rows():
    ranked = RANKED.with_columns(pl.Series("item", ["1", "2", "3"]))
    assert charts.item_labels(ranked) == ["1: go", "2: be", "3: ask"]
    assert charts.item_labels(RANKED) == ["go", "be", "ask"]
    twins = RANKED.with_columns(pl.Series("item", ["x" * 60 + "a", "x" * 60 + "b", "y"]))
    drawing = charts.svg(charts.caterpillar(twins), embed_font=False)
    assert drawing.count(">" + "x" * 31 + "…</text>") == 2


def test_differences_without_p_values_are_dashes():
    """With one annotator there is nothing to resample, so no difference has a p-value."""
    differences = pl.DataFrame(
        {"system": ["a"], "other": ["b"], "difference": [2.0], "significant": [False], "p_holm": [None]},
        schema_overrides={"p_holm": pl.Float64},
    )
    (rows,) = significance_matrix(differences, ["a", "b"]).to_dict()["datasets"].values()
    assert [row["label"] for row in rows] == ["–"]
