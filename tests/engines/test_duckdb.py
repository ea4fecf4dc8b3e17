"""Fits by DuckDB equal those in memory, however the log is partitioned."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.engines import DuckDBEngine, Log, open_log
from steelyard.engines.agreement import log_agreement
from steelyard.engines.weights import create_weights
from steelyard.errors import ConfigError
from steelyard.models.choices.counting import Counting
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.comparisons.win_rate import WinRate
from steelyard.models.fit import Model
from steelyard.models.inference.resampling import HASHED_UNITS, poisson_weights
from steelyard.models.labels.dawid_skene import DawidSkene
from steelyard.models.labels.majority import Majority
from steelyard.models.ratings.easl import EASL
from steelyard.models.ratings.mean import Mean
from steelyard.reliability import bootstrap
from tests.engines.data import KINDS, gold, simulated, written
from tests.engines.hostile import assert_names_are_only_names
from tests.engines.models import CASES, called
from tests.engines.same import assert_same, assert_same_agreement, by_engine, in_memory

pytest.importorskip("duckdb")


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    with DuckDBEngine(threads=2) as engine:
        yield engine


def gold_for(kind: str, model: Model) -> dict[str, str] | None:
    return gold() if kind == "labels" and model.takes_gold() else None


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "model"), CASES, ids=called)
def test_every_model_is_the_one_in_memory(kind: str, model: Model, engine, tmp_path):
    frame = simulated(kind)
    fitted = by_engine(engine, model, written(frame, tmp_path, 3), gold_for(kind, model))
    assert_same(fitted, in_memory(model, frame, gold_for(kind, model)))


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 17])
@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("ratings", EASL(interval="bootstrap", draws=40)),
        ("comparisons", BradleyTerry(interval="bootstrap", draws=25)),
        ("choices", Counting()),
        ("labels", DawidSkene(interval="bootstrap", draws=20)),
    ],
    ids=called,
)
def test_the_parts_of_a_log_do_not_matter(kind: str, model: Model, parts: int, engine, tmp_path):
    frame = simulated(kind, rows=300, seed=4)
    fitted = by_engine(engine, model, written(frame, tmp_path, parts, seed=parts))
    assert_same(fitted, in_memory(model, frame))


@pytest.mark.slow
@pytest.mark.parametrize("ids", ["tasks", "both", "nobody"])
@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("ratings", Mean()),
        ("ratings", EASL(interval="bootstrap", draws=40)),
        ("comparisons", Counting()),
        ("comparisons", WinRate(draws=40)),
        ("comparisons", BradleyTerry(interval="bootstrap", draws=25)),
        ("choices", Counting(interval="bootstrap", draws=40)),
        ("labels", Majority()),
    ],
    ids=called,
)
def test_tasks_or_judgments_are_resampled_where_annotators_are_not_known(kind, model, ids, engine, tmp_path):
    frame = simulated(kind, ids=ids)
    assert_same(by_engine(engine, model, written(frame, tmp_path, 3)), in_memory(model, frame))


@pytest.mark.parametrize("model", [BradleyTerry(interval="sandwich"), BradleyTerry(interval="bootstrap", draws=25)])
def test_few_annotators_leave_single_judgments_as_the_unit(model, engine, tmp_path):
    frame = simulated("comparisons", annotators=4)
    files = written(frame, tmp_path, 3)
    if model.interval == "bootstrap":
        assert_same(by_engine(engine, model, files), in_memory(model, frame))
        return
    with pytest.raises(ConfigError, match="interval=posterior"):
        by_engine(engine, model, files)


@pytest.mark.parametrize("count", [50, HASHED_UNITS + 5])
def test_weights_in_sql_are_those_of_the_models(count: int, engine):
    names = tuple(f"annotator {n} é" for n in range(count))
    engine.put("steelyard_some", pl.DataFrame({"unit": names}))
    log = Log(engine, "ratings", "steelyard_")
    create_weights(log, "steelyard_some", range(3), seed=7)
    weights = engine.query("SELECT unit, replicate, weight FROM steelyard_weights")
    frame = weights.pivot("replicate", index="unit", values="weight").sort("unit")
    expected = pl.DataFrame({"unit": names, **{str(r): w for r, w in enumerate(poisson_weights(names, 3, 7))}})
    assert frame.select("0", "1", "2").rows() == expected.sort("unit").select("0", "1", "2").rows()


def test_names_of_files_and_columns_are_only_names(engine, tmp_path):
    assert_names_are_only_names(engine, tmp_path)


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_ratings_give_the_mean_and_ranks_of_memory(data, tmp_path_factory):
    rows = data.draw(
        st.lists(
            st.tuples(st.sampled_from("abcde"), st.sampled_from("uvw"), st.integers(0, 6)), min_size=1, max_size=40
        )
    )
    frame = pl.DataFrame(
        {"item": [r[0] for r in rows], "annotator": [r[1] for r in rows], "value": [r[2] / 0.06 for r in rows]}
    )
    files = written(frame, tmp_path_factory.mktemp("ratings"), min(3, len(rows)))
    with DuckDBEngine(threads=1) as engine:
        assert_same(by_engine(engine, Mean(draws=20), files), in_memory(Mean(draws=20), frame))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ids", ["annotators", "nobody"])
def test_alpha_is_the_one_in_memory(kind: str, ids: str, engine, tmp_path):
    frame = simulated(kind, ids=ids, annotators=8, items=6)
    assert_same_agreement(engine, frame, written(frame, tmp_path, 3))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_alpha_is_the_one_in_memory_where_there_are_many_units(kind: str, engine, tmp_path, monkeypatch):
    monkeypatch.setattr(bootstrap, "HASHED_UNITS", 10)
    frame = simulated(kind, annotators=8, items=6 if kind == "choices" else 20)
    assert_same_agreement(engine, frame, written(frame, tmp_path, 3))


def test_alpha_of_pairs_within_tasks_is_the_one_in_memory(engine, tmp_path):
    frame = simulated("comparisons", items=6).with_columns(pl.Series("task", [f"task {n % 9}" for n in range(600)]))
    assert_same_agreement(engine, frame, written(frame, tmp_path, 3))
    statistics = log_agreement(open_log(engine, [*tmp_path.iterdir()]).by_criterion[""])
    assert "a unit is a pair of items within one task" in statistics.notes
    assert statistics["alpha_nominal"].n == 9


def test_alpha_without_ties_takes_chance_as_one_half(engine, tmp_path):
    frame = simulated("comparisons", items=6).filter(pl.col("winner").is_null() | (pl.col("winner") != "tie"))
    assert_same_agreement(engine, frame, written(frame, tmp_path, 2))
    statistics = log_agreement(open_log(engine, [*tmp_path.iterdir()]).by_criterion[""])
    assert "P(E) = 1/2, as no pair was tied" in statistics["kappa_fixed_chance"].note


@pytest.mark.slow
def test_a_command_that_used_duckdb_ends_silently(tmp_path):
    """DuckDB's bindings print the objects that are still alive when the interpreter exits."""
    frame = pl.DataFrame({"annotator": ["a", "a", "b", "b"], "item": ["x", "y", "x", "y"], "value": [1, 2, 2, 5]})
    frame.write_parquet(tmp_path / "ratings.parquet")
    command = [sys.executable, "-m", "steelyard", "fit", "ratings.parquet", "--engine", "duckdb", "--scale", "1", "5"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stderr == ""
