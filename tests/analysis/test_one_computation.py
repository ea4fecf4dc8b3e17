"""Dashboard, report, command line and exports show the same numbers: they come from one computation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

from steelyard import Study
from steelyard.cli.app import app
from steelyard.report.builder import build_report
from steelyard.report.document import Document, Table
from steelyard.web import calculator
from steelyard.web.calculator_process import Source

TOURNAMENT = """
[protocol]
name = "pairwise"
[design]
name = "tournament"
annotators_per_source = 3
[quality]
overlap_rate = 0.2
[model]
name = "dominance"
"""
CRITERIA = """
[protocol]
name = "likert"
criteria = { adequacy = { scale = [1, 5] }, fluency = { scale = [1, 7] } }
[design]
judgments = 4
[quality]
repeat_rate = 0.2
repeat_after = 3
"""
BEST_WORST = """
[protocol]
name = "best_worst"
[design]
name = "balanced_tuples"
annotators_per_task = 4
across_contexts = true
"""
LABELS = """
[protocol]
name = "choice"
labels = ["yes", "no", "unclear"]
[design]
judgments = 4
[quality]
overlap_rate = 0.3
"""
TWO_STAGES = """
[[stage]]
name = "sliders"
protocol = { name = "direct" }
design = { judgments = 3 }
[[stage]]
name = "pairs"
protocol = { name = "pairwise" }
design = { name = "random_tuples", judgments = 6 }
"""
STUDIES = {
    "tournament": TOURNAMENT,
    "criteria": CRITERIA,
    "best_worst": BEST_WORST,
    "labels": LABELS,
    "two_stages": TWO_STAGES,
}


def write_study(folder: Path, tables: str) -> Path:
    folder.mkdir()
    rows = "".join(f"s{n // 4}-{n % 4},text {n},source {n // 4},system {n % 4}\n" for n in range(24))
    (folder / "items.csv").write_text("id,text,context,system\n" + rows)
    head = 'title = "Words"\nquestion = "How good?"\nitems = "items.csv"\n'
    (folder / "study.toml").write_text(head + tables)
    return folder


def answer(protocol, items, rng):
    """A noisy answer: items with a higher number are better."""
    value = {item: int(item[-1]) / 4 + rng.normal(0, 0.3) for item in items}
    ordered = sorted(items, key=value.__getitem__)
    if protocol.name == "pairwise":
        return {"winner": None if rng.random() < 0.1 else ordered[-1]}
    if protocol.name == "best_worst":
        return {"best": ordered[-1], "worst": ordered[0]}
    if protocol.name == "choice":
        return {item: "yes" if value[item] > 0.5 else rng.choice(["no", "unclear"]).item() for item in items}
    scales = protocol.scales()
    if list(scales) == [""]:
        low, high = scales[""]
        return {item: round(float(np.clip(low + value[item] * (high - low), low, high))) for item in items}
    return {
        item: {
            name: round(float(np.clip(low + value[item] * (high - low), low, high)))
            for name, (low, high) in scales.items()
        }
        for item in items
    }


def work(study: Study) -> None:
    """Answer everything; revise some answers, skip and flag some tasks, exclude one annotator and readmit another."""
    rng = np.random.default_rng(7)
    names = [f"annotator-{n}" for n in range(6)]
    turn = 0
    excluded_at: int | None = None
    is_readmitted = False
    idle: set[str] = set()
    while len(idle) < len(names):
        name = names[turn % len(names)]
        turn += 1
        task = study.ask(name)
        if task is None:
            idle.add(name)
            continue
        idle.clear()
        if turn % 40 == 11:
            study.flag(task, "typo")
            study.skip(task, "cannot serve")
            continue
        protocol = study.core.stage_of(task).protocol
        judgment = study.tell(task, answer(protocol, task.item_ids, rng), seconds=float(rng.gamma(4, 2)))
        if turn % 17 == 0:
            study.revise(judgment.judgment_id, answer(protocol, task.item_ids, rng))
        if turn >= 48 and excluded_at is None:
            excluded_at = turn
            study.annotators.exclude("annotator-5", "guesses")
            study.annotators.exclude("annotator-4", "by mistake")
        if excluded_at is not None and turn >= excluded_at + 6 and not is_readmitted:
            is_readmitted = True
            study.annotators.readmit("annotator-4")


def table(document: Document, name: str) -> pl.DataFrame:
    blocks = [block for section in document.sections for block in section.blocks]
    return next((b.frame for b in blocks if isinstance(b, Table) and b.name == name), pl.DataFrame())


def command(*arguments: object) -> pl.DataFrame:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return pl.DataFrame(json.loads(result.stdout), infer_schema_length=None)


@pytest.fixture(scope="module", params=STUDIES)
def places(request, tmp_path_factory):
    """The four places that show a study's numbers: dashboard, report, command line, exported file."""
    folder = write_study(tmp_path_factory.mktemp("one") / request.param, STUDIES[request.param])
    with Study.open(folder) as study:
        work(study)
        document = build_report(study, real_ids=True)
    source = Source(str(folder), None)
    board = {name: calculator.compute(source, name) for name in calculator.PARTS}
    calculator.close(source)
    return folder, document, board


def numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """A table of statistics in one order, with the columns that all places have."""
    columns = ["stage", "criterion", "statistic", "value", "lower", "upper", "n"]
    return frame.select(columns).with_columns(pl.col("value", "lower", "upper").cast(pl.Float64)).sort(columns[:3])


@pytest.mark.slow
def test_every_statistic_of_reliability_is_the_same_in_all_four_places(places, tmp_path):
    folder, document, board = places
    dashboard = numbers(board["reliability"].tables["statistics"])
    assert dashboard.height > 2
    assert dashboard["value"].drop_nulls().len() > 1
    report = pl.concat([table(document, "reliability"), table(document, "order")], how="diagonal_relaxed")
    # The report leaves statistics of order out where they are undefined.
    in_report = dashboard.join(
        numbers(report).select("stage", "criterion", "statistic"), on=["stage", "criterion", "statistic"]
    )
    assert_frame_equal(numbers(report), in_report, abs_tol=0)
    missing = dashboard.join(in_report, on=["stage", "criterion", "statistic"], how="anti")
    assert missing["value"].null_count() == missing.height
    printed = command("reliability", folder, "--format", "json")
    assert_frame_equal(numbers(printed), dashboard, check_dtypes=False, abs_tol=1e-12)
    exported = tmp_path / "reliability.parquet"
    CliRunner().invoke(app, ["export", str(folder), "--what", "reliability", "-o", str(exported)])
    assert_frame_equal(numbers(pl.read_parquet(exported)), dashboard, abs_tol=0)


@pytest.mark.slow
def test_every_score_is_the_same_in_all_four_places(places, tmp_path):
    folder, document, board = places
    first = "score" if "score" in board["scores"].tables["scores"].columns else "probability"
    keys = ["item", *(["criterion"] if "criterion" in board["scores"].tables["scores"].columns else [])]
    columns = [*keys, first, *(["lower", "upper"] if first == "score" else []), "judgments"]

    def scores(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.select(columns).sort(keys)

    dashboard = scores(board["scores"].tables["scores"])
    section = next(section for section in document.sections if section.key == "scores")
    tables = [block.frame for block in section.blocks if isinstance(block, Table)]
    report = pl.concat([frame for frame in tables if "item" in frame.columns], how="diagonal_relaxed")
    assert_frame_equal(scores(report), dashboard, abs_tol=0)
    assert_frame_equal(
        scores(command("scores", folder, "--format", "json")), dashboard, check_dtypes=False, abs_tol=1e-12
    )
    exported = tmp_path / "scores.parquet"
    CliRunner().invoke(app, ["export", str(folder), "--what", "scores", "-o", str(exported)])
    assert_frame_equal(scores(pl.read_parquet(exported)), dashboard, abs_tol=0)


@pytest.mark.slow
def test_every_comparison_of_systems_is_the_same_in_all_places(places, tmp_path):
    folder, document, board = places
    if "systems" not in board["scores"].tables:
        # A study of comparisons may hold none within a source.
        assert board["scores"].systems_problem
        assert table(document, "systems").is_empty()
        return
    for what, option in (("systems", ()), ("differences", ("--differences",))):
        dashboard = board["scores"].tables[{"differences": "system_differences"}.get(what, what)]
        assert dashboard.height > 3
        name = {"differences": "system-differences"}.get(what, what)
        section = next(section for section in document.sections if section.key == "systems")
        frames = [b.frame for b in section.blocks if isinstance(b, Table) and b.name.startswith(f"{name}")]
        assert_frame_equal(pl.concat(frames), dashboard, abs_tol=0)
        printed = command("scores", folder, "--by", "system", *option, "--format", "json")
        assert_frame_equal(printed.select(dashboard.columns), dashboard, check_dtypes=False, abs_tol=1e-12)
        exported = tmp_path / f"{what}.parquet"
        CliRunner().invoke(app, ["export", str(folder), "--what", what, "-o", str(exported)])
        assert_frame_equal(pl.read_parquet(exported), dashboard, abs_tol=0)


@pytest.mark.slow
def test_every_number_about_annotators_is_the_same_in_dashboard_report_and_command_line(places):
    folder, document, board = places
    shared = ["annotator", "judgments", "agreement", "too_fast", "constant"]
    dashboard = board["annotators"].tables["annotators"].select(shared).sort("annotator")
    assert dashboard["agreement"].drop_nulls().len() > 1
    assert_frame_equal(table(document, "annotators").select(shared).sort("annotator"), dashboard, abs_tol=0)
    printed = command("quality", folder, "--format", "json").select(shared).sort("annotator")
    assert_frame_equal(printed, dashboard, check_dtypes=False, abs_tol=1e-12)


def test_counts_are_the_same_in_all_places(places):
    folder, document, board = places
    status = command("status", folder, "--format", "json")
    with Study.open(folder) as study:
        frame = study.judgments()
    counted = frame.filter(~pl.col("set_aside") & ~pl.col("purpose").is_in(["check", "repeat"])).height
    assert board["scores"].judgments == board["progress"].judgments == frame.height == status["judgments"][0]
    assert board["reliability"].judgments == counted
    summary = {row["what"]: row["value"] for row in table(document, "summary").iter_rows(named=True)}
    assert summary["judgments that count"] == counted
    assert (
        status["set_aside"][0]
        == frame.filter(pl.col("set_aside") & ~pl.col("purpose").is_in(["check", "repeat"])).height
        > 0
    )
