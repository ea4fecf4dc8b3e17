"""Accessibility: axe-core's rules on every protocol and screen, light and dark, and what axe cannot see."""

from __future__ import annotations

import importlib

import pytest

from tests.conftest import missing_tool
from tests.web.conftest import start_in_thread
from tests.web.pages.studies import PROTOCOLS, write_study

pytestmark = [pytest.mark.browser, pytest.mark.server]

ALL = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# The one rule that hangs on light or dark.
CONTRAST = ["color-contrast"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    people = 'consent = "We keep your answers."\ninstructions = "# Think\\n\\nThen *answer*."\nmax_tasks = 1'
    question = {"questions.csv": "items,answer,feedback\nsun | mud,sun,Light beats *dirt*.\n"}
    rules = {
        "study": 'qualification = { file = "questions.csv" }',
        "loud": 'checks = { file = "questions.csv", rate = 0.999999, feedback = true }',
    }
    started = start_in_thread(
        [
            write_study(folder / "study", people=people, quality=rules["study"], files=question),
            write_study(folder / "loud", quality=rules["loud"], files=question),
        ]
    )
    yield started
    started.stop()


@pytest.fixture(scope="module")
def axe():
    try:
        # By name, because the package has no types.
        return importlib.import_module("axe_playwright_python.sync_playwright").Axe()
    except ImportError:
        missing_tool("axe-playwright-python is not installed")


def complaints(axe, page, rules=ALL):
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe.axe_script)
    options = {"resultTypes": ["violations"], "runOnly": rules}
    violations = page.evaluate("options => axe.run(options)", options)["violations"]
    return [(rule["id"], node["html"], node["failureSummary"]) for rule in violations for node in rule["nodes"]]


def complaints_light_and_dark(axe, page):
    violations = complaints(axe, page)
    page.emulate_media(color_scheme="dark")
    violations += complaints(axe, page, CONTRAST)
    page.emulate_media(color_scheme="light")
    return violations


def tab_reaches_everything(person, before_submit=0):
    """Every stop has a visible focus, and Submit comes right after the answers, or so many stops later."""
    stops = []
    for _ in range(40):
        person.press("Tab")
        stop = person.page.evaluate(
            """() => {
                const element = document.activeElement;
                const marked = element.closest("label, .slider-track, .rank-card") ?? element;
                const ring = [element, marked].map(each => getComputedStyle(each))
                    .some(style => style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2);
                return { id: element.id, ring, inTask: Boolean(element.closest(".task")) };
            }"""
        )
        stops.append(stop)
        if stop["id"] == "flag":
            break
    assert all(stop["ring"] for stop in stops), stops
    last = max(place for place, stop in enumerate(stops) if stop["inTask"])
    assert [stop["id"] for stop in stops[last + 1 + before_submit :]] == ["submit", "back", "skip", "flag"]


def controls_have_names(person):
    """In the accessibility tree every control says what it is about."""
    tree = person.page.locator("main").aria_snapshot()
    controls = [
        line.strip()
        for line in tree.splitlines()
        if line.strip().startswith(("- slider", "- radio", "- radiogroup", "- button"))
    ]
    assert controls
    assert [control for control in controls if '"' not in control] == []
    assert all(f"word {item}" in tree for item in person.items())


@pytest.mark.parametrize("study", PROTOCOLS)
def test_a_task_can_be_used_without_sight_and_without_a_mouse(studies, judge, axe, study):
    """axe has no complaint, light or dark, wide or narrow; all controls have names; Tab reaches them in order."""
    person = judge(f"{studies.url}/s/{study}/", "listener")
    assert complaints_light_and_dark(axe, person.page) == []
    controls_have_names(person)
    tab_reaches_everything(person)
    person.press("1", "b", "Tab")
    person.submit(by="click")
    person.page.set_viewport_size({"width": 360, "height": 740})
    assert complaints_light_and_dark(axe, person.page) == []


def test_axe_finds_nothing_wrong_with_the_screens_around_the_tasks(server, judge, axe):
    person = judge(f"{server.url}/")
    page = person.page
    assert complaints_light_and_dark(axe, page) == []
    page.goto(f"{server.url}/s/nowhere/")
    assert complaints_light_and_dark(axe, page) == []
    page.goto(f"{server.url}/s/study/")
    person.give_name("")
    assert complaints_light_and_dark(axe, page) == []
    person.give_name("ann")
    person.says("Before you begin")
    assert complaints_light_and_dark(axe, page) == []
    person.press("Enter")
    person.says("How it works")
    assert complaints_light_and_dark(axe, page) == []
    person.press("Enter")
    person.says("A short test")
    assert complaints_light_and_dark(axe, page) == []
    person.press("Enter")
    person.wait_for_task()
    assert complaints_light_and_dark(axe, page) == []
    person.press("1")
    person.submit()
    person.says("You have passed the test")
    person.press("Enter")
    person.wait_for_task()
    person.press("?")
    page.get_by_text("An example with its answer").click()
    assert complaints_light_and_dark(axe, page) == []
    person.press("Escape", "!")
    assert complaints_light_and_dark(axe, page) == []
    person.press("Escape", "1")
    page.route("**/judgments", lambda route: route.abort())
    person.submit()
    person.says("Answers being saved: 1")
    person.says("No connection.")
    assert complaints_light_and_dark(axe, page) == []


def test_axe_finds_nothing_wrong_with_what_is_told_about_a_wrong_answer(server, judge, axe):
    person = judge(f"{server.url}/s/loud/", "ann")
    person.answer("0")
    person.says("One answer was not quite correct")
    assert complaints_light_and_dark(axe, person.page) == []
    tab_reaches_everything(person, before_submit=2)
    person.page.get_by_role("button", name="Show it again").click()
    assert complaints_light_and_dark(axe, person.page) == []
    person.page.set_viewport_size({"width": 360, "height": 740})
    assert complaints_light_and_dark(axe, person.page) == []


def test_changes_are_announced_to_screen_readers(studies, judge):
    person = judge(f"{studies.url}/s/ranking/", "hearing")
    person.page.locator(".handle").nth(0).focus()
    item = person.items()[0]
    person.press("ArrowDown")
    assert person.page.locator(".ranking-box [role=status]").inner_text() == f"word {item}: rank 2 of 4"
    slider = judge(f"{studies.url}/s/direct/", "hearing too").page.get_by_role("slider")
    assert slider.get_attribute("aria-valuetext").startswith("not set yet")
