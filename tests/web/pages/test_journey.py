"""A person's way through a study: name, consent, instructions, practice, tasks, looking back, the end."""

from __future__ import annotations

import pytest

from tests.web.conftest import start_in_thread
from tests.web.pages.judge import judgments_of, log_of, wait_until
from tests.web.pages.studies import write_study

pytestmark = [pytest.mark.browser, pytest.mark.server]

TRAINING = "items,answer,feedback\nsun | mud,sun,Light beats dirt.\nrain | gold,gold,\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    started = start_in_thread(
        [
            write_study(folder / "pairs"),
            write_study(
                folder / "whole",
                people='consent = "We keep your *answers*."\ninstructions = "Go by your first thought."\n'
                'training = "training.csv"\nmax_tasks = 2\ncontact = "words@example.org"',
                files={"training.csv": TRAINING},
            ),
            write_study(
                folder / "asked",
                people='consent = "We keep your answers."\n'
                '[[annotators.questionnaire]]\nname = "reads"\nquestion = "How often do you read for pleasure?"\n'
                'choices = ["Every day or nearly every day", "Rarely"]\n'
                '[[annotators.questionnaire]]\nname = "age"\nquestion = "How old are you?"\ntype = "number"\n'
                "minimum = 18\n"
                '[[annotators.questionnaire]]\nname = "town"\nquestion = "Where do you live?"\ntype = "text"\n'
                "optional = true\nprefer_not_to_say = false",
            ),
            write_study(folder / "invited", people='open = false\ncontact = "words@example.org"'),
            write_study(folder / "final", people="revisable_answers = 0"),
            write_study(folder / "limited", people="revisable_answers = 1\nmax_tasks = 4"),
            write_study(folder / "managed", people='contact = "words@example.org"'),
            write_study(folder / "sliders", 'name = "scored_ranking"\nsize = 3'),
            write_study(folder / "best", 'name = "best_worst"\nlabels = ["finest", "poorest"]'),
            write_study(folder / "ranking", 'name = "ranking"\nsize = 3'),
        ]
    )
    yield started
    started.stop()


def test_a_phone_shows_the_questionnaire_names_what_is_missing_and_sends_the_answers(server, judge):
    person = judge(f"{server.url}/s/asked/", device="phone")
    page = person.page
    person.give_name("Cleo")
    page.get_by_role("button", name="I agree").tap()
    person.says("About you")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.get_by_label("How old are you?").fill("17")
    page.get_by_role("button", name="Continue").tap()
    problems = [text for text in page.locator(".entry-question .error").all_inner_texts() if text]
    assert problems == ["Please answer this question.", "The number must be at least 18."]
    assert page.evaluate("document.activeElement.type") == "radio"
    page.get_by_label("Every day or nearly every day").tap()
    page.get_by_label("How old are you?").fill("42,5")
    # Another language keeps what was answered.
    page.get_by_label("Language").select_option("de")
    person.says("Über Sie")
    assert page.get_by_label("Every day or nearly every day").is_checked()
    page.locator("fieldset", has_text="How old").get_by_label("Keine Angabe").check()
    assert page.get_by_label("How old are you?").input_value() == ""
    page.get_by_label("How old are you?").fill("42,5")
    page.get_by_role("button", name="Weiter").tap()
    person.says("So geht es")
    [data] = log_of(server, "asked", "questionnaire", "Cleo")
    assert data["answers"] == {"reads": "Every day or nearly every day", "age": 42.5, "town": None}


def test_the_whole_way_from_the_link_to_thank_you(server, judge):
    person = judge(f"{server.url}/s/whole/")
    page = person.page
    person.give_name("Ada")
    person.says("Before you begin")
    assert page.locator(".prose em").inner_text() == "answers"
    page.get_by_role("button", name="I agree").click()

    person.says("Go by your first thought.")
    person.says("An example with its answer")
    person.press("Enter")
    person.says("Practice")
    person.press("Enter")
    person.wait_for_task()
    assert person.progress == "Practice 1 of 2"
    assert page.locator("#skip").is_hidden()
    person.press("2")
    person.submit()
    person.says("Not quite")
    person.says("Light beats dirt.")
    person.press("Enter")
    person.wait_for_task()
    person.press("2")
    person.submit()
    person.says("✓ Correct")
    person.press("Enter")

    person.wait_for_task()
    assert person.progress.startswith("0 of 2")
    person.answer("1")
    person.saved()
    assert person.progress.startswith("1 of 2")
    person.press("1")
    person.submit()
    person.says("Thank you!")
    person.says("Answers you have given: 2. All of them are saved.")
    assert len(judgments_of(server, "whole", "Ada")) == 2
    assert log_of(server, "whole", "trained", "Ada") == [{"right": 1, "asked": 2}]


def test_who_does_not_agree_is_asked_nothing(server, judge):
    person = judge(f"{server.url}/s/whole/")
    person.give_name("Bo")
    person.page.get_by_role("button", name="I do not agree").click()
    person.says("No answer was stored.")
    person.page.get_by_role("button", name="Read it again").click()
    person.says("Before you begin")


def test_instructions_come_once_and_stay_behind_the_question_mark(server, judge):
    person = judge(f"{server.url}/s/pairs/")
    person.give_name("Cy")
    person.says("How it works")
    person.press("Enter")
    person.wait_for_task()
    person.page.reload()
    person.wait_for_task()
    person.press("?")
    dialog = person.page.get_by_role("dialog", name="Help")
    dialog.get_by_text("Click the card you choose").wait_for()
    assert dialog.get_by_label("Use this personal link").input_value().startswith(f"{server.url}/s/pairs/?invite=")
    person.press("Escape")
    assert dialog.count() == 0


def test_a_name_that_somebody_works_under_starts_anew(server, judge):
    first = judge(f"{server.url}/s/pairs/", "taken")
    first.answer("1")
    first.saved()
    other = judge(f"{server.url}/s/pairs/")
    other.give_name("   ")
    other.says("Please type a name.")
    other.says("Have you answered here before?")
    other.give_name("taken")
    other.says("How it works")
    other.press("Enter")
    other.wait_for_task()
    other.answer("1")
    other.saved()
    assert len(judgments_of(server, "pairs", "taken")) == 1


def test_people_sign_out_and_come_back_by_their_link(server, judge):
    person = judge(f"{server.url}/s/pairs/", "leaver")
    person.answer("1")
    person.saved()
    person.press("?")
    person.page.get_by_role("button", name="Sign out…").click()
    dialog = person.page.get_by_role("dialog", name="Sign out?")
    dialog.get_by_text("You are signed in as leaver.").wait_for()
    link = dialog.get_by_label("Use this personal link").input_value()
    dialog.get_by_role("button", name="Sign out", exact=True).click()
    person.says("Choose a name")
    assert person.kept() == 0
    person.page.goto(link)
    person.wait_for_task()
    assert person.progress.startswith("1 answered")


def test_the_link_of_somebody_else_asks_first(server, judge):
    person = judge(f"{server.url}/s/pairs/", "owner")
    token = server.studies.get("pairs").study.access.grant("invite", annotator="other")
    link = f"{server.url}/s/pairs/?invite={token}"
    person.page.goto(link)
    person.page.get_by_role("link", name="Stay signed in").click()
    person.wait_for_task()
    person.page.goto(link)
    person.page.get_by_role("button", name="Switch to the link's annotator").click()
    person.says("How it works")
    person.press("Enter")
    person.wait_for_task()
    person.press("?")
    person.says("You are signed in as other.")


def test_the_last_tasks_come_one_after_the_other_without_a_pause(tmp_path, judge):
    """While tasks are scarce one may hold a single task; the page waits for its answer to be saved, not longer."""
    server = start_in_thread([write_study(tmp_path / "scarce", 'name = "direct"', items=12, design="judgments = 1")])
    try:
        for name in ("ann", "bob"):
            assert len(server.person(name).tasks(4)["tasks"]) == 4
        person = judge(f"{server.url}/s/scarce/", "late")
        for _ in range(3):
            [item] = person.items()
            person.press("5")
            person.submit()
            # Nothing but the next item: not for a moment the screen that says to wait, which looks again after 15 s.
            selector = "main .task:not([inert]) .content"
            person.page.wait_for_function(
                "([shown, before]) => ![before, undefined].includes(document.querySelector(shown)?.innerText)",
                arg=[selector, f"word {item}"],
            )
            person.wait_for_task()
        person.saved()
        assert len(judgments_of(server, "scarce", "late")) == 3
    finally:
        for other in server.people:
            other.http.close()
        server.stop()


def test_a_study_by_invitation_says_so_and_a_personal_link_opens_it(server, judge):
    stranger = judge(f"{server.url}/s/invited/")
    stranger.says("By invitation only")
    stranger.says("words@example.org")
    token = server.studies.get("invited").study.access.grant("invite", annotator="Dee")
    guest = judge(f"{server.url}/s/invited/?invite={token}")
    guest.says("How it works")
    assert guest.page.url.endswith("/s/invited/")


def test_the_personal_link_goes_on_on_another_device(server, judge):
    first = judge(f"{server.url}/s/pairs/", "nomad")
    first.answer("1")
    first.saved()
    items = first.items()
    first.press("?")
    link = first.page.get_by_label("Use this personal link").input_value()
    elsewhere = judge(link, device="phone")
    elsewhere.wait_for_task()
    assert elsewhere.progress.startswith("1 answered")
    assert elsewhere.items() == items


@pytest.mark.parametrize(
    ("study", "keys", "message"),
    [
        ("pairs", [], "Nothing is chosen yet."),
        ("sliders", ["5"], " has no answer yet."),
        ("best", ["1"], "Nothing is chosen for “poorest” yet."),
        ("ranking", [], "Nothing has been moved yet. If this order is right, submit once more."),
    ],
)
def test_submit_says_what_is_missing_and_goes_there(server, judge, study, keys, message):
    person = judge(f"{server.url}/s/{study}/", "hasty")
    person.press(*keys)
    before = person.shown()
    assert person.page.locator("#submit").get_attribute("aria-disabled") == "true"
    person.submit(by="click")
    assert message in person.page.locator("#missing").inner_text()
    assert person.page.evaluate("document.querySelector('main .task').contains(document.activeElement)")
    assert person.shown() == before


def test_an_untouched_ranking_takes_a_second_submit(server, judge):
    person = judge(f"{server.url}/s/ranking/", "content")
    items, before = person.items(), person.shown()
    person.submit()
    person.submit()
    person.wait_for_task(other_than=before)
    person.saved()
    assert judgments_of(server, "ranking", "content") == [[[item] for item in items]]


def test_going_back_changes_an_earlier_answer_and_keeps_the_current_one(server, judge):
    person = judge(f"{server.url}/s/pairs/", "undoer")
    items = [person.items()]
    person.answer("1")
    items.append(person.items())
    person.answer("2")
    person.saved()
    person.press("1")
    current = person.shown()

    person.press("Backspace")
    person.says("You are changing an earlier answer.")
    assert person.items() == items[1]
    assert person.page.locator(".choice-card input").nth(1).is_checked()
    before = person.shown()
    person.press("Backspace")
    person.wait_for_task(other_than=before)
    assert person.items() == items[0]
    person.press("0")
    person.submit()
    person.wait_for_task()

    assert person.shown() == current
    assert person.page.locator(".choice-card input").nth(0).is_checked()
    person.saved()
    wait_until(
        lambda: judgments_of(server, "pairs", "undoer") == [{"winner": None}, {"winner": items[1][1]}],
        "the change did not arrive",
    )
    assert len(log_of(server, "pairs", "revision", "undoer")) == 1


def test_answers_of_an_earlier_visit_can_be_changed_too(server, judge):
    person = judge(f"{server.url}/s/pairs/", "returner")
    items = person.items()
    person.answer("1")
    person.saved()
    person.page.reload()
    person.wait_for_task()
    person.press("Backspace")
    person.says("You are changing an earlier answer.")
    assert person.items() == items
    person.press("Escape")
    person.says("Skip…")
    assert person.items() != items


def test_there_is_no_way_back_where_the_study_allows_none(server, judge):
    person = judge(f"{server.url}/s/final/", "resolute")
    person.answer("1")
    assert person.page.locator("#back").is_hidden()
    before = person.shown()
    person.press("Backspace")
    assert person.shown() == before


def test_going_back_ends_where_answers_can_no_longer_be_changed(server, judge):
    person = judge(f"{server.url}/s/limited/", "modest")
    person.answer("1")
    person.answer("1")
    person.saved()
    person.press("Backspace")
    person.says("You are changing an earlier answer.")
    person.press("Backspace")
    person.says("There is no earlier answer to change.")


def test_skip_and_flag_leave_their_reasons_in_the_log(server, judge):
    person = judge(f"{server.url}/s/pairs/", "critic")
    before = person.shown()
    person.press("!")
    dialog = person.page.get_by_role("dialog")
    dialog.get_by_label("It contains a mistake").check()
    dialog.get_by_label("In your own words").fill("a typo")
    dialog.get_by_role("button", name="Flag it").click()
    person.says("Flagged. Thank you; you can still answer.")
    assert before in person.shown()

    person.press("s")
    person.page.get_by_role("dialog").get_by_label("I cannot decide").check()
    person.press("Enter")
    person.wait_for_task(other_than=before)
    person.saved()
    reasons = {kind: [data["reason"] for data in log_of(server, "pairs", kind, "critic")] for kind in ("flag", "skip")}
    assert reasons == {"flag": ["It contains a mistake: a typo"], "skip": ["I cannot decide"]}


def test_cancelling_a_skip_skips_nothing(server, judge):
    person = judge(f"{server.url}/s/pairs/", "wavering")
    before = person.shown()
    person.press("s", "Escape", "s")
    person.page.get_by_role("button", name="Cancel").click()
    assert person.shown() == before
    assert log_of(server, "pairs", "skip", "wavering") == []


def test_single_keys_can_be_switched_off(server, judge):
    """WCAG 2.1.4: for people whose tools send keys by themselves."""
    person = judge(f"{server.url}/s/pairs/", "dictating")
    person.press("?")
    person.page.get_by_label("Use letters and digits as keyboard shortcuts").uncheck()
    person.press("Escape", "1")
    assert person.page.locator("main input:checked").count() == 0


def test_a_double_click_on_submit_answers_one_task(server, judge):
    person = judge(f"{server.url}/s/pairs/", "double")
    person.press("1")
    person.settle()
    person.page.locator("#submit").dblclick()
    person.wait_for_task()
    person.saved()
    assert len(judgments_of(server, "pairs", "double")) == 1
    assert person.page.locator("#missing").inner_text() == ""


def test_a_paused_closed_or_ended_part_is_explained_and_an_answer_in_hand_is_still_taken(server, judge):
    study = server.studies.get("managed").study
    person = judge(f"{server.url}/s/managed/", "guest")
    other = judge(f"{server.url}/s/managed/", "other")
    study.annotators.exclude("other", "random answers")
    other.press("1")
    other.submit()
    try:
        study.set_state("paused", "Back on Monday.")
        while person.page.locator("main .task").count():
            before = person.page.locator("main").inner_text()
            person.press("1")
            person.page.wait_for_timeout(320)
            person.submit()
            person.page.wait_for_function("before => document.querySelector('main').innerText !== before", arg=before)
        person.says("The study is paused")
        person.says("Back on Monday.")
        study.set_state("closed")
        person.page.get_by_role("button", name="Check again now").click()
        person.says("The study is closed")
    finally:
        study.set_state("open")
    assert judgments_of(server, "managed", "guest")
    while other.page.locator("main .task").count():
        other.press("1")
        other.submit()
        other.page.wait_for_timeout(350)
    other.says("There are no more questions for you")
    other.says("words@example.org")
    assert "random answers" not in other.page.locator("body").inner_text()


def test_progress_counts_answers_and_estimates_the_time_left(server, judge):
    person = judge(f"{server.url}/s/limited/", "counted")
    person.answer("1")
    person.saved()
    assert person.progress == "1 of 4 · less than a minute"
