"""The compiled form of a whole round of SampleByMatchQuality (Algorithm 1)."""

from __future__ import annotations

from math import exp, sqrt

import numpy as np
from numpy.typing import NDArray

from steelyard.models.compiled import compiled
from steelyard.observations import FloatArray, IntArray


@compiled
def quality(mode: FloatArray, variance: FloatArray, noise: float, item: int, other: int, floor: float) -> float:
    """Return the match quality of two items (Eq. 23), no less than `floor`; `noise` is 2γ²."""
    c2 = noise + variance[item] + variance[other]
    gap = mode[item] - mode[other]
    return max(sqrt(noise / c2) * exp(-gap * gap / (2.0 * c2)), floor)


@compiled
def draw_round(
    mode: FloatArray,
    variance: FloatArray,
    is_head: NDArray[np.bool_],
    heads: IntArray,
    gamma: float,
    floor: float,
    patience: int,
    rng: np.random.Generator,
    tasks: IntArray,
) -> None:
    """Fill each row of `tasks` with a head and partners drawn without replacement by match quality.

    Partners are proposed uniformly and taken with q / q_max, where q_max is what the head would have with its
    twin in mode among the surest items. After `patience` proposals the rest are drawn from all the weights.
    """
    n, size = len(mode), tasks.shape[1]
    noise = 2.0 * gamma * gamma
    least = variance.min()
    weights = np.empty(0)
    for row in range(len(heads)):
        head = heads[row]
        tasks[row, 0] = head
        drawn = 1
        most = max(sqrt(noise / (noise + variance[head] + least)), floor)
        for _ in range(patience):
            if drawn == size:
                break
            other = int(rng.random() * n)
            luck = rng.random()
            if is_head[other] or luck * most >= quality(mode, variance, noise, head, other, floor):
                continue
            if not _stands_in(tasks[row, 1:drawn], other):
                tasks[row, drawn] = other
                drawn += 1
        if drawn < size:
            if len(weights) == 0:
                weights = np.empty(n)
            for other in range(n):
                weights[other] = 0.0 if is_head[other] else quality(mode, variance, noise, head, other, floor)
            _fill_from_all(weights, rng, tasks[row], drawn)


@compiled
def _stands_in(partners: IntArray, other: int) -> bool:
    found = False
    for partner in partners:
        found = found or partner == other
    return found


@compiled
def _fill_from_all(weights: FloatArray, rng: np.random.Generator, task: IntArray, drawn: int) -> None:
    """Draw the rest of a task one after the other in proportion to the weights still there."""
    for place in range(1, drawn):
        weights[task[place]] = 0.0
    for place in range(drawn, len(task)):
        left = rng.random() * weights.sum()
        for other in range(len(weights)):
            if weights[other] > 0.0:
                # The last one stands where rounding leaves a little over.
                task[place] = other
                left -= weights[other]
                if left < 0.0:
                    break
        weights[task[place]] = 0.0
