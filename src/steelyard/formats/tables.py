"""Read and write tables: CSV, TSV, JSON, Parquet, data sets of Hugging Face, and any Arrow-compatible frame."""

from __future__ import annotations

import gzip
import io
import json
import os
import uuid
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, TextIO, TypeAlias, cast

import polars as pl

from steelyard.errors import DataError, Problem
from steelyard.formats.csvtext import (
    csv_lines,
    decoded,
    parse_csv,
    refuse_repeated_names,
)
from steelyard.formats.datasets import SUFFIX as DATASET_SUFFIX
from steelyard.formats.datasets import is_dataset_folder, read_dataset_folder, write_dataset_folder
from steelyard.formats.foreign import columns_of, read_export
from steelyard.formats.formulas import escape_formulas, restore_formulas
from steelyard.formats.marked import is_mqm, read_esa, read_mqm
from steelyard.formats.problems import capped

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_JSON_LINES = (".jsonl", ".ndjson")
_GZIP_MAGIC = b"\x1f\x8b"
_MAX_UNPACKED_BYTES = 256_000_000
_MAX_COMPRESSION_RATIO = 100
"""Compression ratio up to which larger files are unpacked; real tables rarely exceed 50."""
_MAX_CELLS = 100_000_000
_MAX_CELLS_PER_BYTE = 25
"""Cells per byte up to which larger Parquet files are read; repeated values compress well."""

UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""Exceptions of polars for invalid files; it panics on some damaged ones."""

supported: tuple[str, ...] = (
    *(suffix + gz for suffix in (*_SEPARATORS, *_JSON_LINES) for gz in ("", ".gz")),
    ".json",
    ".parquet",
)
"""The file extensions that `read_table` supports."""


class ArrowStream(Protocol):
    """Any table with the Arrow stream interface: pandas, polars, pyarrow, DuckDB …"""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Source: TypeAlias = "str | Path | Table | pl.DataFrame | pl.LazyFrame | ArrowStream | Sequence[Mapping[str, object]]"


@dataclass(frozen=True, slots=True)
class Table:
    """A frame, the name of its source in messages, and a function that returns the line of each row."""

    frame: pl.DataFrame
    file: str
    find_lines: Callable[[], Sequence[int]] | None = None
    skipped: tuple[Problem, ...] = ()
    """Rows that were left out because they have too few or too many fields."""
    notes: tuple[str, ...] = ()
    """Sentences on how the source was read."""
    items: pl.DataFrame | None = None
    """The items that the rows judge, where the source describes them as well."""

    def lines(self, rows: Sequence[int]) -> list[int]:
        """Return the line of each row; in a frame or Parquet file, rows count from 1."""
        if self.find_lines is None:
            return [row + 1 for row in rows]
        all_lines = self.find_lines()
        return [all_lines[row] for row in rows]


def read_table(source: Source, *, file_label: str | None = None) -> pl.DataFrame:
    """Read a table from a file or take it from a frame.

    Parameters
    ----------
    source : path, frame or list of dicts
        A file named `.csv`, `.tsv`, `.jsonl` or `.ndjson` (each also with `.gz`), `.json` or `.parquet`; a folder
        that `save_to_disk` of Hugging Face `datasets` wrote; a polars, pandas or pyarrow table, or anything else with
        `__arrow_c_stream__`. Exports of Label Studio, Potato, promptfoo and LangSmith become conventional columns.
    file_label : str, optional
        Name of the source in messages; the path by default.

    Returns
    -------
    polars.DataFrame
        From CSV and TSV every column holds strings, so that '007' and 'NA' stay unchanged; the apostrophe that
        keeps a spreadsheet from running text as a formula is removed.
    """
    return open_table(source, file_label=file_label).frame


def open_table(source: Source, *, file_label: str | None = None, skip_bad_rows: bool = False) -> Table:
    """Read a table like `read_table`, with the lines of its rows; rows of the wrong length may be skipped."""
    if isinstance(source, Table):
        return source
    if isinstance(source, str | Path):
        return _open_file(Path(source), file_label or str(source), skip_bad_rows)
    label = file_label or "the table"
    frame = _frame_of(source, label)
    return Table(_with_trimmed_names(frame, label), label)


def strings(column: pl.Series, file: str, header: str) -> pl.Series:
    """Return a column as strings; floats that are all whole numbers are written as integers."""
    if column.dtype == pl.String:
        return column
    if column.dtype.is_nested() or column.dtype == pl.Binary:
        raise DataError(
            f"the column holds {str(column.dtype).lower()} values.",
            "Give one text or number in each row.",
            file=file,
            field=header,
        )
    if column.dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        if (whole == column).all():
            column = whole
    return column.cast(pl.String)


def _with_trimmed_names(frame: pl.DataFrame, label: str) -> pl.DataFrame:
    names = [name.strip() for name in frame.columns]
    refuse_repeated_names(names, label, None)
    return frame.rename(dict(zip(frame.columns, names, strict=True)))


def _frame_of(source: object, label: str) -> pl.DataFrame:
    if isinstance(source, pl.DataFrame):
        return source
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    try:
        if type(source).__module__.partition(".")[0] == "pandas":
            # Not through its Arrow stream, which would include the index as a column.
            return _from_pandas(source)
        if hasattr(source, "__arrow_c_stream__"):
            return pl.DataFrame(source)
        if isinstance(source, Sequence) and all(isinstance(row, Mapping) for row in source):
            return pl.DataFrame([dict(row) for row in source], infer_schema_length=None)
    except ModuleNotFoundError as error:
        raise DataError(f"polars needs {error.name} to read it.", "Install pyarrow.", file=label) from error
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        raise DataError(
            f"it is not a valid table: {_first_line(error)}",
            "Use one type of value per column.",
            file=label,
        ) from error
    raise DataError(
        f"a {type(source).__name__} is not a table.",
        "Give a path, a polars, pandas or Arrow table, or a list of dicts.",
        file=label,
    )


def _from_pandas(source: Any) -> pl.DataFrame:
    """Convert a pandas frame; without pyarrow, column by column: polars needs it for the string type of pandas 3."""
    try:
        return pl.DataFrame(pl.from_pandas(source))
    except ImportError:
        columns = []
        for place, name in enumerate(source.columns):
            column = source.iloc[:, place]
            values = [None if missing else value for value, missing in zip(column.tolist(), column.isna(), strict=True)]
            columns.append(pl.Series(str(name), values))
        return pl.DataFrame(columns)


def _open_file(path: Path, label: str, skip_bad_rows: bool) -> Table:
    if is_dataset_folder(path):
        return Table(_with_trimmed_names(read_dataset_folder(path, label), label), label)
    suffix = _suffix(path.name, supported, label).removesuffix(".gz")
    data = _read_bytes(path, label)
    if suffix == ".parquet":
        return Table(parse_parquet(data, label), label)
    if suffix == ".json" or (suffix in _JSON_LINES and b'"label_annotations"' in data):
        return parse_json(data, label)
    marked = _marked_table(data, suffix, label)
    if marked is not None:
        return marked
    if suffix in _JSON_LINES:
        return Table(parse_json_lines(data, label), label, lambda: _json_lines(_read_bytes(path, label)))
    separator = _SEPARATORS[suffix]
    skipped: list[Problem] | None = [] if skip_bad_rows else None
    frame = restore_formulas(parse_csv(data, separator, label, skipped))
    width = frame.width if skipped else None
    return Table(frame, label, lambda: csv_lines(_read_bytes(path, label), separator, width), tuple(skipped or ()))


def _marked_table(data: bytes, suffix: str, label: str) -> Table | None:
    """Read published error marks: ESA as JSON lines, MQM as TSV; None for other files."""
    if suffix in _JSON_LINES and b'"esa_spans"' in data and b'"esa_score"' in data:
        judgments, items, lines, notes = read_esa(data, label)
    elif suffix == ".tsv" and is_mqm(data):
        judgments, items, lines, notes = read_mqm(data, label)
    else:
        return None
    return Table(judgments, label, lambda: lines, notes=tuple(notes), items=items)


def _suffix(name: str, endings: Sequence[str], label: str) -> str:
    for suffix in endings:
        if name.lower().endswith(suffix):
            return suffix
    raise DataError(
        f"the suffix '{Path(name).suffix}' is not that of a table.",
        f"Use one of {', '.join(endings)}.",
        file=label,
    )


def _read_bytes(path: Path, label: str) -> bytes:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise DataError(
            "there is no such file.", f"Check the path; the current folder is {Path.cwd()}.", file=label
        ) from None
    except OSError as error:
        raise DataError(
            f"it cannot be read ({error.strerror}).", "Give the path of a readable file.", file=label
        ) from error
    if not data.startswith(_GZIP_MAGIC):
        return data
    try:
        _refuse_bomb(data, label)
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"it is not a complete gzip file ({error}).", "Copy or compress it again.", file=label
        ) from error


def _refuse_bomb(data: bytes, label: str) -> None:
    """Refuse a small file that unpacks to an enormous one before it fills the memory."""
    most = max(_MAX_UNPACKED_BYTES, _MAX_COMPRESSION_RATIO * len(data))
    unpacked = 0
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
        while part := packed.read(1 << 20):
            unpacked += len(part)
            if unpacked > most:
                raise DataError(
                    f"it unpacks to more than {most / 1e6:,.0f} MB, which is implausible for its size.",
                    "Unpack it first if this is intended.",
                    file=label,
                )


def parse_parquet(data: bytes, label: str) -> pl.DataFrame:
    """Parse a Parquet file; one that claims more cells than its size can hold is refused."""
    try:
        claimed = pl.scan_parquet(io.BytesIO(data))
        cells = claimed.select(pl.len()).collect().item() * len(claimed.collect_schema())
        if cells > max(_MAX_CELLS, _MAX_CELLS_PER_BYTE * len(data)):
            raise DataError(
                f"it claims {cells:,} cells, which is implausible for a file of {len(data):,} bytes.",
                "Write the file again, or split it.",
                file=label,
            )
        frame = pl.read_parquet(io.BytesIO(data))
    except UNREADABLE as error:
        raise DataError(
            f"it is not a Parquet file ({_first_line(error)}).",
            "Write the file again, or correct its suffix.",
            file=label,
        ) from error
    return _with_trimmed_names(frame, label)


def parse_json_lines(data: bytes, label: str) -> pl.DataFrame:
    """Parse one JSON object per line; errors name the line."""
    data = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not data:
        raise DataError("the file is empty.", "Write one object per line.", file=label)
    try:
        frame = pl.read_ndjson(io.BytesIO(data), infer_schema_length=None)
    except UNREADABLE as error:
        raise DataError(capped(_broken_json_lines(data, label))) from error
    return _with_trimmed_names(frame, label)


def parse_json(data: bytes, label: str) -> Table:
    """Parse a list of objects, or the export of another tool."""
    text = decoded(data.removeprefix(b"\xef\xbb\xbf"), label)
    try:
        content = json.loads(text)
    except RecursionError:
        raise DataError("it is nested too deeply.", "Write a list of objects.", file=label) from None
    except ValueError:
        try:
            content = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError) as error:
            raise DataError(f"it is not JSON: {error}.", "Write a list of objects.", file=label) from None
    if isinstance(content, dict) and "label_annotations" in content:
        content = [content]
    exported = read_export(content, label)
    if exported is not None:
        frame = pl.DataFrame(
            {name: pl.Series(name, values, strict=False) for name, values in columns_of(exported.rows)}
        )
        return Table(frame, label, notes=exported.notes)
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise DataError("it is not a list of objects.", 'Write [{"id": "a"}, …].', file=label)
    return Table(_with_trimmed_names(_frame_of(content, label), label), label)


def _broken_json_lines(data: bytes, label: str) -> list[Problem]:
    problems = []
    for number, text in enumerate(decoded(data, label).split("\n"), 1):
        if not text.strip():
            continue
        try:
            what = "" if isinstance(json.loads(text, parse_constant=_refuse_constant), dict) else "not an object."
        except ValueError as error:
            what = f"not JSON: {error}."
        except RecursionError:
            what = "it is nested too deeply."
        if what:
            problems.append(Problem(what, 'Write one object per line, like {"id": "a"}.', label, number))
    return problems or [
        Problem(
            "the lines do not fit together as a table.",
            "Keep one kind of value under each name.",
            label,
        )
    ]


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON value")


def _json_lines(data: bytes) -> list[int]:
    return [number for number, text in enumerate(data.split(b"\n"), 1) if text.strip()]


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


_WRITERS: dict[str, Callable[[pl.DataFrame, IO[bytes]], object]] = {
    "csv": lambda frame, file: escape_formulas(_flat(frame)).write_csv(file),
    "tsv": lambda frame, file: escape_formulas(_flat(frame)).write_csv(file, separator="\t"),
    "jsonl": lambda frame, file: frame.write_ndjson(file),
    "json": lambda frame, file: frame.write_json(cast(io.IOBase, file)),
    "parquet": lambda frame, file: frame.write_parquet(file),
}


def write_table(frame: pl.DataFrame, target: str | Path | TextIO, format: str | None = None) -> None:  # noqa: A002
    """Write a table to a file (atomically) or to a text stream.

    Parameters
    ----------
    frame : polars.DataFrame
        List columns become JSON text in CSV and TSV; text that a spreadsheet would run as a formula gets a
        leading apostrophe, which `read_table` removes.
    target : path or text stream
        A path's suffix gives the format unless `format` does; with `.gz` the text is compressed, and `.hf` writes a
        folder for Hugging Face `datasets`.
    format : {"csv", "tsv", "jsonl", "json", "parquet"}, optional
        Required for a stream, which cannot take Parquet.
    """
    if isinstance(target, str | Path):
        path = Path(target)
        if format is None and path.suffix == DATASET_SUFFIX:
            write_dataset_folder(frame, path)
            return
        _replace(path, frame, _WRITERS[_format(path.name, format, str(target))])
        return
    if format == "parquet":
        raise DataError("Parquet cannot be written to a text stream.", "Give a path that ends in .parquet.")
    buffer = io.BytesIO()
    _WRITERS[_format("", format, "the stream")](frame, buffer)
    target.write(buffer.getvalue().decode())


def _format(name: str, format_name: str | None, label: str) -> str:
    if format_name is None:
        suffix = _suffix(name, supported, label)
        format_name = suffix.removesuffix(".gz").removeprefix(".").replace("ndjson", "jsonl")
    if format_name not in _WRITERS:
        raise DataError(f"'{format_name}' is not a table format.", f"Use one of {', '.join(_WRITERS)}.", file=label)
    return format_name


def _replace(path: Path, frame: pl.DataFrame, write: Callable[[pl.DataFrame, IO[bytes]], object]) -> None:
    path = path.resolve()
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with temporary.open("xb") as file:
            if path.name.lower().endswith(".gz"):
                # Without name and time, so that equal tables give equal bytes.
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                    write(frame, cast(IO[bytes], packed))
            else:
                write(frame, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise DataError(
            f"it cannot be written ({error.strerror or error}).",
            "Give a path in an existing, writable folder.",
            file=str(path),
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def pandas_frame(frame: pl.DataFrame) -> Any:
    """Return a table as a pandas frame; pandas must be installed, pyarrow need not be."""
    try:
        import pandas as pd
    except ImportError:
        raise DataError("pandas is not installed.", "Install it: pip install pandas") from None
    return pd.DataFrame({name: _pandas_values(frame[name]) for name in frame.columns})


def _pandas_values(column: pl.Series) -> Any:
    """Return numbers and booleans without missing values as arrays, other columns as lists of Python values."""
    is_plain = column.dtype.is_numeric() or column.dtype == pl.Boolean
    return column.to_numpy() if is_plain and column.null_count() == 0 else column.to_list()


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
    return frame.with_columns(pl.Series(name, _as_json(frame[name]), pl.String) for name in nested)


def _as_json(column: pl.Series) -> list[str | None]:
    return [None if value is None else json.dumps(value, ensure_ascii=False) for value in column.to_list()]
