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
from steelyard.formats.judgments import refuse_contradiction, sentence, unknown_column, unused_columns
from steelyard.formats.pointwise import MOST_STEPS, observed_scale, scale_of_steps
from steelyard.formats.problems import Problems, bad_rows_note, skipped_note
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
    every_row
        The statement of all rows, bad ones included.
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
    skip_bad_rows: bool = False
    every_row: str = ""
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
    skip_bad_rows: bool = False,
    label: str | None = None,
) -> LogFiles:
    """Check files and prepare them for queries: as `read_judgments`, but nothing is read into memory."""
    called = label or (str(files[0]) if len(files) == 1 else f"{files[0].parent}/*")
    roles = roles_of(
        files,
        kind=kind,
        columns=columns,
        scale=scale,
        strict=strict,
        skip_bad_rows=skip_bad_rows,
        label=called,
    )
    notes = unused_columns(roles)
    log = replace(_trimmed(engine, files, roles, called, strict), skip_bad_rows=skip_bad_rows)
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
    skip_bad_rows: bool = False,
    label: str,
) -> Roles:
    """Find the role of each column and refuse files that engines cannot read; only the footers are read."""
    if kind is not None and kind not in KINDS:
        raise DataError(f"'{kind}' is not a kind of judgments.", did_you_mean(kind, list(KINDS)))
    if scale is not None and not scale[0] < scale[1]:
        raise DataError(f"the scale runs from {scale[0]:g} to {scale[1]:g}.", "Give the lower end first.")
    refuse_contradiction(strict, skip_bad_rows)
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
    every_row = log.sql("all_rows")
    engine.view(f"{PREFIX}log", every_row)
    return replace(log, usable=_usable_condition(log), every_row=every_row)


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
    prefix = f"{PREFIX}{position}_"
    one = replace(log, prefix=prefix, notes=[], every_row=log.sql("criterion_rows", q=prefix))
    log.engine.put(f"{prefix}criterion", pl.DataFrame({"criterion": [name]}))
    log.engine.view(f"{prefix}log", one.every_row)
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
        scale_known=checked.scale_known,
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
    scale_known: bool = True
    words: Mapping[str, int] = field(default_factory=dict)


_EMPTY = ("the {field} is empty", "Give its id.")
_ITSELF = ("an item is compared with itself", "Correct or remove them.")
_WORD = ("the winner is neither of the two items ({example})", UNCLEAR_WINNER)
_TWICE = ("an item is in the tuple twice ({example})", "Correct or remove them.")
_AMONG = ("the {field} item is not among the items of its row ({example})", "Write the id of one of them.")
_NUMBER = ("the value is not a number ({example})", "Leave it empty where there was no answer.")
_OUTSIDE = (
    "the value is outside the scale {low:g} to {high:g} (such as {example})",
    "Correct the value, or set the scale of the ratings.",
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


def _checked_counts(
    log: Log, name: str, problem: str, scale: tuple[float, float] | None = None, counts: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Count the rows by the SQL expression of their `problem`; refuse bad rows, or leave them out of the log."""
    counts = log.query(name, problem=problem) if counts is None else counts
    low, high = scale or (-np.inf, np.inf)
    problems = []
    for row in counts.filter(pl.col("problem").is_not_null()).iter_rows(named=True):
        what, remedy = _MESSAGES[row["problem"]]
        text = what.format(field=row["problem"], example=row["example"], low=low, high=high)
        problems.append(Problem(f"{text} in {counted(row['n'], 'row')}.", remedy, log.label))
    if not problems:
        return counts
    bad = int(counts.filter(pl.col("problem").is_not_null())["n"].sum())
    if not log.skip_bad_rows:
        error = DataError(problems)
        error.add_note(bad_rows_note(bad, int(counts["n"].sum())))
        raise error
    log.notes.append(skipped_note(bad, problems))
    log.engine.view(f"{log.prefix}log", sql("good_rows", rows=log.every_row, problem=problem))
    return log.query(name, problem=problem)


def _ratings(log: Log, scale: tuple[float, float] | None) -> Checked:
    low, high = scale or (-np.inf, np.inf)
    problem = sql("bad_rating", low=number(low), high=number(high))
    counts = _checked_counts(log, "check_ratings", problem, scale)
    usable = int(counts["usable"].sum())
    note_irregular(log, int(counts["n"].sum()) - usable, "no value", "left out")
    if not usable:
        return Checked(0)
    if scale:
        return Checked(usable, scale)
    steps = np.sort(log.query("distinct_values", most=MOST_STEPS + 1)["value"].to_numpy())
    if inferred := scale_of_steps(steps, log.notes):
        return Checked(usable, *inferred)
    ends = float(counts["lowest"].min()), float(counts["highest"].max())  # type: ignore[arg-type]  # of doubles
    return Checked(usable, observed_scale(*ends, log.notes), False)


def _labels(log: Log, _scale: tuple[float, float] | None) -> Checked:
    counts = _checked_counts(log, "check_labels", sql("bad_label"))
    usable = int(counts["usable"].sum())
    note_irregular(log, int(counts["n"].sum()) - usable, "no label", "left out")
    return Checked(usable)


def _comparisons(log: Log, _scale: tuple[float, float] | None) -> Checked:
    needed = "FALSE" if log.loser else "TRUE"
    words: dict[str, int] = {}
    problem = sql("bad_comparison", needed=needed, outcome=outcome_sql(words))
    counts: pl.DataFrame | None = log.query("check_comparisons", problem=problem)
    if counts is not None and (counts["problem"] == "winner").any():
        words, counts = _outcome_words(log), None
        problem = sql("bad_comparison", needed=needed, outcome=outcome_sql(words))
    counts = _checked_counts(log, "check_comparisons", problem, counts=counts)
    usable, every = int(counts["usable"].sum()), int(counts["n"].sum())
    if log.loser:
        note_irregular(log, every - usable, "no winner or no loser", "left out")
        log.notes.append("The presentation order is unknown; the winner is taken as the left item.")
    else:
        note_irregular(log, every - usable, "no winner", "left out (write tie for ties)")
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
    problem = sql(
        "bad_choice",
        twice=" OR ".join(f"{one} = {other}" for one, other in combinations(log.item_columns, 2)),
        best_in_tuple=_among("best", log.item_columns),
        worst_in_tuple=_among("worst", log.item_columns),
    )
    counts = _checked_counts(log, "check_choices", problem)
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
