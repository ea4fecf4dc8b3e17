"""Read columns of lists: native lists, JSON text, or text with a separator."""

from __future__ import annotations

import json

import polars as pl

from steelyard.formats.rows import Rows

_JSON_LIST = r'^\s*\[\s*["\[]'


def listed(rows: Rows, name: str, separator: str) -> pl.Series:
    """Return a column as lists of strings; unreadable rows are recorded as problems and become null."""
    if rows.frame[name].dtype.is_nested():
        return rows.lists(name, pl.List(pl.String))
    text = rows.text(name)
    is_json = looks_like_json(text)
    split = text.str.split(separator)
    if not is_json.any():
        return split
    decoded = json_lists(rows, name, text.set(~is_json, None), pl.List(pl.String))
    return decoded.zip_with(is_json, split)


def looks_like_json(text: pl.Series) -> pl.Series:
    """Return which rows are JSON lists of strings or of lists."""
    return text.str.contains(_JSON_LIST).fill_null(False)


def json_lists(rows: Rows, name: str, text: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Decode JSON text; rows that are not such lists are recorded as problems and become null."""
    try:
        return text.str.json_decode(dtype)
    except pl.exceptions.PolarsError:
        broken = [row for row, value in enumerate(text) if value is not None and not _is_json_list(value)]
        rows.problems.at(
            broken or text.is_not_null().to_numpy(),
            lambda row: f"'{rows.shown(name, row)}' is not a JSON list.",
            'Write it like ["a", "b"], with the brackets and quotes closed.',
            rows.header(name),
        )
        return pl.Series(name, [None] * len(text), dtype)


def _is_json_list(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list)
    except ValueError:
        return False
