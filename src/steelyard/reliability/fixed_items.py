"""Intervals of split-half reliability for fixed items: a delete-a-group jackknife over annotators.

The infinitesimal jackknife over items (correlation.py) treats the items as a sample of similar items. Here, the items
stay, and groups of annotators are left out in turn: the variance is that of other annotators judging the same items.
Annotators cannot be resampled, because an annotator drawn twice would be in both halves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.models.inference.hashing import hashed
from steelyard.observations import FloatArray, Observations
from steelyard.reliability.bootstrap import Bootstrap
from steelyard.reliability.correlation import correlation_statistic
from steelyard.reliability.split_trials import Halves, spearman_brown_corrected
from steelyard.reliability.statistic import Statistic

GROUPS = 20
"""Groups of annotators, or of judgments, that are left out in turn."""
_TRIALS, _MIN_TRIALS, _MAX_ROWS = 10, 2, 10_000_000
"""Random halves for each group left out; fewer if they would split more rows than this."""
_MIN_ANNOTATORS = 3
_WHAT_VARIES = "the items are fixed; {} vary, and in which half they are"


class JackknifeGroups(NamedTuple):
    """The group of each row, how many units were grouped, and what they are: annotators or judgments."""

    group: NDArray[np.int64]
    units: int
    kind: str


def jackknife_groups(observations: Observations, least: int = _MIN_ANNOTATORS) -> JackknifeGroups:
    """Group the annotators if all are known and at least `least`, else the judgments, at random."""
    if observations.knows_annotators:
        codes, unit = np.unique(observations.annotator, return_inverse=True)
        if len(codes) >= least:
            # By hashes of their names, so that the order of the rows does not matter.
            key = hashed([observations.annotators[int(code)] for code in codes], 0)
            return JackknifeGroups((np.argsort(np.argsort(key)) % GROUPS)[unit], len(codes), "annotators")
    count = len(observations)
    return JackknifeGroups(np.random.default_rng(0).permutation(np.arange(count) % GROUPS), count, "judgments")


def group_variance(estimates: FloatArray) -> float:
    """Return the jackknife variance, on Fisher's scale (z = atanh r), from the correlation without each group."""
    z = np.arctanh(np.clip(estimates, -0.999999, 0.999999))
    return (len(z) - 1) / len(z) * float(((z - z.mean()) ** 2).sum())


def with_fixed_items(halves: Halves, statistics: tuple[Statistic, ...], bootstrap: Bootstrap) -> tuple[Statistic, ...]:
    """Add each correlation again, with its interval for fixed items, plain and Spearman–Brown corrected.

    `statistics` are those of `Averages.statistics`; undefined ones are not repeated.
    """
    plain = {s.key.removeprefix("split_half_"): s for s in statistics if not s.key.endswith("_corrected")}
    plain = {name: statistic for name, statistic in plain.items() if statistic.value is not None}
    if not plain:
        return statistics
    groups = jackknife_groups(halves.observations)
    trials = int(np.clip(_MAX_ROWS // (len(groups.group) * GROUPS), _MIN_TRIALS, _TRIALS))
    estimates = halves.without_groups(groups.group, trials)
    added: list[Statistic] = []
    for name, statistic in plain.items():
        fixed = _fixed(statistic, estimates[name], groups, bootstrap)
        added += [fixed, spearman_brown_corrected(f"split_half_{name}_corrected_fixed_items", fixed)]
    return (*statistics, *added)


def _fixed(plain: Statistic, estimates: FloatArray, groups: JackknifeGroups, bootstrap: Bootstrap) -> Statistic:
    key, r = f"{plain.key}_fixed_items", float(plain.value or 0.0)
    note = _WHAT_VARIES.format(groups.kind)
    if len(estimates) < _MIN_ANNOTATORS:
        return Statistic(key, r, n=groups.units, note=f"no interval: too few {groups.kind}")
    # The interval is symmetric on Fisher's scale, where the variance of r is divided by (1 − r²)².
    variance = group_variance(estimates) * (1 - r * r) ** 2
    statistic = correlation_statistic(key, r, variance, len(estimates), bootstrap, note=note, unit=groups.kind)
    return replace(statistic, n=groups.units)
