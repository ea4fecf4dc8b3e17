"""The calibrated scale's Gibbs sampler: a chain of joint draws of items, annotators and populations.

The population of annotators is estimated with them (partial pooling): where answers show no differences, its
variance shrinks and the scores approach the mean rating; heavy tails accommodate the few who differ much (who answer
at random, or against the scale).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from steelyard.models.calibrated.evidence import GOLD_NOISE, Group
from steelyard.models.calibrated.gibbs_kernels import (
    MIN_NOISE_VARIANCE,
    MIN_RATIO,
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
from steelyard.models.calibrated.state import INTERCEPT_SD, RANDOM_PRIOR, SLOPE_SD, ChainState
from steelyard.observations import FloatArray

TAIL = 4.0
"""Degrees of freedom of the Student t distribution of intercepts and slopes."""

PRIOR_WEIGHT = 8.0
"""Weight of the prior guess of a population variance, in annotators."""

ITEMS_RATED, ITEMS_COMPARED = (0.1**2, 1.0), (1.0, 2.0)
"""Prior guess of the items' variance, and its weight in items. It is low on a rating scale of length 1, since a few
items, such as translation systems, may differ by a hundredth of it."""

MEAN_VARIANCE = 0.5**2
"""Prior variance of the rated items' population mean, around the mean of the ratings, on [0, 1].

Without this prior the posterior is improper where ratings do not vary, since then the slopes may be 0."""

FREEDOM = np.array([6.0, 12.0, 20.0, 40.0, 100.0])
"""Candidate degrees of freedom of the noise variances. Fewer would give an annotator with noise near 0 too much
weight, for instance one who answers 0 to everything."""

STRETCH = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
"""Candidate exponents of the relation between an annotator's noise and slope."""

RANDOM_SLOPE, RANDOM_NOISE, RANDOM_FREEDOM = 0.1, 0.1, 8.0
"""Annotators who answer at random: sd of the slope around 0, mean noise variance, and its degrees of freedom."""

MIN_SIGNAL = 0.1
"""Smallest ratio of the items' variance to a rating's noise variance at which annotators are weighted by noise."""

LAPSE_PRIOR = (0.5, 24.5)
"""Beta prior of the lapse rate in comparisons: mean 2 %, weight of 25 comparisons."""


@dataclass(slots=True, eq=False)
class Sums:
    """Totals over the draws of a chain.

    By item: the score, the location x, its square and its variance. By responder (`line`): intercept, slope, noise sd,
    lapse rate and whether random, and their squares. `population` holds by group the means of intercept, slope and
    noise variance, and the variance of intercepts.
    """

    count: int
    score: FloatArray
    middle: FloatArray
    middle_square: FloatArray
    spread: FloatArray
    line: FloatArray
    line_square: FloatArray
    population: FloatArray
    draws: FloatArray
    checks: tuple[str, ...] = ()
    """Posterior predictive checks, as notes."""

    @property
    def mean(self) -> FloatArray:
        """Posterior mean of every item's location."""
        return self.middle / self.count


class Chain(ChainState):
    """One chain; `rng` is its only source of randomness."""

    def run(self, burn_in: int, draws: int) -> Sums:
        """Discard `burn_in` sweeps, then draw; return the totals of the draws."""
        n_items, n_responders = len(self.x), len(self.intercept)
        sums = Sums(
            count=draws,
            score=np.zeros(n_items),
            middle=np.zeros(n_items),
            middle_square=np.zeros(n_items),
            spread=np.zeros(n_items),
            line=np.zeros((5, n_responders)),
            line_square=np.zeros((5, n_responders)),
            population=np.zeros(4 * len(self.evidence.groups)),
            draws=np.empty((draws, n_items)),
        )
        for sweep in range(burn_in + draws):
            self.sweep(sweep)
            if sweep >= burn_in:
                self._add(sums, sweep - burn_in)
        sums.checks = self.checks()
        return sums

    def checks(self) -> tuple[str, ...]:
        """Compare the answers with those the last draw predicts (posterior predictive checks)."""
        ratings, pairs = self.evidence.ratings, self.evidence.pairs
        checks: tuple[str, ...] = ()
        if len(ratings.item):
            who = np.repeat(np.arange(len(self.intercept)), np.diff(ratings.first))
            middle = self.intercept[who] + self.slope[who] * (self.x[ratings.item] - self.origin)
            middle += self.shift[ratings.shift]
            half = 1.96 * np.sqrt(self.noise[who])
            inside = (ratings.upper >= middle - half) & (ratings.lower <= middle + half)
            checks += (f"check: {100 * inside.mean():.1f} % of the ratings lie where the model expects 95 % of them",)
        decided = pairs.outcome != 0
        if decided.any():
            left, right, who = pairs.left[decided], pairs.right[decided], pairs.responder[decided]
            chance = special.ndtr(np.abs(self.slope[who] * (self.x[left] - self.x[right])))
            chance = self.lapse_rate[who] / 2 + (1 - self.lapse_rate[who]) * chance
            is_expected = np.sign(self.slope[who] * (self.x[left] - self.x[right])) == pairs.outcome[decided]
            expected = f"the likelier item is expected to win {100 * chance.mean():.1f} % of the decided comparisons"
            checks += (f"check: {expected}, and won {100 * is_expected.mean():.1f} %",)
        return checks

    def _add(self, sums: Sums, draw: int) -> None:
        sums.score += self.score(self.middle, self.spread)
        sums.middle += self.middle
        sums.middle_square += self.middle**2
        sums.spread += self.spread
        sums.draws[draw] = self.score(self.x, np.zeros(len(self.x)))
        line = np.array(
            [
                self.intercept - self.mean_intercept[self.group],
                self.slope,
                np.sqrt(self.noise),
                self.lapse_rate,
                self.random,
            ]
        )
        sums.line += line
        sums.line_square += line**2
        population = (self.mean_intercept, self.mean_slope, self.mean_noise, self.intercept_variance)
        sums.population += np.concatenate(population)

    def sweep(self, sweep: int) -> None:
        """Draw every block once, given all others; `sweep` counts the sweeps so far."""
        ratings, pairs, tuples = self.evidence.ratings, self.evidence.pairs, self.evidence.tuples
        rng = self.rng
        items, responders = self._items(), self._responders()
        sums = ResponderSums(*np.zeros((3, len(self.intercept))))
        if len(ratings.item):
            draw_ratings(rng, ratings, self.response, items, responders)
        if self.margin > 0:
            self._draw_margin(sweep)
        answers = PairAnswers(self.pair_response, self.lapsed, self.margin)
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
        return Responders(self.intercept, self.slope, self.noise, self.lapse_rate, self.shift)

    def _expected_slope(self) -> FloatArray:
        """Return the slope expected from the noise of every responder who does not answer at random."""
        ratio = np.where(self.rates[self.group], self.noise / self.mean_noise[self.group], 1.0)
        return np.asarray(self.mean_slope[self.group] * _stretched(ratio, self.stretch[self.group]))

    def _slope_prior(self) -> tuple[FloatArray, FloatArray]:
        """Return the prior mean and variance of every responder's slope, given whether they answer at random."""
        spread = np.where(self.random, RANDOM_SLOPE**2, self.slope_variance[self.group] / self.tail)
        mean = np.where(self.random, 0.0, self._expected_slope())
        return mean, spread * self.mean_slope[self.group] ** 2

    def _intercept_variance(self) -> FloatArray:
        return self.intercept_variance[self.group] / self.tail

    def _draw_raters(self) -> None:
        ratings, g = self.evidence.ratings, self.group
        if len(self.shift) > 1:
            sums = ShiftSums(self.shift_variance, *self._shift_sums)
            draw_shifts(self.rng, ratings, self.response, self._items(), self._responders(), sums)
            n = len(self.shift) - 1
            self.shift_variance = self._variance(float((self.shift**2).sum()), n, 0.03**2)
        mean_noise = np.where(self.random, RANDOM_NOISE, self.mean_noise[g])
        freedom = np.where(self.random, RANDOM_FREEDOM, self.freedom[g])
        is_gold = self.evidence.gold
        prior = RaterPrior(
            ~self.own,
            self.mean_intercept[g],
            np.where(self.random, 0.0, self.mean_slope[g]),
            self._intercept_variance(),
            self._slope_prior()[1],
            np.where(is_gold, GOLD_NOISE**2, mean_noise),
            np.where(is_gold, 1e6, freedom),
            np.where(self.random | is_gold, 0.0, self.stretch[g]),
        )
        draw_raters(self.rng, ratings, self.response, self._items(), prior, self._responders())

    def _draw_judges(self, sums: ResponderSums) -> None:
        """Draw the slopes and lapse rates of responders who compare."""
        judges = ~self.rates[self.group]
        if not judges.any():
            return
        prior_mean, variance = self._slope_prior()
        precision = sums.square[judges] + 1 / variance[judges]
        middle = (sums.cross[judges] + prior_mean[judges] / variance[judges]) / precision
        draw = middle + self.rng.standard_normal(len(middle)) / np.sqrt(precision)
        self.slope[judges] = np.where(self.own[judges], draw, prior_mean[judges])
        compared = np.bincount(self.evidence.pairs.responder, minlength=len(self.slope))
        self.lapse_rate = self.rng.beta(LAPSE_PRIOR[0] + sums.lapses, LAPSE_PRIOR[1] + compared - sums.lapses)

    def _draw_margin(self, sweep: int) -> None:
        """Update the tie margin by a Metropolis–Hastings step."""
        pairs = self.evidence.pairs
        state = (pairs, self._items(), self._responders())
        other = self.margin * float(np.exp(self._margin_step * self.rng.standard_normal()))
        gain = margin_likelihood(*state, other) - margin_likelihood(*state, self.margin)
        # A log-normal prior around 0.4 keeps it in place where there are few ties.
        gain += (np.log(self.margin / 0.4) ** 2 - np.log(other / 0.4) ** 2) / 2
        is_accepted = bool(np.log(self.rng.random()) < gain)
        self.margin = other if is_accepted else self.margin
        self._margin_step *= float(np.exp((is_accepted - 0.4) / (1 + sweep) ** 0.6))

    def _variance(self, squares: float, count: float, guess: float, weight: float = PRIOR_WEIGHT) -> float:
        """Draw a variance, given a sum of squares and a prior guess with a weight in observations."""
        return float((squares + weight * guess) / 2 / self.rng.standard_gamma((count + weight) / 2))

    def _items_prior(self) -> tuple[float, float]:
        """Return the prior guess of the items' variance, and its weight in items."""
        return ITEMS_RATED if self.rates[0] else ITEMS_COMPARED

    def _draw_population(self) -> None:
        """Draw the population parameters of items and of the responders of each group."""
        n = len(self.x)
        if self.rates[0]:
            precision = n / self.variance + 1 / MEAN_VARIANCE
            expected = (float(self.x.sum()) / self.variance + self.origin / MEAN_VARIANCE) / precision
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
                factor = self._expected_slope()[who] / self.mean_slope[number]
                precision = float((tail * factor**2).sum())
                sd = np.sqrt(self.slope_variance[number] / precision) * self.mean_slope[number]
                mean_slope = float((tail * factor * slope).sum() / precision + sd * rng.standard_normal())
                self.mean_slope[number] = mean_slope if mean_slope > 1e-3 else self.mean_slope[number]
            if number > 0 and group.rates:
                sd = np.sqrt(self.intercept_variance[number] / tail.sum())
                self.mean_intercept[number] = (
                    tail * self.intercept[who]
                ).sum() / tail.sum() + sd * rng.standard_normal()
            far, relative, off = self._off(number, group, who)
            if self._is_informative(number, group):
                unknowns = 2 if group.rates else 1
                tail = rng.standard_gamma((TAIL + unknowns) / 2, len(who)) / ((TAIL + far) / 2)
                self.slope_variance[number] = self._variance(float(tail @ relative**2), len(who), SLOPE_SD**2)
            else:
                tail, self.slope_variance[number] = np.ones(len(who)), SLOPE_SD**2
            self.tail[who] = tail
            if group.rates:
                self.intercept_variance[number] = self._variance(float(tail @ off**2), len(who), INTERCEPT_SD**2)
        self._draw_noise(number, group)

    def _draw_stretch(self, number: int, who: NDArray[np.int64]) -> None:
        """Draw the exponent that relates noise to slope: 0, unrelated, to 1, as if answers were stretched."""
        ratio = self.noise[who] / self.mean_noise[number]
        expected = _stretched(ratio, STRETCH[:, None])
        off = self.slope[who] / self.mean_slope[number] - expected
        fits = -(self.tail[who] * off**2).sum(axis=1) / (2 * self.slope_variance[number])
        chances = np.exp(fits - fits.max())
        self.stretch[number] = self.rng.choice(STRETCH, p=chances / chances.sum())

    def _off(self, number: int, group: Group, who: NDArray[np.int64]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how far responders are from the population mean: in all, in slope and in intercept."""
        relative = (self.slope[who] - self._expected_slope()[who]) / self.mean_slope[number]
        off = self.intercept[who] - self.mean_intercept[number] if group.rates else np.zeros(len(who))
        far = relative**2 / self.slope_variance[number]
        return far + (off**2 / self.intercept_variance[number] if group.rates else 0.0), relative, off

    def _draw_random(self, number: int, group: Group, who: NDArray[np.int64]) -> None:
        """Draw which responders answer at random, from their slopes and noise.

        Biases are not used: where items hardly differ, a strict annotator must not be classified as random.
        """
        relative = self._off(number, group, who)[1]
        slope = self.slope[who] / self.mean_slope[number]
        share, spread = self.random_rate[number], self.slope_variance[number]
        # Student's t for the others, Gaussian for these; up to 1/√2π.
        regular = np.log1p(-share) - (TAIL + 1) / 2 * np.log1p(relative**2 / (TAIL * spread))
        regular -= np.log(spread * TAIL / 2) / 2
        regular += special.gammaln((TAIL + 1) / 2) - special.gammaln(TAIL / 2)
        random = np.log(share) - slope**2 / (2 * RANDOM_SLOPE**2) - np.log(RANDOM_SLOPE)
        if group.rates:
            noise = self.noise[who]
            regular += _noise_density(noise, self.mean_noise[number], self.freedom[number])
            random += _noise_density(noise, RANDOM_NOISE, RANDOM_FREEDOM)
        is_random = (self.rng.random(len(who)) < special.expit(random - regular)) & self._is_informative(number, group)
        # At least one responder of the ratings that set the scale uses it: if all answered at random, the items
        # could lie anywhere. An impossible proposal is rejected (Metropolis–Hastings).
        if not (number == 0 and group.rates and is_random.all()):
            self.random[who] = is_random
        self.tail[who[self.random[who]]] = 1.0
        count = int(self.random[who].sum())
        self.random_rate[number] = self.rng.beta(RANDOM_PRIOR[0] + count, RANDOM_PRIOR[1] + len(who) - count)

    def _is_informative(self, number: int, group: Group) -> bool:
        """Return whether items differ enough, relative to the noise of a rating, to weight annotators by their noise.

        Where they do not, as among the best translation systems, an annotator whose answers vary little may merely use
        little of the scale; weighting by noise, or classifying some as random, makes scores worse then.
        """
        if not group.rates:
            return True
        ratings = np.diff(self.evidence.ratings.first)[group.responders]
        # Of all responders, also the random ones: otherwise classifying many as random would make the rest informative.
        noise = float(ratings @ self.noise[group.responders]) / max(float(ratings.sum()), 1.0)
        return bool(self.variance * self.mean_slope[number] ** 2 > MIN_SIGNAL * noise)

    def _draw_noise(self, number: int, group: Group) -> None:
        """Draw a group's mean noise and its degrees of freedom."""
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
        mean_noise = self.rng.standard_gamma((count * nu + nu) / 2) / (nu / 2 * (inverse + 1 / 0.04))
        s = self.mean_noise[number] = max(mean_noise, MIN_NOISE_VARIANCE)
        half = FREEDOM / 2
        fits = count * (half * np.log(half * s) - special.gammaln(half)) - (half + 1) * logs - half * s * inverse
        chances = np.exp(fits - fits.max())
        freedom = self.rng.choice(FREEDOM, p=chances / chances.sum())
        self.freedom[number] = freedom if self._is_informative(number, group) else FREEDOM[-1]

    def _move_together(self) -> None:
        """Shift all items against all intercepts, and scale them against all slopes, which mix slowly otherwise."""
        first = self.evidence.groups[0]
        who = np.arange(first.first, first.last)
        if not self.own[who].all():
            return
        rng, slope = self.rng, self.slope[who]
        rated = self.rates[self.group]
        if first.rates:
            precision = slope / self._intercept_variance()[who]
            weight = float(precision @ slope) + 1 / MEAN_VARIANCE
            pull = float(precision @ (self.intercept[who] - self.origin)) + (self.origin - self.mean) / MEAN_VARIANCE
            by = pull / weight + rng.standard_normal() / np.sqrt(weight)
            self.x += by
            self.mean += by
            self.intercept[rated] -= self.slope[rated] * by
            self.mean_intercept[1:] -= self.mean_slope[1:] * by
        step = 0.3 / np.sqrt(len(who)) * rng.standard_normal()
        times = np.exp(step)
        prior_mean, prior_variance = (prior[who] for prior in self._slope_prior())
        squares = (slope - prior_mean) ** 2 - (slope / times - prior_mean) ** 2
        gain = float((squares / (2 * prior_variance)).sum()) - len(who) * step
        # The prior of the items' variance, and the free mean.
        guess, weight = self._items_prior()
        gain += step * (1 if first.rates else 0) - weight * step - weight * guess / 2 / self.variance * (times**-2 - 1)
        if first.rates:
            other = self.origin + (self.mean - self.origin) * times
            gain += ((self.mean - self.origin) ** 2 - (other - self.origin) ** 2) / (2 * MEAN_VARIANCE)
        if np.log(rng.random()) < gain:
            self.x = self.origin + (self.x - self.origin) * times
            self.mean = self.origin + (self.mean - self.origin) * times
            self.variance *= times**2
            self.slope /= times
            self.mean_slope[1:] /= times


def _stretched(ratio: FloatArray, stretch: FloatArray) -> FloatArray:
    """Apply `stretched` to arrays."""
    return np.asarray(np.clip(ratio, MIN_RATIO, 1 / MIN_RATIO) ** (stretch / 2))


def _noise_density(variance: FloatArray, mean: float, freedom: float) -> FloatArray:
    """Return the log density of noise variances (scaled inverse χ²) up to a constant."""
    half = freedom / 2
    density = half * np.log(half * mean) - special.gammaln(half) - half * np.log(variance) - half * mean / variance
    return np.asarray(density)
