"""Observations survive being written and read back, whatever their ids and the file format."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.errors import DataError
from steelyard.formats import judgment_table, read_judgments, write_table
from steelyard.observations import Choices, Comparisons, Index, IntArray, Labels, Observations, Rankings, Ratings
from tests.sizes import FULL

FORMATS = ["csv", "tsv", "jsonl", "parquet", "csv.gz"]

AWKWARD = [
    "tie",
    "draw",
    "=",
    "left",
    "Right",
    "007",
    "1e5",
    "NA",
    "null",
    "true",
    "a>b",
    "a=b",
    "a|b",
    '["a"]',
    "[[",
    '"',
]
IDS = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(alphabet="ab,\"';=>|[]{}\\/\n\r\t éß漢🙂#-0", min_size=1, max_size=5).filter(lambda s: s == s.strip()),
)


@st.composite
def who(draw: st.DrawFn, count: int) -> dict[str, Any]:
    """Draw annotators and tasks: known, unknown, or known here and there."""
    parts: dict[str, Any] = {}
    for name in ("annotator", "task"):
        ids = draw(st.lists(st.none() | IDS, min_size=count, max_size=count))
        index = Index(sorted({i for i in ids if i is not None}))
        parts |= {f"{name}s": index, name: index.codes(ids)}
    return parts


def coded(ids: list[str]) -> tuple[Index, IntArray]:
    index = Index(sorted(set(ids)))
    return index, index.codes(ids)


@st.composite
def ratings(draw: st.DrawFn) -> Ratings:
    items, item = coded(draw(st.lists(IDS, min_size=1, max_size=6)))
    values = draw(st.lists(st.floats(-1e6, 1e6, width=64), min_size=len(item), max_size=len(item)))
    shared = draw(who(len(item)))
    return Ratings(items=items, item=item, value=np.array(values), scale=(-1e6, 1e6), **shared)


@st.composite
def labels(draw: st.DrawFn) -> Labels:
    items, item = coded(draw(st.lists(IDS, min_size=1, max_size=6)))
    classes, label = coded(draw(st.lists(IDS, min_size=len(item), max_size=len(item))))
    return Labels(items=items, item=item, classes=classes, label=label, **draw(who(len(item))))


@st.composite
def comparisons(draw: st.DrawFn) -> Comparisons:
    pairs = draw(st.lists(st.lists(IDS, min_size=2, max_size=2, unique=True), min_size=1, max_size=6))
    outcome = draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=len(pairs), max_size=len(pairs)))
    items = Index(sorted({name for pair in pairs for name in pair}))
    return Comparisons(
        items=items,
        left=items.codes([pair[0] for pair in pairs]),
        right=items.codes([pair[1] for pair in pairs]),
        outcome=np.array(outcome, np.int8),
        **draw(who(len(pairs))),
    )


@st.composite
def choices(draw: st.DrawFn) -> Choices:
    width = draw(st.integers(2, 5))
    rows = draw(st.lists(st.lists(IDS, min_size=2, max_size=width, unique=True), min_size=1, max_size=5))
    rows.append([f"item {number}" for number in range(width)])
    chosen = [draw(st.tuples(st.none() | st.sampled_from(row), st.none() | st.sampled_from(row))) for row in rows]
    items = Index(sorted({name for row in rows for name in row}))
    tuples = np.stack([items.codes([*row, *[None] * (width - len(row))]) for row in rows])
    return Choices(
        items=items,
        shown=tuples,
        best=items.codes([best for best, _ in chosen]),
        worst=items.codes([worst for _, worst in chosen]),
        **draw(who(len(rows))),
    )


@st.composite
def rankings(draw: st.DrawFn) -> Rankings:
    rows = draw(st.lists(st.lists(IDS, min_size=2, max_size=5, unique=True), min_size=1, max_size=5))
    steps = [draw(st.lists(st.integers(0, 1), min_size=len(row) - 1, max_size=len(row) - 1)) for row in rows]
    items = Index(sorted({name for row in rows for name in row}))
    return Rankings(
        items=items,
        start=np.cumsum([0, *map(len, rows)]).astype(np.int64),
        item=items.codes([name for row in rows for name in row]),
        rank=np.concatenate([1 + np.cumsum([0, *step]) for step in steps]).astype(np.int32),
        **draw(who(len(rows))),
    )


def assert_same(one: Observations, other: Observations) -> None:
    assert type(one) is type(other)
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype, field.name
            assert np.array_equal(a, b), field.name
        else:
            assert a == b, field.name


@pytest.mark.slow
@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("kind", [ratings, labels, comparisons, choices, rankings], ids=lambda kind: str(kind.__name__))
@settings(max_examples=40 if FULL else 12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_what_is_written_is_read_back_exactly(
    kind: Callable[[], st.SearchStrategy[Observations]], ending: str, data: st.DataObject
) -> None:
    observations = data.draw(kind())
    scale = observations.scale if isinstance(observations, Ratings) else None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"log.{ending}")
        write_table(judgment_table(observations), path)
        file = read_judgments(path, scale=scale)
    assert_same(file.observations, observations)


def test_unknown_annotators_and_tasks_have_no_columns() -> None:
    items = Index(["x"])
    table = judgment_table(Ratings(items=items, item=items.codes(["x"]), value=np.array([0.5]), scale=(0, 1)))
    assert table.columns == ["item", "value"]


def test_rankings_are_text_unless_an_id_holds_a_mark() -> None:
    plain = read_judgments([{"ranking": [["b"], ["a", "c"]]}]).observations
    marked = read_judgments([{"ranking": [["b"], ["a", "c>d"]]}]).observations
    assert judgment_table(plain)["ranking"].to_list() == ["b>a=c"]
    assert judgment_table(marked)["ranking"].to_list() == ['[["b"], ["a", "c>d"]]']


@pytest.mark.parametrize("name", ["", " x", "x\n"])
def test_an_id_that_would_not_come_back_is_refused(name: str) -> None:
    items = Index([name])
    with pytest.raises(DataError, match="spaces around it"):
        judgment_table(Ratings(items=items, item=items.codes([name]), value=np.array([0.5]), scale=(0, 1)))
