"""Structure of the designs: no import cycles, and kernels with few arguments."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import steelyard.designs

FOLDER = Path(steelyard.designs.__file__).parent
PREFIX = "steelyard.designs"
MAX_KERNEL_PARAMETERS = 6


def module_name(path: Path) -> str:
    parts = path.relative_to(FOLDER).with_suffix("").parts
    return ".".join([PREFIX, *(part for part in parts if part != "__init__")])


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imported_modules(node: ast.AST) -> set[str]:
    """The modules imported anywhere below a node, in functions too, except for type checking."""
    modules = {node.module} if isinstance(node, ast.ImportFrom) and node.module else set()
    for child in ast.iter_child_nodes(node):
        if not is_type_checking(child):
            modules |= imported_modules(child)
    return modules


def test_imports_have_no_cycle_even_inside_functions():
    trees = {module_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in FOLDER.rglob("*.py")}
    graph = {name: {module for module in imported_modules(tree) if module in trees} for name, tree in trees.items()}
    assert f"{PREFIX}.adaptive.state" in graph[f"{PREFIX}.adaptive.design"]
    # Raises CycleError, which names the modules of the cycle.
    assert len(list(TopologicalSorter(graph).static_order())) == len(trees)


def test_kernels_take_few_parameters():
    kernels = [
        function
        for path in FOLDER.rglob("*kernels.py")
        for function in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(function, ast.FunctionDef)
    ]
    assert len(kernels) > 15
    assert [k.name for k in kernels if len(k.args.args) > MAX_KERNEL_PARAMETERS] == []
