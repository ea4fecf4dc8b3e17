"""Read comparisons and best–worst choices: each row compares items with one another."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.errors import DataError
from steelyard.formats.lists import listed
from steelyard.formats.rows import BoolArray, Reading, Rows, counted, encode, subset
from steelyard.formats.winners import Spellings, degree_of, is_both_bad
from steelyard.observations import UNKNOWN, Choices, Comparisons, Index, IntArray

_NOTHING = 9
_LARGEST_STRENGTH = 100
UNCLEAR_WINNER = "Write left, right or tie, or the id of one of the two items; other spellings: steelyard docs files."


def read_comparisons(rows: Rows) -> Reading:
    """Read `left`, `right` and `winner`, or `winner` and `loser`."""
    if "loser" in rows:
        return _read_winners_and_losers(rows)
    # Words such as 'tie' are coded along with the items; `subset` removes them.
    index, (left, right, word) = encode(rows.text("left"), rows.text("right"), rows.text("winner"))
    rows.refuse_empty(left, "left")
    rows.refuse_empty(right, "right")
    _refuse_same(rows, left, right, "right")
    outcome = (word == left).astype(np.int8) - (word == right).astype(np.int8)
    # An item may have the id 'left': the word names a side only if it is neither of the two items.
    by_side = np.flatnonzero(outcome == 0)
    words = np.unique(word[by_side])
    outcomes = np.full(len(index) + 1, _NOTHING, np.int8)
    spellings = Spellings.beside(_names(index, left, right))
    for code in words[words != UNKNOWN]:
        named = spellings.outcome(index[int(code)])
        outcomes[code] = _NOTHING if named is None else named
    outcome[by_side] = outcomes[word[by_side]]
    answered = word != UNKNOWN
    _note_both_bad(rows, index, word[by_side][outcome[by_side] == 0])
    rows.problems.at(
        answered & (outcome == _NOTHING) & (left != right),
        lambda row: (
            f"winner '{rows.shown('winner', row)}' is neither '{rows.shown('left', row)}' "
            f"nor '{rows.shown('right', row)}'."
        ),
        UNCLEAR_WINNER,
        rows.header("winner"),
    )
    rows.irregular(~answered, "no winner", "left out (write tie for ties)", "winner")
    strength = (
        _strengths(rows, outcome)
        if "strength" in rows
        else _degrees(index, np.where((word == left) | (word == right), UNKNOWN, word), outcome)
    )

    def build(keep: BoolArray) -> Comparisons:
        items, (a, b) = subset(index, keep, left, right)
        return Comparisons(
            items=items, left=a, right=b, outcome=outcome[keep], strength=strength[keep], **rows.sources(keep)
        )

    return Reading(answered, build)


def _strengths(rows: Rows, outcome: NDArray[np.int8]) -> NDArray[np.int8]:
    """Read how clearly the winner won: whole numbers, larger for clearer; a sign is the side and is left out."""
    number = rows.text("strength").str.strip_chars().cast(pl.Float64, strict=False)
    missing = rows.text("strength").fill_null("").str.strip_chars() == ""
    value = np.abs(number.fill_null(float("nan")).to_numpy())
    is_wrong = ~missing.to_numpy() & ~((value == np.floor(value)) & (value <= _LARGEST_STRENGTH))
    rows.problems.at(
        is_wrong,
        lambda row: f"strength '{rows.shown('strength', row)}' is not a whole number up to {_LARGEST_STRENGTH}.",
        "Write 1 for the slightest preference, 2 for the next, and leave it empty if it is unknown.",
        rows.header("strength"),
    )
    strength = np.nan_to_num(np.where(is_wrong, 0, value)).astype(np.int8)
    rows.problems.at(
        (outcome == 0) & (strength > 0),
        lambda row: f"a tie has strength {rows.shown('strength', row)}.",
        "Name the winner, or leave the strength empty.",
        rows.header("strength"),
    )
    return np.where(np.isin(outcome, (1, -1)), strength, 0).astype(np.int8)


def _degrees(index: Index, word: IntArray, outcome: NDArray[np.int8]) -> NDArray[np.int8]:
    """Derive strengths from words such as 'A is slightly better', if the file uses several degrees.

    A winner named by its id has no word, and so an unknown strength.
    """
    decided = np.isin(outcome, (1, -1)) & (word != UNKNOWN)
    codes = np.unique(word[decided])
    degree = np.zeros(len(index) + 1, np.int8)
    degree[codes] = [degree_of(index[int(code)]) for code in codes]
    degrees = np.unique(degree[codes])
    if len(degrees) < 2:
        return np.zeros(len(outcome), np.int8)
    return np.where(decided, np.searchsorted(degrees, degree[word]) + 1, 0).astype(np.int8)


def _names(index: Index, *codes: IntArray) -> list[str]:
    """Return the ids that occur in columns of codes."""
    occurs = np.zeros(len(index) + 1, np.bool_)
    for column in codes:
        occurs[column] = True
    return [index[int(code)] for code in np.flatnonzero(occurs[:-1])]


def _note_both_bad(rows: Rows, index: Index, tied: IntArray) -> None:
    codes, counts = np.unique(tied, return_counts=True)
    total = sum(int(n) for code, n in zip(codes, counts, strict=True) if is_both_bad(index[int(code)]))
    if total:
        rows.notes.append(both_bad_note(total))


def both_bad_note(count: int) -> str:
    """Return the note on ties in which both sides are bad."""
    return f"both items rated bad in {counted(count, 'row')}: read as ties."


def _read_winners_and_losers(rows: Rows) -> Reading:
    index, (winner, loser) = encode(rows.text("winner"), rows.text("loser"))
    answered = (winner != UNKNOWN) & (loser != UNKNOWN)
    _refuse_same(rows, winner, loser, "loser")
    rows.irregular(~answered, "no winner or no loser", "left out", "winner")
    rows.notes.append("The presentation order is unknown; the winner is taken as the left item.")
    outcome = np.ones(len(winner), np.int8)
    strength = _strengths(rows, outcome) if "strength" in rows else np.zeros(len(winner), np.int8)

    def build(keep: BoolArray) -> Comparisons:
        items, (a, b) = subset(index, keep, winner, loser)
        return Comparisons(
            items=items, left=a, right=b, outcome=outcome[keep], strength=strength[keep], **rows.sources(keep)
        )

    return Reading(answered, build)


def _refuse_same(rows: Rows, one: IntArray, other: IntArray, name: str) -> None:
    rows.problems.at(
        (one == other) & (one != UNKNOWN),
        lambda row: f"'{rows.shown(name, row)}' is compared with itself.",
        "Correct or remove the row.",
        rows.header(name),
    )


def read_choices(rows: Rows) -> Reading:
    """Read `item1` … `itemk`, or `items`, with `best` and `worst`."""
    columns = _tuple_columns(rows)
    index, (*item_codes, best, worst) = encode(*columns, rows.text("best"), rows.text("worst"))
    tuples = np.column_stack(item_codes)
    _check_tuples(rows, tuples, index.ids)
    for name, chosen in (("best", best), ("worst", worst)):
        among = (tuples == chosen[:, None]).any(axis=1)
        rows.problems.at(
            (chosen != UNKNOWN) & ~among,
            lambda row, name=name: f"{name} '{rows.shown(name, row)}' is not among the items of its row.",  # type: ignore[misc]
            "Write the id of one of them.",
            rows.header(name),
        )
        rows.irregular(chosen == UNKNOWN, f"no {name}", "kept without it", name)
    rows.irregular((best == worst) & (best != UNKNOWN), "the same item as best and as worst", "kept", "worst")
    enough = (tuples != UNKNOWN).sum(axis=1) > 1
    rows.irregular(~enough, "fewer than two items", "left out", "items" if "items" in rows else "item1")

    def build(keep: BoolArray) -> Choices:
        items, (*codes, first, last) = subset(index, keep, *item_codes, best, worst)
        return Choices(items=items, shown=np.column_stack(codes), best=first, worst=last, **rows.sources(keep))

    return Reading(enough, build)


def _check_tuples(rows: Rows, tuples: NDArray[np.int32], ids: tuple[str, ...]) -> None:
    ordered = np.sort(tuples, axis=1)
    same = (np.diff(ordered, axis=1) == 0) & (ordered[:, 1:] != UNKNOWN)
    rows.problems.at(
        same.any(axis=1),
        lambda row: f"'{ids[ordered[row, 1:][same[row]][0]]}' appears twice in the tuple.",
        "Correct or remove the row.",
        "items" if "items" in rows else None,
    )


def _tuple_columns(rows: Rows) -> list[pl.Series]:
    if "items" not in rows:
        return [rows.text(name) for name in rows.frame.columns if name.startswith("item")]
    values = listed(rows, "items", "|")
    width = int(values.list.len().max() or 0)  # type: ignore[arg-type]
    if width < 2:
        raise DataError(
            "no row lists two items.",
            "Separate them by |, or give a JSON list.",
            file=rows.table.file,
            field=rows.header("items"),
        )
    return [values.list.get(place, null_on_oob=True) for place in range(width)]
