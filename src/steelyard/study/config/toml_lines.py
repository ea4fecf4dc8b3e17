"""Where in a TOML file a key stands: tomllib does not say, and people need to know which line to mend."""

from __future__ import annotations

import re

_TABLE = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")


def key_lines(text: str) -> dict[str, int]:
    """Return the line of every table and key, by dotted path (`design.judgments`, `stage.0.protocol.name`).

    Keys within an inline table get their table's line by `line_of`. Lines inside multi-line strings may be
    taken for keys; that can only make a message point at a wrong line, never change what is read.
    """
    lines: dict[str, int] = {}
    prefix = ""
    arrays: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if table := _TABLE.match(line):
            name = _plain(table[2])
            if table[1] == "[[":
                arrays[name] = arrays.get(name, -1) + 1
            prefix = _within_arrays(name, arrays)
            lines.setdefault(prefix, number)
        elif key := _KEY.match(line):
            path = _plain(key[1])
            lines.setdefault(f"{prefix}.{path}" if prefix else path, number)
    return lines


def line_of(lines: dict[str, int], path: str) -> int | None:
    """Return the line of a key, or of the nearest table around it."""
    while path:
        if path in lines:
            return lines[path]
        path = path.rpartition(".")[0]
    return None


def _plain(path: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in path.split("."))


def _within_arrays(name: str, arrays: dict[str, int]) -> str:
    head, dot, tail = name.partition(".")
    if head in arrays:
        return f"{head}.{arrays[head]}{dot}{tail}"
    return name
