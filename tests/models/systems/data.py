"""Simulated judgments of systems with effects of sources and annotators."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.models.systems.adjusted_means import Cells
from steelyard.models.systems.judgments import SystemJudgments
from steelyard.observations import Comparisons, Index, Ratings


def index(prefix: str, count: int) -> Index:
    return Index([f"{prefix}{number}" for number in range(count)])


def ratings(cells: Cells) -> SystemJudgments:
    low, high = float(cells.value.min()) - 1, float(cells.value.max()) + 1
    who: dict[str, Any] = {}
    if cells.annotator is not None:
        who = {"annotators": index("a", int(cells.annotator.max()) + 1), "annotator": cells.annotator}
    observations = Ratings(
        items=index("s", cells.n_systems), item=cells.system, value=cells.value, scale=(low, high), **who
    )
    return SystemJudgments(observations, cells.source, index("c", int(cells.source.max()) + 1))


def complete(systems: int, sources: int, annotators: int, rng: np.random.Generator) -> Cells:
    """Every annotator rates every system on every source."""
    shape = (systems, sources, annotators)
    system, source, annotator = (axis.ravel().astype(np.int32) for axis in np.indices(shape))
    value = 50 + 8 * rng.normal(size=sources)[source] + 5 * rng.normal(size=annotators)[annotator]
    return Cells(system, source, annotator, value + 6 * rng.normal(size=value.size) - system, systems)


def votes(left, right, outcome, systems: int, **others) -> Comparisons:
    return Comparisons(
        items=index("s", systems),
        left=np.asarray(left, np.int32),
        right=np.asarray(right, np.int32),
        outcome=np.asarray(outcome, np.int8),
        **others,
    )
