"""Which column holds which field: our names, their aliases, and the user's mapping."""

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
    """Split 'pair_id_12' into 'pair_id' and 12; None when there is no number at the end."""
    match = _NUMBERED.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def matching(pattern: str, names: Iterable[str]) -> dict[int, str]:
    """Return the columns that fit a pattern such as 'Answer.rating*', by the number that * stands for."""
    before, _, after = pattern.partition("*")
    shape = re.compile(re.escape(before) + r"(\d+)" + re.escape(after))
    found = {int(match[1]): name for name in names if (match := shape.fullmatch(name))}
    return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class Found:
    """The column of each field; several when the file has more than one candidate."""

    columns: dict[str, list[str]]

    def __contains__(self, field: str) -> bool:
        return field in self.columns

    def unused(self, names: Sequence[str], used: Iterable[str]) -> list[str]:
        """Return the columns that no used field takes."""
        taken = {column for field in used for column in self.columns.get(field, ())}
        return [name for name in names if name not in taken]


def find_columns(
    names: Sequence[str],
    aliases: Mapping[str, Sequence[str]],
    mapping: Mapping[str, str] | None,
    problems: Problems,
) -> Found:
    """Find the columns of each field: those mapped by the user first, then by our name, then by alias.

    A mapped name with a * stands for numbered columns. Wrong mappings are noted in `problems`.
    """
    columns = _mapped(names, aliases, mapping or {}, problems)
    taken = {name for found in columns.values() for name in found}
    free = {name: plain(name) for name in names if name not in taken}
    for field, others in aliases.items():
        if field in columns:
            continue
        exact = [name for name, short in free.items() if short == plain(field)]
        found = exact or [name for name, short in free.items() if short in others]
        if found:
            columns[field] = found
    return Found(columns)


def _mapped(
    names: Sequence[str], aliases: Mapping[str, Sequence[str]], mapping: Mapping[str, str], problems: Problems
) -> dict[str, list[str]]:
    columns: dict[str, list[str]] = {}
    for field, name in mapping.items():
        if field not in aliases:
            problems.add(f"columns maps '{field}', which is no field.", did_you_mean(field, list(aliases)))
            continue
        found = list(matching(name, names).values()) if "*" in name else [name] * (name in names)
        if found:
            columns[field] = found
        else:
            problems.add(f"columns maps {field} to '{name}', but there is no such column.", did_you_mean(name, names))
    return columns
