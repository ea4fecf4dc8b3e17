"""What match quality made of the items, round by round."""

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
    end. Up to `cells` items stand for all, spread evenly over the order of their present scores, the lowest
    first. Columns: `round`, `label`, `row`, `column`, `quality`, `item`, `other`. Empty where no stage has that
    design, or it scores groups rather than items.
    """
    stage = matched_stage(study)
    nothing = pl.DataFrame(schema=_SCHEMA)
    if stage is None or "score" not in ranked.columns or stage.design.settings().get("by", "item") != "item":
        return nothing
    picks = history.picks.filter(pl.col("stage") == stage.name)
    openings = picks.group_by("round").agg(pl.col("seq").min()).sort("round")
    if openings.is_empty():
        return nothing
    chosen = openings[_spread(openings.height, rounds)]
    order = ranked.filter(pl.col("score").is_not_null())["item"].reverse()
    order = order if order.len() > 1 else pl.Series("item", [item.id for item in study.items])
    shown = order.gather(_spread(order.len(), cells)).to_list()
    frames = []
    states = _states(history, study, stage, chosen["seq"].to_list())
    codes = np.array([place for place, item in _places(study, shown)], np.int64)
    gamma = float(stage.design.settings().get("gamma", 0.1))  # type: ignore[arg-type]
    for number, state in zip(chosen["round"].to_list(), states, strict=True):
        quality = match_quality(state, codes[:, None], codes[None, :], gamma)
        row, column = np.divmod(np.arange(quality.size), len(shown))
        frames.append(
            pl.DataFrame(
                {
                    "round": np.full(quality.size, number),
                    "label": [f"round {number + 1}"] * quality.size,
                    "row": row,
                    "column": column,
                    "quality": quality.ravel(),
                    "item": [shown[place] for place in row],
                    "other": [shown[place] for place in column],
                },
                schema=_SCHEMA,
            )
        )
    return pl.concat(frames)


def _spread(count: int, wanted: int) -> list[int]:
    steps = min(count, wanted)
    return sorted({round(step * (count - 1) / max(1, steps - 1)) for step in range(steps)})


def _places(study: Study, shown: list[str]) -> list[tuple[int, str]]:
    code = {item.id: place for place, item in enumerate(study.items)}
    return [(code[item], item) for item in shown]


def _states(history: History, study: Study, stage: Stage, openings: list[int]) -> list[Any]:
    """Return the state of the design's model just before each of these events."""
    settings = stage.design.settings()
    name = str(settings.get("model", "easl"))
    known = {field.name for field in fields(registry.find("models", name))}
    model = registry.create(
        "models", name, {k: settings[k] for k in ("gamma", "epsilon") if k in settings and k in known}
    )
    kind = next(kind for kind in model.accepts if kind in stage.protocol.kinds)
    state = model.start(len(study.items))
    found = observations_of(study, (j for j in history.records if j.counts), kind, stage.name).get("")
    if found is None:
        return [state] * len(openings)
    if found.has_comparisons:
        found = found.to_comparisons()
    seq = dict(history.judgments.select("judgment_id", "seq").iter_rows())
    came = np.array([seq[task] for task in found.tasks.ids], np.int64)[found.task]
    states = []
    before = 0
    for opening in openings:
        state = _updated(model, state, found, (came >= before) & (came < opening))
        states.append(state)
        before = opening
    return states


def _updated(model: Any, state: Any, found: Observations, rows: np.ndarray[Any, np.dtype[np.bool_]]) -> Any:
    if not rows.any():
        return state
    part = found.subset(rows)
    return model.update(state, part.item, part.unit_value) if isinstance(part, Ratings) else model.update(state, part)
