"""Questions with known answers: the test before the first task, and checks that tell what was not right."""

from __future__ import annotations

import pytest

from tests.web.conftest import start_in_thread
from tests.web.pages.judge import judgments_of, log_of, wait_until
from tests.web.pages.studies import write_study

pytestmark = [pytest.mark.browser, pytest.mark.server]

TEST = "items,answer,feedback\nsun | mud,sun,Never told.\nrain | gold,gold,Never told.\n"
CHECKS = "items,answer,feedback\nsun | mud,sun,Light beats *dirt*.\nrain | gold,gold,\n"
WRONG = {"mud", "rain"}
LOUD = 'checks = { file = "checks.csv", rate = 0.999999, feedback = true }'


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Studies with a test, and studies whose first tasks are checks that speak."""
    folder = tmp_path_factory.mktemp("studies")
    test = {"quality": 'qualification = { file = "test.csv", min_accuracy = 0.9 }', "files": {"test.csv": TEST}}
    loud = {"quality": LOUD, "files": {"checks.csv": CHECKS}}
    started = start_in_thread(
        [
            write_study(folder / "tested", people='contact = "words@example.org"\nmax_tasks = 4', **test),
            write_study(folder / "unsigned", **test),
            write_study(folder / "loud", **loud),
            write_study(
                folder / "loud-steps",
                'name = "likert"\nscale = [1, 7]\nlabels = ["bad", "poor", "fair", "so-so", "good", "fine", "great"]',
                quality=LOUD,
                files={"checks.csv": "items,answer,feedback\nexcellent,6..7,Nothing is better.\n"},
            ),
            write_study(folder / "loud-ahead", page="prefetch = 10", people="revisable_answers = 0", **loud),
        ]
    )
    yield started
    started.stop()


def choose(person, wrong, *, by="key"):
    """Choose the wrong or the right one of the two words of a question."""
    words = person.page.locator(".choice-card .content").all_inner_texts()
    place = next(place for place, word in enumerate(words) if (word in WRONG) is wrong)
    if by == "key":
        person.press(str(place + 1))
    else:
        getattr(person.page.locator(".choice-card").nth(place), by)()
    return " · ".join(words)


def answer(person, wrong, *, by="key"):
    """Answer the check on the screen, and wait for the next task; return what it was about."""
    before = person.shown()
    about = choose(person, wrong, by=by)
    person.submit(by="Enter" if by == "key" else by)
    person.wait_for_task(other_than=before)
    return about


def notice(person):
    return person.page.locator("#feedback")


# The test before the first task


def begin_test(person, name):
    """Come in, read the instructions, and begin the test."""
    person.give_name(name)
    person.says("How it works")
    person.press("Enter")
    person.says("A short test")
    person.press("Enter")
    person.wait_for_task()


def test_who_passes_the_test_goes_on_and_is_not_told_what_was_right(server, judge):
    """By keyboard; the reply to the first answer is lost, and sending it again does no harm."""
    person = judge(f"{server.url}/s/tested/")
    lost = []

    def lose_the_first(route):
        if lost or route.request.method == "GET":
            return route.continue_()
        lost.append(route.fetch().status)
        return route.abort()

    person.page.route("**/qualification", lose_the_first)
    person.give_name("Ada")
    person.says("How it works")
    person.press("Enter")
    person.says("Questions in it: 2.")
    person.press("Enter")
    person.wait_for_task()
    assert person.progress == "Test: question 1 of 2"
    assert [person.page.locator(f"#{button}").is_visible() for button in ("skip", "flag", "back")] == [False] * 3
    choose(person, wrong=False)
    person.submit()
    person.says("This page retries automatically")
    person.page.get_by_role("button", name="Try now").click()
    person.wait_for_task()
    assert person.progress == "Test: question 2 of 2"
    assert "Never told." not in person.page.content()
    choose(person, wrong=False)
    person.submit()
    person.says("You have passed the test")
    person.press("Enter")
    person.wait_for_task()
    assert person.progress.startswith("0 of 4")
    assert lost == [200]
    assert log_of(server, "tested", "test_answer", "Ada") == [{"right": True}, {"right": True}]


@pytest.mark.parametrize(
    ("study", "to_whom"), [("tested", "write to words@example.org."), ("unsigned", "write to the people who gave you")]
)
def test_who_fails_the_test_is_told_politely_and_to_whom_to_write(server, judge, study, to_whom):
    """By touch on a phone; opening the page again does not open the test again."""
    person = judge(f"{server.url}/s/{study}/", device="phone")
    person.give_name("Bo")
    person.page.get_by_role("button", name="Begin").tap()
    person.says("A short test")
    person.page.get_by_role("button", name="Begin").tap()
    person.wait_for_task()
    answer(person, wrong=False, by="tap")
    choose(person, wrong=True, by="tap")
    person.submit(by="tap")
    for _ in range(2):
        person.says("There are no more questions for you")
        person.says("Thank you for your time. The test before the first task was not passed.")
        person.says(to_whom)
        person.page.reload()
    assert judgments_of(server, study, "Bo") == []


def test_a_test_that_was_begun_goes_on_where_it_was_left(server, judge):
    person = judge(f"{server.url}/s/tested/")
    begin_test(person, "Cy")
    answer(person, wrong=True)
    person.page.reload()
    person.says("Answered so far: 1.")
    person.press("Enter")
    person.wait_for_task()
    assert person.progress == "Test: question 2 of 2"


def test_the_language_can_be_changed_in_the_middle_of_the_test(server, judge):
    person = judge(f"{server.url}/s/tested/")
    begin_test(person, "Dee")
    chosen = choose(person, wrong=False)
    person.change_language("de")
    person.says("Test: Frage 1 von 2")
    assert person.page.locator(".choice-card input:checked").count() == 1
    assert answer(person, wrong=False) == chosen
    assert person.progress == "Test: Frage 2 von 2"


def test_a_page_that_did_not_know_of_the_test_is_led_to_it(server, judge):
    """The server asks for the test when tasks are asked for, and the page follows."""
    person = judge(f"{server.url}/s/tested/")
    person.give_name("Eve")
    person.says("How it works")

    def forget_it(route):
        route.fulfill(json={**route.fetch().json(), "needs": []})

    person.page.route("**/me", forget_it, times=1)
    person.page.reload()
    person.says("How it works")
    person.press("Enter")
    person.says("A short test")


# Checks that speak


def test_a_wrong_answer_is_told_without_moving_or_stopping_anything(server, judge):
    """By keyboard: the next task is answered while the notice stands; Enter dismisses it when nothing else is due."""
    person = judge(f"{server.url}/s/loud/", "keys")
    routes = person.hold("**/judgments")
    about = answer(person, wrong=True)
    parts = (".top", "main .task", "#submit", "#back")
    places = [person.page.locator(part).bounding_box() for part in parts]
    focused = person.page.evaluate_handle("document.activeElement")
    assert notice(person).inner_text() == ""
    assert notice(person).get_attribute("role") == "status"
    routes[0].continue_()
    person.page.unroute("**/judgments")

    person.says("One answer was not quite correct")
    words = notice(person).inner_text()
    assert about in words
    assert "sun above mud" in words or "gold above rain" in words
    assert [person.page.locator(part).bounding_box() for part in parts] == places
    assert person.page.evaluate("focused => document.activeElement === focused", focused)

    answer(person, wrong=False)
    person.says("✓ saved, and correct")
    assert about in notice(person).inner_text()
    person.page.wait_for_timeout(1000)
    person.press("Enter")
    assert notice(person).inner_text() == ""
    assert person.page.locator("#missing").inner_text() == ""
    assert len(judgments_of(server, "loud", "keys")) == 2


def test_enter_pressed_twice_by_mistake_does_not_dismiss_what_nobody_has_read(server, judge):
    person = judge(f"{server.url}/s/loud/", "hasty")
    answer(person, wrong=True)
    person.says("One answer was not quite correct")
    person.press("Enter")
    assert notice(person).inner_text() != ""
    person.press("Escape")
    assert notice(person).inner_text() == ""


@pytest.mark.parametrize(("device", "by"), [("desktop", "click"), ("phone", "tap")])
def test_a_wrong_answer_can_be_looked_at_again_and_dismissed(server, judge, device, by):
    person = judge(f"{server.url}/s/loud/", f"by {by}", device=device)
    about = answer(person, wrong=True, by=by)
    getattr(notice(person).get_by_role("button", name="Show it again"), by)()
    dialog = person.page.get_by_role("dialog", name="Your answer")
    assert " · ".join(dialog.locator(".choice-card .content").all_inner_texts()) == about
    chosen = dialog.locator(".choice-card", has=person.page.locator("input:checked"))
    assert chosen.locator(".content").inner_text() in WRONG
    assert chosen.locator("input").is_disabled()
    assert person.page.evaluate("document.documentElement.scrollWidth") == person.page.viewport_size["width"]
    getattr(dialog.get_by_role("button", name="Close"), by)()
    getattr(notice(person).get_by_role("button", name="OK"), by)()
    assert notice(person).inner_text() == ""
    person.page.reload()
    person.wait_for_task()
    assert notice(person).inner_text() == ""


def test_what_has_the_focus_is_not_hidden_by_the_notice(server, judge):
    """WCAG 2.4.11, on a phone with seven steps, of which the notice covers some."""
    person = judge(f"{server.url}/s/loud-steps/", "small", device="phone")
    person.answer("1")
    person.says("Nothing is better.")
    last = person.page.locator("main .step").last
    top_of_notice = notice(person).bounding_box()["y"]
    assert last.bounding_box()["y"] > top_of_notice
    last.locator("input").focus()
    box = last.bounding_box()
    assert box["y"] + box["height"] <= top_of_notice


def test_a_right_answer_gets_a_quiet_sign_that_the_next_answer_takes_away(server, judge):
    person = judge(f"{server.url}/s/loud/", "right")
    answer(person, wrong=False)
    person.says("✓ saved, and correct")
    assert notice(person).inner_text() == ""
    answer(person, wrong=False)
    person.says("✓ saved, and correct")
    person.answer("1")
    person.saved()


def test_what_is_told_late_says_which_question_it_was_about(server, judge):
    """Two wrong answers without a connection, and the tab closed: told one after the other when the page is back."""
    person = judge(f"{server.url}/s/loud-ahead/", "traveller")
    person.page.wait_for_load_state("networkidle")
    person.context.set_offline(True)
    about = [answer(person, wrong=True) for _ in range(2)]
    person.says("Answers stored on this device: 2.")
    assert notice(person).inner_text() == ""
    person.page.close()
    person.context.set_offline(False)
    again = judge(person.address, context=person.context)
    again.wait_for_task()
    again.saved()
    other = judge(person.address, context=person.context)
    other.wait_for_task()
    for tab in (again, other):
        tab.page.wait_for_function(
            "about => document.getElementById('feedback').innerText.includes(about)", arg=about[0]
        )
    again.page.locator("#feedback").get_by_role("button", name="Next").click()
    for tab in (again, other):
        tab.page.wait_for_function(
            "about => document.getElementById('feedback').innerText.includes(about)", arg=about[1]
        )
    other.press("Escape")
    wait_until(lambda: notice(again).inner_text() == "", "it was dismissed in the other tab")
    assert len(judgments_of(server, "loud-ahead", "traveller")) == 2


def test_what_is_told_is_told_in_the_language_of_the_page(server, judge):
    person = judge(f"{server.url}/s/loud/", "polyglot")
    answer(person, wrong=True)
    person.says("One answer was not quite correct")
    person.change_language("ar")
    person.says("إحدى الإجابات لم تكن صحيحة تمامًا")
    assert person.page.evaluate("document.documentElement.scrollWidth") == 1280
