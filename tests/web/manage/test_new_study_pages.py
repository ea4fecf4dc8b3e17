"""From an empty folder to a study with judgments, in a real browser; by mouse, by keyboard, on a phone."""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest

from steelyard import Study
from tests.conftest import missing_tool
from tests.web.pages.judge import TOO_SOON
from tests.web.pages.test_accessibility import complaints

pytestmark = [pytest.mark.browser, pytest.mark.server]


@pytest.fixture(scope="module")
def axe() -> Any:
    try:
        return importlib.import_module("axe_playwright_python.sync_playwright").Axe()
    except ImportError:
        missing_tool("axe-playwright-python is not installed")


@pytest.fixture
def workspace(tmp_path):
    return tmp_path / "workspace"


@pytest.fixture
def server(serve_study, workspace):
    return serve_study(workspace=workspace)


def fits(page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def saved(page) -> None:
    """Wait until the server has everything that was typed."""
    page.wait_for_timeout(450)
    page.locator("#saved").get_by_text("Draft saved").wait_for()


def continue_to(page, heading: str) -> None:
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("heading", name=heading).wait_for()


OUTPUTS = "source;A;B;Domain\n" + "".join(
    f"Satz {n};sentence {n}.;a {n}th one.;{'news' if n % 2 else 'web'}\n" for n in range(6)
)


def test_from_an_empty_folder_to_a_downloaded_report_without_the_command_line(
    server, workspace, open_page, axe, tmp_path
):
    outputs = tmp_path / "Übersetzungen.csv"
    outputs.write_bytes(OUTPUTS.encode("cp1252"))
    page = open_page(server, "/manage/")
    page.get_by_role("heading", name="No studies yet").wait_for()
    assert complaints(axe, page) == []
    page.get_by_role("link", name="New study").click()

    # 1. Items
    page.locator("#items-file").set_input_files(outputs)
    page.get_by_text("12 items").wait_for()
    assert page.get_by_label("What the column Domain holds").input_value() == "extra"
    page.get_by_label("What the column Domain holds").select_option("tags")
    page.locator("#items-table [data-role=tags]").wait_for()
    assert complaints(axe, page) == []

    # 2. Question: the preview follows the type, with the items of the file.
    continue_to(page, "What do you ask?")
    page.get_by_label("Title").fill("Translations")
    page.get_by_label("Question", exact=True).fill("Which translation is better?")
    preview = page.locator("#aside")
    page.get_by_text("Slider", exact=True).click()
    preview.get_by_role("slider").wait_for()
    page.get_by_text("Compare two").click()
    preview.get_by_text("About the same").wait_for()
    preview.get_by_text("sentence 0.").wait_for()
    preview.get_by_text("Satz 0").wait_for()
    assert preview.get_by_role("slider").count() == 0
    assert complaints(axe, page) == []

    # 3. Plan: cost follows what is typed.
    continue_to(page, "How much do you need?")
    page.get_by_text("Outputs are compared within the same source").wait_for()
    page.get_by_label("Judgments per item").fill("2")
    page.get_by_label("Per task", exact=True).fill("0.5")
    page.get_by_text("$6.00").wait_for()  # 6 sources, their one pair twice, at 0.5
    page.get_by_text("Advanced").click()
    assert complaints(axe, page) == []

    # 4. Quality: instructions and a check, typed into a table.
    continue_to(page, "How are answers checked?")
    page.get_by_label("Instructions").fill("Read **both**.")
    page.locator(".n-markdown strong").get_by_text("both").wait_for()
    page.get_by_role("button", name="Add questions").first.click()
    page.get_by_label("Row 1: item 1").fill("a good translation")
    page.get_by_label("Row 1: item 2").fill("gibberish")
    page.get_by_label("Row 1: the right answer").select_option("Item 1 is better")
    page.locator("#saved").get_by_text("Draft saved").wait_for()
    assert complaints(axe, page) == []

    # The text of study.toml is another view of the same; what is typed there comes back.
    saved(page)
    page.get_by_role("link", name="study.toml").click()
    text = page.get_by_role("textbox", name="study.toml")
    assert 'file = "checks.csv"' in text.input_value()
    text.fill(text.input_value().replace('"Translations"', '"Better translations"'))
    saved(page)
    assert complaints(axe, page) == []
    page.get_by_role("link", name=re.compile("Question")).click()
    assert page.get_by_label("Title").input_value() == "Better translations"

    # 5. Share
    page.get_by_role("link", name=re.compile("Share")).click()
    page.get_by_text("Everything is complete").wait_for()
    assert complaints(axe, page) == []
    page.get_by_role("button", name="Create study").click()
    page.get_by_text("The study is ready").wait_for()
    link = page.get_by_role("textbox", name="Link for annotators")
    link.wait_for()
    assert complaints(axe, page) == []
    page.get_by_text("Personal invitations").click()
    page.get_by_label("Names").fill("ann\nbob")
    page.get_by_role("button", name="Create links").click()
    personal = page.get_by_role("textbox", name="ann", exact=True)
    personal.wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click()
    assert "bob" in download.value.path().read_text()

    # Somebody judges, by the link that was copied.
    page.goto(personal.input_value())
    page.get_by_text("Read both.").wait_for()
    page.get_by_role("button", name=re.compile("Start|Begin|Continue")).click()
    page.locator("main .task").wait_for()
    for _ in range(3):
        before = page.locator("main .task").inner_text()
        # Keys pressed before a task can have been seen do not count.
        page.wait_for_timeout(1000 * TOO_SOON + 50)
        page.keyboard.press("1")
        page.keyboard.press("Enter")
        page.wait_for_function("before => document.querySelector('main .task')?.innerText !== before", arg=before)
    page.get_by_text("3 answered").wait_for()
    folder = workspace / "better-translations"
    with Study.open(folder) as study:
        assert study.annotators.progress("ann").answered == 3
        assert {item.group for item in study.items} == {"A", "B"}
        assert {item.tags for item in study.items} == {("news",), ("web",)}
        assert study.config.stages[0].design.annotators_per_task == 2

    # The report
    page.goto(f"{page.url.partition('/s/')[0]}/manage/better-translations/export")
    page.get_by_role("button", name="Create report").click()
    report = page.get_by_role("list", name="Reports").get_by_role("link", name="Download HTML")
    report.wait_for(timeout=90_000)
    with page.expect_download() as download:
        report.click()
    assert "Better translations" in download.value.path().read_text(encoding="utf-8")


def tab_to(page, target: str, most: int = 60) -> None:
    """Press Tab until what has the focus is, or contains, the element of this selector."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("target => document.activeElement.matches(target)", target):
            return
    raise AssertionError(f"{target} cannot be reached with Tab")


def test_the_whole_way_with_the_keyboard_on_a_phone_with_a_slow_connection(server, workspace, open_page):
    page = open_page(server, "/manage/new", width=360, height=740)
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    slow = {"offline": False, "latency": 250, "downloadThroughput": 50_000, "uploadThroughput": 25_000}
    network.send("Network.emulateNetworkConditions", slow)
    page.get_by_text("Choose a file").wait_for()
    tab_to(page, "summary")
    page.keyboard.press("Enter")
    tab_to(page, "textarea")
    page.keyboard.insert_text("happy\nglad\nsad\nangry\ncalm")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("5 items").wait_for()
    assert fits(page)
    tab_to(page, "button.primary")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="What do you ask?").wait_for()
    tab_to(page, "[data-path=title] input")
    page.keyboard.insert_text("Mood")
    tab_to(page, "[data-path=question] textarea")
    page.keyboard.insert_text("How positive is this word?")
    tab_to(page, ".n-card input")
    page.keyboard.press("Space")
    page.locator("#aside .task").wait_for()
    page.keyboard.press("ArrowRight")
    page.locator("#aside [role=radiogroup], #aside fieldset").first.wait_for()
    assert page.locator(".n-card input:checked").get_attribute("value") == "likert"
    assert fits(page)
    for heading in ("How much do you need?", "How are answers checked?", "Who takes part?"):
        tab_to(page, ".n-buttons button.primary", 200)
        page.keyboard.press("Enter")
        page.get_by_role("heading", name=heading).wait_for()
        assert page.evaluate("document.activeElement.id") == "step-title"
        assert fits(page)
    page.get_by_text("Everything is complete").wait_for()
    tab_to(page, "button.primary", 200)
    page.keyboard.press("Enter")
    page.get_by_text("The study is ready").wait_for()
    page.get_by_role("textbox", name="Link for annotators").wait_for()
    assert fits(page)
    with Study.open(workspace / "mood") as study:
        assert (len(study.items), study.config.stages[0].protocol.name) == (5, "likert")


def test_a_lost_connection_loses_nothing_and_a_failed_upload_says_what_is_safe(server, open_page, tmp_path):
    words = tmp_path / "words.csv"
    words.write_text("text\nhappy\nsad\n", encoding="utf-8")
    page = open_page(server, "/manage/new")
    page.locator("#items-file").set_input_files(words)
    page.get_by_text("2 items").wait_for()
    broken = tmp_path / "broken.csv"
    broken.write_text("id,text\na,b\nc,d,e\n", encoding="utf-8")
    page.locator("#items-file").set_input_files(broken)
    page.get_by_text("broken.csv line 3").wait_for()
    page.get_by_text("Nothing was changed.").wait_for()
    continue_to(page, "What do you ask?")
    page.route("**/api/v1/manage/drafts/*", lambda route: route.abort())
    page.get_by_label("Title").fill("Kept")
    page.get_by_text("What you typed stays on this page").wait_for()
    page.unroute("**/api/v1/manage/drafts/*")
    page.locator("#saved").get_by_text("Draft saved").wait_for()
    url = page.url
    page.goto(f"{server.url}/manage/")
    page.get_by_role("link", name="Continue Kept").click()
    page.wait_for_url(url)
    assert page.get_by_label("Title").input_value() == "Kept"


def test_a_study_that_has_begun_shows_what_is_fixed_and_why(make_study, serve_study, open_page):
    server = serve_study(make_study(items=3))
    server.study.ask("ann")
    page = open_page(server, "/manage/study/edit#question")
    page.get_by_text("Annotators have started").wait_for()
    assert page.get_by_label("Question", exact=True).is_disabled()
    assert page.get_by_label(re.compile("Compare two")).is_disabled()
    page.get_by_label("Title").fill("New title")
    page.get_by_role("button", name="Review and save").click()
    page.get_by_role("button", name="Save changes").click()
    page.wait_for_url("**/manage/study/")
    assert server.study.config.title == "New title"


def test_a_file_of_judgments_is_recognised_and_becomes_a_study(server, workspace, open_page, axe, tmp_path):
    path = tmp_path / "old ratings.csv"
    path.write_text("annotator,item,value\nann,x,5\nbob,x,4\nann,y,1\nbob,y,2\n", encoding="utf-8")
    page = open_page(server, "/manage/new", width=360, height=740)
    page.locator("#items-file").set_input_files(path)
    page.get_by_text("4 ratings of 2 items by 2 annotators.").wait_for()
    assert complaints(axe, page) == []
    assert fits(page)
    page.get_by_role("button", name="Create a study from these judgments").click()
    page.wait_for_url("**/manage/old-ratings/")
    page.get_by_text("closed (judgments imported from old ratings.csv)").wait_for()
    with Study.open(workspace / "old-ratings") as study:
        assert study.status().judgments == 4
