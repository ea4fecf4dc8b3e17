"""The scores table, with the same columns for every model, study, command and export."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.models.inference.resampling import distinct_by_item
from steelyard.observations import FloatArray, Index, IntArray, Observations

SCORE_COLUMNS = (
    "item",
    "score",
    "unit_score",
    "sd",
    "lower",
    "upper",
    "interval",
    "rank",
    "rank_lower",
    "rank_upper",
    "judgments",
    "annotators",
)


LARGEST_DRAWS = 100_000_000
"""A fit keeps its joint draws up to this many numbers (800 MB)."""
ALONE = "items judged by only one of the {units} have no interval"


@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty:
    """Joint draws of all scores (rows), with the interval of each, and how they were made.

    Draws may hold NaN where a resample left an item without judgments.
    """

    how: str
    draws: FloatArray
    sd: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def from_draws(cls, how: str, draws: FloatArray, level: float = 0.95) -> Uncertainty:
        """Take the middle `level` of the draws; NaN for items with fewer than two of them."""
        is_drawn = ~np.isnan(draws)
        enough = is_drawn.sum(axis=0) >= 2
        sd, lower, upper = (np.full(draws.shape[1], np.nan) for _ in range(3))
        if enough.any():
            samples = draws[:, enough]
            sd[enough] = np.nanstd(samples, axis=0, ddof=1)
            lower[enough], upper[enough] = _quantiles(samples, ((1 - level) / 2, (1 + level) / 2))
        return cls(how, draws, sd, lower, upper)

    def scaled(self, low: float, high: float) -> Uncertainty:
        """Carry draws and intervals on [0, 1] over to another scale."""
        width = high - low
        return Uncertainty(
            self.how,
            low + width * self.draws,
            width * self.sd,
            low + width * self.lower,
            low + width * self.upper,
        )

    def without(self, items: NDArray[np.bool_]) -> Uncertainty:
        """Withdraw the intervals of some items: their draws say nothing about how sure they are."""
        sd, lower, upper = (np.where(items, np.nan, x) for x in (self.sd, self.lower, self.upper))
        return Uncertainty(self.how, self.draws, sd, lower, upper)


_LEVEL = 1e-12
"""Scores that differ by less than this part of the largest are tied: the order of additions alone can part them."""


def _closeness(scores: FloatArray) -> float:
    return _LEVEL * float(np.nanmax(np.abs(scores), initial=0.0))


def competition_ranks(score: FloatArray) -> NDArray[np.int64]:
    """Rank from 1, the highest score first; ties share the best place; NaN gets 0."""
    scored_items = np.flatnonzero(~np.isnan(score))
    order = scored_items[np.argsort(-score[scored_items], kind="stable")]
    ranks = np.zeros(len(score), np.int64)
    if len(order):
        first = np.r_[True, score[order][:-1] - score[order][1:] > _closeness(score)]
        ranks[order] = np.maximum.accumulate(np.where(first, np.arange(1, len(order) + 1), 0))
    return ranks


def _ranks_by_row(scores: FloatArray) -> NDArray[np.int32]:
    """Apply `competition_ranks` to every row, all at once."""
    order = np.argsort(-scores, axis=1)
    ordered = np.take_along_axis(scores, order, axis=1)
    place = np.broadcast_to(np.arange(1, scores.shape[1] + 1, dtype=np.int32), scores.shape).copy()
    with np.errstate(invalid="ignore"):
        place[:, 1:][ordered[:, :-1] - ordered[:, 1:] <= _closeness(scores)] = 0
    np.maximum.accumulate(place, axis=1, out=place)
    place[np.isnan(ordered)] = 0
    ranks = np.empty_like(place)
    np.put_along_axis(ranks, order, place, axis=1)
    return ranks


def rank_interval(score: FloatArray, draws: FloatArray, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Return the middle `level` of each item's rank over joint draws, widened to hold its rank."""
    own = competition_ranks(score)
    ranks = np.empty(draws.shape, np.int32)
    rows = max(1, 1_000_000 // max(1, draws.shape[1]))
    for at in range(0, len(draws), rows):
        block = draws[at : at + rows]
        ranks[at : at + rows] = _ranks_by_row(np.where(np.isnan(block), score, block))
    lower, upper = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=0, method="nearest")
    return np.minimum(lower, own), np.maximum(upper, own)


def score_table(
    items: Index,
    score: FloatArray,
    unit_score: FloatArray,
    uncertainty: Uncertainty,
    judgments: IntArray,
    annotators: IntArray | None,
    bounds: tuple[float, float] | None = None,
    *,
    level: float,
) -> pl.DataFrame:
    """Assemble the scores table, best first; items without a score come last, with nulls.

    Intervals always hold their score, and stay within `bounds`; those of ranks hold the middle `level`.
    """
    if bounds is not None:
        score = np.clip(score, *bounds)
    unit_score = np.clip(unit_score, 0, 1)
    unknown = np.isnan(score)
    lower, upper = np.fmin(uncertainty.lower, score), np.fmax(uncertainty.upper, score)
    lower, upper = (np.where(np.isnan(uncertainty.sd), np.nan, x) for x in (lower, upper))
    if bounds is not None:
        lower, upper = np.clip(lower, *bounds), np.clip(upper, *bounds)
    rank = competition_ranks(score)
    rank_lower, rank_upper = rank_interval(score, uncertainty.draws, level)
    # Where all say the same, nothing shows how far they may be off: an interval of no width is none.
    no_interval = np.isnan(lower) | (upper - lower <= 1e-12 * np.maximum(1, np.abs(score)))
    lower, upper = (np.where(no_interval, np.nan, end) for end in (lower, upper))
    frame = pl.DataFrame(
        {
            "item": pl.Series(items.ids, dtype=pl.String),
            "score": _nullable(score),
            "unit_score": _nullable(unit_score),
            "sd": _nullable(np.where(no_interval, np.nan, uncertainty.sd)),
            "lower": _nullable(lower),
            "upper": _nullable(upper),
            "interval": pl.Series([None if none else uncertainty.how for none in no_interval], dtype=pl.String),
            "rank": _nullable_rank(rank, unknown),
            "rank_lower": _nullable_rank(rank_lower, no_interval | unknown),
            "rank_upper": _nullable_rank(rank_upper, no_interval | unknown),
            "judgments": pl.Series(judgments, dtype=pl.Int64),
            "annotators": pl.Series([None] * len(items) if annotators is None else annotators, dtype=pl.Int64),
        }
    )
    return frame.sort("rank", "item", nulls_last=True)


def _quantiles(samples: FloatArray, shares: tuple[float, ...]) -> tuple[FloatArray, ...]:
    """Return quantiles of every column by linear interpolation, without its NaNs; np.nanquantile loops over columns."""
    ordered = np.sort(samples, axis=0)
    last = (~np.isnan(samples)).sum(axis=0) - 1
    columns = np.arange(samples.shape[1])
    quantiles = []
    for share in shares:
        position = share * last
        below = np.floor(position).astype(np.int64)
        low, high = ordered[below, columns], ordered[np.minimum(below + 1, last), columns]
        quantiles.append(low + (position - below) * (high - low))
    return tuple(quantiles)


def aligned_draws(table: pl.DataFrame, items: Index, draws: FloatArray) -> FloatArray | None:
    """Return joint draws (draws × items) in the order of a scores table; None beyond `LARGEST_DRAWS`."""
    if draws.size > LARGEST_DRAWS:
        return None
    return np.asarray(draws[:, items.codes(table["item"].to_list())])


def _nullable(values: FloatArray) -> pl.Series:
    return pl.Series(values, dtype=pl.Float64).fill_nan(None)


def _nullable_rank(values: NDArray[np.int64] | FloatArray, missing: NDArray[np.bool_]) -> pl.Series:
    return pl.Series(np.where(missing, np.nan, values)).fill_nan(None).cast(pl.Int64)


def count_by_item(observations: Observations, item: IntArray, row: IntArray) -> tuple[IntArray, IntArray | None]:
    """Return how many observations and (where known) how many annotators each item has.

    `item` and `row` are parallel: observation `row` concerns `item`.
    """
    n = len(observations.items)
    judgments = np.bincount(item, minlength=n).astype(np.int32)
    if not observations.knows_annotators:
        return judgments, None
    return judgments, distinct_by_item(item, observations.annotator[row], n, len(observations.annotators))
