"""Compiled form of a whole round of SampleByMatchQuality (Algorithm 1 of Sakaguchi & Van Durme 2018)."""

from __future__ import annotations

from math import exp, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.models.compiled import compiled
from steelyard.observations import FloatArray, IntArray


class RoundItems(NamedTuple):
    """Posterior of the items at the start of a round.

    `noise` is 2γ²; no match quality counts as less than `floor`.
    """

    mode: FloatArray
    variance: FloatArray
    is_head: NDArray[np.bool_]
    noise: float
    floor: float


@compiled
def quality(items: RoundItems, item: int, other: int) -> float:
    """Return the match quality of two items (Eq. 23)."""
    c2 = items.noise + items.variance[item] + items.variance[other]
    difference = items.mode[item] - items.mode[other]
    return max(sqrt(items.noise / c2) * exp(-difference * difference / (2.0 * c2)), items.floor)


@compiled
def draw_round(
    items: RoundItems, heads: IntArray, max_proposals: int, rng: np.random.Generator, tasks: IntArray
) -> None:
    """Fill each row of `tasks` with a head and partners drawn without replacement by match quality.

    Partners are proposed uniformly and accepted with q / q_max, where q_max is the quality of the head with an item of
    equal mode and the lowest variance. After `max_proposals` the remaining partners are drawn from all weights.
    """
    n, size = len(items.mode), tasks.shape[1]
    least = items.variance.min()
    weights = np.empty(0)
    for row in range(len(heads)):
        head = heads[row]
        tasks[row, 0] = head
        filled = 1
        max_quality = max(sqrt(items.noise / (items.noise + items.variance[head] + least)), items.floor)
        for _ in range(max_proposals):
            if filled == size:
                break
            other = int(rng.random() * n)
            threshold = rng.random() * max_quality
            if items.is_head[other] or threshold >= quality(items, head, other):
                continue
            if not _contains(tasks[row, 1:filled], other):
                tasks[row, filled] = other
                filled += 1
        if filled < size:
            if len(weights) == 0:
                weights = np.empty(n)
            for other in range(n):
                weights[other] = 0.0 if items.is_head[other] else quality(items, head, other)
            _fill_from_all(weights, rng, tasks[row], filled)


@compiled
def _contains(partners: IntArray, other: int) -> bool:
    result = False
    for partner in partners:
        result = result or partner == other
    return result


@compiled
def _fill_from_all(weights: FloatArray, rng: np.random.Generator, task: IntArray, filled: int) -> None:
    """Draw the remaining items of a task one by one in proportion to the remaining weights."""
    for place in range(1, filled):
        weights[task[place]] = 0.0
    for place in range(filled, len(task)):
        remaining = rng.random() * weights.sum()
        for other in range(len(weights)):
            if weights[other] > 0.0:
                # The last item is chosen where rounding leaves a positive remainder.
                task[place] = other
                remaining -= weights[other]
                if remaining < 0.0:
                    break
        weights[task[place]] = 0.0
