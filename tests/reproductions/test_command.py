"""The command `python -m reproductions`."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from reproductions.__main__ import main
from reproductions.cheap_fast.word_similarity import WordSimilarity
from tests.cli.running import Done
from tests.cli.running import run as run_command

ONE = "cheap_fast.word_similarity"


def run(*arguments: str, cwd: Path, code: int = 0) -> Done:
    return run_command(*arguments, cwd=cwd, code=code, main=main)


def test_without_a_name_the_experiments_are_listed_by_paper(tmp_path):
    done = run(cwd=tmp_path)
    assert "Snow et al., 2008" in done.stdout
    assert ONE in done.stdout
    assert "python -m reproductions all" in done.stdout


def test_the_list_comes_as_json_too(tmp_path):
    listed = json.loads(run("--format", "json", cwd=tmp_path).stdout)
    assert ONE in {row["name"] for row in listed}


def test_missing_data_end_it_with_the_file_and_its_place(tmp_path):
    done = run(ONE, "--data", str(tmp_path), cwd=tmp_path, code=1)
    assert "snow2008/wordsim.csv.gz" in done.stderr
    assert "--data" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_name_is_refused_with_a_suggestion(tmp_path):
    done = run("cheap_fast.word_similarty", cwd=tmp_path, code=1)
    assert f"Did you mean '{ONE}'" in done.stderr


def test_an_experiment_without_data_runs_anywhere_and_writes_its_files(tmp_path):
    done = run("tournament.effort", "--small", "--out", "figures", cwd=tmp_path)
    assert "published" in done.stdout
    written = {path.name for path in (tmp_path / "figures").iterdir()}
    assert written == {f"tournament.effort.{kind}" for kind in ("svg", "png", "csv")}


@pytest.mark.shared_data
def test_ours_stands_beside_the_published_number_with_its_interval(shared_data, tmp_path):
    done = run(ONE, "--data", str(shared_data), cwd=tmp_path)
    line = next(line for line in done.stdout.splitlines() if line.startswith("r of the mean of 10"))
    ours, lower, dots, upper, published, difference = line.split()[-6:]
    # Snow et al. (2008), §4.2: ten annotators correlate at 0.952 with the gold standard.
    assert (ours, published, difference, dots) == ("0.952", "0.952", "=", "…")
    (claim,) = WordSimilarity().run(shared_data, lambda done, total: None).claims
    assert (lower, upper) == (f"{claim.lower:.3f}", f"{claim.upper:.3f}")
    # Fisher's z with 30 pairs of words: tanh(atanh(0.952) ± 1.96 / √27) is 0.90 to 0.98.
    assert float(lower) == pytest.approx(0.90, abs=0.03)
    assert float(upper) == pytest.approx(0.98, abs=0.015)


@pytest.mark.parametrize("form", ["json", "csv"])
def test_machines_get_every_claim_and_nothing_else(form, tmp_path):
    done = run("tournament.effort", "--small", "--format", form, cwd=tmp_path)
    table = pl.read_json(done.stdout.encode()) if form == "json" else pl.read_csv(done.stdout.encode())
    assert table.columns[:3] == ["experiment", "what", "ours"]
    assert table["experiment"].unique().to_list() == ["tournament.effort"]
    assert table.filter(pl.col("what") == "comparisons of six items")["published"].item() == 6
