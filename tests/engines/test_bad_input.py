"""Errors are reported before any work is done, with their remedy."""

from __future__ import annotations

import sys

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from steelyard.engines import DuckDBEngine, SparkEngine, chosen_engine, files_of, fit_files, open_log, opening
from steelyard.errors import ConfigError, DataError
from steelyard.formats import read_judgments
from steelyard.models.comparisons.elo import Elo
from steelyard.models.ratings.mean import Mean
from tests.cli.running import run
from tests.engines.data import simulated, written


@pytest.fixture
def parts(tmp_path):
    return written(simulated("ratings"), tmp_path / "parts", 3)


class NoEngine(DuckDBEngine):
    """An engine that must not run any query."""

    def query(self, sql: str) -> pl.DataFrame:
        raise AssertionError(f"work was done: {sql}")


def refused(parts, **options) -> str:
    with NoEngine() as engine, pytest.raises((DataError, ConfigError)) as error:
        fit_files(Mean(), parts[0].parent, engine=engine, **options)
    return str(error.value)


def test_a_partition_without_a_column_is_named(parts):
    pl.read_parquet(parts[1]).rename({"value": "valeu"}).write_parquet(parts[1])
    message = refused(parts)
    assert "part-01.parquet" in message
    assert "(value)" in message
    assert "Did you mean 'valeu'?" in message


def test_a_partition_with_another_type_is_named_with_both_types(parts):
    pl.read_parquet(parts[2]).with_columns(pl.col("value").cast(pl.String)).write_parquet(parts[2])
    message = refused(parts)
    assert "part-02.parquet" in message
    assert "the column holds texts, but float64 values in part-00.parquet" in message


def test_a_half_written_file_is_named(parts):
    whole = parts[1].read_bytes()
    parts[1].write_bytes(whole[: len(whole) // 2])
    assert "part-01.parquet: it is not a complete Parquet file" in refused(parts)


@pytest.mark.parametrize("pattern", ["nothing/*.parquet", "nothing.parquet"])
def test_a_pattern_that_fits_no_file_is_refused(pattern, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for scheme in ("s3", "gs", "hdfs"):
        with pytest.raises(DataError, match=f"{scheme}:// addresses are not read"):
            files_of(f"{scheme}://bucket/log/*.parquet")
    with pytest.raises(DataError, match="no such file"):
        files_of(pattern)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"files that end in \.parquet"):
        files_of(tmp_path)


def test_ids_that_are_not_texts_or_whole_numbers_are_refused(tmp_path):
    files = written(pl.DataFrame({"item": [1.5, 2.5], "value": [1.0, 2.0]}), tmp_path, 1)
    assert "Write ids as texts or whole numbers" in refused(files)


def test_rankings_are_sent_to_memory(tmp_path):
    files = written(pl.DataFrame({"annotator": ["u"], "ranking": ["a>b"]}), tmp_path, 1)
    assert "--engine memory" in refused(files)


@pytest.mark.parametrize(("module", "start"), [("duckdb", DuckDBEngine), ("pyspark.errors", SparkEngine)])
def test_a_missing_engine_is_named_with_the_command_that_installs_it(module, start, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=rf"pip install 'steelyard\[{start.name}\]'"):
        start()


def test_spark_without_java_says_so(monkeypatch):
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ConfigError, match="apt-get install default-jre-headless"):
        SparkEngine()


def test_wrong_rows_are_counted_with_an_example(tmp_path):
    frame = pl.DataFrame({"left": ["a", "a", "b"], "right": ["b", "a", "c"], "winner": ["z", "a", "b"]})
    with pytest.raises(DataError) as error:
        fit_files(_bradley_terry(), written(frame, tmp_path, 1))
    assert "compared with itself in 1 row" in str(error.value)
    assert "winner 'z', of 'a' and 'b'" in str(error.value)


def _bradley_terry():
    from steelyard.models.comparisons.bradley_terry import BradleyTerry

    return BradleyTerry()


def test_values_outside_the_scale_are_refused(parts):
    with pytest.raises(DataError, match="outside the scale 0 to 10"):
        fit_files(Mean(), parts, scale=(0, 10))


def test_a_model_without_sums_in_sql_is_refused_with_those_that_have(tmp_path):
    with pytest.raises(ConfigError, match=r"elo needs all judgments in memory.*bradley_terry"):
        fit_files(Elo(), written(simulated("comparisons", rows=40), tmp_path, 1))


def test_an_unknown_engine_is_refused(parts):
    with pytest.raises(ConfigError, match="Did you mean 'duckdb'"):
        chosen_engine("ducdb", parts)


def test_a_log_larger_than_half_of_the_memory_goes_to_duckdb_by_itself(parts, monkeypatch):
    assert chosen_engine(None, parts) == "memory"
    monkeypatch.setattr(opening, "machine_memory", lambda: sum(part.stat().st_size for part in parts) * 2 - 2)
    assert chosen_engine(None, parts) == "duckdb"
    assert chosen_engine("memory", parts) == "memory"


@pytest.mark.slow
def test_the_command_prints_the_same_table_by_either_way(parts):
    folder = parts[0].parent.parent
    options = ("--model", "mean", "--scale", "0", "100", "-f", "csv")
    memory = run("fit", "parts/*.parquet", *options, cwd=folder).stdout
    duckdb = run("fit", "parts/*.parquet", *options, "--engine", "duckdb", "--memory", "500MB", cwd=folder).stdout
    one, other = (pl.read_csv(text.encode()) for text in (memory, duckdb))
    assert_frame_equal(one, other, abs_tol=1e-9, rel_tol=0)
    folder_of = run("fit", "parts", *options, "--engine", "duckdb", cwd=folder).stdout
    assert_frame_equal(pl.read_csv(folder_of.encode()), one, abs_tol=1e-9, rel_tol=0)


@pytest.mark.slow
def test_the_command_says_what_was_odd_in_the_same_words(parts):
    folder = parts[0].parent.parent
    notes = [run("fit", "parts", "--engine", engine, cwd=folder).stderr for engine in ("memory", "duckdb")]
    assert "No value in 7 rows: left out." in notes[0]
    assert notes[0] == notes[1]


@pytest.mark.slow
def test_criteria_are_fitted_one_by_one(tmp_path):
    frame = pl.concat([simulated("ratings", seed=s).with_columns(pl.lit(f"c{s}").alias("criterion")) for s in (1, 2)])
    written(frame, tmp_path / "parts", 2)
    memory, duckdb = (
        run("fit", "parts", "--scale", "0", "100", "-f", "csv", "--engine", engine, cwd=tmp_path).stdout
        for engine in ("memory", "duckdb")
    )
    one, other = (pl.read_csv(text.encode()) for text in (memory, duckdb))
    assert one["criterion"].unique().sort().to_list() == ["c1", "c2"]
    assert_frame_equal(one, other, abs_tol=1e-9, rel_tol=0)


def test_files_of_one_pattern_must_be_alike_in_memory_too(parts):
    pl.read_parquet(parts[1]).rename({"value": "valeu"}).write_parquet(parts[1])
    done = run("fit", "parts/*.parquet", cwd=parts[0].parent.parent, code=1)
    assert "its columns differ from those of part-00.parquet" in done.stderr


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ({"left": ["a", "b"], "right": ["b", "c"], "winner": ["a", "tie"]}, {"left": "a", "right": "a", "winner": "a"}),
        ({"item": ["a", "b"], "value": [1.0, 2.5]}, {"item": "a", "value": float("inf")}),
        ({"item": ["a", "b"], "label": ["x", "y"]}, {"item": "", "label": "x"}),
        (
            {"item1": ["a", "b"], "item2": ["b", "c"], "item3": ["c", "d"], "best": ["a", "b"], "worst": ["b", "d"]},
            {"item1": "a", "item2": "b", "item3": "c", "best": "z", "worst": "b"},
        ),
    ],
)
def test_bad_rows_are_skipped_and_counted_as_in_memory(good, bad, tmp_path):
    frame = pl.concat([pl.DataFrame(good), pl.DataFrame(bad)])
    files = written(frame, tmp_path, 2)
    with DuckDBEngine() as engine:
        with pytest.raises(DataError) as refusal:
            open_log(engine, files)
        assert refusal.value.__notes__[0].startswith("1 of 3 rows is invalid.")
        logs = open_log(engine, files, skip_bad_rows=True)
        log = logs.by_criterion[""]
        assert len(log) == len(pl.DataFrame(good))
        assert log.query("count", what="*", view=f"{log.prefix}log")["n"].to_list() == [2]
    assert any(note.startswith("1 bad row skipped: ") for note in logs.notes)
    assert len(read_judgments(frame, skip_bad_rows=True).observations) == len(log)


def test_the_scale_of_steps_is_inferred_as_in_memory(tmp_path):
    for values in ([1, 2, 5, 1], [1, 2, 77, 1], [0.5, 1, 2, 1], list(range(12))):
        frame = pl.DataFrame({"item": [f"i{n % 4}" for n in range(len(values))], "value": values})
        ratings = read_judgments(frame)
        with DuckDBEngine() as engine:
            logs = open_log(engine, written(frame, tmp_path / str(len(values)), 1))
        assert logs.by_criterion[""].scale == ratings.observations.scale
        assert logs.by_criterion[""].scale_known == ratings.observations.scale_known
        assert logs.notes == ratings.notes
