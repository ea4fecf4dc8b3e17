"""Split-half reliability: do two halves of the judgments, chosen at random, give the same scores?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from steelyard.errors import ConfigError, DataError
from steelyard.models.fit import Model
from steelyard.observations import Observations
from steelyard.reliability.bootstrap import Bootstrap, Seed
from steelyard.reliability.correlation import jackknife_variance
from steelyard.reliability.figure import Figure, Significance, figures_table
from steelyard.reliability.split_trials import CORRELATIONS, Halves, averages_over
from steelyard.reliability.splitting import UNIT_NAMES

TRIALS = 100
BY_ANNOTATORS = "halves are of annotators: hardly any unit was judged twice"
_LEAST_ANNOTATORS = 4


@dataclass(frozen=True, slots=True)
class SplitHalf:
    """Split-half reliability: plain and stepped-up Spearman and Pearson, and what they rest on."""

    figures: tuple[Figure, ...]
    trials: int
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> pl.DataFrame:
        """The figures as a table, a row each."""
        return figures_table(self.figures)

    def __getitem__(self, name: str) -> Figure:
        """Return a figure by its full name, or by "Spearman" or "Pearson" for the plain ones."""
        for figure in self.figures:
            if name in (figure.name, figure.name.removeprefix("split-half (").removesuffix(")")):
                return figure
        raise ConfigError(f"no figure '{name}'.", f"Known: {', '.join(f.name for f in self.figures)}.")


def split_half(
    observations: Observations,
    *,
    model: Model | None = None,
    by: str = "unit",
    per_half: int | None = None,
    items: Collection[str] | None = None,
    trials: int = TRIALS,
    seed: Seed = 0,
    level: float = 0.95,
) -> SplitHalf:
    """Split each unit's judgments in two at random, score both halves and correlate; averaged over trials.

    As §5 of Kiritchenko & Mohammad (2017): the plain correlation is the one to report, of scores that rest on
    half of the judgments; the Spearman–Brown value beside it estimates that of all of them.

    Parameters
    ----------
    observations
        Ratings (split within each item), comparisons (within each pair, of one task where tasks are known),
        choices (within each tuple) or rankings (within each task, or set of items).
    model
        Any model that eats them. By default the mean of ratings, and counting for the rest, which are quick.
    by
        "unit", or "annotator" to put all judgments of an annotator in one half, as comparative judgement does.
    per_half
        Judgments that each half takes of a unit; by default half of what there is. A unit with fewer than
        twice as many gives what it has.
    items
        Correlate over these items only. All items are scored.
    trials, seed
        How many times to split, and the seed. The same seed gives the same halves, in whatever order the
        judgments come.
    level
        Of the intervals: an infinitesimal jackknife over items, even on Fisher's scale, with the variance among
        trials added.
    """
    bootstrap = _checked(seed, trials, level, per_half)
    halves = Halves.of(observations, model, by, bootstrap.seed)
    chosen = _mask(observations, items)
    average = averages_over(halves, [chosen], trials, per_half)[0]
    return SplitHalf(average.figures(bootstrap), trials, halves.notes(per_half))


def split_half_or_reason(observations: Observations, trials: int, bootstrap: Bootstrap) -> tuple[Figure, ...]:
    """Compute split-half reliability where most judgments have another of the same unit.

    Where they do not, halves are of annotators, and the figures say so; with too few annotators they say why not.
    """
    if not len(observations):
        return _undefined("undefined: there are no judgments")
    halves = Halves.of(observations, None, "unit", bootstrap.seed)
    sizes, note = halves.splitter.sizes, ""
    if 2 * int(sizes[sizes > 1].sum()) < len(observations):
        if len(np.unique(observations.annotator)) < _LEAST_ANNOTATORS or not observations.knows_annotators:
            unit = UNIT_NAMES[type(observations)]
            return _undefined(
                f"undefined: most judgments are the only one of their {unit}, so there is nothing to split"
            )
        halves, note = Halves.of(observations, None, "annotator", bootstrap.seed), BY_ANNOTATORS
    figures = averages_over(halves, [_mask(observations, None)], trials, None)[0].figures(bootstrap)
    return tuple(replace(figure, note="; ".join(part for part in (figure.note, note) if part)) for figure in figures)


def _undefined(why: str) -> tuple[Figure, ...]:
    names = (f"split-half ({name}{end})" for name in CORRELATIONS for end in ("", ", stepped up"))
    return tuple(Figure(name, None, note=why) for name in names)


def split_half_by_budget(
    observations: Observations,
    budgets: Sequence[int] | None = None,
    *,
    model: Model | None = None,
    trials: int = TRIALS,
    seed: Seed = 0,
    level: float = 0.95,
) -> pl.DataFrame:
    """Compute split-half reliability against the number of judgments that each half takes of a unit.

    By default from 1 to half of what the median unit has. A row for each budget and figure; the columns are
    those of a figure, after `per_half` and `judgments`, the judgments in a half over all units.
    """
    bootstrap = _checked(seed, trials, level, None)
    halves = Halves.of(observations, model, "unit", bootstrap.seed)
    if budgets is None:
        most = int(np.median(halves.splitter.sizes)) // 2 if len(halves.splitter.sizes) else 0
        budgets = range(1, max(most, 1) + 1)
    frames = []
    for budget in budgets:
        _checked(seed, trials, level, budget)
        average = averages_over(halves, [_mask(observations, None)], trials, budget)[0]
        judgments = float(np.minimum(halves.splitter.sizes / 2, budget).sum())
        frame = figures_table(average.figures(bootstrap))
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

    Every half scores all items; the correlation is over a subset's. A row for each subset and figure, in the
    order of the subsets' names.
    """
    bootstrap = _checked(seed, trials, level, per_half)
    halves = Halves.of(observations, model, "unit", bootstrap.seed)
    members: dict[str, list[str]] = {}
    for item, given in tags.items():
        for tag in [given] if isinstance(given, str) else given:
            members.setdefault(tag, []).append(item)
    if not members:
        raise DataError("no item has a tag.", "Give a mapping from items to their tags.")
    names = sorted(members)
    averages = averages_over(halves, [_mask(observations, members[name]) for name in names], trials, per_half)
    frames = [figures_table(average.figures(bootstrap)) for average in averages]
    return pl.concat(
        [frame.select(pl.lit(name).alias("subset"), pl.all()) for name, frame in zip(names, frames, strict=True)]
    )


def split_half_difference(
    first: Observations,
    second: Observations,
    *,
    models: tuple[Model | None, Model | None] = (None, None),
    correlation: str = "Spearman",
    trials: int = TRIALS,
    seed: Seed = 0,
    level: float = 0.95,
) -> Significance:
    """Test whether two methods differ in split-half reliability over the items they share.

    The test is Student's t, paired by item: each item's influence on the one reliability less that on the
    other. A t test over trials would call any difference significant, as trials can be had without end.
    """
    if correlation not in CORRELATIONS:
        raise ConfigError(f"unknown correlation '{correlation}'.", f"Known: {', '.join(CORRELATIONS)}.")
    bootstrap = _checked(seed, trials, level, None)
    shared = sorted(set(first.items.ids) & set(second.items.ids))
    if not shared:
        raise DataError("the two have no items in common.", "Compare judgments of the same items.")
    parts = []
    for observations, model in zip((first, second), models, strict=True):
        halves = Halves.of(observations, model, "unit", bootstrap.seed)
        average = averages_over(halves, [_mask(observations, shared)], trials, None)[0]
        parts.append((average.of[correlation], observations.items.codes(shared)))
    name = f"difference of split-half ({correlation})"
    (one, one_codes), (other, other_codes) = parts
    if not one.count or not other.count:
        figure = Figure(name, None, note="undefined: one of the two has no split-half reliability")
        return Significance(figure, None, 0.0, "paired t over items")
    influence = one.influence[one_codes] / one.count - other.influence[other_codes] / other.count
    count = int((one.seen[one_codes] & other.seen[other_codes]).sum())
    variance = jackknife_variance(influence, count) + one.trial_variance + other.trial_variance
    figure = bootstrap.figure_from_spread(
        name,
        one.mean - other.mean,
        float(np.sqrt(variance)),
        count,
        unit="items",
        interval="jackknife(items)",
        note=f"{one.mean:.3f} less {other.mean:.3f}, {trials} trials",
        low=-2.0,
        high=2.0,
    )
    p_value = None
    if figure.lower is not None:
        p_value = float(2 * stats.t.sf(abs(one.mean - other.mean) / np.sqrt(variance), count - 1))
    return Significance(figure, p_value, 0.0, "paired t over items")


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
