"""A log of judgments in Parquet files, with standard column names: checked once, then queried for sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl

from steelyard.engines.engine import PREFIX, Engine, number, sql
from steelyard.engines.files import check_partitions, schema_of
from steelyard.errors import ConfigError, DataError, Problem, did_you_mean
from steelyard.formats.comparative import UNCLEAR_WINNER, both_bad_note
from steelyard.formats.judgments import sentence, unknown_column, unused_columns
from steelyard.formats.pointwise import observed_scale
from steelyard.formats.problems import Problems
from steelyard.formats.roles import Roles, find_roles
from steelyard.formats.rows import counted
from steelyard.formats.tables import Table
from steelyard.formats.winners import STANDARD, Spellings, is_both_bad
from steelyard.observations import KINDS, Index, IntArray

NULL = "CAST(NULL AS STRING)"
_SPACES = " \t\n\r"
_RENAMED = {"left": "left_item", "right": "right_item"}
"""Columns whose names are reserved words of SQL."""


@dataclass(frozen=True)
class Log:
    """The judgments of one criterion, ready to be queried.

    Attributes
    ----------
    kind
        ratings, comparisons, choices or labels.
    prefix
        Prefix of the names of this log's views.
    item_columns
        The columns with the items of a tuple, for choices.
    usable
        The SQL condition of usable rows.
    rows
        The number of usable rows.
    unit
        The resampling unit: annotators, tasks or judgments.
    scale, scale_known
        As of `Ratings`.
    words
        Spellings of outcomes in the winner column, besides the standard words.
    """

    engine: Engine
    kind: str
    prefix: str
    item_columns: tuple[str, ...] = ()
    usable: str = ""
    rows: int = 0
    unit: str = "judgments"
    knows_annotators: bool = False
    knows_tasks: bool = False
    scale: tuple[float, float] = (0.0, 1.0)
    scale_known: bool = True
    label: str = "the log"
    strict: bool = False
    loser: bool = False
    words: Mapping[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def sql(self, name: str, **parts: object) -> str:
        """Return a statement about this log."""
        return sql(name, p=self.prefix, **{"usable": self.usable, **parts})

    def query(self, name: str, **parts: object) -> pl.DataFrame:
        """Run a statement about this log."""
        return self.engine.query(self.sql(name, **parts))

    def __len__(self) -> int:
        return self.rows

    @cached_property
    def items(self) -> Index:
        """The items of ratings and labels."""
        return index_of(self.query("items")["item"])

    @property
    def unit_column(self) -> str:
        """The column with each row's unit."""
        return {"annotators": "annotator", "tasks": "task", "judgments": NULL}[self.unit]


@dataclass(frozen=True)
class LogFiles:
    """The log of each criterion, and notes on irregular rows."""

    by_criterion: dict[str, Log]
    notes: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The kind of judgments."""
        return next(iter(self.by_criterion.values())).kind


def open_log(
    engine: Engine,
    files: Sequence[Path],
    *,
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
    scale: tuple[float, float] | None = None,
    strict: bool = False,
    label: str | None = None,
) -> LogFiles:
    """Check files and prepare them for queries: as `read_judgments`, but nothing is read into memory."""
    called = label or (str(files[0]) if len(files) == 1 else f"{files[0].parent}/*")
    roles = roles_of(files, kind=kind, columns=columns, scale=scale, strict=strict, label=called)
    notes = unused_columns(roles)
    log = _trimmed(engine, files, roles, called, strict)
    by_criterion = {}
    for position, name in enumerate(_criteria(log, roles)):
        one = _of_criterion(log, name, position) if name is not None else log
        ready = _ready(one, scale)
        by_criterion[name or ""] = ready
        notes += [f"criterion {name}: {note}" if name else note for note in ready.notes]
    return LogFiles(by_criterion, tuple(map(sentence, notes)))


def roles_of(
    files: Sequence[Path],
    *,
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
    scale: tuple[float, float] | None = None,
    strict: bool = False,
    label: str,
) -> Roles:
    """Find the role of each column and refuse files that engines cannot read; only the footers are read."""
    if kind is not None and kind not in KINDS:
        raise DataError(f"'{kind}' is not a kind of judgments.", did_you_mean(kind, list(KINDS)))
    if scale is not None and not scale[0] < scale[1]:
        raise DataError(f"the scale runs from {scale[0]:g} to {scale[1]:g}.", "Give the lower end first.")
    schema = schema_of(files)
    roles = find_roles(Table(pl.DataFrame(schema=schema), label), kind, columns)
    _refuse_types(roles, schema, files[0])
    check_partitions(files, schema, roles.columns.values())
    if strict and roles.unused:
        what = "unknown column."
        raise DataError(Problem(what, unknown_column(name, roles), label, field=name) for name in roles.unused)
    return roles


def _refuse_types(roles: Roles, schema: pl.Schema, file: Path) -> None:
    """Require ids to be strings or integers and values to be numbers: engines format other types differently."""
    if roles.kind == "rankings" or "items" in roles.columns:
        what = "rankings" if roles.kind == "rankings" else "tuples in one column"
        raise ConfigError(
            f"engines do not read {what}.",
            "Write them as comparisons (left, right, winner) or as item1, item2 …, or use --engine memory.",
        )
    problems = Problems(str(file), lambda rows: [row + 1 for row in rows])
    for name, column in roles.columns.items():
        dtype = schema[column]
        if name in ("value", "seconds"):
            if name == "value" and not dtype.is_numeric():
                problems.add(f"the column holds {str(dtype).lower()} values.", "Write numbers.", field=column)
        elif not (dtype.is_integer() or isinstance(dtype, pl.String | pl.Categorical | pl.Enum)):
            problems.add(
                f"the column holds {str(dtype).lower()} values.", "Write ids as texts or whole numbers.", field=column
            )
    problems.refuse()


def _trimmed(engine: Engine, files: Sequence[Path], roles: Roles, label: str, strict: bool) -> Log:
    """Rename the columns, trim the ids, and make empty ids null."""
    names = {_RENAMED.get(name, name): column for name, column in roles.columns.items() if name != "seconds"}
    loser = "loser" in names
    if loser:
        names["left_item"], names["right_item"] = names["winner"], names.pop("loser")
    engine.read(f"{PREFIX}files", files, names)
    expressions = [
        f"CAST({name} AS DOUBLE) AS {name}"
        if name == "value"
        else f"NULLIF(TRIM(BOTH '{_SPACES}' FROM CAST({name} AS STRING)), '') AS {name}"
        for name in names
    ]
    expressions += [f"{NULL} AS {name}" for name in ("annotator", "task", "criterion") if name not in names]
    engine.view(f"{PREFIX}trimmed", sql("trimmed", columns=", ".join(expressions)))
    item_columns = tuple(name for name in names if name.startswith("item") and name != "item")
    log = Log(engine, roles.kind, PREFIX, item_columns, label=label, strict=strict, loser=loser)
    engine.view(f"{PREFIX}log", log.sql("all_rows"))
    return replace(log, usable=_usable_condition(log))


def _usable_condition(log: Log) -> str:
    """Return the SQL condition of usable rows."""
    if log.kind == "comparisons":
        return "(winner IS NOT NULL AND right_item IS NOT NULL)" if log.loser else "(winner IS NOT NULL)"
    if log.kind == "choices":
        filled = " + ".join(f"CASE WHEN {column} IS NULL THEN 0 ELSE 1 END" for column in log.item_columns)
        return f"({filled} > 1)"
    return "(value IS NOT NULL)" if log.kind == "ratings" else "(label IS NOT NULL)"


def _criteria(log: Log, roles: Roles) -> list[str | None]:
    if "criterion" not in roles.columns:
        return [None]
    return sorted(log.query("criteria")["criterion"].to_list())


def _of_criterion(log: Log, name: str, position: int) -> Log:
    one = replace(log, prefix=f"{PREFIX}{position}_", notes=[])
    log.engine.put(f"{one.prefix}criterion", pl.DataFrame({"criterion": [name]}))
    log.engine.view(f"{one.prefix}log", log.sql("criterion_rows", q=one.prefix))
    return one


def _ready(log: Log, scale: tuple[float, float] | None) -> Log:
    """Check the rows, and find out whether annotators and tasks are known."""
    checked = check(log, scale)
    if not checked.rows:
        raise DataError(
            f"no row can be used. {' '.join(map(sentence, log.notes))}".strip(),
            "Check that the right columns were read.",
            file=log.label,
        )
    missing_ids = log.query("missing_ids")
    for name, missing in (("annotator", "no_annotator"), ("task", "no_task")):
        unknown = int(missing_ids.filter(missing)["n"].sum())
        if 0 < unknown < int(missing_ids["n"].sum()):
            note_irregular(log, unknown, f"no {name}", f"kept, {name} unknown")
    usable = missing_ids.filter("usable")
    knows_annotators, knows_tasks = (not usable[missing].any() for missing in ("no_annotator", "no_task"))
    unit = "annotators" if knows_annotators else "tasks" if knows_tasks else "judgments"
    return replace(
        log,
        rows=checked.rows,
        unit=unit,
        knows_annotators=knows_annotators,
        knows_tasks=knows_tasks,
        scale=checked.scale,
        words=checked.words,
        scale_known=scale is not None,
    )


def coded(names: pl.Series, index: Index) -> IntArray:
    """Return the codes of ids, all of which are in the index."""
    return names.cast(pl.Enum(index.ids)).to_physical().cast(pl.Int32).to_numpy()


def by_item(frame: pl.DataFrame, items: Index) -> pl.DataFrame:
    """Sort a table with one row per item in the order of the index."""
    return frame.with_columns(pl.Series("item", coded(frame["item"], items))).sort("item")


def index_of(names: pl.Series) -> Index:
    """Index ids in sorted order."""
    return Index(sorted(set(names.to_list())))


@dataclass(frozen=True, slots=True)
class Checked:
    """The number of usable rows, the scale of ratings, and the words for outcomes of comparisons."""

    rows: int
    scale: tuple[float, float] = (0.0, 1.0)
    words: Mapping[str, int] = field(default_factory=dict)


_EMPTY = ("the {field} is empty", "Give its id.")
_ITSELF = ("an item is compared with itself", "Correct or remove them.")
_WORD = ("the winner is neither of the two items ({example})", UNCLEAR_WINNER)
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
    parts = {"needed": "FALSE" if log.loser else "TRUE", "outcome": outcome_sql({})}
    counts = log.query("check_comparisons", **parts)
    words: dict[str, int] = {}
    if (counts["problem"] == "winner").any():
        words = _outcome_words(log)
        counts = log.query("check_comparisons", **parts | {"outcome": outcome_sql(words)})
    _refuse(log, counts)
    usable, every = int(counts["usable"].sum()), int(counts["n"].sum())
    if log.loser:
        note_irregular(log, every - usable, "no winner or no loser", "left out")
        log.notes.append("The order shown is not known: winners were put on the left.")
    else:
        note_irregular(log, every - usable, "no winner", "left out (write tie where it was one)")
    return Checked(usable, words=words)


def _outcome_words(log: Log) -> dict[str, int]:
    """Find the spellings of outcomes in a log, as `read_comparisons` does."""
    table = log.query("outcome_words")
    spellings = Spellings(frozenset(table.filter(pl.col("items") > 0)["winner"].to_list()))
    words = {word: spellings.outcome(word) for word in table["winner"].to_list()}
    outcomes = {word: outcome for word, outcome in words.items() if outcome is not None}
    both_bad = int(table.filter(pl.col("winner").is_in([w for w in outcomes if is_both_bad(w)]))["n"].sum())
    if both_bad:
        log.notes.append(both_bad_note(both_bad))
    return outcomes


def outcome_sql(words: Mapping[str, int]) -> str:
    """Return the SQL expression of a comparison's outcome; `words` are spellings besides the standard words.

    A word names a side only if it is the id of neither item.
    """
    names = {f"LOWER(winner) = {_quoted(word)}": outcome for word, outcome in STANDARD.items()}
    names |= {f"winner = {_quoted(word)}": outcome for word, outcome in words.items()}
    cases = "\n".join(f"  WHEN {condition} THEN {outcome}" for condition, outcome in names.items())
    return f"CASE WHEN winner = left_item THEN 1 WHEN winner = right_item THEN -1\n{cases} END"


def _quoted(word: str) -> str:
    """Write a word as an SQL literal. Spellings have no quotes and backslashes, which engines escape differently."""
    return f"'{word}'"


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
