"""Simulate the answers to many tasks in one batch."""

from __future__ import annotations

import numpy as np

from steelyard.errors import ConfigError
from steelyard.observations import IntArray, Observations
from steelyard.protocols import Protocol
from steelyard.simulate import SimulatedAnnotators
from steelyard.simulate.annotators import protocol_key
from steelyard.simulate.batch_answers import TaskBatch, batch_observations


def ask(people: SimulatedAnnotators, protocol: Protocol, tasks: IntArray, who: IntArray) -> Observations:
    """Return the simulated observations of tasks (one row of item codes each), in order."""
    key = protocol_key(protocol)
    first = people.answer_counts[key]
    people.answer_counts[key] += len(tasks)
    rows = np.arange(first, first + len(tasks), dtype=np.int32)
    fresh = np.zeros(len(tasks), np.int32)
    percepts = people.percepts(protocol, who, fresh, tasks, rows)
    batch = TaskBatch(tasks, who, percepts, people.tie_margins(who), people.items, people.people)
    by_criterion = batch_observations(protocol, batch)
    if by_criterion is None:
        raise ConfigError(f"{protocol.name} cannot be asked all at once.", "Rehearse the study instead.")
    (observations,) = by_criterion.values()
    return observations


def in_turn(tasks: int, times: int, people: int, rng: np.random.Generator) -> IntArray:
    """Assign `times` different annotators to each task, consecutively."""
    first = rng.integers(people, size=tasks)
    return ((first[:, None] + np.arange(times)) % people).ravel().astype(np.int32)
