"""SampleByMatchQuality (Algorithm 1 of Sakaguchi & Van Durme 2018), without its scan of all pairs.

Items of highest variance are heads; each gets partners drawn without replacement, with probability
proportional to match quality. Proposing partners uniformly and taking them with q / q_max draws from exactly
that distribution, and costs O(1 / acceptance) a partner instead of O(N).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.models.comparisons.match_quality import Located, match_quality, of_items
from steelyard.observations import FloatArray, IntArray

FLOOR = 1e-300
"""No match quality counts as less: skills far apart would have none at all, and nobody to meet."""


class Snapshot(NamedTuple):
    """Modes and variances as they were at one time."""

    mode: FloatArray
    variance: FloatArray


def head_count(n: int, task_size: int, tasks: int) -> int:
    """Return how many heads a round of so many tasks has: k = N/n at most, at least 1."""
    return min(tasks, max(n // task_size, 1))


def top_heads(variance: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Return the items of highest variance, highest first, equals in random order and chosen at random."""
    n = len(variance)
    threshold = np.partition(variance, n - count)[n - count]
    above, level = np.flatnonzero(variance > threshold), np.flatnonzero(variance == threshold)
    drawn = rng.choice(level, size=count - len(above), replace=False)
    heads = rng.permutation(np.concatenate([above, drawn]))
    return heads[np.argsort(-variance[heads], kind="stable")].astype(np.int32)


def sample_round(
    state: Located, task_size: int, gamma: float, rng: np.random.Generator, tasks: int | None = None
) -> IntArray:
    """Draw the tasks of one whole round at once.

    Parameters
    ----------
    state : BetaState or SkillState
        What is known of every item before the round.
    task_size : int
        n, the items a task shows.
    gamma : float
        The skill chain γ.
    rng : Generator
        Breaks ties of variance, and draws.
    tasks : int, optional
        Tasks in the round; N/n if not given. More than that take the heads more than once.

    Returns
    -------
    tasks : array of int32, shape (tasks, task_size)
        The head of each task, then its partners.
    """
    from steelyard.designs.match_quality_kernels import draw_round

    mode, variance = np.ascontiguousarray(state.mode), np.ascontiguousarray(state.variance)
    n = len(mode)
    tasks = max(n // task_size, 1) if tasks is None else tasks
    heads = top_heads(variance, head_count(n, task_size, tasks), rng)
    is_head = np.zeros(n, np.bool_)
    is_head[heads] = True
    drawn = np.empty((tasks, task_size), np.int32)
    entries = np.resize(heads, tasks)
    draw_round(mode, variance, is_head, entries, gamma, FLOOR, patience(n, task_size), rng, drawn)
    return drawn


def patience(n: int, count: int) -> int:
    """Return after how many proposals looking at every item is the cheaper way."""
    return max(64 * count, n // 4)


def qualities(state: Located, head: int, others: NDArray[np.integer], gamma: float) -> FloatArray:
    """Return the weights with which others are drawn to a head."""
    return np.maximum(match_quality(state, head, others, gamma), FLOOR)


def draw_in_proportion(weights: FloatArray, count: int, rng: np.random.Generator) -> list[int]:
    """Draw places one after the other without replacement, each in proportion to the weights still there."""
    left = weights.copy()
    drawn: list[int] = []
    for _ in range(count):
        cumulative = np.cumsum(left)
        total = cumulative[-1]
        # Rounding must not take the product to the total itself, past the last weight that is not 0.
        mark = min(rng.random() * total, np.nextafter(total, 0))
        place = int(np.searchsorted(cumulative, mark, side="right"))
        left[place] = 0
        drawn.append(place)
    return drawn


def draw_by_rejection(
    state: Located,
    head: int,
    count: int,
    n: int,
    least: float,
    gamma: float,
    allowed: Callable[[NDArray[np.integer]], NDArray[np.bool_]],
    rng: np.random.Generator,
) -> list[int]:
    """Draw partners of a head among `n` items without replacement by match quality; look at few of them.

    `least` is a variance that no item is below; `allowed` says which items may be drawn, and must leave
    `count` of them. Where proposals are hardly ever taken, the rest are drawn from the weights of all items,
    which is the same distribution.
    """
    variance = float(of_items(state, head).variance)
    most = max(float(np.sqrt(2 * gamma**2 / (2 * gamma**2 + variance + least))), FLOOR)
    chosen: list[int] = []
    proposed, block = 0, 16 * count
    while proposed < patience(n, count):
        others = rng.integers(n, size=block)
        taken = (rng.random(block) * most < qualities(state, head, others, gamma)) & allowed(others)
        for other in others[taken].tolist():
            if other not in chosen:
                chosen.append(other)
                if len(chosen) == count:
                    return chosen
        proposed += block
        block = min(2 * block, 4096)
    everyone = np.arange(n)
    there = allowed(everyone)
    there[chosen] = False
    candidates = everyone[there]
    rest = draw_in_proportion(qualities(state, head, candidates, gamma), count - len(chosen), rng)
    return [*chosen, *candidates[rest].tolist()]


def set_probability(drawn: FloatArray, rest: FloatArray) -> FloatArray:
    """Return the probability that successive draws without replacement come up with a set, in any order.

    If every candidate waits an exponential time at the rate of its weight, the order of arrivals is the order
    of the draws. The set comes first with probability ∫ Π (1 − exp(−aⱼ s)) e⁻ˢ ds over s > 0, where aⱼ is the
    weight of a member divided by `rest`, that of all others together. With s = eˣ the trapezoidal rule is
    exact to rounding: the integrand falls off doubly exponentially.

    Parameters
    ----------
    drawn : array, shape (sets, members)
        Weights of the sets' members.
    rest : array, shape (sets,)
        Weights of all other candidates together; 0 where there are none.
    """
    s, weight = _nodes(drawn.shape[1])
    alone = rest <= 0
    a = drawn / np.where(alone, 1, rest)[:, None]
    arrived = -np.expm1(-a[:, :, None] * s)
    return np.where(alone, 1.0, np.minimum(arrived.prod(axis=1) @ weight, 1.0))


@cache
def _nodes(members: int) -> tuple[FloatArray, FloatArray]:
    """Return the nodes and weights of the rule for sets of so many members."""
    step = 0.2
    # Below e^-42 nothing is lost that shows; above, e^-s has the better of s to the power of the members.
    s = np.exp(np.arange(-42, np.log(50 + 10 * members), step))
    return s, step * s * np.exp(-s)
