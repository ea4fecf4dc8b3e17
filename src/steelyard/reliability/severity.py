"""Severity of annotators who rate, and its drift: a many-facet model of bounded ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy import linalg, sparse, special
from scipy.sparse.linalg import LinearOperator, cg

from steelyard.observations import UNKNOWN, FloatArray, IntArray, Ratings

WEAK_PRIOR_SD = 3.0
"""Prior sd of severity and drift in logits. It keeps annotators finite who give only the highest or lowest rating."""

MAX_ANNOTATORS = 500
"""Drift is estimated for up to this many annotators. With more, severity is estimated alone, by conjugate gradients."""

MIN_RATINGS = 8
"""Minimum number of ratings for a severity, and twice as many for a drift; fewer are too weak as evidence."""

_ITERATIONS, _TOLERANCE = 60, 1e-6
_FLOOR = 0.01
"""Expected values closer to the ends of the scale than this have the variance that they have there."""


@dataclass(frozen=True, slots=True, eq=False)
class FacetFit:
    """The fitted model, by rating: expected values on [0, 1], variances, and the leverage of each rating.

    `dispersion` is φ. `annotators` has annotator, ratings, severity and its interval; with times also drift, its
    interval and p-value. `item` are the items' locations in logits, by item code (NaN without ratings).
    """

    expected: FloatArray
    variance: FloatArray
    leverage: FloatArray
    dispersion: float
    item: FloatArray
    annotators: pl.DataFrame


def fit_facets(ratings: Ratings, time: FloatArray | None = None, *, level: float = 0.95) -> FacetFit:
    """Fit logit E(y) = xᵢ − sⱼ − dⱼ·t with variance φ·μ(1 − μ) to ratings y on [0, 1].

    This is the many-facet Rasch model for ratings with many steps (binomial trials, Linacre 1989) with an
    overdispersion that is estimated, that is, a fractional logit (Papke & Wooldridge 1996). Severity s is in
    logits above the mean annotator: 0.3 lowers a rating in the middle of a 0–100 scale by about 7. `time` is the
    place of each rating in its annotator's work, from −½ (first) to ½ (last), so that d is the change of severity
    from the first rating to the last. Items are partially pooled. Intervals use each annotator's own dispersion and
    Student's t.
    """
    has_name = ratings.annotator != UNKNOWN
    person = np.where(has_name, ratings.annotator, len(ratings.annotators)).astype(np.int32)
    n_people = len(ratings.annotators) + int(not has_name.all())
    with_drift = time is not None and n_people <= MAX_ANNOTATORS
    facets = _Facets(
        ratings.unit_value,
        ratings.item,
        person,
        time if time is not None and with_drift else np.zeros(len(ratings)),
        len(ratings.items),
        n_people,
        with_drift,
    )
    solution = facets.solve()
    return FacetFit(
        solution.mean,
        solution.dispersion * solution.bend * (1 - solution.leverage),
        solution.leverage,
        solution.dispersion,
        solution.item,
        facets.table(solution, ratings.annotators.ids, level),
    )


def places_in_work(annotator: IntArray, order: FloatArray) -> FloatArray:
    """Return the place of each answer in its annotator's work by `order`, from −½ (first) to ½ (last)."""
    ranks = pl.DataFrame({"annotator": annotator, "order": order}).select(
        pl.when(pl.len().over("annotator") > 1)
        .then(
            (pl.col("order").rank("average").over("annotator") - 1) / (pl.len().over("annotator").cast(pl.Float64) - 1)
            - 0.5
        )
        .otherwise(0.0)
        .alias("place")
    )
    return ranks["place"].to_numpy().astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class _Solution:
    item: FloatArray
    person: FloatArray
    """Severity and, with drift, drift: one row each."""
    mean: FloatArray
    bend: FloatArray
    leverage: FloatArray
    dispersion: float
    own_dispersion: FloatArray
    covariance: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Facets:
    """The data of the model; annotators without a name share the last code."""

    value: FloatArray
    item: IntArray
    person: IntArray
    time: FloatArray
    n_items: int
    n_people: int
    with_drift: bool

    def solve(self) -> _Solution:
        """Run iteratively reweighted least squares, the items eliminated."""
        x, s = np.zeros(self.n_items), np.zeros((2, self.n_people))
        dispersion, item_variance = 0.1, 1.0
        rated = np.bincount(self.item, minlength=self.n_items) > 0
        middle = float(special.logit(np.clip(self.value.mean(), 0.02, 0.98)))
        x[:] = middle
        for _ in range(_ITERATIONS):
            mean, bend = self._mean(x, s)
            weight = bend / dispersion
            step_x, step_s, covariance = self._step(x - middle, s, mean, weight, dispersion, item_variance)
            largest = max(float(np.abs(step_x).max()), float(np.abs(step_s).max()))
            damping = min(1.0, 2.0 / max(largest, 1e-300))
            x, s = x + damping * step_x, s + damping * step_s
            shift = float(s[0].mean())
            s[0] -= shift
            x -= shift
            middle = float(x[rated].mean())
            leverage, information = self._leverage(weight, item_variance)
            dispersion, own = self._dispersions(x, s, leverage)
            # The items' variance by EM: what the estimates show and what they leave uncertain.
            item_variance = max(float(np.mean((x[rated] - middle) ** 2 + 1 / information[rated])), 1e-4)
            if largest < _TOLERANCE:
                break
        mean, bend = self._mean(x, s)
        return _Solution(np.where(rated, x, np.nan), s, mean, bend, leverage, dispersion, own, covariance)

    def _mean(self, x: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray]:
        location = x[self.item] - s[0][self.person] - s[1][self.person] * self.time
        mean = np.clip(special.expit(location), _FLOOR, 1 - _FLOOR)
        return mean, mean * (1 - mean)

    def _step(
        self,
        centred: FloatArray,
        s: FloatArray,
        mean: FloatArray,
        weight: FloatArray,
        dispersion: float,
        item_variance: float,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the Newton steps of items and annotators, and the covariance of the annotators' parameters."""
        n, k = self.n_people, 2 if self.with_drift else 1
        pull = (self.value - mean) / dispersion
        diagonal = np.bincount(self.item, weight, self.n_items) + 1 / item_variance
        slope_x = np.bincount(self.item, pull, self.n_items) - centred / item_variance
        columns = [np.ones(len(pull)), self.time][:k]
        slope_s = np.concatenate([-np.bincount(self.person, pull * column, n) for column in columns])
        slope_s -= s[:k].ravel() / WEAK_PRIOR_SD**2
        cross = sparse.hstack(
            [
                sparse.csr_array((-weight * column, (self.item, self.person)), shape=(self.n_items, n))
                for column in columns
            ]
        ).tocsr()
        scaled = sparse.diags_array(1 / diagonal) @ cross
        step_s, covariance = self._reduced(columns, weight, cross, scaled, slope_s - scaled.T @ slope_x)
        step_x = (slope_x - cross @ step_s) / diagonal
        steps = np.zeros((2, n))
        steps[:k] = step_s.reshape(k, n)
        return step_x, steps, covariance

    def _reduced(
        self, columns: list[FloatArray], weight: FloatArray, cross: Any, scaled: Any, right: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Solve for the annotators' parameters; return their covariance too, or its diagonal for many annotators."""
        n, places = self.n_people, np.arange(self.n_people)
        precision = 1 / WEAK_PRIOR_SD**2
        if n > MAX_ANNOTATORS:
            total = np.bincount(self.person, weight, n) + precision
            matrix = LinearOperator((n, n), matvec=lambda v: total * v - cross.T @ (scaled @ v), dtype=np.float64)
            diagonal = total - np.asarray((cross * scaled).sum(axis=0)).ravel()
            guide = LinearOperator((n, n), matvec=lambda v: v / diagonal, dtype=np.float64)
            solution: FloatArray = cg(matrix, right, rtol=1e-8, maxiter=500, M=guide)[0]
            variances: FloatArray = np.reciprocal(diagonal, dtype=np.float64)
            return np.asarray(solution, np.float64), variances
        block = np.zeros((len(columns) * n,) * 2)
        for row, left in enumerate(columns):
            for column, other in enumerate(columns):
                block[row * n + places, column * n + places] = np.bincount(self.person, weight * left * other, n)
        block[np.diag_indices(len(block))] += precision
        block -= (cross.T @ scaled).toarray()
        covariance = np.asarray(linalg.inv(block, check_finite=False), np.float64)
        return covariance @ right, covariance

    def _leverage(self, weight: FloatArray, item_variance: float) -> tuple[FloatArray, FloatArray]:
        """Return how much of each rating's expected value follows from the rating itself, by items and annotators."""
        information: FloatArray = np.bincount(self.item, weight, self.n_items).astype(np.float64) + 1 / item_variance
        by_person = np.bincount(self.person, weight, self.n_people) + 1 / WEAK_PRIOR_SD**2
        leverage: FloatArray = weight / information[self.item] + weight / by_person[self.person]
        return np.minimum(leverage, 0.95), information

    def _dispersions(self, x: FloatArray, s: FloatArray, leverage: FloatArray) -> tuple[float, FloatArray]:
        mean, bend = self._mean(x, s)
        square = (self.value - mean) ** 2 / bend
        dispersion = max(float(square.sum() / (1 - leverage).sum()), 1e-4)
        freedom = np.bincount(self.person, 1 - leverage, self.n_people)
        own = np.bincount(self.person, square, self.n_people) / np.maximum(freedom, 1e-9)
        return dispersion, np.maximum(own, 1e-4)

    def table(self, solution: _Solution, names: tuple[str, ...] | list[str], level: float) -> pl.DataFrame:
        """Return severity and drift of each annotator, with intervals."""
        n = self.n_people
        count = np.bincount(self.person, minlength=n)
        # Σ s = 0: the covariance of deviations from the mean annotator.
        variance = solution.covariance[:n, :n] if solution.covariance.ndim == 2 else np.diag(solution.covariance)
        centred = np.diag(variance) - 2 * variance.mean(axis=0) + variance.mean()
        parameters = {"severity": (solution.person[0], centred, MIN_RATINGS)}
        if self.with_drift:
            parameters["drift"] = (solution.person[1], np.diag(solution.covariance)[n:], 2 * MIN_RATINGS)
        # Of what is uncertain about an annotator, their own ratings are the largest part by far.
        own = solution.own_dispersion / solution.dispersion
        freedom = np.maximum(count - 2, 1).astype(np.float64)
        quantile = special.stdtrit(freedom, 0.5 + level / 2)
        columns: dict[str, pl.Series | list[str]] = {"annotator": [*names, ""][:n]}
        columns["ratings"] = pl.Series(count, dtype=pl.Int64)
        for name, (value, spread, least) in parameters.items():
            error = np.sqrt(np.maximum(spread, 0) * own)
            few = count < least
            for key, one in (
                (name, value),
                (f"{name}_lower", value - quantile * error),
                (f"{name}_upper", value + quantile * error),
            ):
                columns[key] = pl.Series(np.where(few, np.nan, one)).fill_nan(None)
            if name == "drift":
                p = 2 * special.stdtr(freedom, -np.abs(value / np.maximum(error, 1e-300)))
                columns["drift_p"] = pl.Series(np.where(few, np.nan, p)).fill_nan(None)
        return pl.DataFrame(columns).filter(pl.col("annotator") != "")
