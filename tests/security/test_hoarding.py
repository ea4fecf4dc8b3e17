"""Nobody can keep a study from the others: by leases, renewals, flags, skips or names."""

from __future__ import annotations

import pytest

from steelyard.errors import LimitError, TaskError
from steelyard.study import Study
from steelyard.study.limits import EARNED_LEASES, EXTRA_LEASES, FLAGS_PER_TASK, NOTES_PER_MINUTE, RENEWALS
from steelyard.web.security import Limits, Newcomers, Rate

MINUTE = 60_000_000


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def study(make_study, clock):
    """180 tasks, as in the attack: 60 items by three annotators."""
    with Study.open(make_study(items=60, design="judgments = 3"), clock=clock) as opened:
        yield opened


def rate(study: Study, annotator: str) -> None:
    task = study.ask(annotator)
    assert task is not None
    study.tell(task, {task.items[0].id: 50})


def test_six_names_cannot_lease_every_task(make_study, serve_study):
    server = serve_study(make_study(items=60, design="judgments = 3"))
    hoarders = [server.person(f"hoarder {number}") for number in range(6)]
    leased = [task for hoarder in hoarders for _ in range(3) for task in hoarder.tasks(50)["tasks"]]
    assert len({task["judgment_id"] for task in leased}) <= 6 * (1 + EXTRA_LEASES)
    honest = server.person("honest")
    for _ in range(60):
        task = honest.task()
        assert honest.tell(task, {task["items"][0]["id"]: 5}).status_code == 200


def test_the_number_of_open_tasks_grows_with_answers_and_shrinks_with_lapses(study, clock):
    assert len(study.ask("ann", 50)) == 1 + EXTRA_LEASES
    for _ in range(5):
        rate(study, "ann")
    assert len(study.ask("ann", 50)) == 1 + EXTRA_LEASES + 5
    for _ in range(30):
        rate(study, "ann")
    assert len(study.ask("ann", 50)) == 1 + EXTRA_LEASES + EARNED_LEASES
    clock.now += 31 * MINUTE
    assert len(study.ask("ann", 50)) == 1
    rate(study, "ann")
    assert len(study.ask("ann", 50)) == 1 + EXTRA_LEASES + EARNED_LEASES


def test_prefetched_tasks_are_always_allowed(make_study):
    with Study.open(make_study(items=60, extra="[page]\nprefetch = 50")) as study:
        assert len(study.ask("ann", 51)) == 51


def test_a_task_cannot_be_renewed_without_end(study, clock):
    task = study.ask("ann")
    for _ in range(RENEWALS):
        clock.now += 15 * MINUTE
        study.renew(task)
    clock.now += 15 * MINUTE
    with pytest.raises(TaskError, match=f"renewed {RENEWALS} times without an answer"):
        study.renew(task)
    # Asking again, as a reloaded page does, is no way around it.
    before = study.ask("ann").lease_end
    clock.now += 10 * MINUTE
    assert study.ask("ann").lease_end == before
    clock.now += 20 * MINUTE
    assert study.ask("ann").judgment_id != task.judgment_id
    assert study.tell(task, {task.items[0].id: 5}).late


def test_a_slow_reader_keeps_the_tasks_in_hand(study, clock):
    """Three hours with one text, the page renewing at half time; then on, with the prefetched ones, for a day."""
    first, ahead = study.ask("ann", 2)
    for _ in range(RENEWALS):
        clock.now += 15 * MINUTE
        study.renew(first)
        study.renew(ahead)
    assert not study.tell(first, {first.items[0].id: 5}).late
    for _ in range(8):
        for _ in range(RENEWALS):
            clock.now += 15 * MINUTE
            study.renew(ahead)
        following = study.ask("ann", 2)[1]
        assert not study.tell(ahead, {ahead.items[0].id: 5}).late
        ahead = following


def test_the_last_tasks_are_shared_out_one_at_a_time_and_for_a_short_while(make_study, clock):
    with Study.open(make_study(items=12, design="judgments = 1"), clock=clock) as study:
        assert len(study.ask("ann", 4)) == len(study.ask("bob", 4)) == 4
        # Four are free, eight are with others.
        tasks, nothing = study.offer_many("eve", 4)
        assert (len(tasks), nothing.reason_code) == (1, "waiting")
        assert (tasks[0].lease_end.timestamp() * 1e6 - clock.now) == 5 * MINUTE
        assert study.ask("zoe") is not None
        # Eve does nothing: hers comes back, and she may try again, but not for ever.
        for _ in range(4):
            clock.now += 5 * MINUTE
            last = study.offer_many("eve", 4)
        assert (last[0], last[1].reason_code) == ([], "waiting")
        assert study.ask("new") is not None


def test_one_person_alone_gets_every_task_of_a_small_study(make_study):
    with Study.open(make_study(items=3, design="judgments = 1")) as study:
        assert len(study.ask("ann", 5)) == 3


def test_flags_on_one_task_are_few(study):
    task = study.ask("ann")
    for number in range(FLAGS_PER_TASK):
        study.flag(task, f"odd {number}")
        study.flag(task, f"odd {number}")
    with pytest.raises(TaskError, match=f"already has {FLAGS_PER_TASK} flags"):
        study.flag(task, "x" * 2000)
    assert study.status().flags == FLAGS_PER_TASK
    with pytest.raises(TaskError, match="2,000 characters"):
        study.flag(study.ask("bob"), "x" * 2001)


def test_flags_and_skips_within_a_minute_are_limited(study, clock):
    for _ in range(NOTES_PER_MINUTE):
        study.skip(study.ask("ann"), "no")
    task = study.ask("ann")
    for act in (study.skip, study.flag):
        with pytest.raises(LimitError) as refused:
            act(task, "no")
        assert 0 < refused.value.seconds <= 60
    study.skip(study.ask("bob"), "no")
    clock.now += MINUTE
    study.skip(task, "no")
    # A clock that is set back far holds nobody up.
    clock.now -= 600 * MINUTE
    study.skip(study.ask("ann"), "no")


def test_a_flood_of_flags_writes_next_to_nothing(make_study, serve_study):
    server = serve_study(make_study(items=60))
    ann = server.person("ann")
    task = ann.task()
    before = server.study.last_seq()
    statuses = {
        ann.post(f"/tasks/{task['judgment_id']}/flag", {"reason": f"{number} ".ljust(2000, "x")}).status_code
        for number in range(100)
    }
    assert statuses == {200, 409}
    assert server.study.last_seq() - before <= FLAGS_PER_TASK


def test_too_many_skips_are_to_be_sent_again_later(make_study, serve_study):
    server = serve_study(make_study(items=60))
    ann = server.person("ann")
    replies = [ann.post(f"/tasks/{ann.task()['judgment_id']}/skip", {"reason": "no"}) for _ in range(22)]
    assert [reply.status_code for reply in replies] == [200] * NOTES_PER_MINUTE + [429] * 2
    assert 1 <= int(replies[-1].headers["retry-after"]) <= 61


def test_flags_and_skips_from_one_address_are_limited(make_study, serve_study):
    server = serve_study(make_study(), limits=Limits(notes=Rate(3, 0.01)))
    people = [server.person(name) for name in ("ann", "bob")]
    statuses = [
        person.post(f"/tasks/{person.task()['judgment_id']}/flag", {"reason": f"odd {number}"}).status_code
        for number in range(2)
        for person in people
    ]
    assert statuses == [200, 200, 200, 429]


def test_newcomers_from_one_address_wait_until_others_have_answered(make_study, serve_study):
    server = serve_study(make_study(items=60), limits=Limits(newcomers=2))
    ann, bob, eve = (server.person(name) for name in ("ann", "bob", "eve"))
    task = ann.task()
    bob.task()
    waiting = eve.tasks()
    assert (waiting["tasks"], waiting["no_task"]["reason_code"]) == ([], "waiting")
    assert ann.task()["judgment_id"] == task["judgment_id"]
    ann.tell(task, {task["items"][0]["id"]: 5})
    assert eve.task()
    assert ann.task()


def test_newcomers_who_left_are_forgotten():
    now = [0.0]
    newcomers = Newcomers(1, clock=lambda: now[0])
    assert newcomers.enter("here", "ann", 10)
    assert newcomers.enter("here", "ann", 10)
    assert not newcomers.enter("here", "bob", 10)
    assert newcomers.enter("there", "bob", 10)
    now[0] = 11
    assert newcomers.enter("here", "bob", 10)


def test_a_whole_class_begins_at_once(make_study, serve_study):
    """Forty people behind one address, two tasks each, as the page fetches them."""
    server = serve_study(make_study(items=100, design="judgments = 5"))
    people = [server.person(f"pupil {number}") for number in range(40)]
    for person in people:
        tasks = person.tasks(2)["tasks"]
        assert len(tasks) == 2
        assert person.post(f"/tasks/{tasks[0]['judgment_id']}/renew").status_code == 200
        assert person.tell(tasks[0], {tasks[0]["items"][0]["id"]: 5}).status_code == 200


def test_the_limits_hold_after_the_server_starts_again(make_study, clock):
    folder = make_study(items=60)
    with Study.open(folder, clock=clock) as study:
        task = study.ask("ann")
        for number in range(FLAGS_PER_TASK):
            study.flag(task, f"odd {number}")
        for _ in range(RENEWALS):
            study.renew(task)
    with Study.open(folder, clock=clock) as study:
        with pytest.raises(TaskError, match="flags"):
            study.flag(task, "one more")
        with pytest.raises(TaskError, match="renewed"):
            study.renew(task)


def test_the_api_says_when_a_task_cannot_be_kept_any_longer(make_study, serve_study):
    server = serve_study(make_study())
    ann = server.person("ann")
    task = ann.task()
    replies = [ann.post(f"/tasks/{task['judgment_id']}/renew") for _ in range(RENEWALS + 1)]
    assert [reply.status_code for reply in replies] == [200] * RENEWALS + [409]
    assert ann.tell(task, {task["items"][0]["id"]: 5}).status_code == 200
