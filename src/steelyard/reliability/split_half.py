"""Split-half reliability: the correlation of scores from two random halves of the judgments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from steelyard.errors import ConfigError, DataError
from steelyard.models.fit import Model
from steelyard.models.point_scores import PointScores
from steelyard.observations import Observations
from steelyard.reliability.bootstrap import Bootstrap, Seed
from steelyard.reliability.correlation import jackknife_variance
from steelyard.reliability.fixed_items import with_fixed_items
from steelyard.reliability.split_trials import CORRELATIONS, Halves, Scores, averages_over
from steelyard.reliability.splitting import UNIT_NAMES
from steelyard.reliability.statistic import Significance, Statistic, Statistics, statistics_table

TRIALS = 100
BY_ANNOTATORS = "annotators are split, because most units were judged once"
_MIN_ANNOTATORS = 4
_MAX_SPLIT_ROWS, _MIN_TRIALS = 10_000_000, 10


@dataclass(frozen=True, slots=True)
class SplitHalf(Statistics):
    """Split-half reliability: plain and Spearman–Brown corrected, by Spearman's ρ and Pearson's r."""

    statistics: tuple[Statistic, ...]
    trials: int
    notes: tuple[str, ...] = ()


def split_half(
    observations: Observations,
    *,
    model: Model | PointScores | None = None,
    by: str = "unit",
    per_half: int | None = None,
    items: Collection[str] | None = None,
    fixed_items: bool = False,
    trials: int = TRIALS,
    seed: Seed = 0,
    level: float = 0.95,
) -> SplitHalf:
    """Split each unit's judgments in random halves, score both and correlate; average over trials.

    As §5 of Kiritchenko & Mohammad (2017): the plain correlation, of scores from half of the judgments, is the one to
    report; the Spearman–Brown corrected value estimates that of scores from all judgments.

    Parameters
    ----------
    observations
        Ratings (split within each item), comparisons (within each pair, of one task if tasks are known),
        choices (within each tuple) or rankings (within each task, or set of items).
    model
        Any model that accepts them, or its `PointScores`, which are faster. The defaults are faster still: the mean
        for ratings, otherwise counting.
    by
        "unit"; "annotator" to put all judgments of an annotator into one half, as comparative judgement does; "tuple"
        to put all judgments of a tuple (pair, task) into one half. Halves that share their tuples also share which
        items an item was compared with, which inflates the reliability of choices.
    per_half
        Number of judgments per unit in each half; by default half of the unit's judgments. A unit with fewer than
        twice this number contributes all of its judgments. If tuples are split: the number of tuples.
    items
        Items to correlate over. All items are scored.
    fixed_items
        Whether to repeat the statistics with intervals for these items, judged by other annotators (keys ending in
        `_fixed_items`): a delete-a-group jackknife over annotators. A model is then fitted 400 times more.
    trials, seed
        Number of random splits, and their seed. The same seed gives the same halves, whatever the order of the
        judgments.
    level
        Confidence level of the intervals, which are for other items of the same kind, judged by other annotators: an
        infinitesimal jackknife over items, symmetric on Fisher's scale, plus the variance among trials.
    """
    if fixed_items and (items is not None or per_half is not None):
        raise ConfigError(
            "intervals for fixed items need all items and judgments.",
            "Leave out `items` and `per_half`, or `fixed_items`.",
        )
    bootstrap = _checked(seed, trials, level, per_half)
    halves = Halves.of(observations, model, by, bootstrap.seed)
    chosen = _mask(observations, items)
    average = averages_over(halves.scores(trials, per_half), [chosen], trials)[0]
    statistics = average.statistics(bootstrap)
    if fixed_items:
        statistics = with_fixed_items(halves, statistics, bootstrap)
    return SplitHalf(statistics, trials, halves.notes(per_half))


class Splittable(Protocol):
    """Judgments that can be split and scored, in memory or in files (engines/)."""

    @property
    def kind(self) -> type[Observations]:
        """The kind of observations."""

    @property
    def n_items(self) -> int:
        """The number of items."""

    def __len__(self) -> int:
        """Return the number of judgments."""

    def in_shared_units(self) -> int:
        """Count the judgments in units with at least two judgments."""

    def annotators(self) -> int:
        """Count the annotators; 0 if some judgments have no annotator."""

    def scores(self, by: str, trials: int) -> Scores:
        """Yield the scores of all items by either half, trial by trial."""


@dataclass(frozen=True, slots=True, eq=False)
class _InMemory:
    by_unit: Halves

    @property
    def observations(self) -> Observations:
        return self.by_unit.observations

    @property
    def kind(self) -> type[Observations]:
        return type(self.observations)

    @property
    def n_items(self) -> int:
        return len(self.observations.items)

    def __len__(self) -> int:
        return len(self.observations)

    def in_shared_units(self) -> int:
        sizes = self.by_unit.splitter.sizes
        return int(sizes[sizes > 1].sum())

    def annotators(self) -> int:
        return len(np.unique(self.observations.annotator)) if self.observations.knows_annotators else 0

    def halves(self, by: str) -> Halves:
        if by == self.by_unit.by:
            return self.by_unit
        return Halves.of(self.observations, None, by, self.by_unit.splitter.seed)

    def scores(self, by: str, trials: int) -> Scores:
        return self.halves(by).scores(trials, None)


def split_half_or_reason(judgments: Observations | Splittable, bootstrap: Bootstrap) -> tuple[Statistic, ...]:
    """Compute split-half reliability, or return undefined statistics with the reason.

    If most judgments are the only one of their unit, annotators are split, with a note; with too few annotators it is
    undefined. Large data have fewer trials. In memory, Spearman's ρ also has intervals for fixed items.
    """
    if not len(judgments):
        return _undefined("undefined: there are no judgments")
    if isinstance(judgments, Observations):
        judgments = _InMemory(Halves.of(judgments, None, "unit", bootstrap.seed))
    trials = int(np.clip(_MAX_SPLIT_ROWS // len(judgments), _MIN_TRIALS, TRIALS))
    by, note = "unit", ""
    if 2 * judgments.in_shared_units() < len(judgments):
        if judgments.annotators() < _MIN_ANNOTATORS:
            unit = UNIT_NAMES[judgments.kind]
            return _undefined(f"undefined: most judgments are the only one of their {unit}, so they cannot be split")
        by, note = "annotator", BY_ANNOTATORS
    every = np.ones(judgments.n_items, bool)
    statistics = averages_over(judgments.scores(by, trials), [every], trials)[0].statistics(bootstrap)
    if isinstance(judgments, _InMemory):
        spearman = with_fixed_items(judgments.halves(by), statistics[:2], bootstrap)
        statistics = (*spearman, *statistics[2:])
    return tuple(
        replace(statistic, note="; ".join(part for part in (statistic.note, note) if part)) for statistic in statistics
    )


def _undefined(why: str) -> tuple[Statistic, ...]:
    names = (f"split_half_{name}{end}" for name in CORRELATIONS for end in ("", "_corrected"))
    return tuple(Statistic(name, None, note=why) for name in names)


def split_half_by_budget(
    observations: Observations,
    budgets: Sequence[int] | None = None,
    *,
    model: Model | None = None,
    trials: int = TRIALS,
    seed: Seed = 0,
    level: float = 0.95,
) -> pl.DataFrame:
    """Compute split-half reliability by the number of judgments per unit in each half.

    By default from 1 to half of the median number of judgments. A row for each budget and statistic; the columns are
    `per_half`, `judgments` (the judgments in a half over all units) and those of a statistic.
    """
    bootstrap = _checked(seed, trials, level, None)
    halves = Halves.of(observations, model, "unit", bootstrap.seed)
    if budgets is None:
        most = int(np.median(halves.splitter.sizes)) // 2 if len(halves.splitter.sizes) else 0
        budgets = range(1, max(most, 1) + 1)
    frames = []
    for budget in budgets:
        _checked(seed, trials, level, budget)
        average = averages_over(halves.scores(trials, budget), [_mask(observations, None)], trials)[0]
        judgments = float(np.minimum(halves.splitter.sizes / 2, budget).sum())
        frame = statistics_table(average.statistics(bootstrap))
        frames.append(frame.select(pl.lit(budget).alias("per_half"), pl.lit(judgments).alias("judgments"), pl.all()))
    return pl.concat(frames)


def split_half_by_subset(
    observations: Observations,
    tags: Mapping[str, str | Collection[str]],
    *,
    model: Model | None = None,
    per_half: int | None = None,
    trials: int = TRIALS,
    seed: Seed = 0,
    level: float = 0.95,
) -> pl.DataFrame:
    """Compute split-half reliability within subsets of items, from each item's tag or tags.

    Each half scores all items; the correlation is over the items of a subset. A row for each subset and
    statistic, in the order of the subsets' names.
    """
    bootstrap = _checked(seed, trials, level, per_half)
    halves = Halves.of(observations, model, "unit", bootstrap.seed)
    members: dict[str, list[str]] = {}
    for item, item_tags in tags.items():
        for tag in [item_tags] if isinstance(item_tags, str) else item_tags:
            members.setdefault(tag, []).append(item)
    if not members:
        raise DataError("no item has a tag.", "Give a mapping from items to their tags.")
    names = sorted(members)
    subsets = [_mask(observations, members[name]) for name in names]
    averages = averages_over(halves.scores(trials, per_half), subsets, trials)
    frames = [statistics_table(average.statistics(bootstrap)) for average in averages]
    return pl.concat(
        [frame.select(pl.lit(name).alias("subset"), pl.all()) for name, frame in zip(names, frames, strict=True)]
    )


def split_half_difference(
    first: Observations,
    second: Observations,
    *,
    models: tuple[Model | None, Model | None] = (None, None),
    correlation: str = "spearman",
    trials: int = TRIALS,
    seed: Seed = 0,
    level: float = 0.95,
) -> Significance:
    """Test whether two methods differ in split-half reliability over the items they share.

    The test is Student's t, paired by item: each item's influence on the one reliability minus that on the other.
    A t test over trials would make any difference significant, because the number of trials is arbitrary.
    """
    if correlation not in CORRELATIONS:
        raise ConfigError(f"unknown correlation '{correlation}'.", f"Known: {', '.join(CORRELATIONS)}.")
    bootstrap = _checked(seed, trials, level, None)
    shared = sorted(set(first.items.ids) & set(second.items.ids))
    if not shared:
        raise DataError("the two sets of judgments have no items in common.", "Compare judgments of the same items.")
    parts = []
    for observations, model in zip((first, second), models, strict=True):
        halves = Halves.of(observations, model, "unit", bootstrap.seed)
        average = averages_over(halves.scores(trials, None), [_mask(observations, shared)], trials)[0]
        parts.append((average.of[correlation], observations.items.codes(shared)))
    name = f"split_half_difference_{correlation}"
    (one, one_codes), (other, other_codes) = parts
    if not one.count or not other.count:
        statistic = Statistic(name, None, note="undefined: one of the two has no split-half reliability")
        return Significance(statistic, None, 0.0, "paired t over items")
    influence = one.influence[one_codes] / one.count - other.influence[other_codes] / other.count
    count = int((one.used[one_codes] & other.used[other_codes]).sum())
    variance = jackknife_variance(influence, count) + one.trial_variance + other.trial_variance
    statistic = bootstrap.statistic_from_sd(
        name,
        one.mean - other.mean,
        float(np.sqrt(variance)),
        count,
        unit="items",
        interval="jackknife(items)",
        note=f"{one.mean:.3f} − {other.mean:.3f}, {trials} trials",
        low=-2.0,
        high=2.0,
    )
    p_value = None
    if statistic.lower is not None:
        p_value = float(2 * scipy.stats.t.sf(abs(one.mean - other.mean) / np.sqrt(variance), count - 1))
    return Significance(statistic, p_value, 0.0, "paired t over items")


def _checked(seed: Seed, trials: int, level: float, per_half: int | None) -> Bootstrap:
    if trials < 1:
        raise ConfigError(f"{trials} trials.", "Give at least 1; 100 is usual.")
    if per_half is not None and per_half < 1:
        raise ConfigError(f"{per_half} judgments in each half.", "Give at least 1.")
    return Bootstrap.of(seed, 200, level)


def _mask(observations: Observations, items: Collection[str] | None) -> NDArray[np.bool_]:
    if items is None:
        return np.ones(len(observations.items), bool)
    mask = np.zeros(len(observations.items), bool)
    mask[[observations.items.code(item) for item in items]] = True
    return mask
