"""Small studies in memory for tests of simulated people."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.records import Item
from steelyard.simulate import Population, SimulatedAnnotator, SimulatedAnnotators, make_crowd
from steelyard.study.config import StudyConfig, parse_config

PROTOCOLS: list[dict[str, Any]] = [
    {"name": "direct"},
    {"name": "direct", "scale": [-1, 1], "items_per_page": 4},
    {"name": "direct", "criteria": {"joy": {}, "valence": {"scale": [-100, 100]}}},
    {"name": "likert"},
    {"name": "choice", "labels": ["no", "perhaps", "yes"]},
    {"name": "choice", "criteria": {"a": {"labels": ["x", "y"]}, "b": {"labels": ["u", "v", "w"]}}},
    {"name": "pairwise"},
    {"name": "pairwise", "ties": False},
    {"name": "best_worst"},
    {"name": "scored_ranking", "size": 3},
    {"name": "ranking", "size": 4},
    {"name": "ranking", "size": 3, "ties": False},
    {"name": "error_spans", "items_per_page": 2},
    {"name": "error_spans", "score": "mqm"},
]


def make_items(count: int) -> list[Item]:
    return [Item(f"item-{number}", f"text {number}") for number in range(count)]


def make_config(protocol: dict[str, Any], design: dict[str, Any] | None = None, **extra: Any) -> StudyConfig:
    return parse_config(
        {
            "title": "T",
            "question": "Q",
            "items": "items.csv",
            **({"protocol": protocol} if protocol else {}),
            **({"design": design} if design else {}),
            **extra,
        }
    )


def make_annotators(
    count: int, items: list[Item], seed: int = 0, population: Population | None = None
) -> SimulatedAnnotators:
    rng = np.random.default_rng(seed)
    population = population or Population()
    crowd = make_crowd(count, rng, population)
    return SimulatedAnnotators(crowd, population.truth([item.id for item in items], rng), rng)


def alone(truth: dict[str, float], seed: int = 0, **traits: Any) -> SimulatedAnnotators:
    """One person with some traits, otherwise without noise."""
    person = SimulatedAnnotator("ann", **({"noise": 0.0} | traits))
    return SimulatedAnnotators([person], truth, np.random.default_rng(seed))
