"""steelyard plan, as a person types it."""

from __future__ import annotations

import json

import polars as pl
import pytest

from steelyard.cli.output import print_whole
from steelyard.cli.plan import _laid_out
from steelyard.simulate import ItemLayout, Reliability
from steelyard.simulate.planner import Plan
from tests.cli.running import run

SMALL = ("--items", "30", "--target-reliability", "0.7", "--jobs", "1", "--annotators", "20")


@pytest.mark.slow
def test_a_plan_says_judgments_hours_cost_and_how_reliability_is_measured(tmp_path):
    option = ("--protocol", "best_worst", "--design", "random_tuples", "--price", "0.15", "--hours", "1000")
    done = run("plan", *SMALL, *option, cwd=tmp_path)
    assert "30 items, split-half reliability 0.7" in done.stdout
    assert all(head in done.stdout for head in ("judgments", "hours", "cost", "random_tuples"))
    assert "uncorrected split-half" in done.stderr
    assert "0.824 (Spearman–Brown corrected)" in done.stderr
    # A thousand hours pay for far more judgments than were simulated.
    assert "the most simulated judgments" in " ".join(done.stderr.split())


def test_a_plan_of_millions_fits_eighty_columns_with_every_digit(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    many = {"protocol": "scored_ranking", "design": "adaptive", "judgments": 1_234_567, "lower": 1_100_000}
    many |= {"upper": 1_400_000, "items_per_judgment": 5, "hours": 12_345.6, "cost": 185_185.05, "truth": 0.9351}
    fewer = many | {"judgments": 9_999, "lower": 9_500, "upper": 10_049, "hours": 99.94, "cost": 1_499.85}
    never = many | dict.fromkeys(("judgments", "lower", "upper", "hours", "cost", "truth")) | {"best": 0.62}
    table = pl.DataFrame([many | {"best": 0.9}, fewer | {"best": 0.9}, never])
    print_whole(_laid_out(table, Plan(ItemLayout(100_000), 20, Reliability(0.9), (), ())))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split() for line in lines[2:]] == [
        ["scored_ranking", "adaptive", "1,234,567", "1.10M–1.40M", "5", "12,346", "185,185", "0.935"],
        ["scored_ranking", "adaptive", "9,999", "9,500–10.0k", "5", "99.9", "1,500", "0.935"],
        ["scored_ranking", "adaptive", "–", "best", "0.62", "5"],
    ]


@pytest.mark.slow
def test_json_has_what_the_table_has_and_more(tmp_path):
    done = run(
        "plan",
        *SMALL,
        "-p",
        "direct",
        "-d",
        "per_item",
        "--price",
        "0.5",
        "--seconds",
        "36",
        "-f",
        "json",
        cwd=tmp_path,
    )
    (row,) = json.loads(done.stdout)
    assert row["lower"] <= row["judgments"] <= row["upper"]
    assert row["cost"] == pytest.approx(0.5 * row["judgments"])
    assert row["hours"] == pytest.approx(row["judgments"] / 100)
    assert row["items_per_judgment"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["svg", "png", "html"])
def test_the_chart_is_drawn_and_its_title_states_the_finding(ending, tmp_path):
    done = run(
        "plan", *SMALL, "-p", "direct", "-d", "per_item", "--chart", f"plan.{ending}", "-f", "json", cwd=tmp_path
    )
    content = (tmp_path / f"plan.{ending}").read_bytes()
    (row,) = json.loads(done.stdout)
    if ending == "png":
        assert content.startswith(b"\x89PNG")
    else:
        text = content.decode()
        assert f"direct reaches 0.70 with {row['judgments']:,} judgments" in text
        assert "cdn." not in text


@pytest.mark.slow
def test_a_pilot_moves_the_plan(tmp_path):
    """Ratings that agree to the point need far fewer judgments than those of the usual people."""
    rows = [f"item-{i},ann-{a},{3 * i + (i * a) % 3}" for i in range(30) for a in range(4)]
    (tmp_path / "pilot.csv").write_text("item,annotator,value\n" + "\n".join(rows) + "\n")
    usual = json.loads(run("plan", *SMALL, "-p", "direct", "-d", "per_item", "-f", "json", cwd=tmp_path).stdout)
    piloted = run(
        "plan",
        *SMALL,
        "-p",
        "direct",
        "-d",
        "per_item",
        "--pilot",
        "pilot.csv",
        "--scale",
        "0",
        "100",
        "-f",
        "json",
        cwd=tmp_path,
    )
    assert json.loads(piloted.stdout)[0]["judgments"] < 0.8 * usual[0]["judgments"]
    assert "estimated from the pilot" in piloted.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-p", "direct", "-d", "per_item", "--annotators", "2", "-t", "0.99"), "cannot be reached: the best is 0."),
        (("-p", "best_wurst"), "Did you mean 'best_worst'"),
        (("-p", "choice"), "labels have no split-half reliability"),
        (("--price", "1", "--wage", "9"), "--price and --wage cannot be combined"),
        (("--seconds", "9"), "--seconds gives one time for several protocols"),
        (("-p", "direct", "--seconds", "pair=9"), "'pair' is not one of the protocols"),
        (("--chart", "plan.pdf"), "Use a name that ends in .svg, .png or .html"),
        (("--set", "noize=1"), "Did you mean 'noise'"),
    ],
    ids=str,
)
def test_what_cannot_be_planned_is_refused_with_a_remedy(arguments, said, tmp_path):
    done = run("plan", *SMALL, *arguments, cwd=tmp_path, code=1)
    assert said in " ".join(done.stderr.split())
    assert done.stdout == ""


def test_help_does_not_load_what_only_plans_need():
    import subprocess
    import sys

    code = (
        "import sys; sys.argv = ['steelyard', 'plan', '--help']\n"
        "from steelyard.cli.app import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([name for name in ('altair', 'numba', 'scipy', 'polars') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_chart_draws_each_protocol_s_best_design_when_there_are_many():
    import polars as pl

    from steelyard.report.plan_chart import finding, plan_points

    names = [("a", "x"), ("a", "y"), ("b", "x"), ("c", "x"), ("d", "x")]
    table = pl.DataFrame(
        {
            "protocol": [p for p, _ in names],
            "design": [d for _, d in names],
            "seconds": [36.0] * 5,
            "items_per_judgment": [1] * 5,
            "judgments": [100, 200, 300, 1400, None],
        }
    )
    curve = pl.DataFrame(
        [
            {"protocol": p, "design": d, "judgments": n, "value": 0.5, "lower": 0.4, "upper": 0.6}
            for p, d in names
            for n in (50, 100)
        ]
    )
    points = plan_points(curve, table)
    assert points["option"].unique(maintain_order=True).to_list() == ["a · x", "a · y", "b · x", "c · x"]
    assert points["hours"].unique().sort().to_list() == [0.5, 1.0]
    assert finding(points, 0.9) == "a · x reaches 0.90 with 100 judgments, c · x with 1,400"
    five = table.with_columns(pl.col("judgments").fill_null(2000))
    assert plan_points(curve, five)["option"].unique(maintain_order=True).to_list() == ["a", "b", "c", "d"]


def test_options_of_one_protocol_are_called_by_their_designs():
    import polars as pl

    from steelyard.report.plan_chart import finding, plan_points

    table = pl.DataFrame(
        {
            "protocol": ["a", "a"],
            "design": ["x", "y"],
            "seconds": [9.0] * 2,
            "items_per_judgment": [4] * 2,
            "judgments": [10, 20],
        }
    )
    curve = table.select("protocol", "design", "judgments", reliability=0.5)
    assert finding(plan_points(curve, table), 0.8) == "a: x reaches 0.80 with 10 judgments, y with 20"


def test_a_file_of_outputs_is_planned_by_system(tmp_path):
    rows = [{"src": f"s{n}", "model": f"m{k}", "translation": f"t{n}{k}"} for n in range(40) for k in range(4)]
    pl.DataFrame(rows).write_csv(tmp_path / "outputs.csv")
    options = ("--target-reliability", "0.6", "--jobs", "1", "-p", "pairwise", "-d", "all_pairs")
    done = run("plan", "--items", "outputs.csv", *options, "--set-systems", "system_sd=0.1", cwd=tmp_path)
    assert "4 systems × 40 sources" in done.stdout
    assert "two halves of the sources" in done.stderr
    refused = run("plan", "--systems", "3", cwd=tmp_path, code=1)
    assert "both --systems and --sources" in refused.stderr


@pytest.mark.slow
def test_mixes_of_people_and_a_model_are_planned_from_a_file_with_both(tmp_path):
    """Two people and a model rate 30 items without noise: the model is as good as people, and saves almost all."""
    rows = [f"{who},i{n},{3 * n}" for who in ("ann", "bob", "gpt") for n in range(30)]
    (tmp_path / "pilot.csv").write_text("annotator,item,value\n" + "\n".join(rows) + "\n")
    arguments = ("--items", "200", "--pilot", "pilot.csv", "--scale", "0", "100", "--judge", "gpt")
    done = run(
        "plan", *arguments, "--price", "1", "--model-price", "0.01", "-f", "json", "--chart", "mix.svg", cwd=tmp_path
    )
    table = json.loads(done.stdout)
    mixed = min((row for row in table if row["model"]), key=lambda row: row["cost"])
    assert mixed["cost"] == pytest.approx(200 * (0.1 + 0.01))
    assert mixed["correlation"] == pytest.approx(0.99, abs=0.01)
    assert "The model saves" in (tmp_path / "mix.svg").read_text()
