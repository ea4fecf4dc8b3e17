"""What the answers so far say of every unit: the state of an online model, moved by one answer at a time.

Each step reads and writes only the units of its task, however many there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard.models.comparisons.match_quality import Located
from steelyard.observations import UNKNOWN, Comparison, FloatArray, IntArray, Observation, Rating
from steelyard.protocols.base import Protocol


class Beliefs(ABC):
    """A model's state for a growing number of units; `first` and `second` are its two parameters."""

    accepts: ClassVar[str]
    """The kind of observations it learns from."""

    start: ClassVar[tuple[float, float]]
    """The parameters of a unit of which nothing is known."""

    def __init__(self, protocol: Protocol, gamma: float, epsilon: float) -> None:
        self.protocol = protocol
        self.gamma = gamma
        self.epsilon = epsilon
        self.count = 0
        self.first: FloatArray = np.empty(0)
        self.second: FloatArray = np.empty(0)
        self.least = np.inf
        """No variance is, or was, below it."""

    @property
    def state(self) -> Located:
        """The state of all units, as the model has it; it changes with the next answer."""
        return self._state(self.first[: self.count], self.second[: self.count])

    @abstractmethod
    def _state(self, first: FloatArray, second: FloatArray) -> Located:
        """Return the model's state with these parameters."""

    def grow(self, count: int) -> None:
        """Have so many units, the new ones at the start."""
        if count > len(self.first):
            room = max(count, 2 * len(self.first))
            for name, value in zip(("first", "second"), self.start, strict=True):
                larger = np.full(room, value)
                larger[: self.count] = getattr(self, name)[: self.count]
                setattr(self, name, larger)
        self._moved(np.arange(self.count, count))
        self.count = count

    @abstractmethod
    def learn(self, judgment_id: str, unit_of: Mapping[str, int], said: Sequence[Observation]) -> None:
        """Take an answer in; `unit_of` has the units of its items."""

    @abstractmethod
    def unlearn(self, judgment_id: str, unit_of: Mapping[str, int], said: Sequence[Observation]) -> None:
        """Take an answer back, as far as the model can."""

    def variances(self, units: NDArray[np.integer]) -> FloatArray:
        """Return the variances of some units."""
        return self._state(self.first[units], self.second[units]).variance

    def _moved(self, units: NDArray[np.integer]) -> None:
        self.least = min(self.least, float(self.variances(units).min(initial=np.inf)))


class RatedBeliefs(Beliefs):
    """EASL (Eq. 24–25): α += s, β += 1 − s. Ratings add up, so that they can be taken back.

    An item's ratings by several criteria are one, their mean on [0, 1]. Ratings of another stage are not
    learnt: their scale is not known here.
    """

    accepts: ClassVar[str] = "ratings"
    start: ClassVar[tuple[float, float]] = (1.0, 1.0)

    def __init__(self, protocol: Protocol, gamma: float, epsilon: float) -> None:
        from steelyard.models.ratings.easl import BetaState

        super().__init__(protocol, gamma, epsilon)
        self._scales = protocol.scales()
        self._ratings: defaultdict[int, int] = defaultdict(int)
        self._state_type = BetaState

    def _state(self, first: FloatArray, second: FloatArray) -> Located:
        return self._state_type(first, second)

    def learn(self, judgment_id: str, unit_of: Mapping[str, int], said: Sequence[Observation]) -> None:
        """Add each item's rating to its unit."""
        self._add(unit_of, said, 1)

    def unlearn(self, judgment_id: str, unit_of: Mapping[str, int], said: Sequence[Observation]) -> None:
        """Take each item's rating back."""
        self._add(unit_of, said, -1)

    def _add(self, unit_of: Mapping[str, int], said: Sequence[Observation], by: int) -> None:
        values: defaultdict[str, list[float]] = defaultdict(list)
        for rating in said:
            if isinstance(rating, Rating) and unit_of.get(rating.item, UNKNOWN) != UNKNOWN:
                low, high = self._scales[rating.criterion]
                values[rating.item].append((rating.value - low) / (high - low))
        for item, ratings in values.items():
            unit, value = unit_of[item], sum(ratings) / len(ratings)
            self.first[unit] += by * value
            self.second[unit] += by * (1 - value)
            self._ratings[unit] += by
            if self._ratings[unit] == 0:
                # What rounding leaves of ratings taken back would be all that the mode rests on.
                self.first[unit], self.second[unit] = self.start
        self._moved(np.array([unit_of[item] for item in values], np.int32))


class ComparedBeliefs(Beliefs):
    """A model moved by comparisons, those of one answer as a mini-batch (footnote 13).

    What an answer changed depends on the state it met, so it cannot be taken back: the first version of an
    answer stays, also when it is revised or its annotator excluded.
    """

    accepts: ClassVar[str] = "comparisons"

    def __init__(self, protocol: Protocol, gamma: float, epsilon: float) -> None:
        super().__init__(protocol, gamma, epsilon)
        self._kept: set[str] = set()

    @abstractmethod
    def _update(self, first: FloatArray, second: FloatArray, pairs: IntArray) -> None:
        """Update some units' parameters in place; `pairs` has left, right and outcome in its rows."""

    def learn(self, judgment_id: str, unit_of: Mapping[str, int], said: Sequence[Observation]) -> None:
        """Update the units compared."""
        if judgment_id in self._kept:
            self._kept.remove(judgment_id)
            return
        units = sorted({unit for unit in unit_of.values() if unit != UNKNOWN})
        place = {unit: number for number, unit in enumerate(units)}
        pairs = [
            (place[left], place[right], pair.outcome)
            for pair in said
            if isinstance(pair, Comparison)
            and (left := unit_of.get(pair.left, UNKNOWN)) != (right := unit_of.get(pair.right, UNKNOWN))
            and UNKNOWN not in (left, right)
        ]
        if not pairs:
            return
        touched = np.array(units, np.int32)
        first, second = self.first[touched], self.second[touched]
        self._update(first, second, np.array(pairs, np.int32).T)
        self.first[touched], self.second[touched] = first, second
        self._moved(touched)

    def unlearn(self, judgment_id: str, unit_of: Mapping[str, int], said: Sequence[Observation]) -> None:
        """Keep the answer, and do not take it in again when it comes back."""
        self._kept.add(judgment_id)


class BoundedBeliefs(ComparedBeliefs):
    """Bounded ranking (Eq. 12–22)."""

    start: ClassVar[tuple[float, float]] = (1.0, 1.0)

    def __init__(self, protocol: Protocol, gamma: float, epsilon: float) -> None:
        from steelyard.models.comparisons.online_kernels import bounded_pass
        from steelyard.models.ratings.easl import BetaState

        super().__init__(protocol, gamma, epsilon)
        self._state_type = BetaState
        self._pass = bounded_pass

    def _state(self, first: FloatArray, second: FloatArray) -> Located:
        return self._state_type(first, second)

    def _update(self, first: FloatArray, second: FloatArray, pairs: IntArray) -> None:
        left, right, outcome = pairs
        self._pass(
            first,
            second,
            np.zeros(len(first), np.bool_),
            left,
            right,
            outcome.astype(np.int8),
            np.array([0, len(left)]),
            np.zeros(len(left), np.int32),
            np.ones(1, np.uint8),
            self.gamma,
            self.epsilon,
        )


class SkillBeliefs(ComparedBeliefs):
    """TrueSkill (Eq. 3–10), from a mean of 0 and a variance of 1."""

    start: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __init__(self, protocol: Protocol, gamma: float, epsilon: float) -> None:
        from steelyard.models.comparisons.online_kernels import trueskill_pass
        from steelyard.models.comparisons.trueskill import SkillState

        super().__init__(protocol, gamma, epsilon)
        self._state_type = SkillState
        self._pass = trueskill_pass

    def _state(self, first: FloatArray, second: FloatArray) -> Located:
        return self._state_type(first, second)

    def _update(self, first: FloatArray, second: FloatArray, pairs: IntArray) -> None:
        left, right, outcome = pairs
        self._pass(
            first, second, left, right, outcome.astype(np.int8), np.array([0, len(left)]), self.gamma, self.epsilon
        )


BELIEFS: dict[str, type[Beliefs]] = {
    "easl": RatedBeliefs,
    "bounded_ranking": BoundedBeliefs,
    "trueskill": SkillBeliefs,
}
"""How each model learns, by its name."""
