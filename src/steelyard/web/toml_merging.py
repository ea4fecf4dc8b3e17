"""Change the values of a TOML text and keep its comments and order, as an editor of study.toml expects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import tomlkit

from steelyard.formats.toml_reading import parse_toml
from steelyard.web.drafts import toml_text


def merged_toml(text: str, values: Mapping[str, Any]) -> str:
    """Change a TOML text so that it has these values; comments and the order of unchanged keys are kept."""
    document = tomlkit.parse(text)
    fresh = tomlkit.parse(toml_text(values))
    plain = document.unwrap()
    for key in list(document):
        if key not in fresh:
            document.remove(key)
    is_complete = True
    for key, value in fresh.items():
        if key not in plain:
            is_complete = False
        elif plain[key] != fresh.unwrap()[key]:
            _merge(document, key, value)
    if is_complete and document.unwrap() == fresh.unwrap():
        return tomlkit.dumps(document)
    return _with_new_keys(document, fresh)


def _merge(holder: Any, key: str, value: Any) -> None:
    """Replace one key, within a table key by key."""
    current = holder[key]
    if not isinstance(current, tomlkit.items.Table) or not isinstance(value, tomlkit.items.Table):
        holder[key] = value
        return
    for name in list(current):
        if name not in value:
            current.remove(name)
    for name, inner in value.items():
        if name not in current:
            current.add(name, inner)
        elif current.unwrap()[name] != value.unwrap()[name]:
            _merge(current, name, inner)


def _with_new_keys(document: Any, fresh: Any) -> str:
    """Add keys that the text does not have: plain ones before the first table, tables at the end."""
    result = tomlkit.document()
    first_table = next((key for key, value in document.items() if _is_table(value)), None)
    plain = {key: value for key, value in fresh.items() if key not in document and not _is_table(value)}
    text = tomlkit.dumps(document)
    if plain:
        for key, value in plain.items():
            result.add(key, value)
        added = tomlkit.dumps(result)
        text = _inserted(text, added, first_table is not None)
    for key, value in fresh.items():
        if key not in document and _is_table(value):
            table = tomlkit.document()
            table.add(key, value)
            text = f"{text.rstrip()}\n\n{tomlkit.dumps(table)}"
    return text if parse_toml(text) == fresh.unwrap() else tomlkit.dumps(fresh)


def _inserted(text: str, added: str, has_tables: bool) -> str:
    if not has_tables:
        return f"{text.rstrip()}\n{added}"
    match = re.search(r"^\s*\[", text, re.M)
    place = len(text) if match is None else match.start()
    return f"{text[:place].rstrip()}\n{added}\n{text[place:].lstrip()}" if text[:place].strip() else f"{added}\n{text}"


def _is_table(value: Any) -> bool:
    return isinstance(value, tomlkit.items.Table | tomlkit.items.AoT)
