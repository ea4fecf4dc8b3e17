"""“Cannot judge”, comments and “both bad” in a study: what is stored, what counts, what is exported."""

from __future__ import annotations

import pytest

from steelyard.analysis.analysis import Analysis
from steelyard.analysis.unjudged import count_unjudged, with_unjudged
from steelyard.errors import AnswerError
from steelyard.report.sections import participation
from steelyard.study import Study
from steelyard.study.rebuild import exported_log

ANSWERS = '[answers]\ncannot_judge = true\nreasons = ["too short"]\ncomments = true'
REASON = {"cannot_judge": "too short"}


@pytest.fixture
def study(make_study):
    with Study.open(
        make_study('name = "direct"\nitems_per_page = 2', "judgments = 2", items=4, extra=ANSWERS)
    ) as opened:
        yield opened


def answer_all(study, names, answer):
    """Answer all tasks of some annotators; return the judgments."""
    judgments = []
    for name in names:
        while (task := study.ask(name)) is not None and hasattr(task, "items"):
            judgments.append(study.tell(task, answer(task)))
    return judgments


def test_an_item_that_cannot_be_judged_counts_as_asked_and_not_in_the_scores(study):
    def answer(task):
        return {item: dict(REASON) if item == "w0" else 50 for item in task.item_ids}

    answer_all(study, ["ann", "bea", "cem"], answer)
    # Two judgments of each of four items, two items a page; nobody is asked about w0 again.
    assert study.status().stages[0].done == study.status().stages[0].total
    scores = {row["item"]: row for row in study.scores().iter_rows(named=True)}
    assert scores["w0"]["score"] is None
    assert scores["w1"]["judgments"] == 2
    analysis = Analysis.of(study)
    counts = count_unjudged(analysis.history, study.config)
    assert counts.cannot_judge == 2
    assert counts.items.rows() == [("w0", 2, 2, 0, "too short (2)")]
    column = {row["item"]: row["cannot_judge"] for row in with_unjudged(study.scores(), counts).iter_rows(named=True)}
    assert column == {"w0": 2, "w1": 0, "w2": 0, "w3": 0}
    facts = str(participation.section(analysis))
    assert "cannot judge" in facts
    assert "too short (2)" in facts


def test_reasons_and_items_are_checked(study):
    task = study.ask("ann")
    first, second = task.item_ids
    for wrong in ({first: {"cannot_judge": "bored"}, second: 1}, {first: REASON}, {first: REASON, second: 101}):
        with pytest.raises(AnswerError):
            study.tell(task, wrong)
    assert study.tell(task, {second: 7, first: REASON}).answer == {first: REASON, second: 7}


def test_a_study_that_does_not_offer_it_refuses_it(make_study):
    with Study.open(make_study()) as plain:
        task = plain.ask("ann")
        with pytest.raises(AnswerError, match="does not offer"):
            plain.tell(task, {"cannot_judge": ""})
        with pytest.raises(AnswerError, match="takes no comments"):
            plain.tell(task, {task.item_ids[0]: 5}, comment="hm")


def test_comments_are_kept_revised_and_exported_by_pseudonym_only(study):
    task = study.ask("ann")
    answer = dict.fromkeys(task.item_ids, 5)
    judgment = study.tell(task, answer, comment=" ann is not sure ")
    assert judgment.comment == "ann is not sure"
    assert study.revise(judgment.judgment_id, answer).comment == "ann is not sure"
    assert study.revise(judgment.judgment_id, answer, comment="").comment == ""
    study.revise(judgment.judgment_id, answer, comment="ann is sure now")
    table = study.judgments()
    names = study.privacy.names()
    assert names.frame(table)["comment"].to_list() == [f"{names.called['ann']} is sure now"]
    assert "comment" not in study.privacy.names(real=True).frame(table).columns
    lines = {real: [event.line() for event in exported_log(study, real_ids=real)] for real in (False, True)}
    assert any(f"{names.called['ann']} is sure now" in line for line in lines[False])
    assert not any("sure" in line for line in lines[True])
    assert len(lines[True]) == len(lines[False])


def test_both_bad_is_a_tie_in_the_scores_and_counted(make_study):
    with Study.open(make_study('name = "pairwise"\nboth_bad = true', "judgments = 2", items=3)) as pairs:
        answer_all(pairs, ["ann", "bea"], lambda task: {"winner": None, "both_bad": True})
        comparisons = pairs.observations("comparisons")[""]
        assert set(comparisons.outcome.tolist()) == {0}
        counts = count_unjudged(Analysis.of(pairs).history, pairs.config)
        assert counts.both_bad == len(comparisons)
        assert counts.items["both_bad"].sum() == 2 * len(comparisons)


def test_a_tournament_goes_on_after_a_pair_that_cannot_be_judged(make_study):
    extra = "[answers]\ncannot_judge = true"
    with Study.open(make_study('name = "pairwise"', 'name = "tournament"', items=4, extra=extra)) as cup:
        judgments = answer_all(cup, ["ann"], lambda task: {"cannot_judge": ""})
        assert 0 < len(judgments) <= 6
        assert cup.observations("comparisons") == {}
