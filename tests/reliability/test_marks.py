"""Agreement on marks, by hand."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from steelyard.observations import Index, MarkedText, Span, Spans
from steelyard.reliability import mark_agreement


def spans(rows: list[tuple[str, str, list[Span]]]) -> Spans:
    """Rows of annotator, item and marks."""
    annotators = Index(sorted({who for who, _, _ in rows}))
    items = Index(sorted({item for _, item, _ in rows}))
    shared: dict[str, Any] = {
        "items": items,
        "annotators": annotators,
        "annotator": annotators.codes([who for who, _, _ in rows]),
    }
    return Spans.of([MarkedText(item, tuple(marks)) for _, item, marks in rows], **shared)


ROWS = [
    ("ann", "a", [Span(0, 10, "minor")]),
    ("bob", "a", [Span(5, 15, "major")]),
    ("ann", "b", []),
    ("bob", "b", [Span(None, None, "minor")]),
    ("ann", "c", []),
    ("bob", "c", []),
    ("ann", "d", [Span(0, 4, "major"), Span(2, 6, "minor")]),
    ("bob", "d", [Span(0, 6, "major")]),
]


def test_statistics_by_hand():
    result = mark_agreement(spans(ROWS), severity_order=("minor", "major"))
    # a: 5 characters in common of 10 and 10; d: 6 of 6 and 6. Overlapping marks count once.
    assert result["character_f1"].value == pytest.approx((10 + 12) / (20 + 12))
    # d: ann's characters 0 to 3 are major (the worst counts), 4 and 5 minor, bob's all major.
    assert result["character_f1_same_severity"].value == pytest.approx(8 / 32)
    assert result["texts_with_errors"].value == pytest.approx(5 / 8)
    assert result["agreement_on_any_error"].value == pytest.approx(3 / 4)
    assert "omissions (1)" in result.notes[0]


def test_severities_of_the_same_characters_by_hand():
    table = mark_agreement(spans(ROWS), severity_order=("minor", "major")).severities
    cells = {(first, second): share for first, second, share in table.iter_rows()}
    # 15 characters of a: 5 minor alone, 5 minor with major, 5 major alone; 6 of d: 4 major twice, 2 minor with major.
    assert cells["minor", "major"] == cells["major", "minor"] == pytest.approx(7 / 2 / 21)
    assert cells["major", "major"] == pytest.approx(4 / 21)
    assert cells["", "minor"] == pytest.approx(5 / 2 / 21)
    assert table["proportion"].sum() == pytest.approx(1)


def test_an_annotator_is_not_compared_with_themselves():
    again = spans([("ann", "a", [Span(0, 4, "minor")]), ("ann", "a", [])])
    assert mark_agreement(again)["character_f1"].value is None
    assert mark_agreement(again).severities.height == 0


def test_agreement_does_not_depend_on_the_order_of_rows():
    one, other = mark_agreement(spans(ROWS)).table, mark_agreement(spans(ROWS[::-1])).table
    assert (
        one.drop("lower", "upper")
        .filter(pl.col("statistic") != "gamma")
        .equals(other.drop("lower", "upper").filter(pl.col("statistic") != "gamma"))
    )


def test_subsets_keep_the_marks_of_their_rows():
    everything = spans(ROWS)
    part = everything.subset(everything.item == everything.items.code("d"))
    assert [part.marks(row) for row in range(2)] == [tuple(ROWS[6][2]), tuple(ROWS[7][2])]
