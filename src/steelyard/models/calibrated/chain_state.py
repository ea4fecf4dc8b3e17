"""Data of a chain of the calibrated scale, for the kernels: judgments, latest draw and trace.

Item locations are x_i ~ N(m + β·z_i, s²), with the items' covariates z, if there are any.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.models.calibrated.evidence import PairRows, RatingRows, TupleRows
from steelyard.models.calibrated.responder_kernels import Ladder
from steelyard.observations import FloatArray, IntArray

MEAN_PRIOR = (0.5, 0.5)
"""Prior mean and sd of the items' mean m on a rating scale of length 1. Of compared items, m is 0."""

RATED_SD, COMPARED_SD = 0.3, 2.5
"""Scales of the half-normal priors of the items' sd s: on a rating scale of length 1, and of compared items."""

SHIFT_SD = 0.05
"""Scale of the half-normal prior of the sd of shifts."""

MARGIN_PRIOR = (log(0.4), 1.0)
"""Prior mean and sd of the log tie margin, and of the logs of the distances between cuts of strengths."""

# Entries of the common unknowns, and steps of their random walks.
MEAN, SD, SHIFT, MARGIN, MARGIN_STEP, FACTOR_STEP, SWEEP = 0, 1, 2, 3, 4, 5, 6


class Rows(NamedTuple):
    """All judgments, by how the model reads them."""

    ratings: RatingRows
    pairs: PairRows
    tuples: TupleRows


class EndRows(NamedTuple):
    """Items with many ratings at an end of the scale, and all ratings of each: `row[start[k]:start[k + 1]]`."""

    item: NDArray[np.int64]
    start: NDArray[np.int64]
    row: NDArray[np.int64]
    responder: NDArray[np.int64]


class ItemRows(NamedTuple):
    """The comparisons of every item as seen from it: those of item i are `start[i]` to `start[i + 1]` - 1.

    `won` is as the outcome in `PairRows`. `is_even` says which items have several wins and several losses.
    """

    start: NDArray[np.int64]
    other: IntArray
    responder: IntArray
    won: NDArray[np.int8]
    is_even: NDArray[np.bool_]


class Problem(NamedTuple):
    """What a chain draws from: the rows to use, all rows, the rung of the model, and the origin of the scale.

    By group: whether ratings are bounded, the number of steps above the lowest, and the `edges` between steps.
    """

    rows: Rows
    whole: Rows
    ends: EndRows
    of_item: ItemRows
    rung: Ladder
    origin: float
    bounded: NDArray[np.bool_]
    steps: NDArray[np.int64]
    edges: FloatArray


class Draw(NamedTuple):
    """The latest draw of everything but the responders; changed in place."""

    x: FloatArray
    prior_mean: FloatArray
    columns: FloatArray
    """Covariates of the items, uncorrelated; no columns where there are none."""
    weights: FloatArray
    rating_response: FloatArray
    pair_response: FloatArray
    lapsed: NDArray[np.bool_]
    tuple_response: FloatArray
    shift: FloatArray
    slope: FloatArray
    noise: FloatArray
    lapse_rate: FloatArray
    common: FloatArray
    cuts: FloatArray
    """The tie margin and the higher cuts between strengths; a proposal of them; and the steps of their random walks."""
    work: FloatArray
    shift_work: FloatArray
    responder_work: FloatArray


class Trace(NamedTuple):
    """Records of the draws: locations, population parameters, common unknowns and weights of covariates by draw.

    `line` has sums and sums of squares, by responder, of intercept, slope, noise sd, lapse rate and whether random.
    `score` has sums for the rows that are held out: predictive densities of ratings, comparisons and tuples, expected
    answers of ratings, and predictive probabilities of the winners of comparisons; empty if no rows are held out.
    """

    x: FloatArray
    population: FloatArray
    common: FloatArray
    weights: FloatArray
    line: FloatArray
    score: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]
