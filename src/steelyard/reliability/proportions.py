"""Proportions, with an interval even if they are 0 or 1."""

from __future__ import annotations

import numpy as np

from steelyard.models.labels.majority import wilson
from steelyard.observations import FloatArray
from steelyard.reliability.bootstrap import Bootstrap, Names, weighted_proportion
from steelyard.reliability.statistic import Statistic
from steelyard.reliability.units import Codes


def proportion(
    key: str,
    part: FloatArray,
    whole: FloatArray,
    bootstrap: Bootstrap,
    *,
    unit: str,
    note: str,
    undefined: str,
    cluster: Codes | None = None,
    counted: str = "",
    names: Names | None = None,
) -> Statistic:
    """Compute Σ part / Σ whole with an interval resampled over clusters, or over the units themselves.

    Resampling a proportion of 0 or 1 gives no variance; it gets Wilson's interval with each unit as a trial
    (`counted` names the units if they are not the resampling units).
    """
    clusters = len(part) if cluster is None else int(cluster.max(initial=-1)) + 1
    statistic = bootstrap.statistic(
        key,
        weighted_proportion(part, whole),
        clusters,
        unit=unit,
        note=note,
        undefined=undefined,
        low=0.0,
        cluster=cluster,
        names=names,
    )
    if statistic.value not in {0.0, 1.0} or statistic.lower is not None or bootstrap.replicates < 2:
        return statistic
    trials = np.array([len(part)])
    hits = np.rint(np.array([statistic.value]) * trials)
    lower, upper = wilson(hits.astype(np.int32), trials.astype(np.int32), bootstrap.level)
    value = statistic.value
    low, high = max(min(float(lower[0]), value), 0.0), min(max(float(upper[0]), value), 1.0)
    return Statistic(key, value, low, high, f"wilson({counted or unit})", len(part), note)
