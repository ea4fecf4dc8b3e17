"""Reading whatever people upload: encodings, separators, spreadsheets, headers, and files that lie."""

from __future__ import annotations

import io
import json
import zipfile

import polars as pl
import pytest
from openpyxl import Workbook

from steelyard.errors import DataError
from steelyard.formats.uploads import MAX_COLUMNS, MAX_ROWS, ReadingOptions, read_upload

ROWS = [("Größe, klein", "süß"), ('he said "no"', "naïve"), ("fin", "x")]


def delimited(separator: str) -> str:
    cells = [["sentence", "note"], *([f'"{cell.replace(chr(34), 2 * chr(34))}"' for cell in row] for row in ROWS)]
    return "\r\n".join(separator.join(row) for row in cells)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252", "utf-32"])
def test_every_usual_encoding_and_separator_gives_the_same_table(separator, encoding):
    upload = read_upload(delimited(separator).encode(encoding), "words.csv")
    assert upload.table.frame.rows() == ROWS
    assert upload.table.frame.columns == ["sentence", "note"]
    assert (upload.separator, upload.has_header, upload.is_header_certain) == (separator, True, True)
    announced = any("not UTF-8" in note or "UTF-16" in note for note in upload.notes)
    assert announced == (encoding in {"cp1252", "utf-16-le"})


def test_another_encoding_can_be_chosen():
    data = "слово;перевод\nдом;house\n".encode("cp1251")
    frame = read_upload(data, "a.csv", ReadingOptions(encoding="cp1251", has_header=True)).table.frame
    assert frame.rows() == [("дом", "house")]
    with pytest.raises(DataError, match="not UTF-8 text"):
        read_upload(data, "a.csv", ReadingOptions(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "has_header", "is_certain", "count"),
    [
        ("The cat sat on the mat.\nThe dog ran off.\n", False, True, 2),  # a full stop
        ("cat\ndog\nbird\n", False, False, 3),  # 'cat' may be a name
        ("text\ncat\ndog\n", True, True, 2),
        ("answer\nquestion\nidea\n", False, False, 3),  # a list of nouns may begin like that
        ("word,score\ncat,3\ndog,4\n", True, True, 2),
        ("cat,3\ndog,4\n", False, True, 2),  # a number above numbers
        ("animal,legs\ncat,4\nbird,2\n", True, True, 2),  # words above numbers
        ("source,Alpha\nein Haus,a house\n", True, True, 1),
        ("answer,reply\nask,plead\n", False, False, 2),
        ("Haus,house\nBaum,tree\n", False, False, 2),
        ("a,a\nb,c\n", False, True, 2),  # columns cannot have the same name
    ],
)
def test_a_first_row_is_taken_for_a_header_only_if_it_is_one(text, has_header, is_certain, count):
    upload = read_upload(text.encode(), "list.csv")
    assert (upload.has_header, upload.is_header_certain) == (has_header, is_certain)
    assert upload.table.frame.height == count
    # Whoever answers the question gets all the rows they expect.
    assert read_upload(text.encode(), "list.csv", ReadingOptions(has_header=False)).table.frame.height == text.count(
        "\n"
    )


def test_sentences_with_commas_on_lines_of_their_own_are_one_column_each():
    text = "Well, yes.\nNo, not really, no.\nPerhaps.\n"
    upload = read_upload(text.encode(), "lines.csv")
    assert upload.table.frame.rows() == [("Well, yes.",), ("No, not really, no.",), ("Perhaps.",)]
    assert read_upload(text.encode(), "lines.txt").table.frame.height == 3


def test_problems_name_the_users_file_and_line():
    with pytest.raises(DataError, match=r"my words\.csv line 4: 3 fields where the header has 2"):
        read_upload(b"id,text\na,b\nc,d\ne,f,g\nh,i\n", "my words.csv")
    headerless = read_upload(b"1,one thing\n\n2,another thing\n", "x.csv")
    assert headerless.table.lines([0, 1]) == [1, 3]


def workbook(rows, sheets=1) -> bytes:
    book = Workbook()
    for number in range(1, sheets):
        book.create_sheet(f"Sheet {number}", 0)
    sheet = book.worksheets[-1]
    for row in rows:
        sheet.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def test_a_spreadsheet_is_read_with_its_row_numbers_and_plain_numbers():
    data = workbook([["Satz", "Nummer"], ["eins", 1], [None, None], ["zwei", 2.5]])
    upload = read_upload(data, "Mappe.xlsx")
    assert upload.table.frame.to_dicts() == [{"Satz": "eins", "Nummer": "1"}, {"Satz": "zwei", "Nummer": "2.5"}]
    assert upload.table.lines([0, 1]) == [2, 4]


def test_a_sheet_can_be_chosen_and_empty_ones_are_passed_over():
    data = workbook([["text"], ["a"]], sheets=3)
    upload = read_upload(data, "a.xlsx")
    assert len(upload.sheets) == 3
    assert upload.table.frame["text"].to_list() == ["a"]
    with pytest.raises(DataError, match="is empty"):
        read_upload(data, "a.xlsx", ReadingOptions(sheet=next(name for name in upload.sheets if name != upload.sheet)))


def test_json_lines_lists_of_objects_and_parquet_become_strings():
    rows = [
        {"text": "a", "n": 1, "tags": ["x", "y"], "more": {"k": 1}},
        {"text": "b", "n": 2, "tags": [], "more": None},
    ]
    expected = [{"text": "a", "n": "1", "tags": "x;y"}, {"text": "b", "n": "2", "tags": ""}]
    lines = "\n".join(map(json.dumps, rows)).encode()
    buffer = io.BytesIO()
    pl.DataFrame(rows).write_parquet(buffer)
    for data, name in ((lines, "a.jsonl"), (json.dumps(rows).encode(), "a.json"), (buffer.getvalue(), "a.parquet")):
        frame = read_upload(data, name).table.frame
        assert frame.drop("more").to_dicts() == expected
        assert json.loads(frame["more"][0]) == {"k": 1}


def bomb() -> bytes:
    """A small zip whose one member claims, truthfully, to hold half a gigabyte of zeros."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed, packed.open("xl/workbook.xml", "w") as member:
        for _ in range(500):
            member.write(bytes(1_000_000))
    return buffer.getvalue()


def far_cell() -> bytes:
    book = Workbook()
    sheet = book.worksheets[0]
    sheet["A1"] = "text"
    sheet["XFD1048576"] = "far away"
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


@pytest.mark.slow
def test_files_that_unpack_to_far_too_much_are_refused():
    data = bomb()
    assert len(data) < 1_000_000
    with pytest.raises(DataError, match="too much for a table"):
        read_upload(data, "bomb.xlsx")
    with pytest.raises(DataError, match=r"there are no rows|at most"):
        read_upload(far_cell(), "far.xlsx")


def parquet_bomb(*, repeated: bool) -> bytes:
    """A few kilobytes of Parquet with gigabytes of text: one long text in many rows, or many zeros in each row."""
    buffer = io.BytesIO()
    if repeated:
        frame = pl.DataFrame({"text": pl.Series(["x" * 1_000_000]).cast(pl.Categorical)})
        frame = pl.concat([frame] * 2000)
        frame.cast(pl.String).write_parquet(buffer, compression="zstd")
        return buffer.getvalue()
    from pyarrow import array, parquet, schema, string, table

    part = table({"text": array([chr(97 + n % 26) * 1_000_000 for n in range(100)])})
    with parquet.ParquetWriter(
        buffer, schema([("text", string())]), compression="zstd", use_dictionary=False
    ) as writer:
        for _ in range(40):
            writer.write_table(part)
    return buffer.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("repeated", [True, False])
def test_a_small_parquet_file_with_gigabytes_of_text_is_refused(repeated):
    data = parquet_bomb(repeated=repeated)
    assert len(data) < 2_000_000
    with pytest.raises(DataError, match="unpacks to more than 400 MB"):
        read_upload(data, "bomb.parquet")


@pytest.mark.parametrize(
    ("data", "name", "what"),
    [
        (b"", "a.csv", "empty"),
        (b"\0\0\0\0", "a.csv", "empty"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\xff", "a.csv", "not a text file"),
        (b"PK nonsense", "a.xlsx", "not an .xlsx file"),
        (b"nonsense", "a.parquet", "not a Parquet file"),
        (b"{", "a.jsonl", "not JSON"),
        (b"[1, 2]", "a.json", "not a list of objects"),
        (b"x", "a.pdf", "cannot be read as a table"),
        (b"x", "study.toml", "cannot be read as a table"),
        (b"\n".join([b"text"] + [b"x"] * (MAX_ROWS + 1)), "a.csv", "200,001 rows"),
        (b"\t".join([b"id", b"text", *(b"c%d" % n for n in range(MAX_COLUMNS))]) + b"\n", "a.tsv", "no rows"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_reason(data, name, what):
    with pytest.raises(DataError, match=what):
        read_upload(data, name)
