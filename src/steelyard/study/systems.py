"""Comparing the systems of a study: items belong to systems (group) and sources (context)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from steelyard.errors import DataError
from steelyard.models.comparisons.latent import LatentScale
from steelyard.models.fit import Model
from steelyard.models.systems.compare_systems import of_items, subsets_of_items
from steelyard.models.systems.comparison import KINDS, SystemComparison, SystemOptions, compare, joined
from steelyard.observations import Observations
from steelyard.records import Item
from steelyard.study.config import Stage


def has_systems(items: Sequence[Item]) -> bool:
    """Whether the items belong to two systems or more."""
    return len({item.group for item in items if item.group is not None}) > 1


def kind_of_systems(stages: Sequence[Stage]) -> str:
    """Return the kind of judgments from which a study's systems are compared."""
    for kinds in (
        [stage.protocol.kinds[0] for stage in stages],
        [kind for stage in stages for kind in stage.protocol.kinds],
    ):
        kind = next((kind for kind in KINDS if kind in kinds), None)
        if kind is not None:
            return kind
    raise DataError(
        f"systems can be compared by {', '.join(KINDS)}; this study has none of these.", "Choose another protocol."
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
    parts = []
    for criterion, observations in by_criterion.items():
        for keys, rows in subsets_of_items(observations, columns or {}):
            names = {**({"criterion": criterion} if criterion else {}), **keys}
            parts.append((names, compare(of_items(observations.subset(rows), items), options)))
    return joined(parts)


def with_model(options: SystemOptions, model: Model) -> SystemOptions:
    """Use the study's model of items for the systems, if it is one of comparisons, choices or rankings."""
    return replace(options, model=model) if options.model is None and isinstance(model, LatentScale) else options
