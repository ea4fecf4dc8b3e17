"""Read items from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from steelyard.errors import DataError, did_you_mean
from steelyard.formats.columns import find_columns, plain
from steelyard.formats.problems import Problems
from steelyard.formats.tables import Source, Table, open_table, strings
from steelyard.records import Item

ALIASES: dict[str, tuple[str, ...]] = {
    "id": ("item", "itemid"),
    "text": ("content", "word", "term", "phrase", "sentence", "headline", "output", "translation"),
    "group": ("system",),
    "context": ("source",),
    "reference": ("ref",),
    "media": ("image", "audio", "video", "url"),
    "tags": ("tag",),
    "gold": (),
}
"""Fields, and the aliases of their column names."""

_COLUMNS_EXAMPLE = 'items = { file = "...", columns = { text = "their_name" }, ignore = ["notes"] }'


def read_items(source: Source, *, columns: Mapping[str, str] | None = None, ignore: Sequence[str] = ()) -> list[Item]:
    """Read items, in the order of the table.

    Parameters
    ----------
    source : path, frame or list of dicts
        As for `read_table`. Without an id column the text is the id; without a text column the id is the text,
        or the text is empty if there is media. A single column of any name is the text.
    columns : mapping, optional
        Our field to their column, such as ``{"text": "headline"}``.
    ignore : sequence of str
        Columns to leave out. Any other unknown column is an error.
    """
    table = open_table(source)
    problems = Problems(table.file, table.lines)
    fields = _fields(table, columns, ignore, problems)
    problems.refuse()
    if table.frame.height == 0:
        raise DataError("there are no items.", "Give one row for each item.", file=table.file)
    return _items(table, fields, problems)


def _fields(
    table: Table, columns: Mapping[str, str] | None, ignore: Sequence[str], problems: Problems
) -> dict[str, str]:
    names = [name for name in table.frame.columns if name not in ignore]
    for name in ignore:
        if name not in table.frame.columns:
            problems.add(f"ignore names '{name}', but there is no such column.", did_you_mean(name, names))
    matches = find_columns(names, ALIASES, columns, problems)
    fields = {field: candidates[0] for field, candidates in matches.columns.items()}
    unknown = []
    for name in (name for name in names if name not in fields.values()):
        rival = next((field for field in fields if plain(name) in (field, *ALIASES[field])), None)
        if rival is None:
            unknown.append(name)
            continue
        problems.add(
            f"'{fields[rival]}' and '{name}' could both be the {rival}.",
            f"Map one and ignore the other: in study.toml, {_COLUMNS_EXAMPLE}.",
            field=rival,
        )
    if unknown and len(names) == 1:
        return {"text": names[0]}
    for name in unknown:
        problems.add(
            "unknown column.",
            f"{did_you_mean(name, list(ALIASES))} Map or ignore it: in study.toml, {_COLUMNS_EXAMPLE}.",
            line=1 if table.find_lines else None,
            field=name,
        )
    if not problems and not {"id", "text", "media"} & set(fields):
        problems.add(
            "there is neither an id nor a text column.",
            f"Name one of them, or map it: in study.toml, {_COLUMNS_EXAMPLE}.",
        )
    return fields


def _items(table: Table, fields: dict[str, str], problems: Problems) -> list[Item]:
    values = {field: _values(table, field, column) for field, column in fields.items()}
    count = table.frame.height
    nothing = [""] * count
    media = values.get("media", nothing)
    text = values.get("text")
    if "id" in values:
        ids = values["id"]
        if text is None:
            text = ["" if medium else name for name, medium in zip(ids, media, strict=True)]
        _refuse_empty(problems, ids, fields["id"], "the id is empty.", "Give each item an id.")
        if "text" in fields:
            bare = [a or b for a, b in zip(text, media, strict=True)]
            _refuse_empty(problems, bare, fields["text"], "the text is empty.", "Give each item a text or media.")
        _refuse_repeated(
            problems,
            table,
            ids,
            fields["id"],
            "id '{}' appears twice; it is first on line {}.",
            "Give each item its own id.",
        )
    else:
        field = "text" if text is not None else "media"
        text = nothing if text is None else text
        ids = text if field == "text" else media
        _refuse_empty(problems, ids, fields[field], f"the {field} is empty.", "Write it, or remove the row.")
        _refuse_repeated(
            problems,
            table,
            ids,
            fields[field],
            "'{}' appears twice, so it cannot serve as id; it is first on line {}.",
            "Add an id column.",
        )
    problems.refuse()
    optional = {
        field: [value or None for value in values[field]] if field in values else [None] * count
        for field in ("group", "context", "reference", "media", "gold")
    }
    tags = values.get("tags", nothing)
    return [
        Item(
            id=ids[row],
            text=text[row],
            tags=tuple(tag.strip() for tag in tags[row].split(";") if tag.strip()),
            **{field: column[row] for field, column in optional.items()},
        )
        for row in range(count)
    ]


def _values(table: Table, field: str, column: str) -> list[str]:
    values = table.frame[column]
    if field == "tags" and values.dtype == pl.List(pl.String):
        values = values.list.join(";")
    return strings(values, table.file, column).fill_null("").str.strip_chars().to_list()


def _refuse_empty(problems: Problems, values: list[str], column: str, what: str, remedy: str) -> None:
    problems.at((row for row, value in enumerate(values) if not value), what, remedy, column)


def _refuse_repeated(problems: Problems, table: Table, ids: list[str], column: str, what: str, remedy: str) -> None:
    first: dict[str, int] = {}
    repeated = [row for row, name in enumerate(ids) if name and first.setdefault(name, row) != row]

    def message(row: int) -> str:
        return what.format(ids[row], table.lines([first[ids[row]]])[0])

    problems.at(np.array(repeated, np.intp), message, remedy, column)
