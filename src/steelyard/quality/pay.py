"""Pay of annotators: rates, a bonus by formula, and earnings."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from steelyard.errors import ConfigError, Problem, did_you_mean

NAMES: dict[str, str] = {
    "tasks": "tasks answered, including checks and repeats",
    "hours": "hours of active time",
    "checks_right": "checks answered right",
    "checks_asked": "checks answered, without disputed ones",
    "accuracy": "proportion of these answered right; 0 if there were none",
    "passed": "1 if there were checks and the accuracy is at least that of [quality.checks], else 0",
}
"""What a bonus may depend on."""
OF_CHECKS = frozenset({"checks_right", "checks_asked", "accuracy", "passed"})
"""Those that only a study with checks has."""

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARED: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {"min": min, "max": max}
_SIGNS = {
    "Pow": "**", "Mod": "%", "FloorDiv": "//", "MatMult": "@", "BitOr": "|", "BitAnd": "&", "BitXor": "^",
    "LShift": "<<", "RShift": ">>", "Invert": "~", "Is": "is", "IsNot": "is not",
    "In": "in", "NotIn": "not in",
}  # fmt: skip
"""Signs that Python knows and formulas do not."""
_REMEDY = (
    f"Use numbers, + - * /, min, max, comparisons, and, or, not, 'A if B else C', and these names: {', '.join(NAMES)}."
)
_LONGEST = 500
_DEEPEST = 30
MAX_AMOUNT = 1e9
"""The largest number in [pay], and the largest bonus of one annotator; enough for every currency."""
_PROBES = tuple(
    (tasks, hours, right, asked)
    for tasks in (0.0, 1.0, 100.0, 10_000.0)
    for hours in (0.0, 1 / 3600, 1.0, 1_000.0)
    for right, asked in ((0.0, 0.0), (0.0, 5.0), (1.0, 3.0), (100.0, 100.0))
)
"""Work of annotators for which a formula must give a usable amount, from nothing to far more than anybody does."""


@dataclass(frozen=True, slots=True)
class Bonus:
    """A bonus by formula, such as `0.5 if accuracy >= 0.9 else 0`: arithmetic on the numbers in NAMES, and no more."""

    text: str
    tree: ast.expr

    @classmethod
    def parse(cls, text: str) -> Bonus:
        """Parse a formula; anything except plain arithmetic is refused."""
        try:
            tree = ast.parse(text.strip(), mode="eval").body if len(text) <= _LONGEST else None
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            tree = None
        if tree is None:
            raise _refused("the bonus is not a formula, or too long", text)
        for node, depth in _walk(tree):
            _check(node, text)
            if depth > _DEEPEST:
                raise _refused("the bonus is nested too deeply", text)
        bonus = cls(text, tree)
        bonus._refuse_extremes()
        return bonus

    def _refuse_extremes(self) -> None:
        """Refuse a formula that gives no finite, payable amount for some annotator."""
        for tasks, hours, right, asked in _PROBES:
            value = self._computed(standing_numbers(tasks, hours, right, asked, 0.5))
            if value is not None and not abs(value) <= MAX_AMOUNT:
                what = f"the bonus of an annotator with {tasks:g} tasks in {hours:.3g} hours would be {value:.3g}"
                raise _refused(what, self.text)

    def _computed(self, numbers: Mapping[str, float]) -> float | None:
        """Return the formula's value; None where it divides by zero."""
        try:
            return _value(self.tree, numbers)
        except ZeroDivisionError:
            return None
        except OverflowError:
            return math.inf

    @property
    def names(self) -> set[str]:
        """What it depends on."""
        return {node.id for node, _ in _walk(self.tree) if isinstance(node, ast.Name)}

    def amount(self, numbers: Mapping[str, float]) -> float:
        """Return an annotator's bonus in whole hundredths, from 0 to MAX_AMOUNT."""
        value = self._computed(numbers)
        # Undefined (per hour of somebody without a time, per check of somebody without one): nothing was earned by it.
        # Beyond the limit is a formula out of control, which `parse` refuses where it can tell: nothing is paid by it.
        if value is None or not abs(value) <= MAX_AMOUNT:
            return 0.0
        return max(0.0, math.floor(value * 100 + 0.5 + 1e-9) / 100)


@dataclass(frozen=True, slots=True)
class Rates:
    """What is paid for a task, for an hour and for a visit (to all who answer anything), and the fee on top."""

    per_task: float = 0.0
    per_visit: float = 0.0
    per_hour: float = 0.0
    fee: float = 0.0

    @property
    def any(self) -> bool:
        """Whether anything is paid before bonuses."""
        return bool(self.per_task or self.per_visit or self.per_hour)

    def earned(self, tasks: float, hours: float, visits: float = 0.0) -> float:
        """Return what people get, without bonus and fee."""
        return self.per_task * tasks + self.per_hour * hours + self.per_visit * visits

    def cost(self, tasks: float, hours: float, visits: float = 0.0, bonuses: float = 0.0) -> float:
        """Return the total pay, including the fee."""
        return (self.earned(tasks, hours, visits) + bonuses) * (1 + self.fee)


def standing_numbers(
    tasks: float, hours: float, checks_right: float, checks_asked: float, threshold: float
) -> dict[str, float]:
    """Return the numbers that a bonus may depend on."""
    # Who was asked no check has shown nothing yet: somebody who leaves after one task earns nothing by that.
    accuracy = checks_right / checks_asked if checks_asked else 0.0
    return {
        "tasks": tasks,
        "hours": hours,
        "checks_right": checks_right,
        "checks_asked": checks_asked,
        "accuracy": accuracy,
        "passed": float(checks_asked > 0 and accuracy >= threshold),
    }


def pay_table(
    judgments: pl.DataFrame,
    checks: Mapping[str, tuple[int, int]],
    excluded: Mapping[str, str],
    rates: Rates,
    bonus: Bonus | None = None,
    threshold: float = 0.0,
) -> pl.DataFrame:
    """Return what every annotator has earned, a row each, by name.

    Parameters
    ----------
    judgments : frame
        Every judgment's `annotator`, `stage`, `seconds` and whether it was `imported`; those were paid elsewhere.
        Where a judgment has no time, the mean of its stage stands in.
    checks : mapping
        How many checks each annotator got right, of how many that count.
    excluded : mapping
        Who is excluded: paid for the work, but without a bonus.
    rates, bonus
        What is paid, and what on top.
    threshold : float
        The accuracy on checks that counts as passed.

    Returns
    -------
    frame
        Columns: `annotator`, `tasks`, `hours`, `checks_right`, `checks_asked`, `excluded`, `pay`, `bonus`, `total`;
        all money without the fee.
    """
    own = with_times(judgments)
    work = own.group_by("annotator").agg(
        pl.len().cast(pl.Int64).alias("tasks"), (pl.col("seconds").sum() / 3600).alias("hours")
    )
    rows = []
    for annotator, tasks, hours in work.sort("annotator").iter_rows():
        right, asked = checks.get(annotator, (0, 0))
        out = annotator in excluded
        extra = 0.0
        if bonus is not None and not out:
            extra = bonus.amount(standing_numbers(tasks, hours, right, asked, threshold))
        earned = rates.earned(tasks, hours, 1)
        rows.append((annotator, tasks, hours, right, asked, out, earned, extra, earned + extra))
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


_SCHEMA = {
    "annotator": pl.String,
    "tasks": pl.Int64,
    "hours": pl.Float64,
    "checks_right": pl.Int64,
    "checks_asked": pl.Int64,
    "excluded": pl.Boolean,
    "pay": pl.Float64,
    "bonus": pl.Float64,
    "total": pl.Float64,
}


def with_times(judgments: pl.DataFrame) -> pl.DataFrame:
    """Return the judgments that were made here, the mean of their stage standing in where one has no time."""
    own = judgments.filter(~pl.col("imported"))
    return own.with_columns(pl.col("seconds").fill_null(pl.col("seconds").mean().over("stage")).fill_null(0.0))


def _refused(what: str, text: str) -> ConfigError:
    excerpt = text if len(text) <= 60 else text[:60] + "…"
    return ConfigError([Problem(f"{what}: '{excerpt}'.", _REMEDY, field="pay.bonus")])


def _walk(tree: ast.expr) -> Iterator[tuple[ast.AST, int]]:
    """Yield every part of a formula and how deep it stands."""
    waiting: list[tuple[ast.AST, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        # A call's name is not a number of its own: _check sees it with the call.
        inside = node.args if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
        waiting += [(child, depth + 1) for child in inside or ast.iter_child_nodes(node)]


def _check(node: ast.AST, text: str) -> None:
    allowed_nodes = (*_BINARY, *_COMPARED, ast.USub, ast.UAdd, ast.Not, ast.Load, ast.BinOp, ast.UnaryOp, ast.IfExp)
    allowed_nodes += (ast.BoolOp, ast.And, ast.Or)
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise _refused(f"{node.value!r} is not a number in the bonus", text)
        if not abs(node.value) <= MAX_AMOUNT:
            raise _refused(f"the bonus contains a number larger than {MAX_AMOUNT:,.0f}", text)
    elif isinstance(node, ast.Name):
        if node.id not in NAMES:
            raise _refused(
                f"'{node.id}' is not a name known to the bonus formula ({did_you_mean(node.id, list(NAMES))})", text
            )
    elif isinstance(node, ast.Call):
        called = node.func.id if isinstance(node.func, ast.Name) else ""
        if called not in _FUNCTIONS or node.keywords or not node.args:
            raise _refused("only min and max can be called in the bonus", text)
    elif isinstance(node, ast.Compare):
        if len(node.ops) != 1:
            raise _refused("comparisons in the bonus cannot be chained (write A < B and B < C)", text)
    elif not isinstance(node, allowed_nodes):
        # A part is shown as it is written; a sign has no text of its own.
        source = ast.unparse(node) if isinstance(node, ast.expr) else _SIGNS.get(type(node).__name__, "that")
        raise _refused(f"'{source}' is not allowed in the bonus", text)


def _value(node: ast.expr, numbers: Mapping[str, float]) -> float:
    value: float
    match node:
        case ast.Constant(value=int() | float() as constant):
            value = float(constant)
        case ast.Name(id=name):
            value = numbers[name]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            value = float(not _value(operand, numbers))
        case ast.UnaryOp(op=sign, operand=operand):
            value = _value(operand, numbers) * (1 if isinstance(sign, ast.UAdd) else -1)
        case ast.BoolOp(op=op, values=parts):
            # As far as it takes to know: what would divide by nothing can be kept out by what stands before it.
            each = (bool(_value(part, numbers)) for part in parts)
            value = float(all(each) if isinstance(op, ast.And) else any(each))
        case ast.BinOp(left=left, op=op, right=right):
            value = _BINARY[type(op)](_value(left, numbers), _value(right, numbers))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            value = float(_COMPARED[type(op)](_value(left, numbers), _value(right, numbers)))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            value = _value(body if _value(test, numbers) else orelse, numbers)
        case ast.Call(func=ast.Name(id=name), args=args):
            value = _FUNCTIONS[name]([_value(argument, numbers) for argument in args])
        case _:
            raise TypeError(f"{type(node).__name__} in a checked formula")
    return value
