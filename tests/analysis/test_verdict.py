"""The verdict: reliability against the target, the judgments that are missing, and what to do next."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from typer.testing import CliRunner

from steelyard import Study
from steelyard.analysis.analysis import Analysis
from steelyard.analysis.tables import Estimate, Forecast, forecast
from steelyard.analysis.verdict import Verdict, _compared, next_steps
from steelyard.cli.app import app
from steelyard.reliability.statistic import EXPLANATIONS as MEANINGS
from steelyard.reliability.statistic import LABELS, Statistic
from steelyard.study.config.tables import Stop

RULE = Stop(measure="split_half", target=0.9, spearman_brown=True)


def compared(value, lower=None, upper=None, *, answers=258, is_customary=False):
    statistic = Statistic("split_half_spearman_corrected", value, lower, upper)
    return _compared("Reliability", statistic, RULE, is_customary=is_customary, answers=answers)


def test_the_missing_judgments_follow_from_the_spearman_brown_formula():
    # From .86 to .90 the test must be .9 × .14 / (.86 × .1) = 1.4651 times as long: 378 instead of 258 judgments.
    verdict = compared(0.86)
    assert verdict.sentence == "Reliability .86, target .90: about 120 more judgments."
    assert (verdict.outcome, round(verdict.more.value)) == ("below", 120)
    # From .80: .9 × .2 / (.8 × .1) = 2.25 times; from .88: 1.2273 times. Rounded up to two digits.
    verdict = compared(0.86, 0.80, 0.88)
    assert verdict.sentence == "Reliability .86, target .90: about 120 more judgments (59–330)."


@pytest.mark.parametrize(
    ("statistic", "outcome", "sentence"),
    [
        ((0.93, 0.91, 0.95), "reached", "Reliability .93, target .90: reached."),
        ((0.91, 0.88, 0.93), "near", "Reliability .91, target .90: reached, but its lower bound is .88."),
        ((0.8996, 0.88, 0.92), "below", "Reliability .89, target .90: about 2 more judgments (0–59)."),
        (
            (-0.1, -0.3, 0.1),
            "below",
            "Reliability -0.10, target .90: not reached, and too low to predict how many judgments it takes.",
        ),
    ],
)
def test_a_verdict_is_never_better_than_the_estimate(statistic, outcome, sentence):
    verdict = compared(*statistic)
    assert (verdict.outcome, verdict.sentence) == (outcome, sentence)


def test_a_target_that_nobody_set_is_called_customary():
    assert compared(0.95, is_customary=True).sentence == "Reliability .95, customary target .90: reached."


@pytest.fixture
def study(make_study):
    with Study.open(make_study(design='name = "per_item"\njudgments = 3', items=6)) as study:
        yield study


def rate(study, *names, values=(10, 25, 40, 55, 70, 85), most=100):
    for place, name in enumerate(names):
        for _ in range(most):
            task = study.ask(name)
            if task is None:
                break
            item = task.item_ids[0]
            study.tell(task, {item: values[int(item[1:])] + place}, seconds=5.0)


def test_what_is_not_known_is_said(study):
    assert Analysis.of(study).verdict.outcome == "empty"
    rate(study, "ann")
    verdict = Analysis.of(study).verdict
    assert verdict.outcome == "unknown"
    assert verdict.sentence.startswith("Reliability cannot be estimated yet: ")


def test_the_command_line_prints_the_verdict_of_the_dashboard(study):
    rate(study, "ann", "bob", "cleo")
    verdict = Analysis.of(study).verdict
    assert verdict.outcome == "reached"
    printed = CliRunner().invoke(app, ["reliability", str(study.folder)])
    assert verdict.sentence in printed.output


def test_labels_are_judged_by_agreement(make_study):
    folder = make_study(protocol='name = "choice"\nlabels = ["yes", "no"]', design="judgments = 3", items=6)
    with Study.open(folder) as study:
        for name in ("ann", "bob"):
            while (task := study.ask(name)) is not None:
                item = task.item_ids[0]
                study.tell(task, {item: "yes" if int(item[1:]) % 2 else "no"})
        verdict = Analysis.of(study).verdict
    # Two annotators who agree on everything: α is 1 by definition.
    assert verdict.sentence == "Agreement is good: Krippendorff’s α 1.00 (.80 is good)."
    assert verdict.outcome == "reached"


REACHED = Verdict("reached", "Reliability .93, target .90: reached.")
BELOW = Verdict("below", "Reliability .80, target .90: about 300 more judgments.")
LEFT = Forecast(10, Estimate(1.0))


def steps(study, verdict, left=LEFT, speed=Estimate(50.0), **options):
    status = replace(study.status(), judgments=40, **options.pop("status", {}))
    return [step.text for step in next_steps(verdict, status, left, speed, **options)]


def test_what_to_do_next_depends_on_what_is_missing(study):
    assert steps(study, REACHED) == ["The target is reached. You can close the study and create the report."]
    assert steps(study, BELOW, Forecast(0, None))[0].startswith("All planned judgments are collected. Plan more")
    assert steps(study, BELOW) == []
    assert steps(study, BELOW, speed=None) == ["Nobody has judged in the last hour. Invite more annotators."]
    assert steps(study, BELOW, status={"state": "paused"})[0].startswith("The study is paused.")
    assert steps(study, BELOW, disputed_checks=2)[0].startswith("2 checks are disputed by most annotators.")
    until = datetime(2026, 1, 1, 14, 5, tzinfo=UTC)
    [idle] = steps(study, BELOW, Forecast(3, None, 3, until))
    assert idle == "The last 3 tasks are held by annotators who have stopped, until 14:05 UTC."


def test_an_annotator_far_below_the_others_is_to_be_reviewed_without_their_name(study):
    table = pl.DataFrame(
        {
            "annotator": ["a", "b", "c", "d"],
            "agreement": [0.9, 0.88, 0.91, 0.1],
            "agreement_upper": [0.95, 0.94, 0.96, 0.3],
            "excluded": [None] * 4,
            "kind": ["person"] * 4,
        },
        schema_overrides={"excluded": pl.String},
    )
    [step] = steps(study, BELOW, annotators=table)
    assert step == "1 annotator agrees clearly less with the other annotators. Review their answers."


def test_there_is_no_forecast_while_the_last_tasks_are_held_by_annotators_who_have_stopped(study):
    rate(study, "ann", "bob")
    rate(study, "cleo", most=4)
    tasks = [study.ask("dan"), study.ask("eve")]
    analysis = Analysis.of(study, picks=True)
    now = datetime.now(UTC)
    # Both have just fetched their tasks: at the present rate they take moments.
    assert forecast(analysis.history, study.status(), now).hours is not None
    later = now + timedelta(minutes=6)
    left = forecast(analysis.history, study.status(), later)
    assert (left.tasks, left.hours, left.held_tasks) == (2, None, 2)
    assert left.held_until == max(task.lease_end for task in tasks)
    # Once the leases have ended, anybody may get the tasks.
    free = forecast(analysis.history, study.status(), left.held_until + timedelta(seconds=1))
    assert free.held_tasks == 0


def test_every_statistic_is_explained():
    assert set(MEANINGS) == set(LABELS)
    assert all(20 < len(text) <= 120 and text.endswith((".", ").")) for text in MEANINGS.values())
