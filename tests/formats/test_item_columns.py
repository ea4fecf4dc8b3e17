"""Guessing what the columns of an upload hold, and the items that follow from it."""

from __future__ import annotations

import pytest

from steelyard.errors import DataError
from steelyard.formats.item_columns import guess_roles, items_of_upload
from steelyard.formats.uploads import ReadingOptions, read_upload


def upload_of(text: str, name: str = "mine.csv"):
    return read_upload(text.encode(), name)


@pytest.mark.parametrize(
    ("header", "row", "roles"),
    [
        ("id,text", "1,a b c", ["id", "text"]),
        ("Headline,Newspaper", "Man bites dog,Times", ["text", "extra"]),
        ("src,mt_system,translation,ref", "x y,A,u v,w", ["source", "extra", "text", "reference"]),
        ("source,system,output", "x y,A,u v", ["source", "system", "text"]),
        ("prompt,gpt,llama", "why so,because of it,no idea at all", ["source", "output", "output"]),
        ("question,answer,model", "why,because,A", ["source", "text", "system"]),
        ("picture,caption here", "cat.png,A cat sits", ["media", "text"]),
        ("file,who", "a.wav,ann", ["media", "text"]),
        ("sentence,gold,tags", "a b,yes,x;y", ["text", "gold", "tags"]),
        ("Nummer,Satz", "1,Das ist gut", ["extra", "text"]),
        ("prompt", "write a poem", ["text"]),
    ],
)
def test_columns_are_recognised_by_name_and_content(header, row, roles):
    second = ",".join(str(int(cell) + 1) if cell.isdecimal() else f"x{cell}" for cell in row.split(","))
    table = read_upload(f"{header}\n{row}\n{second}\n".encode(), "mine.csv", ReadingOptions(has_header=True))
    assert list(guess_roles(table).values()) == roles


def test_one_column_per_system_becomes_one_item_per_output_whose_id_hides_the_system():
    upload = upload_of("source,Alpha,Beta\nein Satz,a sentence,one sentence\nnoch einer,another,\n")
    reading = items_of_upload(upload, guess_roles(upload))
    outputs = {(item.context, item.group, item.text) for item in reading.items}
    assert outputs == {
        ("ein Satz", "Alpha", "a sentence"),
        ("ein Satz", "Beta", "one sentence"),
        ("noch einer", "Alpha", "another"),
    }
    assert "1 empty row is left out." in reading.notes
    assert not any("alpha" in item.id.lower() or "beta" in item.id.lower() for item in reading.items)


def test_ids_that_tell_the_system_are_replaced_and_others_are_kept():
    telling = upload_of("id,source,system,output\nA-1,s,A,x\nB-1,s,B,y\n")
    reading = items_of_upload(telling, guess_roles(telling))
    assert {item.id for item in reading.items}.isdisjoint({"A-1", "B-1"})
    neutral = upload_of("id,source,system,output\n17,s,Alpha,x\n18,s,Beta,y\n")
    assert [item.id for item in items_of_upload(neutral, guess_roles(neutral)).items] == ["17", "18"]


def test_repeated_texts_are_named_with_their_lines_and_may_be_left_out():
    upload = upload_of("text\nsame thing\nother thing\nsame thing\n")
    with pytest.raises(DataError, match=r"mine\.csv line 4 .*'same thing' appears twice.*first on line 2"):
        items_of_upload(upload, {"text": "text"})
    reading = items_of_upload(upload, {"text": "text"}, drop_repeats=True)
    assert [item.text for item in reading.items] == ["same thing", "other thing"]
    assert reading.notes == ("1 repeated row is left out.",)


def test_long_texts_get_numbers_for_ids():
    upload = upload_of(f"text\n{'a ' * 60}\n{'b ' * 60}\n")
    assert [item.id for item in items_of_upload(upload, {"text": "text"}).items] == ["1", "2"]


@pytest.mark.parametrize(
    ("roles", "what"),
    [
        ({"one": "text", "two": "text"}, "are all marked as text"),
        ({"one": "ignore", "two": "ignore"}, "no column is marked as the text to judge"),
        ({"one": "text", "two": "output"}, "another as the text to judge"),
    ],
)
def test_roles_that_contradict_each_other_are_refused(roles, what):
    with pytest.raises(DataError, match=what):
        items_of_upload(read_upload(b"one,two\na b,c\nd e,5\n", "mine.csv", ReadingOptions(has_header=True)), roles)
