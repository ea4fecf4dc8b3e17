"""The state of one chain of the calibrated scale's sampler, and its starting point."""

from __future__ import annotations

import numpy as np

from steelyard.models.calibrated.evidence import Evidence
from steelyard.models.calibrated.gibbs_kernels import typical_response
from steelyard.models.calibrated.online import CalibratedState
from steelyard.observations import UNKNOWN, FloatArray

INTERCEPT_SD, SLOPE_SD = 0.05, 0.2
"""Prior guess of the standard deviations of intercepts (bias, on [0, 1]) and of slopes."""

MANY_PAIRS = 100_000
"""Above this many comparisons, items are drawn jointly in every tenth sweep only, to save time."""

RANDOM_PRIOR = (1.0, 19.0)
"""Beta prior of the proportion of annotators who answer at random: mean 5 %, weight of 20 annotators."""


class ChainState:
    """The latest draw of items, responses, responders, and the population of responders of each group."""

    def __init__(self, evidence: Evidence, rng: np.random.Generator) -> None:
        self.evidence = evidence
        self.rng = rng
        n_items, n_responders, n_groups = len(evidence.item), len(evidence.annotator), len(evidence.groups)
        self.group = np.repeat(np.arange(n_groups), [g.last - g.first for g in evidence.groups])
        self.rates = np.array([g.rates for g in evidence.groups])
        self.own = ~evidence.fixed & ~evidence.gold
        # Gold without ratings has a scale of its own, whose intercept and slope are estimated.
        self.own |= evidence.gold & (self.group > 0)
        self.sums_by_item = np.zeros((2, n_items))
        ratings = evidence.ratings
        self.response = ratings.value.copy()
        in_first = self._in_first()
        self.origin = float(ratings.value[in_first].mean()) if self.rates[0] else 0.0
        self.x = self._start(n_items)
        self.mean, self.variance = float(self.x.mean()), float(max(self.x.var(), 0.01))
        self.intercept = np.zeros(n_responders)
        self.slope = np.ones(n_responders)
        self.noise = np.full(n_responders, 0.06)
        self.lapse_rate = np.full(n_responders, 0.02)
        self.tail = np.ones(n_responders)
        self.random = np.zeros(n_responders, np.bool_)
        self.random_rate = np.full(n_groups, RANDOM_PRIOR[0] / sum(RANDOM_PRIOR))
        self.mean_intercept = np.full(n_groups, self.origin)
        self.mean_slope = np.ones(n_groups)
        self.mean_noise = np.full(n_groups, 0.06)
        self.intercept_variance = np.full(n_groups, INTERCEPT_SD**2)
        self.slope_variance = np.full(n_groups, SLOPE_SD**2)
        self.freedom = np.full(n_groups, 20.0)
        self.stretch = np.full(n_groups, 0.5)
        self._start_other_groups()
        self.intercept[:] = self.mean_intercept[self.group]
        self.slope[:] = self.mean_slope[self.group]
        self.shift = np.zeros(int(ratings.shift.max(initial=0)) + 1)
        self.shift_variance = 0.03**2
        self._shift_sums = np.zeros((2, len(self.shift)))
        self.pair_response = np.zeros(len(evidence.pairs.left))
        self.lapsed = np.zeros(len(evidence.pairs.left), np.bool_)
        self.joint_every = 1 if len(evidence.pairs.left) <= MANY_PAIRS else 10
        self._joint_work = np.zeros((4, n_items))
        self.margin = 0.3 if (evidence.pairs.outcome == 0).any() else 0.0
        self._margin_step = 0.1
        self.tuple_response = -evidence.tuples.tier.astype(np.float64)
        self.middle, self.spread, self._score = np.zeros(n_items), np.ones(n_items), np.zeros(n_items)

    def _in_first(self) -> slice:
        """Return the rows of the first group's ratings."""
        first = self.evidence.groups[0]
        if not first.rates:
            return slice(0, 0)
        return slice(int(self.evidence.ratings.first[first.first]), int(self.evidence.ratings.first[first.last]))

    def _start(self, n_items: int) -> FloatArray:
        """Return initial locations: mean ratings, or estimates from comparisons and tiers."""
        evidence = self.evidence
        x = np.full(n_items, self.origin)
        if self.rates[0]:
            rows = self._in_first()
            item = evidence.ratings.item[rows]
            count = np.bincount(item, minlength=n_items)
            is_rated = count > 0
            total = np.bincount(item, evidence.ratings.value[rows], minlength=n_items)
            x[is_rated] = total[is_rated] / count[is_rated]
            return x
        if len(evidence.pairs.left):
            state = CalibratedState(n_items, len(evidence.annotator), ties=bool((evidence.pairs.outcome == 0).any()))
            state.learn(evidence.pairs.responder, evidence.pairs.left, evidence.pairs.right, evidence.pairs.outcome)
            state.refit(5)
            x = state.mean / (np.sqrt(2) * min(state.noise(UNKNOWN), 2.0))
        if len(evidence.tuples.item):
            tuples = evidence.tuples
            size = np.repeat(np.diff(tuples.first), np.diff(tuples.first))
            number = np.repeat(np.arange(len(tuples.responder)), np.diff(tuples.first))
            middle = np.bincount(number, tuples.tier) / np.maximum(np.bincount(number), 1)
            location = (middle[number] - tuples.tier) / np.maximum(size, 1)
            count = np.bincount(tuples.item, minlength=n_items)
            x += 2 * np.bincount(tuples.item, location, minlength=n_items) / np.maximum(count, 1)
        return np.asarray(x - x.mean())

    def _start_other_groups(self) -> None:
        """Initialise the intercepts and slopes of the other groups from the variance of their answers."""
        for number, group in enumerate(self.evidence.groups):
            if number == 0:
                continue
            if group.rates:
                rows = slice(*(int(self.evidence.ratings.first[at]) for at in (group.first, group.last)))
                value = self.evidence.ratings.value[rows]
                self.mean_intercept[number] = value.mean() if len(value) else 0.5
                self.mean_slope[number] = max(value.std(), 0.05) / np.sqrt(self.variance) if len(value) else 1.0
            elif self.rates[0]:
                self.mean_slope[number] = 1.0 / np.sqrt(self.variance)

    def score(self, middle: FloatArray, spread: FloatArray) -> FloatArray:
        """Return the expected answer, on [0, 1], to items of this mean and variance; for comparisons, the mean."""
        group = self.evidence.groups[0]
        if not group.rates or not group.bounded:
            return middle.copy()
        out = np.empty(len(middle))
        typical_response(middle, spread, self.mean_noise[0] + self.intercept_variance[0], group.edge, out)
        return out
