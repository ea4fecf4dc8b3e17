"""The way back to a panel, on the page: after the last answer is saved, by link, code and keyboard."""

from __future__ import annotations

import pytest

from tests.web.conftest import start_in_thread
from tests.web.pages.studies import write_study

pytestmark = [pytest.mark.browser, pytest.mark.server]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    studies = [
        write_study(folder / "coded", people="max_tasks = 1", quality='[link]\ncompleted = "CODE-7"'),
        write_study(
            folder / "linked",
            people="max_tasks = 1",
            quality='[link]\ncompleted = "http://127.0.0.1:9/?p={participant}"',
        ),
    ]
    started = start_in_thread(studies)
    yield started
    started.stop()


def come(judge, server, study: str, participant: str):
    person = judge(f"{server.url}/s/{study}/?PROLIFIC_PID={participant}")
    key = person.page.evaluate("fetch(document.body.dataset.api + '/me').then((r) => r.json()).then((me) => me.key)")
    person.page.evaluate("seen => localStorage.setItem(seen, '1')", f"steelyard:seen:{study}:{key}")
    person.page.reload()
    person.wait_for_task()
    return person


def test_a_code_is_shown_when_all_is_saved(server, judge):
    person = come(judge, server, "coded", "ann")
    assert person.page.url == f"{server.url}/s/coded/"
    person.press("1")
    person.submit()
    person.says("One step is left")
    assert person.page.get_by_label("Your code").input_value() == "CODE-7"
    assert person.page.get_by_role("link", name="Go back").count() == 0
    # Back on the page, in a new tab say, it is there again.
    person.page.reload()
    person.says("One step is left")


def test_the_way_back_waits_for_answers_that_are_not_saved_and_enter_takes_it(server, judge):
    person = come(judge, server, "linked", "ann")
    routes = person.hold("**/judgments")
    person.press("1")
    person.submit()
    person.page.wait_for_timeout(500)
    assert person.page.get_by_role("link", name="Go back").count() == 0
    routes.pop().continue_()
    link = person.page.get_by_role("link", name="Go back")
    link.wait_for()
    assert link.get_attribute("href") == "http://127.0.0.1:9/?p=ann"
    with person.page.expect_request("http://127.0.0.1:9/**") as gone:
        person.press("Enter")
    # Where they came from is nobody's business.
    assert "referer" not in gone.value.headers
