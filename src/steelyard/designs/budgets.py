"""The settings by which each design plans a number of judgments per item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, comb
from typing import Any

_DEFAULT_FACTOR = 2.0
"""Tuples per item of balanced_tuples, as in best–worst scaling (Kiritchenko & Mohammad 2017)."""


def _balanced(judgments: int, size: int, n_items: int) -> Mapping[str, Any]:
    factor = min(_DEFAULT_FACTOR, int(1000 * comb(n_items, size) / n_items) / 1000)
    return {"factor": factor, "annotators_per_task": ceil(judgments / (factor * size))}


_SETTINGS: dict[str, Callable[[int, int, int], Mapping[str, Any]]] = {
    "per_item": lambda judgments, size, n_items: {"judgments": judgments},
    "random_tuples": lambda judgments, size, n_items: {"judgments": judgments},
    "balanced_tuples": _balanced,
    "match_quality": lambda judgments, size, n_items: {
        "rounds": ceil(judgments * n_items / size / max(n_items // size, 1))
    },
    "adaptive": lambda judgments, size, n_items: {"judgments": judgments},
    "all_pairs": lambda judgments, size, n_items: {"annotators_per_task": ceil(judgments / max(n_items - 1, 1))},
}

BUDGETED: tuple[str, ...] = tuple(_SETTINGS)
"""The designs whose number of judgments per item can be chosen."""


BUDGET_NAMES: tuple[str, ...] = ("judgments", "factor", "annotators_per_task", "rounds")
"""The settings in which designs express it."""


def budget_settings(design: str, judgments: int, task_size: int, n_items: int) -> dict[str, Any]:
    """Return settings that give every item at least `judgments` judgments.

    `n_items` is the number of items that can be compared with each other: all of them, or those of one context.
    """
    return dict(_SETTINGS[design](judgments, task_size, n_items))
