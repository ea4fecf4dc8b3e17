"""Fits of judgments from which a model cannot estimate anything: null scores, with the reason as a note."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from steelyard.errors import NoEvidenceError
from steelyard.models.fit import Fit, Model
from steelyard.models.labels.observed import ObservedLabels
from steelyard.models.labels.table import Interval, label_table
from steelyard.models.table import Uncertainty, count_by_item, score_table
from steelyard.observations import Labels, Observations

F = TypeVar("F", bound=Callable[..., Fit])


def null_without_evidence(fit: F) -> F:
    """Make a model's `fit` return null scores, and the reason as a note, where it raises NoEvidenceError."""

    @wraps(fit)
    def fit_or_null(self: Model, observations: Any, *args: Any, **kwargs: Any) -> Fit:
        try:
            return fit(self, observations, *args, **kwargs)
        except NoEvidenceError as error:
            return unscored(self, observations, error.problems[0].what.rstrip("."))

    return cast("F", fit_or_null)


def unscored(model: Model, observations: Observations, reason: str) -> Fit:
    """Return a fit without scores; labels of a single class are certain of it."""
    if isinstance(observations, Labels):
        return _unlabelled(model, observations, reason)
    nulls = np.full(len(observations.items), np.nan)
    judgments, annotators = count_by_item(observations, *observations.incidence())
    table = score_table(
        observations.items,
        nulls,
        nulls,
        Uncertainty("", nulls[None], nulls, nulls, nulls),
        judgments,
        annotators,
        level=0.95,
    )
    return Fit(model.name, model.settings(), table, notes=(f"no scores: {reason}",))


def _unlabelled(model: Model, labels: Labels, reason: str) -> Fit:
    tally = ObservedLabels(labels)
    probabilities = np.full(tally.votes.shape, np.nan)
    if len(labels.classes) == 1:
        probabilities[tally.votes.sum(axis=1) > 0] = 1.0
    nulls = np.full(len(labels.items), np.nan)
    table = label_table(tally, probabilities, Interval(nulls, nulls), "", counts=tally.counts)
    return Fit(model.name, model.settings(), table, notes=(f"no estimates: {reason}",))
