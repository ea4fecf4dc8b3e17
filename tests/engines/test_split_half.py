"""Split-half reliability by DuckDB equals that in memory, however the log is partitioned."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.engines import DuckDBEngine, Log, open_log, split_half
from steelyard.engines.split_half import LogSplit
from steelyard.reliability.split_half import BY_ANNOTATORS
from tests.engines.data import simulated, written
from tests.engines.same import assert_same_agreement

pytest.importorskip("duckdb")

SPLIT_KINDS = ("ratings", "comparisons", "choices")


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    with DuckDBEngine(threads=2) as engine:
        yield engine


def often_judged(kind: str, ids: str = "annotators") -> pl.DataFrame:
    """Return judgments of few items: many per unit, some by the same annotator; some tuples have three items."""
    frame = simulated(kind, ids=ids, annotators=5, items=8)
    if kind != "choices":
        return frame
    chosen = (pl.col("item2") == pl.col("best")) | (pl.col("item2") == pl.col("worst"))
    left_out = ~chosen.fill_null(value=True) & (pl.int_range(pl.len()) % 3 == 0)
    return frame.with_columns(pl.when(left_out).then(None).otherwise("item2").alias("item2"))


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 3, 17])
@pytest.mark.parametrize("kind", SPLIT_KINDS)
def test_units_are_split_as_in_memory(kind: str, parts: int, engine, tmp_path):
    frame = often_judged(kind)
    statistics = assert_same_agreement(engine, frame, written(frame, tmp_path, parts, seed=parts))
    assert [statistic.key for statistic in statistics] == [
        f"split_half_{name}" for name in ("spearman", "spearman_corrected", "pearson", "pearson_corrected")
    ]
    assert all(statistic.lower is not None and BY_ANNOTATORS not in statistic.note for statistic in statistics)


@pytest.mark.slow
@pytest.mark.parametrize("ids", ["tasks", "both", "nobody"])
@pytest.mark.parametrize("kind", SPLIT_KINDS)
def test_units_are_split_as_in_memory_with_other_ids(kind: str, ids: str, engine, tmp_path):
    frame = often_judged(kind, ids=ids)
    if ids == "both":  # tasks with many judgments, so that pairs repeat within a task; some rows without an annotator
        several = pl.Series("task", [f"task {n % 4}" for n in range(frame.height)])
        annotator = pl.when(pl.int_range(pl.len()) % 7 == 0).then(None).otherwise("annotator").alias("annotator")
        frame = frame.with_columns(several, annotator)
    statistics = assert_same_agreement(engine, frame, written(frame, tmp_path, 3))
    # A simulated task has three comparisons, hardly ever of the same pair.
    assert all((statistic.value is None) == (kind == "comparisons" and ids == "tasks") for statistic in statistics)


@pytest.mark.parametrize("annotators", [3, 9])
@pytest.mark.parametrize("kind", ["comparisons", "choices"])
def test_annotators_are_split_where_units_are_judged_once(kind: str, annotators: int, engine, tmp_path):
    frame = simulated(kind, items=60, rows=400, annotators=annotators)
    statistics = assert_same_agreement(engine, frame, written(frame, tmp_path, 3))
    note = BY_ANNOTATORS if annotators > 3 else "cannot be split"
    assert all(note in statistic.note for statistic in statistics)


@pytest.mark.slow
def test_trials_in_parts_equal_trials_in_one_query(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(split_half, "RESULT_ROWS", 600 * 30)
    for kind in SPLIT_KINDS:
        frame = often_judged(kind)
        assert_same_agreement(engine, frame, written(frame, tmp_path / kind, 2))


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6), seed=st.integers(0, 2**63 - 1))
def test_halves_of_every_item_differ_by_at_most_one(sizes, seed, tmp_path_factory):
    item = [f"item {number}" for number, size in enumerate(sizes) for _ in range(size)]
    frame = pl.DataFrame({"item": item, "value": [float(n % 3) for n in range(len(item))]})
    with DuckDBEngine(threads=1) as engine:
        log = _opened(engine, frame, tmp_path_factory)
        split = LogSplit(log, seed)
        list(split.scores("unit", 4))
        halves = engine.query("SELECT trial, item0, half FROM steelyard_split_halves")
    counts = halves.group_by("trial", "item0").agg(
        first=(pl.col("half") == 0).sum(), second=(pl.col("half") == 1).sum()
    )
    assert counts.height == 4 * len(sizes)
    assert (counts["first"] + counts["second"]).sum() == 4 * len(item)
    assert ((counts["first"].cast(pl.Int64) - counts["second"].cast(pl.Int64)).abs() <= 1).all()


def _opened(engine: DuckDBEngine, frame: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Log:
    files = written(frame, tmp_path_factory.mktemp("ratings"), 1)
    return open_log(engine, files, scale=(0, 2)).by_criterion[""]
