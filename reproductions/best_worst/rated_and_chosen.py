"""A simulated crowd like the one of Kiritchenko & Mohammad (2017), which rates terms and chooses among four.

Three figures of the paper fix what its annotators are like, on a scale from -4 to 4: 37 % of repeated ratings
differ, by 1.27 points where they do (§3.2), and the ratings of a term have a standard deviation of 0.81 (§4). Noise
alone would move an answer to the next point and hardly ever further; so that those who differ are 1.27 apart, some
answers must be given without looking. What is left of the 0.81 is people's bias, which repeats do not show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from reproductions.simulation import ask, in_turn
from steelyard.designs.balanced_tuples import tuple_count
from steelyard.designs.balancing import plan_tuples
from steelyard.observations import Choices, FloatArray, Ratings
from steelyard.protocols import BestWorst, Likert
from steelyard.simulate import Population, SimulatedAnnotators, make_crowd

RATING = Likert(scale=(-4, 4))
CHOOSING = BestWorst(size=4)

PAPER = "Kiritchenko & Mohammad, 2017"

PEOPLE = 200
LIKE_THE_PAPER = Population(bias=0.063, stretch=0.1, noise=0.039, noise_cv=0.0, lapse=0.031)
"""Annotators with the paper's inconsistency: noise of 0.31 and bias of 0.50 of the 8 points, 3.1 % of lapses."""

_POLES, _WITHIN = (0.28, 0.72), 0.1
"""Positive and negative terms, as the paper chose them: few lie in the middle."""


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Terms with known true values, and simulated annotators."""

    value: FloatArray
    people: SimulatedAnnotators
    rng: np.random.Generator

    @classmethod
    def drawn(cls, count: int, rng: np.random.Generator, population: Population = LIKE_THE_PAPER) -> Terms:
        """Draw `count` terms, half of them positive, and the annotators."""
        value = np.clip(rng.choice(_POLES, count) + _WITHIN * rng.standard_normal(count), 0, 1)
        names = [f"term-{number:04d}" for number in range(1, count + 1)]
        crowd = make_crowd(PEOPLE, rng, population)
        return cls(value, SimulatedAnnotators(crowd, dict(zip(names, value.tolist(), strict=True)), rng), rng)

    def __len__(self) -> int:
        return len(self.value)

    def rated(self, times: int) -> Ratings:
        """Simulate the ratings of every term by several annotators; ratings of a term are consecutive."""
        tasks = np.repeat(np.arange(len(self), dtype=np.int32), times)[:, None]
        return cast("Ratings", ask(self.people, RATING, tasks, in_turn(len(self), times, PEOPLE, self.rng)))

    def rated_twice(self, repeats: int) -> Ratings:
        """Simulate repeated ratings of a term by the same annotator."""
        tasks = np.repeat(self.rng.integers(len(self), size=repeats), 2).astype(np.int32)[:, None]
        who = np.repeat(self.rng.integers(PEOPLE, size=repeats), 2).astype(np.int32)
        return cast("Ratings", ask(self.people, RATING, tasks, who))

    def chosen(self, factor: float, times: int) -> Choices:
        """Simulate choices of several annotators for each of factor·N balanced 4-tuples."""
        tuples = plan_tuples(len(self), tuple_count(factor, len(self)), CHOOSING.size, [], self.rng)
        who = in_turn(len(tuples), times, PEOPLE, self.rng)
        return cast("Choices", ask(self.people, CHOOSING, np.repeat(tuples, times, axis=0), who))
