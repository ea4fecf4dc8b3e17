from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from steelyard.errors import DataError, Problem
from steelyard.formats import item_table, read_items, write_table
from steelyard.records import Item

pd = pytest.importorskip("pandas")


def items(folder: Path, text: str) -> Path:
    path = folder / "items.csv"
    path.write_text(text)
    return path


def problems(folder: Path, text: str, **options: object) -> tuple[Problem, ...]:
    path = items(folder, text)
    with pytest.raises(DataError) as caught:
        read_items(path, **options)  # type: ignore[arg-type]
    assert all(problem.file == str(path) and problem.remedy for problem in caught.value.problems)
    return caught.value.problems


def test_every_field_is_read(tmp_path: Path) -> None:
    path = items(
        tmp_path,
        "id,text,group,context,reference,media,tags,gold\n"
        " 007 ,a cat,uedin,un gato,the cat,cat.png,animal; short,71\n"
        "1e5,b,,,,,,\n",
    )
    assert read_items(path) == [
        Item("007", "a cat", "uedin", "un gato", "the cat", "cat.png", ("animal", "short"), "71"),
        Item("1e5", "b"),
    ]


def test_aliases_and_mapping_name_the_same_fields(tmp_path: Path) -> None:
    path = items(tmp_path, "Item_ID,headline,system,source,ref,image\n1,t,g,c,r,m\n")
    expected = [Item("1", "t", "g", "c", "r", "m")]
    assert read_items(path) == expected
    theirs = items(tmp_path, "key,title,mt,notes\n1,t,g,x\n")
    mapped = read_items(theirs, columns={"id": "key", "text": "title", "group": "mt"}, ignore=["notes"])
    assert mapped == [Item("1", "t", "g")]


def test_text_serves_as_id_and_id_as_text(tmp_path: Path) -> None:
    assert read_items(items(tmp_path, "text\ndog\ncat\n")) == [Item("dog", "dog"), Item("cat", "cat")]
    assert read_items(items(tmp_path, "id\ndog\n")) == [Item("dog", "dog")]
    assert read_items(items(tmp_path, "verb\ngo\ncook\n")) == [Item("go", "go"), Item("cook", "cook")]
    assert read_items(items(tmp_path, "image\na.png\n")) == [Item("a.png", "", media="a.png")]


def test_media_may_stand_without_text(tmp_path: Path) -> None:
    path = items(tmp_path, "id,text,image\n1,,a.png\n2,b,\n")
    assert read_items(path) == [Item("1", "", media="a.png"), Item("2", "b")]


def test_all_wrong_rows_are_reported_at_once_by_line(tmp_path: Path) -> None:
    messages = problems(tmp_path, 'id,text\ndog,"a\ndog"\n,b\ncat,\ndog,c\n')
    assert [(p.line, p.field) for p in messages] == [(4, "id"), (5, "text"), (6, "id")]
    assert messages[2].what == "id 'dog' appears twice; it is first on line 2."


def test_repeated_texts_cannot_be_ids(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "word\ndog\ndog\n")
    assert (found.line, found.remedy) == (3, "Add an id column.")


def test_other_columns_are_metadata_of_the_items(tmp_path: Path) -> None:
    path = items(tmp_path, "id,text,domain,Publication year,notes,\n1,a,news,1999,x,\n2,b,,2001,y,\n")
    assert read_items(path, ignore=["notes"]) == [
        Item("1", "a", metadata={"domain": "news", "Publication year": "1999"}),
        Item("2", "b", metadata={"Publication year": "2001"}),
    ]


def test_metadata_of_any_type_is_text() -> None:
    row = {"id": 1, "text": "a", "year": 1999.0, "day": date(2026, 11, 18), "words": ["x", "ü"], "more": {"k": 1}}
    assert read_items(pl.DataFrame([row]))[0].metadata == {
        "year": "1999",
        "day": "2026-11-18",
        "words": '["x", "ü"]',
        "more": '{"k": 1}',
    }


def test_a_misspelt_text_column_is_not_taken_for_metadata(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "id,txet\n1,a\n")
    assert found.field == "txet"
    assert 'columns = { text = "their_name" }, ignore = ["notes"] }' in found.remedy
    assert read_items(items(tmp_path, "id,frequency\ndog,7\n")) == [Item("dog", "dog", metadata={"frequency": "7"})]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_written_items_read_back_as_they_were(tmp_path: Path, suffix: str) -> None:
    originals = [
        Item("007", "a cat", "uedin", "un gato", "the cat", "cat.png", ("animal", "short"), "71", {"domain": "pets"}),
        Item("1e5", "b", metadata={"domain": "law", "id": "shadowed", "year": "1999"}),
    ]
    write_table(item_table(originals), tmp_path / f"items.{suffix}")
    again = read_items(tmp_path / f"items.{suffix}")
    assert again[0] == originals[0]
    assert again[1] == replace(originals[1], metadata={"domain": "law", "metadata_id": "shadowed", "year": "1999"})


def test_two_columns_for_one_field_are_refused(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "id,word,sentence\n1,a,b\n")
    assert found.what == "'word' and 'sentence' could both be the text."
    (found,) = problems(tmp_path, "id,item,text\n1,2,b\n")
    assert found.what == "'id' and 'item' could both be the id."
    chosen = read_items(items(tmp_path, "id,word,sentence\n1,a,b\n"), columns={"text": "word"})
    assert chosen == [Item("1", "a", metadata={"sentence": "b"})]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("id,text\n", {}),
        ("gold,tags\n1,2\n", {}),
        ("id,text\n1,a\n", {"columns": {"text": "headline"}}),
        ("id,text\n1,a\n", {"columns": {"txt": "text"}}),
        ("id,text\n1,a\n", {"ignore": ["notes"]}),
    ],
    ids=["no items", "nothing to show", "no such column", "no such field", "nothing to ignore"],
)
def test_what_cannot_be_items_is_refused(tmp_path: Path, text: str, options: dict[str, object]) -> None:
    assert problems(tmp_path, text, **options)


def test_frames_give_items_too() -> None:
    expected = [Item("1", "a", tags=("x", "y"), gold="0.5")]
    row = {"id": 1, "text": "a", "tags": ["x", "y"], "gold": 0.5}
    assert read_items(pl.DataFrame([row])) == expected
    assert read_items(pd.DataFrame([row])) == expected
    assert read_items([row]) == expected
