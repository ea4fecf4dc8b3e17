"""Structure of the models: compiled kernels take few parameters."""

from __future__ import annotations

import ast
from pathlib import Path

import steelyard.models

FOLDER = Path(steelyard.models.__file__).parent
MAX_KERNEL_PARAMETERS = 6


def kernels() -> list[ast.FunctionDef]:
    return [
        node
        for path in FOLDER.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and any(ast.unparse(d) == "compiled" for d in node.decorator_list)
    ]


def parameter_count(function: ast.FunctionDef) -> int:
    arguments = function.args
    return len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs)


def test_kernels_take_few_parameters():
    functions = kernels()
    assert len(functions) > 50
    assert [kernel.name for kernel in functions if parameter_count(kernel) > MAX_KERNEL_PARAMETERS] == []


def test_every_compiled_function_carries_the_decorator_that_is_counted():
    direct = [path.name for path in FOLDER.rglob("*.py") if "njit" in path.read_text(encoding="utf-8")]
    assert direct == ["compiled.py"]
