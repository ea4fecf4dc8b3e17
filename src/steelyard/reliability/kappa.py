"""Agreement of classes beyond chance: observed agreement, and the κ of Fleiss, Cohen and WMT."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from steelyard.observations import UNKNOWN, FloatArray, Labels
from steelyard.reliability.bootstrap import Bootstrap, WeightedStatistic, weighted_proportion
from steelyard.reliability.statistic import Statistic
from steelyard.reliability.units import Codes, Units, group_codes, pairs_of

MIN_SHARED = 5
"""Minimum number of shared items for Cohen's κ of two annotators."""

PAIR_LIMIT = 5_000_000
"""Number of pairs of answers beyond which Cohen's κ, linear in them, is not computed."""


def observed_agreement(units: Units) -> WeightedStatistic:
    """Return P(A), the proportion of agreeing pairs among all pairs of answers by different annotators."""
    return weighted_proportion(units.agreeing(), units.pairs)


def fixed_chance_kappa(chance: float) -> Callable[[Units], WeightedStatistic]:
    """Return κ = (P(A) - P(E)) / (1 - P(E)) with a fixed P(E), as the WMT evaluations up to 2010."""

    def of(units: Units) -> WeightedStatistic:
        agreement = observed_agreement(units)
        return lambda weights: (agreement(weights) - chance) / (1 - chance)

    return of


def fleiss_kappa(units: Units) -> WeightedStatistic:
    """Return κ = (P̄ - P̄ₑ) / (1 - P̄ₑ) of Fleiss (1971), for units with the same number of answers."""
    agreement = weighted_proportion(units.agreeing() / units.pairs, np.ones(len(units)))
    by_value = units.counts.T.tocsr()

    def function(weights: FloatArray) -> FloatArray:
        total = np.maximum(units.answers @ weights, 1.0)
        chance = ((by_value @ weights / total) ** 2).sum(axis=0)
        varies = chance < 1 - 1e-12
        kappa: FloatArray = np.where(varies, (agreement(weights) - chance) / np.where(varies, 1 - chance, 1), np.nan)
        return kappa

    return function


def fleiss_obstacle(labels: Labels) -> str:
    """Return why Fleiss' κ is not defined for these labels, or an empty string."""
    sizes = np.bincount(labels.item)
    sizes = sizes[sizes > 0]
    if sizes.size and sizes.min() != sizes.max():
        return f"undefined: items have {sizes.min()} to {sizes.max()} answers; use alpha (nominal)"
    has_annotator = labels.annotator != UNKNOWN
    answered = group_codes(labels.item[has_annotator], labels.annotator[has_annotator])
    if answered.size and answered.max() + 1 < answered.size:
        return "undefined: an annotator answered an item more than once; use alpha (nominal)"
    return ""


class _Shared(NamedTuple):
    """Pairs of answers to one item: the annotator pair, the item, and the two labels."""

    pair: Codes
    item: Codes
    first: Codes
    second: Codes


def cohen_kappa(labels: Labels, bootstrap: Bootstrap) -> Statistic:
    """Compute the mean of Cohen's (1960) κ over all pairs of annotators that share at least five items.

    κ = (Pₒ - Pₑ) / (1 - Pₑ), with Pₑ = Σ_v p_a(v) p_b(v) from the pair's labels of their shared items.
    The interval is an infinitesimal jackknife over items, linear in the pairs of answers.
    """
    name = "cohen_kappa"
    if not labels.knows_annotators:
        return Statistic(name, None, note="undefined: the annotators are unknown")
    count = int(pairs_of(np.bincount(labels.item).astype(np.float64)).sum())
    if count > PAIR_LIMIT:
        why = f"not computed: {count:,} pairs of answers are more than {PAIR_LIMIT:,}; see alpha (nominal)"
        return Statistic(name, None, note=why)
    shared = _frequent(_shared_answers(labels))
    if not shared.pair.size:
        return Statistic(name, None, note=f"undefined: no two annotators share {MIN_SHARED} items")
    kappa, influence = _kappa_by_pair(shared, len(labels.classes))
    defined = np.isfinite(kappa)
    items = len(np.unique(shared.item))
    if not defined.any():
        return Statistic(name, None, n=items, note="undefined: all annotators used the same single class")
    value = float(kappa[defined].mean())
    note = f"mean of {defined.sum():,} pairs of annotators that share at least {MIN_SHARED} items"
    if not defined.all():
        note += f"; {(~defined).sum():,} pairs that used a single class throughout are left out"
    by_item = np.bincount(shared.item, influence) / defined.sum()
    sd = float(np.sqrt((by_item**2).sum() * items / max(items - 1, 1)))
    return bootstrap.statistic_from_sd(
        name, value, sd, items, unit="items", interval="jackknife(items)", note=note, low=-1.0
    )


def _shared_answers(labels: Labels) -> _Shared:
    order = np.argsort(labels.item, kind="stable")
    item = labels.item[order].astype(np.int64)
    annotator = labels.annotator[order].astype(np.int64)
    label = labels.label[order].astype(np.int64)
    pairs: list[tuple[Codes, Codes]] = []
    left = np.arange(len(item))
    step = 0
    while len(left):
        step += 1
        left = left[left + step < len(item)]
        left = left[item[left] == item[left + step]]
        right = left + step
        other = annotator[left] != annotator[right]
        swap = annotator[left] > annotator[right]
        pairs.append((np.where(swap, right, left)[other], np.where(swap, left, right)[other]))
    a = np.concatenate([pair[0] for pair in pairs] or [np.empty(0, np.int64)])
    b = np.concatenate([pair[1] for pair in pairs] or [np.empty(0, np.int64)])
    return _Shared(annotator[a] * len(labels.annotators) + annotator[b], item[a], label[a], label[b])


def _frequent(shared: _Shared) -> _Shared:
    _, pair, size = np.unique(shared.pair, return_inverse=True, return_counts=True)
    keep = size[pair] >= MIN_SHARED
    pair = (np.cumsum(size >= MIN_SHARED) - 1)[pair]
    return _Shared(pair[keep], shared.item[keep], shared.first[keep], shared.second[keep])


def _kappa_by_pair(shared: _Shared, classes: int) -> tuple[FloatArray, FloatArray]:
    """Return κ of each pair of annotators (NaN if undefined), and the influence of each pair of answers."""
    pair = shared.pair
    size = np.bincount(pair).astype(np.float64)
    agree = (shared.first == shared.second).astype(np.float64)
    observed = np.bincount(pair, agree) / size
    # How often the other annotator of the pair gave this annotator's label, over their shared items.
    rate_first = _times(pair * classes + shared.second, pair * classes + shared.first) / size[pair]
    rate_second = _times(pair * classes + shared.first, pair * classes + shared.second) / size[pair]
    chance = np.bincount(pair, rate_first) / size
    varies = chance < 1 - 1e-12
    beyond_chance = np.where(varies, 1 - chance, 1.0)
    kappa = np.where(varies, (observed - chance) / beyond_chance, np.nan)
    move_observed = agree - observed[pair]
    move_chance = rate_first + rate_second - 2 * chance[pair]
    influence = move_observed * beyond_chance[pair] - move_chance * (1 - observed[pair])
    influence = np.where(varies[pair], influence / beyond_chance[pair] ** 2 / size[pair], 0.0)
    return kappa, influence


def _times(keys: Codes, queries: Codes) -> FloatArray:
    """Count how often each query occurs among the keys."""
    unique_keys, times = np.unique(keys, return_counts=True)
    place = np.minimum(np.searchsorted(unique_keys, queries), len(unique_keys) - 1)
    return np.where(unique_keys[place] == queries, times[place], 0).astype(np.float64)
