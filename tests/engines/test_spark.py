"""Fits by Spark equal those in memory. All tests share one session, which is slow to start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from steelyard.engines import Log, SparkEngine
from steelyard.engines.weights import create_weights
from steelyard.errors import ConfigError
from steelyard.models.choices.counting import Counting
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.comparisons.win_rate import WinRate
from steelyard.models.fit import Model
from steelyard.models.inference.resampling import HASHED_UNITS, poisson_weights
from steelyard.models.labels.dawid_skene import DawidSkene
from steelyard.models.labels.gold_calibrated import GoldCalibrated
from steelyard.models.labels.majority import Majority
from steelyard.models.ratings.mean import Mean
from tests.conftest import missing_tool, need_marker
from tests.engines.data import gold, simulated, written
from tests.engines.hostile import assert_names_are_only_names
from tests.engines.models import called
from tests.engines.same import assert_same, assert_same_agreement, by_engine, in_memory
from tests.sizes import FULL

pytest.importorskip("pyspark")

ONLY_IN_FULL: list[tuple[str, str, Model]] = [
    ("comparisons", "annotators", BradleyTerry(ties="rao_kupper", interval="sandwich")),
    ("labels", "annotators", GoldCalibrated()),
]
"""DuckDB runs the same SQL text in every test run; Spark needs seconds for each."""


@pytest.fixture(scope="module")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    need_marker("spark")
    if shutil.which("java") is None:
        missing_tool("Spark needs Java (apt-get install default-jre-headless)")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").appName("tests")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        # Small data, many statements: compiling them would take longer than running them.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": (tmp_path_factory.mktemp("spark") / "warehouse").as_uri(),
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def engine(spark_session: Any) -> Iterator[SparkEngine]:
    with SparkEngine(spark_session) as engine:
        yield engine


@pytest.mark.parametrize(
    ("kind", "ids", "model"),
    [
        ("ratings", "annotators", Mean()),
        ("comparisons", "annotators", WinRate(draws=20)),
        ("comparisons", "tasks", BradleyTerry(interval="bootstrap", draws=20)),
        ("choices", "annotators", Counting()),
        ("labels", "annotators", DawidSkene(interval="model", max_iterations=3, tolerance=1.0)),
        *(ONLY_IN_FULL if FULL else []),
    ],
    ids=called,
)
def test_every_model_is_the_one_in_memory(kind: str, ids: str, model: Model, engine, tmp_path):
    frame = simulated(kind, ids=ids, rows=300)
    classes = gold() if model.takes_gold() and isinstance(model, GoldCalibrated) else None
    fitted = by_engine(engine, model, written(frame, tmp_path, 2), classes)
    assert_same(fitted, in_memory(model, frame, classes))


@pytest.mark.parametrize("count", [50, HASHED_UNITS + 5])
def test_weights_in_sql_are_those_of_the_models(count: int, engine):
    names = tuple(f"annotator {n} é" for n in range(count))
    engine.put("steelyard_some", pl.DataFrame({"unit": names}))
    create_weights(Log(engine, "ratings", "steelyard_"), "steelyard_some", range(2), seed=7)
    weights = engine.query("SELECT unit, replicate, weight FROM steelyard_weights")
    frame = weights.pivot("replicate", index="unit", values="weight").sort("unit")
    expected = pl.DataFrame({"unit": names, **{str(r): w for r, w in enumerate(poisson_weights(names, 2, 7))}})
    assert frame.select("0", "1").rows() == expected.sort("unit").select("0", "1").rows()


@pytest.mark.parametrize("kind", ["ratings", "comparisons", "choices"] if FULL else ["comparisons"])
def test_agreement_is_the_one_in_memory(kind: str, engine, tmp_path):
    frame = simulated(kind, rows=120, annotators=5, items=6)
    statistics = assert_same_agreement(engine, frame, written(frame, tmp_path, 2))
    assert len(statistics) == 4
    assert all(statistic.value is not None for statistic in statistics)


def test_names_of_files_and_columns_are_only_names(engine, tmp_path):
    assert_names_are_only_names(engine, tmp_path)


def test_a_file_with_a_colon_in_its_name_is_refused(engine, tmp_path):
    (file,) = written(simulated("labels", rows=20), tmp_path, 1)
    with pytest.raises(ConfigError, match=r"a:b\.parquet: it has a colon in its name\. Give the file another name"):
        by_engine(engine, Majority(), [file.rename(tmp_path / "a:b.parquet")])


NEW_SESSION = """
from steelyard.engines import SparkEngine
from steelyard.errors import DataError

with SparkEngine(master="local[1]", settings={"spark.driver.bindAddress": "127.0.0.1"}) as engine:
    assert engine.query("SELECT 1 AS one")["one"].to_list() == [1]
    try:
        engine.query("SELECT * FROM no_such_table")  # makes Spark look into its warehouse
    except DataError:
        print("looked")
"""


@pytest.mark.full
def test_a_session_of_its_own_leaves_nothing_in_the_working_directory(spark_session, tmp_path):
    here, scratch = tmp_path / "here", tmp_path / "scratch"
    here.mkdir()
    scratch.mkdir()
    # In a separate process: in this one, Spark would return the session of the other tests.
    done = subprocess.run(
        [sys.executable, "-c", NEW_SESSION],
        cwd=here,
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert "looked" in done.stdout
    assert list(here.iterdir()) == []
    assert [path for path in scratch.iterdir() if path.name.startswith("steelyard-")] == []


@pytest.mark.parametrize("explicit", [True, False], ids=["explicit", "active"])
def test_an_existing_session_is_left_as_it_was(explicit, spark_session, tmp_path):
    before = {table.name for table in spark_session.catalog.listTables()}
    with SparkEngine(spark_session if explicit else None) as engine:
        by_engine(engine, Majority(), written(simulated("labels", rows=60), tmp_path, 1))
    assert {table.name for table in spark_session.catalog.listTables()} == before
    assert spark_session.sql("SELECT 1 AS one").first()["one"] == 1
