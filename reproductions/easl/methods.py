"""Direct assessment, ranking aggregation and EASL, asked round by round (§5 of Sakaguchi & Van Durme, 2018).

In every round the items get as many annotations as there are items. Direct assessment shows each of them alone, once.
The others show five at a time: ranking aggregation and EASL as SampleByMatchQuality chooses them (Algorithm 1, 30 tasks
for 150 items), random fives at random, each item once. That last one is not in the paper: it has all of a context's
effects and nothing of the choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, cast

import numpy as np

from reproductions.simulation import ask
from steelyard.designs.match_quality.selection import sample_round
from steelyard.models.comparisons.bounded_ranking import BoundedRanking
from steelyard.models.comparisons.online import as_comparisons
from steelyard.models.ratings.easl import EASL, BetaState
from steelyard.observations import Comparisons, FloatArray, Index, IntArray, Rankings, Ratings
from steelyard.protocols import Direct, ScoredRanking
from steelyard.simulate import RecordedAnnotators, SimulatedAnnotators

PAPER = "Sakaguchi & Van Durme, 2018"

GAMMA = 0.1
"""The skill chain, and the tie rate ε (§5)."""

ALONE = Direct(scale=(0, 100))
TOGETHER = ScoredRanking(size=5, scale=(0, 100))


class Method(StrEnum):
    """A way to collect scores."""

    DA = "direct assessment"
    RA = "ranking aggregation"
    EASL = "EASL"
    FIVES = "random fives"


class Panel(Protocol):
    """Annotators who rate items, one or five at a time."""

    @property
    def index(self) -> Index:
        """The items."""

    def rate(self, tasks: IntArray) -> FloatArray:
        """Return a value on [0, 1] for each item of each task (a row of codes)."""


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedPanel:
    """Simulated annotators; each task goes to a random one."""

    people: SimulatedAnnotators
    rng: np.random.Generator

    @property
    def index(self) -> Index:
        """The items."""
        return self.people.items

    def rate(self, tasks: IntArray) -> FloatArray:
        """Have each task answered by somebody."""
        who = self.rng.integers(len(self.people.crowd), size=len(tasks)).astype(np.int32)
        protocol = ALONE if tasks.shape[1] == 1 else TOGETHER
        return cast("Ratings", ask(self.people, protocol, tasks, who)).unit_value.reshape(tasks.shape)


@dataclass(frozen=True, slots=True, eq=False)
class RecordedPanel:
    """Recorded answers to some items."""

    people: RecordedAnnotators
    index: Index

    def rate(self, tasks: IntArray) -> FloatArray:
        """Draw an answer to each task."""
        protocol = ALONE if tasks.shape[1] == 1 else TOGETHER
        rated = np.empty(tasks.shape)
        for row, task in enumerate(tasks.tolist()):
            items = [self.index[code] for code in task]
            answer: dict[str, Any] = self.people.answer(self.people.names[0], protocol, items)
            rated[row] = [answer[item] / 100 for item in items]
        return rated


def rounds(method: Method, panel: Panel, count: int, rng: np.random.Generator) -> Iterator[BetaState]:
    """Run several rounds and yield the posterior of every item after each.

    The first round of EASL and of ranking aggregation is a random partition, as in the authors' implementation.
    """
    n = len(panel.index)
    easl, ranking = EASL(), BoundedRanking(gamma=GAMMA, epsilon=GAMMA)
    state = easl.start(n)
    for number in range(count):
        tasks = _tasks(method, state, n, rng, is_first=number == 0)
        value = panel.rate(tasks)
        if method == Method.RA:
            state = ranking.update(state, pairs(tasks, value, panel.index))
        else:
            # From α = β = 1 the mode is the mean of the ratings, as direct assessment has it.
            state = easl.update(state, tasks.ravel(), value.ravel())
        yield state


def _tasks(method: Method, state: BetaState, n: int, rng: np.random.Generator, *, is_first: bool) -> IntArray:
    if method == Method.DA:
        return np.arange(n, dtype=np.int32)[:, None]
    if method == Method.FIVES or is_first:
        whole = n - n % TOGETHER.size
        return rng.permutation(n)[:whole].astype(np.int32).reshape(-1, TOGETHER.size)
    return sample_round(state, TOGETHER.size, GAMMA, rng)


def pairs(tasks: IntArray, value: FloatArray, index: Index) -> Comparisons:
    """Read the pairs off the values given in each task; equal ones are ties."""
    order = np.argsort(-value, axis=1, kind="stable")
    falling = np.take_along_axis(value, order, axis=1)
    lower = np.cumsum(falling[:, 1:] < falling[:, :-1], axis=1)
    rank = np.concatenate([np.ones((len(tasks), 1), np.int64), 1 + lower], axis=1)
    return as_comparisons(
        Rankings(
            items=index,
            start=np.arange(0, tasks.size + 1, tasks.shape[1], dtype=np.int64),
            item=np.take_along_axis(tasks, order, axis=1).ravel(),
            rank=rank.ravel().astype(np.int32),
        )
    )
