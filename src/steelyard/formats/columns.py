"""Match columns to fields by our names, their aliases and the user's mapping."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from steelyard.errors import did_you_mean
from steelyard.formats.problems import Problems

_NUMBERED = re.compile(r"(.*?)[_ ]?(\d+)")


def plain(name: str) -> str:
    """Return a name without case, spaces, hyphens and underscores: 'Worker_ID' is 'workerid'."""
    return re.sub(r"[\s_-]", "", name).casefold()


def numbered(name: str) -> tuple[str, int] | None:
    """Split 'pair_id_12' into 'pair_id' and 12; None if there is no number at the end."""
    match = _NUMBERED.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def matching(pattern: str, names: Iterable[str]) -> dict[int, str]:
    """Return the columns that match a pattern such as 'Answer.rating*', by the number in place of *."""
    before, _, after = pattern.partition("*")
    shape = re.compile(re.escape(before) + r"(\d+)" + re.escape(after))
    by_number = {int(match[1]): name for name in names if (match := shape.fullmatch(name))}
    return dict(sorted(by_number.items()))


@dataclass(frozen=True, slots=True)
class FieldColumns:
    """The columns of each field: several if the file has more than one candidate."""

    columns: dict[str, list[str]]

    def __contains__(self, field: str) -> bool:
        return field in self.columns

    def unused(self, names: Sequence[str], used: Iterable[str]) -> list[str]:
        """Return the columns that belong to none of the used fields."""
        assigned = {column for field in used for column in self.columns.get(field, ())}
        return [name for name in names if name not in assigned]


def find_columns(
    names: Sequence[str],
    aliases: Mapping[str, Sequence[str]],
    mapping: Mapping[str, str] | None,
    problems: Problems,
) -> FieldColumns:
    """Find the columns of each field: those mapped by the user first, then by our name, then by alias.

    A mapped name with a * matches numbered columns. Wrong mappings are recorded in `problems`.
    """
    columns = _mapped(names, aliases, mapping or {}, problems)
    assigned = {name for candidates in columns.values() for name in candidates}
    free = {name: plain(name) for name in names if name not in assigned}
    for field, others in aliases.items():
        if field in columns:
            continue
        exact = [name for name, short in free.items() if short == plain(field)]
        candidates = exact or [name for name, short in free.items() if short in others]
        if candidates:
            columns[field] = candidates
    return FieldColumns(columns)


def _mapped(
    names: Sequence[str], aliases: Mapping[str, Sequence[str]], mapping: Mapping[str, str], problems: Problems
) -> dict[str, list[str]]:
    columns: dict[str, list[str]] = {}
    for field, name in mapping.items():
        if field not in aliases:
            problems.add(f"columns maps '{field}', which is not a field.", did_you_mean(field, list(aliases)))
            continue
        candidates = list(matching(name, names).values()) if "*" in name else [name] * (name in names)
        if candidates:
            columns[field] = candidates
        else:
            problems.add(f"columns maps {field} to '{name}', but there is no such column.", did_you_mean(name, names))
    return columns
