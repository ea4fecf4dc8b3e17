"""Match quality between items, by round of the design `match_quality`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import polars as pl

from steelyard import registry
from steelyard.analysis.history import History, observations_of
from steelyard.models.comparisons.match_quality import match_quality
from steelyard.observations import Observations, Ratings
from steelyard.study import Stage, Study

DESIGN = "match_quality"
_SCHEMA = {
    "round": pl.Int64,
    "label": pl.String,
    "row": pl.Int64,
    "column": pl.Int64,
    "quality": pl.Float64,
    "item": pl.String,
    "other": pl.String,
}


def matched_stage(study: Study) -> Stage | None:
    """Return the first stage whose design is match_quality, if there is one."""
    return next((stage for stage in study.config.stages if stage.design.name == DESIGN), None)


def match_quality_by_round(
    history: History, study: Study, ranked: pl.DataFrame, *, cells: int = 24, rounds: int = 4
) -> pl.DataFrame:
    """Return the match quality of items with each other at the opening of some rounds, the first and last included.

    As Fig. 8 of Sakaguchi & Van Durme (2018), where all items match alike at first and neighbours best in the
    end. Up to `cells` items are included, spread evenly over the ranking by their present scores, the lowest
    first. Columns: `round`, `label`, `row`, `column`, `quality`, `item`, `other`. Empty where no stage has that
    design, or it scores groups rather than items.
    """
    stage = matched_stage(study)
    empty = pl.DataFrame(schema=_SCHEMA)
    if stage is None or "score" not in ranked.columns or stage.design.settings().get("by", "item") != "item":
        return empty
    picks = history.picks.filter(pl.col("stage") == stage.name)
    openings = picks.group_by("round").agg(pl.col("seq").min()).sort("round")
    if openings.is_empty():
        return empty
    chosen = openings[_spread(openings.height, rounds)]
    order = ranked.filter(pl.col("score").is_not_null())["item"].reverse()
    order = order if order.len() > 1 else pl.Series("item", [item.id for item in study.items])
    items = order.gather(_spread(order.len(), cells)).to_list()
    frames = []
    states = _states(history, study, stage, chosen["seq"].to_list())
    codes = np.array([place for place, item in _places(study, items)], np.int64)
    gamma = float(stage.design.settings().get("gamma", 0.1))  # type: ignore[arg-type]
    for number, state in zip(chosen["round"].to_list(), states, strict=True):
        quality = match_quality(state, codes[:, None], codes[None, :], gamma)
        row, column = np.divmod(np.arange(quality.size), len(items))
        frames.append(
            pl.DataFrame(
                {
                    "round": np.full(quality.size, number),
                    "label": [f"round {number + 1}"] * quality.size,
                    "row": row,
                    "column": column,
                    "quality": quality.ravel(),
                    "item": [items[place] for place in row],
                    "other": [items[place] for place in column],
                },
                schema=_SCHEMA,
            )
        )
    return pl.concat(frames)


def _spread(count: int, most: int) -> list[int]:
    steps = min(count, most)
    return sorted({round(step * (count - 1) / max(1, steps - 1)) for step in range(steps)})


def _places(study: Study, items: list[str]) -> list[tuple[int, str]]:
    code = {item.id: place for place, item in enumerate(study.items)}
    return [(code[item], item) for item in items]


def _states(history: History, study: Study, stage: Stage, openings: list[int]) -> list[Any]:
    """Return the state of the design's model just before each of these events."""
    settings = stage.design.settings()
    name = str(settings.get("model", "easl"))
    parameters = {field.name for field in fields(registry.find("models", name))}
    model = registry.create(
        "models", name, {k: settings[k] for k in ("gamma", "epsilon") if k in settings and k in parameters}
    )
    kind = next(kind for kind in model.accepts if kind in stage.protocol.kinds)
    state = model.start(len(study.items))
    observations = observations_of(study, (j for j in history.records if j.counts), kind, stage.name).get("")
    if observations is None:
        return [state] * len(openings)
    if observations.has_comparisons:
        observations = observations.to_comparisons()
    seq = dict(history.judgments.select("judgment_id", "seq").iter_rows())
    arrival = np.array([seq[task] for task in observations.tasks.ids], np.int64)[observations.task]
    states = []
    before = 0
    for opening in openings:
        state = _update(model, state, observations, (arrival >= before) & (arrival < opening))
        states.append(state)
        before = opening
    return states


def _update(model: Any, state: Any, observations: Observations, rows: np.ndarray[Any, np.dtype[np.bool_]]) -> Any:
    if not rows.any():
        return state
    part = observations.subset(rows)
    return model.update(state, part.item, part.unit_value) if isinstance(part, Ratings) else model.update(state, part)
