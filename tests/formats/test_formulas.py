"""Texts that a spreadsheet would run are disarmed in the file and whole after reading."""

from __future__ import annotations

import csv
import io

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from steelyard.formats import read_table, write_table
from steelyard.formats.formulas import escape_formulas, restore_formulas

RUN_BY_SPREADSHEETS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\r=x", '=HYPERLINK("x")', "-ness", "-"]


def cells(text: str, separator: str = ",") -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_no_text_cell_begins_as_a_formula_and_reading_gives_the_text_back(tmp_path, ending):
    frame = pl.DataFrame({"id": [f"i{n}" for n in range(len(RUN_BY_SPREADSHEETS))], "text": RUN_BY_SPREADSHEETS})
    path = tmp_path / f"t.{ending}"
    write_table(frame, path)
    with path.open(encoding="utf-8", newline="") as file:
        written = cells(file.read(), "," if ending == "csv" else "\t")
    assert [row[1][0] for row in written[1:]] == ["'"] * frame.height
    assert read_table(path).equals(frame)


def test_numbers_stay_numbers_also_where_they_are_text(tmp_path):
    frame = pl.DataFrame({"score": [-1.5, 2.0], "id": ["-7", "+1.5e-3"]})
    write_table(frame, tmp_path / "t.csv")
    assert cells((tmp_path / "t.csv").read_text()) == [["score", "id"], ["-1.5", "-7"], ["2.0", "+1.5e-3"]]


def test_a_suffix_quoted_by_somebody_else_keeps_its_quotes(tmp_path):
    (tmp_path / "t.csv").write_text("id,text\na,'-ness'\nb,'=1\n")
    assert read_table(tmp_path / "t.csv")["text"].to_list() == ["'-ness'", "=1"]


def test_column_names_are_disarmed_too():
    frame = pl.DataFrame({"=p": [1]})
    assert escape_formulas(frame).columns == ["'=p"]
    assert restore_formulas(escape_formulas(frame)).equals(frame)


@pytest.mark.slow
@given(st.text(alphabet="'=+-@\t\r1a. e", max_size=6))
@example("-ness'")
@example("''=x'")
@settings(deadline=None, max_examples=300)
def test_every_text_survives_and_none_is_left_armed(text):
    frame = pl.DataFrame({"text": [text]})
    safe = escape_formulas(frame)["text"][0]
    assert restore_formulas(escape_formulas(frame))["text"][0] == text
    if safe[:1] in {"=", "@", "\t", "\r", "+", "-"}:
        float(safe)
