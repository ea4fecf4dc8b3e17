"""“Cannot judge”, comments and “both bad” in a study: what is stored, what counts, what is exported."""

from __future__ import annotations

import pytest

from steelyard.analysis.analysis import Analysis
from steelyard.analysis.unjudged import count_unjudged, with_unjudged
from steelyard.errors import AnswerError, TaskError
from steelyard.report.sections import participation
from steelyard.study import Study, differing_picks
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
    counts = count_unjudged(analysis.history, study.config, {})
    assert counts.cannot_judge == 2
    assert counts.items.rows() == [("w0", 2, 2, 0, "too short (2)", "")]
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
        counts = count_unjudged(Analysis.of(pairs).history, pairs.config, {})
        assert counts.both_bad == len(comparisons)
        assert counts.items["both_bad"].sum() == 2 * len(comparisons)


def test_a_tournament_goes_on_after_a_pair_that_cannot_be_judged(make_study):
    extra = "[answers]\ncannot_judge = true"
    with Study.open(make_study('name = "pairwise"', 'name = "tournament"', items=4, extra=extra)) as cup:
        judgments = answer_all(cup, ["ann"], lambda task: {"cannot_judge": ""})
        assert 0 < len(judgments) <= 6
        assert cup.observations("comparisons") == {}


# Items that are set aside


def blame(item):
    """Return answers that call one item impossible to judge, and prefer the first otherwise."""

    def answer(task):
        if item in task.item_ids:
            return {"cannot_judge": "too short"}
        return {"winner": task.item_ids[0]}

    return answer


@pytest.fixture
def adaptive(make_study):
    folder = make_study('name = "pairwise"', 'name = "adaptive"\njudgments = 12', items=6, extra=ANSWERS)
    with Study.open(folder) as opened:
        yield opened


def blame_until_set_aside(study, item="w2"):
    """Let three annotators take turns until the item is set aside."""
    for _ in range(40):
        for name in ("ann", "bea", "cem"):
            task = study.ask(name)
            study.tell(task, blame(item)(task))
            if item in study.quality.items_set_aside():
                return
    raise AssertionError("never set aside")


def test_an_item_that_nobody_can_judge_is_set_aside_with_the_reasons(adaptive):
    blame_until_set_aside(adaptive)
    answer_all(adaptive, ["dan", "eva", "fay"], blame("w2"))
    (decision,) = adaptive.events(["item_set_aside"])
    data = decision.data
    assert (data.item, data.by) == ("w2", "rules")
    assert data.cannot_judge == data.answers >= 3
    assert data.reasons == {"too short": data.answers}
    later = list(adaptive.events(["picked"], after=decision.seq))
    assert later
    assert all("w2" not in event.data.items for event in later)
    status = adaptive.status()
    assert status.items_set_aside == 1
    assert status.stages[0].done == status.stages[0].total
    reason = f"{data.answers} of {data.answers} answers: cannot judge; too short ({data.answers})"
    assert adaptive.quality.items_set_aside() == {"w2": reason}
    analysis = Analysis.of(adaptive)
    table = next(block for block in participation.section(analysis).blocks if block.name == "unjudged")
    assert reason in table.frame["set_aside"].to_list()
    counts = count_unjudged(analysis.history, adaptive.config, adaptive.quality.items_set_aside())
    exported = with_unjudged(adaptive.scores(), counts)
    assert exported.filter(exported["set_aside"] != "")["item"].to_list() == ["w2"]
    assert differing_picks(adaptive.events()) == []


def test_half_of_the_answers_must_say_so_and_a_revision_counts(make_study):
    extra = "[answers]\ncannot_judge = true"
    with Study.open(make_study('name = "direct"', "judgments = 20", items=2, extra=extra)) as study:
        answer_all(study, ["a0", "a1", "a2", "a3"], lambda task: {task.item_ids[0]: 50})
        answers = {"w0": {"w0": 50}, "w1": {"w1": {"cannot_judge": ""}}}
        for number in range(4):
            assert study.quality.items_set_aside() == {}
            answer_all(study, [f"b{number}"], lambda task: answers[task.item_ids[0]])
        assert study.quality.items_set_aside() == {"w1": "4 of 8 answers: cannot judge"}
        judgment = next(one for one in study.stream_judgments() if one.annotator == "b0" and one.items == ("w1",))
        study.revise(judgment.judgment_id, {"w1": 5})
        assert study.quality.items_set_aside() == {}


def test_two_annotators_are_too_few_however_often_they_say_so(adaptive):
    answer_all(adaptive, ["ann", "bea"], blame("w2"))
    assert adaptive.quality.items_set_aside() == {}


def test_an_item_comes_back_if_those_who_could_not_judge_it_are_excluded(adaptive):
    blame_until_set_aside(adaptive)
    adaptive.annotators.exclude("cem", "said so of everything")
    assert adaptive.quality.items_set_aside() == {}
    adaptive.annotators.readmit("cem")
    assert set(adaptive.quality.items_set_aside()) == {"w2"}


def test_the_researcher_may_set_items_aside_and_ask_about_them_again(adaptive):
    blame_until_set_aside(adaptive)
    adaptive.quality.restore_item("w2", "it is fine")
    adaptive.quality.set_item_aside("w4", "the same as w3")
    assert adaptive.quality.items_set_aside() == {"w4": "the same as w3"}
    last = adaptive.last_seq()
    answer_all(adaptive, ["dan"], blame("w2"))
    names = {name for event in adaptive.events(["picked"], after=last) for name in event.data.items}
    assert "w2" in names
    assert "w4" not in names
    # The rule does not overrule the researcher.
    assert set(adaptive.quality.items_set_aside()) == {"w4"}
    with pytest.raises(TaskError, match="no item 'w44'"):
        adaptive.quality.set_item_aside("w44", "")


def test_items_stay_set_aside_after_reopening_with_a_checkpoint(adaptive):
    blame_until_set_aside(adaptive)
    words = adaptive.quality.items_set_aside()
    assert adaptive.core.log.save_checkpoint(least=1)
    with Study.open(adaptive.folder) as again:
        assert again.quality.items_set_aside() == words
        again.quality.restore_item("w2")
        answer_all(again, ["eva"], lambda task: {"winner": task.item_ids[0]})
        assert differing_picks(again.events()) == []


def test_a_change_of_the_rule_applies_when_the_study_is_opened(adaptive):
    blame_until_set_aside(adaptive)
    path = adaptive.folder / "study.toml"
    path.write_text(path.read_text().replace("comments = true", "comments = true\nset_aside_after = 0"))
    with Study.open(adaptive.folder) as again:
        assert again.quality.items_set_aside() == {}


def test_shared_tasks_and_repeats_leave_items_out_that_were_set_aside(make_study):
    extra = ANSWERS + "\n[quality]\noverlap_rate = 0.5\nrepeat_rate = 0.3\nrepeat_after = 1"
    with Study.open(make_study('name = "direct"', "judgments = 6", items=6, extra=extra)) as study:
        answer_all(study, ["ann", "bea"], lambda task: {task.item_ids[0]: 50})
        study.quality.set_item_aside("w1", "empty")
        last = study.last_seq()
        answer_all(study, ["ann", "cem", "dan"], lambda task: {task.item_ids[0]: 50})
        picks = [event.data for event in study.events(["picked"], after=last)]
        assert {pick.purpose for pick in picks} >= {"overlap", "repeat"}
        assert all("w1" not in pick.items for pick in picks)


def test_propagation_asks_others_until_an_item_is_set_aside(make_study):
    protocol = 'name = "choice"\nlabels = ["yes", "no"]'
    extra = "[answers]\ncannot_judge = true"
    with Study.open(make_study(protocol, 'name = "propagation"', items=3, extra=extra)) as study:
        answers = {"w0": {"w0": "yes"}, "w1": {"cannot_judge": ""}, "w2": {"w2": "yes"}}
        for number, name in enumerate(["ann", "bea", "cem"]):
            assert (study.status().stages[0].total, number) == (3, number)
            answer_all(study, [name], lambda task: answers[task.item_ids[0]])
        status = study.status().stages[0]
        assert (status.done, status.total) == (2, 2)
        assert study.offer("dan").complete
