"""Cost and precision of mixes of people and a model, from a pilot in which both judged items.

Ratings are y = x_i + noise, with variance V of the items' scores x and σ² of the noise (annotators' bias included).
A model with correlation r with x leaves the residual variance s² = V(1 − r²). An item with the model's answer and k
ratings by people is then known with variance v = 1/(1/s² + k/σ²), and scores correlate with x at √(1 − v/V). The
variance of the mean of N items of which n are rated by people is (s² + σ²/m)/n + (V − s²)/N with a model
(prediction-powered), and (V + σ²/m)/n without one, where m is the number of ratings of such an item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from steelyard.errors import DataError
from steelyard.observations import UNKNOWN, FloatArray, Observations, Ratings

LEAST_ITEMS = 20
"""Items judged by both, and items with two ratings by people, that a pilot needs."""
PEOPLE_PER_ITEM = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0)
_SAMPLES = 400
_LEAST_RESIDUAL = 0.02
"""A pilot never shows that a model leaves less of the variance than this."""


class Components(NamedTuple):
    """Variance of items, noise variance of one rating, and the squared correlation of the model with the items."""

    items: float
    noise: float
    squared_correlation: float

    @property
    def residual(self) -> float:
        """Variance of the items that the model leaves."""
        return self.items * max(_LEAST_RESIDUAL, 1 - self.squared_correlation)


class Prices(NamedTuple):
    """Cost of one judgment by a person and by the model, in the same currency."""

    person: float
    model: float


@dataclass(frozen=True, slots=True, eq=False)
class MixPilot:
    """Components estimated from a pilot, with a bootstrap sample of them over items."""

    components: Components
    samples: tuple[Components, ...]
    both: int
    repeated: int

    @property
    def note(self) -> str:
        """Return a note on the estimates."""
        r = [sample.squared_correlation**0.5 for sample in self.samples]
        own = self.components
        return (
            f"pilot: {self.both} items judged by people and by the model; correlation of the model with the items' "
            f"scores {own.squared_correlation**0.5:.2f} (95 % interval {np.quantile(r, 0.025):.2f} to "
            f"{np.quantile(r, 0.975):.2f}); sd of items {own.items**0.5:.3g}, of a rating around its item "
            f"{own.noise**0.5:.3g}"
        )


def read_mix_pilot(people: Observations, judge: Mapping[str, float], *, seed: int = 0) -> MixPilot:
    """Estimate the components from people's ratings and a model's score of each item."""
    if not isinstance(people, Ratings):
        raise DataError(f"mixes of people and models are planned for ratings, not {people.kind}.", "Leave out --judge.")
    count = np.bincount(people.item, minlength=len(people.items)).astype(np.float64)
    total = np.bincount(people.item, people.value, minlength=len(count))
    squares = np.bincount(people.item, people.value**2, minlength=len(count))
    f = np.array([judge.get(name, np.nan) for name in people.items.ids])
    rows = np.flatnonzero((count > 0) & np.isfinite(f))
    repeated = int((count[rows] > 1).sum())
    if min(len(rows), repeated) < LEAST_ITEMS:
        raise DataError(
            f"the pilot has {len(rows)} items judged by people and by the model, {repeated} of them by two people.",
            f"Let the model and two people judge at least {LEAST_ITEMS} items.",
        )
    table = np.column_stack([count, total, squares, f])[rows]
    rng = np.random.default_rng(seed)
    draws = (_components(table[rng.integers(len(table), size=len(table))]) for _ in range(_SAMPLES))
    return MixPilot(_components(table), tuple(draws), len(rows), repeated)


def _components(table: FloatArray) -> Components:
    """Estimate variance components, and the model's correlation with the items' scores (not with noisy ratings)."""
    count, total, squares, f = table.T
    mean = total / count
    freedom = max(1.0, float((count - 1).sum()))
    within = float((squares - count * mean**2).sum() / freedom)
    noise = max(within, 1e-9)
    # Items count alike, however many ratings they have: adaptive designs ask more about some kinds of items.
    items = max(float(mean.var(ddof=1)) - noise * float((1 / count).mean()), 0.02 * noise)
    judge_variance = float(f.var(ddof=1))
    if judge_variance <= 0:
        return Components(items, noise, 0.0)
    slope = float(np.cov(mean, f)[0, 1] / judge_variance)
    # Chance explains the slope's own variance.
    chance = float(np.var(mean - slope * f, ddof=2)) / (judge_variance * (len(f) - 1))
    explained = max(0.0, slope**2 - chance) * judge_variance
    return Components(items, noise, float(min(1.0, explained / items)))


def mix_table(
    pilot: MixPilot,
    items: int,
    prices: Prices,
    *,
    systems: int = 1,
    people_per_item: Sequence[float] = PEOPLE_PER_ITEM,
) -> pl.DataFrame:
    """Return cost and precision of mixes, cheapest first; `frontier` marks those that no cheaper mix equals.

    `correlation` is that of the scores with the items' true scores, `half_width` that of an item's 95 % interval, and
    `mean_half_width` that of the mean of all items, or of one of several systems.
    """
    rows = []
    for with_model in (False, True):
        for k in people_per_item:
            if k * items < LEAST_ITEMS:
                continue
            # The mean over the bootstrap: a small pilot can make a model look perfect.
            samples = np.array([_precision(sample, k, with_model, items / systems) for sample in pilot.samples])
            own, correlations = samples.mean(axis=0).tolist(), samples[:, 0]
            rows.append(
                {
                    "people_per_item": float(k),
                    "model": with_model,
                    "cost": items * (k * prices.person + with_model * prices.model),
                    "correlation": own[0],
                    "lower": float(np.quantile(correlations, 0.025)),
                    "upper": float(np.quantile(correlations, 0.975)),
                    "half_width": own[1],
                    "mean_half_width": own[2],
                }
            )
    table = pl.DataFrame(rows).sort("cost", "model")
    best = pl.col("correlation").cum_max().shift(1).fill_null(-1.0)
    return table.with_columns((pl.col("correlation") > best + 1e-12).alias("frontier"))


def _precision(own: Components, k: float, with_model: bool, items: float) -> tuple[float, float, float]:
    """Return correlation, half-width of an item and half-width of a mean, with k ratings per item on average."""
    prior = own.residual if with_model else own.items
    # With fewer ratings than items, a part of the items has one; above that, some have one more than others.
    low = int(k)
    part = k - low
    variance = (1 - part) / (1 / prior + low / own.noise) + part / (1 / prior + (low + 1) / own.noise)
    rated = min(1.0, k) * items
    rating = own.noise / max(1.0, k)
    mean_variance = (prior + rating) / rated + (own.items - prior) / items
    return (
        float(np.sqrt(max(0.0, 1 - variance / own.items))),
        float(1.96 * np.sqrt(variance)),
        float(1.96 * np.sqrt(mean_variance)),
    )


def cheapest(table: pl.DataFrame, target: float) -> tuple[dict[str, object] | None, dict[str, object] | None]:
    """Return the cheapest mix with the model that reaches a correlation, and the cheapest of people alone."""
    reached = table.filter(pl.col("correlation") >= target).sort("cost")
    rows = [reached.filter(pl.col("model") == has_model) for has_model in (True, False)]
    first, second = (rows_of.row(0, named=True) if rows_of.height else None for rows_of in rows)
    return first, second


def without_annotator(ratings: Ratings, name: str) -> tuple[Ratings, dict[str, float]]:
    """Separate one annotator's ratings from those of the others: the others' ratings, and the mean of each item."""
    code = ratings.annotators.ids.index(name) if name in ratings.annotators.ids else UNKNOWN
    is_judge = (ratings.annotator == code) & (code != UNKNOWN)
    if not is_judge.any():
        raise DataError(f"the pilot has no judgments by '{name}'.", "Name an annotator of the pilot with --judge.")
    total = np.bincount(ratings.item[is_judge], ratings.value[is_judge], minlength=len(ratings.items))
    count = np.bincount(ratings.item[is_judge], minlength=len(ratings.items))
    scores = {ratings.items[int(item)]: float(total[item] / count[item]) for item in np.flatnonzero(count)}
    return ratings.subset(~is_judge), scores
