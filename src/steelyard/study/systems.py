"""Comparing the systems of a study: items belong to systems (group) and sources (context)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import DataError, did_you_mean
from steelyard.formats import read_items, read_table
from steelyard.models.fit import Model
from steelyard.observations import Observations
from steelyard.records import Item
from steelyard.study.config import Stage
from steelyard.study.config.tables import ItemsSource

if TYPE_CHECKING:
    # Most studies have no systems, and the comparison takes half a second to import.
    from steelyard.models.systems.comparison import SystemComparison, SystemOptions

_FIELDS = ("group", "context", "reference", "gold")


def has_systems(items: Sequence[Item]) -> bool:
    """Whether the items belong to two systems or more."""
    return len({item.group for item in items if item.group is not None}) > 1


def kind_of_systems(stages: Sequence[Stage]) -> str:
    """Return the kind of judgments from which a study's systems are compared."""
    from steelyard.models.systems.comparison import KINDS

    for kinds in (
        [stage.protocol.kinds[0] for stage in stages],
        [kind for stage in stages for kind in stage.protocol.kinds],
    ):
        kind = next((kind for kind in KINDS if kind in kinds), None)
        if kind is not None:
            return kind
    raise DataError(
        "systems are compared by ratings, comparisons, choices or rankings; this study collects labels.",
        "Choose another protocol.",
    )


def compare_by_criterion(
    by_criterion: Mapping[str, Observations],
    items: Sequence[Item],
    options: SystemOptions,
    columns: Mapping[str, Mapping[str, str]] | None = None,
) -> SystemComparison:
    """Compare the systems by each criterion, and within each value of the items' columns.

    `columns` maps the name of a column to the value of every item.
    """
    if not by_criterion:
        raise DataError("there are no judgments yet.", "Collect some, or import them: steelyard import.")
    from steelyard.models.systems.compare_systems import of_items
    from steelyard.models.systems.comparison import compare, joined

    parts = []
    for criterion, observations in by_criterion.items():
        for keys, rows in _subsets(observations, columns or {}):
            names = {**({"criterion": criterion} if criterion else {}), **keys}
            parts.append((names, compare(of_items(observations.subset(rows), items), options)))
    return joined(parts)


def with_model(options: SystemOptions, model: Model) -> SystemOptions:
    """Use the study's model of items for the systems, if it is one of comparisons, choices or rankings."""
    from steelyard.models.comparisons.latent import LatentScale

    return replace(options, model=model) if options.model is None and isinstance(model, LatentScale) else options


def item_column(folder: Path, source: ItemsSource, items: Sequence[Item], name: str) -> dict[str, str]:
    """Return the value of a column for every item: a field of the items, or any column of the items file."""
    if name in _FIELDS:
        return {item.id: str(value) for item in items if (value := getattr(item, name)) is not None}
    frame = read_table(folder / source.file)
    if name not in frame.columns:
        raise DataError(f"the items have no column '{name}'.", did_you_mean(name, frame.columns), file=source.file)
    ids = [item.id for item in read_items(folder / source.file, columns=source.columns, ignore=source.ignore)]
    values = frame[name].cast(str).to_list()
    return {item: value for item, value in zip(ids, values, strict=True) if value}


def _subsets(
    observations: Observations, columns: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[dict[str, str], NDArray[np.bool_]]]:
    """Yield the observations all of whose items have the same values, for each combination of values."""
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
