"""An ESA study for three systems: set up in the browser, ten segments annotated on a phone, exported."""

from __future__ import annotations

import json
import re
from itertools import groupby

import polars as pl
import pytest

from steelyard import Study
from tests.web.manage.test_new_study_pages import continue_to, fits
from tests.web.pages.judge import TOO_SOON

pytestmark = [pytest.mark.browser, pytest.mark.server]

SEGMENTS = [f"The quick brown fox number {n} jumps over the lazy dog." for n in range(5)]
OUTPUTS = "source,Alpha,Beta,Gamma,doc\n" + "".join(
    f"{text},Der schnelle Fuchs {n} springt,Ein Fuchs {n} hüpft,Fuchs {n} Hund,{'first' if n < 3 else 'second'}\n"
    for n, text in enumerate(SEGMENTS)
)


def _set_up(page, file) -> None:
    page.locator("#items-file").set_input_files(file)
    page.get_by_text("15 items").wait_for()
    continue_to(page, "What do you ask?")
    page.get_by_label("Title").fill("ESA")
    page.get_by_label("Question", exact=True).fill("Mark the errors in this translation. Then score it.")
    page.get_by_text("Error marking", exact=True).click()
    page.locator("#aside .marked-text").wait_for()
    page.get_by_label("Column with the document").select_option("doc")
    page.locator("#aside .neighbours").first.wait_for()
    continue_to(page, "How much do you need?")
    page.get_by_label("Judgments per item").fill("1")
    page.get_by_label("Whole documents").select_option("doc")
    page.get_by_text("text by text in the order of the file").wait_for()
    continue_to(page, "How are answers checked?")
    continue_to(page, "Who takes part?")
    page.get_by_text("Everything is complete").wait_for()
    page.get_by_role("button", name="Create study").click()
    page.get_by_text("The study is ready").wait_for()


def _annotate(page, number: int) -> None:
    """Mark the second word as an error, except in every third text, and score."""
    page.locator("main .marked-text").wait_for()
    before = page.locator("main .task").inner_text()
    page.wait_for_timeout(1000 * TOO_SOON + 50)
    if number % 3:
        page.locator("main .marked-text span").nth(2).tap()
        page.get_by_role("button", name="major" if number % 2 else "minor", exact=False).first.tap()
    page.locator("main input[type=range]").tap()
    page.locator("#submit").tap()
    page.wait_for_function("before => document.querySelector('main .task')?.innerText !== before", arg=before)


def test_an_esa_study_from_the_browser_to_the_export(serve_study, open_page, tmp_path):
    workspace = tmp_path / "workspace"
    server = serve_study(workspace=workspace)
    file = tmp_path / "outputs.csv"
    file.write_text(OUTPUTS, encoding="utf-8")
    page = open_page(server, "/manage/new")
    _set_up(page, file)
    address = page.get_by_role("textbox", name="Link for annotators").input_value()

    phone = open_page(server, "/manage/", width=360, height=740, has_touch=True, is_mobile=True)
    phone.goto(address)
    phone.get_by_role("textbox").fill("ann")
    phone.keyboard.press("Enter")
    phone.get_by_role("button", name=re.compile("Begin")).tap()
    for number in range(10):
        _annotate(phone, number)
        assert fits(phone)
    phone.get_by_text("10 answered").wait_for()

    page.goto(f"{server.url}/manage/esa/export")
    with page.expect_download() as download:
        page.locator('a[href*="download/marks.csv"]').click()
    marks = pl.read_csv(download.value.path())
    assert marks.height == 6
    assert set(marks["severity"]) == {"minor", "major"}
    assert (marks["text"].str.len_chars() > 0).all()
    with Study.open(workspace / "esa") as study:
        answers = [json.loads(answer) for answer in study.judgments()["answer"]]
        assert len(answers) == 10
        assert study.config.stages[0].design.settings() == {"judgments": 1, "document": "doc", "hold_minutes": 30.0}
        # Whole documents, one system after the other: the texts of a document in the order of the file.
        items = {item.id: item for item in study.items}
        order = {text: number for number, text in enumerate(SEGMENTS)}
        texts = [items[next(iter(answer))] for answer in answers]
        documents = [(text.metadata["doc"], text.group) for text in texts]
        assert len(list(groupby(documents))) == len(set(documents))
        for _, own in groupby(texts, key=lambda text: (text.metadata["doc"], text.group)):
            places = [order[text.context] for text in own]
            assert places == list(range(places[0], places[0] + len(places)))
            assert places[0] in {0, 3}
        assert sum(bool(value["spans"]) for answer in answers for value in answer.values()) == 6
