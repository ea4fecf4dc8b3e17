"""Reloads, lost connections, dead servers, closed tabs, two tabs: nothing is lost and nothing arrives twice."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager

import pytest
import uvicorn

from steelyard.study import Study
from steelyard.web import Studies, create_app
from tests.web.conftest import TOKEN, start_in_thread, start_process
from tests.web.pages.judge import judgments_of, wait_until
from tests.web.pages.studies import write_study

pytestmark = [pytest.mark.browser, pytest.mark.server]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server with a study of pairs, one that fetches ten tasks ahead, and one with sliders."""
    folder = tmp_path_factory.mktemp("studies")
    started = start_in_thread(
        [
            write_study(folder / "pairs"),
            write_study(folder / "ahead", page="prefetch = 10"),
            write_study(folder / "sliders", 'name = "scored_ranking"\nsize = 3'),
            write_study(folder / "spans", 'name = "error_spans"'),
            write_study(folder / "short", people="lease_minutes = 0.05"),
        ]
    )
    yield started
    started.stop()


def test_marks_survive_a_reload_and_an_answer_made_offline_is_stored(server, judge):
    person = judge(f"{server.url}/s/spans/", "marker")
    items, before = person.items(), person.shown()
    person.page.locator(".marked-text span").nth(0).click()
    person.page.get_by_role("button", name="minor").click()
    person.page.locator(".marked-text span").nth(2).click()
    person.page.reload()
    person.wait_for_task()
    assert person.page.locator(".mark").all_inner_texts() == ["word\nminor", f"{items[0]}\n?"]
    person.page.locator(".mark").nth(1).click()
    person.page.get_by_role("button", name="major").last.click()
    person.page.locator("main input[type=range]").focus()
    person.press("5")
    person.context.set_offline(True)
    person.submit()
    person.wait_for_task(other_than=before)
    assert judgments_of(server, "spans", "marker") == []
    person.context.set_offline(False)
    person.saved()
    spans = [{"start": 0, "end": 4, "severity": "minor"}, {"start": 5, "end": 6, "severity": "major"}]
    assert judgments_of(server, "spans", "marker") == [{items[0]: {"score": 50, "spans": spans}}]


def test_a_reload_in_mid_task_keeps_the_task_and_the_half_made_answer(server, judge):
    person = judge(f"{server.url}/s/sliders/", "reloader")
    person.press("9", "Tab", "1")
    before = person.shown()
    person.page.reload()
    person.wait_for_task()
    assert person.shown() == before
    values = person.page.locator(".slider-value").all_inner_texts()
    assert values == ["100", "0", "–"]


def test_offline_for_ten_answers_then_online_all_ten_arrive_once(server, judge):
    person = judge(f"{server.url}/s/ahead/", "traveller")
    person.page.wait_for_load_state("networkidle")
    person.context.set_offline(True)
    expected = []
    for number in range(10):
        items = person.items()
        expected.append({"winner": items[number % 2]})
        person.answer(str(number % 2 + 1))
    person.says("No connection. Answers stored on this device: 10.")
    assert person.kept() == 10
    assert judgments_of(server, "ahead", "traveller") == []
    person.context.set_offline(False)
    person.saved()
    assert person.kept() == 0
    assert judgments_of(server, "ahead", "traveller") == expected
    log = [event for event in server.studies.get("ahead").study.events(("judgment",)) if event.annotator == "traveller"]
    assert len(log) == 10


def test_a_poor_connection_makes_the_page_fetch_ten_tasks_ahead(server, judge):
    person = judge(f"{server.url}/s/pairs/", "rural")
    requests = []
    person.page.on("request", lambda r: requests.append(json.loads(r.post_data)) if r.url.endswith("/tasks") else None)
    person.context.set_offline(True)
    person.answer("1")
    person.press("1")
    person.submit()
    person.says("Answers stored on this device: 2.")
    person.context.set_offline(False)
    person.wait_for_task()
    person.saved()
    assert requests[-1]["count"] >= 11


def test_answers_of_a_closed_tab_are_sent_when_the_page_is_opened_again(server, judge):
    person = judge(f"{server.url}/s/ahead/", "closer")
    person.page.wait_for_load_state("networkidle")
    person.context.set_offline(True)
    items = person.items()
    person.answer("1")
    person.says("Answers stored on this device: 1.")
    person.page.close()
    person.context.set_offline(False)
    assert judgments_of(server, "ahead", "closer") == []
    again = judge(f"{server.url}/s/ahead/", context=person.context)
    again.wait_for_task()
    again.saved()
    assert judgments_of(server, "ahead", "closer") == [{"winner": items[0]}]


def test_saved_is_said_only_after_the_server_has_confirmed(server, judge):
    person = judge(f"{server.url}/s/pairs/", "patient")
    routes = person.hold("**/judgments")
    person.answer("1")
    person.page.wait_for_timeout(400)
    assert person.page.locator("#saved").inner_text() == "saving…"
    assert judgments_of(server, "pairs", "patient") == []
    routes[0].continue_()
    person.saved()
    assert len(judgments_of(server, "pairs", "patient")) == 1


def test_an_answer_whose_confirmation_was_lost_is_stored_once(server, judge):
    """The server stores it, the reply never arrives, and the page sends it again."""
    person = judge(f"{server.url}/s/pairs/", "unlucky")
    lost = []

    def lose_the_first(route):
        if lost:
            return route.continue_()
        lost.append(route.fetch().status)
        return route.abort()

    person.page.route("**/judgments", lose_the_first)
    person.answer("2")
    person.saved()
    assert lost == [200]
    assert len(judgments_of(server, "pairs", "unlucky")) == 1


def test_a_server_error_is_announced_and_outlived(server, judge):
    person = judge(f"{server.url}/s/pairs/", "stoic")
    person.page.route("**/judgments", lambda route: route.fulfill(status=503, body="{}"))
    person.answer("1")
    person.says("The server has a problem. Nothing is lost; answers stored on this device: 1.")
    person.page.unroute("**/judgments")
    person.page.get_by_role("button", name="Try now").click()
    person.saved()
    assert person.page.locator("#banner").is_hidden()
    assert len(judgments_of(server, "pairs", "stoic")) == 1


@contextmanager
def served_again(folder, url):
    """Serve a study where another process did; here, because a process of its own takes seconds to start."""
    studies = Studies([folder])
    config = uvicorn.Config(create_app(studies, token=TOKEN), port=int(url.rpartition(":")[2]), log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(20)
        studies.close()


def test_a_server_killed_in_mid_task_and_started_again_loses_nothing(tmp_path, judge):
    """What `steelyard serve` had when it was killed is what the next server begins with."""
    server = start_process([write_study(tmp_path / "killed", page="prefetch = 5")])
    try:
        person = judge(server.page, "survivor")
        person.page.wait_for_load_state("networkidle")
        answers = []
        person.press("1")
        server.kill()
        for _ in range(2):
            answers.append({"winner": person.items()[0]})
            person.answer("1")
        person.says("Answers stored on this device: 2.")
        with served_again(tmp_path / "killed", server.url):
            person.saved()
    finally:
        server.stop()
    with Study.open(tmp_path / "killed") as study:
        stored = [json.loads(answer) for answer in study.judgments().sort("at")["answer"]]
    assert stored == answers


def test_two_tabs_of_one_person_get_different_tasks_and_do_not_disturb_each_other(server, judge):
    first = judge(f"{server.url}/s/pairs/", "busy")
    second = judge(f"{server.url}/s/pairs/", context=first.context)
    second.wait_for_task()
    assert first.shown() != second.shown()
    pairs = []
    for _ in range(3):
        for tab in (first, second):
            tab.page.bring_to_front()
            pairs.append(set(tab.items()))
            tab.answer("1")
    first.saved()
    second.saved()
    study = server.studies.get("pairs").study
    stored = [set(items) for items in study.judgments().filter(annotator="busy")["items"].to_list()]
    assert sorted(map(sorted, stored)) == sorted(map(sorted, pairs))
    assert len(stored) == 6


def test_tabs_that_cannot_keep_apart_still_answer_a_task_once(server, judge):
    """Browsers have no locks on pages from a plain http address of another machine."""
    first = judge(f"{server.url}/s/pairs/", "plain")
    first.spoilt = True
    first.context.add_init_script("delete Navigator.prototype.locks")
    first.page.reload()
    first.wait_for_task()
    second = judge(f"{server.url}/s/pairs/", context=first.context)
    second.wait_for_task()
    before = second.shown()
    assert first.shown() == before
    first.answer("1")
    first.saved()
    second.wait_for_task(other_than=before)
    assert len(judgments_of(server, "pairs", "plain")) == 1


def test_somebody_else_signing_in_does_not_take_over_what_is_under_way(server, judge):
    """Answers kept for one person are never sent under another's name."""
    first = judge(f"{server.url}/s/ahead/", "first")
    first.page.wait_for_load_state("networkidle")
    first.context.set_offline(True)
    first.answer("1")
    first.says("Answers stored on this device: 1.")
    first.context.clear_cookies()
    first.join("second")
    first.context.set_offline(False)
    first.says("Please sign in again")
    assert first.kept() == 1
    assert judgments_of(server, "ahead", "second") == []


def test_a_session_that_ended_says_so_and_keeps_the_answers(server, judge):
    person = judge(f"{server.url}/s/pairs/", "expired")
    person.context.clear_cookies()
    person.press("1")
    person.submit()
    person.says("Please sign in again")
    person.says("Answers stored on this device: 1")


def test_a_task_on_the_screen_is_kept_for_its_person_while_they_are_there(server, judge):
    """The lease is three seconds; the page renews it at half time."""
    person = judge(f"{server.url}/s/short/", "slow")
    person.page.mouse.move(200, 200)
    study = server.studies.get("short").study

    def renewed():
        return [event for event in study.events(("renewed",)) if event.annotator == "slow"]

    wait_until(renewed, "the lease was not renewed")


def test_active_time_leaves_out_what_was_spent_elsewhere(server, judge):
    """Two hours pass in which nothing happens: they count as half a minute."""
    person = judge(f"{server.url}/s/pairs/", "sleeper")
    person.page.evaluate("{ const real = performance.now.bind(performance); performance.now = () => real() + 7.2e6; }")
    person.answer("1")
    person.saved()
    study = server.studies.get("pairs").study
    (sent,) = [event.data.seconds for event in study.events(["judgment"]) if event.annotator == "sleeper"]
    assert 30 <= sent <= 40
    # The server saw that less time has passed since the task was leased.
    assert study.judgments().filter(annotator="sleeper")["seconds"].item() < 30
