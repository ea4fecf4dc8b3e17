"""Every table and figure of the four papers has a row in the index, and the page has the index of today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reproductions import index
from reproductions.base import Shown
from reproductions.catalogue import experiments
from scripts import reproductions
from steelyard.errors import ConfigError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reproductions.md"
# Counted in the papers' texts: tables and figures with a caption.
CAPTIONS = {
    "Sakaguchi & Van Durme, 2018": {"Table 1", *(f"Figure {n}" for n in range(1, 12))},
    "Pighin et al., 2012": {*(f"Table {n}" for n in (1, 2, 3)), *(f"Figure {n}" for n in (1, 2, 3))},
    "Snow et al., 2008": {*(f"Table {n}" for n in (1, 2, 3, 4)), *(f"Figure {n}" for n in range(1, 8))},
    "Kiritchenko & Mohammad, 2017": {*(f"Table {n}" for n in (1, 2, 3)), "Figure 1", "Figure 2"},
}


def test_every_table_and_figure_of_the_four_papers_has_one_row():
    rows = list(index.rows())
    for paper, captions in CAPTIONS.items():
        names = [row.what for row in rows if row.paper == paper]
        assert set(names) == captions
        assert len(names) == len(captions)
    assert len(rows) == sum(map(len, CAPTIONS.values()))


def test_rows_that_are_not_reproduced_say_why():
    for row in index.rows():
        assert row.reasons or row.status == "reproduced"
        assert row.experiments or row.status == "impossible"
    with pytest.raises(ConfigError, match="Give a reason"):
        Shown("Table 1", "approximated")


def test_experiments_name_only_tables_and_figures_that_their_paper_has():
    for cls in experiments().values():
        for shown in cls.shows:
            assert shown.what in CAPTIONS[cls.paper], cls.name


def test_the_page_has_the_index_and_the_sections_that_it_links_to():
    text = PAGE.read_text(encoding="utf-8")
    assert reproductions.index_table() in text
    for row in index.rows():
        for name in row.experiments:
            assert f"`python -m reproductions {name}`" in text
            assert f"### {experiments()[name].title}\n" in text


def test_anchors_are_those_of_the_site():
    from markdown.extensions.toc import slugify  # type: ignore[import-untyped]

    for title in re.findall(r"^### (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE):
        assert reproductions._anchor(title) == slugify(title, "-")
