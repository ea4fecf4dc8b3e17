"""The objective of an adaptive study. Imports nothing that is slow to load, so that study.toml can be read quickly."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Objective: TypeAlias = Literal["ranking", "top", "threshold", "scores"]
"""What the scores are for: the order of all items, the k best items, the items above a cut, or all scores."""


class ObjectiveSettings(NamedTuple):
    """An objective with its parameters: `top` is k, `threshold` the fraction of the items below the cut."""

    objective: Objective
    top: int | None
    threshold: float | None


class Costs(NamedTuple):
    """What an answer costs, in any currency: one task of a person, and one answer of a model."""

    person: float
    model: float
