"""Agreement in a log, from counts by an engine: Krippendorff's α and split-half reliability."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import polars as pl

from steelyard.engines.log import Log, coded, index_of
from steelyard.engines.split_half import LogSplit
from steelyard.observations import UNKNOWN, FloatArray, Index
from steelyard.reliability.agreement import (
    Agreement,
    Grouped,
    choice_notes,
    choice_statistics,
    item_statistics,
    pair_statistics,
    set_name,
    unit_notes,
)
from steelyard.reliability.bootstrap import Bootstrap, Seed
from steelyard.reliability.split_half import split_half_or_reason
from steelyard.reliability.statistic import Statistic
from steelyard.reliability.units import Codes, Units, group_codes

_MEMORY_ONLY = "engines compute only statistics of answers per {}; use --engine memory for the other statistics"


def log_agreement(log: Log, *, seed: Seed = 0, replicates: int = 200, level: float = 0.95) -> Agreement:
    """Compute the agreement statistics that need only counts: α, observed agreement and split-half reliability.

    ITA, pairwise κ, self-consistency, cycles and position bias need all judgments in memory.
    """
    bootstrap = Bootstrap.of(seed, replicates, level)
    statistics, notes, units = _BY_KIND[log.kind](log, bootstrap)
    return Agreement(log.kind, statistics, (*notes, _MEMORY_ONLY.format(units)))


_Statistics = tuple[tuple[Statistic, ...], tuple[str, ...], str]
"""The statistics, notes on them, and the names of their units."""


def _of_items(log: Log, bootstrap: Bootstrap) -> _Statistics:
    cells = _cells(log, f"{log.prefix}log", ["item"], "value" if log.kind == "ratings" else "label", log.usable)
    items = index_of(cells["item"])
    answer = cells["answer"]
    value = answer.cast(pl.Float64).to_numpy() if log.kind == "ratings" else coded(answer, index_of(answer))
    units = _counted(cells, coded(cells["item"], items).astype(np.int64), np.asarray(value, np.float64))
    statistics = item_statistics(
        log.kind, units, log.scale, bootstrap, lambda: tuple(items[int(c)] for c in units.kept)
    )
    notes = unit_notes(log.knows_annotators, units)
    if log.kind != "ratings":
        return statistics, notes, "item"
    return (*statistics, *split_half_or_reason(LogSplit(log, bootstrap.seed), bootstrap)), notes, "item and split-half"


def _of_pairs(log: Log, bootstrap: Bootstrap) -> _Statistics:
    split = LogSplit(log, bootstrap.seed)

    def grouped(in_tasks: bool) -> Grouped:
        cells = _cells(log, split.rows, [*(["task"] if in_tasks else []), "item0", "item1"], "outcome")
        sides = cells.select("item0", "item1").to_numpy().astype(np.int64).reshape(-1, 2)
        outcome = cells["answer"].cast(pl.Float64).to_numpy()
        if not in_tasks:
            code = group_codes(*sides.T)
            units = _counted(cells, code, outcome)
            return Grouped(units, lambda: _set_names(split.items, sides[_rows(code)[units.kept]]))
        tasks = index_of(cells["task"])
        task = coded(cells["task"], tasks)
        code = group_codes(task, *sides.T)
        units = _counted(cells, code, outcome)
        of_unit = task[_rows(code)[units.kept]]
        return Grouped(units, lambda: tuple(tasks[int(c)] for c in np.unique(of_unit)), group_codes(of_unit))

    ties = _count(log, split, "outcome = 0") > 0
    statistics, notes = pair_statistics(
        grouped, bootstrap, tasks=log.knows_tasks, ties=ties, annotators=log.knows_annotators
    )
    return (*statistics, *split_half_or_reason(split, bootstrap)), notes, "pair and split-half"


def _of_tuples(log: Log, bootstrap: Bootstrap) -> _Statistics:
    split = LogSplit(log, bootstrap.seed)
    columns = [f"item{position}" for position in range(len(log.item_columns))]
    statistics: list[Statistic] = []
    by_name = {}
    for name in ("best", "worst"):
        cells = _cells(log, split.rows, columns, name, f"{name} IS NOT NULL")
        tuples = cells.select(columns).to_numpy().astype(np.int64).reshape(-1, len(columns))
        code = group_codes(*tuples.T)
        units = _counted(cells, code, cells["answer"].cast(pl.Float64).to_numpy())
        sets = tuples[_rows(code)[units.kept]]
        options = (sets != UNKNOWN).sum(axis=1).astype(np.float64)
        grouped = Grouped(units, partial(_set_names, split.items, sets))
        statistics += choice_statistics(name, grouped, options, bootstrap)
        by_name[name] = units, _count(log, split, f"{name} IS NULL")
    statistics += split_half_or_reason(split, bootstrap)
    return tuple(statistics), choice_notes(log.knows_annotators, by_name), "set of items and split-half"


_BY_KIND = {"ratings": _of_items, "labels": _of_items, "comparisons": _of_pairs, "choices": _of_tuples}


def _cells(log: Log, rows: str, unit: Sequence[str], value: str, condition: str = "1 = 1") -> pl.DataFrame:
    """Count the answers by unit (some columns) and value."""
    parts = {
        "unit": ", ".join(unit),
        "unit_of_b": ", ".join(f"b.{column}" for column in unit),
        "as_s": " AND ".join(f"b.{column} = s.{column}" for column in unit),
        "as_r": " AND ".join(f"b.{column} = r.{column}" for column in unit),
    }
    return log.query("agreement_cells", rows=rows, value=value, condition=condition, **parts)


def _counted(cells: pl.DataFrame, unit: Codes, value: FloatArray) -> Units:
    annotators = index_of(cells["annotator"].drop_nulls())
    annotator = np.full(cells.height, UNKNOWN, np.int64)
    has_annotator = cells["annotator"].is_not_null().to_numpy()
    annotator[has_annotator] = coded(cells["annotator"].filter(has_annotator), annotators)
    return Units.counted(unit, value, cells["n"].to_numpy(), annotator)


def _count(log: Log, split: LogSplit, condition: str) -> int:
    return int(log.query("count", what=f"CASE WHEN {condition} THEN 1 END", view=split.rows)["n"][0])


def _rows(code: Codes) -> Codes:
    """Return the index of one row for each code."""
    row = np.zeros(int(code.max(initial=-1)) + 1, np.int64)
    row[code] = np.arange(len(code))
    return row


def _set_names(items: Index, sets: Codes) -> tuple[str, ...]:
    return tuple(set_name(items[int(code)] for code in row if code != UNKNOWN) for row in sets)
