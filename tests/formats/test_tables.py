from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import polars as pl
import pytest

from steelyard.errors import DataError, Problem
from steelyard.formats import read_table, supported, write_table

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def refusal(folder: Path, name: str, data: bytes) -> Problem:
    path = written(folder, name, data)
    with pytest.raises(DataError) as caught:
        read_table(path)
    problem = caught.value.problems[0]
    assert problem.file == str(path)
    assert problem.remedy
    return problem


TEXTS = {
    "csv": b"id,text\n007,NA\n1e5,x\n",
    "tsv": b"id\ttext\n007\tNA\n1e5\tx\n",
    "jsonl": b'{"id": "007", "text": "NA"}\n{"id": "1e5", "text": "x"}\n',
    "ndjson": b'{"id": "007", "text": "NA"}\n\n{"id": "1e5", "text": "x"}\n',
}


@pytest.mark.parametrize("gz", ["", ".gz"])
@pytest.mark.parametrize("ending", TEXTS)
def test_ids_stay_the_text_they_are(tmp_path: Path, ending: str, gz: str) -> None:
    frame = read_table(written(tmp_path, f"t.{ending}{gz}", TEXTS[ending]))
    assert frame.rows() == [("007", "NA"), ("1e5", "x")]


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["007"], "value": [1.5]})
    frame.write_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").equals(frame)


@pytest.mark.parametrize("data", [b"\xef\xbb\xbfid,text\na,b\n", b"id,text\r\na,b\r\n", b" id , text \n\na,b\n\n,\n"])
def test_byte_order_mark_crlf_header_spaces_and_blank_rows_do_not_matter(tmp_path: Path, data: bytes) -> None:
    frame = read_table(written(tmp_path, "t.csv", data))
    assert frame.columns == ["id", "text"]
    assert frame.rows() == [("a", "b")]


def test_byte_order_mark_before_json_lines_does_not_matter(tmp_path: Path) -> None:
    assert read_table(written(tmp_path, "t.jsonl", b'\xef\xbb\xbf{"id": "a"}\n')).rows() == [("a",)]


@pytest.mark.parametrize("data", [b'a,b\n5" nail,2\nx,y\n3" nail,4\n', b'a,b\n5" nail,2\nx,y\n"3"" nail",4\n'])
def test_quotes_inside_a_field_are_text(tmp_path: Path, data: bytes) -> None:
    assert read_table(written(tmp_path, "t.csv", data)).rows() == [('5" nail', "2"), ("x", "y"), ('3" nail', "4")]


def test_quoted_fields_may_hold_separators_and_newlines(tmp_path: Path) -> None:
    assert read_table(written(tmp_path, "t.csv", b'a,b\n"x,y","1\n2"\n')).rows() == [("x,y", "1\n2")]


def test_a_header_alone_is_a_table_without_rows(tmp_path: Path) -> None:
    assert read_table(written(tmp_path, "t.csv", b"a,b\n")).shape == (0, 2)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz", "t.jsonl", "t.parquet"])
def test_an_empty_file_is_refused(tmp_path: Path, name: str) -> None:
    assert refusal(tmp_path, name, b"").what


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"a,b\n1,2\n3\n", 3),
        (b"a,b\n1,2,3\n", 2),
        (b'a,b\n"1\n1",2\n3\n', 4),
        (b"a,b\n1,\n\n3\n", 4),
    ],
)
def test_ragged_rows_are_refused_by_line(tmp_path: Path, data: bytes, line: int) -> None:
    problem = refusal(tmp_path, "t.csv", data)
    assert problem.line == line
    assert "where the header has 2" in problem.what


def test_many_ragged_rows_are_listed_up_to_twenty_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", b"a,b\n" + b"1\n" * 25)
    with pytest.raises(DataError) as caught:
        read_table(path)
    assert len(caught.value.problems) == 21
    assert caught.value.problems[-1].what == "… and 5 more."


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_bytes_that_are_not_utf8_are_refused_with_place_and_remedy(tmp_path: Path, name: str, mark: bytes) -> None:
    problem = refusal(tmp_path, name, mark + b"id,text\na,ok\nb,caf\xe9\n")
    assert problem.line == 3
    assert problem.what == f"byte 0xe9 at offset {18 + len(mark)} is not UTF-8."
    assert problem.remedy == "Save the file as UTF-8."


def test_a_header_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "t.csv", b"caf\xe9,b\n1,2\n").line == 1


@pytest.mark.parametrize("text", [b'{"id": ', b"[1, 2]", b'{"id": NaN}', b'{"id": 1} {"id": 2}'])
def test_a_broken_json_line_is_named(tmp_path: Path, text: bytes) -> None:
    assert refusal(tmp_path, "t.jsonl", b'{"id": "a"}\n\n' + text + b"\n").line == 3


def test_an_unclosed_quote_is_named_where_it_opens(tmp_path: Path) -> None:
    assert refusal(tmp_path, "t.csv", b'a,b\n1,2\n3,"4\n5,6\n').line == 3


def test_what_is_no_parquet_or_gzip_is_refused(tmp_path: Path) -> None:
    assert "not a Parquet file" in refusal(tmp_path, "t.parquet", b"a,b\n1,2\n").what
    whole = gzip.compress(b"a,b\n1,2\n" * 100)
    (tmp_path / "cut.csv.gz").write_bytes(whole[:-12])
    with pytest.raises(DataError, match="not a complete gzip file"):
        read_table(tmp_path / "cut.csv.gz")


def test_a_missing_file_a_folder_and_an_unknown_ending_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for name, what in [("no.csv", "no such file"), ("folder.csv", "cannot be read"), ("t.xlsx", "suffix '.xlsx'")]:
        with pytest.raises(DataError, match=what) as caught:
            read_table(tmp_path / name)
        assert caught.value.problems[0].remedy


def test_repeated_column_names_are_refused(tmp_path: Path) -> None:
    problem = refusal(tmp_path, "t.csv", b"a,b, a\n1,2,3\n")
    assert (problem.line, problem.field) == (1, "a")


def test_semicolons_where_commas_should_be_are_refused(tmp_path: Path) -> None:
    assert "semicolons" in refusal(tmp_path, "t.csv", b"id;text\n1;2\n").what


ROWS = [{"id": "a", "value": 1.5}, {"id": "b", "value": None}]


@pytest.mark.parametrize(
    "source",
    [
        pl.DataFrame(ROWS),
        pl.LazyFrame(ROWS),
        pd.DataFrame(ROWS, index=[3, 4]),
        pa.Table.from_pylist(ROWS),
        pa.table({"id": pa.array(["a", "b"]).dictionary_encode(), "value": [1.5, None]}),
        ROWS,
    ],
    ids=["polars", "lazy", "pandas", "pyarrow", "dictionary", "dicts"],
)
def test_frames_of_every_kind_are_tables(source: object) -> None:
    frame = read_table(source)  # type: ignore[arg-type]
    assert frame.with_columns(pl.col("id").cast(pl.String)).rows() == [("a", 1.5), ("b", None)]


def test_what_is_no_table_is_refused() -> None:
    for source in (42, ["a", "b"], [{"a": 1}, {"a": [1]}]):
        with pytest.raises(DataError, match="the table"):
            read_table(source)  # type: ignore[arg-type]


NESTED = pl.DataFrame({"id": ["ä", 'b"'], "tiers": [[["a"], ["b", "c"]], None], "value": [0.1, None]})


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz", "t.ndjson", "t.parquet"])
def test_what_was_written_is_read_back(tmp_path: Path, name: str) -> None:
    write_table(NESTED, tmp_path / name)
    assert read_table(tmp_path / name).equals(NESTED)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.tsv.gz"])
def test_lists_are_json_text_in_csv(tmp_path: Path, name: str) -> None:
    write_table(NESTED, tmp_path / name)
    assert read_table(tmp_path / name).rows() == [("ä", '[["a"], ["b", "c"]]', "0.1"), ('b"', None, None)]


def test_json_is_written_as_a_list_of_objects(tmp_path: Path) -> None:
    write_table(NESTED, tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text())[1] == {"id": 'b"', "tiers": None, "value": None}


def test_a_stream_takes_text_formats_only() -> None:
    stream = io.StringIO()
    write_table(pl.DataFrame({"a": [1]}), stream, "csv")
    assert stream.getvalue() == "a\n1\n"
    for wrong in ("parquet", "xlsx"):
        with pytest.raises(DataError):
            write_table(pl.DataFrame({"a": [1]}), stream, wrong)
    with pytest.raises(DataError, match="suffix"):
        write_table(pl.DataFrame({"a": [1]}), stream)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_csv", fail)
    with pytest.raises(DataError, match="No space left"):
        write_table(NESTED, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_equal_tables_give_equal_compressed_bytes(tmp_path: Path) -> None:
    for name in ("one.csv.gz", "two.csv.gz"):
        write_table(NESTED, tmp_path / name)
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()


def test_every_supported_ending_can_be_written_and_read(tmp_path: Path) -> None:
    for ending in supported:
        write_table(pl.DataFrame({"id": ["a"]}), tmp_path / f"t{ending}")
        assert read_table(tmp_path / f"t{ending}").rows() == [("a",)]
