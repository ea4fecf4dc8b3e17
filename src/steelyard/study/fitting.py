"""Which observations of a study its model is fitted to, and the scores of items that are identical to another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from steelyard.designs.tournament import Tournament
from steelyard.errors import DataError
from steelyard.models.fit import Fit, Model
from steelyard.observations import Comparisons, Mixed, Observations, Ratings
from steelyard.study.config import Stage
from steelyard.study.observing import way_of


def tournament_design(stages: Sequence[Stage]) -> Tournament | None:
    """Return the design of the first stage that holds tournaments; None if there is none."""
    return next((stage.design for stage in stages if isinstance(stage.design, Tournament)), None)


def kind_for(model: Model, stages: Sequence[Stage]) -> str:
    """Return the kind of observations to fit a model to: its preferred one among those the stages give.

    Where a model can take several ways of asking at once, and there are several, it is "mixed".
    """
    ways = {way for stage in stages if (way := way_of(stage.protocol)) is not None}
    if Mixed.kind in model.accepts and len(ways) > 1:
        return Mixed.kind
    yielded = {kind for stage in stages for kind in stage.protocol.kinds}
    kind = next((kind for kind in model.accepts if kind in yielded), None)
    if kind is None:
        raise DataError(
            f"{model.name} needs {' or '.join(model.accepts)}; this study gives {', '.join(sorted(yielded))}.",
            "Choose another model.",
        )
    return kind


def on_rating_scale(model: Model, stages: Sequence[Stage]) -> bool:
    """Whether the scores are on the scale of the ratings asked for."""
    return Ratings.kind in model.accepts and any(Ratings.kind in stage.protocol.kinds for stage in stages)


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


def fit_with_duplicates(fit: Fit, same_as: Mapping[str, str]) -> Fit:
    """Give each twin the score and the draws of the item it is identical to."""
    if not same_as:
        return fit
    scores = with_duplicates(fit.scores, same_as)
    if fit.draws is None:
        return replace(fit, scores=scores)
    keys = [name for name in ("item", "criterion") if name in scores.columns]
    place = {key: row for row, key in enumerate(fit.scores.select(keys).rows())}
    rows = [place[(same_as.get(key[0], key[0]), *key[1:])] for key in scores.select(keys).rows()]
    return replace(fit, scores=scores, draws=fit.draws[:, rows])


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
        strength=observations.strength[chosen],
        annotator=observations.annotator[chosen],
        task=observations.task[chosen],
    )
