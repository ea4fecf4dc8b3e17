"""Rater effects of a study: sessions, changes within them, and an annotator's profile."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from steelyard.analysis.analysis import Analysis
from steelyard.analysis.annotator_profile import annotator_profile
from steelyard.analysis.history import history_of
from steelyard.analysis.rater_effects import sessions
from steelyard.errors import TaskError
from tests.analysis.conftest import MINUTE, answer_all

PEOPLE = ("ann", "bob", "cleo", "dan", "eve", "fay")


@pytest.fixture
def judged(open_study, clock):
    """Six annotators rate 24 items in two sessions of 12; fay rates at random, and ann becomes quicker."""
    study = open_study(design='name = "per_item"\njudgments = 6', items=24)
    rng = np.random.default_rng(0)
    for name in PEOPLE:
        for count in range(24):
            if count == 12:
                clock.now += 60 * MINUTE
            task = study.ask(name)
            item = task.item_ids[0]
            value = float(np.clip(4 * int(item[1:]) + rng.normal(0, 6), 0, 100))
            if name == "fay":
                value = float(rng.integers(0, 101))
            # Within a session of 12, the time falls from 20 s to 10 s, evenly on the logarithmic scale.
            seconds = 20 * 2 ** -((count % 12) / 11) if name == "ann" else 15.0
            study.tell(task, {item: value}, seconds=seconds)
            clock.now += MINUTE
    return study


def test_a_long_pause_begins_a_session(judged):
    table = sessions(history_of(judged).judgments)
    ann = table.filter(pl.col("annotator") == "ann")
    assert ann["session"].unique().len() == 2
    assert ann["place"].to_list()[:2] == pytest.approx([0, 1 / 11])
    assert ann["place"].to_list()[11:13] == [1, 0]


def test_the_change_of_time_within_a_session_is_the_log_linear_slope(judged):
    effects = Analysis.of(judged, real_ids=True).rater_effects
    row = effects.changes.filter(pl.col("annotator") == "ann").row(0, named=True)
    assert row["time_change"] == pytest.approx(-0.5)
    assert row["time_change_upper"] == pytest.approx(-0.5, abs=1e-6)
    bob = effects.changes.filter(pl.col("annotator") == "bob").row(0, named=True)
    assert bob["time_change"] == pytest.approx(0, abs=1e-12)


def test_a_profile_says_what_is_worth_discussing_and_names_the_surprising_answers(judged):
    analysis = Analysis.of(judged, real_ids=True)
    table = analysis.annotators
    assert table.filter("misfit")["annotator"].to_list() == ["fay"]
    profile = annotator_profile(analysis, "fay")
    notable = {finding.aspect for finding in profile.findings if finding.notable}
    assert {"Agreement", "Predictability"} <= notable
    first = profile.surprises.row(0, named=True)
    judgment = next(j for j in judged.judgments().iter_rows(named=True) if j["judgment_id"] == first["judgment_id"])
    assert judgment["annotator"] == "fay"
    assert first["item"] in judgment["items"]
    quiet = annotator_profile(analysis, "bob")
    assert not any(finding.notable for finding in quiet.findings if finding.aspect != "Drift")
    sentences = {finding.aspect: finding.sentence for finding in annotator_profile(analysis, "ann").findings}
    assert "24 answers in 2 sessions" in sentences["Work"]
    assert "50 % faster" in sentences["Learning and fatigue"]


def test_a_profile_uses_pseudonyms_and_knows_nobody_else(judged):
    analysis = Analysis.of(judged)
    called = judged.privacy.pseudonym("fay")
    assert annotator_profile(analysis, called).annotator == called
    with pytest.raises(TaskError, match="no annotator 'fay'"):
        annotator_profile(analysis, "fay")


@pytest.mark.slow
def test_comparisons_have_fit_but_no_severity(open_study):
    study = open_study('name = "pairwise"', design='name = "random_tuples"\njudgments = 4', items=6)
    for name in ("ann", "bob"):
        answer_all(study, name, lambda items: {"winner": max(items)})
    effects = Analysis.of(study, real_ids=True).rater_effects
    assert effects.annotators["infit"].null_count() == 0
    assert effects.annotators["severity"].null_count() == effects.annotators.height
    assert set(effects.items["item"]) == {f"w{n}" for n in range(6)}
