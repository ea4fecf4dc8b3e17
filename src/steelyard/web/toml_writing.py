"""study.toml as we write it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_HEAD = "# A Steelyard study, written in the browser. Every key: docs/reference/study-toml.md\n"


def toml_text(values: Mapping[str, Any]) -> str:
    """Write a study's values as TOML: plain keys first, then its tables; None is left out."""
    plain = {key: value for key, value in values.items() if not isinstance(value, Mapping) and value is not None}
    tables = {key: value for key, value in values.items() if isinstance(value, Mapping) and key != "items"}
    if isinstance(values.get("items"), Mapping):
        plain["items"] = values["items"]
    lines = [_HEAD + _pairs(plain)]
    for name, table in tables.items():
        written = _pairs(table)
        if written:
            lines.append(f"[{_key(name)}]\n{written}")
    return "\n".join(lines)


def _pairs(table: Mapping[str, Any]) -> str:
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in table.items() if value is not None)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(text: str) -> str:
    # JSON's strings are TOML's, but for the one control character that JSON leaves as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {_value(part)}" for key, part in value.items() if part is not None)
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, Sequence):
        # None is left out everywhere: TOML has no word for it.
        return f"[{', '.join(_value(part) for part in value if part is not None)}]"
    raise TypeError(f"{type(value).__name__} cannot be written as TOML")
