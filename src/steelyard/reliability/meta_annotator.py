"""Meta-annotators: accuracy of the mean or the majority of n annotators, and how many match an expert."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.errors import ConfigError, DataError
from steelyard.models.labels.observed import vote_counts
from steelyard.observations import FloatArray, Labels, Observations, Ratings
from steelyard.reliability.bootstrap import Bootstrap, Seed
from steelyard.reliability.correlation import MIN_ITEMS, correlation_statistic, jackknife_variance, pearson
from steelyard.reliability.ita import ita
from steelyard.reliability.proportions import proportion
from steelyard.reliability.statistic import Statistic, statistics_table
from steelyard.reliability.units import group_codes

SIZES = range(1, 11)
SUBSETS = 300
"""Maximum number of subsets: all are used up to this number, otherwise this many are drawn at random."""


@dataclass(frozen=True, slots=True)
class MetaAnnotator:
    """Accuracy of n annotators together against gold, for each n of `sizes`.

    `least` is the smallest n that does at least as well as one expert (`expert`); None if none does, or if there is
    no expert.
    """

    sizes: tuple[int, ...]
    statistics: tuple[Statistic, ...]
    expert: float | None = None
    least: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> pl.DataFrame:
        """The curve: annotators, then the columns of a statistic."""
        return statistics_table(self.statistics).select(pl.Series("annotators", self.sizes, dtype=pl.Int64), pl.all())

    def __getitem__(self, size: int) -> Statistic:
        """Return the statistic of `size` annotators."""
        try:
            return self.statistics[self.sizes.index(size)]
        except ValueError:
            raise ConfigError(f"no statistic for {size} annotators.", f"Known: {self.sizes}.") from None


def meta_annotator(
    observations: Observations,
    gold: Mapping[str, float] | Mapping[str, str],
    *,
    sizes: Sequence[int] = SIZES,
    expert: float | Ratings | None = None,
    subsets: int = SUBSETS,
    seed: Seed = 0,
    level: float = 0.95,
) -> MetaAnnotator:
    """Aggregate subsets of n annotations per item and compare the result with gold (Snow et al. 2008, §4).

    Labels: the accuracy of the majority of n labels drawn from the item's, ties shared among the tied classes;
    exact, as an expectation over all subsets. Ratings: Pearson's r of the mean of n ratings. If all
    annotators rated the same items, the subsets are of annotators, all of them if there are at most `subsets`;
    otherwise each item's n ratings are drawn independently, `subsets` times.

    Parameters
    ----------
    observations
        Labels or ratings. For each n, only items with at least n annotations are used.
    gold
        The true label or value of each item.
    sizes
        The numbers n.
    expert
        The accuracy of one expert, or the experts' ratings, whose ITA is used (each expert with the mean of the
        others).
    subsets, seed
        Maximum number of subsets, and the seed of the random ones.
    level
        Of the intervals, which are over items.
    """
    bootstrap = Bootstrap.of(seed, 200, level)
    if any(size < 1 for size in sizes) or subsets < 1:
        raise ConfigError("a subset has at least one annotation, and there is at least one subset.")
    if not any(item in observations.items for item in gold):
        raise DataError("gold names none of the judged items.", "Use the same ids in both.")
    if isinstance(observations, Labels):
        statistics = _of_labels(observations, gold, sizes, bootstrap)
    elif isinstance(observations, Ratings):
        statistics = _of_ratings(observations, gold, sizes, subsets, bootstrap)
    else:
        raise DataError(f"meta-annotators need ratings or labels; these are {observations.kind}.")
    threshold = ita(expert, Bootstrap(0, 0)).value if isinstance(expert, Ratings) else expert
    reached = [
        size
        for size, statistic in sorted(zip(sizes, statistics, strict=True))
        if threshold is not None and statistic.value is not None and statistic.value >= threshold
    ]
    notes = []
    if expert is not None and threshold is None:
        notes.append("the experts' ITA is undefined")
    elif threshold is not None and not reached:
        notes.append(f"no number of annotators here reaches the agreement of one expert, {threshold:.3f}")
    return MetaAnnotator(tuple(sizes), tuple(statistics), threshold, reached[0] if reached else None, tuple(notes))


def _of_labels(
    labels: Labels, gold: Mapping[str, float] | Mapping[str, str], sizes: Sequence[int], bootstrap: Bootstrap
) -> list[Statistic]:
    votes = vote_counts(labels).astype(np.int64)
    codes = {name: code for code, name in enumerate(labels.classes.ids)}
    # A gold class that no annotator ever gave is an additional class without votes.
    votes = np.column_stack([votes, np.zeros(len(votes), np.int64)])
    items = np.array([code for code, item in enumerate(labels.items.ids) if item in gold])
    truth = np.array([codes.get(str(gold[labels.items[int(code)]]), len(codes)) for code in items])
    own = votes[items, truth]
    others = votes[items].copy()
    others[np.arange(len(items)), truth] = 0
    others = -np.sort(-others, axis=1)
    cases, case = np.unique(np.column_stack([own, others]), axis=0, return_inverse=True)
    total = cases.sum(axis=1)
    statistics = []
    for size in sizes:
        right = np.array(
            [expected_correct(c[0], c[1:], size) if t >= size else np.nan for c, t in zip(cases, total, strict=True)]
        )
        each = right[case.ravel()]
        used_items = items[~np.isnan(each)]
        accuracy = each[~np.isnan(each)]
        key = f"accuracy_of_{size}"
        if not len(accuracy):
            statistics.append(Statistic(key, None, note=f"undefined: no item with gold has {size} labels"))
            continue
        statistics.append(
            proportion(
                key,
                accuracy,
                np.ones(len(accuracy)),
                bootstrap,
                unit="items",
                note="expected over all subsets and ties",
                undefined="",
                names=lambda codes=used_items: tuple(labels.items[int(code)] for code in codes),  # type: ignore[misc]
            )
        )
    return statistics


def expected_correct(own: int, others: NDArray[np.int64], size: int) -> float:
    """Return the probability that the majority of `size` labels, drawn without replacement, is correct.

    `own` labels name the correct class, and `others` counts those of each other class. A tie of t classes counts 1/t.
    Exact: for each number g of correct labels drawn, count the ways to draw the other labels with at most g of each
    class, by the number of classes that reach g.
    """
    total = 0.0
    rivals = [int(count) for count in others if count > 0]
    for g in range(1, min(own, size) + 1):
        # ways[t, s]: draws of s other labels in which t classes have exactly g.
        ways = np.zeros((len(rivals) + 1, size - g + 1))
        ways[0, 0] = 1.0
        for rival in rivals:
            step = np.zeros_like(ways)
            for k in range(min(rival, g, size - g) + 1):
                part = ways[:, : ways.shape[1] - k] * comb(rival, k)
                if k == g:
                    step[1:, k:] += part[:-1]
                else:
                    step[:, k:] += part
            ways = step
        total += comb(own, g) * float((ways[:, size - g] / np.arange(1, len(rivals) + 2)).sum())
    return total / comb(int(own + others.sum()), size)


def _of_ratings(
    ratings: Ratings,
    gold: Mapping[str, float] | Mapping[str, str],
    sizes: Sequence[int],
    subsets: int,
    bootstrap: Bootstrap,
) -> list[Statistic]:
    truth = np.array([float(gold.get(item, np.nan)) for item in ratings.items.ids])
    rows = np.flatnonzero(~np.isnan(truth[ratings.item]))
    item, value, annotator = ratings.item[rows], ratings.value[rows], ratings.annotator[rows]
    order = np.lexsort((value, annotator, item))
    item, value, annotator = item[order], value[order], annotator[order]
    count = np.bincount(item, minlength=len(truth))
    crossed = _crossed(item, annotator, value, count) if ratings.knows_annotators else None
    statistics = []
    for size in sizes:
        key = f"correlation_of_{size}"
        chosen = np.flatnonzero(count >= size)
        if len(chosen) < MIN_ITEMS:
            statistics.append(
                Statistic(key, None, note=f"undefined: fewer than three items with gold have {size} ratings")
            )
            continue
        if crossed is not None:
            means, how = _of_annotators(crossed, size, subsets, bootstrap.seed)
        else:
            means, how = _of_annotations(item, value, count, chosen, size, subsets, bootstrap.seed)
        statistics.append(_correlated(key, means, truth[chosen], bootstrap, how))
    return statistics


def _crossed(
    item: NDArray[np.int32], annotator: NDArray[np.int32], value: FloatArray, count: NDArray[np.int64]
) -> FloatArray | None:
    """Return the ratings by item and annotator if all annotators rated the same items once, otherwise None."""
    n_annotators = len(np.unique(annotator))
    judged = np.flatnonzero(count)
    cells = group_codes(item, annotator) if len(item) else np.empty(0, np.int64)
    if len(item) != n_annotators * len(judged) or len(np.unique(cells)) != len(cells):
        return None
    return value.reshape(len(judged), n_annotators)


def _of_annotators(table: FloatArray, size: int, subsets: int, seed: int) -> tuple[Iterator[FloatArray], str]:
    n_annotators = table.shape[1]
    if comb(n_annotators, size) <= subsets:
        chosen: Iterator[tuple[int, ...]] = combinations(range(n_annotators), size)
        how = f"all {comb(n_annotators, size):,} subsets of the annotators"
    else:
        rng = np.random.default_rng([seed, size])
        chosen = (tuple(rng.permutation(n_annotators)[:size]) for _ in range(subsets))
        how = f"{subsets:,} random subsets of the annotators"
    return (table[:, list(these)].mean(axis=1) for these in chosen), how


def _of_annotations(
    item: NDArray[np.int32],
    value: FloatArray,
    count: NDArray[np.int64],
    chosen: NDArray[np.int64],
    size: int,
    subsets: int,
    seed: int,
) -> tuple[Iterator[FloatArray], str]:
    """Draw `size` ratings of each item, `subsets` times; once if no item has more."""
    start = np.concatenate([[0], np.cumsum(count)])
    take = np.zeros(len(count), bool)
    take[chosen] = True
    rows = take[item]
    row_item, row_value = item[rows], value[rows]
    place = np.arange(len(item))[rows] - start[row_item]
    rng = np.random.default_rng([seed, size])
    times = 1 if bool((count[chosen] == size).all()) else subsets

    def draws() -> Iterator[FloatArray]:
        for _ in range(times):
            shuffled = np.lexsort((rng.random(len(row_item)), row_item))
            sample = shuffled[place < size]
            total = np.bincount(row_item[sample], row_value[sample], len(count))
            yield total[chosen] / size

    return draws(), "all ratings" if times == 1 else f"{times:,} random subsets of each item's ratings"


def _correlated(key: str, means: Iterator[FloatArray], truth: FloatArray, bootstrap: Bootstrap, how: str) -> Statistic:
    total, squares, count = 0.0, 0.0, 0
    influence = np.zeros(len(truth))
    for mean in means:
        correlation = pearson(np.round(mean, 12), truth)
        if correlation is None:
            continue
        total, squares, count = total + correlation.r, squares + correlation.r**2, count + 1
        influence += correlation.influence
    if not count:
        return Statistic(key, None, n=len(truth), note="undefined: the values or the gold do not vary")
    is_sampled = "random" in how and count > 1
    sampling_variance = max(squares / count - (total / count) ** 2, 0.0) / (count - 1) if is_sampled else 0.0
    variance = jackknife_variance(influence / count, len(truth)) + sampling_variance
    return correlation_statistic(key, total / count, variance, len(truth), bootstrap, note=f"mean over {how}")
