"""Inter-annotator agreement (ITA) of ratings: each annotator's correlation with the mean of the other annotators."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import DataError
from steelyard.observations import FloatArray, Ratings
from steelyard.reliability.bootstrap import Bootstrap, Seed
from steelyard.reliability.statistic import Statistic
from steelyard.reliability.units import Codes, group_codes, row_sums

MIN_ITEMS = 3
"""Minimum number of shared items for an annotator's correlation."""


class _Shared(NamedTuple):
    """An annotator's value of an item and the mean of the others, one row per annotator and shared item."""

    annotator: Codes
    item: Codes
    own: FloatArray
    others: FloatArray


def ita(ratings: Ratings, bootstrap: Bootstrap, *, ranks: bool = False) -> Statistic:
    """Compute the mean over annotators of the correlation with the mean of the other annotators on the same items.

    Pearson's r, or Spearman's ρ with `ranks`; §4 of Snow et al. (2008). Repeats of an item by one annotator
    are averaged first. The interval adds the variance among annotators to the infinitesimal jackknife's
    variance over items: resampling annotators alone covers too little, as all of them share the items.
    """
    name = "ita_spearman" if ranks else "ita_pearson"
    if not ratings.knows_annotators:
        return Statistic(name, None, note="undefined: the annotators are unknown")
    shared = _against_the_others(ratings)
    if ranks:
        shared = shared._replace(
            own=_ranks(shared.annotator, shared.own), others=_ranks(shared.annotator, shared.others)
        )
    correlation, influence = _correlations(shared, len(ratings.annotators))
    note = "mean over annotators of the correlation with the mean of the other annotators"
    return _statistic(
        name, ratings, shared.item, correlation, influence, len(np.unique(ratings.annotator)), note, bootstrap
    )


def _statistic(
    name: str,
    ratings: Ratings,
    item: Codes,
    correlation: FloatArray,
    influence: FloatArray,
    n_annotators: int,
    note: str,
    bootstrap: Bootstrap,
) -> Statistic:
    """Average the correlations of `n_annotators`; `influence` is that of each row, on `item`, on its correlation."""
    defined = np.isfinite(correlation)
    count = int(defined.sum())
    if not count:
        why = f"undefined: no annotator shares {MIN_ITEMS} items with others on which the values vary"
        return Statistic(name, None, note=why)
    if left_out := n_annotators - count:
        note += f"; {left_out:,} left out (fewer than {MIN_ITEMS} shared items, or no variation)"
    by_annotator = float(correlation[defined].var(ddof=1)) / count if count > 1 else 0.0
    items = len(np.unique(item))
    by_item = float((row_sums(item, influence / count, len(ratings.items)) ** 2).sum())
    by_item *= items / (items - 1)
    # Satterthwaite's degrees of freedom of the sum of the two variances.
    noise = by_annotator**2 / max(count - 1, 1) + by_item**2 / (items - 1)
    return bootstrap.statistic_from_sd(
        name,
        float(correlation[defined].mean()),
        float(np.sqrt(by_annotator + by_item)),
        count,
        unit="annotators",
        interval="jackknife(annotators, items)",
        note=note,
        freedom=(by_annotator + by_item) ** 2 / noise if noise > 0 else None,
        low=-1.0,
    )


def ita_with_experts(
    ratings: Ratings,
    experts: Collection[str],
    *,
    seed: Seed = 0,
    replicates: int = 200,
    level: float = 0.95,
) -> tuple[Statistic, ...]:
    """Compute the four statistics of Table 1 of Snow et al. (2008), given which of the annotators are experts.

    "expert_expert": each expert with the mean of the other experts. "expert_all": each expert with the mean of all
    others. "non_expert_expert": each non-expert with the mean of all experts but one, averaged over the expert left out
    (so that panels have the same size as for experts). "non_expert_all": each non-expert with the mean of all others.
    All are means over the annotators of Pearson's r.
    """
    bootstrap = Bootstrap.of(seed, replicates, level)
    names = ("expert_expert", "expert_all", "non_expert_expert", "non_expert_all")
    if not ratings.knows_annotators:
        return tuple(Statistic(name, None, note="undefined: the annotators are unknown") for name in names)
    expert = np.zeros(len(ratings.annotators), bool)
    expert[ratings.annotators.codes(sorted(experts))] = True
    cells = _cells(ratings)
    panel = [int(code) for code in np.unique(cells.annotator[expert[cells.annotator]])]
    if not panel:
        raise DataError("none of the annotators is an expert.", "Name at least one of them.")
    everyone = np.ones(len(expert), bool)
    reduced = (
        [np.where(np.arange(len(expert)) == code, False, expert) for code in panel] if len(panel) > 1 else [expert]
    )
    return (
        _with_panels(names[0], ratings, cells, expert, [expert], bootstrap),
        _with_panels(names[1], ratings, cells, expert, [everyone], bootstrap),
        _with_panels(names[2], ratings, cells, ~expert, reduced, bootstrap),
        _with_panels(names[3], ratings, cells, ~expert, [everyone], bootstrap),
    )


def _with_panels(
    name: str,
    ratings: Ratings,
    cells: _Cells,
    selected: NDArray[np.bool_],
    panels: list[NDArray[np.bool_]],
    bootstrap: Bootstrap,
) -> Statistic:
    """Correlate each of the `selected` annotators with the mean of each panel, without themselves."""
    n_annotators = len(ratings.annotators)
    correlations, items, influences = [], [], []
    for panel in panels:
        shared = _against(cells, selected, panel, len(ratings.items))
        correlation, influence = _correlations(shared, n_annotators)
        correlations.append(correlation)
        items.append(shared.item)
        influences.append(influence / len(panels))
    # An annotator counts only if every panel gives a correlation.
    mean = np.mean(correlations, axis=0)
    count = len(np.unique(cells.annotator[selected[cells.annotator]]))
    note = "mean over annotators of Pearson's r" + (f" over {len(panels)} panels" if len(panels) > 1 else "")
    return _statistic(name, ratings, np.concatenate(items), mean, np.concatenate(influences), count, note, bootstrap)


class _Cells(NamedTuple):
    """The mean value that each annotator gave each item."""

    annotator: Codes
    item: Codes
    value: FloatArray


def _cells(ratings: Ratings) -> _Cells:
    cell = group_codes(ratings.annotator, ratings.item)
    size = np.bincount(cell)
    first = np.zeros(len(size), np.int64)
    first[cell] = np.arange(len(cell))
    annotator, item = ratings.annotator[first].astype(np.int64), ratings.item[first].astype(np.int64)
    return _Cells(annotator, item, np.bincount(cell, ratings.unit_value) / size)


def _against(cells: _Cells, selected: NDArray[np.bool_], panel: NDArray[np.bool_], n_items: int) -> _Shared:
    """Pair the values of the `selected` annotators with the mean of the panel's others on the same item."""
    member = panel[cells.annotator].astype(np.float64)
    size, total = (row_sums(cells.item, x, n_items)[cells.item] for x in (member, member * cells.value))
    shared = selected[cells.annotator] & (size - member > 0)
    own, member = cells.value[shared], member[shared]
    # Rounded, because total - own leaves differences of 1e-16 between equal means, which would break ties of ranks.
    others = np.round((total[shared] - member * own) / (size[shared] - member), 12)
    return _Shared(cells.annotator[shared], cells.item[shared], np.round(own, 12), others)


def _against_the_others(ratings: Ratings) -> _Shared:
    everyone = np.ones(len(ratings.annotators), bool)
    return _against(_cells(ratings), everyone, everyone, len(ratings.items))


def _correlations(shared: _Shared, n_annotators: int) -> tuple[FloatArray, FloatArray]:
    """Return Pearson's r of each annotator (NaN if undefined), and the influence of each row."""
    group = shared.annotator
    size = row_sums(group, np.ones(len(group)), n_annotators)
    whole = np.maximum(size, 1)

    def standardized(x: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        x = x - (row_sums(group, x, n_annotators) / whole)[group]
        variance = row_sums(group, x * x, n_annotators) / whole
        return x / np.sqrt(np.where(variance > 1e-18, variance, 1))[group], variance > 1e-18

    (x, x_varies), (y, y_varies) = standardized(shared.own), standardized(shared.others)
    defined = x_varies & y_varies & (size >= MIN_ITEMS)
    r = np.clip(row_sums(group, x * y, n_annotators) / whole, -1, 1)
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
