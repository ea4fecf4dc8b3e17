"""Simulated annotators of mixed quality who compare pairs: individual noise levels, and some answer at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.observations import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Mixture:
    """How annotators differ. The items' true values have a standard deviation of 1.

    `noise` is the median sd of one impression of one item, `spread` the sd of its logarithm over people; `careless`
    is the share who answer at random. Each gives `answers` answers, `at_once` people are at work at a time.
    """

    noise: float = 0.35
    spread: float = 0.6
    careless: float = 0.15
    answers: int = 50
    at_once: int = 10


class People:
    """A stream of annotators: each is replaced by a new one after a given number of answers.

    The same seed brings the same people in the same order, whatever they are asked.
    """

    def __init__(self, truth: FloatArray, mixture: Mixture, seed: int) -> None:
        self.truth = truth
        self.mixture = mixture
        self._quality = np.random.default_rng([seed, 1])
        self._rng = np.random.default_rng([seed, 2])
        self._noise: list[float] = []
        self._at_work = [(self._arrive(), mixture.answers) for _ in range(mixture.at_once)]
        """Who is at work, and how many answers each has left."""

    @property
    def count(self) -> int:
        """How many have come so far."""
        return len(self._noise)

    def next(self, count: int) -> IntArray:
        """Return the annotators of the next answers."""
        who = np.empty(count, np.int32)
        for number in range(count):
            place = int(self._rng.integers(len(self._at_work)))
            person, left = self._at_work[place]
            who[number] = person
            self._at_work[place] = (person, left - 1) if left > 1 else (self._arrive(), self.mixture.answers)
        return who

    def compare(self, left: NDArray[np.integer], right: NDArray[np.integer], who: IntArray) -> NDArray[np.int8]:
        """Return 1 where the left item of a pair is preferred, -1 where the right one is."""
        noise = np.array(self._noise)[who]
        impression = self._rng.normal(size=(2, len(who))) * np.where(np.isinf(noise), 0, noise)
        better = self.truth[left] - self.truth[right] + impression[0] - impression[1]
        coin = self._rng.random(len(who)) < 0.5
        return np.where(np.where(np.isinf(noise), coin, better > 0), 1, -1).astype(np.int8)

    def _arrive(self) -> int:
        careless = self._quality.random() < self.mixture.careless
        noise = self.mixture.noise * float(np.exp(self.mixture.spread * self._quality.normal()))
        self._noise.append(np.inf if careless else noise)
        return len(self._noise) - 1
