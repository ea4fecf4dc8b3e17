"""Reports of every protocol, of several criteria, stages and groups, of imported judgments and of gold."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from steelyard import Study, SystemOptions
from steelyard.report.builder import build_report
from steelyard.report.document import Document, Figure, Table
from steelyard.report.html import html_page
from steelyard.simulate import answer_for
from steelyard.study.importing import import_file

pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")

ASKED = {
    "direct": ('name = "direct"', 'name = "per_item"\njudgments = 5'),
    "likert": ('name = "likert"\nscale = [1, 5]', 'name = "per_item"\njudgments = 5'),
    "choice": ('name = "choice"\nlabels = ["yes", "no"]', 'name = "per_item"\njudgments = 5'),
    "pairwise": ('name = "pairwise"', 'name = "random_tuples"\njudgments = 12'),
    "best_worst": ('name = "best_worst"', 'name = "random_tuples"\njudgments = 12'),
    "scored_ranking": ('name = "scored_ranking"\nsize = 3', 'name = "random_tuples"\njudgments = 12'),
    "error_spans": ('name = "error_spans"', 'name = "per_item"\njudgments = 5'),
    "ranking": ('name = "ranking"\nsize = 3', 'name = "random_tuples"\njudgments = 12'),
}


def judge(study: Study, people: int = 5, seed: int = 0) -> None:
    """Let people answer at their own discretion, roughly in the order of the items."""
    rng = np.random.default_rng(seed)
    names = [f"p{number}" for number in range(people)]
    open_for = set(names)
    while open_for:
        for name in names:
            task = study.ask(name)
            if task is None:
                open_for.discard(name)
                continue
            values = {item: min(1, max(0, hash_of(item) + rng.normal(0, 0.15))) for item in task.item_ids}
            study.tell(task, answer_for(study.core.stage_of(task).protocol, values), seconds=3.0)


def hash_of(item: str) -> float:
    return int(item[1:]) / 10


def names_of(document: Document, kind: type[Table] | type[Figure]) -> set[str]:
    return {block.name for block in document.blocks() if isinstance(block, kind)}


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ASKED)
def test_every_protocol_has_a_report_with_scores_and_reliability(make_study, protocol):
    with Study.open(make_study(*ASKED[protocol], items=8)) as study:
        judge(study)
        document = build_report(study)
        counted = study.status().judgments
    page = html_page(document)
    assert f"{counted:,} answers about 8 items" in page
    tables, figures = names_of(document, Table), names_of(document, Figure)
    assert {"summary", "stages", "reliability", "annotators", "costs"} <= tables
    assert ("labels" if protocol == "choice" else "scores") in tables & figures
    assert ("order" in tables) == (protocol in {"pairwise", "best_worst", "scored_ranking", "ranking"})
    assert ("places" in tables) == (protocol == "best_worst")
    assert ("bias-and-noise" in figures) == (protocol in {"direct", "likert", "scored_ranking", "error_spans"})
    assert ({"errors", "severities"} <= tables) == (protocol == "error_spans")


def test_where_the_best_stood_is_counted(make_study):
    with Study.open(make_study(*ASKED["best_worst"], items=8)) as study:
        judge(study)
        answers = study.judgments()
        table = build_report(study).table("places").frame
    best = answers["answer"].str.json_path_match("$.best").to_list()
    stood = [items.index(chosen) + 1 for items, chosen in zip(answers["items"].to_list(), best, strict=True)]
    assert table["times"].to_list() == [stood.count(place) for place in (1, 2, 3, 4)]
    assert table["share"].sum() == pytest.approx(1)
    assert set(table["chance"]) == {0.25}


@pytest.mark.slow
def test_criteria_have_scores_and_figures_of_their_own(make_study):
    protocol = 'name = "direct"\n[protocol.criteria.joy]\n[protocol.criteria."fear & awe"]\nscale = [-1, 1]'
    with Study.open(make_study(protocol, 'name = "per_item"\njudgments = 4', items=6)) as study:
        judge(study, 4)
        document = build_report(study)
    assert {"scores-joy", "scores-fear---awe"} <= names_of(document, Table) & names_of(document, Figure)
    assert set(document.table("reliability").frame["criterion"]) == {"joy", "fear & awe"}
    assert html_page(document).count("fear &amp; awe") > 3


def test_the_report_of_a_study_that_goes_on_says_what_the_rest_will_cost(make_study):
    folder = make_study('name = "direct"', 'name = "per_item"\njudgments = 3\n[pay]\nper_task = 0.5', items=4)
    with Study.open(folder) as study:
        judge(study, 2)
        table = build_report(study).table("forecast").frame
        assert table["cost"].to_list() == pytest.approx([4.0, 2.0, 6.0])
        assert table["part"].to_list() == ["so far", "all planned tasks", "in total"]
        study.set_state("closed")
        assert "forecast" not in names_of(build_report(study), Table)


def test_the_forecast_goes_as_far_as_the_target_where_there_is_one(make_study):
    rule = '[stop]\nmeasure = "interval_width"\ntarget = 10\ninterim_analyses = 10\n[pay]\nper_task = 0.5'
    folder = make_study('name = "direct"', f'name = "per_item"\njudgments = 40\n{rule}', items=5)
    with Study.open(folder) as study:
        judge(study, 8)
        interim = study.quality.interim_analysis()
        table = build_report(study).table("forecast").frame
    # Forty answers gave that width; (width / 10)² times as many should do, at a half each.
    expected = 0.5 * min(160, 40 * (interim.value / 10) ** 2 - 40)
    assert table["part"][1] == "until the target (estimate)"
    assert table["cost"][1] == pytest.approx(expected)


@pytest.mark.slow
def test_stages_are_told_apart_and_costs_add_up(make_study, tmp_path):
    folder = make_study()
    text = (folder / "study.toml").read_text().split("[protocol]")[0]
    text += '[[stage]]\nname = "first"\n[stage.protocol]\nname = "pairwise"\n[stage.design]\nname = "random_tuples"\n'
    text += 'judgments = 8\n[[stage]]\nname = "second"\n[stage.protocol]\nname = "direct"\n[stage.design]\n'
    text += 'name = "per_item"\njudgments = 3\n[model]\nname = "mean"\n[pay]\nper_task = 0.1\n'
    (folder / "study.toml").write_text(text)
    with Study.open(folder) as study:
        judge(study, 4)
        answers = study.judgments().group_by("stage").len()
        document = build_report(study)
    costs = document.table("costs").frame
    assert costs["stage"].to_list() == ["first", "second", "in total"]
    counts = dict(answers.iter_rows())
    expected = [0.1 * counts["first"], 0.1 * counts["second"], 0.1 * sum(counts.values())]
    assert costs["cost"].to_list() == pytest.approx(expected)
    assert set(document.table("reliability").frame["stage"]) == {"first", "second"}


@pytest.mark.slow
def test_systems_have_scores_of_their_own(make_study):
    folder = make_study(*ASKED["direct"], items=6)
    rows = "".join(f"w{n},word {n},{'odd' if n % 2 else 'even'}\n" for n in range(6))
    (folder / "items.csv").write_text("id,text,group\n" + rows)
    with Study.open(folder) as study:
        judge(study)
        document = build_report(study)
        values = study.judgments()
        plain = study.systems(SystemOptions(adjust=False)).scores
        adjusted = study.systems().scores
    ratings = [(item, value) for answer in values["answer"] for item, value in json.loads(answer).items()]
    means = {
        name: np.mean([value for item, value in ratings if int(item[1:]) % 2 == odd])
        for name, odd in (("odd", 1), ("even", 0))
    }
    assert dict(plain.select("system", "score").iter_rows()) == pytest.approx(means)
    assert document.table("systems").frame.equals(adjusted)


def test_gold_shows_who_is_right_and_which_gold_most_contradict(make_study):
    folder = make_study(*ASKED["choice"], items=6)
    # Everybody says yes to w5, whose gold is no.
    rows = "".join(f"w{n},word {n},{'no' if n in {0, 1, 2, 5} else 'yes'}\n" for n in range(6))
    (folder / "items.csv").write_text("id,text,gold\n" + rows)
    with Study.open(folder) as study:
        for name in ("a", "b", "c", "d", "e"):
            while (task := study.ask(name)) is not None:
                item = task.item_ids[0]
                says = "yes" if int(item[1:]) > 2 or (name == "e" and item != "w0") else "no"
                study.tell(task, {item: says})
        document = build_report(study, real_ids=True)
    assert document.table("disputed-gold").frame["item"].to_list() == ["w5"]
    accuracy = dict(document.table("gold-accuracy").frame.select("annotator", "accuracy").iter_rows())
    assert accuracy == pytest.approx({**dict.fromkeys("abcd", 5 / 6), "e": 3 / 6})
    assert "accuracy" in names_of(document, Figure)


def test_imported_judgments_count_in_the_scores_and_cost_nothing(make_study, tmp_path):
    folder = make_study(*ASKED["direct"], items=4, extra="[pay]\nper_task = 1\n")
    rows = [(f"w{n}", name, 10 * n) for n in range(4) for name in ("x", "y")]
    pl.DataFrame(rows, schema=["item", "annotator", "value"], orient="row").write_csv(tmp_path / "old.csv")
    with Study.open(folder) as study:
        import_file(study, tmp_path / "old.csv")
        judge(study, 2)
        own = study.judgments().filter(~pl.col("imported")).height
        document = build_report(study)
    costs = document.table("costs").frame
    assert costs.select("answers", "labels", "cost").row(0) == (own, own, own)
    assert document.table("scores").frame["judgments"].sum() == own + 8
