"""Rules of style that ruff does not check: function length, and names of variables (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "reproductions", "benchmarks", "scripts", "examples", "tests")

MAX_BODY_LINES = 60
LONG_FUNCTIONS: set[str] = set()
"""Functions that are still too long. Remove a name once its function is split; add none."""

PARTICIPLE_LIMIT = 357
"""Assignments to a bare participle in the whole tree. Only ever lower it; the goal is fewer than 50."""
PARTICIPLES = (
    "found|known|said|told|came|asked|seen|given|heard|meant|kept|drawn|shown|wanted|held|made|taken|left_over|settled"
)
PARTICIPLE_FREE: tuple[str, ...] = (
    "src/steelyard/engines",
    "src/steelyard/formats",
    "src/steelyard/models",
    "src/steelyard/observations",
    "src/steelyard/reliability",
    "reproductions",
    "tests/contracts",
    "tests/engines",
    "tests/formats",
    "tests/models",
    "tests/observations",
    "tests/reliability",
    "tests/reproductions",
)
"""Folders whose variables are all named by nouns. Add folders as they are cleaned."""


def python_files(*folders: str) -> Iterator[tuple[str, str]]:
    """Yield the path within the repository and the text of every Python file in some folders."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function without decorators, signature and docstring."""
    statements = function.body
    if ast.get_docstring(function) is not None and len(statements) > 1:
        statements = statements[1:]
    return (function.end_lineno or 0) - statements[0].lineno + 1


def test_functions_have_at_most_60_lines():
    long_functions = {
        f"{path}: {node.name}"
        for path, text in python_files("src", "reproductions")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and body_lines(node) > MAX_BODY_LINES
    }
    assert long_functions <= LONG_FUNCTIONS


def participle_assignments(*folders: str) -> list[str]:
    pattern = re.compile(rf"^[ \t]+({PARTICIPLES})(: [^=\n]+)? = ", re.M)
    return [f"{path}: {match[1]}" for path, text in python_files(*folders) for match in pattern.finditer(text)]


def test_variables_named_by_a_bare_participle_become_fewer():
    count = len(participle_assignments(*FOLDERS))
    assert count <= PARTICIPLE_LIMIT, "name the new variables after what they hold"
    assert count + 100 > PARTICIPLE_LIMIT, f"well done: lower PARTICIPLE_LIMIT to {count}"


def test_cleaned_folders_stay_clean():
    assert participle_assignments(*PARTICIPLE_FREE) == []
