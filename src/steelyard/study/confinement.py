"""Keeping a configuration that comes from the browser inside the study's folder.

Whoever manages studies over the web need not be allowed to read other files of the machine or to connect to other
databases. A study made in the browser carries a marker file, and is held to the same rules whenever it is opened.
A study made on the command line is trusted: its author could read those files anyway.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from steelyard.errors import Problem
from steelyard.study.annotators import names_a_file

MARKER_FILE = ".made-in-browser"
_FILE_KEYS = {"items", "file", "training", "media"}
_TEXT_KEYS = {"consent", "instructions"}
"""Keys that hold a text, or the name of a file with it."""
_MARKER_TEXT = (
    "This study was created in the browser: its study.toml may only name files in this folder, and no database.\n"
)


def confine(folder: Path) -> None:
    """Mark a folder as that of a study made in the browser."""
    (folder / MARKER_FILE).write_text(_MARKER_TEXT, encoding="utf-8")


def is_confined(folder: Path) -> bool:
    """Whether a folder is that of a study made in the browser."""
    return (folder / MARKER_FILE).exists()


def texts_in(value: Any, path: str = "", key: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield every text in a configuration as (path, key, text)."""
    if isinstance(value, str):
        yield path, key, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from texts_in(inner, f"{path}.{name}".lstrip("."), str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner, path, key)


def confinement_problems(
    data: Mapping[str, Any], folder: Path | None, unchanged: Mapping[str, Any] | None = None
) -> list[Problem]:
    """Name every file and database in a configuration that is not in the study's folder (None for a new one).

    `unchanged` is the trusted configuration that `data` replaces, if any: links that its author made, and its
    database, may stay as they are.
    """
    trusted = dict(unchanged or {})
    own = {(path, text) for path, _, text in texts_in(trusted)}
    problems = [
        Problem(f"{_quoted(text)} is not in the study's folder.", "Name a file in that folder.", field=path)
        for path, key, text in texts_in(data)
        if _is_file(key, text) and not (_stays_inside(text) and ((path, text) in own or _resolves_inside(folder, text)))
    ]
    if data.get("database") is not None and data["database"] != trusted.get("database"):
        what = "the database cannot be chosen in the browser."
        problems.append(Problem(what, "Change study.toml on the server.", field="database"))
    return problems


def plain_file(name: str, suffixes: Collection[str]) -> bool:
    """Whether a name is that of a file directly in the study's folder, with one of these suffixes."""
    return _stays_inside(name) and len(PurePosixPath(name).parts) == 1 and name.lower().endswith(tuple(suffixes))


def _is_file(key: str, text: str) -> bool:
    return key in _FILE_KEYS or (key in _TEXT_KEYS and names_a_file(text))


def _stays_inside(name: str) -> bool:
    """Whether a name is relative and plain on every operating system, whatever is in the folder."""
    if not name.isprintable() or "\\" in name or ":" in name or name.startswith("/"):
        return False
    parts = PurePosixPath(name).parts
    # Hidden files are the server's own; Windows drops dots and spaces at the end of a name.
    return bool(parts) and all(part == part.strip(" ") and part == part.strip(".") for part in parts)


def _resolves_inside(folder: Path | None, name: str) -> bool:
    if folder is None:
        return True
    try:
        return (folder / name).resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        # RuntimeError: links that lead to each other.
        return False


def _quoted(text: str) -> str:
    printable = text.encode("utf-8", "ignore").decode()
    return f"'{printable if len(printable) <= 100 else printable[:100] + '…'}'"
