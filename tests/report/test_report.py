"""The report: every number comes from the log, nothing is invented, nothing runs, nothing is fetched."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import polars as pl
import pytest

from steelyard import Study
from steelyard.formats import read_table
from steelyard.report.assets import write_assets
from steelyard.report.builder import build_report
from steelyard.report.html import _inline, html_page
from steelyard.study import write_log
from tests.report.recomputed import SENTENCES, TABLES, WITHOUT_NUMBERS, Log
from tests.report.scenes import SPAMMERS, Clock, work, write_study

pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")


class Page(HTMLParser):
    """The tables of a page (rows of cells with their numbers), its elements, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[dict[str, str]]]] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._table = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag == "table":
            self._table = attributes["id"].removeprefix("table-")
            self.tables[self._table] = []
        elif tag == "tr" and self._table:
            self.tables[self._table].append([])
        elif tag == "td" and "data-column" in attributes:
            self.tables[self._table][-1].append(
                {k.removeprefix("data-"): v for k, v in attributes.items()} | {"text": ""}
            )

    def handle_endtag(self, tag):
        if tag == "table":
            self.tables[self._table] = [row for row in self.tables[self._table] if row]
            self._table = ""

    def handle_data(self, data):
        self.text += data
        if self._table and self.tables[self._table] and self.tables[self._table][-1]:
            self.tables[self._table][-1][-1]["text"] += data


class Made:
    """A study that was worked through, with its report under the annotators' own names, and its exported log."""

    def __init__(self, folder, kind: str) -> None:
        with Study.open(write_study(folder / kind, kind), clock=Clock()) as study:
            work(study)
            self.excluded = study.annotators.excluded
            self.document = build_report(study, real_ids=True)
            self.nameless = html_page(build_report(study))
            write_log(study, folder / f"{kind}.jsonl", real_ids=True)
            stage = study.status().stages[0]
            self.goal = {"done": stage.done, "planned": stage.total}
        self.page = html_page(self.document)
        self.read = Page(self.page)
        self.log = Log(folder / f"{kind}.jsonl")
        self.assets = folder / f"{kind}-assets"
        write_assets(self.document, self.assets)


@pytest.fixture(scope="module", params=["pairwise", "scored"])
def made(request, tmp_path_factory) -> Made:
    return Made(tmp_path_factory.mktemp("report"), request.param)


@pytest.mark.slow
def test_every_number_of_every_table_comes_from_the_exported_log(made):
    assert set(made.read.tables) - SENTENCES == set(TABLES) | WITHOUT_NUMBERS, "a table that nobody recomputes"
    numbers = 0
    for name, recompute in TABLES.items():
        expected = recompute(made.log)
        table_rows = made.read.tables[name]
        assert len(table_rows) == len(expected), name
        for row, (cells, right) in enumerate(zip(table_rows, expected, strict=True)):
            for cell in cells:
                place = f"{name}, row {row}, {cell['column']}"
                if cell["column"] in {"done", "planned"}:
                    # How much a design means to ask is the design's business; its own tests count that.
                    assert float(cell["value"]) == made.goal[cell["column"]]
                    continue
                for end, key in (("value", ""), ("lower", "_lower"), ("upper", "_upper")):
                    if end in cell:
                        column = cell["column"] + key if end == "value" else _end(right, cell["column"], end)
                        assert float(cell[end]) == pytest.approx(right[column], rel=1e-9, abs=1e-9), place
                        numbers += 1
                if (
                    "value" not in cell
                    and cell["column"] in right
                    and not isinstance(right[cell["column"]], str | bool)
                ):
                    assert right[cell["column"]] is None, f"{place}: a number is missing"
    assert numbers > 300


def _end(row, column: str, end: str) -> str:
    return f"{column}_{end}" if f"{column}_{end}" in row else end


def test_texts_show_the_numbers_behind_them(made):
    for name, rows in made.read.tables.items():
        for cell in (cell for row in rows for cell in row if "value" in cell):
            first = re.match(r"-?[\d,]+(\.\d+)?", cell["text"].strip())
            assert first, (name, cell)
            # Durations are hours, shown in the unit that suits them.
            unit = re.match(r"[\d.,]+ (s|min|h|days)\b", cell["text"].strip())
            factor = {"s": 3600, "min": 60, "h": 1, "days": 1 / 24}[unit[1]] if unit else 1
            value = float(cell["value"]) * (100 if "%" in cell["text"] else factor)
            displayed = float(first[0].replace(",", ""))
            assert displayed == pytest.approx(value, rel=0.06, abs=0.51 * 10.0 ** -len((first[1] or ".")[1:])), (
                name,
                cell,
            )


def test_the_scene_has_all_that_a_report_tells_of(made):
    """Otherwise the test above would pass on an empty page."""
    assert set(made.excluded) & set(SPAMMERS)
    kinds = {event["kind"] for event in made.log.events}
    assert {"exclusion", "readmission", "revision", "skip", "flag", "interim_analysis"} <= kinds
    assert {a["purpose"] for a in made.log.all()} == {"judgment", "overlap", "check", "repeat"}


def test_the_methods_paragraph_says_the_counts_and_cites_what_it_used(made):
    text = (made.assets / "methods.txt").read_text(encoding="utf-8")
    log = made.log
    people = len({a["annotator"] for a in log.counted()})
    assert f"{len(log.all()):,} answers about 10 items, of which {len(log.counted()):,} by {people}" in text
    assert f"{len(log.excluded)} annotator" in text
    assert f"{len(log.set_aside()):,} judgments were discarded" in text
    half = next(row for row in TABLES["reliability"](log) if row["statistic"] == "split_half_spearman")
    match = re.search(r"Split-half reliability \([^)]*\) was ([\d.]+) \(([\d.]+)–([\d.]+)\)", text)
    for shown, right in zip(match.groups(), (half["value"], half["value_lower"], half["value_upper"]), strict=True):
        assert float(shown) == pytest.approx(right, abs=0.006)
    entries = re.findall(r"^@\w+\{(\w+),", (made.assets / "references.bib").read_text(encoding="utf-8"), re.M)
    cited = {"pairwise": {"bradley1952"}, "scored_ranking": {"sakaguchi2018"}}[log.config["protocol"]["name"]]
    assert {"kiritchenko2017", "krippendorff2004", "steelyard"} | cited <= set(entries)
    for key, author in (("bradley1952", "Bradley & Terry"), ("sakaguchi2018", "Sakaguchi"), ("dawid1979", "Dawid")):
        assert (key in entries) == (author in text)


@pytest.mark.slow
def test_files_hold_the_whole_tables_and_every_figure(made):
    names = {path.name for path in made.assets.iterdir()}
    for name, rows in made.read.tables.items():
        assert f"{name}.tex" in names
        table = read_table(made.assets / f"{name}.csv")
        assert table.height == len(rows)
    figures = {
        given["id"].removeprefix("figure-")
        for tag, given in made.read.tags
        if tag == "figure" and "id" in given and str(given["id"]).startswith("figure-")
    }
    assert figures >= {"scores", "histogram", "agreement", "accuracy"}
    assert {f"{name}.{end}" for name in figures for end in ("svg", "png")} <= names
    assert (made.assets / "study.toml").read_text().startswith("title = 'Words'")


def test_the_page_fetches_nothing_and_runs_nothing(made):
    assert not [tag for tag, _ in made.read.tags if tag in {"script", "link", "img", "iframe", "object", "embed"}]
    for _, given in made.read.tags:
        for name, value in given.items():
            assert not name.startswith("on")
            assert name == "xmlns" or name.startswith("xmlns:") or "//" not in str(value or ""), (name, value)
            if name in {"href", "xlink:href"}:
                assert str(value).startswith("#")
    assert "@import" not in made.page
    # The typeface is in the page itself.
    assert not re.search(r"url\((?!#|data:font/woff2;base64,[\w+/=]+\))", made.page)
    assert made.page.count("url(data:") == 2
    assert "font-src data:" in made.page


def test_inner_names_of_the_drawings_do_not_meet(made):
    ids = [given["id"] for _, given in made.read.tags if given.get("id")]
    assert len(ids) == len(set(ids))
    id_set = set(ids)
    for target in re.findall(r'url\(#([\w-]+)\)|href="#([\w-]+)"', made.page):
        assert next(filter(None, target)) in id_set


def test_two_drawings_with_the_same_inner_names_do_not_share_them():
    drawing = '<svg><clipPath id="clip0"/><g clip-path="url(#clip0)"/><use href="#clip0"/></svg>'
    assert _inline(drawing, "one") == drawing.replace("clip0", "one-clip0")


def test_nobody_is_named_unless_it_is_asked_for(made):
    assert "person-" in made.page
    assert "person-" not in made.nameless
    assert re.search(r"A-\w{10} wrote that A-\w{10} helped", made.nameless)


def test_contents_lead_to_every_section(made):
    links = [str(given["href"])[1:] for tag, given in made.read.tags if tag == "a"]
    sections = [given["id"] for tag, given in made.read.tags if tag == "section"]
    assert links == sections
    assert {"scores", "reliability", "annotators", "checks", "repeats", "stopping", "exclusions", "costs"} <= set(links)


@pytest.mark.slow
def test_sections_without_data_vanish_and_one_line_says_why(make_study):
    folder = make_study('name = "direct"', 'name = "per_item"\njudgments = 2', items=5)
    with Study.open(folder) as study:
        document = build_report(study)
        keys = [section.key for section in document.sections if section.blocks]
        assert keys == ["summary", "task", "methods"]
        page = Page(html_page(document))
        for what in ("Scores", "Reliability", "Checks", "Repeats", "Stopping", "Exclusions", "Costs", "Participation"):
            assert any(line.startswith(f"{what}:") for line in document.absent), what
            assert f"{what}:" in page.text
        for name in ("ann", "bob"):
            while (task := study.ask(name)) is not None:
                study.tell(task, {item: 10 * len(item) + len(name) for item in task.item_ids})
        again = [section.key for section in build_report(study).sections if section.blocks]
        assert "scores" in again
        assert "checks" not in again
        assert "stopping" not in again


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&{{ 7*7 }}</style></svg>"


@pytest.mark.slow
def test_hostile_titles_items_and_names_stay_text(tmp_path):
    folder = tmp_path / "hostile"
    folder.mkdir()
    texts = pl.DataFrame({"id": [f"{HOSTILE}{n}" for n in range(4)], "text": [f"{n} {HOSTILE}" for n in range(4)]})
    texts.write_csv(folder / "items.csv")
    (folder / "study.toml").write_text(
        f"title = '''{HOSTILE}'''\nquestion = '''{HOSTILE}'''\nitems = 'items.csv'\n"
        "[protocol]\nname = 'direct'\n[design]\nname = 'per_item'\njudgments = 5\n"
    )
    with Study.open(folder, clock=Clock()) as study:
        for person in range(5):
            name = f"{person}{HOSTILE}"
            while (task := study.ask(name)) is not None:
                study.tell(task, {item: (len(item) * 7 + person * 13) % 100 for item in task.item_ids})
        study.annotators.exclude(f"4{HOSTILE}", f"because {HOSTILE}")
        document = build_report(study, real_ids=True)
        write_assets(document, tmp_path / "assets")
    page = html_page(document)
    read = Page(page)
    assert "<script" not in page
    assert "<img" not in page
    assert page.count("</style>") == 1
    assert read.text.count("{{ 7*7 }}") >= 5
    assert not [name for _, given in read.tags for name in given if name.startswith("on")]
    for path in (tmp_path / "assets").glob("*.svg"):
        assert "<script" not in path.read_text(encoding="utf-8")


def test_passwords_of_databases_do_not_get_into_the_report(make_study):
    folder = make_study(extra='database = "sqlite:///secret-place.db"')
    with Study.open(folder, database=f"sqlite:///{folder / 'other.db'}") as study:
        page = html_page(build_report(study))
    assert "secret-place" not in page
    assert "How positive?" in page


@pytest.mark.slow
def test_long_tables_show_their_ends_and_say_what_is_left_out(make_study):
    folder = make_study(items=320)
    with Study.open(folder) as study:
        for _ in range(320):
            task = study.ask("ann")
            study.tell(task, {item: int(item[1:]) % 97 for item in task.item_ids})
        document = build_report(study)
    table = document.table("scores")
    assert table.left_out == 20
    assert table.frame.height == 320
    assert len(Page(html_page(document)).tables["scores"]) == 300
    assert "20 more rows" in html_page(document)
