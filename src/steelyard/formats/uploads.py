"""Read an uploaded table: any common encoding, separator or spreadsheet, with or without a header."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import PurePath
from typing import Any

import polars as pl

from steelyard.errors import DataError
from steelyard.formats.columns import plain
from steelyard.formats.confined_parquet import read_confined_parquet
from steelyard.formats.csvtext import csv_lines, parse_csv, refuse_repeated_names
from steelyard.formats.foreign import items_of_export
from steelyard.formats.formulas import restore_formulas
from steelyard.formats.marked import read_esa
from steelyard.formats.tables import Table, parse_json_lines

UPLOAD_ENDINGS = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx")
MAX_UPLOAD_BYTES = 50_000_000
MAX_ROWS = 200_000
MAX_COLUMNS = 200
_MAX_UNPACKED_BYTES = 400_000_000
"""Largest unpacked size of a spreadsheet: about 2 million cells of 200 characters."""
_MAX_MEMBERS = 2_000
_SAMPLE_RECORDS = 200
_LONG_CELL = 60
"""Characters from which the cell of a first row is content rather than the name of a column."""

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
ENCODINGS = {
    "utf-8": "UTF-8",
    "utf-16": "UTF-16",
    "cp1252": "Windows-1252 (Western European)",
    "iso8859-2": "ISO 8859-2 (Central European)",
    "cp1251": "Windows-1251 (Cyrillic)",
    "cp1256": "Windows-1256 (Arabic)",
    "gb18030": "GB 18030 (Chinese)",
    "shift_jis": "Shift JIS (Japanese)",
    "euc_kr": "EUC-KR (Korean)",
}
"""Encodings that may be chosen for a text file."""

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How to read an upload where the guess is wrong; None for what is guessed."""

    has_header: bool | None = None
    separator: str | None = None
    encoding: str | None = None
    sheet: str | None = None


@dataclass(frozen=True, slots=True)
class UploadedTable:
    """A table of strings, and how it was read.

    `is_header_certain` is False where the first row may be a header or content; it is then read as content, so that
    nothing is lost. `separator`, `encoding` and `sheet` are None where a format has none.
    """

    table: Table
    has_header: bool
    is_header_certain: bool
    separator: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    sheets: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_upload(data: bytes, name: str, options: ReadingOptions | None = None) -> UploadedTable:
    """Read an uploaded file; `name` is the user's, and messages use it.

    Raises DataError if the file is empty, too large, of another format, or damaged.
    """
    options = options or ReadingOptions()
    suffix = PurePath(name).suffix.lower()
    if suffix not in UPLOAD_ENDINGS:
        raise DataError(
            f"a file with the suffix '{suffix}' cannot be read as a table.",
            f"Choose one that ends in {', '.join(UPLOAD_ENDINGS)}.",
            file=name,
        )
    if len(data) > MAX_UPLOAD_BYTES:
        raise DataError(
            f"it has {len(data) / 1e6:,.0f} MB; at most {MAX_UPLOAD_BYTES / 1e6:,.0f} MB are accepted.",
            "Split it, or create the study on the command line: steelyard new.",
            file=name,
        )
    if not data.strip(b"\0\r\n\t "):
        raise DataError("the file is empty.", "Choose a file with one row per item.", file=name)
    if suffix == ".xlsx":
        upload = _read_spreadsheet(data, name, options)
    elif suffix == ".parquet":
        upload = UploadedTable(Table(read_confined_parquet(data, name), name), True, True)
    elif suffix in {".jsonl", ".ndjson", ".json"}:
        upload = _read_json(data, name, options)
    else:
        upload = _read_text(data, name, suffix, options)
    _refuse_large(upload.table)
    return upload


def _refuse_large(table: Table) -> None:
    frame = table.frame
    if frame.height == 0:
        raise DataError("there are no rows.", "Choose a file with one row per item.", file=table.file)
    for count, most, noun in ((frame.height, MAX_ROWS, "rows"), (frame.width, MAX_COLUMNS, "columns")):
        if count > most:
            raise DataError(
                f"it has {count:,} {noun}; at most {most:,} are accepted in the browser.",
                "Split it, or create the study on the command line: steelyard new.",
                file=table.file,
            )


# Text


def _read_text(data: bytes, name: str, suffix: str, options: ReadingOptions) -> UploadedTable:
    text, encoding, notes = decode(data, name, options.encoding)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    separator = options.separator if options.separator in SEPARATORS else _guess_separator(text, suffix)
    if separator is None:
        return _read_lines(text, name, options, encoding, notes)
    rows = _first_records(text, separator)
    has_header, is_certain = _guess_header(rows)
    if options.has_header is not None:
        has_header, is_certain = options.has_header, True
    if not has_header:
        header = separator.join(column_names(len(rows[0])))
        text = f"{header}\n{text}"
    content = text.encode()
    frame = restore_formulas(parse_csv(content, separator, name))
    shift = 0 if has_header else 1

    def find_lines() -> list[int]:
        return [line - shift for line in csv_lines(content, separator)]

    table = Table(frame, name, find_lines)
    return UploadedTable(table, has_header, is_certain, separator, encoding, notes=tuple(notes))


def _read_lines(text: str, name: str, options: ReadingOptions, encoding: str, notes: Sequence[str]) -> UploadedTable:
    """Read one item per line."""
    lines = [(number, _unquoted(line.strip())) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    has_header, is_certain = _guess_header([[line] for _, line in lines[:_SAMPLE_RECORDS]])
    if PurePath(name).suffix.lower() == ".txt":
        has_header, is_certain = False, True
    if options.has_header is not None:
        has_header, is_certain = options.has_header, True
    header = lines[0][1] if has_header else "text"
    content = lines[1:] if has_header else lines
    numbers = [number for number, _ in content]
    table = Table(
        pl.DataFrame({header: [line for _, line in content]}, schema={header: pl.String}), name, lambda: numbers
    )
    return UploadedTable(table, has_header, is_certain, None, encoding, notes=tuple(notes))


def _unquoted(line: str) -> str:
    if len(line) > 1 and line[0] == line[-1] == '"' and '"' not in line[1:-1].replace('""', ""):
        return line[1:-1].replace('""', '"')
    return line


def decode(data: bytes, name: str, chosen: str | None = None) -> tuple[str, str, list[str]]:
    """Decode a text; return it with its encoding, and a note if the encoding was guessed."""
    marked = next((encoding for mark, encoding in _BYTE_ORDER_MARKS if data.startswith(mark)), None)
    if chosen is not None and chosen not in ENCODINGS:
        raise DataError(f"'{chosen}' is not one of the encodings.", "Choose one from the list.", file=name)
    if marked is not None and chosen is None:
        chosen = marked
    if chosen is not None:
        try:
            return data.decode(chosen), chosen.removesuffix("-sig"), []
        except UnicodeDecodeError as error:
            raise DataError(
                f"it is not {ENCODINGS.get(chosen, chosen)} text (byte {error.start}).",
                "Choose another encoding.",
                file=name,
                line=data.count(b"\n", 0, error.start) + 1,
            ) from None
    try:
        if b"\0" not in data:
            return data.decode("utf-8"), "utf-8", []
    except UnicodeDecodeError:
        pass
    if (wide := _without_mark(data)) is not None:
        return data.decode(wide), "utf-16", ["The file has no encoding mark; it was read as UTF-16."]
    if b"\0" in data:
        raise DataError("it is not a text file.", "Give the file the suffix of its format.", file=name)
    # Windows-1252 leaves five bytes undefined, which Latin-1 defines as control characters.
    text = data.decode("cp1252", errors="replace")
    note = (
        "The file is not UTF-8; it was read as Windows-1252 (Western European). If letters look wrong, choose another "
        "encoding."
    )
    return text, "cp1252", [note]


def _without_mark(data: bytes) -> str | None:
    """Recognise UTF-16 without a byte-order mark: every second byte of most texts is zero."""
    sample = data[: 4096 - len(data[:4096]) % 2]
    half = len(sample) // 2
    if not half or len(data) % 2:
        return None
    for encoding, zeros in (("utf-16-le", sample[1::2].count(0)), ("utf-16-be", sample[0::2].count(0))):
        if zeros > 0.6 * half:
            try:
                data.decode(encoding)
            except UnicodeDecodeError:
                return None
            return encoding
    return None


def _first_records(text: str, separator: str) -> list[list[str]]:
    """Return the first records with content; broken quoting ends them early, and the parser reports it later."""
    records: list[list[str]] = []
    try:
        for fields in csv.reader(io.StringIO(text[:1_000_000], newline=""), delimiter=separator):
            if any(field.strip() for field in fields):
                records.append([field.strip() for field in fields])
            if len(records) == _SAMPLE_RECORDS:
                break
    except csv.Error:
        pass
    return records


def _guess_separator(text: str, suffix: str) -> str | None:
    """Return the separator with which nearly all records have the same number of fields; None for single lines."""
    if suffix == ".txt":
        return None
    best: tuple[float, int, str] | None = None
    for separator in SEPARATORS:
        widths = Counter(len(record) for record in _first_records(text, separator))
        if not widths:
            continue
        width, count = widths.most_common(1)[0]
        regularity = count / widths.total()
        # Commas and bars also occur within sentences, so a few regular lines do not suffice for more than one column.
        if width > 1 and regularity >= 0.8 and (best is None or (regularity, width) > best[:2]):
            best = (regularity, width, separator)
    first = text.partition("\n")[0]
    if best is None and suffix == ".tsv" and "\t" in first:
        return "\t"
    if best is None:
        # Irregular rows under a header with known names are a damaged table, which the parser reports by line.
        return next((s for s in SEPARATORS if s in first and _known_names(first.split(s)) > 1), None)
    return best[2]


# Headers

_HEADER_NAMES = frozenset(
    (
        *("id", "item", "itemid", "key", "index", "no", "number", "name"),
        *("text", "content", "word", "term", "phrase", "sentence", "headline", "title", "tweet", "post"),
        *("output", "translation", "hypothesis", "hyp", "response", "answer", "summary", "completion", "target"),
        *("group", "system", "model", "engine", "systemid", "systemname", "modelname"),
        *("context", "source", "src", "prompt", "input", "question", "document", "instruction", "query"),
        *("reference", "ref", "gold", "label", "tags", "tag", "category", "domain", "topic", "language", "lang"),
        *("media", "image", "img", "picture", "audio", "sound", "video", "file", "url"),
        *("comment", "comments", "note", "notes", "author", "date"),
    )
)
_SURE_NAMES = frozenset(
    (
        "id",
        "item",
        "items",
        "text",
        "texts",
        "content",
        "word",
        "words",
        "sentence",
        "sentences",
        "headline",
        "headlines",
    )
)
"""Names of a single column. Others, such as 'answer', may be the first of a list of words."""
_SURE_BESIDE_OTHERS = frozenset(
    ("source", "src", "prompt", "system", "reference", "ref", "output", "translation", "hypothesis", "hyp", "itemid")
)
"""Names that are no content where there are other columns."""


def _known_names(cells: Sequence[str]) -> int:
    return sum(1 for cell in cells if plain(cell.strip().strip('"')) in _HEADER_NAMES)


def _guess_header(rows: Sequence[Sequence[str]]) -> tuple[bool, bool]:
    """Return whether the first row is a header, and whether that is certain; in doubt it is content."""
    if not rows or not all(rows[0]) or len(set(rows[0])) < len(rows[0]):
        return False, True
    first, body = rows[0], rows[1:]
    if any(len(cell) >= _LONG_CELL or _is_number(cell) or re.search(r"[.!?。！？]$", cell) for cell in first):
        return False, True
    if len(first) == 1:
        is_name = plain(first[0]) in _SURE_NAMES
        return is_name, is_name
    has_sure_name = any(plain(cell) in _SURE_NAMES or plain(cell) in _SURE_BESIDE_OTHERS for cell in first)
    is_header = has_sure_name or _known_names(first) > 1 or _differs_from(first, body)
    return is_header, is_header


def _differs_from(first: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Whether the first row is unlike the others: words above numbers, or short names above long texts."""
    columns = list(zip(*(row for row in body if len(row) == len(first)), strict=True))
    if any(any(column) and all(_is_number(cell) for cell in column if cell) for column in columns):
        return True
    lengths = [sum(map(len, column)) / len(column) for column in columns if column]
    are_names = all(re.fullmatch(r"[A-Za-z][\w ./-]{0,29}", cell) for cell in first)
    return are_names and bool(lengths) and max(lengths) > 3 * max(map(len, first))


def _is_number(cell: str) -> bool:
    return bool(re.fullmatch(r"[-+]?\d+([.,]\d+)?%?", cell.strip()))


def column_names(count: int) -> list[str]:
    """Names for the columns of a table without a header."""
    return ["text"] if count == 1 else [f"column {number}" for number in range(1, count + 1)]


# Other formats


def _read_json(data: bytes, name: str, options: ReadingOptions) -> UploadedTable:
    text, encoding, notes = decode(data, name, options.encoding)
    is_object = PurePath(name).suffix.lower() == ".json" and text.lstrip().startswith("{")
    if text.lstrip().startswith("[") or is_object:
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"it is not JSON: {error}.", "Write a list of objects.", file=name) from None
        rows = items_of_export(content) or content
        if not rows or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise DataError("it is not a list of objects.", 'Write [{"text": "…"}, …].', file=name)
        text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    elif (lines_of_export := _exported_lines(text)) is not None:
        text = lines_of_export
    content = text.encode("utf-8", "surrogatepass")
    if '"esa_spans"' in text and '"esa_score"' in text:
        _, items, _, esa_notes = read_esa(content, name)
        return UploadedTable(Table(items, name), True, True, encoding=encoding, notes=(*notes, *esa_notes))
    upload = _read_typed(parse_json_lines(content, name), name)
    lines = [number for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    table = replace(upload.table, find_lines=lambda: lines)
    return replace(upload, table=table, encoding=encoding, notes=tuple(notes))


def _exported_lines(text: str) -> str | None:
    """Return the items of an export in JSON lines (Potato), one object per line; None if it is not an export."""
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        if items_of_export([json.loads(lines[0])]) is None:
            return None
        rows = items_of_export([json.loads(line) for line in lines])
    except (ValueError, RecursionError):
        return None
    return None if rows is None else "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


def _read_typed(frame: pl.DataFrame, name: str) -> UploadedTable:
    """Turn typed columns into strings; lists of strings become text separated by semicolons, other values JSON."""
    return UploadedTable(Table(frame.select(as_text(column) for column in frame), name), True, True)


def as_text(column: pl.Series) -> pl.Series:
    """Return a typed column as texts; lists of strings are joined by semicolons, other nested values become JSON."""
    if column.dtype == pl.List(pl.String):
        return column.list.join(";")
    if column.dtype.is_nested() or column.dtype == pl.Object:
        values = [
            None if value is None else json.dumps(value, ensure_ascii=False, default=str) for value in column.to_list()
        ]
        return pl.Series(column.name, values, pl.String)
    if column.dtype == pl.Binary:
        return pl.Series(column.name, [None] * len(column), pl.String)
    if column.dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        if (whole == column).all():
            column = whole
    return column.cast(pl.String)


def _read_spreadsheet(data: bytes, name: str, options: ReadingOptions) -> UploadedTable:
    from openpyxl import load_workbook

    _refuse_zip_bomb(data, name)
    try:
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
        sheets = tuple(sheet.title for sheet in book.worksheets)
        if not sheets:
            raise DataError("it has no sheet with cells.", "Choose another file.", file=name)
        sheet = options.sheet if options.sheet in sheets else _first_filled(book, sheets)
        cells = book[sheet].iter_rows(max_row=MAX_ROWS + 2, max_col=MAX_COLUMNS + 1, values_only=True)
        numbered = [(number, [_cell(value) for value in row]) for number, row in enumerate(cells, 1)]
    except DataError:
        raise
    except Exception as error:
        raise DataError(
            f"it cannot be read as a spreadsheet ({type(error).__name__}).",
            "Save it again as .xlsx, or as CSV.",
            file=name,
        ) from None
    rows = [(number, row) for number, row in numbered if any(row)]
    if not rows:
        raise DataError(f"the sheet '{sheet}' is empty.", "Choose another sheet or file.", file=name)
    width = max(place for _, row in rows for place, cell in enumerate(row, 1) if cell)
    rows = [(number, (row + [""] * width)[:width]) for number, row in rows]
    has_header, is_certain = _guess_header([row for _, row in rows[:_SAMPLE_RECORDS]])
    if options.has_header is not None:
        has_header, is_certain = options.has_header, True
    names = column_names(width)
    if has_header:
        names = [cell or f"column {place}" for place, cell in enumerate(rows[0][1], 1)]
        refuse_repeated_names(names, name, rows[0][0])
        rows = rows[1:]
    numbers = [number for number, _ in rows]
    frame = pl.DataFrame(
        [pl.Series(column, [row[place] or None for _, row in rows], pl.String) for place, column in enumerate(names)]
    )
    notes = (f"Read from the sheet '{sheet}'; the file has {len(sheets)} sheets.",) if len(sheets) > 1 else ()
    return UploadedTable(Table(frame, name, lambda: numbers), has_header, is_certain, None, None, sheet, sheets, notes)


def _first_filled(book: Any, sheets: Sequence[str]) -> str:
    for name in sheets:
        for row in book[name].iter_rows(max_row=20, max_col=20, values_only=True):
            if any(value is not None for value in row):
                return name
    return sheets[0]


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time().isoformat() == "00:00:00" else value.isoformat(" ")
    if isinstance(value, date):
        return value.isoformat()
    return str(value).strip()


def _refuse_zip_bomb(data: bytes, name: str) -> None:
    """Refuse a spreadsheet that unpacks to far more than its size; zipfile reads no more than the sizes stated here."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            members = packed.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise DataError("it is not an .xlsx file, or it is damaged.", "Save it again as .xlsx.", file=name) from None
    unpacked = sum(member.file_size for member in members)
    if unpacked > _MAX_UNPACKED_BYTES or len(members) > _MAX_MEMBERS:
        raise DataError(
            f"it unpacks to {unpacked / 1e6:,.0f} MB in {len(members):,} parts, which is too much for a table.",
            "Save the sheet with the items as CSV.",
            file=name,
        )
