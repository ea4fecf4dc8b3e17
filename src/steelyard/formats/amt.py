"""Read batch results of Amazon Mechanical Turk: one assignment per row.

The columns `Input.*` hold the content of the task, the columns `Answer.*` the answers.
An assignment has one question (`Input.item`, `Answer.value`) or several numbered ones
(`Input.pair_id_0` …, `Answer.rating0` …).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.errors import DataError, did_you_mean
from steelyard.formats.columns import matching, numbered, plain
from steelyard.formats.rows import Rows, counted
from steelyard.formats.tables import Table, strings

_INPUTS = {
    "item": ("item", "itemid", "id", "pairid", "segmentid", "sentenceid"),
    "left": ("left",),
    "right": ("right",),
    "items": ("items",),
    "criterion": ("criterion",),
}
_ANSWERS = {
    "value": ("value", "score", "rating", "slider"),
    "label": ("label", "category", "class"),
    "winner": ("winner",),
    "best": ("best",),
    "worst": ("worst",),
    "ranking": ("ranking",),
    "missing": ("na", "missing"),
}
_METADATA = {"annotator": "WorkerId", "task": "HITId", "seconds": "WorkTimeInSeconds"}
_NEEDS = {
    "comparisons": ("left", "right", "winner"),
    "choices": ("items", "best", "worst"),
    "rankings": ("ranking",),
    "ratings": ("item", "value"),
    "labels": ("item", "label"),
}
_OPTIONAL = ("criterion", "missing", "annotator", "task", "seconds")
_FIELDS = tuple(dict.fromkeys([*_INPUTS, *_ANSWERS, *_METADATA]))
_UNTICKED = ("", "0", "false", "no", "off")

Numbered = Mapping[int | None, str]
"""The columns of one field by the number in their name; None for a column without a number."""


def is_amt(frame: pl.DataFrame) -> bool:
    """Return whether a table looks like batch results."""
    return "WorkerId" in frame.columns and any(name.startswith("Answer.") for name in frame.columns)


def rows_from_amt(table: Table, kind: str | None, columns: Mapping[str, str] | None, strict: bool) -> tuple[str, Rows]:
    """Rename the columns and return one row per question; rejected assignments are left out."""
    fields = _find(table, columns or {})
    if {"left", "right"} <= fields.keys() and "winner" not in fields and "label" in fields:
        fields["winner"] = fields.pop("label")
    kind = kind or _guess(fields, table)
    if kind == "choices" and "items" not in fields and None not in fields.get("item", {None: ""}):
        fields["items"] = fields.pop("item")
    fields = {field: fields[field] for field in (*_NEEDS[kind], *_OPTIONAL) if field in fields}
    for field in _NEEDS[kind]:
        if field not in fields:
            raise DataError(
                f"these appear to be {kind}, but there is no column for {field}.",
                f"Map it, with * for a number: --columns {field}=Input.their_name_*.",
                file=table.file,
                field=field,
            )
    notes: list[str] = []
    accepted = _not_rejected(table, notes)
    frame, row = _questions(table, fields, kind)
    use = accepted[row]
    if "missing" in frame.columns:
        ticked = ~frame["missing"].fill_null("").str.strip_chars().str.to_lowercase().is_in(_UNTICKED).to_numpy()
        if (ticked & use).any():
            notes.append(f"{counted(int((ticked & use).sum()), 'answer')} marked as missing: left out.")
        use &= ~ticked
        frame = frame.drop("missing")
    if not use.any():
        raise DataError(f"no assignment can be used. {' '.join(notes)}", "Check the batch.", file=table.file)
    used = sum(map(len, fields.values()))
    notes.append(f"{table.frame.width - used} of {table.frame.width} columns were not used.")
    headers = {field: _pattern(by_number) for field, by_number in fields.items()}
    if "seconds" in frame.columns:
        # The time is that of the assignment; it is divided equally among its questions.
        share = pl.Series(np.bincount(row)[row])
        frame = frame.with_columns(pl.col("seconds").cast(pl.Float64, strict=False) / share)
    return kind, Rows(frame.filter(pl.Series(use)), table, headers, strict, row[use], notes)


def _find(table: Table, mapping: Mapping[str, str]) -> dict[str, Numbered]:
    names = table.frame.columns
    fields: dict[str, Numbered] = {}
    for field, pattern in mapping.items():
        if field not in _FIELDS:
            raise DataError(
                f"columns maps '{field}', which is not a field.", did_you_mean(field, _FIELDS), file=table.file
            )
        by_number: Numbered = {None: pattern}
        if "*" in pattern:
            by_number = dict[int | None, str](matching(pattern, names).items())
        if not by_number or not set(by_number.values()) <= set(names):
            raise DataError(
                f"columns maps {field} to '{pattern}', but there is no such column.",
                did_you_mean(pattern, names),
                file=table.file,
            )
        fields[field] = by_number
    for prefix, aliases_by_field in (("Input.", _INPUTS), ("Answer.", _ANSWERS)):
        bases = {name: name.removeprefix(prefix) for name in names if name.startswith(prefix)}
        for field, aliases in aliases_by_field.items():
            if field not in fields:
                guess = next((match for alias in aliases if (match := _named(alias, bases))), None)
                if guess:
                    fields[field] = guess
    for field, name in _METADATA.items():
        if field not in fields and name in names:
            fields[field] = {None: name}
    return fields


def _named(alias: str, bases: Mapping[str, str]) -> Numbered:
    for name, base in bases.items():
        if plain(base) == alias:
            return {None: name}
    split = {name: numbered(base) for name, base in bases.items()}
    by_number = {parts[1]: name for name, parts in split.items() if parts and plain(parts[0]) == alias}
    return dict(sorted(by_number.items()))


def _guess(fields: Mapping[str, Numbered], table: Table) -> str:
    fitting = [kind for kind, needs in _NEEDS.items() if any(field in fields for field in needs if field in _ANSWERS)]
    if len(fitting) == 1:
        return fitting[0]
    answers = [name for name in table.frame.columns if name.startswith("Answer.")]
    raise DataError(
        f"the columns match {' and '.join(fitting)}."
        if fitting
        else f"no answer column is recognised among {', '.join(answers[:8])}.",
        "Choose a kind (--kind ratings) and map its columns (--columns value=Answer.their_name).",
        file=table.file,
    )


def _not_rejected(table: Table, notes: list[str]) -> NDArray[np.bool_]:
    if "AssignmentStatus" not in table.frame.columns:
        return np.ones(table.frame.height, np.bool_)
    status = _column(table, "AssignmentStatus").str.strip_chars().str.to_lowercase()
    rejected = (status == "rejected").fill_null(False).to_numpy()
    if rejected.any():
        notes.append(f"{counted(int(rejected.sum()), 'rejected assignment')}: left out.")
    return ~rejected


def _questions(table: Table, fields: dict[str, Numbered], kind: str) -> tuple[pl.DataFrame, NDArray[np.intp]]:
    """Return one row per question, with standard column names, and the row of its assignment."""
    height = table.frame.height
    if kind == "choices" and None in fields["best"] and None not in fields["items"]:
        # The numbers distinguish the items of one tuple, not several questions.
        items = fields.pop("items")
        fields |= {f"item{place}": {None: name} for place, name in enumerate(items.values(), 1)}
    ranges = {field: list(by_number) for field, by_number in fields.items() if None not in by_number}
    numbers = next(iter(ranges.values()), [None])
    for field, other in ranges.items():
        if other != numbers and field != "missing":
            first = next(iter(ranges))
            raise DataError(
                f"{_pattern(fields[first])} and {_pattern(fields[field])} have different numbers.",
                "Map columns with the same numbers: --columns item=Input.their_name_* value=Answer.their_name_*.",
                file=table.file,
            )
    answered = [field for field in _NEEDS[kind] if field in _ANSWERS and None in fields[field]]
    if ranges and answered:
        raise DataError(
            f"{_pattern(fields[answered[0]])} is one column, but there are several questions.",
            f"Map it, with * for the number: --columns {answered[0]}=Answer.their_name_*.",
            file=table.file,
        )
    parts = [
        table.frame.select(
            _column(table, by_number.get(number) or by_number[None]).alias(field)
            for field, by_number in fields.items()
            if number in by_number or None in by_number
        )
        for number in numbers
    ]
    frame = pl.concat(parts, how="diagonal")
    order = np.arange(frame.height).reshape(len(parts), height).T.ravel()
    frame, row = frame[order], np.repeat(np.arange(height), len(parts))
    if not ranges:
        return frame, row
    # A task may have fewer questions than the template has places for.
    has_content = frame.select(pl.any_horizontal(pl.col(_NEEDS[kind]).is_not_null())).to_series()
    return frame.filter(has_content), row[has_content.to_numpy()]


def _column(table: Table, name: str) -> pl.Series:
    return strings(table.frame[name], table.file, name)


def _pattern(by_number: Numbered) -> str:
    number, name = next(iter(by_number.items()))
    return name if number is None else name.removesuffix(str(number)) + "*"
