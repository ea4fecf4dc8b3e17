"""People in a study: excluded and readmitted, paused, consenting, let in by tokens."""

from __future__ import annotations

from datetime import timedelta

import pytest

from steelyard import Study
from steelyard.errors import ConfigError, TaskError
from steelyard.study import differing_picks


def answer_all(study: Study, annotator: str, value: float) -> None:
    while (task := study.ask(annotator)) is not None:
        study.tell(task, dict.fromkeys(task.item_ids, value))


@pytest.fixture
def study(make_study):
    with Study.open(make_study('name = "direct"', 'name = "per_item"\njudgments = 2', items=4)) as opened:
        yield opened


def test_an_excluded_annotators_judgments_are_kept_but_do_not_count(study):
    answer_all(study, "ann", 20)
    answer_all(study, "spammer", 100)
    assert set(study.scores()["score"]) == {60.0}
    study.annotators.exclude("spammer", "always 100")
    assert set(study.scores()["score"]) == {20.0}
    frame = study.judgments()
    assert frame.height == 8
    assert set(frame.filter("set_aside")["annotator"]) == {"spammer"}
    assert study.annotators.excluded == {"spammer": "always 100"}


def test_the_freed_judgments_are_asked_of_others(study):
    answer_all(study, "ann", 20)
    answer_all(study, "spammer", 100)
    assert study.ask("bob") is None
    study.annotators.exclude("spammer", "always 100")
    assert study.status().stages[0].done == 4
    answer_all(study, "bob", 40)
    assert set(study.scores()["score"]) == {30.0}
    assert study.status().stages[0].done == 8


@pytest.mark.slow
def test_readmission_undoes_an_exclusion_exactly(study):
    answer_all(study, "ann", 20)
    answer_all(study, "bob", 50)
    before = study.scores().write_csv(), study.status().stages
    study.annotators.exclude("bob", "suspicious")
    study.annotators.readmit("bob", "he explained")
    assert (study.scores().write_csv(), study.status().stages) == before
    assert study.annotators.excluded == {}
    assert differing_picks(study.events()) == []


def test_an_excluded_annotator_is_asked_nothing_and_their_open_task_goes_to_others(study):
    task = study.ask("spammer")
    study.annotators.exclude("spammer", "too fast")
    nothing = study.offer("spammer")
    assert nothing.reason_code == "excluded"
    assert study.status().stages[0].leased == 0
    # Work that was already done arrives, is kept, and does not count.
    study.tell(task, dict.fromkeys(task.item_ids, 1))
    assert study.judgments()["set_aside"].to_list() == [True]
    assert study.status().stages[0].done == 0


def test_nobody_unknown_can_be_excluded(study):
    with pytest.raises(TaskError, match="there is no annotator 'an'"):
        study.annotators.exclude("an", "typo")


def test_a_paused_study_asks_nothing_and_keeps_what_is_on_its_way(study):
    task = study.ask("ann")
    study.set_state("paused", "Back at two o'clock.")
    nothing = study.offer("bob")
    assert (nothing.reason_code, nothing.reason) == ("paused", "Back at two o'clock.")
    study.tell(task, dict.fromkeys(task.item_ids, 3))
    assert study.status().judgments == 1
    study.set_state("open")
    assert study.ask("bob") is not None


def test_an_open_task_can_still_be_fetched_while_the_study_is_paused(study):
    task = study.ask("ann")
    study.set_state("paused")
    assert study.ask("ann") == task


def test_a_state_that_does_not_exist_is_refused(study):
    with pytest.raises(TaskError, match="cannot be 'shut'"):
        study.set_state("shut")


def test_consent_holds_for_the_wording_that_was_agreed_to(make_study):
    folder = make_study(extra='[annotators]\nconsent = "consent.md"\n')
    (folder / "consent.md").write_text("We keep your answers.")
    with Study.open(folder) as study:
        assert not study.annotators.progress("ann").consented
        study.annotators.record_consent("ann")
        assert study.annotators.progress("ann").consented
        assert not study.annotators.progress("bob").consented
    (folder / "consent.md").write_text("We keep your answers for ever.")
    with Study.open(folder) as study:
        assert not study.annotators.progress("ann").consented


def test_a_text_that_is_missing_is_named_when_the_study_is_opened(make_study):
    folder = make_study(extra='[annotators]\ninstructions = "how.md"\n')
    with pytest.raises(ConfigError, match=r"how\.md cannot be read"):
        Study.open(folder)


def test_recent_answers_come_with_their_tasks_the_last_first(study):
    results = []
    for value in (10, 20, 30):
        task = study.ask("ann")
        study.tell(task, dict.fromkeys(task.item_ids, value))
        results.append((task.item_ids, value))
    study.revise(study.annotators.recent_answers("ann", 1)[0].judgment.judgment_id, dict.fromkeys(results[-1][0], 35))
    recent = study.annotators.recent_answers("ann", 2)
    assert [list(answered.judgment.answer.values()) for answered in recent] == [[35], [20]]
    assert [answered.task.item_ids for answered in recent] == [results[2][0], results[1][0]]
    assert study.annotators.progress("ann").answered == 3


def test_tokens_are_good_for_their_kind_until_they_are_revoked_or_expire(make_study, database_url):
    now = [1_700_000_000_000_000]
    with Study.open(make_study(name="s"), database=database_url, clock=lambda: now[0]) as study:
        token = study.access.grant("invite", annotator="ann", note="by mail")
        assert study.access.find("invite", token).annotator == "ann"
        assert study.access.find("manage", token) is None
        assert study.access.find("invite", token + "x") is None
        short = study.access.grant("session", annotator="bob", lifetime=timedelta(minutes=5))
        assert study.access.find("session", short) is not None
        now[0] += 5 * 60_000_000
        assert study.access.find("session", short) is None
        assert [grant.annotator for grant in study.access.grants("invite")] == ["ann"]
        assert study.access.revoke("invite", annotator="ann") == 1
        assert study.access.find("invite", token) is None


def test_a_copy_of_the_database_holds_no_token(make_study):
    folder = make_study()
    with Study.open(folder) as study:
        token = study.access.grant("manage")
    assert all(token.encode() not in path.read_bytes() for path in folder.glob("study.db*"))
