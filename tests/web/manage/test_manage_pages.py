"""The manager's pages, used as a person would, in a real browser against a real server."""

from __future__ import annotations

import html
import json
import re

import httpx
import pytest

from steelyard import Study
from steelyard.web.calculator import PARTS
from tests.web.conftest import start_in_thread
from tests.web.manage.conftest import wait_for
from tests.web.manage.test_manage_api import DESIGN, judge
from tests.web.pages.test_accessibility import complaints_light_and_dark

MOST_BYTES = 100_000


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A study with answers for tests that only look at it: they share one server."""
    folder = tmp_path_factory.mktemp("watched") / "study"
    folder.mkdir()
    rows = "".join(f"w{number},word w{number}\n" for number in range(5))
    (folder / "items.csv").write_text("id,text\n" + rows, encoding="utf-8")
    lines = ['name = "study"', 'title = "Words"', 'question = "How positive?"', 'items = "items.csv"']
    lines += ["[protocol]", 'name = "direct"', "[design]", DESIGN]
    (folder / "study.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    judge(folder, "ann", "bob")
    server = start_in_thread([folder])
    yield server
    server.stop()


@pytest.fixture
def judged(make_study, serve_study):
    folder = make_study(design=DESIGN, items=5)
    judge(folder, "ann", "bob")
    return serve_study(folder)


def no_sideways_scrolling(page):
    return page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_wrong_token_is_refused_in_words_and_the_right_one_opens_the_page(watched, browser):
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{watched.url}/manage/{watched.slug}/")
    page.get_by_label("Token").fill("nonsense")
    page.get_by_role("button", name="Open the dashboard").click()
    page.get_by_text("This link or token is not valid").wait_for()
    page.get_by_label("Token").fill(watched.token)
    page.get_by_role("button", name="Open the dashboard").click()
    page.get_by_role("heading", name="Words").wait_for()
    assert watched.token not in page.url
    [cookie] = [cookie for cookie in context.cookies() if cookie["name"] == "steelyard_manage"]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert watched.token not in cookie["value"]
    context.close()


def test_the_dashboard_shows_an_answer_by_itself_as_soon_as_it_arrives(judged, open_page):
    page = open_page(judged, f"/manage/{judged.slug}/")
    page.get_by_text("10 of 15").first.wait_for()
    page.get_by_role("img", name=re.compile("10 of 15 judgments")).wait_for()
    person = judged.person("cleo")
    task = person.task()
    person.tell(task, {task["items"][0]["id"]: 50})
    page.get_by_text("11 of 15").first.wait_for(timeout=5000)
    page.get_by_role("img", name=re.compile("11 of 15 judgments")).wait_for()
    page.get_by_role("link", name="Annotators").click()
    page.locator("#annotators-table").get_by_text("cleo").wait_for()


def test_charts_stand_there_with_the_finding_as_their_text_and_can_be_downloaded(watched, open_page):
    page = open_page(watched, f"/manage/{watched.slug}/results")
    chart = page.get_by_role("img", name=re.compile("Highest: w3, 91.5"))
    chart.wait_for()
    assert chart.locator("svg").bounding_box()["width"] > 100
    with page.expect_download() as download:
        page.locator("[data-chart=scores] [data-form=svg]").click()
    assert download.value.suggested_filename == "study-scores.svg"


def test_tables_sort_by_their_heads_and_are_searched(watched, open_page):
    page = open_page(watched, f"/manage/{watched.slug}/results")
    table = page.get_by_role("table", name="Scores")
    first = table.locator("tbody tr").first
    first.get_by_text("w3", exact=True).wait_for()
    table.get_by_role("button", name="Score").click()
    table.get_by_role("button", name="Score").click()
    first.get_by_text("w0", exact=True).wait_for()
    assert table.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
    page.get_by_label("Search items").fill("w2")
    table.locator("tbody tr").nth(1).wait_for(state="detached")
    assert first.get_by_text("w2", exact=True).is_visible()
    page.get_by_label("Search items").fill("zebra")
    page.get_by_text("Nothing matches the search.").wait_for()


def test_somebody_is_excluded_with_a_reason_and_it_can_be_undone(judged, open_page):
    page = open_page(judged, f"/manage/{judged.slug}/annotators")
    page.get_by_role("button", name="Exclude bob").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Exclude").click()
    dialog.get_by_text("Give a reason; it is stored in the log.").wait_for()
    dialog.get_by_label("Reason").fill("copied")
    dialog.get_by_role("button", name="Exclude").click()
    page.get_by_text("excluded: copied").wait_for()
    assert judged.study.annotators.excluded == {"bob": "copied"}
    # The scores are those of ann alone.
    results = open_page(judged, f"/manage/{judged.slug}/results")
    results.get_by_role("img", name=re.compile("Highest: w3, 90")).wait_for()
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Exclude bob").wait_for()
    assert judged.study.annotators.excluded == {}
    results.get_by_role("img", name=re.compile("Highest: w3, 91.5")).wait_for()


def test_the_study_is_paused_with_a_reason_and_reopened(judged, open_page):
    page = open_page(judged, f"/manage/{judged.slug}/")
    page.get_by_role("button", name="Pause…").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("back at noon")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    page.locator("#state").get_by_text("paused: no tasks are assigned (back at noon)").wait_for()
    assert judged.study.state == "paused"
    page.get_by_role("button", name="Reopen").click()
    page.locator("#state").get_by_text("open", exact=True).wait_for()
    assert judged.study.state == "open"


def test_an_item_has_a_page_with_every_judgment(watched, open_page):
    page = open_page(watched, f"/manage/{watched.slug}/results")
    page.get_by_role("table", name="Scores").get_by_role("link", name="w3").click()
    page.get_by_role("heading", name="2 judgments").wait_for()
    rows = page.get_by_role("table", name="Judgments").locator("tbody tr")
    assert [rows.nth(n).locator("td").nth(1).inner_text() for n in range(2)] == ["93", "90"]


def test_an_empty_study_says_what_to_do_and_a_finished_one_that_it_is(make_study, serve_study, open_page):
    folder = make_study(design='name = "per_item"\njudgments = 1', items=2)
    server = serve_study(folder)
    page = open_page(server, f"/manage/{server.slug}/")
    page.get_by_role("heading", name="Nobody has judged yet").wait_for()
    assert page.locator("#judge-url").inner_text() == server.page
    person = server.person("ann")
    for _ in range(2):
        task = person.task()
        person.tell(task, {task["items"][0]["id"]: 7})
    page.get_by_role("heading", name="All judgments are collected").wait_for()
    assert not page.get_by_role("heading", name="Nobody has judged yet").is_visible()


@pytest.mark.parametrize(
    "path",
    ["/manage/", "/manage/new", "/manage/study/", "/manage/study/annotators", "/manage/study/item?id=w3"],
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_phone_in_light_and_dark(watched, open_page, path, scheme):
    page = open_page(watched, path, width=360, height=740, color_scheme=scheme)
    page.wait_for_load_state("load")
    page.get_by_role("heading", level=1).wait_for()
    if path == "/manage/study/":
        page.get_by_role("img", name=re.compile("10 of 15")).wait_for()
    assert no_sideways_scrolling(page)
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.documentElement).backgroundColor]"
    )
    assert contrast(ink, paper) > 7


def contrast(one: str, other: str) -> float:
    """The contrast of two CSS colours, as WCAG 2.2 defines it."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_every_control_on_the_dashboard_has_a_name_and_the_page_is_light(watched, open_page):
    page = open_page(watched, f"/manage/{watched.slug}/results")
    page.get_by_role("img", name=re.compile("Highest")).wait_for()
    page.wait_for_function("() => !document.querySelector('.m-settling')")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, a[href], input, textarea, select')]
            .filter((e) => e.checkVisibility() && !(e.getAttribute('aria-label') || e.innerText.trim()
                || (e.labels && e.labels.length && e.labels[0].textContent.trim())))
            .map((e) => e.outerHTML)"""
    )
    assert nameless == []
    assert page.evaluate("document.documentElement.lang") == "en"
    own = sum(
        len(httpx.get(f"{watched.url}{path}").content)
        for path in [
            "/static/steelyard.css",
            *page.evaluate(
                """() => [...document.querySelectorAll('link[href^="/static/manage"], script[src]')]
                .map((e) => e.getAttribute('href') || e.getAttribute('src'))"""
            ),
        ]
    )
    assert own + len(page.content()) < MOST_BYTES


def test_a_person_is_forgotten_after_their_name_is_typed(judged, open_page):
    page = open_page(judged, f"/manage/{judged.slug}/annotators")
    page.get_by_role("button", name="Forget bob").click()
    page.get_by_text("Without them, 5 of 5 scores change").wait_for()
    page.get_by_label("Type bob to confirm").fill("ann")
    page.get_by_role("button", name="Forget for good").click()
    page.get_by_text("Type bob.").wait_for()
    page.get_by_label("Type bob to confirm").fill("bob")
    page.get_by_role("button", name="Forget for good").click()
    page.locator("#toast").get_by_text("Erased: 5 judgments").wait_for()
    page.locator("#annotators-table").get_by_text("bob").wait_for(state="detached")
    assert judged.study.annotators.names() == ["ann"]


TOURNAMENT = """
title = "Tournament"
question = "Which is better?"
items = "items.csv"
[[stage]]
name = "compare"
protocol = { name = "pairwise" }
design = { name = "tournament" }
[[stage]]
name = "label"
protocol = { name = "choice", labels = ["yes", "no"] }
design = { name = "propagation" }
[model]
name = "dominance"
"""


def test_tournaments_have_a_panel_with_dominance_effort_and_adequacy(serve_study, open_page, tmp_path):
    folder = tmp_path / "tournament"
    folder.mkdir()
    rows = [f"{n}-{k},s{n},sys{k},text {n} {k}" for n in range(3) for k in range(4)]
    (folder / "items.csv").write_text("\n".join(["id,source,system,output", *rows]), encoding="utf-8")
    (folder / "study.toml").write_text(TOURNAMENT, encoding="utf-8")
    with Study.open(folder) as study:
        while (task := study.ask("ann")) is not None:
            if task.stage == "compare":
                study.tell(task, {"winner": min(task.item_ids)})
            else:
                study.tell(task, {task.item_ids[0]: "yes" if task.item_ids[0].endswith("0") else "no"})
    page = open_page(serve_study(folder), "/manage/tournament/results")
    panel = page.locator("#tournaments")
    panel.get_by_role("cell", name="sys0").wait_for()
    panel.get_by_role("cell", name="of these, by propagation").wait_for()
    panel.get_by_text("Adequacy and harmonized ranks of the items").click()
    panel.get_by_role("cell", name="propagated (inferred)").first.wait_for()


TABS = ["Overview", "Results", "Quality", "Annotators", "Activity", "Export"]


def test_tabs_have_addresses_work_by_keyboard_and_load_only_what_they_show(watched, open_page):
    page = open_page(watched, f"/manage/{watched.slug}/")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.get_by_text("Reliability").first.wait_for()
    tabs = page.get_by_role("navigation", name="Dashboard").get_by_role("link")
    assert tabs.all_inner_texts() == TABS
    # The keyboard goes from one tab to the next, and Enter opens it.
    tabs.first.focus()
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/manage/study/annotators")
    page.get_by_role("rowheader", name="ann").wait_for()
    assert page.locator(".m-tabs [aria-current=page]").inner_text() == "Annotators"
    page.get_by_role("link", name="Quality").click()
    page.get_by_text("Correlation of scores from two random halves").first.wait_for()
    page.go_back()
    page.wait_for_url("**/manage/study/annotators")
    page.get_by_role("rowheader", name="bob").wait_for()
    page.get_by_role("link", name="Activity").click()
    page.get_by_text("10 judgments by 2 annotators").wait_for()
    page.get_by_text("This study is not connected to Prolific.").wait_for()
    page.get_by_role("link", name="Overview").click()
    page.locator("#verdict-sentence").get_by_text("Reliability").wait_for()
    tables = {url.split("/tables/")[1].split("?")[0] for url in requests if "/tables/" in url}
    assert tables == {"annotators", "statistics", "activity", "notes", "leased_tasks"}


SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts.push(entry.value);
}).observe({ type: "layout-shift", buffered: true });
"""
SLOW = {"offline": False, "latency": 300, "downloadThroughput": 50_000, "uploadThroughput": 50_000}
"""A poor mobile connection: 400 kbit/s, 300 ms."""


@pytest.mark.parametrize("width", [1280, 360])
def test_nothing_moves_while_a_tab_loads_over_a_slow_connection(watched, open_page, manager_of, width):
    manager = manager_of(watched)
    wait_for(lambda: set(manager.get("/summary").json()["parts"]) == set(PARTS))
    page = open_page(watched, "/manage/", width=width, height=800)
    page.add_init_script(SHIFTS)
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.send("Network.emulateNetworkConditions", SLOW)
    for tab in ("", "results", "quality", "annotators", "activity", "export"):
        page.goto(f"{watched.url}/manage/{watched.slug}/{tab}", wait_until="commit")
        page.wait_for_function("() => document.getElementById('tab') && !document.querySelector('.m-settling')")
        page.wait_for_function("() => !document.querySelector('.m-chart:not([hidden]) .m-skeleton')")
        page.wait_for_timeout(300)
        # Below .1 is good (web.dev/cls).
        assert sum(page.evaluate("window.shifts")) < 0.05, tab or "overview"


def test_a_page_misses_no_result_that_was_computed_before_it_listened(watched, open_page, manager_of):
    """The tables once stayed on "Computing…": the results had come between the first look and the stream."""
    manager = manager_of(watched)
    wait_for(lambda: set(manager.get("/summary").json()["parts"]) == set(PARTS))
    looks: list[str] = []

    def without_results(route):
        response = route.fetch()
        summary = json.loads(html.unescape(re.search(r'data-first="([^"]*)"', response.text())[1]))
        early = html.escape(json.dumps({**summary, "parts": {}, "charts": [], "as_of": None, "verdict": None}))
        before, _, rest = response.text().partition('data-first="')
        route.fulfill(response=response, body=f'{before}data-first="{early}"{rest.partition(chr(34))[2]}')

    def too_early(route):
        # The first look at each table finds nothing; the stream then begins, and no further result is computed.
        name = route.request.url.split("?")[0]
        if name in looks:
            route.continue_()
        else:
            looks.append(name)
            route.fulfill(json={"columns": [], "rows": [], "total": 0, "as_of": None})

    page = open_page(watched, "/manage/")
    page.route("**/manage/study/results", without_results)
    page.route("**/tables/**", too_early)
    page.goto(f"{watched.url}/manage/{watched.slug}/results")
    page.get_by_role("table", name="Scores").get_by_role("link", name="w3").wait_for()
    assert not page.locator("#scores-table").get_by_text("Computing…").is_visible()
    assert any(name.endswith("/tables/scores") for name in looks)


def test_annotators_are_cards_on_a_phone_with_name_time_and_buttons_in_sight(watched, open_page):
    page = open_page(watched, f"/manage/{watched.slug}/annotators", width=360, height=740)
    name = page.get_by_role("rowheader", name="bob")
    name.wait_for()
    card = page.locator("tr", has=name)
    # All at once, as new results replace the rows.
    boxes = card.evaluate(
        """row => [row.querySelector("th"), row.querySelector("time"), row.querySelector("[aria-label='Exclude bob']")]
            .map((element) => element.getBoundingClientRect().toJSON())"""
    )
    for box in boxes:
        assert box["width"] > 0
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
    # One below the other, so that none covers another.
    assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"]
    assert boxes[1]["y"] + boxes[1]["height"] <= boxes[2]["y"]
    assert boxes[1]["height"] < 30, "the time stays on one line"
    # Nobody repeated an answer: what is not known takes no room.
    assert not card.locator("[data-label='Self-consistency']").is_visible()
    assert no_sideways_scrolling(page)


def test_a_report_is_created_in_the_browser_survives_a_reload_and_is_downloaded(judged, open_page, axe, tmp_path):
    page = open_page(judged, f"/manage/{judged.slug}/export")
    page.get_by_text("Reports that you create are kept here.").wait_for()
    page.get_by_role("button", name="Create report").click()
    page.get_by_text("Creating the report").wait_for()
    page.reload()
    link = page.get_by_role("list", name="Reports").get_by_role("link", name="Download HTML")
    link.wait_for(timeout=90_000)
    with page.expect_download() as download:
        link.click()
    assert download.value.suggested_filename.startswith("study-report-")
    download.value.save_as(tmp_path / "report.html")
    report = page.context.new_page()
    report.goto((tmp_path / "report.html").as_uri())
    report.get_by_role("heading", name="Words").wait_for()
    for tab in ("export", "", "results", "quality", "annotators", "activity"):
        page.goto(f"{judged.url}/manage/{judged.slug}/{tab}")
        page.wait_for_function("() => ![...document.querySelectorAll('.m-skeleton')].some((e) => e.checkVisibility())")
        assert complaints_light_and_dark(axe, page) == []
