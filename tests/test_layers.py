"""Imports point one way; docs/concepts/architecture.md describes the layers."""

from __future__ import annotations

import ast
import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "steelyard"

LAYERS = [
    {"cli"},
    {"web"},
    {"recruitment"},
    {"report", "simulate", "client", "judges"},
    {"analysis"},
    {"study"},
    {"storage", "quality"},
    {"designs"},
    {"engines"},
    {"reliability"},
    {"models"},
    {"formats"},
    {"protocols"},
    {"observations"},
    {"records", "errors", "registry", "renamed", "version", "examples"},
]
HEIGHT = {name: len(LAYERS) - depth for depth, layer in enumerate(LAYERS) for name in layer}


def room(path: Path) -> str:
    """The top-level module or folder a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "steelyard" else [node.module]
            )
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        rooms |= {str(name).split(".")[1] for name in names if str(name).startswith("steelyard.")}
    return rooms


FILES = sorted(path for path in SOURCE.rglob("*.py") if room(path) not in {"__init__", "__main__"})


def test_every_room_has_a_layer():
    assert {room(path) for path in FILES} <= set(HEIGHT)


def test_imports_point_down():
    violations = [
        f"{path.relative_to(SOURCE)} imports {other}"
        for path in FILES
        for other in imported_rooms(path) - {room(path)}
        # The modules of the bottom layer may import each other.
        if HEIGHT[other] >= HEIGHT[room(path)] and not HEIGHT[room(path)] == HEIGHT[other] == 1
    ]
    assert not violations


def test_sql_stays_in_the_store():
    for path in FILES:
        if room(path) not in {"storage", "engines"}:
            assert not re.search(r"^\s*(import|from) sqlalchemy", path.read_text(encoding="utf-8"), re.M), path
