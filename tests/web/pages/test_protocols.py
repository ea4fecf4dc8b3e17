"""Every protocol, answered by mouse, by keyboard and by touch at phone width: what was done is what is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.web.pages.judge import Judge, judgments_of, log_of

pytestmark = [pytest.mark.browser, pytest.mark.server]

PAGE_SIZE = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
Way = Callable[[Judge, list[str]], Any]


def _touch(judge: Judge, locator: Any, **where: Any) -> None:
    """Click, or tap on a phone."""
    phone = judge.page.viewport_size["width"] < 600
    (locator.tap if phone else locator.click)(**where)


def _set_slider(judge: Judge, slider: Any, part: float) -> None:
    # The thumb is 24 px wide and its middle runs from end to end of the line.
    box = slider.bounding_box()
    _touch(judge, slider, position={"x": 12 + (box["width"] - 24) * part, "y": box["height"] / 2})


def sliders_by_pointer(judge: Judge, items: list[str]) -> dict[str, int]:
    expected = {}
    for number, item in enumerate(items):
        part = (number + 1) / (len(items) + 1)
        slider = judge.page.locator("main input[type=range]").nth(number)
        _set_slider(judge, slider, part)
        expected[item] = round(100 * part)
    return expected


def sliders_by_keyboard(judge: Judge, items: list[str]) -> dict[str, int]:
    expected = {}
    for number, item in enumerate(items):
        judge.press("9", *["ArrowLeft"] * number, "Tab")
        expected[item] = 100 - number
    return expected


def criteria_sliders_by_pointer(judge: Judge, items: list[str]) -> dict[str, dict[str, int]]:
    joy, valence = judge.page.locator("main input[type=range]").all()
    _set_slider(judge, joy, 0)
    _set_slider(judge, valence, 0.25)
    return {items[0]: {"joy": 0, "valence": -50}}


def criteria_sliders_by_keyboard(judge: Judge, items: list[str]) -> dict[str, dict[str, int]]:
    judge.press("1", "ArrowRight", "ArrowRight", "Tab", "Home")
    return {items[0]: {"joy": 2, "valence": -100}}


def labels_by_pointer(*choices: str) -> Way:
    def answer(judge: Judge, items: list[str]) -> None:
        for row, words in zip(judge.page.get_by_role("radiogroup").all(), choices, strict=True):
            _touch(judge, row.locator(".step", has_text=words).last)

    return answer


def keys(*pressed: str) -> Way:
    def answer(judge: Judge, items: list[str]) -> None:
        judge.press(*pressed)

    return answer


def giving(way: Way, answer: Callable[[list[str]], Any]) -> Way:
    """Say what a way of answering should give."""

    def given(judge: Judge, items: list[str]) -> Any:
        way(judge, items)
        return answer(items)

    return given


def labelled(words: list[str], pressed: list[str], answer: Callable[[list[str]], Any]) -> tuple[Way, Way, Way]:
    pointed = giving(labels_by_pointer(*words), answer)
    return pointed, giving(keys(*pressed), answer), pointed


def card_by_pointer(judge: Judge, items: list[str]) -> dict[str, str]:
    _touch(judge, judge.page.get_by_text(f"word {items[1]}"))
    return {"winner": items[1]}


def best_worst_by_pointer(judge: Judge, items: list[str]) -> dict[str, str]:
    pick = judge.page.locator
    _touch(judge, pick(".pick.best label").nth(2))
    # One row cannot be both: choosing it as the worst takes "best" away from it.
    _touch(judge, pick(".pick.worst label").nth(2))
    assert judge.page.locator(".pick.best input:checked").count() == 0
    _touch(judge, pick(".pick.best label").nth(0))
    return {"best": items[0], "worst": items[2]}


def best_worst_by_keyboard(judge: Judge, items: list[str]) -> dict[str, str]:
    judge.press("2", "b", "4")
    return {"best": items[3], "worst": items[1]}


def ranking_by_pointer(judge: Judge, items: list[str]) -> list[list[str]]:
    """Drag the first card below the second, then tie the last with the one above it."""
    first, second = judge.page.locator(".rank-card").all()[:2]
    handle, target = first.locator(".handle").bounding_box(), second.bounding_box()
    judge.page.mouse.move(handle["x"] + 10, handle["y"] + 10)
    judge.page.mouse.down()
    judge.page.mouse.move(handle["x"] + 10, target["y"] + target["height"], steps=8)
    judge.page.mouse.up()
    _touch(judge, judge.page.locator(".rank-card").nth(3).get_by_role("button", name="Tie with"))
    return [[items[1]], [items[0]], [items[2], items[3]]]


def ranking_by_touch(judge: Judge, items: list[str]) -> list[list[str]]:
    judge.page.locator(".rank-card").nth(2).get_by_role("button", name="Move up").tap()
    return [[items[0]], [items[2]], [items[1]], [items[3]]]


def ranking_by_keyboard(judge: Judge, items: list[str]) -> list[list[str]]:
    """The last card to the top by its place, one step down, and the same place as the first."""
    judge.page.locator(".rank-card").nth(3).locator(".handle").focus()
    judge.press("1", "ArrowDown", "=")
    return [[items[0], items[3]], [items[1]], [items[2]]]


def unjudged_by_pointer(judge: Judge, items: list[str]) -> dict[str, Any]:
    """The first item on its slider; the second cannot be judged, and the page asks why."""
    _set_slider(judge, judge.page.locator("main input[type=range]").first, 0.5)
    _touch(judge, judge.page.get_by_label("I cannot judge this").nth(1))
    assert judge.page.locator("#submit").get_attribute("aria-disabled") == "true"
    judge.page.get_by_label("Why?").last.select_option("too long")
    return {items[0]: 50, items[1]: {"cannot_judge": "too long"}}


def unjudged_by_keyboard(judge: Judge, items: list[str]) -> dict[str, Any]:
    judge.press("9", "Tab", "Tab", "Tab", "Space", "Tab", "ArrowDown")
    judge.page.get_by_text("Add a comment").click()
    judge.page.get_by_label("Comment").fill("no idea")
    judge.page.keyboard.press("Tab")
    return {items[0]: 100, items[1]: {"cannot_judge": "too short"}}


def pair_unjudged_by_pointer(judge: Judge, items: list[str]) -> dict[str, str]:
    _touch(judge, judge.page.get_by_label("I cannot judge this"))
    return {"cannot_judge": ""}


def best_worst_criteria_by_pointer(judge: Judge, items: list[str]) -> dict[str, Any]:
    for number in (0, 4):
        _touch(judge, judge.page.locator(".pick.best label").nth(number))
    for number in (2, 3):
        _touch(judge, judge.page.locator(".pick.worst label").nth(number))
    return {"adequacy": {"best": items[0], "worst": items[2]}, "fluency": {"best": items[1], "worst": items[0]}}


def _draw_across_words(judge: Judge) -> None:
    first, last = (judge.page.locator(".marked-text span").nth(place).bounding_box() for place in (0, 2))
    judge.page.mouse.move(first["x"] + 2, first["y"] + 10)
    judge.page.mouse.down()
    judge.page.mouse.move(last["x"] + 2, last["y"] + 10, steps=5)
    judge.page.mouse.up()


def spans_by_pointer(judge: Judge, items: list[str]) -> dict[str, Any]:
    """Mark both words as one error, and one of them again; delete that one."""
    _draw_across_words(judge)
    judge.page.get_by_role("button", name="major").click()
    judge.page.locator(".marked-text span").nth(0).dblclick()
    assert judge.page.locator(".mark").count() == 1, "a marked word selects its mark"
    judge.page.get_by_role("button", name="+ Missing content").click()
    judge.page.get_by_role("button", name="minor").click()
    judge.page.get_by_role("button", name="Delete").click()
    _set_slider(judge, judge.page.locator("main input[type=range]"), 0.25)
    return {items[0]: {"score": 25, "spans": [{"start": 0, "end": 6, "severity": "major"}]}}


def spans_by_keyboard(judge: Judge, items: list[str]) -> dict[str, Any]:
    """Mark the second word, make the mark one character longer at its start, and set the slider."""
    judge.press("Tab", "End", " ", "1", "Tab", "Tab", "Tab", "Tab", "Tab")
    assert judge.page.evaluate("document.activeElement.ariaLabel") == "Start earlier"
    judge.press("Enter")
    judge.page.locator("main input[type=range]").focus()
    judge.press("9")
    return {items[0]: {"score": 100, "spans": [{"start": 4, "end": 6, "severity": "minor"}]}}


def spans_by_touch(judge: Judge, items: list[str]) -> dict[str, Any]:
    """Draw across both words with a finger, and mark an omission."""
    first, last = (judge.page.locator(".marked-text span").nth(place).bounding_box() for place in (0, 2))
    finger = judge.context.new_cdp_session(judge.page)
    path = [first["x"] + 2 + (last["x"] - first["x"]) * part / 6 for part in range(7)]
    for number, x in enumerate([*path, None]):
        kind = "touchEnd" if x is None else "touchMove" if number else "touchStart"
        points = [] if x is None else [{"x": x, "y": first["y"] + 10}]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    # Chromium ignores a tap that stops the fling of a finger that left so fast.
    judge.page.wait_for_timeout(300)
    judge.page.get_by_role("button", name="major").tap()
    judge.page.get_by_role("button", name="+ Missing content").tap()
    judge.page.get_by_role("button", name="minor").tap()
    _set_slider(judge, judge.page.locator("main input[type=range]"), 0.5)
    spans = [{"start": 0, "end": 6, "severity": "major"}, {"omission": True, "severity": "minor"}]
    return {items[0]: {"score": 50, "spans": spans}}


def categories_by_pointer(judge: Judge, items: list[str]) -> dict[str, Any]:
    _touch(judge, judge.page.locator(".marked-text span").nth(0))
    _touch(judge, judge.page.get_by_role("button", name="minor"))
    judge.page.get_by_label("Category").select_option("Fluency")
    return {items[0]: {"spans": [{"start": 0, "end": 4, "severity": "minor", "category": "Fluency"}]}}


def no_errors_by_keyboard(judge: Judge, items: list[str]) -> dict[str, Any]:
    assert judge.page.locator("#submit").get_attribute("aria-disabled") == "true"
    judge.page.get_by_label("No errors").focus()
    judge.press(" ")
    return {items[0]: {"spans": []}}


WAYS: dict[str, tuple[Way, Way, Way]] = {
    # study: by mouse, by keyboard, by touch
    "direct": (sliders_by_pointer, sliders_by_keyboard, sliders_by_pointer),
    "direct-page": (sliders_by_pointer, sliders_by_keyboard, sliders_by_pointer),
    "direct-criteria": (criteria_sliders_by_pointer, criteria_sliders_by_keyboard, criteria_sliders_by_pointer),
    "likert": labelled(["good"], ["4"], lambda items: {items[0]: 4}),
    "likert-page": labelled(["-2", "2"], ["1", "5"], lambda items: {items[0]: -2, items[1]: 2}),
    "choice": labelled(["blue"], ["3"], lambda items: {items[0]: "blue"}),
    "choice-criteria": labelled(
        ["green", "small"], ["2", "1"], lambda items: {items[0]: {"colour": "green", "size": "small"}}
    ),
    "pairwise": (card_by_pointer, giving(keys("1"), lambda items: {"winner": items[0]}), card_by_pointer),
    "pairwise-bad": (
        giving(
            lambda judge, items: _touch(judge, judge.page.get_by_text("Both are bad")),
            lambda items: {"winner": None, "both_bad": True},
        ),
        giving(keys("9"), lambda items: {"winner": None, "both_bad": True}),
        giving(
            lambda judge, items: _touch(judge, judge.page.get_by_text("About the same")), lambda items: {"winner": None}
        ),
    ),
    "unjudged": (unjudged_by_pointer, unjudged_by_keyboard, unjudged_by_pointer),
    "pairwise-unjudged": (
        pair_unjudged_by_pointer,
        giving(keys("2"), lambda items: {"winner": items[1]}),
        pair_unjudged_by_pointer,
    ),
    "best-worst-criteria": (
        best_worst_criteria_by_pointer,
        giving(
            keys("1", "b", "3", "a"),
            lambda items: {
                "adequacy": {"best": items[0], "worst": items[1]},
                "fluency": {"best": items[2], "worst": items[0]},
            },
        ),
        best_worst_criteria_by_pointer,
    ),
    "pairwise-criteria": labelled(
        ["A is better", "About the same"],
        ["1", "0"],
        lambda items: {"adequacy": {"winner": items[0]}, "fluency": {"winner": None}},
    ),
    "pairwise-graded": (
        giving(labels_by_pointer("B is slightly better"), lambda items: {"winner": items[1], "strength": 1}),
        giving(keys("1", "0", "4"), lambda items: {"winner": items[1], "strength": 1}),
        giving(labels_by_pointer("About the same"), lambda items: {"winner": None}),
    ),
    "best-worst": (best_worst_by_pointer, best_worst_by_keyboard, best_worst_by_pointer),
    "scored-ranking": (sliders_by_pointer, sliders_by_keyboard, sliders_by_pointer),
    "ranking": (ranking_by_pointer, ranking_by_keyboard, ranking_by_touch),
    "error-spans": (spans_by_pointer, spans_by_keyboard, spans_by_touch),
    "error-spans-mqm": (categories_by_pointer, no_errors_by_keyboard, categories_by_pointer),
}


def _answer(studies: Any, person: Judge, study: str, way: str) -> Any:
    """Answer the task on the screen; return what should be stored."""
    place = ["mouse", "keyboard", "touch"].index(way)
    items, before = person.items(), person.shown()
    expected = WAYS[study][place](person, items)
    assert person.page.locator("#submit").get_attribute("aria-disabled") == "false"
    person.submit(by={"mouse": "click", "keyboard": "Enter", "touch": "tap"}[way])
    person.wait_for_task(other_than=before)
    person.saved()
    return expected


@pytest.mark.parametrize("study", WAYS)
def test_what_was_done_by_mouse_and_by_keyboard_is_what_is_stored(studies, judge, study):
    person = judge(f"{studies.url}/s/{study}/", "ann")
    assert person.page.evaluate(PAGE_SIZE) == [1280, 800], "short tasks need no scrolling"
    expected = [_answer(studies, person, study, way) for way in ("mouse", "keyboard")]
    assert judgments_of(studies, study, "ann") == expected


@pytest.mark.parametrize("study", WAYS)
def test_what_was_done_by_touch_at_phone_width_is_what_is_stored(studies, judge, study):
    person = judge(f"{studies.url}/s/{study}/", "bea", device="phone")
    assert person.page.evaluate(PAGE_SIZE)[0] == 360, "nothing scrolls sideways"
    expected = [_answer(studies, person, study, "touch")]
    assert judgments_of(studies, study, "bea") == expected


def test_the_page_records_the_first_action_the_time_of_each_item_and_changes(studies, judge):
    person = judge(f"{studies.url}/s/direct-page/", "effort")
    items, before = person.items(), person.shown()
    sliders = person.page.locator("main input[type=range]")
    person.page.wait_for_timeout(300)
    for number in range(3):
        _set_slider(person, sliders.nth(number), 0.5)
    person.page.wait_for_timeout(1_100)
    _set_slider(person, sliders.nth(1), 0.9)
    person.submit()
    person.wait_for_task(other_than=before)
    person.saved()
    (judged,) = log_of(studies, "direct-page", "judgment", "effort")
    effort = judged["effort"]
    assert effort["changes"] == 1
    assert effort["first_action"] >= 0.3
    assert set(effort["items"]) == set(items)
    assert effort["items"][items[1]] >= 1.1, "the pause before the change went into the item that was changed"
