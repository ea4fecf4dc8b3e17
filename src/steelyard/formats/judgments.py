"""Read judgments from tables: conventional files, WMT rankings and Mechanical Turk batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.errors import DataError, did_you_mean
from steelyard.formats.amt import is_amt, rows_from_amt
from steelyard.formats.comparative import read_choices, read_comparisons
from steelyard.formats.marked import parse_marks
from steelyard.formats.pointwise import read_labels, read_ratings
from steelyard.formats.problems import skipped_note
from steelyard.formats.ranked import read_rankings
from steelyard.formats.roles import Roles, find_roles
from steelyard.formats.rows import BoolArray, Reading, Rows, encode
from steelyard.formats.tables import Source, Table, open_table
from steelyard.formats.wmt import is_wmt, read_wmt, rows_from_wmt
from steelyard.observations import KINDS, UNKNOWN, MarkedText, Observations, Ratings, Spans
from steelyard.protocols.error_spans import spans_of

_READERS: dict[str, Callable[[Rows, tuple[float, float] | None], Reading]] = {
    "ratings": read_ratings,
    "comparisons": lambda rows, _: read_comparisons(rows),
    "choices": lambda rows, _: read_choices(rows),
    "labels": lambda rows, _: read_labels(rows),
    "rankings": lambda rows, _: read_rankings(rows),
}


@dataclass(frozen=True, slots=True)
class JudgmentFile:
    """Observations by criterion ("" if the file has none), and notes on irregularities.

    `notes` are sentences: the number of irregular rows and how they were treated, ignored columns, an inferred scale.
    """

    by_criterion: dict[str, Observations]
    notes: tuple[str, ...] = ()
    line: Callable[[str, int], int | None] = field(default=lambda criterion, number: None, repr=False, compare=False)
    """The line of an observation (criterion, number) in the file."""
    seconds: Callable[[str, int], float | None] = field(
        default=lambda criterion, number: None, repr=False, compare=False
    )
    """The response time of an observation (criterion, number) in seconds, if the file has it."""
    marks: Callable[[str, str, int], list[dict[str, object]] | None] = field(
        default=lambda name, criterion, number: None, repr=False, compare=False
    )
    """The marks of a rating (field `spans` or `suggestions`, criterion, number), if the file has them."""
    rows: Callable[[str], NDArray[np.intp]] = field(
        default=lambda criterion: np.zeros(0, np.intp), repr=False, compare=False
    )
    """The row of the table, from 0, of each observation of a criterion."""

    items: pl.DataFrame | None = field(default=None, repr=False, compare=False)
    """The items, where the file describes them: id, text, group, context, document."""

    def marked_texts(self, criterion: str) -> Spans | None:
        """Return the marked errors of the ratings of a criterion; None if the file has none."""
        ratings = self.by_criterion[criterion]
        if not isinstance(ratings, Ratings):
            return None
        marks = [self.marks("spans", criterion, number) for number in range(len(ratings))]
        rows = np.array([number for number, spans in enumerate(marks) if spans is not None], np.intp)
        if not rows.size:
            return None
        items = [ratings.items[int(code)] for code in ratings.item[rows]]
        records = [MarkedText(item, spans_of(marks[row] or ())) for item, row in zip(items, rows, strict=True)]
        return Spans.of(records, items=ratings.items, annotators=ratings.annotators, annotator=ratings.annotator[rows])

    @property
    def kind(self) -> str:
        """The kind of observations, such as "ratings"."""
        return next(iter(self.by_criterion.values())).kind

    @property
    def observations(self) -> Observations:
        """The observations, when there is one criterion or none."""
        if len(self.by_criterion) > 1:
            raise DataError(
                f"there are {len(self.by_criterion)} criteria: {', '.join(self.by_criterion)}.",
                "Choose one of them from `by_criterion`.",
            )
        return next(iter(self.by_criterion.values()))


def read_judgments(
    source: Source,
    *,
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
    scale: tuple[float, float] | None = None,
    strict: bool = False,
    skip_bad_rows: bool = False,
) -> JudgmentFile:
    """Read judgments into observations.

    Parameters
    ----------
    source : path, frame or list of dicts
        As for `read_table`. Conventional columns need no options; WMT ranking files and Mechanical Turk batch
        results are recognised by their columns.
    kind : {"ratings", "comparisons", "choices", "labels", "rankings"}, optional
        Needed only if the columns fit several kinds.
    columns : mapping, optional
        Mapping of fields to columns, such as ``{"value": "score_raw"}``; * matches a number. Columns joined by + make a
        field together: ``{"item": "document+system"}``.
    scale : tuple of float, optional
        Lower and upper end of the ratings; by default inferred from the values, with a note: up to eleven different
        whole numbers are the steps of a scale, and of other values only the range is known.
    strict : bool
        Refuse incomplete rows and unknown columns. By default, they are handled, and counted in the notes.
    skip_bad_rows : bool
        Skip invalid rows, such as an item compared with itself, and count them in a note. By default, a file with
        invalid rows is refused.
    """
    if kind is not None and kind not in KINDS:
        raise DataError(f"'{kind}' is not a kind of judgments.", did_you_mean(kind, list(KINDS)))
    if scale is not None and not scale[0] < scale[1]:
        raise DataError(f"the scale runs from {scale[0]:g} to {scale[1]:g}.", "Give the lower end first.")
    refuse_contradiction(strict, skip_bad_rows)
    table = _with_joint_columns(open_table(source, skip_bad_rows=skip_bad_rows), columns or {})
    if table.frame.height == 0:
        raise DataError("there are no judgments.", "Add one row per judgment.", file=table.file)
    if is_wmt(table.frame) and kind in (None, "rankings"):
        rows = rows_from_wmt(table, columns, strict)
        reading = read_wmt(rows)
    else:
        kind, rows = (rows_from_amt if is_amt(table.frame) else _conventional_rows)(table, kind, columns, strict)
        reading = _READERS[kind](rows, scale)
    rows.notes[:0] = table.notes
    marks_by_row = {name: _marks(rows, name) for name in ("spans", "suggestions") if name in rows}
    rows.check_sources()
    if skip_bad_rows:
        reading = _without_bad_rows(rows, reading)
    rows.problems.refuse(len(rows))
    if not reading.keep.any():
        raise DataError(
            f"no row can be used. {' '.join(map(sentence, rows.notes))}",
            "Check that the right columns were read.",
            file=table.file,
        )
    parts = _parts(rows, reading)
    by_criterion = _split(rows, reading, parts)

    @cache
    def rows_of(criterion: str) -> NDArray[np.intp]:
        return np.flatnonzero(parts[criterion])

    def row_of(criterion: str, number: int) -> int:
        return int(rows_of(criterion)[number])

    def line(criterion: str, number: int) -> int:
        return rows.lines([row_of(criterion, number)])[0]

    times = rows.text("seconds").cast(pl.Float64, strict=False).to_list() if "seconds" in rows else None

    def seconds(criterion: str, number: int) -> float | None:
        value = None if times is None else times[row_of(criterion, number)]
        return value if value is not None and 0 <= value < float("inf") else None

    def marks(name: str, criterion: str, number: int) -> list[dict[str, object]] | None:
        return marks_by_row[name][row_of(criterion, number)] if name in marks_by_row else None

    return JudgmentFile(by_criterion, tuple(map(sentence, rows.notes)), line, seconds, marks, rows_of, table.items)


def _marks(rows: Rows, name: str) -> list[list[dict[str, object]] | None]:
    """Return the marks of each row; the problems of cells that hold none are recorded."""
    marks: list[list[dict[str, object]] | None] = []
    for row, cell in enumerate(_cells(rows, name)):
        try:
            marks.append(parse_marks(cell))
        except (ValueError, TypeError, RecursionError):
            marks.append(None)
            remedy = 'Write a list such as [{"start": 0, "end": 4, "severity": "minor"}].'
            rows.problems.at([row], "the marks cannot be read.", remedy, rows.header(name))
    return marks


def _cells(rows: Rows, name: str) -> list[str | None]:
    column = rows.frame[name]
    if column.dtype.is_nested():
        return [None if value is None else json.dumps(value) for value in column.to_list()]
    return rows.text(name).to_list()


def _with_joint_columns(table: Table, columns: Mapping[str, str]) -> Table:
    """Add a column for every mapping such as document+system, in place of columns that are used in no other way."""
    frame, names = table.frame, set(columns.values())
    joint = {
        name: parts
        for name in names - set(frame.columns)
        if len(parts := [part.strip() for part in name.split("+")]) > 1 and set(parts) <= set(frame.columns)
    }
    if not joint:
        return table
    frame = frame.with_columns(
        pl.concat_str([pl.col(part).cast(pl.String) for part in parts], separator=" / ").alias(name)
        for name, parts in joint.items()
    )
    return replace(table, frame=frame.drop({part for parts in joint.values() for part in parts} - names))


def refuse_contradiction(strict: bool, skip_bad_rows: bool) -> None:
    """Refuse to be strict and to skip bad rows at once."""
    if strict and skip_bad_rows:
        raise DataError("strict and skip_bad_rows cannot be combined.", "Choose one of them.")


def _without_bad_rows(rows: Rows, reading: Reading) -> Reading:
    is_bad, notes = rows.problems.skip_rows(len(rows))
    if rows.table.skipped:
        notes.append(skipped_note(len(rows.table.skipped), rows.table.skipped))
    rows.notes.extend(notes)
    return Reading(reading.keep & ~is_bad, reading.build)


def _conventional_rows(
    table: Table, kind: str | None, columns: Mapping[str, str] | None, strict: bool
) -> tuple[str, Rows]:
    roles = find_roles(table, kind, columns)
    frame = table.frame.select(pl.col(column).alias(field) for field, column in roles.columns.items())
    rows = Rows(frame, table, roles.columns, strict)
    if not strict:
        rows.notes.extend(unused_columns(roles))
    for name in roles.unused if strict else ():
        rows.problems.add("unknown column.", unknown_column(name, roles), field=name)
    return roles.kind, rows


def unused_columns(roles: Roles) -> list[str]:
    """Return notes on the unused columns, with suggestions for misspelt ones."""
    notes = [f"ignored columns: {', '.join(roles.unused)}."] if roles.unused else []
    missing = [field for field in roles.fields if field not in roles.columns]
    for name in roles.unused:
        guess = did_you_mean(name, missing)
        if guess.startswith("Did"):
            notes.append(f"'{name}': {guess}")
    return notes


def unknown_column(name: str, roles: Roles) -> str:
    """Return the remedy for an unused column."""
    return f"{did_you_mean(name, roles.fields)} Remove it or read without strict."


def _parts(rows: Rows, reading: Reading) -> dict[str, BoolArray]:
    """Return the usable rows of each criterion."""
    if "criterion" not in rows:
        return {"": reading.keep}
    criteria, (code,) = encode(rows.text("criterion"))
    parts = {name: reading.keep & (code == number) for number, name in [(UNKNOWN, ""), *enumerate(criteria.ids)]}
    return {name: keep for name, keep in parts.items() if keep.any()}


def _split(rows: Rows, reading: Reading, parts: Mapping[str, BoolArray]) -> dict[str, Observations]:
    by_criterion: dict[str, Observations] = {}
    for name, keep in parts.items():
        before = len(rows.notes)
        by_criterion[name] = reading.build(keep)
        if name:
            rows.notes[before:] = [f"criterion {name}: {note}" for note in rows.notes[before:]]
    return by_criterion


def sentence(note: str) -> str:
    """Capitalize the first letter."""
    return note[0].upper() + note[1:]
