"""The Fisher information of a comparison, tabulated for an annotator's noise."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from steelyard.designs.adaptive.kernels import InformationTable, tabulate_outcomes
from steelyard.models.calibrated.online import LEVELS
from steelyard.observations import FloatArray

_ROWS, _COLUMNS = 128, 24
_MAX_DISTANCE, _MAX_VARIANCE = 8.0, 2.0
"""Largest distance of two items, in prior standard deviations, and largest variance of their difference."""


def information_table(
    level_probability: FloatArray, tie_margin: float, *, pair_weight: float = 1.0, rating_precision: float = 0.0
) -> InformationTable:
    """Return the expected information of an annotator's answers.

    `level_probability` is the posterior over the annotator's noise levels; the other parameters are fields of
    `InformationTable`. The information about a difference is the Fisher information of the predicted outcome: squared
    slope over probability, summed over outcomes.
    """
    probability, slope = _outcomes_by_level(tie_margin)
    by_outcome = (level_probability @ slope) ** 2 / (level_probability @ probability)
    table = by_outcome.reshape(-1, _ROWS, _COLUMNS).sum(axis=0)
    return InformationTable(table, _MAX_DISTANCE, _MAX_VARIANCE, pair_weight, rating_precision)


@lru_cache(maxsize=8)
def _outcomes_by_level(tie_margin: float) -> tuple[FloatArray, FloatArray]:
    """Return the probability of each possible outcome and its slope on the table's grid, one row per noise level."""
    shape = (3, len(LEVELS), _ROWS, _COLUMNS)
    probability, slope = np.empty(shape), np.empty(shape)
    tabulate_outcomes(LEVELS, tie_margin, _MAX_DISTANCE, _MAX_VARIANCE, probability, slope)
    outcomes = [0, 1, 2] if tie_margin > 0 else [0, 2]
    by_level = [np.ascontiguousarray(array[outcomes].swapaxes(0, 1)) for array in (probability, slope)]
    return by_level[0].reshape(len(LEVELS), -1), by_level[1].reshape(len(LEVELS), -1)
