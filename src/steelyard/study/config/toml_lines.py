"""Line numbers of keys in a TOML file, for error messages; tomllib does not report them."""

from __future__ import annotations

import re

_TABLE = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")


def key_lines(text: str) -> dict[str, int]:
    """Return the line of every table and key, by dotted path (`design.judgments`, `stage.0.protocol.name`).

    `line_of` gives keys of an inline table the line of the table. Lines of multi-line strings may be mistaken
    for keys; then a message may name a wrong line, but values are unaffected.
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
