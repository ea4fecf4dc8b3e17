"""The calibrated scale while a study runs: beliefs about items and annotators, updated by each answer.

An answer updates only its items and its annotator. `refit` processes all answers again, and estimates the population's
noise levels and the tie margin. The same answers in the same order, with refits at the same positions, give the same
state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from steelyard.models.calibrated.online_kernels import (
    LAPSE,
    ItemBeliefs,
    NoiseLevels,
    PairAnswers,
    PairMessages,
    RaterBeliefs,
    RatingAnswers,
    sweep,
    sweep_ratings,
)
from steelyard.observations import UNKNOWN, FloatArray, IntArray

LEVELS: FloatArray = np.array([0.1, 0.16, 0.25, 0.4, 0.63, 1.0, 1.6, 2.5, np.inf])
"""Noise levels of annotators: sd of a performance in units of the items' sd; inf is random answering."""

START: FloatArray = np.array([0.04, 0.07, 0.12, 0.18, 0.2, 0.16, 0.1, 0.06, 0.07])
"""Prior probability of each level."""

USUAL_PLACE, USUAL_SPREAD = 0.5, 0.25
"""Prior mean and sd of the items on the rating scale [0, 1]."""

BIAS_VARIANCE, RATING_NOISE, RATING_FREEDOM = 0.16, 0.64, 20.0
"""Prior variance of biases and of a rating, in units of that sd, and the prior degrees of freedom of the latter."""

START_WEIGHT = 10.0
"""Weight of `START` in annotators when a refit estimates the probabilities of the levels; also the weight of the prior
sd of items, of the noise by region, and of the variance of biases, in items, ratings and annotators."""

REGIONS, LEAST_IN_REGION = 12, 20
"""The noise of ratings is estimated for this many regions of the scale, with at least this many ratings each."""


class PairOdds(NamedTuple):
    """Probabilities that left wins, of a tie, and that right wins; arrays of one shape."""

    left: FloatArray
    tie: FloatArray
    right: FloatArray


class CalibratedState:
    """A Gaussian belief about each item (standard normal at first), and a noise level of each annotator.

    Codes of items and annotators count from 0; `grow` before using new ones. Comparisons get handles in the order
    in which they were learned.
    """

    def __init__(self, n_items: int = 0, n_annotators: int = 0, *, ties: bool = False) -> None:
        self.margin = 0.1 if ties else 0.0
        """Two performances within this distance tie; 0 if the protocol has no ties."""
        self.prior: FloatArray = np.log(START)
        """Log prior probability of each level for a new annotator."""
        self._items = self._annotators = self._count = 0
        # Prior of an item: precision, and precision times mean. Both are estimated from ratings.
        self._prior_precision, self._prior_shift = 1.0, 0.0
        self._precision: FloatArray = np.ones(0)
        self._shift: FloatArray = np.zeros(0)
        # Evidence from outside the answers, such as a model's prediction: part of precision and shift.
        self._outside: FloatArray = np.zeros((0, 2))
        self._unevenness: FloatArray = np.ones(0)
        self._belief: FloatArray = np.zeros((0, len(LEVELS)))
        self._left: IntArray = np.zeros(0, np.int32)
        self._right: IntArray = np.zeros(0, np.int32)
        self._annotator: IntArray = np.zeros(0, np.int32)
        self._outcome: NDArray[np.int8] = np.zeros(0, np.int8)
        self._weight: FloatArray = np.zeros(0)
        self._site: FloatArray = np.zeros((0, 4))
        self._log_likelihood: FloatArray = np.zeros((0, len(LEVELS)))
        self._ratings = 0
        self._rated: IntArray = np.zeros(0, np.int32)
        self._rater: IntArray = np.zeros(0, np.int32)
        self._value: FloatArray = np.zeros(0)
        self._rating_site: FloatArray = np.zeros((0, 4))
        self._bias_variance, self._usual_noise = BIAS_VARIANCE, RATING_NOISE
        # Indexed by annotator + 1; entry 0 is the population.
        self._bias_precision: FloatArray = np.full(1, 1 / BIAS_VARIANCE)
        self._bias_shift: FloatArray = np.zeros(1)
        self._rating_noise: FloatArray = np.full(1, RATING_NOISE)
        self.grow(n_items, n_annotators)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self._items

    @property
    def n_annotators(self) -> int:
        """Number of annotators."""
        return self._annotators

    @property
    def n_comparisons(self) -> int:
        """Number of comparisons learned, including those removed since."""
        return self._count

    @property
    def n_ratings(self) -> int:
        """Number of ratings learned, including those removed since."""
        return self._ratings

    @property
    def mean(self) -> FloatArray:
        """Posterior mean of every item."""
        return self._shift[: self._items] / self._precision[: self._items]

    @property
    def variance(self) -> FloatArray:
        """Posterior variance of every item; it falls from 1."""
        return 1 / self._precision[: self._items]

    @property
    def unevenness(self) -> FloatArray:
        """Noise variance of each item's ratings relative to the average; usually smaller near the ends of the scale."""
        return self._unevenness[: self._items]

    def grow(self, n_items: int, n_annotators: int) -> None:
        """Make room for at least this many items and annotators."""
        if n_items > len(self._precision):
            room = max(n_items, 2 * len(self._precision))
            self._precision = _longer(self._precision, room, self._prior_precision)
            self._shift = _longer(self._shift, room, self._prior_shift)
            self._outside = _longer(self._outside, room)
            self._unevenness = _longer(self._unevenness, room, 1.0)
        if n_annotators > len(self._belief):
            self._belief = _longer(self._belief, max(n_annotators, 2 * len(self._belief)))
        if n_annotators >= len(self._rating_noise):
            room = max(n_annotators + 1, 2 * len(self._rating_noise))
            self._bias_precision = _longer(self._bias_precision, room, 1 / self._bias_variance)
            self._bias_shift = _longer(self._bias_shift, room)
            self._rating_noise = _longer(self._rating_noise, room, self._usual_noise)
        self._items = max(self._items, n_items)
        self._annotators = max(self._annotators, n_annotators)

    def learn(
        self,
        annotator: int | IntArray,
        left: Sequence[int] | IntArray,
        right: Sequence[int] | IntArray,
        outcome: Sequence[int] | NDArray[np.int8],
        *,
        weight: float | FloatArray = 1.0,
    ) -> range:
        """Add the comparisons of one answer, or of many; return their handles.

        Parameters
        ----------
        annotator
            The annotator of the answer, or of each comparison; UNKNOWN if not recorded.
        left, right, outcome
            Item codes, and 1 (left won), -1 (right won) or 0 (tie).
        weight
            Weight of each comparison: see `tuple_weight` for the pairs of a ranking or of a best–worst choice.
        """
        first, count = self._count, len(left)
        if first + count > len(self._left):
            room = max(first + count, 2 * len(self._left), 64)
            for name in ("_left", "_right", "_annotator", "_outcome", "_weight", "_site", "_log_likelihood"):
                setattr(self, name, _longer(getattr(self, name), room))
        span = slice(first, first + count)
        self._left[span], self._right[span], self._outcome[span] = left, right, outcome
        self._annotator[span], self._weight[span] = annotator, weight
        self._count += count
        handles = range(first, first + count)
        self._sweep(np.arange(first, first + count))
        return handles

    def learn_ratings(
        self, annotator: int | IntArray, items: Sequence[int] | IntArray, values: Sequence[float] | FloatArray
    ) -> range:
        """Add the ratings of one answer, or of many, on [0, 1]; return their handles, apart from comparisons'."""
        first, count = self._ratings, len(items)
        if first + count > len(self._rated):
            room = max(first + count, 2 * len(self._rated), 64)
            for name in ("_rated", "_rater", "_value", "_rating_site"):
                setattr(self, name, _longer(getattr(self, name), room))
        span = slice(first, first + count)
        self._rated[span] = items
        self._rater[span] = annotator + 1
        self._value[span] = (np.asarray(values, np.float64) - USUAL_PLACE) / USUAL_SPREAD
        self._ratings += count
        self._sweep_ratings(np.arange(first, first + count))
        return range(first, first + count)

    def forget_ratings(self, handles: Sequence[int]) -> None:
        """Remove the evidence of some ratings."""
        for m in handles:
            item, who, site = self._rated[m], self._rater[m], self._rating_site[m]
            self._precision[item] -= site[0]
            self._shift[item] -= site[1]
            self._bias_precision[who] -= site[2]
            self._bias_shift[who] -= site[3]
            # Ratings without weight are skipped from now on.
            self._rating_site[m], self._value[m] = 0.0, np.nan

    def bias(self, annotator: int) -> tuple[float, float]:
        """Return the mean and sd of an annotator's bias when rating, on [0, 1]."""
        precision = self._bias_precision[annotator + 1]
        return float(USUAL_SPREAD * self._bias_shift[annotator + 1] / precision), float(USUAL_SPREAD * precision**-0.5)

    def on_rating_scale(self, mean: FloatArray) -> FloatArray:
        """Return scores on the rating scale [0, 1]."""
        return USUAL_PLACE + self.rating_spread(mean)

    def rating_spread(self, sd: FloatArray) -> FloatArray:
        """Return standard deviations in units of the rating scale [0, 1]."""
        return np.asarray(USUAL_SPREAD * sd)

    def rating_precision(self, annotator: int = UNKNOWN) -> float:
        """Return the precision that one more rating by an annotator is expected to add to an item of average noise."""
        open_bias = 1 / self._bias_precision[annotator + 1]
        return float(1 / (self._rating_noise[annotator + 1] + open_bias))

    def forget(self, handles: Sequence[int]) -> None:
        """Remove the evidence of some comparisons about items and annotators."""
        for m in handles:
            self._precision[self._left[m]] -= self._site[m, 0]
            self._shift[self._left[m]] -= self._site[m, 1]
            self._precision[self._right[m]] -= self._site[m, 2]
            self._shift[self._right[m]] -= self._site[m, 3]
            if self._annotator[m] != UNKNOWN:
                self._belief[self._annotator[m]] -= self._log_likelihood[m]
            self._site[m], self._log_likelihood[m], self._weight[m] = 0.0, 0.0, 0.0

    @property
    def item_prior(self) -> tuple[float, float]:
        """Mean and variance of an item before any answer."""
        return self._prior_shift / self._prior_precision, 1 / self._prior_precision

    def own_evidence(self) -> tuple[FloatArray, FloatArray]:
        """Return the estimate of each item from the answers alone: mean, and precision (0 without answers)."""
        precision = (self._precision - self._prior_precision - self._outside[:, 0])[: self._items]
        shift = (self._shift - self._prior_shift - self._outside[:, 1])[: self._items]
        precision = np.where(precision > 1e-6, precision, 0.0)
        return np.divide(shift, precision, out=np.zeros_like(shift), where=precision > 0), precision

    def set_outside_evidence(self, mean: FloatArray, precision: FloatArray) -> None:
        """Replace the evidence about each item that does not come from answers."""
        outside = np.zeros_like(self._outside)
        outside[: self._items] = np.column_stack([precision, precision * mean])
        self._precision += outside[:, 0] - self._outside[:, 0]
        self._shift += outside[:, 1] - self._outside[:, 1]
        self._outside = outside

    def refit(self, sweeps: int = 10, tolerance: float = 1e-3) -> int:
        """Sweep over all answers until no mean changes by more than `tolerance`; return the number of sweeps."""
        rows = np.flatnonzero(self._weight[: self._count] > 0)
        done = 0
        while done < sweeps:
            moved = self._sweep(rows)
            done += 1
            if self._ratings:
                moved = max(moved, self._sweep_ratings(np.flatnonzero(~np.isnan(self._value[: self._ratings]))))
                self._learn_from_ratings()
            self._learn_levels()
            if self.margin > 0 and len(rows):
                self._learn_margin(rows)
            if moved < tolerance:
                break
        return done

    def level_probabilities(self, annotator: int) -> FloatArray:
        """Return the probability of each of `LEVELS` for an annotator; UNKNOWN is the population."""
        log_weight = self.prior if annotator == UNKNOWN else self.prior + self._belief[annotator]
        return np.asarray(special.softmax(log_weight))

    def noise(self, annotator: int) -> float:
        """Return an annotator's typical noise: the sd with the mean precision of the levels; inf for a random one."""
        precision = float((self.level_probabilities(annotator) / LEVELS**2).sum())
        return float(np.inf if precision == 0 else precision**-0.5)

    def pair_odds(
        self,
        left: NDArray[np.integer],
        right: NDArray[np.integer],
        annotator: int = UNKNOWN,
    ) -> PairOdds:
        """Predict the outcomes of pairs, averaged over the uncertainty about the items and the annotator."""
        left, right = np.asarray(left), np.asarray(right)
        mean, variance = self._shift / self._precision, 1 / self._precision
        return self.odds(mean[left] - mean[right], variance[left] + variance[right], annotator)

    def odds(self, difference: FloatArray, variance: FloatArray, annotator: int = UNKNOWN) -> PairOdds:
        """Predict the outcomes for differences that are Gaussian with this mean and variance."""
        weights = self.level_probabilities(annotator)
        up, down = np.zeros(np.shape(difference)), np.zeros(np.shape(difference))
        for level, weight in zip(LEVELS[:-1], weights[:-1], strict=True):
            c = np.sqrt(variance + 2 * level**2)
            up += weight * special.ndtr((difference - self.margin) / c)
            down += weight * special.ndtr((-difference - self.margin) / c)
        guess = 1 / 3 if self.margin > 0 else 1 / 2
        random = (1 - LAPSE) * weights[-1] + LAPSE
        up, down = ((1 - LAPSE) * p + random * guess for p in (up, down))
        return PairOdds(up, np.maximum(1 - up - down, 0.0), down)

    def _sweep(self, rows: NDArray[np.int64]) -> float:
        answers = PairAnswers(self._left, self._right, self._annotator, self._outcome, self._weight)
        messages = PairMessages(self._site, self._log_likelihood)
        items = ItemBeliefs(self._precision, self._shift)
        return float(sweep(rows, answers, messages, items, NoiseLevels(self._belief, self.prior, LEVELS), self.margin))

    def _sweep_ratings(self, rows: NDArray[np.int64]) -> float:
        ratings = RatingAnswers(self._rated, self._rater, self._value)
        items = ItemBeliefs(self._precision, self._shift)
        raters = RaterBeliefs(self._bias_precision, self._bias_shift, self._rating_noise)
        return float(sweep_ratings(rows, ratings, self._rating_site, items, raters, self._unevenness))

    def _learn_from_ratings(self) -> None:
        """Estimate the parameters that raters share, and each rater's noise."""
        active = np.flatnonzero(~np.isnan(self._value[: self._ratings]))
        item, who = self._rated[active], self._rater[active]
        off = self._value[active] - self._shift[item] / self._precision[item]
        off -= self._bias_shift[who] / self._bias_precision[who]
        # The posterior variances of item and bias are added to the squared residual.
        squares = off**2 + 1 / self._precision[item] + 1 / self._bias_precision[who]
        self._learn_noise(who, squares / self._unevenness[item])
        self._learn_unevenness(item, squares / self._rating_noise[who])
        people = np.unique(who[who > 0])
        self._centre_biases(active, people)
        self._learn_biases(people)
        self._learn_spread(np.unique(item))

    def _learn_noise(self, who: IntArray, squares: FloatArray) -> None:
        """Estimate the population's noise, and each rater's, shrunk towards it."""
        weight = RATING_FREEDOM
        self._usual_noise = float((weight * RATING_NOISE + squares.sum()) / (weight + len(squares)))
        n = len(self._rating_noise)
        total, count = np.bincount(who, squares, minlength=n), np.bincount(who, minlength=n)
        self._rating_noise = (weight * self._usual_noise + total) / (weight + count)
        self._rating_noise[0] = self._usual_noise

    def _learn_unevenness(self, item: IntArray, squares: FloatArray) -> None:
        """Estimate the noise of ratings by region of the scale, with linear interpolation between regions."""
        mean = self._shift / self._precision
        order = np.argsort(mean[item], kind="stable")
        regions = min(REGIONS, len(item) // LEAST_IN_REGION)
        if regions < 2:
            return
        parts = np.array_split(order, regions)
        middle = np.array([mean[item[part]].mean() for part in parts])
        noise = np.array([(START_WEIGHT + squares[part].sum()) / (START_WEIGHT + len(part)) for part in parts])
        self._unevenness = np.interp(mean, middle, noise / noise.mean())

    def _centre_biases(self, known: NDArray[np.int64], people: NDArray[np.integer]) -> None:
        """Move the mean of all biases into the items: single answers would shift it only slowly."""
        common = float((self._bias_shift[people] / self._bias_precision[people]).mean()) if len(people) else 0.0
        named = known[self._rater[known] > 0]
        item, who, site = self._rated[named], self._rater[named], self._rating_site[named]
        self._shift += common * (self._prior_precision + np.bincount(item, site[:, 0], minlength=len(self._shift)))
        self._prior_shift += common * self._prior_precision
        self._bias_shift -= common * np.bincount(who, site[:, 2], minlength=len(self._bias_shift))
        self._rating_site[named, 1] += common * site[:, 0]
        self._rating_site[named, 3] -= common * site[:, 2]

    def _learn_biases(self, people: NDArray[np.integer]) -> None:
        """Estimate the variance of biases."""
        precision, shift = self._bias_precision, self._bias_shift
        squares = (shift[people] / precision[people]) ** 2 + 1 / precision[people]
        variance = float((START_WEIGHT * BIAS_VARIANCE + squares.sum()) / (START_WEIGHT + len(people)))
        self._bias_precision = precision + 1 / variance - 1 / self._bias_variance
        self._bias_variance = variance

    def _learn_spread(self, items: NDArray[np.integer]) -> None:
        """Estimate the mean and sd of the items on the scale."""
        mean, spread = self._shift[items] / self._precision[items], 1 / self._precision[items]
        weight = START_WEIGHT + len(items)
        middle = float(mean.sum() / (1 + len(items)))
        variance = float((START_WEIGHT + ((mean - middle) ** 2 + spread).sum()) / weight)
        precision, shift = 1 / variance, middle / variance
        self._precision += precision - self._prior_precision
        self._shift += shift - self._prior_shift
        self._prior_precision, self._prior_shift = precision, shift

    def _learn_levels(self) -> None:
        """Update the probabilities of the levels from the annotators so far (EM), shrunk towards `START`."""
        active = np.flatnonzero(self._belief[: self._annotators].any(axis=1))
        if len(active) == 0:
            return
        counts = special.softmax(self.prior + self._belief[active], axis=1).sum(axis=0) + START_WEIGHT * START
        self.prior = np.log(counts / counts.sum())

    def _learn_margin(self, rows: NDArray[np.int64]) -> None:
        """Update the margin so that the expected number of ties equals the observed one."""
        tied = float(np.average(self._outcome[rows] == 0, weights=self._weight[rows]))
        odds = self.pair_odds(self._left[rows], self._right[rows])
        expected = float(np.average(odds.tie, weights=self._weight[rows]))
        self.margin = float(np.clip(self.margin * ((tied + 1e-3) / (expected + 1e-3)) ** 0.7, 1e-3, 3.0))


def tuple_weight(n_items: int, pairs: int) -> float:
    """Return the weight of each pair of an answer to a tuple: together they count as about n − 1 comparisons."""
    return min(1.0, (n_items - 1) / pairs)


_Number = TypeVar("_Number", bound=np.generic)


def _longer(array: NDArray[_Number], room: int, fill: float = 0.0) -> NDArray[_Number]:
    longer = np.full((room, *array.shape[1:]), fill, array.dtype)
    longer[: len(array)] = array
    return longer
