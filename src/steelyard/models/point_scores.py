"""Scores of a model without its intervals, for simulations and random halves, which fit a model hundreds of times.

Means and counts are exact. Models on a latent scale are maximised by Newton's method, which gives their own scores.
The calibrated scale is replaced by its approximation for running studies (`calibrated.online`), which has the same
parameters: its scores correlate with those of the sampled model at .99 and predict true values equally well
(docs/concepts/simulation.md).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from steelyard.errors import NoEvidenceError, SteelyardWarning
from steelyard.models.calibrated.online import CalibratedState
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.models.comparisons.latent import LatentScale
from steelyard.models.comparisons.paired import pairs_of
from steelyard.models.fit import Model
from steelyard.observations import (
    UNKNOWN,
    Choices,
    Comparisons,
    FloatArray,
    Mixed,
    Observations,
    Rankings,
    Ratings,
)

_FEWEST_DRAWS = 20
"""Draws of a model that has no faster form: they set its intervals, which are not used."""


@dataclass(frozen=True, slots=True)
class PointScores:
    """Scores every item as a model does, or nearly so, in milliseconds."""

    model: Model

    def check_kind(self, observations: Observations) -> None:
        """Refuse observations that the model does not accept."""
        self.model.check_kind(observations)

    @property
    def stand_in(self) -> str:
        """What replaces the model; empty if the scores are the model's own."""
        return "its approximation for running studies" if isinstance(self.model, CalibratedScale) else ""

    def scores(self, observations: Observations) -> FloatArray:
        """Return the score of every item; NaN where there is no judgment."""
        if isinstance(self.model, CalibratedScale) and observations.kind != Mixed.kind:
            return calibrated_scores(observations)[0]
        if isinstance(self.model, LatentScale):
            try:
                return self.model.point_scores(observations)
            except NoEvidenceError:
                return np.full(len(observations.items), np.nan)
        return _fitted_scores(self.model, observations)


def calibrated_scores(observations: Observations) -> tuple[FloatArray, FloatArray]:
    """Return posterior mean and standard deviation of every item under the calibrated scale, approximately.

    In units of the rating scale [0, 1] for ratings, else in standard deviations of the items. NaN without judgments.
    """
    state = CalibratedState(len(observations.items), len(observations.annotators))
    if isinstance(observations, Ratings):
        state.learn_ratings(observations.annotator, observations.item, observations.unit_value)
    elif isinstance(observations, Comparisons | Choices | Rankings):
        pairs = pairs_of(observations)
        row = np.arange(len(pairs.left)) if pairs.row is None else pairs.row
        if len(row) == 0:
            nothing = np.full(len(observations.items), np.nan)
            return nothing, nothing.copy()
        state.margin = 0.1 if (pairs.outcome == 0).any() else 0.0
        weight = np.minimum(1.0, (_task_sizes(observations)[row] - 1) / np.bincount(row)[row])
        state.learn(observations.annotator[row], pairs.left, pairs.right, pairs.outcome, weight=weight)
    state.refit()
    is_judged = np.zeros(len(observations.items), bool)
    is_judged[observations.incidence()[0]] = True
    sd = np.sqrt(state.variance)
    mean = state.mean
    if isinstance(observations, Ratings):
        mean, sd = state.on_rating_scale(mean), state.rating_spread(sd)
    return np.where(is_judged, mean, np.nan), np.where(is_judged, sd, np.nan)


def _task_sizes(observations: Comparisons | Choices | Rankings) -> FloatArray:
    """Return the number of items of each judgment."""
    if isinstance(observations, Choices):
        return np.asarray((observations.shown != UNKNOWN).sum(axis=1), np.float64)
    if isinstance(observations, Rankings):
        return np.diff(observations.start).astype(np.float64)
    return np.full(len(observations), 2.0)


def _fitted_scores(model: Model, observations: Observations) -> FloatArray:
    """Fit the model itself, with as few draws as it allows."""
    if any(field.name == "draws" for field in fields(model)):  # type: ignore[arg-type]
        changes: dict[str, Any] = {"draws": _FEWEST_DRAWS}
        model = replace(model, **changes)  # type: ignore[type-var]
    scores = np.full(len(observations.items), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SteelyardWarning)
        table = model.fit(observations).scores.drop_nulls("score")
    scores[observations.items.codes(table["item"].to_list())] = table["score"].to_numpy()
    return scores
