"""docs/reference/files.md says what the readers do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from steelyard.formats import read_items, read_judgments, supported
from steelyard.formats.items import ALIASES as ITEM_ALIASES
from steelyard.formats.roles import ALIASES as JUDGMENT_ALIASES

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
            assert all(f"`{name}`" in plain_page for name in others), field
    assert all(ending.removesuffix(".gz") in TEXT for ending in supported)
