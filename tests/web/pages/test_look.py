"""What the page looks like: sliders without a thumb, what fits where, right to left, dark, light in weight."""

from __future__ import annotations

import gzip
import struct
import zlib

import pytest

from tests.web.conftest import start_in_thread
from tests.web.pages.judge import judgments_of
from tests.web.pages.studies import write_study

pytestmark = [pytest.mark.browser, pytest.mark.server]

ACCENT = (0x2C, 0x5E, 0x8A)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    source = {"context": "Der Zug kommt nicht.", "reference": "The train is not coming."}
    long = "A sentence that goes on for a while, " * 20
    studies = [
        write_study(folder / "sorted", 'name = "scored_ranking"\nsize = 3', page="sort_live = true"),
        write_study(folder / "hidden", 'name = "direct"', page="show_value = false"),
        write_study(folder / "sourced", 'name = "direct"', columns=source, page='context_label = "Source"'),
        write_study(folder / "sourced-pairs", columns={"context": "Der Zug kommt nicht."}),
        write_study(folder / "uneven", 'name = "likert"'),
        write_study(folder / "uneven-four", 'name = "best_worst"', items=4),
        write_study(folder / "untied", 'name = "ranking"\nsize = 3\nties = false'),
        write_study(folder / "arabic", people='language = "ar"'),
        write_study(folder / "arabic-graded", 'name = "pairwise"\nsteps = 5', people='language = "ar"'),
        write_study(folder / "rich", 'name = "direct"', page='content = "markdown"'),
    ]
    for name in ("arabic", "arabic-graded"):
        config = folder / name / "study.toml"
        text = config.read_text(encoding="utf-8").replace("How good are they?", "أيهما أفضل؟")
        config.write_text(text, encoding="utf-8")
    (folder / "uneven-four" / "items.csv").write_text(
        f"id,text\na,short\nb,{long * 2!r}\nc,brief\nd,so\n".replace("'", '"')
    )
    rows = "\n".join(f'{letter},"{letter} {long if letter in "ace" else ""}"' for letter in "abcdef")
    (folder / "uneven" / "items.csv").write_text(f"id,text\n{rows}\n", encoding="utf-8")
    (folder / "rich" / "items.csv").write_text("id,text\na,**bold** and `code`\nb,مرحبا بالعالم\n", encoding="utf-8")
    started = start_in_thread(studies)
    yield started
    started.stop()


def pixels(png: bytes) -> set[tuple[int, int, int]]:
    """The colours in a PNG of 8-bit RGB or RGBA, as Chromium writes them."""
    width, height = struct.unpack(">II", png[16:24])
    size = {2: 3, 6: 4}[png[25]]
    data, at = b"", 8
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        data += png[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    raw, line = zlib.decompress(data), width * size
    before = bytearray(line)
    colours: set[tuple[int, int, int]] = set()
    for row in range(height):
        start = row * (line + 1)
        method, current = raw[start], bytearray(raw[start + 1 : start + 1 + line])
        for i in range(line):
            left = current[i - size] if i >= size else 0
            up, corner = before[i], before[i - size] if i >= size else 0
            guess = left + up - corner
            paeth = sorted((abs(guess - value), rank, value) for rank, value in enumerate((left, up, corner)))[0][2]
            current[i] = (current[i] + (0, left, up, (left + up) // 2, paeth)[method]) % 256
        colours |= {(current[i], current[i + 1], current[i + 2]) for i in range(0, line, size)}
        before = current
    return colours


def test_a_slider_has_no_thumb_until_it_is_touched_and_the_middle_counts_as_touched(studies, judge):
    person = judge(f"{studies.url}/s/direct/", "anchor")
    box = person.page.locator(".slider-track").bounding_box()
    # Of the thumb, which is 24 px high, a strip is enough.
    strip = {"x": box["x"], "y": box["y"] + box["height"] / 2 - 3, "width": box["width"], "height": 6}
    assert ACCENT not in pixels(person.page.screenshot(clip=strip))
    assert person.page.locator(".slider-value").inner_text() == "–"
    person.page.locator(".slider-track input").click()
    assert ACCENT in pixels(person.page.screenshot(clip=strip))
    assert person.page.locator(".slider-value").inner_text() == "50"
    assert person.page.locator("#submit").get_attribute("aria-disabled") == "false"


def test_a_slider_has_words_at_its_ends_and_in_the_middle(studies, judge):
    person = judge(f"{studies.url}/s/direct/", "reader")
    track = person.page.locator(".slider-track").bounding_box()
    low, middle, high = [word.bounding_box() for word in person.page.locator(".slider-labels > span").all()]
    assert low["x"] == pytest.approx(track["x"], abs=1)
    assert middle["x"] + middle["width"] / 2 == pytest.approx(track["x"] + track["width"] / 2, abs=2)
    assert high["x"] + high["width"] == pytest.approx(track["x"] + track["width"], abs=1)


def test_the_number_is_hidden_where_the_study_says_so(server, judge):
    person = judge(f"{server.url}/s/hidden/", "unbiased")
    person.press("9")
    assert person.page.locator(".slider-value").is_hidden()


def test_live_sorting_puts_the_highest_first_and_the_unset_last(server, judge):
    person = judge(f"{server.url}/s/sorted/", "sorter")
    person.page.emulate_media(reduced_motion="reduce")
    first, second, third = person.items()
    person.press("3", "Tab", "8")
    assert person.items() == [second, first, third]
    focused = person.page.evaluate("document.activeElement.closest('.judging').querySelector('.content').innerText")
    assert focused == f"word {second}"
    person.page.get_by_role("slider", name=f"word {third}").focus()
    before = person.shown()
    person.press("9")
    assert person.items() == [third, second, first]
    person.submit()
    person.wait_for_task(other_than=before)
    person.saved()
    assert judgments_of(server, "sorted", "sorter") == [{first: 25, second: 88, third: 100}]


def test_ties_cannot_be_made_where_they_are_switched_off(server, judge):
    person = judge(f"{server.url}/s/untied/", "strict")
    assert person.page.get_by_role("button", name="Tie with").count() == 0
    person.page.locator(".handle").nth(1).focus()
    person.press("=")
    assert person.page.locator(".tied-above").count() == 0


@pytest.mark.parametrize(("study", "things"), [("sourced", ".beside > .panel"), ("sourced-pairs", ".choice-card")])
def test_sources_and_pairs_stand_side_by_side_from_900_pixels_and_stacked_below(server, judge, study, things):
    person = judge(f"{server.url}/s/{study}/", "wide")
    person.page.set_viewport_size({"width": 900, "height": 800})
    wide = [thing.bounding_box() for thing in person.page.locator(things).all()]
    assert len({box["y"] for box in wide}) == 1
    person.page.set_viewport_size({"width": 899, "height": 800})
    narrow = [thing.bounding_box() for thing in person.page.locator(things).all()]
    assert len({box["x"] for box in narrow}) == 1


def test_head_and_buttons_stay_where_they_are_when_the_next_task_comes(server, judge):
    """Some of these texts are twenty times as long as others."""
    person = judge(f"{server.url}/s/uneven/", "steady")
    places = []
    for _ in range(4):
        places.append([person.page.locator(part).bounding_box() for part in (".top", "#submit", "#back")])
        person.answer("3")
    assert all(place == places[0] for place in places)


def test_an_arabic_page_runs_from_right_to_left(server, judge):
    """In a British browser: what the study says comes first."""
    person = judge(f"{server.url}/s/arabic/", "عمر")
    page = person.page
    assert page.evaluate("[document.documentElement.lang, document.documentElement.dir]") == ["ar", "rtl"]
    assert page.locator("#submit").inner_text().startswith("إرسال")
    first, second = [card.bounding_box() for card in page.locator(".choice-card").all()]
    assert first["x"] > second["x"]
    assert page.locator("#submit").bounding_box()["x"] < page.locator("#back").bounding_box()["x"]
    person.press("ArrowLeft")
    assert page.locator(".choice-card input").nth(1).is_checked()
    assert page.evaluate("document.documentElement.scrollWidth") == 1280


def test_grades_run_from_right_to_left_though_they_begin_with_a_latin_letter(server, judge):
    person = judge(f"{server.url}/s/arabic-graded/", "عمر")
    words = person.page.locator(".step-words").all()
    assert [one.get_attribute("dir") for one in words] == ["rtl", "rtl", "auto", "rtl", "rtl"]
    boxes = [one.bounding_box()["x"] for one in words]
    assert boxes == sorted(boxes, reverse=True)


def test_an_arabic_browser_does_not_mirror_the_scale_of_an_english_study(server, judge):
    person = judge(f"{server.url}/s/hidden/", "زائر")
    page = person.page
    # Nothing is answered yet, and there is no total to set it against.
    assert page.locator("#progress").inner_text() == ""
    person.context.set_extra_http_headers({"Accept-Language": "ar"})
    page.reload()
    person.wait_for_task()
    assert page.evaluate("document.documentElement.dir") == "rtl"
    low, high = [word.bounding_box() for word in page.locator(".slider-labels > span").all()]
    assert low["x"] < high["x"]
    item = person.items()[0]
    track = page.locator(".slider-track input").bounding_box()
    page.mouse.click(track["x"] + 0.9 * track["width"], track["y"] + track["height"] / 2)
    person.submit()
    person.says("✓ حُفظ")
    (answer,) = judgments_of(server, "hidden", "زائر")
    assert answer[item] > 80
    assert "1" in page.locator("#progress").inner_text()


def test_headings_are_the_study_s_own_and_rows_of_a_task_are_aligned_alike(server, judge):
    person = judge(f"{server.url}/s/sourced/", "reader")
    assert person.page.locator(".panel-title").all_text_contents() == ["Source", "Reference", "To judge"]
    person = judge(f"{server.url}/s/uneven-four/", "aligned")
    lefts = "[...document.querySelectorAll('.thing .content')].map(e => getComputedStyle(e).textAlign)"
    assert person.page.evaluate(lefts) == ["start"] * 4


def test_the_page_speaks_the_browsers_language_or_english(studies, judge):
    person = judge(f"{studies.url}/s/pairwise/", "abroad")
    languages = {}
    for language in ("es-MX", "de-AT", "zh-CN", "ja", "ru", "hi-IN", "fi-FI"):
        person.context.set_extra_http_headers({"Accept-Language": language})
        person.page.reload()
        person.wait_for_task()
        languages[language] = person.page.locator("#submit > span").inner_text()
    assert languages == {
        "es-MX": "Enviar",
        "de-AT": "Absenden",
        "zh-CN": "提交",
        "ja": "送信",
        "ru": "Отправить",
        "hi-IN": "भेजें",
        "fi-FI": "Submit",
    }


def test_another_language_can_be_chosen_in_mid_task_and_stays_chosen(studies, judge):
    person = judge(f"{studies.url}/s/pairwise/", "polyglot")
    person.press("1")
    person.change_language("de")
    person.says("Etwa gleich")
    assert person.page.locator(".choice-card input").nth(0).is_checked()
    assert person.page.locator("#skip").inner_text().startswith("Auslassen")
    person.page.reload()
    person.says("Absenden")


def test_right_to_left_items_and_markdown_are_shown_as_such(server, judge):
    person = judge(f"{server.url}/s/rich/", "mixed")
    html_by_direction = {}
    for _ in range(2):
        content = person.page.locator("main .content")
        html_by_direction[content.get_attribute("dir")] = content.inner_html()
        if len(html_by_direction) < 2:
            person.answer("5")
    assert "<strong>bold</strong>" in html_by_direction["ltr"]
    assert "مرحبا" in html_by_direction["rtl"]


def test_dark_mode_is_respected(studies, judge):
    page = judge(f"{studies.url}/s/pairwise/", "owl").page
    background = "getComputedStyle(document.documentElement).backgroundColor"
    assert page.evaluate(background) == "rgb(246, 247, 249)"
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(background) == "rgb(18, 22, 27)"


def test_the_page_weighs_less_than_100_kilobytes_as_it_travels(studies, judge):
    """Everything up to the first task, compressed as the server sends it; the typeface is 43 kB of it."""
    person = judge(f"{studies.url}/s/pairwise/", "weigher")
    for language in ("en", "ar", "hi"):
        person.context.set_extra_http_headers({"Accept-Language": language})
        person.page.reload()
        person.page.wait_for_load_state("networkidle")
        loaded = person.page.evaluate(
            "[location.href, ...performance.getEntriesByType('resource').map(entry => entry.name)]"
        )
        asked_by_post = f"{studies.url}/api/v1/studies/pairwise/tasks"
        bodies = [person.context.request.get(url).body() for url in loaded if url != asked_by_post]
        assert len(bodies) > 20
        weight = sum(len(gzip.compress(body)) for body in bodies)
        assert weight < 100_000, (language, weight)


def test_nothing_is_said_about_waiting_in_the_first_300_milliseconds(studies, judge):
    person = judge(f"{studies.url}/s/pairwise/", "calm")
    routes = person.hold("**/judgments")
    person.answer("1")
    style = "getComputedStyle(document.getElementById('saved'))"
    delay = person.page.evaluate(f"[{style}.animationName, {style}.animationDelay]")
    assert delay == ["appear", "0.3s"]
    routes[0].continue_()
    person.saved()
