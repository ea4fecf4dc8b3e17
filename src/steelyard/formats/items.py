"""Items as tables: reading and writing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches

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
_FIELDS = tuple(ALIASES)
_MAY_BE_NESTED = {"text", "context", "reference"}
"""Fields that may hold a conversation, as a list of turns; it is kept as JSON."""
METADATA_PREFIX = "metadata_"
"""Put before the name of a metadata column that is also the name of a field."""

COLUMNS_EXAMPLE = 'in study.toml, items = { file = "...", columns = { text = "their_name" }, ignore = ["notes"] }'
"""How columns are mapped and ignored, in messages about them."""


def read_items(source: Source, *, columns: Mapping[str, str] | None = None, ignore: Sequence[str] = ()) -> list[Item]:
    """Read items, in the order of the table.

    Parameters
    ----------
    source : path, frame or list of dicts
        As for `read_table`. Without an id column the text is the id; without a text column the id is the text,
        or the text is empty if there is media. A single column of any name is the text.
    columns : mapping, optional
        Mapping of fields to columns, such as ``{"text": "headline"}``.
    ignore : sequence of str
        Columns to leave out. Every other column without a field of its own goes to the items' metadata.
    """
    table = open_table(source)
    if table.items is not None:
        table = Table(table.items, table.file)
    problems = Problems(table.file, table.lines)
    fields = _fields(table, columns, ignore, problems)
    problems.refuse()
    if table.frame.height == 0:
        raise DataError("there are no items.", "Add one row per item.", file=table.file)
    return _items(table, fields, ignore, problems)


def _fields(
    table: Table, columns: Mapping[str, str] | None, ignore: Sequence[str], problems: Problems
) -> dict[str, str]:
    names = [name for name in table.frame.columns if name not in ignore]
    for name in ignore:
        if name not in table.frame.columns:
            problems.add(f"ignore names '{name}', but there is no such column.", did_you_mean(name, names))
    matches = find_columns(names, ALIASES, columns, problems)
    fields = {field: candidates[0] for field, candidates in matches.columns.items()}
    extras = [name for name in names if name and name not in fields.values()]
    if len(names) == 1 and not fields:
        return {"text": names[0]}
    for name in extras:
        rival = next((field for field in fields if plain(name) in (field, *ALIASES[field])), None)
        if rival is not None and rival not in (columns or {}):
            problems.add(
                f"'{fields[rival]}' and '{name}' could both be the {rival}.",
                f"Map one of them: {COLUMNS_EXAMPLE}.",
                field=rival,
            )
    if not problems and not {"text", "media"} & set(fields):
        _refuse_missing_text(table, extras, fields, problems)
    return fields


def _refuse_missing_text(table: Table, extras: Sequence[str], fields: Mapping[str, str], problems: Problems) -> None:
    """Refuse a file without a text, unless its ids can be the texts and no column looks like a misspelt text."""
    typo = next(
        (name for name in extras if get_close_matches(plain(name), ("text", *ALIASES["text"]), cutoff=0.7)), None
    )
    if typo is not None:
        problems.add(
            f"there is no text column; is it '{typo}'?",
            f"Rename it, map it or ignore it: {COLUMNS_EXAMPLE}.",
            line=1 if table.find_lines else None,
            field=typo,
        )
    elif "id" not in fields:
        problems.add(
            f"there is neither an id nor a text column; the columns are {', '.join(table.frame.columns)}.",
            f"Rename one of them to text, or map it: {COLUMNS_EXAMPLE}.",
            field=extras[0] if extras else None,
        )


def item_table(items: Sequence[Item]) -> pl.DataFrame:
    """Return items as a table: a column for each field that any item has, then the columns of their metadata."""
    rows = [_row(item) for item in items]
    names = [name for name in _FIELDS if any(name in row for row in rows)]
    names += [name for name in dict.fromkeys(name for row in rows for name in row) if name not in names]
    return pl.DataFrame([[row.get(name) for row in rows] for name in names], schema=names, strict=False)


def _row(item: Item) -> dict[str, object]:
    values = {name: getattr(item, name) for name in _FIELDS}
    fields = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items() if value}
    return fields | {f"{METADATA_PREFIX}{name}" if name in _FIELDS else name: v for name, v in item.metadata.items()}


def _items(table: Table, fields: dict[str, str], ignore: Sequence[str], problems: Problems) -> list[Item]:
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
        _refuse_empty(problems, ids, fields[field], f"the {field} is empty.", "Fill it in, or remove the row.")
        _refuse_repeated(
            problems,
            table,
            ids,
            fields[field],
            "'{}' appears twice (first on line {}), so texts cannot serve as ids.",
            "Add an id column.",
        )
    problems.refuse()
    optional = {
        field: [value or None for value in values[field]] if field in values else [None] * count
        for field in ("group", "context", "reference", "media", "gold")
    }
    tags = values.get("tags", nothing)
    extras = [name for name in table.frame.columns if name and name not in (*fields.values(), *ignore)]
    metadata = {name: metadata_values(table, name) for name in extras}
    return [
        Item(
            id=ids[row],
            text=text[row],
            tags=_tags(tags[row]),
            metadata={name: value[row] for name, value in metadata.items() if value[row]},
            **{field: column[row] for field, column in optional.items()},
        )
        for row in range(count)
    ]


def _values(table: Table, field: str, column: str) -> list[str]:
    values = table.frame[column]
    if field == "tags" and values.dtype == pl.List(pl.String):
        values = values.list.join(";")
    if field in _MAY_BE_NESTED and values.dtype.is_nested():
        return _json_texts(values)
    return strings(values, table.file, column).fill_null("").str.strip_chars().to_list()


def _tags(text: str) -> tuple[str, ...]:
    if text.startswith("["):
        # As `write_table` writes lists to CSV.
        with suppress(ValueError):
            return tuple(str(tag) for tag in json.loads(text))
    return tuple(tag.strip() for tag in text.split(";") if tag.strip())


def metadata_values(table: Table, column: str) -> list[str]:
    """Return a column of any type as texts; lists and tables are written as JSON."""
    values = table.frame[column]
    if values.dtype.is_nested() or values.dtype in (pl.Binary, pl.Object):
        return _json_texts(values)
    return _values(table, column, column)


def _json_texts(values: pl.Series) -> list[str]:
    return ["" if value is None else json.dumps(value, ensure_ascii=False, default=str) for value in values.to_list()]


def _refuse_empty(problems: Problems, values: list[str], column: str, what: str, remedy: str) -> None:
    problems.at((row for row, value in enumerate(values) if not value), what, remedy, column)


def _refuse_repeated(problems: Problems, table: Table, ids: list[str], column: str, what: str, remedy: str) -> None:
    first: dict[str, int] = {}
    repeated = [row for row, name in enumerate(ids) if name and first.setdefault(name, row) != row]

    def message(row: int) -> str:
        return what.format(ids[row], table.lines([first[ids[row]]])[0])

    problems.at(np.array(repeated, np.intp), message, remedy, column)
