"""The tables behind the dashboard and the report, recomputed by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from steelyard.analysis.history import history_of
from steelyard.analysis.tables import (
    answer_text,
    answers_to_target,
    costs,
    forecast,
    item_judgments,
    label_counts,
    least_certain,
    paid_people,
    progress_over_time,
    ranked_items,
    rate,
    score_histogram,
)
from steelyard.observations import Choice, Comparison, Label, RankedItems, Rating
from steelyard.records import Item
from steelyard.study.config.tables import Stop
from tests.analysis.conftest import MINUTE, START, answer_all

BEGIN = datetime.fromtimestamp(START / 1e6, UTC)


def rated(value):
    return lambda ids: dict.fromkeys(ids, value)


@pytest.mark.slow
def test_progress_adds_up_to_the_judgments_and_excluded_people_are_left_out(open_study, clock):
    study = open_study(design='name = "per_item"\njudgments = 3', items=4)
    for annotator in ("ann", "bob", "cleo"):
        answer_all(study, annotator, rated(50))
        clock.now += 10 * MINUTE
    study.annotators.exclude("bob", "asleep")
    table = progress_over_time(history_of(study), points=4)
    # ann at minute 0 and cleo at minute 20: four stretches of five minutes, the last one ends with cleo.
    assert table["judgments"].to_list() == [4, 0, 0, 4]
    assert table["cumulative"].to_list() == [4, 4, 4, 8]
    assert table["per_hour"].to_list() == [48, 0, 0, 48]
    assert table["at"][-1] == BEGIN + timedelta(minutes=20)


def test_a_study_without_judgments_has_empty_tables_and_no_rate(open_study):
    study = open_study(items=3)
    history = history_of(study)
    assert progress_over_time(history).height == 0
    assert rate(history, BEGIN) is None
    left = forecast(history, study.status(), BEGIN)
    assert (left.tasks, left.hours) == (30, None)
    assert item_judgments(history, study.config, "w0").height == 0
    assert costs(history, study.config, 30)["cost"].to_list() == [0, 0, 0]


def test_the_rate_is_that_of_the_last_hour_with_garwoods_interval(open_study, clock):
    study = open_study(items=10)
    answer_all(study, "ann", rated(1), count=3)
    clock.now += 90 * MINUTE
    answer_all(study, "ann", rated(1), count=5)
    clock.now += 10 * MINUTE
    now = datetime.fromtimestamp(clock.now / 1e6, UTC)
    estimate = rate(history_of(study), now)
    # Exact limits of a Poisson count of 5, from any table: 1.623 and 11.668.
    assert estimate.value == 5
    assert (estimate.lower, estimate.upper) == pytest.approx((1.6235, 11.6683), abs=1e-3)


def test_the_forecast_is_what_is_left_at_that_rate(open_study, clock):
    study = open_study(design='name = "per_item"\njudgments = 2', items=10)
    answer_all(study, "ann", rated(1), count=4)
    clock.now += 30 * MINUTE
    now = datetime.fromtimestamp(clock.now / 1e6, UTC)
    prediction = forecast(history_of(study), study.status(), now)
    # 4 in half an hour, 16 left: two hours.
    assert prediction.tasks == 16
    assert prediction.hours.value == pytest.approx(2)
    assert prediction.hours.lower < 2 < prediction.hours.upper


def test_goals_counted_in_items_are_forecast_in_tasks(open_study, clock):
    study = open_study('name = "direct"\nitems_per_page = 2', 'name = "per_item"\njudgments = 2', items=10)
    answer_all(study, "ann", rated(1), count=2)
    # 4 of 20 items done by 2 tasks, 16 items left: 8 tasks.
    assert forecast(history_of(study), study.status(), BEGIN).tasks == 8


def test_costs_are_pay_and_fee_of_all_paid_work(open_study):
    pay = "[pay]\nper_task = 0.10\nper_hour = 6.0\nfee = 0.5"
    study = open_study('name = "direct"', 'name = "per_item"\njudgments = 1\n' + pay, items=4)
    for seconds in (20, 40):
        answer_all(study, f"ann{seconds}", rated(1), seconds=seconds, count=1)
    study.annotators.exclude("ann40", "bot")
    table = costs(history_of(study), study.config, 10)
    # Each: 0.10 + 30 s at 6 an hour = 0.15, and half as much again for the platform: 0.225.
    assert table["judgments"].to_list() == [2, 10, 12]
    assert table["cost"].to_list() == pytest.approx([0.45, 2.25, 2.70])
    assert table["hours"].to_list() == pytest.approx([1 / 60, 5 / 60, 6 / 60])
    # Student's t with one degree of freedom is 12.706: 30 ± 12.706·10 seconds; no time is below zero.
    assert table["lower"][1] == pytest.approx(1.5)
    assert table["upper"][1] == pytest.approx(10 * (0.10 + 157.06 / 600) * 1.5, rel=1e-4)


def test_visits_and_bonuses_go_on_as_they_came(open_study):
    pay = "[pay]\nper_visit = 2.0\nbonus = '0.5 * tasks'\nfee = 0.1"
    study = open_study('name = "direct"', 'name = "per_item"\njudgments = 3\n' + pay, items=4)
    for name in ("ann", "bob"):
        answer_all(study, name, rated(1), seconds=9, count=2)
    study.annotators.exclude("bob", "bot")
    history = history_of(study)
    table = costs(history, study.config, 8, paid_people(history, study))
    # Four answers: two visits at 2, a bonus of 1 for ann, none for bob, a tenth on top; eight more cost twice that.
    assert table["cost"].to_list() == pytest.approx([5.5, 11.0, 16.5])
    assert study.annotators.pay().equals(paid_people(history, study))


@pytest.mark.parametrize(
    ("measure", "value", "target", "wanted"),
    [
        # Spearman and Brown: a test of reliability .5, made three times as long, has 3·.5 / (1 + 2·.5) = .75.
        ("split_half", 0.5, 0.75, 300),
        ("split_half", 0.8, 0.8, 100),
        ("interval_width", 0.4, 0.1, 1600),
        ("top_k", 0.3, 5, None),
        ("split_half", -0.1, 0.9, None),
    ],
)
def test_answers_that_a_target_takes(measure, value, target, wanted):
    assert answers_to_target(value, Stop(measure=measure, target=target), 100) == (
        None if wanted is None else pytest.approx(wanted)
    )


def test_ranked_items_have_their_texts():
    scores = pl.DataFrame({"item": ["b", "a"], "score": [2.0, 1.0]})
    table = ranked_items(scores, [Item("a", "an apple"), Item("b", "", media="b.png")])
    assert table.to_dicts() == [
        {"item": "b", "text": "b.png", "score": 2.0},
        {"item": "a", "text": "an apple", "score": 1.0},
    ]


def test_the_histogram_counts_every_score_once_also_at_the_ends():
    scores = pl.DataFrame({"score": [0.0, 24.9, 25.0, 100.0, None]})
    table = score_histogram(scores, bins=4, scale=(0, 100))
    assert table["items"].to_list() == [2, 1, 0, 1]
    assert table["upper"].to_list() == [25, 50, 75, 100]
    assert score_histogram(pl.DataFrame({"score": [3.0, 3.0]}), bins=2)["items"].sum() == 2
    assert score_histogram(pl.DataFrame({"score": [None]}, schema={"score": pl.Float64})).height == 0


def test_labels_are_counted_by_item():
    scores = pl.DataFrame({"item": list("abcd"), "label": ["no", "yes", "yes", None]})
    assert label_counts(scores).rows() == [("yes", 2), ("no", 1)]


def test_the_least_certain_come_unjudged_first_then_widest():
    ranked = pl.DataFrame({"item": ["a", "b", "c"], "lower": [1.0, 0.0, None], "upper": [2.0, 9.0, None]})
    assert least_certain(ranked, 2)["item"].to_list() == ["c", "b"]
    labels = pl.DataFrame({"item": ["a", "b"], "probability": [0.9, 0.5]})
    assert least_certain(labels, 1)["item"].to_list() == ["b"]


def test_an_items_page_has_every_judgment_with_its_latest_answer(open_study, clock):
    study = open_study('name = "scored_ranking"\nsize = 2', 'name = "random_tuples"\njudgments = 2', items=2)
    for annotator, value in (("ann", 10), ("bob", 60)):
        task = study.ask(annotator)
        study.tell(task, {"w0": value, "w1": 99}, seconds=7)
        clock.now += MINUTE
    study.revise(task.judgment_id, {"w0": 61, "w1": 99})
    study.annotators.exclude("ann", "fast")
    table = item_judgments(history_of(study), study.config, "w0")
    assert table["annotator"].to_list() == ["bob", "ann"]
    assert table["answer_text"].to_list() == ["61", "10"]
    assert table["value"].to_list() == [61, 10]
    assert table["revised"].to_list() == [True, False]
    assert table["excluded"].to_list() == [False, True]
    assert table["other_items"].to_list() == [["w1"], ["w1"]]
    assert table["at"].to_list() == [BEGIN + timedelta(minutes=1), BEGIN]


def test_open_tasks_are_those_that_nobody_answered_or_gave_back(open_study):
    study = open_study(items=5)
    told, kept, skipped = study.ask("ann", 3)
    study.tell(told, rated(1)(told.item_ids))
    study.skip(skipped, "no idea")
    history = history_of(study)
    assert history.open_tasks()["judgment_id"].to_list() == [kept.judgment_id]
    assert history.notes.select("kind", "reason").rows() == [("skip", "no idea")]


@pytest.mark.parametrize(
    ("observation", "said"),
    [
        (Rating("x", 71.0), "71"),
        (Rating("x", 7.5, "fluency"), "fluency 7.5"),
        (Rating("y", 1.0), ""),
        (Label("x", "yes"), "yes"),
        (Label("x", "yes", "fit"), "fit: yes"),
        (Comparison("x", "y", 1), "better than y"),
        (Comparison("y", "x", 1), "worse than y"),
        (Comparison("y", "x", 0), "tied with y"),
        (Comparison("y", "z", 0), ""),
        (Choice(("x", "y", "z"), "x", "y"), "best"),
        (Choice(("x", "y", "z"), "z", "x"), "worst"),
        (Choice(("x", "y", "z"), "z", "y"), "neither best nor worst"),
        (RankedItems((("a",), ("x", "b"), ("c",))), "2 of 4 (tied)"),
        (RankedItems((("a",), ("b",), ("x",))), "3 of 3"),
    ],
)
def test_what_was_said_of_an_item_is_said_in_plain_words(observation, said):
    assert answer_text(observation, "x") == said
