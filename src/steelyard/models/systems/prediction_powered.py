"""Prediction-powered means: a judge scores every item, people a random sample of them, and the interval is still valid.

The estimate is θ̂ = mean over people's items of (y − λf) + λ · mean of f over the other items (PPI++, Angelopoulos,
Duchi & Zrnic 2023), where y is people's score of an item and f the judge's. λ minimises the variance, and is shrunk as
far as chance could have produced it: a judge who is useless gets λ = 0, and the estimate is that of people alone. With
known probabilities of being judged by people the estimate is the augmented inverse-probability weighted one (AIPW,
Robins, Rotnitzky & Zhao 1994).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import special

from steelyard.errors import DataError
from steelyard.observations import FloatArray

MIN_HUMAN = 10
"""Minimum number of items with people's judgments: fewer say too little about the judge's errors."""
MIN_IN_STRATUM = 5
"""A stratum with fewer judged items is merged with its neighbour: its variance cannot be estimated."""
NOT_RANDOM = 1e-3
"""p-value below which people's items differ too much from the others to be a random sample."""

EQUAL_ERRORS = 0.05
"""p-value below which the judge's errors differ between strata, so that people are asked with unequal probabilities."""
PERMUTATIONS = 400

IntervalKind = Literal["t", "normal"]


@dataclass(frozen=True, slots=True)
class PoweredMean:
    """A mean with its interval; `weight` is λ, `people_only` the half-width with people alone.

    `saving` is the proportion of people's judgments that the judge replaces: people alone would need
    n / (1 − saving) items for the same precision.
    """

    value: float
    lower: float
    upper: float
    weight: float
    human_items: int
    items: int
    correlation: float
    people_mean: float
    people_half_width: float

    @property
    def half_width(self) -> float:
        """Half of the interval's width."""
        return (self.upper - self.lower) / 2

    @property
    def saving(self) -> float:
        """The proportion of human judgments saved, from the ratio of the variances."""
        if not self.people_half_width:
            return 0.0
        return 1 - (self.half_width / self.people_half_width) ** 2


def expected_saving(correlation: float, human_items: int, items: int) -> float:
    """Return the proportion of human judgments that a judge will save: ρ² · N/(n + N), N items without people.

    Use it before money is spent: `correlation` is that of judge and people in a pilot, or of an earlier study.
    """
    others = max(0, items - human_items)
    return float(correlation**2 * others / max(1, human_items + others))


def optimal_weight(y: FloatArray, f: FloatArray, f_other: FloatArray, *, clip: bool = False) -> float:
    """Return λ = Cov(y, f) / ((1 + n/N) Var(f)) (Angelopoulos, Duchi & Zrnic 2023, Section 6); `clip`: within 0 and 1.

    Without `clip` the judge may be on another scale than people, and a reversed judge helps as a good one does.
    """
    n, others = len(y), len(f_other)
    if not others:
        return 0.0
    covariance = float(np.mean((y - y.mean()) * (f - f.mean())))
    variance = float(np.var(np.concatenate([f, f_other]), ddof=1))
    if variance <= 0:
        return 0.0
    weight = covariance / ((1 + n / others) * variance)
    return float(np.clip(weight, 0, 1)) if clip else weight


def powered_mean(
    y: FloatArray,
    f: FloatArray,
    f_other: FloatArray,
    *,
    level: float = 0.95,
    folds: int = 0,
    interval: IntervalKind = "t",
    weight: float | None = None,
    clip: bool = False,
) -> PoweredMean:
    """Estimate the mean of all items from people's scores `y` of a random sample of them.

    Parameters
    ----------
    y, f
        People's and the judge's scores of the same items.
    f_other
        The judge's scores of the items that people did not judge.
    level
        The level of the interval.
    folds
        0: λ is estimated from all of `y` (plug-in), as the reference implementation does. 2 or more: each fold's λ
        comes from the other folds (cross-fitting).
    interval
        `t`: variances with n − 1, and Student's t with the degrees of freedom of Welch and Satterthwaite. `normal`: as
        in the reference implementation, for large samples.
    weight
        λ, if it is given rather than estimated.
    clip
        Whether λ is kept within 0 and 1, as in the reference implementation, for judges on people's scale.
    """
    y, f, f_other = (np.asarray(array, np.float64) for array in (y, f, f_other))
    _check_scores(y, f, f_other)
    if weight is not None:
        weights = np.full(len(y), weight)
    elif folds >= 2:
        weights = _fold_weights(y, f, f_other, folds, clip)
    else:
        chosen = optimal_weight(y, f, f_other, clip=clip)
        # The reference implementation does not shrink.
        weights = np.full(len(y), chosen * (_established(y, f) if interval == "t" else 1.0))
    mean_weight = float(weights.mean())
    imputed = mean_weight * f_other
    rectifier = y - weights * f
    value = float((imputed.mean() if len(f_other) else 0.0) + rectifier.mean())
    ddof = 1 if interval == "t" else 0
    # Where λ was estimated, the residuals are those of a regression with two parameters.
    fitted = ddof + (interval == "t" and weight is None and len(f_other) > 0)
    half = _half_width([(imputed, ddof), (rectifier, fitted)], level, interval)
    people_half = _half_width([(y, ddof)], level, interval)
    if interval == "t" and weight is None and half > people_half:
        value, half, mean_weight = float(y.mean()), people_half, 0.0
    return PoweredMean(
        value,
        value - half,
        value + half,
        mean_weight,
        len(y),
        len(y) + len(f_other),
        _correlation(y, f),
        float(y.mean()),
        people_half,
    )


def stratified_mean(
    y: FloatArray,
    f: FloatArray,
    strata: np.ndarray[Any, Any],
    f_other: FloatArray,
    strata_other: np.ndarray[Any, Any],
    *,
    level: float = 0.95,
) -> PoweredMean:
    """Estimate the mean stratum by stratum, each with the weight of its items; people's items are random within each.

    Neighbouring strata are merged until each has enough of people's items. One λ serves all strata, estimated from
    deviations within strata, so that small strata do not inflate the variance. If people judged the same fraction of
    each stratum, the interval is never wider than that of the same items without strata.
    """
    y, f, f_other = (np.asarray(array, np.float64) for array in (y, f, f_other))
    _check_scores(y, f, f_other)
    own, other = _merged_strata(strata, strata_other)
    codes = np.unique(own)
    sizes = np.array([(own == c).sum() + (other == c).sum() for c in codes], np.float64)
    share = sizes / sizes.sum()
    within = [array - np.array([array[own == c].mean() for c in range(len(codes))])[own] for array in (y, f)]
    weight = _stratified_weight(y, f, own, f_other, other, codes, share) * _established(*within)
    strata_of = [(part, own == c, other == c) for c, part in zip(codes, share, strict=True)]
    powered, alone = (_stratified_sum(y, f, f_other, strata_of, one, level) for one in (weight, 0.0))
    if _is_proportional(own, sizes):
        # The strata remove variance or none, so the interval without them holds too; with strata that tell nothing it
        # is often the narrower one, as its variance has more degrees of freedom.
        powered, alone = (
            sums._replace(half=min(sums.half, _pooled_half(y, f, f_other, one, level)))
            for sums, one in ((powered, weight), (alone, 0.0))
        )
    if powered.half > alone.half:
        powered, weight = alone, 0.0
    value, half = powered.value, powered.half
    total = len(y) + len(f_other)
    return PoweredMean(
        value, value - half, value + half, weight, len(y), total, _correlation(y, f), alone.value, alone.half
    )


def _is_proportional(own: np.ndarray[Any, Any], sizes: FloatArray) -> bool:
    """Tell whether people judged the same fraction of every stratum, apart from rounding."""
    expected = len(own) * sizes / sizes.sum()
    return bool((np.abs(np.bincount(own, minlength=len(sizes)) - expected) < 1).all())


def _pooled_half(y: FloatArray, f: FloatArray, f_other: FloatArray, weight: float, level: float) -> float:
    """Return the half-width without strata, given λ."""
    if weight == 0 or not len(f_other):
        return _half_width([(y, 1)], level, "t")
    return _half_width([(weight * f_other, 1), (y - weight * f, 2)], level, "t")


class _StratifiedSum(NamedTuple):
    value: float
    half: float


def _stratified_sum(
    y: FloatArray,
    f: FloatArray,
    f_other: FloatArray,
    strata: Sequence[tuple[float, np.ndarray[Any, Any], np.ndarray[Any, Any]]],
    weight: float,
    level: float,
) -> _StratifiedSum:
    """Add up the estimates of the strata, given λ; each stratum is its share, people's items and the other items."""
    value = variance = freedom = squares = noise = 0.0
    for part, own, other in strata:
        rectifier, imputed = (y - weight * f)[own], weight * f_other[other]
        if not len(imputed) or weight == 0:
            # People judged everything in the stratum, or the judge is of no use.
            rectifier, imputed = y[own], imputed[:0]
        mean = float(rectifier.mean() + (imputed.mean() if len(imputed) else 0.0))
        one = rectifier.var(ddof=1) / len(rectifier) + (imputed.var(ddof=1) / len(imputed) if len(imputed) > 1 else 0.0)
        value += part * mean
        squares += part * mean**2
        noise += part * one
        variance += part**2 * one
        freedom += (part**2 * one) ** 2 / (len(rectifier) - 1)
    # The items stand for a larger population, in which the strata may have other sizes. The means of the strata differ
    # by chance too, which is taken off.
    between = max(0.0, squares - value**2 - (noise - variance)) / (len(y) + len(f_other))
    quantile = float(special.stdtrit(variance**2 / freedom if freedom > 0 else len(y) - 1, (1 + level) / 2))
    return _StratifiedSum(value, quantile * float(np.sqrt(variance + between)))


def weighted_mean(
    y: FloatArray, f: FloatArray, judged: np.ndarray[Any, Any], propensity: FloatArray, *, level: float = 0.95
) -> PoweredMean:
    """Estimate the mean if each item was judged by people with a known probability (AIPW).

    `y` (ignored where not `judged`), `f`, `judged` and `propensity` are of all items. Propensities are those with which
    the items were drawn, logged before the answers were known.
    """
    y, f, propensity = (np.asarray(array, np.float64) for array in (y, f, propensity))
    judged = np.asarray(judged, bool)
    if not ((propensity > 0) & (propensity <= 1)).all():
        raise DataError(
            "the probability of being judged by people is 0 or above 1 for some items.",
            "Give every item a positive probability of being asked; otherwise no interval is valid.",
        )
    _check_scores(y[judged], f[judged], f[~judged])
    share = judged / propensity
    # Hájek's form: weights are divided by their sum, which is far more precise than by the number of items.
    people_mean = float((share * np.where(judged, y, 0.0)).sum() / share.sum())
    own = np.where(judged, y - people_mean, 0.0)
    centred = f - f.mean()
    weight = _weighted_lambda(own, centred, share) * _established(share * own, centred * (1 - share))
    corrections = weight * centred + share * (own - weight * centred)
    quantile = float(special.stdtrit(judged.sum() - 1, (1 + level) / 2))
    count = int(judged.sum())
    # The mean and λ were estimated from the items that people judged, hence count − 2 and count − 1.
    half = quantile * float(corrections.std()) / np.sqrt(len(y)) * np.sqrt(count / (count - 2))
    people_half = quantile * float((share * own).std()) / np.sqrt(len(y)) * np.sqrt(count / (count - 1))
    value = people_mean + float(corrections.mean())
    if half > people_half:
        value, half, weight = people_mean, people_half, 0.0
    correlation = _correlation(y[judged], f[judged])
    return PoweredMean(value, value - half, value + half, weight, count, len(y), correlation, people_mean, people_half)


def sampling_probabilities(
    errors: FloatArray, error_strata: np.ndarray[Any, Any], strata: np.ndarray[Any, Any], count: int
) -> FloatArray:
    """Return the probability of asking people about each item, in proportion to the judge's error in its stratum.

    `errors` are people's scores minus the judge's in a pilot, and `error_strata` the strata of these items. The
    probabilities differ only if the errors' variances differ between strata by more than chance (a permutation test at
    5 %): unequal probabilities that follow noise would widen the interval. Differences are shrunk as far as they can be
    chance (empirical Bayes), and no probability is less than half of the uniform one. About `count` items are drawn.
    """
    centred = np.asarray(errors, np.float64) - np.mean(errors)
    codes = np.unique(strata)
    members = [np.flatnonzero(error_strata == code) for code in codes]
    is_known = np.array([len(rows) > 1 for rows in members])
    sd = np.ones(len(codes))
    if is_known.sum() > 1 and centred.any():
        # The same errors in random order show by how much the variances of strata differ by chance.
        shuffled = np.random.default_rng(0).permuted(np.tile(centred, (PERMUTATIONS, 1)), axis=1)
        logs = np.column_stack(
            [_log_variances(np.vstack([centred, shuffled])[:, rows]) for rows in members if len(rows) > 1]
        )
        spread, *by_chance = logs.var(axis=1, ddof=1).tolist()
        if np.mean(np.array(by_chance) >= spread) < EQUAL_ERRORS:
            keep = max(0.0, 1 - float(np.mean(by_chance)) / spread)
            sd[is_known] = np.exp(keep * (logs[0] - logs[0].mean()) / 2)
    share = 0.5 + 0.5 * (sd / sd.mean())[np.searchsorted(codes, strata)]
    return np.asarray(np.minimum(1.0, share * count / share.sum()), np.float64)


def _log_variances(errors: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(errors.var(axis=1, ddof=1), 1e-12)))


def check_random(f: FloatArray, f_other: FloatArray, name: str = "") -> None:
    """Refuse people's items if the judge's scores show that they are not a random sample of all items."""
    if min(len(f), len(f_other)) < MIN_HUMAN:
        return
    from scipy import stats

    p = float(stats.ks_2samp(f, f_other, method="asymp").pvalue)
    if p < NOT_RANDOM:
        of = f" of {name}" if name else ""
        raise DataError(
            f"the items{of} that people judged are not a random sample: the judge scores them differently from the "
            f"others (p = {p:.2g}).",
            "Let people judge a random sample of the items, or log the probability with which each item was chosen.",
        )


def _check_scores(y: FloatArray, f: FloatArray, f_other: FloatArray) -> None:
    if len(y) != len(f):
        raise DataError("people's scores and the judge's scores are for different items.", "Give both for each item.")
    if len(y) < MIN_HUMAN:
        raise DataError(
            f"people judged {len(y)} items, too few to estimate the judge's errors.",
            f"Let people judge at least {MIN_HUMAN} items, drawn at random.",
        )
    if not all(np.isfinite(array).all() for array in (y, f, f_other)):
        raise DataError(
            "the judge has no score for some items.", "Let the judge score every item: steelyard judges run."
        )


def _fold_weights(y: FloatArray, f: FloatArray, f_other: FloatArray, folds: int, clip: bool) -> FloatArray:
    fold = np.arange(len(y)) % min(folds, len(y))
    weights = np.empty(len(y))
    for k in np.unique(fold):
        rest = fold != k
        weights[~rest] = optimal_weight(y[rest], f[rest], f_other, clip=clip)
    return weights


def _half_width(parts: list[tuple[FloatArray, int]], level: float, interval: IntervalKind) -> float:
    variances = [(float(part.var(ddof=ddof)) / len(part), len(part)) for part, ddof in parts if len(part) > 1]
    total = sum(variance for variance, _ in variances)
    if interval == "normal":
        return float(special.ndtri((1 + level) / 2) * np.sqrt(total))
    below = sum(variance**2 / (n - 1) for variance, n in variances)
    freedom = total**2 / below if below > 0 else max(n for _, n in variances) - 1
    return float(special.stdtrit(freedom, (1 + level) / 2) * np.sqrt(total))


def _established(y: FloatArray, f: FloatArray) -> float:
    """Return the part of a regression weight that chance is not expected to produce: 1 − 1/F, and 0 for F below 1."""
    r = _correlation(y, f)
    chance = (1 - r * r) / max(1, len(y) - 2)
    return max(0.0, 1 - chance / (r * r)) if r else 0.0


def _correlation(y: FloatArray, f: FloatArray) -> float:
    if y.std() == 0 or f.std() == 0:
        return 0.0
    return float(np.corrcoef(y, f)[0, 1])


def _merged_strata(
    strata: np.ndarray[Any, Any], strata_other: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    names, codes = np.unique(np.concatenate([strata, strata_other]), return_inverse=True)
    own, other = codes[: len(strata)], codes[len(strata) :]
    target = np.arange(len(names))
    group = 0
    members = 0
    for code in range(len(names)):
        target[code] = group
        members += int((own == code).sum())
        if members >= MIN_IN_STRATUM:
            group, members = group + 1, 0
    if group:
        # The last stratum has too few of people's items: it joins the one before.
        target[target == group] = group - 1
    return target[own], target[other]


def _stratified_weight(
    y: FloatArray,
    f: FloatArray,
    own: np.ndarray[Any, Any],
    f_other: FloatArray,
    other: np.ndarray[Any, Any],
    codes: np.ndarray[Any, Any],
    share: FloatArray,
) -> float:
    """Return the λ that minimises the stratified estimate's variance."""
    above = below = 0.0
    for c, part in zip(codes, share, strict=True):
        mine, others = own == c, other == c
        n, m = int(mine.sum()), int(others.sum())
        if not m:
            continue
        covariance = float(np.mean((y[mine] - y[mine].mean()) * (f[mine] - f[mine].mean())))
        variance = float(np.var(np.concatenate([f[mine], f_other[others]]), ddof=1))
        above += part**2 * covariance / n
        below += part**2 * variance * (1 / n + 1 / m)
    return above / below if below > 0 else 0.0


def _weighted_lambda(own: FloatArray, f: FloatArray, share: FloatArray) -> float:
    """Return the λ that minimises the variance of the AIPW estimate.

    Its summand is share·y + λ·f·(1 − share), so λ is minus a regression coefficient.
    """
    alone, correction = share * own, f * (1 - share)
    variance = float(correction.var())
    if variance <= 0:
        return 0.0
    covariance = float(np.mean((alone - alone.mean()) * (correction - correction.mean())))
    return -covariance / variance
