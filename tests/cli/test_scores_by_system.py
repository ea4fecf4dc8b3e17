"""steelyard scores --by system, from a study and from files of judgments."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from steelyard import Study, compare_systems
from steelyard.cli.app import app


@pytest.fixture
def votes(tmp_path):
    rng = np.random.default_rng(1)
    sides = rng.permuted(np.tile(["good", "fair", "poor"], (300, 1)), axis=1)[:, :2]
    order = {"good": 0, "fair": 1, "poor": 2}
    is_better = np.array([order[a] < order[b] for a, b in sides])
    winner = np.where(is_better == (rng.random(300) < 0.9), "model_a", "model_b")
    frame = pl.DataFrame(
        {"model_a": sides[:, 0], "model_b": sides[:, 1], "winner": winner, "prompt": np.arange(300) % 60}
    )
    path = tmp_path / "votes.csv"
    frame.with_columns(pl.Series("topic", ["code", "chat"] * 150)).write_csv(path)
    return path


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_file_of_votes_gives_the_comparison_of_python(votes):
    printed = json.loads(run("scores", votes, "--by", "system", "--unit", "elo", "--format", "json"))
    expected = compare_systems(votes, unit="elo").scores
    assert [row["system"] for row in printed] == ["good", "fair", "poor"]
    assert [row["score"] for row in printed] == pytest.approx(expected["score"].to_list())
    assert [row["cluster"] for row in printed] == [1, 2, 3]


def test_latex_has_a_rule_between_clusters(votes, tmp_path):
    run("scores", votes, "--by", "system", "--latex", tmp_path / "systems.tex")
    lines = (tmp_path / "systems.tex").read_text(encoding="utf-8").splitlines()
    # One below the heads, and one between each two of the three clusters.
    assert lines.count(r"\midrule") == 3
    assert [line.split(" & ")[2] for line in lines if " & " in line] == ["system", "good", "fair", "poor"]


def test_a_column_compares_systems_within_its_values(votes):
    rows = json.loads(run("scores", votes, "--by", "topic", "--format", "json"))
    assert {(row["topic"], row["system"]) for row in rows} == {
        (topic, system) for topic in ("code", "chat") for system in ("good", "fair", "poor")
    }


def test_a_column_of_the_outputs_is_kept_with_the_items_of_the_study(tmp_path):
    rows = [
        {"source": f"s{n}", "system": system, "output": f"{system}{n}", "domain": ("law", "news")[n % 2]}
        for n in range(8)
        for system in "xyz"
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "outputs.csv")
    run("new", tmp_path / "mt", "--items", tmp_path / "outputs.csv", "--compare-systems")
    with Study.open(tmp_path / "mt") as study:
        while (task := study.ask("ann")) is not None:
            # Within law the order of the systems is the opposite of that within news.
            first, second = (item.group for item in task.items)
            is_law = task.items[0].metadata["domain"] == "law"
            study.tell(task, {"winner": task.items[int((first < second) == is_law)].id})
    printed = json.loads(run("scores", tmp_path / "mt", "--by", "domain", "--format", "json"))
    order = [(row["domain"], row["system"]) for row in sorted(printed, key=lambda row: (row["domain"], -row["score"]))]
    assert order == [("law", s) for s in "zyx"] + [("news", s) for s in "xyz"]
    exported = run("export", tmp_path / "mt", "--what", "items", "--format", "csv").splitlines()
    assert exported[0] == "id,text,group,context,domain"
    # The same from files: the judgments, and the items beside them.
    run("export", tmp_path / "mt", "-o", tmp_path / "judgments.csv")
    items = tmp_path / "mt" / "items.csv"
    again = json.loads(
        run("scores", tmp_path / "judgments.csv", "--items", items, "--by", "domain", "--format", "json")
    )
    assert [row["score"] for row in again] == pytest.approx([row["score"] for row in printed])


def test_differences_are_printed_for_every_pair(votes):
    assert len(json.loads(run("scores", votes, "--by", "system", "--differences", "--format", "json"))) == 3
    assert "p (Holm)" in run("scores", votes, "--by", "system", "--differences")
