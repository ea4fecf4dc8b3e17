"""Check a log with one statement per kind of judgments; the messages are those of `read_judgments`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from steelyard.engines.engine import number
from steelyard.errors import DataError, Problem
from steelyard.formats.pointwise import observed_scale
from steelyard.formats.rows import counted

if TYPE_CHECKING:
    from steelyard.engines.log import Log


@dataclass(frozen=True, slots=True)
class Checked:
    """The number of usable rows, and the scale of ratings."""

    rows: int
    scale: tuple[float, float] = (0.0, 1.0)


_EMPTY = ("the {field} is empty", "Give its id.")
_ITSELF = ("an item is compared with itself", "Correct or remove them.")
_WORD = ("the winner is neither of the two items ({example})", "Write left, right or tie, or the id of one of the two.")
_TWICE = ("an item is in the tuple twice ({example})", "Correct or remove them.")
_AMONG = ("the {field} item is not among the items of its row ({example})", "Write the id of one of them.")
_NUMBER = ("the value is not a number ({example})", "Leave it empty where there was no answer.")
_OUTSIDE = (
    "the value is outside the scale {low:g} to {high:g} (such as {example})",
    "Correct it, or set the scale the values were given on.",
)
_MESSAGES = {
    "item": _EMPTY,
    "left": _EMPTY,
    "right": _EMPTY,
    "same": _ITSELF,
    "winner": _WORD,
    "twice": _TWICE,
    "best": _AMONG,
    "worst": _AMONG,
    "number": _NUMBER,
    "outside": _OUTSIDE,
}


def check(log: Log, scale: tuple[float, float] | None) -> Checked:
    """Refuse errors; note irregularities."""
    return _CHECKS[log.kind](log, scale)


def note_irregular(log: Log, count: int, what: str, action: str) -> None:
    """Note how many rows are irregular and what was done with them; if strict, refuse them."""
    if not count:
        return
    if log.strict:
        raise DataError(f"{what} in {counted(count, 'row')}.", "Complete or remove them.", file=log.label)
    log.notes.append(f"{what} in {counted(count, 'row')}: {action}.")


def _refuse(log: Log, counts: pl.DataFrame, scale: tuple[float, float] | None = None) -> None:
    low, high = scale or (-np.inf, np.inf)
    problems = []
    for row in counts.filter(pl.col("problem").is_not_null()).iter_rows(named=True):
        what, remedy = _MESSAGES[row["problem"]]
        text = what.format(field=row["problem"], example=row["example"], low=low, high=high)
        problems.append(Problem(f"{text} in {counted(row['n'], 'row')}.", remedy, log.label))
    if problems:
        raise DataError(problems)


def _ratings(log: Log, scale: tuple[float, float] | None) -> Checked:
    low, high = scale or (-np.inf, np.inf)
    counts = log.query("check_ratings", low=number(low), high=number(high))
    _refuse(log, counts, scale)
    usable = int(counts["usable"].sum())
    note_irregular(log, int(counts["n"].sum()) - usable, "no value", "left out")
    if not usable:
        return Checked(0)
    ends = float(counts["lowest"].min()), float(counts["highest"].max())  # type: ignore[arg-type]  # of doubles
    return Checked(usable, scale or observed_scale(*ends, log.notes))


def _labels(log: Log, _scale: tuple[float, float] | None) -> Checked:
    counts = log.query("check_labels")
    _refuse(log, counts)
    usable = int(counts["usable"].sum())
    note_irregular(log, int(counts["n"].sum()) - usable, "no label", "left out")
    return Checked(usable)


def _comparisons(log: Log, _scale: tuple[float, float] | None) -> Checked:
    counts = log.query("check_comparisons", needed="FALSE" if log.loser else "TRUE")
    _refuse(log, counts)
    usable, every = int(counts["usable"].sum()), int(counts["n"].sum())
    if log.loser:
        note_irregular(log, every - usable, "no winner or no loser", "left out")
        log.notes.append("The order shown is not known: winners were put on the left.")
    else:
        note_irregular(log, every - usable, "no winner", "left out (write tie where it was one)")
    return Checked(usable)


def _choices(log: Log, _scale: tuple[float, float] | None) -> Checked:
    counts = log.query(
        "check_choices",
        twice=" OR ".join(f"{one} = {other}" for one, other in combinations(log.item_columns, 2)),
        best_in_tuple=_among("best", log.item_columns),
        worst_in_tuple=_among("worst", log.item_columns),
    )
    _refuse(log, counts)
    for sign, what, action in (
        ("b", "no best", "kept without it"),
        ("w", "no worst", "kept without it"),
        ("s", "the same item as best and as worst", "kept"),
    ):
        note_irregular(log, int(counts.filter(pl.col("odd").str.contains(sign))["n"].sum()), what, action)
    usable = int(counts["usable"].sum())
    note_irregular(log, int(counts["n"].sum()) - usable, "fewer than two items", "left out")
    return Checked(usable)


def _among(chosen: str, columns: tuple[str, ...]) -> str:
    return " OR ".join(f"COALESCE({column} = {chosen}, FALSE)" for column in columns)


_CHECKS: dict[str, Callable[[Log, tuple[float, float] | None], Checked]] = {
    "ratings": _ratings,
    "labels": _labels,
    "comparisons": _comparisons,
    "choices": _choices,
}
