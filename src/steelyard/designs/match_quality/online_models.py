"""Online models for the match-quality design: the posterior of every target, updated by one answer at a time.

Each update reads and writes only the targets of its task, however many there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.models.comparisons.match_quality import Located
from steelyard.observations import UNKNOWN, Comparison, FloatArray, IntArray, Observation, Rating
from steelyard.protocols.base import Protocol


class OnlineModel(ABC):
    """Posterior of a growing number of targets; `first` and `second` are the two parameters of each target."""

    accepts: ClassVar[str]
    """The kind of observations it learns from."""

    start: ClassVar[tuple[float, float]]
    """The parameters of a target before its first answer."""

    def __init__(self, protocol: Protocol, gamma: float, epsilon: float) -> None:
        self.protocol = protocol
        self.gamma = gamma
        self.epsilon = epsilon
        self.count = 0
        self.first: FloatArray = np.empty(0)
        self.second: FloatArray = np.empty(0)
        self.least_variance = np.inf
        """A lower bound on all variances so far."""

    @property
    def state(self) -> Located:
        """Posterior of all targets; it changes with the next answer."""
        return self._state(self.first[: self.count], self.second[: self.count])

    @abstractmethod
    def _state(self, first: FloatArray, second: FloatArray) -> Located:
        """Return the posterior with these parameters."""

    def grow(self, count: int) -> None:
        """Increase the number of targets; new ones have the parameters `start`."""
        if count > len(self.first):
            size = max(count, 2 * len(self.first))
            for name, value in zip(("first", "second"), self.start, strict=True):
                larger = np.full(size, value)
                larger[: self.count] = getattr(self, name)[: self.count]
                setattr(self, name, larger)
        self._update_bound(np.arange(self.count, count))
        self.count = count

    @abstractmethod
    def learn(self, judgment_id: str, target_of: Mapping[str, int], observations: Sequence[Observation]) -> None:
        """Learn from the observations of an answer; `target_of` maps its items to targets."""

    @abstractmethod
    def unlearn(self, judgment_id: str, target_of: Mapping[str, int], observations: Sequence[Observation]) -> None:
        """Unlearn an answer, as far as the model can."""

    def variances(self, targets: NDArray[np.integer]) -> FloatArray:
        """Return the variances of some targets."""
        return self._state(self.first[targets], self.second[targets]).variance

    def _update_bound(self, targets: NDArray[np.integer]) -> None:
        self.least_variance = min(self.least_variance, float(self.variances(targets).min(initial=np.inf)))


class AskedBeta(NamedTuple):
    """Beta distributions, and how often each target could not be judged, which lowers the variance.

    The mode is that of the ratings alone. The variance is that of the authors' released code with its option for
    answers "not applicable": αβ / ((α + β + m)² (α + β + m + 1)) for m such answers, so that a target that nobody can
    judge is not asked again in every round.
    """

    alpha: FloatArray
    beta: FloatArray
    unjudged: FloatArray

    @property
    def mode(self) -> FloatArray:
        """The most likely value; 0.5 while nothing is known."""
        from steelyard.models.ratings.easl import BetaState

        return BetaState(self.alpha, self.beta).mode

    @property
    def variance(self) -> FloatArray:
        """The variance by which targets are chosen."""
        total = self.alpha + self.beta + self.unjudged
        return self.alpha * self.beta / (total**2 * (total + 1))


class OnlineEasl(OnlineModel):
    """EASL (Eq. 24–25): α += s, β += 1 − s. Ratings add up, so they can be unlearned.

    An item's ratings by several criteria count as one, their mean on [0, 1]. An item of a task without a rating could
    not be judged: it is left out of the update and counted. Ratings of other stages are ignored, because their scale is
    not available here.
    """

    accepts: ClassVar[str] = "ratings"
    start: ClassVar[tuple[float, float]] = (1.0, 1.0)

    def __init__(self, protocol: Protocol, gamma: float, epsilon: float) -> None:
        super().__init__(protocol, gamma, epsilon)
        self._scales = protocol.scales()
        self._ratings: defaultdict[int, int] = defaultdict(int)
        self.unjudged: FloatArray = np.empty(0)
        """How often each target could not be judged."""

    @property
    def state(self) -> Located:
        """Posterior of all targets; it changes with the next answer."""
        return AskedBeta(self.first[: self.count], self.second[: self.count], self.unjudged[: self.count])

    def grow(self, count: int) -> None:
        """Increase the number of targets."""
        if count > len(self.unjudged):
            more = max(count, 2 * len(self.unjudged)) - len(self.unjudged)
            self.unjudged = np.concatenate([self.unjudged, np.zeros(more)])
        super().grow(count)

    def variances(self, targets: NDArray[np.integer]) -> FloatArray:
        """Return the variances of some targets."""
        return AskedBeta(self.first[targets], self.second[targets], self.unjudged[targets]).variance

    def _state(self, first: FloatArray, second: FloatArray) -> Located:
        return AskedBeta(first, second, np.zeros(len(first)))

    def learn(self, judgment_id: str, target_of: Mapping[str, int], observations: Sequence[Observation]) -> None:
        """Add each item's rating to its target."""
        self._add(target_of, observations, 1)

    def unlearn(self, judgment_id: str, target_of: Mapping[str, int], observations: Sequence[Observation]) -> None:
        """Subtract each item's rating from its target."""
        self._add(target_of, observations, -1)

    def _add(self, target_of: Mapping[str, int], observations: Sequence[Observation], by: int) -> None:
        values: defaultdict[str, list[float]] = defaultdict(list)
        for rating in observations:
            if isinstance(rating, Rating) and target_of.get(rating.item, UNKNOWN) != UNKNOWN:
                low, high = self._scales[rating.criterion]
                values[rating.item].append((rating.value - low) / (high - low))
        for item, ratings in values.items():
            target, value = target_of[item], sum(ratings) / len(ratings)
            self.first[target] += by * value
            self.second[target] += by * (1 - value)
            self._ratings[target] += by
            if self._ratings[target] == 0:
                # Without any ratings, the rounding errors of those subtracted would determine the mode.
                self.first[target], self.second[target] = self.start
        unrated = {target for item, target in target_of.items() if item not in values and target != UNKNOWN}
        for target in unrated:
            self.unjudged[target] += by
        changed = [*(target_of[item] for item in values), *unrated]
        self._update_bound(np.array(changed, np.int32))


class OnlineComparisonModel(OnlineModel):
    """A model that learns from comparisons, those of one answer as a mini-batch (footnote 13).

    The effect of an answer depends on the state before it, so it cannot be unlearned: the first version of an answer
    keeps its effect, even if it is revised or its annotator is excluded.
    """

    accepts: ClassVar[str] = "comparisons"

    def __init__(self, protocol: Protocol, gamma: float, epsilon: float) -> None:
        super().__init__(protocol, gamma, epsilon)
        self._retained: set[str] = set()

    @abstractmethod
    def _update(self, first: FloatArray, second: FloatArray, pairs: IntArray) -> None:
        """Update some targets' parameters in place; the rows of `pairs` are left, right and outcome."""

    def learn(self, judgment_id: str, target_of: Mapping[str, int], observations: Sequence[Observation]) -> None:
        """Update the compared targets."""
        if judgment_id in self._retained:
            self._retained.remove(judgment_id)
            return
        targets = sorted({target for target in target_of.values() if target != UNKNOWN})
        place = {target: number for number, target in enumerate(targets)}
        pairs = [
            (place[left], place[right], pair.outcome)
            for pair in observations
            if isinstance(pair, Comparison)
            and (left := target_of.get(pair.left, UNKNOWN)) != (right := target_of.get(pair.right, UNKNOWN))
            and UNKNOWN not in (left, right)
        ]
        if not pairs:
            return
        changed = np.array(targets, np.int32)
        first, second = self.first[changed], self.second[changed]
        self._update(first, second, np.array(pairs, np.int32).T)
        self.first[changed], self.second[changed] = first, second
        self._update_bound(changed)

    def unlearn(self, judgment_id: str, target_of: Mapping[str, int], observations: Sequence[Observation]) -> None:
        """Keep the effect of the answer, and do not learn it again if it is notified again."""
        self._retained.add(judgment_id)


class OnlineBoundedRanking(OnlineComparisonModel):
    """Bounded ranking (Eq. 12–22)."""

    start: ClassVar[tuple[float, float]] = (1.0, 1.0)

    def __init__(self, protocol: Protocol, gamma: float, epsilon: float) -> None:
        from steelyard.models.ratings.easl import BetaState

        super().__init__(protocol, gamma, epsilon)
        self._state_type = BetaState

    def _state(self, first: FloatArray, second: FloatArray) -> Located:
        return self._state_type(first, second)

    def _update(self, first: FloatArray, second: FloatArray, pairs: IntArray) -> None:
        # Not at the top: these import numba. Not kept on self: compiled functions cannot be saved with the state.
        from steelyard.models.comparisons.online_kernels import MatchCounts, MiniBatches, bounded_pass

        left, right, outcome = pairs
        batches = MiniBatches(left, right, outcome.astype(np.int8), np.array([0, len(left)]))
        counts = MatchCounts(np.zeros(len(left), np.int32), np.ones(1, np.uint8))
        is_compared = np.zeros(len(first), np.bool_)
        bounded_pass(self._state_type(first, second), is_compared, batches, counts, self.gamma, self.epsilon)


class OnlineTrueSkill(OnlineComparisonModel):
    """TrueSkill (Eq. 3–10), from a mean of 0 and a variance of 1."""

    start: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __init__(self, protocol: Protocol, gamma: float, epsilon: float) -> None:
        from steelyard.models.comparisons.trueskill import SkillState

        super().__init__(protocol, gamma, epsilon)
        self._state_type = SkillState

    def _state(self, first: FloatArray, second: FloatArray) -> Located:
        return self._state_type(first, second)

    def _update(self, first: FloatArray, second: FloatArray, pairs: IntArray) -> None:
        from steelyard.models.comparisons.online_kernels import MiniBatches, trueskill_pass

        left, right, outcome = pairs
        batches = MiniBatches(left, right, outcome.astype(np.int8), np.array([0, len(left)]))
        trueskill_pass(first, second, batches, self.gamma, self.epsilon)


ONLINE_MODELS: dict[str, type[OnlineModel]] = {
    "easl": OnlineEasl,
    "bounded_ranking": OnlineBoundedRanking,
    "trueskill": OnlineTrueSkill,
}
"""The online models by name."""
