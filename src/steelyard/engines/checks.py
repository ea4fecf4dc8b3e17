"""What is wrong or odd in a log, found by one statement for each kind, with the messages of `read_judgments`."""

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
    """How many rows count, and the scale of ratings."""

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
    """Refuse what cannot be used; note what is odd."""
    return _CHECKS[log.kind](log, scale)


def odd(log: Log, count: int, what: str, done: str) -> None:
    """Count rows that are odd but usable or droppable; when strict, refuse them."""
    if not count:
        return
    if log.strict:
        raise DataError(f"{what} in {counted(count, 'row')}.", "Complete or remove them.", file=log.label)
    log.notes.append(f"{what} in {counted(count, 'row')}: {done}.")


def _refuse(log: Log, found: pl.DataFrame, scale: tuple[float, float] | None = None) -> None:
    low, high = scale or (-np.inf, np.inf)
    problems = []
    for row in found.filter(pl.col("problem").is_not_null()).iter_rows(named=True):
        what, remedy = _MESSAGES[row["problem"]]
        text = what.format(field=row["problem"], example=row["example"], low=low, high=high)
        problems.append(Problem(f"{text} in {counted(row['n'], 'row')}.", remedy, log.label))
    if problems:
        raise DataError(problems)


def _ratings(log: Log, scale: tuple[float, float] | None) -> Checked:
    low, high = scale or (-np.inf, np.inf)
    found = log.query("check_ratings", low=number(low), high=number(high))
    _refuse(log, found, scale)
    given = int(found["given"].sum())
    odd(log, int(found["n"].sum()) - given, "no value", "left out")
    if not given:
        return Checked(0)
    ends = float(found["lowest"].min()), float(found["highest"].max())  # type: ignore[arg-type]  # of doubles
    return Checked(given, scale or observed_scale(*ends, log.notes))


def _labels(log: Log, _scale: tuple[float, float] | None) -> Checked:
    found = log.query("check_labels")
    _refuse(log, found)
    given = int(found["given"].sum())
    odd(log, int(found["n"].sum()) - given, "no label", "left out")
    return Checked(given)


def _comparisons(log: Log, _scale: tuple[float, float] | None) -> Checked:
    found = log.query("check_comparisons", needed="FALSE" if log.loser else "TRUE")
    _refuse(log, found)
    given, every = int(found["given"].sum()), int(found["n"].sum())
    if log.loser:
        odd(log, every - given, "no winner or no loser", "left out")
        log.notes.append("The order shown is not known: winners were put on the left.")
    else:
        odd(log, every - given, "no winner", "left out (write tie where it was one)")
    return Checked(given)


def _choices(log: Log, _scale: tuple[float, float] | None) -> Checked:
    found = log.query(
        "check_choices",
        twice=" OR ".join(f"{one} = {other}" for one, other in combinations(log.places, 2)),
        best_there=_among("best", log.places),
        worst_there=_among("worst", log.places),
    )
    _refuse(log, found)
    for sign, what, done in (
        ("b", "no best", "kept without it"),
        ("w", "no worst", "kept without it"),
        ("s", "the same item as best and as worst", "kept"),
    ):
        odd(log, int(found.filter(pl.col("odd").str.contains(sign))["n"].sum()), what, done)
    given = int(found["given"].sum())
    odd(log, int(found["n"].sum()) - given, "fewer than two items", "left out")
    return Checked(given)


def _among(chosen: str, places: tuple[str, ...]) -> str:
    return " OR ".join(f"COALESCE({place} = {chosen}, FALSE)" for place in places)


_CHECKS: dict[str, Callable[[Log, tuple[float, float] | None], Checked]] = {
    "ratings": _ratings,
    "labels": _labels,
    "comparisons": _comparisons,
    "choices": _choices,
}
