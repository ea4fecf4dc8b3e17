"""Imports point one way (../shared/design/CONTRACTS.md, docs/concepts/architecture.md)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "steelyard"

LAYERS = [
    {"cli"},
    {"web"},
    {"crowd"},
    {"experiments"},
    {"report", "simulate", "client"},
    {"study"},
    {"store", "quality"},
    {"designs"},
    {"engines"},
    {"reliability"},
    {"models"},
    {"formats"},
    {"protocols"},
    {"observations"},
    {"records", "errors", "registry", "version", "examples"},
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


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down(path: Path):
    own = room(path)
    wrong = [other for other in imported_rooms(path) if other != own and HEIGHT[other] >= HEIGHT[own]]
    # records, errors and registry form the bottom layer together.
    wrong = [other for other in wrong if not (HEIGHT[own] == 1 and HEIGHT[other] == 1)]
    assert not wrong, f"{own} may not import {wrong}"


def test_sql_stays_in_the_store():
    for path in FILES:
        if room(path) not in {"store", "engines"}:
            assert not re.search(r"^\s*(import|from) sqlalchemy", path.read_text(encoding="utf-8"), re.M), path


def test_modules_stay_short():
    for path in FILES:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 500, path
