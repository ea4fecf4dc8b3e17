"""Find the kind of judgments in a conventional file, and the role of each column."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from steelyard.errors import DataError, did_you_mean
from steelyard.formats.columns import FieldColumns, find_columns, plain
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
"""Fields, and the aliases of their column names."""

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
    if "items" not in candidates:
        places = {int(m[1]): name for name in names if (m := _ITEM_NUMBER.fullmatch(plain(name)))}
        if len(places) > 1:
            candidates.columns["items"] = [places[number] for number in sorted(places)]
    reason = f"{kind} were requested" if kind else "these look like {}"
    kind = kind or _guess(candidates, table)
    fields = _fields(candidates, kind)
    _refuse_missing(candidates, kind, reason.format(kind), table)
    columns: dict[str, str] = {}
    for field, source in fields.items():
        sources = candidates.columns[source]
        if field == "items" and len(sources) > 1:
            columns |= {f"item{place}": name for place, name in enumerate(sources, 1)}
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
    return Roles(kind, columns, unused, [*_REQUIRED[kind], *_SHARED])


def _guess(candidates: FieldColumns, table: Table) -> str:
    complete = [kind for kind in _REQUIRED if not _missing(candidates, kind)]
    if len(complete) > 1:
        # Crowd-Kit's names: an item may be called task, and a pair's winner label.
        complete = [kind for kind in complete if "item" in candidates or "item" not in _REQUIRED[kind]]
    if len(complete) == 1:
        return complete[0]
    if complete:
        raise DataError(
            f"the columns fit {' and '.join(complete)}.",
            f'Choose one: --kind {complete[0]} (in Python, kind="{complete[0]}").',
            file=table.file,
        )
    for kind, signs in _SIGNS.items():
        if signs & set(candidates.columns):
            return kind
    raise DataError(
        f"no kind of judgments has the columns {', '.join(table.frame.columns)}.",
        "Name them annotator and: item, value; or item, label; or left, right, winner; or item1 … itemk, best, worst; "
        f"or ranking. Or map them: {_HOW_TO_MAP.format(field='value')}.",
        file=table.file,
    )


def _fields(candidates: FieldColumns, kind: str) -> dict[str, str]:
    """Return the fields of a kind that the file has, each with the field whose columns it uses."""
    fields = {field: field for field in (*_REQUIRED[kind], *_SHARED) if field in candidates}
    if "item" in _REQUIRED[kind] and "item" not in candidates and "task" in candidates:
        fields["item"] = "task"
        del fields["task"]
    if kind == "comparisons":
        if "winner" not in candidates and "label" in candidates:
            fields["winner"] = "label"
        if {"winner", "loser"} <= set(candidates.columns) and not {"left", "right"} <= set(candidates.columns):
            fields = {field: field for field in ("winner", "loser", *_SHARED) if field in candidates}
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
