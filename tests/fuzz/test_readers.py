"""Every reader, given anything: it ends in a result, or in an error of ours that names the place.

Never in another exception, never without end, and never in more memory than the file deserves.
"""

from __future__ import annotations

import gzip
import io
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import Problem, SteelyardError
from steelyard.formats import read_gold, read_items, read_judgments, read_table
from steelyard.protocols import BestWorst, Choice, Direct, Pairwise
from steelyard.quality import read_questions
from steelyard.study.opening import check_study
from steelyard.study.rebuild import check_chain, read_log
from tests.fuzz import examples

PROTOCOLS = [Direct(), Pairwise(), BestWorst(), Choice(labels=("yes", "no"))]
READERS: dict[str, Callable[[Path], object]] = {
    "table": read_table,
    "items": read_items,
    "judgments": read_judgments,
    "gold": read_gold,
    "questions": lambda path: [_questions(path, protocol) for protocol in PROTOCOLS],
}
SUFFIXES = [".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz", ".jsonl.gz", ".txt", ""]


def _questions(path: Path, protocol: Any) -> object:
    try:
        return read_questions(path, protocol)
    except SteelyardError as error:
        return error


def read(name: str, path: Path) -> None:
    """Read a file; an error of ours says what is wrong."""
    _says_what(READERS[name], path)


def _says_what(reader: Callable[[Path], object], path: Path) -> None:
    problems: tuple[Problem, ...] = (Problem("nothing"),)
    try:
        reader(path)
    except SteelyardError as error:
        problems = error.problems
    assert problems
    assert all(problem.what for problem in problems)


# Anything at all

HEADERS = {
    "ratings": "annotator item value criterion seconds",
    "labels": "annotator item label task",
    "comparisons": "annotator left right winner",
    "choices": "annotator item1 item2 item3 best worst",
    "rankings": "annotator ranking task",
    "items": "id text group context reference media tags gold",
    "questions": "items answer best worst feedback",
    "amt": "WorkerId HITId AssignmentStatus WorkTimeInSeconds Input.item Input.left Answer.value Answer.winner",
    "amt-many": "WorkerId Input.pair_id_0 Input.pair_id_1 Answer.rating0 Answer.rating1 Answer.na0",
    "wmt": "srclang trglang srcIndex judgeId system1Id system1rank system2Id system2rank system3Id system3rank",
}
ODD = [
    *(
        "",
        " ",
        "NA",
        "NaN",
        "inf",
        "-inf",
        "1e999",
        "0x10",
        "-1",
        "1,5",
        "1.5",
        "a",
        "b",
        "a|b",
        "a>b=c",
        "tie",
        "=1+1",
    ),
    *("'", '"', "\0", "é", "٣", "1..2", "60..100", "Rejected", '[["a"]]', "9" * 400, "\ufeffa"),
]
CELL = st.sampled_from(ODD) | st.text(max_size=6)


@st.composite
def near_valid(draw: Any) -> tuple[str, bytes]:
    """A file that is nearly right: known columns, odd cells, in any of the formats, perhaps damaged."""
    header = draw(st.sampled_from(list(HEADERS.values()))).split()
    header = draw(st.permutations(header))[: draw(st.integers(1, len(header)))] + draw(st.lists(CELL, max_size=1))
    rows = draw(st.lists(st.lists(CELL, min_size=1, max_size=len(header) + 1), max_size=6))
    form = draw(st.sampled_from([".csv", ".tsv", ".jsonl", ".parquet"]))
    if form == ".jsonl":
        records = [dict(zip(header, draw(_json_row(row)), strict=False)) for row in rows]
        data = "\n".join(json.dumps(row, ensure_ascii=draw(st.booleans())) for row in records).encode(
            "utf-8", "surrogatepass"
        )
    elif form == ".parquet":
        data = _parquet(draw, header, rows)
    else:
        import csv

        text = io.StringIO()
        quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
        csv.writer(text, delimiter="\t" if form == ".tsv" else ",", quoting=quoting).writerows([header, *rows])
        data = text.getvalue().encode(draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"])), "replace")
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(data)))
        data = data[:place] + draw(st.binary(max_size=3)) + data[place + draw(st.integers(0, 3)) :]
    if draw(st.integers(0, 5)) == 0:
        packed = gzip.compress(data)
        return form + ".gz", packed[: draw(st.integers(1, len(packed)))] if draw(st.booleans()) else packed
    return form, data


def _json_row(row: list[str]) -> Any:
    value = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.just([1, "a"]), st.just({"a": 1}), CELL)
    return st.tuples(*(st.sampled_from([text]) | value for text in row))


def _parquet(draw: Any, header: list[str], rows: list[list[str]]) -> bytes:
    kinds = st.sampled_from(
        [pl.String, pl.Float64, pl.Int64, pl.Boolean, pl.Date, pl.List(pl.String), pl.Binary, pl.Null]
    )
    columns = {}
    for place, name in enumerate(dict.fromkeys(header)):
        kind = draw(kinds)
        texts = [row[place] if place < len(row) else None for row in rows]
        if kind == pl.List(pl.String):
            columns[name] = pl.Series([None if text is None else [text] for text in texts], dtype=kind)
        elif kind in (pl.String, pl.Binary):
            columns[name] = pl.Series(texts, dtype=pl.String).cast(kind)
        else:
            columns[name] = pl.Series([None] * len(texts), dtype=kind)
    data = io.BytesIO()
    pl.DataFrame(columns).write_parquet(data)
    return data.getvalue()


@pytest.mark.parametrize("name", READERS)
def test_any_bytes_end_in_a_result_or_an_error_of_ours(name: str, tmp_path: Path) -> None:
    @examples(30, 5000)
    @given(st.binary(max_size=200), st.sampled_from(SUFFIXES))
    def reads(data: bytes, suffix: str) -> None:
        path = tmp_path / f"file{suffix}"
        path.write_bytes(data)
        read(name, path)

    reads()


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_nearly_right_files_end_in_a_result_or_an_error_of_ours(name: str, tmp_path: Path) -> None:
    @examples(60, 3000)
    @given(near_valid())
    def reads(made: tuple[str, bytes]) -> None:
        suffix, data = made
        path = tmp_path / f"file{suffix}"
        path.write_bytes(data)
        read(name, path)

    reads()


# study.toml and the log

_LEAVES = [
    *(
        '"direct"',
        '"pairwise"',
        '"per_item"',
        '"match_quality"',
        '"items.csv"',
        '"../items.csv"',
        '"\\u0000"',
        "0",
        "-1",
    ),
    *("1e400", "nan", "inf", "true", "[]", "{}", "[0, 100]", '["a", "b"]', "1979-05-27", '""', '{ name = "direct" }'),
    "99999999999999999999",
]
LEAVES = st.one_of(st.sampled_from(_LEAVES), st.text(max_size=5).map(json.dumps), st.text(max_size=5))
_KEYS = (
    "title question items name size scale labels criteria judgments rounds file rate pass tasks consent training "
    "database seed version model measure target content media lease_minutes x"
)
KEYS = st.sampled_from(_KEYS.split())
_TABLES = "protocol design model people quality quality.checks page stop pay link x stage.protocol"
TABLES = st.sampled_from(["", "[[stage]]", *(f"[{name}]" for name in _TABLES.split())])
LINES = st.lists(st.one_of(TABLES, st.tuples(KEYS, LEAVES).map(" = ".join)), max_size=12)
RIGHT = ['title = "t"', 'question = "q"', 'items = "items.csv"', "[protocol]", 'name = "direct"']


@pytest.mark.parametrize("begin", [[], RIGHT], ids=["from nothing", "from what is right"])
def test_any_study_toml_ends_in_a_study_or_an_error_of_ours(begin: list[str], tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("id,text\na,x\nb,y\nc,z\n")

    @examples(75, 5000)
    @given(LINES, st.binary(max_size=3), st.integers(0, 300))
    def reads(lines: list[str], damage: bytes, place: int) -> None:
        data = "\n".join([*begin, *lines]).encode("utf-8", "surrogatepass")
        (tmp_path / "study.toml").write_bytes(data[:place] + damage + data[place:] if damage else data)
        _says_what(check_study, tmp_path)

    reads()


def test_any_log_ends_in_events_or_an_error_of_ours(tmp_path: Path) -> None:
    right = b'{"annotator":null,"at":1,"data":{},"digest":"0","judgment_id":null,"kind":"blank","seq":1}'

    @examples(40, 5000)
    @given(st.binary(max_size=60), st.integers(0, 90), st.integers(0, 90))
    def reads(damage: bytes, begin: int, end: int) -> None:
        (tmp_path / "log.jsonl").write_bytes(right[:begin] + damage + right[max(begin, end) :])
        _says_what(lambda path: check_chain(read_log(path)), tmp_path / "log.jsonl")

    reads()


# Bombs

MEMORY = 3_000_000_000
"""A reader that takes more is killed; the interpreter with its libraries maps about half of it."""
SCRIPT = """
import resource, sys, time
from pathlib import Path
from steelyard.errors import Problem, SteelyardError
from steelyard.formats import read_table, read_items, read_judgments
resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
begin = time.process_time()
try:
    {call}(Path(sys.argv[1]))
    print("read")
except SteelyardError as error:
    print("refused", str(error)[:200])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "MB", round(time.process_time() - begin, 1), "s")
"""


def bomb(path: Path, call: str = "read_judgments") -> str:
    """Read a file in a process of its own, which may not take much memory."""
    assert resource.RLIM_INFINITY
    script = SCRIPT.format(memory=MEMORY, call=call)
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-1500:])
    return done.stdout


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    """Two megabytes that unpack to two gigabytes."""
    path = tmp_path / "bomb.csv.gz"
    with path.open("wb") as file:
        unit = gzip.compress(b"item,value\n" + b"0" * 50_000_000)
        for _ in range(40):
            file.write(unit)
    assert path.stat().st_size < 3_000_000
    assert "unpacks to more than" in bomb(path)


def test_a_parquet_file_that_claims_too_many_rows_is_refused(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "bomb.parquet"
    rows = 1_000_000
    part = arrow.table({"item": arrow.array(["a"] * rows).dictionary_encode(), "value": arrow.array([1] * rows)})
    with parquet.ParquetWriter(path, part.schema, compression="zstd") as writer:
        for _ in range(100):
            writer.write_table(part)
    assert path.stat().st_size < 1_000_000
    assert "claims 200,000,000 cells" in bomb(path)


def test_one_enormous_line_is_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "line.jsonl"
    path.write_bytes(b'{"item": "' + b"a" * 100_000_000)
    assert "refused" in bomb(path, "read_table")


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.jsonl"
    path.write_bytes(b'{"item": ' + b"[" * 200_000 + b"]" * 200_000 + b"}\n")
    assert "refused" in bomb(path, "read_table")
