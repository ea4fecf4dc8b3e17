"""split-half, compare-scores, annotators-needed and agreement print what the functions return; simulate --save."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from steelyard.formats import read_judgments
from steelyard.reliability import compare_scorings, meta_annotator, split_half, split_half_by_budget
from steelyard.reliability import split_half_by_subset as by_subset
from steelyard.reliability.ita import ita_with_experts
from tests.cli.running import run


@pytest.fixture
def rated(tmp_path: Path) -> Path:
    """Ten annotators rate twelve items; the first two are experts."""
    rng = np.random.default_rng(0)
    truth = np.linspace(10, 90, 12)
    rows = [
        {"annotator": f"a{who}", "item": f"i{item:02d}", "value": float(np.clip(truth[item] + noise, 0, 100).round())}
        for who in range(10)
        for item, noise in enumerate(rng.normal(0, 5 if who < 2 else 25, 12))
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "ratings.csv")
    pl.DataFrame({"item": [f"i{n:02d}" for n in range(12)], "gold": truth}).write_csv(tmp_path / "gold.csv")
    subsets = {"item": [f"i{n:02d}" for n in range(12)], "genre": ["news"] * 6 + ["tales"] * 6}
    pl.DataFrame(subsets).write_csv(tmp_path / "subsets.csv")
    return tmp_path


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def observed(folder: Path):
    return read_judgments(folder / "ratings.csv", scale=(0, 100)).observations


SCALE = ("--scale", "0", "100")


def test_split_half_is_that_of_the_function(rated):
    printed = json.loads(
        run("split-half", "ratings.csv", *SCALE, "--trials", "20", "--format", "json", cwd=rated).stdout
    )
    expected = split_half(observed(rated), fixed_items=True, trials=20).statistics
    assert [row["value"] for row in printed] == pytest.approx([statistic.value for statistic in expected])


def test_split_half_by_budget_and_by_subset(rated):
    done = run("split-half", "ratings.csv", *SCALE, "--by-budget", "--trials", "5", "--format", "csv", cwd=rated)
    expected = split_half_by_budget(observed(rated), trials=5)
    assert [float(row["value"]) for row in rows_of(done.stdout)] == pytest.approx(expected["value"].to_list())
    options = ("--subsets", "subsets.csv", "--subset-column", "genre", "--trials", "5", "--format", "csv")
    done = run("split-half", "ratings.csv", *SCALE, *options, cwd=rated)
    tags = {f"i{n:02d}": "news" if n < 6 else "tales" for n in range(12)}
    expected = by_subset(observed(rated), tags, trials=5)
    assert [row["subset"] for row in rows_of(done.stdout)] == expected["subset"].to_list()
    assert [float(row["value"]) for row in rows_of(done.stdout)] == pytest.approx(expected["value"].to_list())


def test_split_half_by_annotators_says_so_and_prints_a_table(rated):
    done = run("split-half", "ratings.csv", *SCALE, "--by", "annotator", "--trials", "5", cwd=rated)
    assert "split-half (Spearman)" in done.stdout
    assert "each annotator's judgments are in one half" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--by-budget", "--per-half", "2"), "cannot be combined"),
        (("--by", "annotator", "--by-budget"), "cannot be combined"),
    ],
)
def test_options_that_contradict_each_other_are_refused(rated, options, message):
    done = run("split-half", "ratings.csv", *SCALE, *options, cwd=rated, code=2)
    assert message in " ".join(done.stderr.split())


def test_a_table_without_the_column_of_subsets_is_refused(rated):
    done = run("split-half", "ratings.csv", *SCALE, "--subsets", "subsets.csv", cwd=rated, code=1)
    assert "subsets.csv: there is no column 'subset'; it has item, genre." in done.stderr


def test_scores_are_compared(rated):
    for model in ("mean", "median"):
        done = run("fit", "ratings.csv", *SCALE, "--model", model, "--format", "csv", cwd=rated)
        (rated / f"{model}.csv").write_text(done.stdout, encoding="utf-8")
    printed = json.loads(run("compare-scores", "mean.csv", "median.csv", "--format", "json", cwd=rated).stdout)
    expected = compare_scorings(pl.read_csv(rated / "mean.csv"), pl.read_csv(rated / "median.csv"))
    assert [row["value"] for row in printed] == pytest.approx([statistic.value for statistic in expected.statistics])
    assert "Items with the largest changes in rank" in run("compare-scores", "mean.csv", "median.csv", cwd=rated).stdout
    items = rows_of(run("compare-scores", "mean.csv", "median.csv", "--items", "--format", "csv", cwd=rated).stdout)
    assert len(items) == 12


def test_annotators_needed_is_the_curve_and_names_the_least_number(rated):
    options = ("--gold", "gold.csv", "--expert", "0.9")
    printed = json.loads(
        run("annotators-needed", "ratings.csv", *SCALE, *options, "--format", "json", cwd=rated).stdout
    )
    gold = {f"i{n:02d}": float(value) for n, value in enumerate(np.linspace(10, 90, 12))}
    expected = meta_annotator(observed(rated), gold, expert=0.9)
    assert [row["value"] for row in printed] == pytest.approx([each.value for each in expected.statistics])
    assert expected.least is not None
    output = run("annotators-needed", "ratings.csv", *SCALE, *options, cwd=rated).stdout
    assert f"{expected.least} annotators together match one expert (0.900)." in output


def test_agreement_of_experts_and_others_is_added(rated):
    options = ("--expert", "a0", "--expert", "a1", "--format", "json")
    printed = json.loads(run("agreement", "ratings.csv", *SCALE, *options, cwd=rated).stdout)
    expected = ita_with_experts(observed(rated), ["a0", "a1"])
    values = {row["statistic"]: row["value"] for row in printed}
    assert [values[each.key] for each in expected] == pytest.approx([each.value for each in expected])
    done = run("agreement", "ratings.csv", *SCALE, "--expert", "nobody", cwd=rated, code=1)
    assert "no annotator is called 'nobody'" in done.stderr


@pytest.mark.slow
def test_a_simulated_study_is_saved_as_an_ordinary_study(tmp_path):
    run("new", "words", cwd=tmp_path)
    config = (tmp_path / "words" / "study.toml").read_text(encoding="utf-8")
    done = run("simulate", "words", "--save", "played", "--annotators", "12", cwd=tmp_path)
    assert "300 judgments" in done.stdout
    assert (tmp_path / "words" / "study.toml").read_text(encoding="utf-8") == config
    status = json.loads(run("status", "played", "--format", "json", cwd=tmp_path).stdout)
    assert status[0]["judgments"] == 300
    # More than half of the variance of true scores is found: annotators are not at random.
    split = json.loads(run("split-half", "played", "--trials", "10", "--format", "json", cwd=tmp_path).stdout)
    assert split[0]["value"] > 0.5
    done = run("simulate", "words", "--save", "played", cwd=tmp_path, code=1)
    assert "played already exists" in done.stderr
