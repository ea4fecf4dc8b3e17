"""Items that are identical to another: what was said of the one holds for both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from steelyard.observations import Comparisons, Mixed, Observations


def with_duplicates(scores: pl.DataFrame, same_as: Mapping[str, str]) -> pl.DataFrame:
    """Give each twin the row of the item it is identical to, in the place of its own empty one."""
    if not same_as:
        return scores
    pairs = pl.DataFrame({"twin": list(same_as), "item": list(same_as.values())})
    twins = pairs.join(scores, on="item").drop("item").rename({"twin": "item"}).select(scores.columns)
    if "group" in scores.columns:
        own = scores.select("item", "group").unique("item")
        twins = twins.drop("group").join(own, on="item", how="left").select(scores.columns)
    unique = scores.filter(~pl.col("item").is_in(list(same_as)))
    order = "score" if "score" in scores.columns else "probability"
    return pl.concat([unique, twins]).sort(order, descending=True, nulls_last=True, maintain_order=True)


def comparisons_of_duplicates(observations: Observations, same_as: Mapping[str, str]) -> Observations:
    """Let every comparison of an item count for its twins as well, as scores of groups need it."""
    if same_as and observations.kind == Mixed.kind:
        return Mixed.of(comparisons_of_duplicates(part, same_as) for part in observations.components())
    if not same_as or not isinstance(observations, Comparisons):
        return observations
    code = observations.items.code
    twins: defaultdict[int, list[int]] = defaultdict(list)
    for twin, first in same_as.items():
        twins[code(first)].append(code(twin))
    rows, left, right = [], [], []
    for row, (one, other) in enumerate(zip(observations.left.tolist(), observations.right.tolist(), strict=True)):
        for a in [one, *twins.get(one, ())]:
            for b in [other, *twins.get(other, ())]:
                rows.append(row)
                left.append(a)
                right.append(b)
    chosen = np.array(rows, np.intp)
    return replace(
        observations,
        left=np.array(left, np.int32),
        right=np.array(right, np.int32),
        outcome=observations.outcome[chosen],
        annotator=observations.annotator[chosen],
        task=observations.task[chosen],
    )
