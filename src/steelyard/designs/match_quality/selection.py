"""SampleByMatchQuality (Algorithm 1 of Sakaguchi & Van Durme 2018), without its scan of all pairs.

Items of highest variance are heads; each gets partners drawn without replacement, with probability proportional to
match quality. Proposing partners uniformly and accepting them with q / q_max draws from exactly that distribution, and
costs O(1 / acceptance rate) per partner instead of O(N).
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
"""No match quality counts as less: skills that are far apart would otherwise underflow to 0 and get no partner."""


class Snapshot(NamedTuple):
    """Modes and variances at one point in time."""

    mode: FloatArray
    variance: FloatArray


def head_count(n: int, task_size: int, tasks: int) -> int:
    """Return the number of heads in a round of `tasks` tasks: at most k = N/n, at least 1."""
    return min(tasks, max(n // task_size, 1))


def top_heads(variance: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Return the items of highest variance in falling order; ties are broken at random."""
    n = len(variance)
    threshold = np.partition(variance, n - count)[n - count]
    above, level = np.flatnonzero(variance > threshold), np.flatnonzero(variance == threshold)
    at_threshold = rng.choice(level, size=count - len(above), replace=False)
    heads = rng.permutation(np.concatenate([above, at_threshold]))
    return heads[np.argsort(-variance[heads], kind="stable")].astype(np.int32)


def top_heads_by_context(
    variance: FloatArray, context: IntArray, task_size: int, tasks: int, rng: np.random.Generator
) -> IntArray:
    """Return the heads of a round within contexts: of each, the k = n/size items of highest variance.

    At most `tasks` heads are returned, those of highest variance; ties are broken at random.
    """
    order = np.lexsort((rng.random(len(variance)), -variance))
    by_context = order[np.argsort(context[order], kind="stable")]
    sizes = np.bincount(context)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    place = np.arange(len(order)) - first[context[by_context]]
    is_head = np.zeros(len(order), np.bool_)
    is_head[by_context[place < sizes[context[by_context]] // task_size]] = True
    return order[is_head[order]][:tasks].astype(np.int32)


def sample_round(
    state: Located, task_size: int, gamma: float, rng: np.random.Generator, tasks: int | None = None
) -> IntArray:
    """Draw the tasks of one whole round at once.

    Parameters
    ----------
    state : BetaState or SkillState
        Posterior of every item before the round.
    task_size : int
        n, the number of items per task.
    gamma : float
        The skill chain γ.
    rng : Generator
        Breaks ties of variance and draws partners.
    tasks : int, optional
        Number of tasks in the round; N/n by default. With more, heads are used more than once.

    Returns
    -------
    tasks : array of int32, shape (tasks, task_size)
        The head of each task, then its partners.
    """
    from steelyard.designs.match_quality.kernels import RoundItems, draw_round

    mode, variance = np.ascontiguousarray(state.mode), np.ascontiguousarray(state.variance)
    n = len(mode)
    tasks = max(n // task_size, 1) if tasks is None else tasks
    heads = top_heads(variance, head_count(n, task_size, tasks), rng)
    is_head = np.zeros(n, np.bool_)
    is_head[heads] = True
    items = RoundItems(mode, variance, is_head, 2.0 * gamma * gamma, FLOOR)
    result = np.empty((tasks, task_size), np.int32)
    draw_round(items, np.resize(heads, tasks), max_proposals(n, task_size), rng, result)
    return result


def max_proposals(n: int, count: int) -> int:
    """Return the number of proposals after which a scan of all items is cheaper."""
    return max(64 * count, n // 4)


def qualities(state: Located, head: int, others: NDArray[np.integer], gamma: float) -> FloatArray:
    """Return the weights with which other items are drawn as partners of a head."""
    return np.maximum(match_quality(state, head, others, gamma), FLOOR)


def draw_in_proportion(weights: FloatArray, count: int, rng: np.random.Generator) -> list[int]:
    """Draw places one by one without replacement, each in proportion to the remaining weights."""
    remaining = weights.copy()
    places: list[int] = []
    for _ in range(count):
        cumulative = np.cumsum(remaining)
        total = cumulative[-1]
        # Rounding must not give the total itself, which lies past the last weight that is not 0.
        mark = min(rng.random() * total, np.nextafter(total, 0))
        place = int(np.searchsorted(cumulative, mark, side="right"))
        remaining[place] = 0
        places.append(place)
    return places


class PartnerPool(NamedTuple):
    """The items that partners are drawn from: the first `n` items of `state` that `is_allowed` accepts.

    `least_variance` is a lower bound on all variances.
    """

    state: Located
    n: int
    least_variance: float
    gamma: float
    is_allowed: Callable[[NDArray[np.integer]], NDArray[np.bool_]]


def draw_by_rejection(pool: PartnerPool, head: int, count: int, rng: np.random.Generator) -> list[int]:
    """Draw partners of a head without replacement by match quality, without a scan of all items.

    The pool must have at least `count` allowed items. If proposals are rarely accepted, the remaining partners are
    drawn from the weights of all items, which is the same distribution.
    """
    state, n, gamma = pool.state, pool.n, pool.gamma
    variance = float(of_items(state, head).variance)
    max_quality = max(float(np.sqrt(2 * gamma**2 / (2 * gamma**2 + variance + pool.least_variance))), FLOOR)
    partners: list[int] = []
    proposals, block = 0, 16 * count
    while proposals < max_proposals(n, count):
        others = rng.integers(n, size=block)
        is_accepted = rng.random(block) * max_quality < qualities(state, head, others, gamma)
        is_accepted &= pool.is_allowed(others)
        for other in others[is_accepted].tolist():
            if other not in partners:
                partners.append(other)
                if len(partners) == count:
                    return partners
        proposals += block
        block = min(2 * block, 4096)
    everyone = np.arange(n)
    is_available = pool.is_allowed(everyone)
    is_available[partners] = False
    candidates = everyone[is_available]
    places = draw_in_proportion(qualities(state, head, candidates, gamma), count - len(partners), rng)
    return [*partners, *candidates[places].tolist()]


def set_probability(weights: FloatArray, other_weight: FloatArray) -> FloatArray:
    """Return the probability that successive draws without replacement give a set, in any order.

    If every candidate arrives after an exponential time with its weight as the rate, the order of arrivals has the
    distribution of the draws. The set arrives first with probability ∫ Π (1 − exp(−aⱼ s)) e⁻ˢ ds over s > 0, where aⱼ
    is the weight of a member divided by `other_weight`. With s = eˣ the trapezoidal rule is exact to rounding, because
    the integrand decays doubly exponentially.

    Parameters
    ----------
    weights : array, shape (sets, members)
        Weights of the members of each set.
    other_weight : array, shape (sets,)
        Total weight of all other candidates; 0 where there are none.
    """
    s, node_weight = _nodes(weights.shape[1])
    is_alone = other_weight <= 0
    a = weights / np.where(is_alone, 1, other_weight)[:, None]
    arrival = -np.expm1(-a[:, :, None] * s)
    return np.where(is_alone, 1.0, np.minimum(arrival.prod(axis=1) @ node_weight, 1.0))


@cache
def _nodes(members: int) -> tuple[FloatArray, FloatArray]:
    """Return the nodes and weights of the quadrature rule for sets of `members` items."""
    step = 0.2
    # Below e^-42 the integrand is negligible; above the upper limit e^-s dominates s to the power of the members.
    s = np.exp(np.arange(-42, np.log(50 + 10 * members), step))
    return s, step * s * np.exp(-s)
