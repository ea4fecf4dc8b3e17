"""Write study.toml from the values of the browser's form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.items import Item


def toml_text(values: Mapping[str, Any]) -> str:
    """Write a study's values as TOML: plain keys first, then tables. None is left out, because TOML has no null."""
    document = tomlkit.document()
    document.add(tomlkit.comment("A Steelyard study, written in the browser. Every key: docs/reference/study-toml.md"))
    # Items stand with the plain keys, as an inline table if they have settings.
    for key in sorted(values, key=lambda key: key == "items" and isinstance(values[key], Mapping)):
        if values[key] is not None and (key == "items" or not isinstance(values[key], Mapping)):
            document.add(key, _item(values[key]))
    for key, value in values.items():
        if isinstance(value, Mapping) and key != "items":
            table = tomlkit.table()
            for name, part in value.items():
                if part is not None:
                    table.add(name, _item(part))
            if table:
                document.add(key, table)
    return tomlkit.dumps(document)


def _item(value: Any) -> Item:
    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        for key, part in value.items():
            if part is not None:
                table.add(key, _item(part))
        return table
    if isinstance(value, Sequence) and not isinstance(value, str):
        array = tomlkit.array()
        for part in value:
            if part is not None:
                array.append(_item(part))
        return array
    scalar: Item = tomlkit.item(value)
    return scalar
