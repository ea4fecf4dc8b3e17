"""docs/reference/files.md says what the readers do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from steelyard.formats import read_items, read_judgments, supported
from steelyard.formats.items import ALIASES as ITEM_ALIASES
from steelyard.formats.roles import ALIASES as JUDGMENT_ALIASES
from steelyard.formats.winners import NOUNS, is_both_bad, outcome_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "files.md"
TEXT = PAGE.read_text(encoding="utf-8")
ABOUT_ITEMS = TEXT[TEXT.index("## Items") : TEXT.index("## Judgments")]
ABOUT_JUDGMENTS = TEXT[TEXT.index("## Judgments") :]


def blocks(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(csv|jsonl)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("ending", "block"), blocks(ABOUT_ITEMS))
def test_every_example_of_items_is_read(tmp_path: Path, ending: str, block: str) -> None:
    path = tmp_path / f"items.{ending}"
    path.write_text(block, encoding="utf-8")
    assert len(read_items(path)) == block.count("\n") - (ending == "csv")


@pytest.mark.parametrize(("ending", "block"), blocks(ABOUT_JUDGMENTS))
def test_every_example_of_judgments_is_read_even_strictly(tmp_path: Path, ending: str, block: str) -> None:
    path = tmp_path / f"log.{ending}"
    path.write_text(block, encoding="utf-8")
    read = read_judgments(path, strict=True)
    assert sum(map(len, read.by_criterion.values())) == block.count("\n") - (ending == "csv")


def test_every_field_alias_and_ending_is_on_the_page() -> None:
    assert len(blocks(TEXT)) > 12
    plain_page = TEXT.replace("_", "")
    for aliases, part in ((ITEM_ALIASES, ABOUT_ITEMS), (JUDGMENT_ALIASES, ABOUT_JUDGMENTS)):
        for field, others in aliases.items():
            assert field in part
            sides = {f"{noun}{side}" for noun in NOUNS for side in ("a", "b", "1", "2", "left", "right")}
            assert all(f"`{name}`" in plain_page for name in set(others) - sides), field
    assert all(f"`{noun}`" in TEXT for noun in NOUNS if noun != "model")
    assert all(ending.removesuffix(".gz") in TEXT for ending in supported)


def test_every_spelling_of_a_winner_on_the_page_is_recognised() -> None:
    rows = re.findall(r"^\| (left|right|tie|tie, counted in a note) \| (.*) \|$", TEXT, re.MULTILINE)
    assert len(rows) == 4
    for outcome, cells in rows:
        for word in re.findall(r"`([^`]+)`", cells):
            assert outcome_of(word) == {"left": 1, "right": -1}.get(outcome, 0), word
            assert is_both_bad(word) == outcome.endswith("note"), word
