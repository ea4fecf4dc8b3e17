"""The calibrated scale's Gibbs sampler: a chain of joint draws of items, annotators and what they have in common.

The priors of annotators are learnt with them (partial pooling): where answers show no differences, their spread
goes to nothing and the model comes down to the mean; where a few differ much from the others (answering at random,
or against the scale), heavy tails let those few go their own way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from steelyard.models.calibrated.evidence import GOLD_NOISE, Group
from steelyard.models.calibrated.gibbs_kernels import (
    LEAST_RATIO,
    MIN_NOISE_VARIANCE,
    Items,
    PairAnswers,
    RaterPrior,
    Responders,
    ResponderSums,
    ShiftSums,
    draw_items,
    draw_items_jointly,
    draw_pairs,
    draw_raters,
    draw_ratings,
    draw_shifts,
    draw_tuples,
    margin_likelihood,
)
from steelyard.models.calibrated.state import POINT_SPREAD, RANDOM_SHARE, SLOPE_SPREAD, Unknowns
from steelyard.observations import FloatArray

TAIL = 4.0
"""Degrees of freedom of the annotators' lines around the usual one."""

PRIOR_WEIGHT = 8.0
"""How many annotators the prior guess of their spread counts for."""

ITEMS_RATED, ITEMS_COMPARED = (0.1**2, 1.0), (1.0, 2.0)
"""Prior guess of the items' variance, and how many items it is worth: on a rating scale of length 1 a low one, since
a few items, such as translation systems, may differ by a hundredth of it."""

MEAN_RATED = (0.5, 0.5**2)
"""Prior mean and variance of the rated items' population mean: somewhere on the scale [0, 1].

Without it the posterior is improper where ratings do not vary, since then the slopes may be 0."""

FREEDOM = np.array([6.0, 12.0, 20.0, 40.0, 100.0])
"""How alike the noise of annotators may be, as degrees of freedom: fewer let one annotator's noise near 0 pass for
knowledge, which it is not where he answers 0 to everything."""

STRETCH = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
"""How far an annotator's noise may go with his use of the scale."""

RANDOM_SLOPE, RANDOM_NOISE, RANDOM_FREEDOM = 0.1, 0.1, 8.0
"""One who answers at random: sd of his slope around 0, usual variance of his answers, and how alike that is among
his kind."""

LEAST_SIGNAL = 0.1
"""From this ratio of the items' variance to that of a rating on, annotators are told apart by their noise."""

SLIPS = (0.5, 24.5)
"""Prior of the share of comparisons answered by a slip: 2 % of them, worth 25 comparisons."""


@dataclass(slots=True, eq=False)
class Sums:
    """Totals over the draws of a chain.

    By item: of the score, the place x and its square, its variance. By responder: of point, slope, noise, slips and
    answering at random, and of their squares. `usual` has by group the usual point, slope, noise variance and
    variance of points.
    """

    count: int
    score: FloatArray
    middle: FloatArray
    middle_square: FloatArray
    spread: FloatArray
    line: FloatArray
    line_square: FloatArray
    usual: FloatArray
    draws: FloatArray
    checks: tuple[str, ...] = ()
    """How well the model foretells the answers."""

    @property
    def mean(self) -> FloatArray:
        """Posterior mean of every item's place."""
        return self.middle / self.count


class Chain(Unknowns):
    """One chain; `rng` is its only source of chance."""

    def run(self, settling: int, draws: int) -> Sums:
        """Settle, then draw; return the totals of the draws."""
        n_items, n_responders = len(self.x), len(self.point)
        sums = Sums(
            count=draws,
            score=np.zeros(n_items),
            middle=np.zeros(n_items),
            middle_square=np.zeros(n_items),
            spread=np.zeros(n_items),
            line=np.zeros((5, n_responders)),
            line_square=np.zeros((5, n_responders)),
            usual=np.zeros(4 * len(self.evidence.groups)),
            draws=np.empty((draws, n_items)),
        )
        for sweep in range(settling + draws):
            self.sweep(sweep)
            if sweep >= settling:
                self._add(sums, sweep - settling)
        sums.checks = self.checks()
        return sums

    def checks(self) -> tuple[str, ...]:
        """Say how well the last draw foretells the answers it was drawn from: a posterior predictive check."""
        ratings, pairs = self.evidence.ratings, self.evidence.pairs
        found: tuple[str, ...] = ()
        if len(ratings.item):
            who = np.repeat(np.arange(len(self.point)), np.diff(ratings.first))
            middle = self.point[who] + self.slope[who] * (self.x[ratings.item] - self.origin)
            middle += self.shift[ratings.shift]
            half = 1.96 * np.sqrt(self.noise[who])
            inside = (ratings.upper >= middle - half) & (ratings.lower <= middle + half)
            found += (f"check: {100 * inside.mean():.1f} % of the ratings lie where the model expects 95 % of them",)
        decided = pairs.outcome != 0
        if decided.any():
            left, right, who = pairs.left[decided], pairs.right[decided], pairs.responder[decided]
            chance = special.ndtr(np.abs(self.slope[who] * (self.x[left] - self.x[right])))
            chance = self.slips[who] / 2 + (1 - self.slips[who]) * chance
            came = np.sign(self.slope[who] * (self.x[left] - self.x[right])) == pairs.outcome[decided]
            expected = f"the likelier item is expected to win {100 * chance.mean():.1f} % of the decided comparisons"
            found += (f"check: {expected}, and won {100 * came.mean():.1f} %",)
        return found

    def _add(self, sums: Sums, draw: int) -> None:
        sums.score += self.score(self.middle, self.spread)
        sums.middle += self.middle
        sums.middle_square += self.middle**2
        sums.spread += self.spread
        sums.draws[draw] = self.score(self.x, np.zeros(len(self.x)))
        line = np.array(
            [self.point - self.usual_point[self.group], self.slope, np.sqrt(self.noise), self.slips, self.random]
        )
        sums.line += line
        sums.line_square += line**2
        usual = (self.usual_point, self.usual_slope, self.usual_noise, self.point_variance)
        sums.usual += np.concatenate(usual)

    def sweep(self, sweep: int) -> None:
        """Draw everything once, given the rest; `sweep` counts the draws so far."""
        ratings, pairs, tuples = self.evidence.ratings, self.evidence.pairs, self.evidence.tuples
        rng = self.rng
        items, responders = self._items(), self._responders()
        sums = ResponderSums(*np.zeros((3, len(self.point))))
        if len(ratings.item):
            draw_ratings(rng, ratings, self.response, items, responders)
        if self.margin > 0:
            self._draw_margin(sweep)
        answers = PairAnswers(self.pair_response, self.slip, self.margin)
        if len(pairs.left):
            draw_pairs(rng, pairs, answers, items, responders, sums)
        if len(tuples.item):
            draw_tuples(rng, tuples, self.tuple_response, items, responders, sums)
        self._draw_judges(sums)
        jointly = len(pairs.left) > 0 and sweep % self.joint_every == 0
        if jointly:
            draw_items_jointly(rng, self._items(), pairs, answers, self._responders(), self._joint_work)
        draw_items(rng, self._items(), pairs, answers, self._responders(), jointly)
        if len(ratings.item):
            self._draw_raters()
        self._draw_population()
        self._move_together()

    def _items(self) -> Items:
        weight, pull = self.sums_by_item
        return Items(self.x, self.origin, self.mean, self.variance, weight, pull, self.middle, self.spread)

    def _responders(self) -> Responders:
        return Responders(self.point, self.slope, self.noise, self.slips, self.shift)

    def _expected_slope(self) -> FloatArray:
        """Return the slope expected of every responder who does not answer at random, from his noise."""
        ratio = np.where(self.rates[self.group], self.noise / self.usual_noise[self.group], 1.0)
        return np.asarray(self.usual_slope[self.group] * _stretched(ratio, self.stretch[self.group]))

    def _slope_prior(self) -> tuple[FloatArray, FloatArray]:
        """Return the mean and variance of every responder's slope, given whether he answers at random."""
        spread = np.where(self.random, RANDOM_SLOPE**2, self.slope_variance[self.group] / self.tail)
        mean = np.where(self.random, 0.0, self._expected_slope())
        return mean, spread * self.usual_slope[self.group] ** 2

    def _point_variance(self) -> FloatArray:
        return self.point_variance[self.group] / self.tail

    def _draw_raters(self) -> None:
        ratings, g = self.evidence.ratings, self.group
        if len(self.shift) > 1:
            sums = ShiftSums(self.shift_variance, *self._shift_sums)
            draw_shifts(self.rng, ratings, self.response, self._items(), self._responders(), sums)
            n = len(self.shift) - 1
            self.shift_variance = self._variance(float((self.shift**2).sum()), n, 0.03**2)
        usual_noise = np.where(self.random, RANDOM_NOISE, self.usual_noise[g])
        freedom = np.where(self.random, RANDOM_FREEDOM, self.freedom[g])
        pinned = self.evidence.gold
        prior = RaterPrior(
            ~self.own,
            self.usual_point[g],
            np.where(self.random, 0.0, self.usual_slope[g]),
            self._point_variance(),
            self._slope_prior()[1],
            np.where(pinned, GOLD_NOISE**2, usual_noise),
            np.where(pinned, 1e6, freedom),
            np.where(self.random | pinned, 0.0, self.stretch[g]),
        )
        draw_raters(self.rng, ratings, self.response, self._items(), prior, self._responders())

    def _draw_judges(self, sums: ResponderSums) -> None:
        """Draw the slopes and slips of those who compare."""
        judges = ~self.rates[self.group]
        if not judges.any():
            return
        usual, variance = self._slope_prior()
        precision = sums.square[judges] + 1 / variance[judges]
        middle = (sums.cross[judges] + usual[judges] / variance[judges]) / precision
        drawn = middle + self.rng.standard_normal(len(middle)) / np.sqrt(precision)
        self.slope[judges] = np.where(self.own[judges], drawn, usual[judges])
        compared = np.bincount(self.evidence.pairs.responder, minlength=len(self.slope))
        self.slips = self.rng.beta(SLIPS[0] + sums.lapses, SLIPS[1] + compared - sums.lapses)

    def _draw_margin(self, sweep: int) -> None:
        """Move the tie margin by a random step, taken as often as the answers allow."""
        pairs = self.evidence.pairs
        state = (pairs, self._items(), self._responders())
        other = self.margin * float(np.exp(self._margin_step * self.rng.standard_normal()))
        gain = margin_likelihood(*state, other) - margin_likelihood(*state, self.margin)
        # A log-normal prior around 0.4 keeps it in place where there are few ties.
        gain += (np.log(self.margin / 0.4) ** 2 - np.log(other / 0.4) ** 2) / 2
        taken = bool(np.log(self.rng.random()) < gain)
        self.margin = other if taken else self.margin
        self._margin_step *= float(np.exp((taken - 0.4) / (1 + sweep) ** 0.6))

    def _variance(self, squares: float, count: float, guess: float, weight: float = PRIOR_WEIGHT) -> float:
        """Draw a variance, given a sum of squares and a prior guess worth `weight` more."""
        return float((squares + weight * guess) / 2 / self.rng.standard_gamma((count + weight) / 2))

    def _items_prior(self) -> tuple[float, float]:
        """Return the prior guess of the items' variance, and how many items it is worth."""
        return ITEMS_RATED if self.rates[0] else ITEMS_COMPARED

    def _draw_population(self) -> None:
        """Draw what items, and what responders of each group, have in common."""
        n = len(self.x)
        if self.rates[0]:
            center, center_variance = MEAN_RATED
            precision = n / self.variance + 1 / center_variance
            expected = (float(self.x.sum()) / self.variance + center / center_variance) / precision
            self.mean = float(expected + self.rng.standard_normal() / np.sqrt(precision))
        else:
            # Comparisons say nothing of a common level.
            level = float(self.x.mean())
            self.x -= level
            self.middle -= level
            self.mean = 0.0
        squares = float(((self.x - self.mean) ** 2).sum())
        self.variance = self._variance(squares, n, *self._items_prior())
        for number, group in enumerate(self.evidence.groups):
            self._draw_group(number, group)

    def _draw_group(self, number: int, group: Group) -> None:
        rng = self.rng
        who = np.flatnonzero(self.own[group.responders]) + group.first
        if len(who):
            self._draw_random(number, group, who)
            who = who[~self.random[who]]
        if len(who):
            tail, slope = self.tail[who], self.slope[who]
            if group.rates:
                self._draw_stretch(number, who)
            if number > 0:
                factor = self._expected_slope()[who] / self.usual_slope[number]
                precision = float((tail * factor**2).sum())
                sd = np.sqrt(self.slope_variance[number] / precision) * self.usual_slope[number]
                usual = float((tail * factor * slope).sum() / precision + sd * rng.standard_normal())
                self.usual_slope[number] = usual if usual > 1e-3 else self.usual_slope[number]
            if number > 0 and group.rates:
                sd = np.sqrt(self.point_variance[number] / tail.sum())
                self.usual_point[number] = (tail * self.point[who]).sum() / tail.sum() + sd * rng.standard_normal()
            far, relative, off = self._off(number, group, who)
            if self._telling(number, group):
                unknowns = 2 if group.rates else 1
                tail = rng.standard_gamma((TAIL + unknowns) / 2, len(who)) / ((TAIL + far) / 2)
                self.slope_variance[number] = self._variance(float(tail @ relative**2), len(who), SLOPE_SPREAD**2)
            else:
                tail, self.slope_variance[number] = np.ones(len(who)), SLOPE_SPREAD**2
            self.tail[who] = tail
            if group.rates:
                self.point_variance[number] = self._variance(float(tail @ off**2), len(who), POINT_SPREAD**2)
        self._draw_noise(number, group)

    def _draw_stretch(self, number: int, who: NDArray[np.int64]) -> None:
        """Draw how far noise goes with the use of the scale: 0, not at all, to 1, as if each stretched his answers."""
        ratio = self.noise[who] / self.usual_noise[number]
        expected = _stretched(ratio, STRETCH[:, None])
        off = self.slope[who] / self.usual_slope[number] - expected
        fits = -(self.tail[who] * off**2).sum(axis=1) / (2 * self.slope_variance[number])
        chances = np.exp(fits - fits.max())
        self.stretch[number] = self.rng.choice(STRETCH, p=chances / chances.sum())

    def _off(self, number: int, group: Group, who: NDArray[np.int64]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how far responders are from the usual line, in all, in slope and in point."""
        relative = (self.slope[who] - self._expected_slope()[who]) / self.usual_slope[number]
        off = self.point[who] - self.usual_point[number] if group.rates else np.zeros(len(who))
        far = relative**2 / self.slope_variance[number]
        return far + (off**2 / self.point_variance[number] if group.rates else 0.0), relative, off

    def _draw_random(self, number: int, group: Group, who: NDArray[np.int64]) -> None:
        """Draw who answers at random: whose slope and noise are like such people's rather than like the others'.

        Biases say nothing about it: where items hardly differ, who is merely strict must not be taken for random.
        """
        relative = self._off(number, group, who)[1]
        slope = self.slope[who] / self.usual_slope[number]
        share, spread = self.random_share[number], self.slope_variance[number]
        # Student's t for the others, Gaussian for these; up to 1/√2π.
        usual = np.log1p(-share) - (TAIL + 1) / 2 * np.log1p(relative**2 / (TAIL * spread))
        usual -= np.log(spread * TAIL / 2) / 2
        usual += special.gammaln((TAIL + 1) / 2) - special.gammaln(TAIL / 2)
        random = np.log(share) - slope**2 / (2 * RANDOM_SLOPE**2) - np.log(RANDOM_SLOPE)
        if group.rates:
            noise = self.noise[who]
            usual += _noise_density(noise, self.usual_noise[number], self.freedom[number])
            random += _noise_density(noise, RANDOM_NOISE, RANDOM_FREEDOM)
        is_random = (self.rng.random(len(who)) < special.expit(random - usual)) & self._telling(number, group)
        # At least one responder of the ratings that set the scale uses it: if all answered at random, the items
        # could lie anywhere. An impossible proposal is rejected (Metropolis–Hastings).
        if not (number == 0 and group.rates and is_random.all()):
            self.random[who] = is_random
        self.tail[who[self.random[who]]] = 1.0
        count = int(self.random[who].sum())
        self.random_share[number] = self.rng.beta(RANDOM_SHARE[0] + count, RANDOM_SHARE[1] + len(who) - count)

    def _telling(self, number: int, group: Group) -> bool:
        """Whether items differ enough, beside the noise of a rating, to tell who sees their differences.

        Where they do not, as among the best translation systems, one whose answers vary little may as well use little
        of the scale: weighing people by their noise, or calling some random, then does harm.
        """
        if not group.rates:
            return True
        ratings = np.diff(self.evidence.ratings.first)[group.responders]
        # Of all, also those taken for random: else calling many random would make the others look telling.
        noise = float(ratings @ self.noise[group.responders]) / max(float(ratings.sum()), 1.0)
        return bool(self.variance * self.usual_slope[number] ** 2 > LEAST_SIGNAL * noise)

    def _draw_noise(self, number: int, group: Group) -> None:
        """Draw a group's usual noise, and how alike its responders' is."""
        if not group.rates:
            return
        span = np.arange(group.first, group.last)
        variance = self.noise[span[(~self.evidence.gold[span] | (number > 0)) & ~self.random[span]]]
        count = len(variance)
        if count == 0:
            return
        inverse, logs = float((1 / variance).sum()), float(np.log(variance).sum())
        nu = self.freedom[number]
        # One pseudo-annotator with a noise sd of a fifth of the scale. What slopes say of it, by the stretch, is left
        # out: they say it of each annotator's own noise already.
        drawn = self.rng.standard_gamma((count * nu + nu) / 2) / (nu / 2 * (inverse + 1 / 0.04))
        s = self.usual_noise[number] = max(drawn, MIN_NOISE_VARIANCE)
        half = FREEDOM / 2
        fits = count * (half * np.log(half * s) - special.gammaln(half)) - (half + 1) * logs - half * s * inverse
        chances = np.exp(fits - fits.max())
        drawn = self.rng.choice(FREEDOM, p=chances / chances.sum())
        self.freedom[number] = drawn if self._telling(number, group) else FREEDOM[-1]

    def _move_together(self) -> None:
        """Shift all items against all biases, and stretch them against all slopes: single draws do so slowly."""
        first = self.evidence.groups[0]
        who = np.arange(first.first, first.last)
        if not self.own[who].all():
            return
        rng, slope = self.rng, self.slope[who]
        rated = self.rates[self.group]
        if first.rates:
            precision = slope / self._point_variance()[who]
            weight = float(precision @ slope) + 1 / MEAN_RATED[1]
            pull = float(precision @ (self.point[who] - self.origin)) + (MEAN_RATED[0] - self.mean) / MEAN_RATED[1]
            by = pull / weight + rng.standard_normal() / np.sqrt(weight)
            self.x += by
            self.mean += by
            self.point[rated] -= self.slope[rated] * by
            self.usual_point[1:] -= self.usual_slope[1:] * by
        step = 0.3 / np.sqrt(len(who)) * rng.standard_normal()
        times = np.exp(step)
        usual, spread = (prior[who] for prior in self._slope_prior())
        gain = float((((slope - usual) ** 2 - (slope / times - usual) ** 2) / (2 * spread)).sum()) - len(who) * step
        # The prior of the items' variance, and the free mean.
        guess, weight = self._items_prior()
        gain += step * (1 if first.rates else 0) - weight * step - weight * guess / 2 / self.variance * (times**-2 - 1)
        if first.rates:
            other = self.origin + (self.mean - self.origin) * times
            center, center_variance = MEAN_RATED
            gain += ((self.mean - center) ** 2 - (other - center) ** 2) / (2 * center_variance)
        if np.log(rng.random()) < gain:
            self.x = self.origin + (self.x - self.origin) * times
            self.mean = self.origin + (self.mean - self.origin) * times
            self.variance *= times**2
            self.slope /= times
            self.usual_slope[1:] /= times


def _stretched(ratio: FloatArray, stretch: FloatArray) -> FloatArray:
    """As `stretched`, for many."""
    return np.asarray(np.clip(ratio, LEAST_RATIO, 1 / LEAST_RATIO) ** (stretch / 2))


def _noise_density(variance: FloatArray, usual: float, freedom: float) -> FloatArray:
    """Return the log density of noise variances around a usual one (scaled inverse χ²), up to what all share."""
    half = freedom / 2
    density = half * np.log(half * usual) - special.gammaln(half) - half * np.log(variance) - half * usual / variance
    return np.asarray(density)
