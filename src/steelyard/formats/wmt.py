"""Read ranking files of the WMT shared tasks: each row ranks the outputs of up to k systems for one segment."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.formats.columns import find_columns
from steelyard.formats.problems import Problems
from steelyard.formats.ranked import from_places
from steelyard.formats.rows import Reading, Rows, counted
from steelyard.formats.tables import Table, strings

_SYSTEM = re.compile(r"system(\d+)Id", re.IGNORECASE)
_RANK = re.compile(r"system(\d+)rank", re.IGNORECASE)
_SEGMENT = ("srclang", "trglang", "srcIndex")
_BLANK = -1


def _places(frame: pl.DataFrame) -> list[tuple[str, str]]:
    """Return the columns of system and rank for each position."""
    systems = {int(match[1]): name for name in frame.columns if (match := _SYSTEM.fullmatch(name))}
    ranks = {int(match[1]): name for name in frame.columns if (match := _RANK.fullmatch(name))}
    return [(systems[number], ranks[number]) for number in sorted(systems) if number in ranks]


def is_wmt(frame: pl.DataFrame) -> bool:
    """Return whether a table has columns system1Id, system1rank, system2Id …"""
    return len(_places(frame)) > 1


def rows_from_wmt(table: Table, columns: Mapping[str, str] | None, strict: bool) -> Rows:
    """Rename the columns: judgeId is the annotator, the source segment is the task."""
    frame = table.frame
    problems = Problems(table.file, table.lines)
    fields = find_columns(frame.columns, {"annotator": ("judgeid",), "task": ()}, columns, problems)
    problems.refuse()
    headers = {field: names[0] for field, names in fields.columns.items()}
    ours = [pl.col(name).alias(field) for field, name in headers.items()]
    segment = [name for name in _SEGMENT if name in frame.columns]
    if "task" not in headers and segment:
        texts = [strings(frame[name], table.file, name) for name in segment]
        ours.append(pl.concat_str(texts, separator="-").alias("task"))
    for place, (system, rank) in enumerate(_places(frame), 1):
        ours += [pl.col(system).alias(f"system{place}"), pl.col(rank).alias(f"rank{place}")]
        headers |= {f"system{place}": system, f"rank{place}": rank}
    rows = Rows(frame.select(ours), table, headers, strict)
    pairs = frame.select(segment[:2]).n_unique() if len(segment) == len(_SEGMENT) else 1
    if pairs > 1:
        rows.notes.append(f"{pairs} language pairs are in one file; select one beforehand to score it alone.")
    return rows


def read_wmt(rows: Rows) -> Reading:
    """Read rankings in the order shown; rank -1 or an empty cell is a blank, which is left out and counted."""
    width = sum(name.startswith("system") for name in rows.frame.columns)
    ranks = np.column_stack([_ranks(rows, f"rank{place}") for place in range(1, width + 1)])
    blank = ranks == _BLANK
    incomplete = blank.any(axis=1)
    if rows.strict:
        rows.problems.at(incomplete, "a rank is blank.", "Complete or remove the row.")
    elif incomplete.any():
        rows.notes.append(
            f"{counted(int(blank.sum()), 'blank rank')} in {counted(int(incomplete.sum()), 'row')}: left out."
        )
    row, column = np.nonzero(~blank)
    systems = pl.concat([rows.text(f"system{place}").rename("system") for place in range(1, width + 1)])
    return from_places(rows, row, ranks[row, column], systems.gather(column * len(rows) + row), "ranking")


def _ranks(rows: Rows, name: str) -> NDArray[np.int64]:
    text = rows.text(name).str.strip_chars().replace("", None)
    number = text.cast(pl.Int64, strict=False)
    rank = number.fill_null(_BLANK).to_numpy()
    rows.problems.at(
        (number.is_null() & text.is_not_null()).to_numpy() | ((rank < 1) & (rank != _BLANK)),
        lambda row: f"rank '{rows.shown(name, row)}' is not a whole number from 1.",
        "Write 1 for the best, and -1 for a blank.",
        rows.header(name),
    )
    return rank
