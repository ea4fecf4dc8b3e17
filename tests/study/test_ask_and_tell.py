"""Ask and tell, on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from steelyard import Study
from steelyard.errors import AnswerError, TaskError
from steelyard.records import Task

MINUTE = 60_000_000


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def study(make_study, database_url, clock):
    folder = make_study(design='name = "per_item"\njudgments = 2', items=3)
    with Study.open(folder, database=database_url, clock=clock) as opened:
        yield opened


def ask(study: Study, annotator: str) -> Task:
    task = study.ask(annotator)
    assert task is not None
    return task


def rate(study: Study, annotator: str, value: float = 50) -> Task:
    task = ask(study, annotator)
    study.tell(task, {task.items[0].id: value})
    return task


def kinds(study: Study) -> list[str]:
    return [event.kind for event in study.events()]


def test_every_item_gets_its_judgments_from_different_people_and_then_it_is_over(study):
    for annotator in ("ann", "bob"):
        item_ids = {rate(study, annotator).items[0].id for _ in range(3)}
        assert item_ids == {"w0", "w1", "w2"}
    offered = study.offer("cleo")
    assert (offered.reason, offered.complete) == ("All items have 2 judgments.", True)
    assert study.ask("cleo") is None


def test_scores_are_the_means_of_what_was_told(study):
    for annotator, value in (("ann", 20), ("bob", 40)):
        for _ in range(3):
            rate(study, annotator, value)
    assert study.scores()["score"].to_list() == [30.0, 30.0, 30.0]
    assert study.scores()["judgments"].to_list() == [2, 2, 2]


def test_asking_again_gives_the_same_task_until_it_is_told(study):
    first = ask(study, "ann")
    assert ask(study, "ann") == first
    study.tell(first, {first.items[0].id: 1})
    assert ask(study, "ann") != first
    assert kinds(study).count("picked") == 2


def test_several_tasks_can_be_asked_ahead(study):
    tasks = study.ask("ann", count=2)
    assert len({task.items[0].id for task in tasks}) == 2
    assert study.ask("ann", count=2) == tasks
    assert len(study.ask("ann", count=5)) == 3


def test_telling_twice_is_one_judgment(study):
    task = ask(study, "ann")
    first = study.tell(task, {task.items[0].id: 7}, seconds=3.5)
    assert study.tell(task, {task.items[0].id: 7}) == first
    assert study.judgments().height == 1
    assert first.seconds == 3.5


def test_another_answer_to_a_told_task_is_refused_unless_it_is_a_revision(study):
    task = rate(study, "ann", 7)
    with pytest.raises(TaskError, match=r"already has another answer.*revise"):
        study.tell(task, {task.items[0].id: 8})
    revised = study.revise(task.judgment_id, {task.items[0].id: 8})
    assert revised.revised
    frame = study.judgments()
    assert frame.height == 1
    assert json.loads(frame["answer"][0]) == {task.items[0].id: 8}
    assert kinds(study)[-2:] == ["judgment", "revision"]


def test_a_revision_may_be_revised_and_keeps_its_first_time(study, clock):
    task = rate(study, "ann", 7)
    submitted_at = study.judgments()["at"][0]
    for value in (8, 9):
        clock.now += MINUTE
        study.revise(task.judgment_id, {task.items[0].id: value})
    frame = study.judgments()
    assert json.loads(frame["answer"][0]) == {task.items[0].id: 9}
    assert frame["at"][0] == submitted_at


def test_an_unanswered_task_cannot_be_revised(study):
    with pytest.raises(TaskError, match="no answer to revise"):
        study.revise(ask(study, "ann").judgment_id, {"w0": 1})


def test_a_wrong_answer_changes_nothing(study):
    task = ask(study, "ann")
    before = kinds(study)
    with pytest.raises(AnswerError, match="outside the scale"):
        study.tell(task, {task.items[0].id: 101})
    with pytest.raises(AnswerError, match="not among the items"):
        study.tell(task, {"elsewhere": 1})
    assert kinds(study) == before
    study.tell(task, {task.items[0].id: 100})
    assert study.status().judgments == 1


def test_someone_elses_task_is_refused(study):
    task = ask(study, "ann")
    with pytest.raises(TaskError, match="leased to someone else, not to 'bob'"):
        study.tell(task, {task.items[0].id: 5}, annotator="bob")
    with pytest.raises(TaskError, match="leased to someone else"):
        study.skip(task.judgment_id, "mine!", annotator="bob")
    assert study.status().judgments == 0


def test_a_task_that_never_went_out_is_refused(study):
    with pytest.raises(TaskError, match="no task nonsense"):
        study.tell("nonsense", {"w0": 5})


def test_a_late_answer_is_kept_flagged_and_counted(study, clock):
    task = ask(study, "ann")
    clock.now += 31 * MINUTE
    judgment = study.tell(task, {task.items[0].id: 5})
    assert judgment.late
    assert study.status().late == 1
    assert study.scores().filter(item=task.items[0].id)["score"].to_list() == [5.0]


def test_an_abandoned_task_goes_to_somebody_else_and_its_late_answer_still_counts(make_study, database_url, clock):
    folder = make_study(design='name = "per_item"\njudgments = 1', items=["only"])
    with Study.open(folder, database=database_url, clock=clock) as study:
        abandoned = ask(study, "ann")
        assert study.offer("bob").reason.startswith("The last tasks are assigned to other annotators")
        clock.now += 30 * MINUTE
        again = ask(study, "bob")
        assert again.items == abandoned.items
        study.tell(again, {"only": 40})
        assert study.tell(abandoned, {"only": 60}).late
        assert study.status().stages[0].done == 1
        assert study.scores()["judgments"].to_list() == [2]
        assert "expired" in kinds(study)


def test_an_annotator_whose_time_ran_out_can_get_the_same_item_again(make_study, database_url, clock):
    folder = make_study(design='name = "per_item"\njudgments = 1', items=["only"])
    with Study.open(folder, database=database_url, clock=clock) as study:
        first = ask(study, "ann")
        clock.now += 30 * MINUTE
        second = ask(study, "ann")
        assert second.judgment_id != first.judgment_id
        assert second.items == first.items


def test_a_heartbeat_keeps_a_task(study, clock):
    task = ask(study, "ann")
    clock.now += 29 * MINUTE
    assert study.renew(task) == task.lease_end + timedelta(minutes=29)
    clock.now += 29 * MINUTE
    assert ask(study, "ann").judgment_id == task.judgment_id
    assert not study.tell(task, {task.items[0].id: 5}).late


def test_a_skipped_task_does_not_come_back_to_the_one_who_skipped_it(study):
    task = ask(study, "ann")
    study.skip(task, "no idea")
    study.skip(task, "pressed twice")
    others = {rate(study, "ann").items[0].id for _ in range(2)}
    assert others == {"w0", "w1", "w2"} - {task.items[0].id}
    assert study.ask("ann") is None
    assert study.status().skips == 1
    assert {rate(study, "bob").items[0].id for _ in range(3)} == {"w0", "w1", "w2"}


def test_a_told_task_cannot_be_skipped(study):
    task = rate(study, "ann")
    with pytest.raises(TaskError, match="answered and cannot be skipped"):
        study.skip(task, "too late")


def test_a_flag_is_in_the_log_and_the_task_stays_open(study):
    task = ask(study, "ann")
    study.flag(task, "typo in the text")
    assert ask(study, "ann") == task
    assert study.status().flags == 1
    assert [event.data.reason for event in study.events() if event.kind == "flag"] == ["typo in the text"]


@pytest.mark.parametrize("name", ["", "   ", "x" * 201, "new\nline", None, 7])
def test_an_annotator_needs_a_name(study, name):
    with pytest.raises(TaskError, match="annotator's name"):
        study.ask(name)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_a_time_must_be_a_time(study, seconds):
    task = ask(study, "ann")
    with pytest.raises(TaskError, match="time in seconds"):
        study.tell(task, {task.items[0].id: 5}, seconds=seconds)
    assert study.status().judgments == 0


def test_a_person_gets_no_more_tasks_than_allowed(make_study, database_url):
    folder = make_study(extra="annotators = { max_tasks = 2 }")
    with Study.open(folder, database=database_url) as study:
        rate(study, "ann")
        rate(study, "ann")
        assert study.offer("ann").reason == "You have completed all your 2 tasks."
        assert study.ask("bob") is not None


def test_a_study_goes_on_where_it_was(make_study, database_url):
    folder = make_study(items=3, design='name = "per_item"\njudgments = 1')
    with Study.open(folder, database=database_url) as study:
        first = rate(study, "ann", 10)
        open_task = ask(study, "ann")
    with Study.open(folder, database=database_url) as study:
        assert ask(study, "ann").judgment_id == open_task.judgment_id
        study.tell(open_task, {open_task.items[0].id: 20})
        third = rate(study, "ann", 30)
        assert {first.items[0].id, open_task.items[0].id, third.items[0].id} == {"w0", "w1", "w2"}
        assert study.status().stages[0].done == 3


def test_two_openings_of_one_study_see_each_others_work(make_study, database_url):
    folder = make_study(items=2, design='name = "per_item"\njudgments = 1')
    with Study.open(folder, database=database_url) as one, Study.open(folder, database=database_url) as two:
        a, b = ask(one, "ann"), ask(two, "bob")
        assert a.items != b.items
        one.tell(a, {a.items[0].id: 1})
        two.tell(b, {b.items[0].id: 2})
        assert one.status() == two.status()
        assert one.scores().equals(two.scores())
        assert one.offer("cleo").complete
