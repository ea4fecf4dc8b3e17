"""Compare systems from a file, a frame or observations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.errors import DataError, did_you_mean
from steelyard.formats import JudgmentFile, read_items, read_judgments, read_table
from steelyard.formats.columns import plain
from steelyard.formats.tables import Source
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.comparisons.latent import LatentScale
from steelyard.models.systems.comparison import (
    Method,
    SystemComparison,
    SystemOptions,
    Unit,
    compare,
    joined,
)
from steelyard.models.systems.judgments import SystemJudgments
from steelyard.observations import FloatArray, Observations, Ratings
from steelyard.records import Item

SYSTEM_NAMES = ("system", "systemid", "systemname", "model", "modelid", "modelname")
SOURCE_NAMES = (
    *("source", "sourceid", "context", "segment", "segmentid", "prompt", "promptid", "question", "questionid"),
    *("query", "queryid", "instruction", "document", "documentid", "docid"),
)
"""Names of the column of systems, and of that of sources, without case, spaces, hyphens and underscores."""
_ITEM_FIELDS = ("group", "context", "reference", "gold")
_IGNORED = "Ignored columns"


def compare_systems(
    judgments: Source | Observations,
    *,
    items: Source | Sequence[Item] | None = None,
    system: str | None = None,
    source: str | Sequence[str] | None = None,
    by: str | Sequence[str] = (),
    covariates: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    kind: str | None = None,
    scale: tuple[float, float] | None = None,
    method: Method = "two_way",
    adjust: bool = True,
    model: LatentScale | None = None,
    resample: Sequence[str] = ("sources", "annotators"),
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
    unit: Unit = "natural",
    label: str | None = None,
) -> SystemComparison:
    """Compare systems: scores, intervals, rank ranges, clusters and pairwise differences.

    Parameters
    ----------
    judgments : path, frame or observations
        Ratings with a column of systems; comparisons whose two sides are systems, such as votes with the columns
        model_a, model_b and winner; or judgments of items, with `items`.
    items : path, frame or list of Item, optional
        The items, with the system (column group or system) and the source (context or source) of each.
    system, source : str, optional
        Columns of the judgments; by default found by their names (system, model; source, segment, prompt …). Several
        columns together make a source, such as a document and the number of a segment in it.
    by : str or sequence of str
        Columns of the judgments, or of the items, such as a domain: systems are compared within each value.
    covariates : sequence of str
        Columns of differences between the left and the right output. `chars` also stands for chars_a minus chars_b.
    columns, kind, scale
        As for `read_judgments`.
    method : {"two_way", "bootstrap", "wmt"}
        Clustered by source and annotator, resampled by source and annotator, or the procedure of WMT.
    adjust : bool
        Adjust means of ratings for sources and annotators.
    model : LatentScale, optional
        Model of comparisons, choices or rankings.
    resample : sequence of {"sources", "annotators"}
        What is treated as a sample of a larger population; otherwise, the results hold for the given sources or
        annotators only.
    level, draws, seed
        Coverage of the intervals, number of joint draws or bootstrap replicates, random seed.
    unit : {"natural", "elo"}
        Unit of scores from comparisons; elo is 1000 + 400 · log₁₀ odds, with ties as half wins.
    label : str, optional
        Label whose proportion is the score; by default each of several labels, or the positive one of two.
    """
    if unit == "elo" and model is None:
        model = BradleyTerry(ties="half")
    options = SystemOptions(method, adjust, model, tuple(resample), level, draws, seed, unit, label)
    subsets = [by] if isinstance(by, str) else list(by)
    if isinstance(judgments, Observations):
        if subsets or covariates:
            raise DataError("observations have no columns.", "Give a frame, or compare the subsets one by one.")
        return compare(_of_observations(judgments, items), options)
    frame, source = _with_source(read_table(judgments), source)
    item_list = _items(items)
    of_frame = [name for name in subsets if item_list is None or name in frame.columns]
    item_columns = {name: item_column(item_list or (), name) for name in subsets if name not in of_frame}
    read = {"columns": columns, "kind": kind, "scale": scale}
    if item_list is None:
        read["columns"] = _columns(frame, columns or {}, system, source, kind)
    parts = []
    for keys, rows in _subsets(frame, of_frame):
        file = read_judgments(rows, **read)  # type: ignore[arg-type]
        for criterion, observations in file.by_criterion.items():
            values = _covariates(rows, covariates, file, criterion)
            for item_keys, subset in subsets_of_items(observations, item_columns):
                part = observations.subset(subset)
                prepared = _of_columns(part, read["columns"]) if item_list is None else of_items(part, item_list)
                names = {**keys, **item_keys, **({"criterion": criterion} if criterion else {})}
                of_part = {name: value[subset] for name, value in values.items()}
                parts.append((names, compare(_noted(prepared, file), options, of_part)))
    return joined(parts)


def _with_source(frame: pl.DataFrame, source: str | Sequence[str] | None) -> tuple[pl.DataFrame, str | None]:
    """Join several columns that make a source; return the name of the joint one."""
    if source is None or isinstance(source, str):
        return frame, source
    for name in source:
        _check_column(frame, name)
    joint = " / ".join(source)
    return frame.with_columns(pl.concat_str([pl.col(name) for name in source], separator=" / ").alias(joint)), joint


def _check_column(frame: pl.DataFrame, name: str) -> None:
    if name not in frame.columns:
        raise DataError(f"there is no column '{name}'.", did_you_mean(name, frame.columns))


def _of_observations(observations: Observations, items: Source | Sequence[Item] | None) -> SystemJudgments:
    item_list = _items(items)
    return SystemJudgments.of_systems(observations) if item_list is None else of_items(observations, item_list)


def _items(items: Source | Sequence[Item] | None) -> list[Item] | None:
    if items is None:
        return None
    if isinstance(items, Sequence) and not isinstance(items, str) and all(isinstance(i, Item) for i in items):
        return [item for item in items if isinstance(item, Item)]
    return read_items(items)  # type: ignore[arg-type]  # sequences of Item returned above


def of_items(observations: Observations, items: Sequence[Item]) -> SystemJudgments:
    """Return the judgments of the items' systems; for ratings, an item without a context is its own source."""
    systems = {item.id: item.group for item in items if item.group is not None}
    if not systems:
        raise DataError("no item belongs to a system.", "Add a column 'system' to the items.")
    alone = observations.kind == Ratings.kind
    sources = {item.id: item.context or item.id for item in items if alone or item.context is not None}
    return SystemJudgments.of_items(observations, systems, sources)


def item_column(items: Sequence[Item], name: str) -> dict[str, str]:
    """Return the value of a column for the items that have one: a field, or a column of their metadata."""
    if name in _ITEM_FIELDS:
        return {item.id: str(value) for item in items if (value := getattr(item, name)) is not None}
    values = {item.id: item.metadata[name] for item in items if name in item.metadata}
    if not values:
        names = dict.fromkeys(name for item in items for name in item.metadata)
        raise DataError(
            f"the items have no column '{name}'.", did_you_mean(name, [*names] or [*_ITEM_FIELDS]), field=name
        )
    return values


def subsets_of_items(
    observations: Observations, columns: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[dict[str, str], NDArray[np.bool_]]]:
    """Yield the observations all of whose items have the same values, for each combination of values.

    `columns` maps the name of a column to the value of each item.
    """
    every = np.ones(len(observations), np.bool_)
    if not columns:
        yield {}, every
        return
    ids = observations.items.ids
    combinations = [tuple(values.get(item) for values in columns.values()) for item in ids]
    distinct = sorted({values for values in combinations if None not in values}, key=str)
    number_of = {values: number for number, values in enumerate(distinct)}
    code = np.array([number_of.get(values, -1) for values in combinations])
    item, row = observations.incidence()
    for number, values in enumerate(distinct):
        elsewhere = np.bincount(row, code[item] != number, len(observations)) > 0
        rows = every & ~elsewhere & (np.bincount(row, minlength=len(observations)) > 0)
        if rows.any():
            yield {name: str(value) for name, value in zip(columns, values, strict=True)}, rows


def _of_columns(observations: Observations, columns: object) -> SystemJudgments:
    """Take the items as systems, and the tasks, into which the column of sources was read, as sources."""
    if not (isinstance(columns, Mapping) and "task" in columns) or not len(observations.tasks):
        return SystemJudgments.of_systems(observations)
    return SystemJudgments(observations, observations.task, observations.tasks)


def _noted(judgments: SystemJudgments, file: JudgmentFile) -> SystemJudgments:
    # Other columns are no mistake here: a frame of votes has many.
    notes = (note for note in file.notes if not note.startswith(_IGNORED) and "Did you mean" not in note)
    return SystemJudgments(judgments.observations, judgments.source, judgments.sources, (*judgments.notes, *notes))


def _columns(
    frame: pl.DataFrame, columns: Mapping[str, str], system: str | None, source: str | None, kind: str | None
) -> dict[str, str]:
    """Complete the mapping of columns: the system is read as the item, the source as the task."""
    mapping = dict(columns)
    for name, role in ((system, "item"), (source, "task")):
        if name is not None:
            _check_column(frame, name)
            mapping[role] = name
    if "task" not in mapping and (own := _named(frame, SOURCE_NAMES)) is not None:
        mapping["task"] = own
    if "item" not in mapping and kind in (None, "ratings", "labels"):
        own = _named(frame, SYSTEM_NAMES)
        if own is not None:
            mapping["item"] = own
    return mapping


def _named(frame: pl.DataFrame, names: Sequence[str]) -> str | None:
    """Return the column with the first of some names that the frame has."""
    by_name = {plain(column): column for column in reversed(frame.columns)}
    return next((by_name[name] for name in names if name in by_name), None)


def _subsets(frame: pl.DataFrame, by: Sequence[str]) -> Iterator[tuple[dict[str, str], pl.DataFrame]]:
    for name in by:
        _check_column(frame, name)
    if not by:
        yield {}, frame
        return
    for key, part in frame.partition_by(by, as_dict=True, maintain_order=True).items():
        yield {name: str(value) for name, value in zip(by, key, strict=True)}, part


def _covariates(frame: pl.DataFrame, names: Sequence[str], file: JudgmentFile, criterion: str) -> dict[str, FloatArray]:
    rows = file.rows(criterion)
    return {name: _difference(frame, name)[rows] for name in names}


def _difference(frame: pl.DataFrame, name: str) -> FloatArray:
    if name in frame.columns:
        values = frame[name].cast(pl.Float64, strict=False)
    else:
        sides = [(f"{name}{one}", f"{name}{other}") for one, other in (("_a", "_b"), ("_1", "_2"), ("_left", "_right"))]
        pair = next((pair for pair in sides if set(pair) <= set(frame.columns)), None)
        if pair is None:
            raise DataError(
                f"there is no column '{name}', nor {name}_a and {name}_b.", did_you_mean(name, frame.columns)
            )
        left, right = (frame[column].cast(pl.Float64, strict=False) for column in pair)
        values = left - right
    return np.asarray(values.to_numpy(), np.float64)
