"""Rules of style that ruff does not check: function length, and names of variables (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "reproductions", "benchmarks", "scripts", "examples", "tests")

MAX_BODY_LINES = 60
PARTICIPLES = (
    "found|known|said|told|came|asked|seen|given|heard|meant|kept|drawn|shown|wanted|held|made|taken|left_over|settled"
)


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
    assert not long_functions


def test_variables_are_named_after_what_they_hold():
    """A bare participle (found, known, said …) says how a value came about, not what it is."""
    pattern = re.compile(rf"^[ \t]+({PARTICIPLES})(: [^=\n]+)? = ", re.M)
    names = [f"{path}: {match[1]}" for path, text in python_files(*FOLDERS) for match in pattern.finditer(text)]
    assert not names
