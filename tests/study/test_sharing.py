"""Threads that write at once share transactions; each still gets all or nothing, and hears only of what is on disk."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import event

from steelyard import Study
from steelyard.errors import SteelyardError, StoreError, TaskError
from steelyard.study import differing_picks, log, rebuild
from steelyard.study import events as ev


@pytest.fixture
def study(make_study, database_url):
    with Study.open(make_study(items=80, design="judgments = 5"), database=database_url) as opened:
        yield opened


class Commits:
    """Counts commits of a study's database; `fail` makes the next one fail, as a full disk would."""

    def __init__(self, study: Study) -> None:
        self.count = 0
        self.fail = False
        engine = study._log.store._engine
        event.listen(engine, "commit", self._note)

    def _note(self, connection) -> None:
        if connection.get_execution_options().get("writes", True):
            self.count += 1
            if self.fail:
                self.fail = False
                # A statement that the database itself refuses, in the middle of the commit.
                connection.exec_driver_sql("INSERT INTO studies (id, name) VALUES (1, NULL)")


def at_once(study: Study, *blocks) -> list[object]:
    """Run blocks in threads that all wait for the same turn; return what each returned or raised."""
    results: list[object] = [None] * len(blocks)

    def run(number: int, block) -> None:
        try:
            results[number] = block()
        except SteelyardError as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(blocks)]
    with study._log._lock:
        for thread in threads:
            thread.start()
            while study._log._waiting <= threads.index(thread):
                pass
    for thread in threads:
        thread.join()
    return results


def told(study: Study, task, value: float = 50):
    return lambda: study.tell(task, dict.fromkeys(task.item_ids, value)).judgment_id


def check_log(study: Study, tmp_path, acknowledged: list[str]) -> None:
    events = list(study.events())
    assert sorted(str(e.judgment_id) for e in events if e.kind == "judgment") == sorted(acknowledged)
    assert differing_picks(events) == []
    with rebuild(events, tmp_path, f"sqlite:///{tmp_path / 'rebuilt.db'}") as again:
        assert again.status() == study.status()


@pytest.fixture
def patient(monkeypatch):
    """However slow the machine, nobody commits because the next one has not had a turn yet."""
    monkeypatch.setattr(log, "_PATIENCE_SECONDS", 60)


@pytest.mark.usefixtures("patient")
def test_those_who_wait_share_one_commit(study, tmp_path):
    tasks = [study.ask(f"ann-{number}") for number in range(8)]
    commits = Commits(study)
    done = at_once(study, *(told(study, task) for task in tasks))
    assert set(done) == {task.judgment_id for task in tasks}
    assert commits.count == 1
    check_log(study, tmp_path, [task.judgment_id for task in tasks])


@pytest.mark.usefixtures("patient")
def test_not_everybody_waits_for_everybody(study):
    tasks = [study.ask(f"ann-{number}") for number in range(20)]
    commits = Commits(study)
    at_once(study, *(told(study, task) for task in tasks))
    assert commits.count == 2, "sixteen share one, and four the next"


def test_a_refusal_hurts_nobody_else(study, tmp_path):
    tasks = [study.ask(f"ann-{number}") for number in range(4)]
    refused = lambda: study.tell(tasks[0].judgment_id, {tasks[0].item_ids[0]: 5000})  # noqa: E731
    stranger = lambda: study.tell("no such task", {})  # noqa: E731
    blocks = [refused, told(study, tasks[1]), stranger, told(study, tasks[2]), refused, told(study, tasks[3]), stranger]
    done = at_once(study, *blocks)
    assert [isinstance(each, SteelyardError) for each in done] == [True, False, True, False, True, False, True]
    assert isinstance(done[2], TaskError)
    check_log(study, tmp_path, [task.judgment_id for task in tasks[1:]])


def test_when_the_commit_fails_nobody_hears_that_it_is_saved(study, tmp_path):
    tasks = [study.ask(f"ann-{number}") for number in range(5)]
    commits = Commits(study)
    commits.fail = True
    before = study.last_seq()
    done = at_once(study, *(told(study, task) for task in tasks))
    assert all(isinstance(each, StoreError) for each in done)
    assert all("could not be written" in str(each) for each in done)
    assert study.last_seq() == before
    assert study.status().judgments == 0
    done = at_once(study, *(told(study, task) for task in tasks))
    assert set(done) == {task.judgment_id for task in tasks}
    check_log(study, tmp_path, [task.judgment_id for task in tasks])


def test_one_that_breaks_off_halfway_takes_its_own_back_and_says_so_to_the_others(study, tmp_path):
    tasks = [study.ask(f"ann-{number}") for number in range(3)]

    def half() -> None:
        with study._log.write() as transaction:
            transaction.append(ev.Flagged(reason="half"), at=1, annotator="ann-0", judgment_id=tasks[0].judgment_id)
            raise TaskError("changed my mind.")

    done = at_once(study, told(study, tasks[0]), half, told(study, tasks[1]), told(study, tasks[2]))
    assert isinstance(done[1], TaskError)
    saved = [each for each in done if isinstance(each, str)]
    failed = [each for each in done if isinstance(each, StoreError)]
    assert len(saved) + len(failed) == 3
    assert not list(study.events(["flag"]))
    check_log(study, tmp_path, saved)


def test_what_takes_long_is_written_alone(study, tmp_path):
    from steelyard.study.study import ImportedAnswer

    task = study.ask("ann")
    commits = Commits(study)

    def imported():
        return study.import_answers(0, [ImportedAnswer(f"old-{n}", "bob", (f"w{n}",), {f"w{n}": 50}) for n in range(5)])

    done = at_once(study, told(study, task), imported)
    assert set(done) == {task.judgment_id, 5}
    assert commits.count == 2


def test_whoever_was_to_come_next_and_did_not_is_not_waited_for(study, tmp_path):
    task = study.ask("ann")
    study._log._waiting += 1  # as a thread that is gone before its turn
    assert study.tell(task, dict.fromkeys(task.item_ids, 50)).judgment_id == task.judgment_id
    study._log._waiting -= 1
    check_log(study, tmp_path, [task.judgment_id])
