"""Outputs of systems come in several shapes; all become the same table."""

from __future__ import annotations

import polars as pl
import pytest

from steelyard.errors import DataError
from steelyard.formats import read_items
from steelyard.formats.outputs import read_outputs

LONG = [
    {"src": source, "model": model, "translation": f"{model} of {source}"}
    for source in ("Hello", "Bye")
    for model in ("alpha", "beta", "gamma")
]


def triples(frame: pl.DataFrame) -> set[tuple[str, str, str]]:
    return set(frame.select("source", "system", "output").iter_rows())


@pytest.mark.parametrize(
    ("names", "noun"),
    [
        (("src", "model", "translation"), "translation"),
        (("Source", "System", "Hypothesis"), "translation"),
        (("prompt", "model", "response"), "answer"),
        (("question", "engine", "answer"), "answer"),
        (("document", "system", "summary"), "summary"),
        (("input", "Model_Name", "output"), "output"),
        (("source", "system", "text"), "output"),
        (("text", "model", "summary"), "summary"),
    ],
)
def test_columns_are_recognised_by_their_common_names(names, noun):
    rows = [dict(zip(names, row.values(), strict=True)) for row in LONG]
    outputs = read_outputs(rows)
    assert triples(outputs.frame) == {tuple(row.values()) for row in LONG}
    assert outputs.noun == noun
    assert outputs.systems == ["alpha", "beta", "gamma"]


def test_one_column_per_system_becomes_one_row_per_output():
    wide = [
        {"id": "1", "source": s, "reference": f"ref {s}", "alpha": f"alpha of {s}", "beta": f"beta of {s}", "gamma": g}
        for s, g in (("Hello", "gamma of Hello"), ("Bye", "gamma of Bye"))
    ]
    outputs = read_outputs(wide)
    assert triples(outputs.frame) == {tuple(row.values()) for row in LONG}
    assert set(outputs.frame.select("source", "reference").iter_rows()) == {("Hello", "ref Hello"), ("Bye", "ref Bye")}
    # The rows of a source stand together, as in a long file.
    assert outputs.frame["source"].to_list() == ["Hello"] * 3 + ["Bye"] * 3


def test_ids_do_not_tell_the_system():
    outputs = read_outputs([row | {"id": f"{row['model']}-{n}"} for n, row in enumerate(LONG)])
    assert "ids reveal the system" in " ".join(outputs.notes)
    letters = outputs.frame.select("system", pl.col("id").str.slice(-1).alias("letter"))
    assert sorted(outputs.frame["id"].to_list()) == [f"{source}-{letter}" for source in "12" for letter in "abc"]
    many = read_outputs([row | {"src": f"{row['src']} {n}"} for n in range(50) for row in LONG])
    letters = many.frame.select("system", pl.col("id").str.slice(-1).alias("letter"))
    # Each of three systems gets each of three letters in about a third of the hundred sources.
    counts = letters.group_by("system", "letter").len()["len"]
    assert counts.len() == 9
    assert counts.min() > 15


def test_ids_that_tell_nothing_are_kept():
    outputs = read_outputs([row | {"id": f"item {n}"} for n, row in enumerate(LONG)])
    assert outputs.frame["id"].to_list() == [f"item {n}" for n in range(6)]


def test_columns_can_be_named_and_left_out():
    rows = [{"quelle": row["src"], "who": row["model"], "what": row["translation"], "date": "today"} for row in LONG]
    outputs = read_outputs(rows, columns={"source": "quelle", "group": "who", "text": "what"}, ignore=["date"])
    assert triples(outputs.frame) == {tuple(row.values()) for row in LONG}


def test_other_columns_stay_with_the_outputs():
    extra = {"domain": "news", "sentence": "not the output", "id": "same"}
    outputs = read_outputs([row | extra | {"year": 1999 + n} for n, row in enumerate(LONG)], ignore=["year"])
    assert outputs.frame.columns == ["id", "source", "system", "output", "original_id", "domain", "original_sentence"]
    assert triples(outputs.frame) == {tuple(row.values()) for row in LONG}
    item = read_items(outputs.frame)[0]
    assert item.text == "alpha of Hello"
    assert item.metadata == {"original_id": "same", "domain": "news", "original_sentence": "not the output"}


def test_columns_that_are_no_system_stay_with_the_outputs():
    wide = [
        {"id": n, "source": s, "domain": "news", "editor": e, "alpha": f"alpha of {s}", "beta": f"beta of {s}"}
        for n, s, e in ((1, "Hello", "Ann"), (2, "Bye", "Bob"))
    ]
    outputs = read_outputs(wide, extra=["editor"])
    assert outputs.systems == ["alpha", "beta"]
    assert outputs.frame.filter(pl.col("source") == "Bye").select(
        "original_id", "domain", "editor"
    ).unique().rows() == [("2", "news", "Bob")]


def test_empty_outputs_are_left_out_and_counted():
    outputs = read_outputs([row | ({"translation": ""} if n == 4 else {}) for n, row in enumerate(LONG)])
    assert outputs.source_sizes == [3, 2]
    assert "1 empty outputs are left out" in outputs.notes


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ([{"a": "1", "b": "2"}], "there is no column of sources"),
        ([{"source": "1", "alpha": "2"}], "neither the columns system and output"),
        ([row for row in LONG if row["model"] == "beta"], "fewer than two systems"),
        ([row | {"model": ""} for row in LONG], "have no system"),
    ],
)
def test_files_without_sources_or_systems_are_refused(rows, what):
    with pytest.raises(DataError, match=what):
        read_outputs(rows)
