"""Find the kind of judgments in a conventional file, and the role of each column."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from steelyard.errors import DataError, did_you_mean
from steelyard.formats.columns import FieldColumns, find_columns, plain
from steelyard.formats.problems import Problems
from steelyard.formats.tables import Table
from steelyard.formats.winners import NOUNS, outcome_of

ALIASES: dict[str, tuple[str, ...]] = {
    "annotator": ("annotatorid", "worker", "workerid", "judge", "judgeid", "rater", "raterid", "coder", "coderid"),
    "task": ("taskid",),
    "criterion": ("dimension", "aspect"),
    "seconds": ("duration", "worktimeinseconds"),
    "item": ("itemid",),
    "value": ("score", "rating"),
    "label": (),
    "left": ("a", "first", *(f"{noun}{side}" for noun in NOUNS for side in ("a", "1", "left"))),
    "right": ("b", "second", *(f"{noun}{side}" for noun in NOUNS for side in ("b", "2", "right"))),
    "winner": ("outcome", "preference", "preferred", "vote", "verdict", "result", "choice", "answer"),
    "loser": (),
    "strength": ("preferencestrength",),
    "items": (),
    "best": (),
    "worst": (),
    "ranking": (),
    "spans": ("esaspans", "errorspans", "spanerrors"),
    "suggestions": (),
}
"""Fields, and the aliases of their column names."""

_SHARED = ("annotator", "task", "criterion", "seconds")
_OPTIONAL = {"ratings": ("spans", "suggestions"), "comparisons": ("strength",)}
"""Fields that a kind may have besides the required and the shared ones."""
_REQUIRED = {
    "ratings": ("item", "value"),
    "labels": ("item", "label"),
    "comparisons": ("left", "right", "winner"),
    "choices": ("items", "best", "worst"),
    "rankings": ("ranking",),
}
_SIGNS = {
    "rankings": {"ranking"},
    "choices": {"best", "worst"},
    "comparisons": {"left", "right", "winner", "loser"},
    "ratings": {"value"},
    "labels": {"label"},
}
_ITEM_NUMBER = re.compile(r"item(\d+)")
_PLACE_NUMBER = re.compile(r"(?:rank|place)(\d+)")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_FEWEST_PLACES = 3
"""Two columns named first and second are the sides of a comparison."""
_SAMPLE = 1000
"""Rows in which a column's content is examined."""
_SEVERAL = {"items": "item", "ranking": "place"}
"""Fields that may have one column for each item of the row, and how we name those columns."""
_HOW_TO_MAP = '--columns {field}=their_name (in Python, columns={{"{field}": "their_name"}})'


@dataclass(frozen=True, slots=True)
class Roles:
    """The kind, the column of each field, the unused columns, and all fields of the kind."""

    kind: str
    columns: dict[str, str]
    unused: list[str]
    fields: list[str]


def find_roles(table: Table, kind: str | None, mapping: Mapping[str, str] | None) -> Roles:
    """Return the kind of judgments (`kind`, or inferred) and the column of each of its fields."""
    names = table.frame.columns
    problems = Problems(table.file, table.lines)
    candidates = find_columns(names, ALIASES, mapping, problems)
    problems.refuse()
    _add_numbered(candidates, names)
    _examine_contents(candidates, table.frame, mapping or {})
    reason = f"{kind} were requested" if kind else "these appear to be {}"
    kind = kind or _guess(candidates, table)
    fields = _fields(candidates, kind)
    _refuse_missing(candidates, kind, reason.format(kind), table)
    columns: dict[str, str] = {}
    for field, source in fields.items():
        sources = candidates.columns[source]
        if field in _SEVERAL and len(sources) > 1:
            columns |= {f"{_SEVERAL[field]}{place}": name for place, name in enumerate(sources, 1)}
            continue
        if len(sources) > 1:
            problems.add(
                f"{' and '.join(map(repr, sources))} could both be the {field}.",
                f"Choose one: {_HOW_TO_MAP.format(field=field)}.",
                field=field,
            )
        columns[field] = sources[0]
    problems.refuse()
    used = set(columns.values())
    unused = [name for name in names if name not in used]
    # A field with several columns is not missing.
    present = {field for field, source in fields.items() if len(candidates.columns[source]) > 1}
    names_of_kind = (*_REQUIRED[kind], *_OPTIONAL.get(kind, ()), *_SHARED)
    return Roles(kind, columns, unused, [field for field in names_of_kind if field not in present])


def _add_numbered(candidates: FieldColumns, names: list[str]) -> None:
    """Find the columns of a tuple's items: item1, item2 …"""
    if "items" not in candidates:
        items = {int(m[1]): name for name in names if (m := _ITEM_NUMBER.fullmatch(plain(name)))}
        if len(items) > 1:
            candidates.columns["items"] = [items[number] for number in sorted(items)]
        if len(items) > 2:
            # The first two of several items are not the sides of a comparison.
            for field in ("left", "right"):
                if set(candidates.columns.get(field, ())) & set(items.values()):
                    del candidates.columns[field]


def _examine_contents(candidates: FieldColumns, frame: pl.DataFrame, mapping: Mapping[str, str]) -> None:
    """Decide by content where names mislead: a ranking column of ids, and several columns that may hold the winner."""
    columns = candidates.columns
    if "ranking" not in mapping and not any(map(_holds_rankings, (frame[name] for name in columns.get("ranking", ())))):
        if any(not _missing(candidates, kind) for kind in _REQUIRED if kind != "rankings"):
            columns.pop("ranking", None)
        elif places := _places(frame.columns):
            columns["ranking"] = places
    if "winner" not in mapping and len(columns.get("winner", ())) > 1:
        outcomes = [name for name in columns["winner"] if _holds_outcomes(frame[name])]
        columns["winner"] = outcomes or columns["winner"]


def _places(names: list[str]) -> list[str]:
    """Return the columns that hold the items of a ranking: first, second, third … or rank1, rank2, rank3 …"""
    short = {plain(name): name for name in names}
    if any(_ITEM_NUMBER.fullmatch(word) for word in short):
        # Beside item1, item2 … the columns rank1, rank2 … hold numbers.
        return []
    numbers = {int(m[1]): name for word, name in short.items() if (m := _PLACE_NUMBER.fullmatch(word))}
    for places in ([short.get(word) for word in _ORDINALS], [numbers.get(place) for place in range(1, len(names) + 1)]):
        leading = list(itertools.takewhile(bool, places))
        if len(leading) >= _FEWEST_PLACES:
            return [name for name in leading if name]
    return []


def _holds_rankings(column: pl.Series) -> bool:
    """Return whether a column may hold rankings: lists, or text with > or = between ids."""
    if column.dtype.is_nested() or not len(column):
        return column.dtype.is_nested() or column.dtype == pl.String
    return column.dtype == pl.String and bool(column.head(_SAMPLE).str.contains(r"[>=]|^\s*\[").any())


def _holds_outcomes(column: pl.Series) -> bool:
    """Return whether all values are words for an outcome."""
    if column.dtype != pl.String:
        return False
    words = column.head(_SAMPLE).drop_nulls().unique().to_list()
    return bool(words) and all(outcome_of(word) is not None for word in words)


def _guess(candidates: FieldColumns, table: Table) -> str:
    complete = [kind for kind in _REQUIRED if not _missing(candidates, kind)]
    if len(complete) > 1:
        # Crowd-Kit's names: an item may be called task, and a pair's winner label.
        complete = [kind for kind in complete if "item" in candidates or "item" not in _REQUIRED[kind]]
    if len(complete) == 1:
        return complete[0]
    if complete:
        raise DataError(
            f"the columns match {' and '.join(complete)}.",
            f'Choose one: --kind {complete[0]} (in Python, kind="{complete[0]}").',
            file=table.file,
        )
    for kind, signs in _SIGNS.items():
        # Many words are aliases of a comparison's columns, so one alias alone is not a sign of comparisons.
        if signs & (_exact(candidates) if kind == "comparisons" else set(candidates.columns)):
            return kind
    if {"left", "right"} <= set(candidates.columns):
        return "comparisons"
    raise DataError(
        f"the columns match no kind of judgments: {', '.join(table.frame.columns)}.",
        "Use the column annotator with item, value; item, label; left, right, winner; item1 … itemk, best, worst; "
        f"or ranking. Or map them: {_HOW_TO_MAP.format(field='value')}.",
        file=table.file,
    )


def _exact(candidates: FieldColumns) -> set[str]:
    """Return the fields whose columns have our own names."""
    return {field for field, names in candidates.columns.items() if plain(names[0]) == field}


def _fields(candidates: FieldColumns, kind: str) -> dict[str, str]:
    """Return the fields of a kind that the file has, each with the field whose columns it uses."""
    optional = _OPTIONAL.get(kind, ())
    fields = {field: field for field in (*_REQUIRED[kind], *optional, *_SHARED) if field in candidates}
    if "item" in _REQUIRED[kind] and "item" not in candidates and "task" in candidates:
        fields["item"] = "task"
        del fields["task"]
    if kind == "comparisons":
        if "winner" not in candidates and "label" in candidates and {"left", "right"} <= _exact(candidates):
            fields["winner"] = "label"
        if {"winner", "loser"} <= set(candidates.columns) and not {"left", "right"} <= set(candidates.columns):
            fields = {field: field for field in ("winner", "loser", *optional, *_SHARED) if field in candidates}
    return fields


def _missing(candidates: FieldColumns, kind: str) -> list[str]:
    fields = _fields(candidates, kind)
    required = ("winner", "loser") if "loser" in fields else _REQUIRED[kind]
    return [field for field in required if field not in fields]


def _refuse_missing(candidates: FieldColumns, kind: str, reason: str, table: Table) -> None:
    problems = Problems(table.file, table.lines)
    unused = candidates.unused(table.frame.columns, _fields(candidates, kind).values())
    for field in _missing(candidates, kind):
        close = did_you_mean(field, unused)
        names = [field, *ALIASES[field]] if field != "items" else ["item1, item2 …", "items"]
        problems.add(
            f"{reason}, but there is no {field} column.",
            f"{close + ' ' if close.startswith('Did') else ''}Name it {' or '.join(names)}, "
            f"or map it: {_HOW_TO_MAP.format(field=field)}.",
            field=field,
        )
    problems.refuse()
