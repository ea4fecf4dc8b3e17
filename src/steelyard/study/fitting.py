"""Which observations of a study its model is fitted to."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.errors import DataError
from steelyard.models.fit import Model
from steelyard.observations import Mixed, Ratings
from steelyard.study.config import Stage
from steelyard.study.observing import way_of


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
