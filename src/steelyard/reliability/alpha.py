"""Krippendorff's α for nominal, ordinal, interval and ratio values, with missing answers and repeats."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ConfigError, did_you_mean
from steelyard.observations import FloatArray
from steelyard.reliability.bootstrap import Bootstrap, Names, Seed, SumStatistic, WeightedStatistic
from steelyard.reliability.statistic import Statistic
from steelyard.reliability.units import Codes, Counts, Units

RATIO_LIMIT = 10_000
"""Distinct values beyond which the ratio metric, quadratic in them, is not computed."""

_CHUNK = 256
_FLAT = 1e-12


def _alpha(observed: FloatArray, expected: FloatArray) -> FloatArray:
    """Return 1 - Dₒ/Dₑ, NaN if no disagreement is possible."""
    varies = expected > _FLAT
    alpha: FloatArray = np.where(varies, 1 - observed / np.where(varies, expected, 1), np.nan)
    return alpha


def _over(part: FloatArray, whole: FloatArray) -> FloatArray:
    share: FloatArray = np.where(whole > 0, part / np.where(whole > 0, whole, 1), 0.0)
    return share


def _disagreement(units: Units) -> FloatArray:
    """Return each unit's mean disagreement of pairs, times its number of answers."""
    return (units.pairs - units.agreeing()) * units.answers / units.pairs


def nominal_alpha(units: Units) -> WeightedStatistic:
    """Return α with δ² = 1 for different values; O(N)."""
    return _nominal(units, lambda count: (count**2).sum(axis=0))


def mirrored_alpha(units: Units) -> WeightedStatistic:
    """Return nominal α of outcomes that change sign when the order of their pair is reversed.

    The expected disagreement counts each pair in both orders, so that it does not depend on which of its
    items is listed first: Σ ((n_v + n_-v)/2)² = (Σ n_v² + Σ n_v n_-v) / 2.
    """
    place = np.minimum(np.searchsorted(units.values, -units.values), len(units.values) - 1)
    present = (units.values[place] == -units.values)[:, None]

    def equal(count: FloatArray) -> FloatArray:
        total: FloatArray = (count**2 + count * np.where(present, count[place], 0)).sum(axis=0) / 2
        return total

    return _nominal(units, equal)


def _nominal(units: Units, equal: Callable[[FloatArray], FloatArray]) -> WeightedStatistic:
    disagreement = _disagreement(units)
    by_value = units.counts.T.tocsr()

    def function(weights: FloatArray) -> FloatArray:
        total = units.answers @ weights
        differing = total**2 - equal(by_value @ weights)
        return _alpha(_over(disagreement @ weights, total), _over(differing, total * (total - 1)))

    return function


def options_alpha(units: Units, options: FloatArray) -> WeightedStatistic:
    """Return nominal α for units with their own numbers of `options`, shape (U,), all equally likely by chance.

    Pooling the values would make chance agreement almost zero, because units do not share their options. Chance is
    known here rather than estimated from the answers, so Dₑ has no factor n/(n - 1) for sampling without replacement.
    """
    disagreement = _disagreement(units)
    differing = units.answers * (1 - 1 / options)

    def alpha(sums: FloatArray) -> FloatArray:
        total, observed, expected = sums
        return _alpha(_over(observed, total), _over(expected, total))

    return SumStatistic((units.answers, disagreement, differing), alpha)


def interval_alpha(units: Units) -> WeightedStatistic:
    """Return α with δ² = (x - y)², from sums and sums of squares per unit; O(N), whatever the values."""
    low, high = float(units.answer.min()), float(units.answer.max())
    first, second, spread = units.moments((units.answer - low) / ((high - low) or 1.0) - 0.5)

    def alpha(sums: FloatArray) -> FloatArray:
        total, disagreement, x, xx = sums
        differing = 2 * (total * xx - x**2)
        return _alpha(_over(disagreement, total), _over(differing, total * (total - 1)))

    return SumStatistic((units.answers, spread * units.answers / units.pairs, first, second), alpha)


def ordinal_alpha(units: Units) -> WeightedStatistic:
    """Return α with δ² = (Σ_{g=x…y} n_g - (n_x + n_y)/2)²; O(N) for each replicate.

    That sum is the difference of the values' midranks in the pooled answers, so this is the interval
    metric on midranks, which are recomputed in each replicate.
    """
    by_value = units.counts.T.tocsr()
    factor = units.answers / units.pairs

    def function(weights: FloatArray) -> FloatArray:
        count = by_value @ weights
        total = count.sum(axis=0)
        rank = _over(np.cumsum(count, axis=0) - count / 2, total) - 0.5
        disagreement = (units.spread(rank) * factor[:, None] * weights).sum(axis=0)
        differing = 2 * (total * (count * rank**2).sum(axis=0) - (count * rank).sum(axis=0) ** 2)
        return _alpha(_over(disagreement, total), _over(differing, total * (total - 1)))

    return function


def mirrored_ordinal_alpha(units: Units) -> WeightedStatistic:
    """Return ordinal α of grades that change sign when the order of their pair is reversed.

    As `ordinal_alpha`, with the pooled answers counted in both orders: n_v becomes (n_v + n_-v)/2, so that midranks
    and expected disagreement do not depend on which item of a pair is listed first.
    """
    grades = np.unique(np.concatenate([units.values, -units.values]))
    place = np.searchsorted(grades, units.values)
    by_value = units.counts.T.tocsr()
    factor = units.answers / units.pairs

    def function(weights: FloatArray) -> FloatArray:
        count = np.zeros((len(grades), weights.shape[1]))
        count[place] = by_value @ weights
        # The grades are symmetric about 0, so that reversing them changes their sign.
        both = (count + count[::-1]) / 2
        total = both.sum(axis=0)
        rank = _over(np.cumsum(both, axis=0) - both / 2, total) - 0.5
        disagreement = (units.spread(rank[place]) * factor[:, None] * weights).sum(axis=0)
        differing = 2 * total * (both * rank**2).sum(axis=0)
        return _alpha(_over(disagreement, total), _over(differing, total * (total - 1)))

    return function


def ratio_alpha(units: Units) -> WeightedStatistic:
    """Return α with δ² = ((x - y)/(x + y))², for values ≥ 0.

    Time is Σ d² over the units' numbers d of distinct values, plus V² for the V distinct values in all;
    memory stays linear in the answers and in V.
    """
    values = units.values
    disagreement = units.over_pairs(lambda counts: _ratio_pairs(counts, values)) * units.answers / units.pairs
    by_value = units.counts.T.tocsr()

    def function(weights: FloatArray) -> FloatArray:
        total = units.answers @ weights
        count = by_value @ weights
        differing = np.zeros(weights.shape[1])
        for start in range(0, len(values), _CHUNK):
            part = slice(start, start + _CHUNK)
            differing += (count[part] * (_ratio(values[part, None], values) @ count)).sum(axis=0)
        return _alpha(_over(disagreement @ weights, total), _over(differing, total * (total - 1)))

    return function


def _ratio(x: FloatArray, y: FloatArray) -> FloatArray:
    total = x + y
    ratio: FloatArray = ((x - y) / np.where(total > 0, total, 1.0)) ** 2
    return ratio


def _ratio_pairs(counts: Counts, values: FloatArray) -> FloatArray:
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    value, times = values[counts.indices], counts.data
    total = np.zeros(counts.shape[0])
    first = np.arange(len(row))
    step = 0
    while len(first):
        step += 1
        first = first[first + step < len(row)]
        first = first[row[first] == row[first + step]]
        second = first + step
        distance = times[first] * times[second] * _ratio(value[first], value[second])
        total += np.bincount(row[first], distance, counts.shape[0])
    return total


METRICS: dict[str, Callable[[Units], WeightedStatistic]] = {
    "nominal": nominal_alpha,
    "ordinal": ordinal_alpha,
    "interval": interval_alpha,
    "ratio": ratio_alpha,
}


def krippendorff_alpha(
    unit: ArrayLike,
    value: ArrayLike,
    metric: str = "interval",
    *,
    annotator: ArrayLike | None = None,
    seed: Seed = 0,
    replicates: int = 200,
    level: float = 0.95,
) -> Statistic:
    """Compute Krippendorff's α = 1 - Dₒ/Dₑ, with an interval resampled over units.

    Dₒ = (1/n) Σ_u m_u · (mean δ² over the pairs of unit u) and Dₑ = mean δ² over all pairs of the n pooled
    answers; units with a single answer are left out. Krippendorff (2011), "Computing Krippendorff's
    Alpha-Reliability". Missing answers are left out.

    Parameters
    ----------
    unit
        Integer code of the judged unit, one per answer.
    value
        The answers; for the nominal metric any numbers that code the classes.
    metric
        ``nominal``, ``ordinal``, ``interval`` or ``ratio``. All are linear in the answers (after sorting),
        but ratio is also quadratic in the distinct values, of which it takes at most 10,000.
    annotator
        Integer code of the annotator, -1 for unknown. Two answers by one annotator to one unit form no pair.
    seed, replicates, level
        Settings of the interval; 0 replicates for none.
    """
    if metric not in METRICS:
        raise ConfigError(f"unknown metric '{metric}'.", did_you_mean(metric, list(METRICS)))
    return alpha_statistic(
        Units.of(unit, value, annotator), metric, Bootstrap.of(seed, replicates, level), unit="units"
    )


def alpha_statistic(
    units: Units, metric: str, bootstrap: Bootstrap, *, unit: str, names: Names | None = None
) -> Statistic:
    """Compute α of grouped answers; `unit` is the name of the units."""
    name = f"alpha_{metric}"
    if metric == "ratio" and len(units) and units.answer.min() < 0:
        return Statistic(name, None, n=len(units), note="undefined: the ratio metric needs values ≥ 0")
    if metric == "ratio" and len(units.values) > RATIO_LIMIT:
        why = f"not computed: {len(units.values):,} distinct values; round them to at most {RATIO_LIMIT:,}"
        return Statistic(name, None, n=len(units), note=why)
    return statistic_of_units(name, METRICS[metric], units, bootstrap, unit=unit, names=names)


def statistic_of_units(
    name: str,
    function: Callable[[Units], WeightedStatistic],
    units: Units,
    bootstrap: Bootstrap,
    *,
    unit: str,
    note: str = "",
    low: float = -np.inf,
    high: float = 1.0,
    cluster: Codes | None = None,
    names: Names | None = None,
) -> Statistic:
    """Compute a statistic over units, undefined if none has two answers; `cluster` holds each unit's cluster code."""
    if not len(units):
        return Statistic(name, None, note=f"undefined: none of the {unit} was answered by two annotators")
    basis = f"{int(units.answers.sum()):,} answers, {int(units.pairs.sum()):,} pairs of them"
    return bootstrap.statistic(
        name,
        function(units),
        len(units) if cluster is None else int(cluster.max()) + 1,
        unit=unit,
        note=f"{basis}; {note}" if note else basis,
        undefined="undefined: all answers are the same, so no disagreement is possible",
        low=low,
        high=high,
        cluster=cluster,
        names=names,
    )
