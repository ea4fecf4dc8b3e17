"""Compare two scorings of the same items: differences of scores and ranks, and the items that moved most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl

from steelyard.errors import DataError
from steelyard.models.fit import Fit
from steelyard.observations import FloatArray
from steelyard.reliability.bootstrap import Bootstrap, Seed, WeightedStatistic, weighted_proportion
from steelyard.reliability.correlation import (
    MIN_ITEMS,
    Correlate,
    correlation_statistic,
    jackknife_variance,
    midranks,
    pearson,
    spearman,
)
from steelyard.reliability.statistic import Statistic, Statistics

Scoring: TypeAlias = Fit | pl.DataFrame | Mapping[str, float]
"""A fit, its scores table, any frame with `item` and `score`, or a mapping from item to score."""


@dataclass(frozen=True, slots=True)
class ScoringComparison(Statistics):
    """Agreement of two scorings of the same items.

    `moved` has a row for each item, sorted by the change of rank, largest first: item, first, second (on [0, 1]),
    difference, rank_first, rank_second, rank_difference (1 is the best rank).
    """

    statistics: tuple[Statistic, ...]
    moved: pl.DataFrame
    notes: tuple[str, ...] = ()


def compare_scorings(
    first: Scoring, second: Scoring, *, seed: Seed = 0, replicates: int = 200, level: float = 0.95
) -> ScoringComparison:
    """Compare two scorings by score and by rank, as Tables 1 and 2 of Kiritchenko & Mohammad (2017).

    Both are rescaled to [0, 1] first: by `unit_score` if a table has it, otherwise linearly, the lowest score to 0
    and the highest to 1. Only items in both scorings are used, and ranks are among these; ties share their mean
    rank. Intervals are over items, with each item's difference in rank held fixed.
    """
    bootstrap = Bootstrap.of(seed, replicates, level)
    (one, one_how), (other, other_how) = _unit_scores(first, "first"), _unit_scores(second, "second")
    shared = sorted(one.keys() & other.keys())
    if not shared:
        raise DataError("the two scorings have no items in common.", "Compare scores of the same items.")
    x, y = (np.array([scores[item] for item in shared]) for scores in (one, other))
    rank_x, rank_y = midranks(-x), midranks(-y)
    apart, ranks_apart = np.abs(x - y), np.abs(rank_x - rank_y)
    count, most = len(shared), float(max(len(shared) - 1, 1))

    def resampled(name: str, function: WeightedStatistic, note: str, high: float) -> Statistic:
        return bootstrap.statistic(
            name,
            function,
            count,
            unit="items",
            note=note,
            undefined="",
            low=0.0,
            high=high,
            names=lambda: tuple(shared),
        )

    statistics = (
        resampled("mean_score_difference", weighted_proportion(apart, np.ones(count)), "absolute, on [0, 1]", 1.0),
        resampled("median_score_difference", weighted_median(apart), "absolute, on [0, 1]", 1.0),
        resampled(
            "mean_rank_difference",
            weighted_proportion(ranks_apart, np.ones(count)),
            f"absolute, of {count:,} ranks",
            most,
        ),
        resampled("median_rank_difference", weighted_median(ranks_apart), f"absolute, of {count:,} ranks", most),
        _correlation("spearman", spearman, x, y, bootstrap),
        _correlation("pearson", pearson, x, y, bootstrap),
    )
    moved = pl.DataFrame(
        {
            "item": pl.Series(shared, dtype=pl.String),
            "first": x,
            "second": y,
            "difference": y - x,
            "rank_first": rank_x,
            "rank_second": rank_y,
            "rank_difference": rank_y - rank_x,
        }
    ).sort(pl.col("rank_difference").abs(), pl.col("difference").abs(), "item", descending=[True, True, False])
    notes = [f"{name}: {how}" for name, how in (("first", one_how), ("second", other_how))]
    left_out = [(name, len(scores) - count) for name, scores in (("first", one), ("second", other))]
    notes += [
        f"{number:,} items of the {name} scoring are missing from the other" for name, number in left_out if number
    ]
    return ScoringComparison(statistics, moved, tuple(notes))


def _unit_scores(scoring: Scoring, which: str) -> tuple[dict[str, float], str]:
    frame = scoring.scores if isinstance(scoring, Fit) else scoring
    if isinstance(frame, pl.DataFrame):
        column = "unit_score" if "unit_score" in frame.columns else "score"
        missing = [name for name in ("item", column) if name not in frame.columns]
        if missing:
            raise DataError(f"the {which} scoring has no column '{missing[0]}'.", "Give item and score.")
        present = frame.select(pl.col("item").cast(pl.String), pl.col(column).cast(pl.Float64)).drop_nulls()
        if present["item"].n_unique() < present.height:
            raise DataError(f"the {which} scoring has an item twice.", "Compare one criterion or group at a time.")
        scores = dict(zip(present["item"].to_list(), present[column].to_list(), strict=True))
        if column == "unit_score":
            return scores, "unit_score, on [0, 1] already"
    else:
        scores = {item: float(score) for item, score in frame.items()}
    if not all(np.isfinite(list(scores.values()))):
        raise DataError(f"a score of the {which} scoring is not a number.", "Leave that item out.")
    low, high = (min(scores.values()), max(scores.values())) if scores else (0.0, 0.0)
    width = (high - low) or 1.0
    return {item: (score - low) / width for item, score in scores.items()}, f"from {low:g}…{high:g} to [0, 1]"


def weighted_median(values: FloatArray) -> WeightedStatistic:
    """Return the weighted median: the value with half of the weight below it, or the mean of the two middle values."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]

    def function(weights: FloatArray) -> FloatArray:
        below = np.cumsum(weights[order], axis=0)
        half = below[-1] / 2
        last = len(ordered) - 1
        low = np.minimum((below < half - 1e-9).sum(axis=0), last)
        high = np.minimum((below < half + 1e-9).sum(axis=0), last)
        median: FloatArray = np.where(below[-1] > 0, (ordered[low] + ordered[high]) / 2, np.nan)
        return median

    return function


def _correlation(name: str, correlate: Correlate, x: FloatArray, y: FloatArray, bootstrap: Bootstrap) -> Statistic:
    correlation = correlate(np.round(x, 12), np.round(y, 12))
    if correlation is None:
        why = f"undefined: fewer than {MIN_ITEMS} items, or scores that do not vary"
        return Statistic(name, None, n=len(x), note=why)
    variance = jackknife_variance(correlation.influence, len(x))
    return correlation_statistic(name, correlation.r, variance, len(x), bootstrap, note="")
