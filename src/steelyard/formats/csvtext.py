"""Parse CSV and TSV text: a fast parser, a slower one that locates errors, and line numbers."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence

import polars as pl

from steelyard.errors import DataError, Problem
from steelyard.formats.problems import bad_rows_note, capped

EMPTY_REMEDY = "Add a header row with column names, then one row per entry."
_RIVAL_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}


def parse_csv(data: bytes, separator: str, file: str, skipped: list[Problem] | None = None) -> pl.DataFrame:
    """Parse delimited text, every column as strings; rows without any content are left out.

    Rows with too few or too many fields are refused, or left out and added to the list `skipped` where there is one.

    Polars parses first. If it fails, or if stray quotes make its result doubtful, Python's slower csv module
    either reads the text or reports the wrong line.
    """
    header = _header(data, separator, file)
    try:
        frame = pl.read_csv(data, separator=separator, infer_schema=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return _parse_carefully(data, separator, file, header, skipped)
    if frame.width != len(header) or (b'"' in data and _quotes_or_newlines_inside(frame)):
        return _parse_carefully(data, separator, file, header, skipped)
    frame.columns = header
    blank = frame.height
    frame = _without_blank_rows(frame)
    blank -= frame.height
    # Polars fills short rows with nulls; equal separator counts prove that there are none.
    if (
        frame.width > 1
        and frame[:, -1].null_count()
        and (blank or b'"' in data or data.count(separator.encode()) != (frame.height + 1) * (frame.width - 1))
    ):
        return _parse_carefully(data, separator, file, header, skipped)
    return frame


def csv_lines(data: bytes, separator: str, width: int | None = None) -> list[int]:
    """Return the line on which each row starts, counting the header as the first line.

    With `width`, rows with another number of fields are left out, as they were when the text was parsed.
    """
    records = list(_records(decoded(data, ""), separator))[1:]
    return [line for line, fields in records if width is None or len(fields) == width]


def decoded(data: bytes, file: str) -> str:
    """Decode UTF-8 with or without a byte-order mark; the error names the first invalid byte."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The reported offset does not count the byte-order mark that "utf-8-sig" removed.
        start = error.start + (3 if data.startswith(b"\xef\xbb\xbf") else 0)
        raise DataError(
            f"byte 0x{data[start]:02x} at offset {start} is not UTF-8.",
            "Save the file as UTF-8.",
            file=file,
            line=data.count(b"\n", 0, start) + 1,
        ) from None


def _records(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each record that has content, with the line on which it starts."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    start = 1
    try:
        for fields in reader:
            if any(fields):
                yield start, fields
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"the quotation marks do not match ({error}).",
            'Close every quoted field, and double quotation marks inside it: "".',
            line=start,
        ) from None


def _header(data: bytes, separator: str, file: str) -> list[str]:
    first = data[: data.find(b"\n", 1 << 16) + 1] or data
    try:
        record = next(_records(decoded(first, file), separator), None)
    except DataError as error:
        raise _in_file(error, file) from None
    if record is None:
        raise DataError("the file is empty.", EMPTY_REMEDY, file=file)
    line, names = record
    if len(names) == 1:
        for rival, plural in _RIVAL_SEPARATORS.items():
            if rival != separator and rival in names[0]:
                raise DataError(
                    f"the header has no {_RIVAL_SEPARATORS[separator]}, but it has {plural}.",
                    "Save it as CSV separated by commas, or as .tsv separated by tabs.",
                    file=file,
                    line=line,
                )
    names = [name.strip() or f"column {position}" for position, name in enumerate(names, 1)]
    refuse_repeated_names(names, file, line)
    return names


def refuse_repeated_names(names: Sequence[str], file: str, line: int | None) -> None:
    """Raise DataError when two columns have the same name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(
            Problem("this column name appears twice.", "Rename or remove one of them.", file, line, name)
            for name in twice
        )


def _parse_carefully(
    data: bytes, separator: str, file: str, header: list[str], skipped: list[Problem] | None
) -> pl.DataFrame:
    rows: list[list[str]] = []
    problems: list[Problem] = []
    try:
        records = _records(decoded(data, file), separator)
        next(records)
        for line, fields in records:
            if len(fields) == len(header):
                rows.append(fields)
            else:
                problems.append(
                    Problem(
                        f"{len(fields)} fields where the header has {len(header)}.",
                        f"Give the row {len(header)} fields; quote a field that contains the separator.",
                        file,
                        line,
                    )
                )
    except DataError as error:
        raise _in_file(error, file) from None
    if problems and skipped is None:
        refusal = DataError(capped(problems))
        refusal.add_note(bad_rows_note(len(problems), len(rows) + len(problems)))
        raise refusal
    if skipped is not None:
        skipped.extend(problems)
    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    return pl.DataFrame(
        [
            pl.Series(name, [value or None for value in column], pl.String)
            for name, column in zip(header, columns, strict=True)
        ]
    )


def _in_file(error: DataError, file: str) -> DataError:
    return DataError(Problem(p.what, p.remedy, file, p.line, p.field) for p in error.problems)


def _quotes_or_newlines_inside(frame: pl.DataFrame) -> bool:
    return any(column.str.contains_any(['"', "\n"]).any() for column in frame)


def _without_blank_rows(frame: pl.DataFrame) -> pl.DataFrame:
    first = frame[:, 0]
    if not first.null_count() and not (first == "").any():
        return frame
    return frame.filter(pl.any_horizontal(pl.all().str.len_bytes() > 0))
