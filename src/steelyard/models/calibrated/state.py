"""All that the calibrated scale does not know, as one chain of draws has it, and where it starts from."""

from __future__ import annotations

import numpy as np

from steelyard.models.calibrated.evidence import Evidence
from steelyard.models.calibrated.gibbs_kernels import typical_response
from steelyard.models.calibrated.online import CalibratedState
from steelyard.observations import UNKNOWN, FloatArray

POINT_SPREAD, SLOPE_SPREAD = 0.05, 0.2
"""That guess: standard deviations of bias (as a share of the items' usual spread of 0.25: a fifth), and of slope."""

MANY_PAIRS = 100_000
"""From so many comparisons on, items are drawn jointly in every tenth round only: it takes much longer."""

RANDOM_SHARE = (1.0, 19.0)
"""Prior of the share of annotators who answer at random: 5 %, worth 20 annotators."""


class Unknowns:
    """The latest draw of items, responses, responders, and what responders of a group have in common."""

    def __init__(self, evidence: Evidence, rng: np.random.Generator) -> None:
        self.evidence = evidence
        self.rng = rng
        n_items, n_responders, n_groups = len(evidence.item), len(evidence.annotator), len(evidence.groups)
        self.group = np.repeat(np.arange(n_groups), [g.last - g.first for g in evidence.groups])
        self.rates = np.array([g.rates for g in evidence.groups])
        self.own = ~evidence.fixed & ~evidence.gold
        # Gold that no ratings go with has a scale of its own, so that its line must be found.
        self.own |= evidence.gold & (self.group > 0)
        self.sums_by_item = np.zeros((2, n_items))
        ratings = evidence.ratings
        self.response = ratings.value.copy()
        in_first = self._in_first()
        self.origin = float(ratings.value[in_first].mean()) if self.rates[0] else 0.0
        self.x = self._start(n_items)
        self.mean, self.variance = float(self.x.mean()), float(max(self.x.var(), 0.01))
        self.point = np.zeros(n_responders)
        self.slope = np.ones(n_responders)
        self.noise = np.full(n_responders, 0.06)
        self.slips = np.full(n_responders, 0.02)
        self.tail = np.ones(n_responders)
        self.random = np.zeros(n_responders, np.bool_)
        self.random_share = np.full(n_groups, RANDOM_SHARE[0] / sum(RANDOM_SHARE))
        self.usual_point = np.full(n_groups, self.origin)
        self.usual_slope = np.ones(n_groups)
        self.usual_noise = np.full(n_groups, 0.06)
        self.point_variance = np.full(n_groups, POINT_SPREAD**2)
        self.slope_variance = np.full(n_groups, SLOPE_SPREAD**2)
        self.freedom = np.full(n_groups, 20.0)
        self.stretch = np.full(n_groups, 0.5)
        self._start_other_groups()
        self.point[:] = self.usual_point[self.group]
        self.slope[:] = self.usual_slope[self.group]
        self.shift = np.zeros(int(ratings.shift.max(initial=0)) + 1)
        self.shift_variance = 0.03**2
        self._shift_sums = np.zeros((2, len(self.shift)))
        self.pair_response = np.zeros(len(evidence.pairs.left))
        self.slip = np.zeros(len(evidence.pairs.left), np.bool_)
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
        """Start from the mean rating of each item, or from where comparisons or tiers put it."""
        evidence = self.evidence
        x = np.full(n_items, self.origin)
        known = np.zeros(n_items, np.bool_)
        if self.rates[0]:
            rows = self._in_first()
            item = evidence.ratings.item[rows]
            count = np.bincount(item, minlength=n_items)
            known = count > 0
            x[known] = np.bincount(item, evidence.ratings.value[rows], minlength=n_items)[known] / count[known]
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
            place = (middle[number] - tuples.tier) / np.maximum(size, 1)
            count = np.bincount(tuples.item, minlength=n_items)
            x += 2 * np.bincount(tuples.item, place, minlength=n_items) / np.maximum(count, 1)
        return np.asarray(x - x.mean())

    def _start_other_groups(self) -> None:
        """Start the other ways of asking from how their answers spread."""
        for number, group in enumerate(self.evidence.groups):
            if number == 0:
                continue
            if group.rates:
                rows = slice(*(int(self.evidence.ratings.first[at]) for at in (group.first, group.last)))
                value = self.evidence.ratings.value[rows]
                self.usual_point[number] = value.mean() if len(value) else 0.5
                self.usual_slope[number] = max(value.std(), 0.05) / np.sqrt(self.variance) if len(value) else 1.0
            elif self.rates[0]:
                self.usual_slope[number] = 1.0 / np.sqrt(self.variance)

    def score(self, middle: FloatArray, spread: FloatArray) -> FloatArray:
        """Return what annotators usually answer to items at `middle` ± √`spread`, on [0, 1]; or, for comparisons, x."""
        group = self.evidence.groups[0]
        if not group.rates or not group.bounded:
            return middle.copy()
        out = np.empty(len(middle))
        typical_response(middle, spread, self.usual_noise[0] + self.point_variance[0], group.edge, out)
        return out
