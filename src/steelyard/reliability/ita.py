"""Inter-annotator agreement (ITA) of ratings: each annotator's correlation with the mean of the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.observations import FloatArray, Ratings
from steelyard.reliability.bootstrap import Bootstrap
from steelyard.reliability.figure import Figure
from steelyard.reliability.units import Codes, group_codes, row_sums

LEAST_ITEMS = 3
"""Shared items an annotator needs before a correlation is taken."""


class _Shared(NamedTuple):
    """An annotator's value of an item, beside the mean of the others, one row for each such meeting."""

    person: Codes
    item: Codes
    own: FloatArray
    others: FloatArray


def ita(ratings: Ratings, bootstrap: Bootstrap, *, ranks: bool = False) -> Figure:
    """Compute the mean over annotators of the correlation with the mean of the others on the same items.

    Pearson's r, or Spearman's ρ with `ranks`; §4 of Snow et al. (2008). Repeats of an item by one annotator
    are averaged first. The interval adds the variance among annotators to the infinitesimal jackknife's
    variance over items: resampling annotators alone covers too little, as all of them share the items.
    """
    name = "ITA (Spearman)" if ranks else "ITA (Pearson)"
    if not ratings.knows_annotators:
        return Figure(name, None, note="undefined: the annotators are not known")
    shared = _against_the_others(ratings)
    if ranks:
        shared = shared._replace(own=_ranks(shared.person, shared.own), others=_ranks(shared.person, shared.others))
    correlation, influence = _correlations(shared, len(ratings.annotators))
    defined = np.isfinite(correlation)
    count = int(defined.sum())
    if not count:
        why = f"undefined: no annotator shares {LEAST_ITEMS} items with others on which the values vary"
        return Figure(name, None, note=why)
    left_out = len(np.unique(ratings.annotator)) - count
    note = "mean over annotators of the correlation with the mean of the others"
    if left_out:
        note += f"; {left_out:,} left out (fewer than {LEAST_ITEMS} shared items, or no variation)"
    by_person = float(correlation[defined].var(ddof=1)) / count if count > 1 else 0.0
    items = len(np.unique(shared.item))
    by_item = float((row_sums(shared.item, influence / count, len(ratings.items)) ** 2).sum())
    by_item *= items / (items - 1)
    # Satterthwaite's degrees of freedom of the sum of the two variances.
    noise = by_person**2 / max(count - 1, 1) + by_item**2 / (items - 1)
    return bootstrap.figure_from_spread(
        name,
        float(correlation[defined].mean()),
        float(np.sqrt(by_person + by_item)),
        count,
        unit="annotators",
        interval="jackknife(annotators, items)",
        note=note,
        freedom=(by_person + by_item) ** 2 / noise if noise > 0 else None,
        low=-1.0,
    )


def _against_the_others(ratings: Ratings) -> _Shared:
    cell = group_codes(ratings.annotator, ratings.item)
    size = np.bincount(cell)
    own = np.bincount(cell, ratings.unit_value) / size
    first = np.zeros(len(size), np.int64)
    first[cell] = np.arange(len(cell))
    person, item = ratings.annotator[first].astype(np.int64), ratings.item[first].astype(np.int64)
    people = np.bincount(item)[item]
    total = np.bincount(item, own)[item]
    shared = people > 1
    # Rounded, because total - own leaves differences of 1e-16 between equal means, which ranks would see.
    others = np.round((total[shared] - own[shared]) / (people[shared] - 1), 12)
    return _Shared(person[shared], item[shared], np.round(own[shared], 12), others)


def _correlations(shared: _Shared, people: int) -> tuple[FloatArray, FloatArray]:
    """Return Pearson's r of each annotator (NaN where undefined), and what each row adds to it."""
    group = shared.person
    size = row_sums(group, np.ones(len(group)), people)
    whole = np.maximum(size, 1)

    def standardized(x: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        x = x - (row_sums(group, x, people) / whole)[group]
        variance = row_sums(group, x * x, people) / whole
        return x / np.sqrt(np.where(variance > 1e-18, variance, 1))[group], variance > 1e-18

    (x, x_varies), (y, y_varies) = standardized(shared.own), standardized(shared.others)
    defined = x_varies & y_varies & (size >= LEAST_ITEMS)
    r = np.clip(row_sums(group, x * y, people) / whole, -1, 1)
    influence = (x * y - r[group] * (x * x + y * y) / 2) / whole[group]
    return np.where(defined, r, np.nan), np.where(defined[group], influence, 0.0)


def _ranks(group: Codes, value: FloatArray) -> FloatArray:
    """Return ranks within each group, ties sharing their mean rank."""
    _, tie, times = np.unique(value, return_inverse=True, return_counts=True)
    cell, inverse, size = np.unique(group * len(times) + tie, return_inverse=True, return_counts=True)
    before = np.cumsum(size) - size
    first = np.searchsorted(cell // max(len(times), 1), group)
    ranks: FloatArray = (before + (size + 1) / 2)[inverse] - before[first]
    return ranks
