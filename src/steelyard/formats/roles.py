"""Which kind of judgments a conventional file holds, and which column plays which part in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from steelyard.errors import DataError, did_you_mean
from steelyard.formats.columns import Found, find_columns, plain
from steelyard.formats.problems import Problems
from steelyard.formats.tables import Table

ALIASES: dict[str, tuple[str, ...]] = {
    "annotator": ("annotatorid", "worker", "workerid", "judge", "judgeid", "rater", "raterid", "coder", "coderid"),
    "task": ("taskid",),
    "criterion": ("dimension", "aspect"),
    "seconds": ("duration", "worktimeinseconds"),
    "item": ("itemid",),
    "value": ("score", "rating"),
    "label": (),
    "left": (),
    "right": (),
    "winner": (),
    "loser": (),
    "items": (),
    "best": (),
    "worst": (),
    "ranking": (),
}
"""Our fields, and what else their columns may be called."""

_SHARED = ("annotator", "task", "criterion", "seconds")
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
_HOW_TO_MAP = '--columns {field}=their_name (in Python, columns={{"{field}": "their_name"}})'


@dataclass(frozen=True, slots=True)
class Roles:
    """The kind, the column of each field, the columns that play no part, and the fields the kind knows."""

    kind: str
    columns: dict[str, str]
    unused: list[str]
    known: list[str]


def find_roles(table: Table, kind: str | None, mapping: Mapping[str, str] | None) -> Roles:
    """Find the kind of judgments (unless it is given) and the column of each of its fields."""
    names = table.frame.columns
    problems = Problems(table.file, table.lines)
    found = find_columns(names, ALIASES, mapping, problems)
    problems.refuse()
    if "items" not in found:
        places = {int(m[1]): name for name in names if (m := _ITEM_NUMBER.fullmatch(plain(name)))}
        if len(places) > 1:
            found.columns["items"] = [places[number] for number in sorted(places)]
    told = f"{kind} were asked for" if kind else "these look like {}"
    kind = kind or _guess(found, table)
    fields = _fields(found, kind)
    _refuse_missing(found, kind, told.format(kind), table)
    columns: dict[str, str] = {}
    for field, source in fields.items():
        candidates = found.columns[source]
        if field == "items" and len(candidates) > 1:
            columns |= {f"item{place}": name for place, name in enumerate(candidates, 1)}
            continue
        if len(candidates) > 1:
            problems.add(
                f"{' and '.join(map(repr, candidates))} could both be the {field}.",
                f"Say which: {_HOW_TO_MAP.format(field=field)}.",
                field=field,
            )
        columns[field] = candidates[0]
    problems.refuse()
    used = set(columns.values())
    known = [*_REQUIRED[kind], *_SHARED]
    return Roles(kind, columns, [name for name in names if name not in used], known)


def _guess(found: Found, table: Table) -> str:
    complete = [kind for kind in _REQUIRED if not _missing(found, kind)]
    if len(complete) > 1:
        # Crowd-Kit's names: an item may be called task, and a pair's winner label.
        complete = [kind for kind in complete if "item" in found or "item" not in _REQUIRED[kind]]
    if len(complete) == 1:
        return complete[0]
    if complete:
        raise DataError(
            f"the columns fit {' and '.join(complete)}.",
            f'Say which to read: --kind {complete[0]} (in Python, kind="{complete[0]}").',
            file=table.file,
        )
    for kind, signs in _SIGNS.items():
        if signs & set(found.columns):
            return kind
    raise DataError(
        f"no kind of judgments has the columns {', '.join(table.frame.columns)}.",
        "Name them annotator and: item, value; or item, label; or left, right, winner; or item1 … itemk, best, worst; "
        f"or ranking. Or map them: {_HOW_TO_MAP.format(field='value')}.",
        file=table.file,
    )


def _fields(found: Found, kind: str) -> dict[str, str]:
    """Return the fields of a kind that the file has, each with the field whose columns serve for it."""
    fields = {field: field for field in (*_REQUIRED[kind], *_SHARED) if field in found}
    if "item" in _REQUIRED[kind] and "item" not in found and "task" in found:
        fields["item"] = "task"
        del fields["task"]
    if kind == "comparisons":
        if "winner" not in found and "label" in found:
            fields["winner"] = "label"
        if {"winner", "loser"} <= set(found.columns) and not {"left", "right"} <= set(found.columns):
            fields = {field: field for field in ("winner", "loser", *_SHARED) if field in found}
    return fields


def _missing(found: Found, kind: str) -> list[str]:
    fields = _fields(found, kind)
    required = ("winner", "loser") if "loser" in fields else _REQUIRED[kind]
    return [field for field in required if field not in fields]


def _refuse_missing(found: Found, kind: str, told: str, table: Table) -> None:
    problems = Problems(table.file, table.lines)
    unused = found.unused(table.frame.columns, _fields(found, kind).values())
    for field in _missing(found, kind):
        close = did_you_mean(field, unused)
        names = [field, *ALIASES[field]] if field != "items" else ["item1, item2 …", "items"]
        problems.add(
            f"{told}, but there is no {field} column.",
            f"{close + ' ' if close.startswith('Did') else ''}Name it {' or '.join(names)}, "
            f"or map it: {_HOW_TO_MAP.format(field=field)}.",
            field=field,
        )
    problems.refuse()
