"""Gaussian calibration: each annotator's bias and noise, estimated from items with known scores (Snow et al. 2008).

The residuals against gold are sampled with partial pooling, by Gibbs sampling: d_w | μ_w, σ_w ~ N(μ_w, σ_w²) for every
residual of annotator w; μ_w ~ N(m, ω²); σ_w² ~ scaled-inverse-χ²(ν, s²). Hyperpriors, weak on a scale of width L:
m flat, ω half-Cauchy(L / 10), s half-normal(L / 4), p(ν) ∝ 1/ν over `DEGREES`. Several sets of residuals (the folds of
a cross-validation) are sampled together, one row of each array per set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field
from scipy import special

from steelyard.errors import DataError, NoEvidenceError
from steelyard.models.fit import Fit, Model
from steelyard.models.gold import Gold, fold_of_item, gold_scores, need_gold
from steelyard.models.labels.table import Interval, nullable, total_by, with_interval
from steelyard.models.table import Uncertainty, aligned_draws, count_by_item, score_table
from steelyard.models.unscored import null_without_evidence
from steelyard.observations import UNKNOWN, FloatArray, IntArray, Ratings

DEGREES = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0])
"""Grid of ν: the larger it is, the more alike annotators are in noise."""

BURN_IN = 200


class ResidualSums(NamedTuple):
    """Number, mean and sum of squares about the mean of the residuals, by set (rows) and annotator (columns)."""

    n: FloatArray
    mean: FloatArray
    squares: FloatArray

    @classmethod
    def leaving_out(
        cls, annotator: IntArray, residual: FloatArray, part: IntArray, n_annotators: int, n_parts: int
    ) -> ResidualSums:
        """Sum the residuals without each part in turn; the last set is all of them."""
        shape = (n_parts, n_annotators)
        cell = part.astype(np.int64) * n_annotators + annotator
        # Centred first, so that the sums of squares do not cancel.
        centre = residual.mean() if len(residual) else 0.0
        value = residual - centre
        own = [
            np.bincount(cell, weights, minlength=n_parts * n_annotators).reshape(shape)
            for weights in (np.ones(len(value)), value, value**2)
        ]
        n, total, squares = (np.concatenate([o.sum(axis=0) - o, o.sum(axis=0, keepdims=True)]) for o in own)
        mean = total / np.maximum(n, 1)
        return cls(n, np.where(n > 0, mean + centre, 0.0), np.maximum(squares - n * mean**2, 0.0))


class Draw(NamedTuple):
    """One draw of every annotator's bias and noise variance, by set and annotator."""

    bias: FloatArray
    variance: FloatArray


@dataclass(slots=True, eq=False)
class Sampler:
    """A Gibbs sampler over all sets at once; `sweeps` yields one draw after another.

    Parameters
    ----------
    sums
        The residuals; every set has at least one.
    width
        Width of the rating scale; the noise is at least a hundred-thousandth of it.
    rng
        Source of the draws.
    """

    sums: ResidualSums
    width: float
    rng: np.random.Generator

    def sweeps(self, count: int) -> Iterator[Draw]:
        """Yield `count` draws after the burn-in; their arrays are new each time."""
        n, mean, squares = self.sums
        has_ratings = n > 0
        floor = (1e-5 * self.width) ** 2
        # Start from pooled moments: exact values do not matter after the burn-in.
        pooled = squares.sum(axis=1, keepdims=True) / np.maximum((n - 1).clip(0).sum(axis=1, keepdims=True), 1)
        noise = np.maximum(pooled, floor)
        variance = np.broadcast_to(noise, n.shape).copy()
        centre = (n * mean).sum(axis=1, keepdims=True) / np.maximum(n.sum(axis=1, keepdims=True), 1)
        among = np.full_like(centre, (self.width / 10) ** 2)
        degrees = np.full_like(centre, 4.0)
        for sweep in range(BURN_IN + count):
            precision = n / variance + 1 / among
            bias = (n * mean / variance + centre / among) / precision
            bias += self.rng.standard_normal(n.shape) / np.sqrt(precision)
            scale = degrees * noise + squares + n * (mean - bias) ** 2
            variance = np.maximum(scale / self.rng.chisquare(np.broadcast_to(degrees, n.shape) + n), floor)
            centre, among = self._biases(bias, has_ratings, among)
            noise, degrees = self._noises(variance, has_ratings, degrees, floor)
            if sweep >= BURN_IN:
                yield Draw(bias, variance)

    def _biases(
        self, bias: FloatArray, has_ratings: NDArray[np.bool_], among: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Draw m and ω² given the biases of annotators with residuals."""
        k = np.maximum(has_ratings.sum(axis=1, keepdims=True), 1)
        mean = (bias * has_ratings).sum(axis=1, keepdims=True) / k
        centre = mean + np.sqrt(among / k) * self.rng.standard_normal(k.shape)
        # Half-Cauchy as a mixture of inverse gammas (Wand et al. 2011).
        mixing = (1 / among + (10 / self.width) ** 2) / self.rng.standard_gamma(1.0, k.shape)
        squares = ((bias - centre) ** 2 * has_ratings).sum(axis=1, keepdims=True)
        return centre, (1 / mixing + squares / 2) / self.rng.standard_gamma((k + 1) / 2)

    def _noises(
        self, variance: FloatArray, has_ratings: NDArray[np.bool_], degrees: FloatArray, floor: float
    ) -> tuple[FloatArray, FloatArray]:
        """Draw s² and ν given the noise of annotators with residuals."""
        k = np.maximum(has_ratings.sum(axis=1, keepdims=True), 1)
        inverse = (has_ratings / variance).sum(axis=1, keepdims=True)
        logs = (has_ratings * np.log(variance)).sum(axis=1, keepdims=True)
        rate = degrees / 2 * inverse + 8 / self.width**2
        noise = np.maximum(self.rng.standard_gamma(k * degrees / 2 + 0.5) / rate, floor)
        half = DEGREES / 2
        log_weight = k * (half * np.log(half * noise) - special.gammaln(half)) - half * logs - half * noise * inverse
        log_weight -= np.log(DEGREES)
        # The largest of weight plus Gumbel noise is a draw in proportion to exp(weight).
        chosen = (log_weight + self.rng.gumbel(size=log_weight.shape)).argmax(axis=1)
        return noise, DEGREES[chosen][:, None]


WEIGHT_DRAWS = 300
"""Draws from which the annotators' weights are estimated, before the draws for the intervals."""


@dataclass(frozen=True, slots=True)
class GaussianCalibration(Model):
    """An annotator's rating of an item with score x is N(x + μ_w, σ_w) (Snow et al. 2008, §5.1.1).

    μ_w and σ_w are estimated from the annotator's ratings of items with gold, with partial pooling: they shrink
    towards the population mean, more strongly the fewer such ratings there are. The score is Σ a_w (y_w − μ_w) / Σ a_w
    with a_w = 1 / (σ_w² + var μ_w). Items with gold are scored by cross-validation, never by their own gold.

    The interval comes from joint posterior draws of all μ_w and σ_w. It includes errors that annotators have in common:
    the error of the scores of items with gold beyond what independent errors explain.
    """

    name: ClassVar[str] = "gaussian_calibration"
    accepts: ClassVar[tuple[str, ...]] = ("ratings",)

    folds: Annotated[int, Field(ge=2, description="number of cross-validation folds over items with gold")] = 20
    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=100, description="number of posterior draws or bootstrap replicates")] = 1000
    seed: Annotated[int, Field(ge=0, description="random seed of folds and draws")] = 0

    @null_without_evidence
    def fit(self, observations: Ratings, gold: Gold | None = None) -> Fit:
        """Score every item in the ratings' own scale; `gold` gives the scores of some, in the same scale."""
        self.check_kind(observations)
        gold_answers = need_gold(self.name, gold)
        if not observations.knows_annotators:
            raise DataError(
                f"{self.name} weighs annotators, but some ratings have no annotator.",
                "Give every row an annotator, or use mean.",
            )
        gold_of_item = gold_scores(self.name, observations, gold_answers)
        judgments, annotators = count_by_item(
            observations, observations.item, np.arange(len(observations), dtype=np.int32)
        )
        usable = ~np.isnan(gold_of_item) & (judgments > 0)
        if usable.sum() < 2:
            raise NoEvidenceError(
                f"{self.name} needs two judged items with gold; there is one.", "Give gold for more items."
            )
        fold = fold_of_item(observations.items, usable, self.folds, self.seed)
        score, draws, noted = self._sample(observations, gold_of_item, fold)
        low, high = observations.scale
        inside = np.clip(score, low, high)
        table = score_table(
            observations.items,
            inside,
            (inside - low) / (high - low),
            Uncertainty.from_draws("posterior", draws, self.level),
            judgments,
            annotators,
            bounds=observations.bounds,
            level=self.level,
        )
        notes = self._notes(observations, gold_of_item, usable, score)
        in_order = aligned_draws(table, observations.items, draws)
        return Fit(self.name, self.settings(), table, noted, notes, draws=in_order)

    def _sample(
        self, ratings: Ratings, known: FloatArray, fold: IntArray
    ) -> tuple[FloatArray, FloatArray, pl.DataFrame]:
        """Return every item's score, joint draws of it, and the annotator table."""
        n_items, n_annotators = len(ratings.items), len(ratings.annotators)
        trains = np.flatnonzero(fold[ratings.item] != UNKNOWN)
        n_parts = int(fold.max()) + 1
        sums = ResidualSums.leaving_out(
            ratings.annotator[trains],
            ratings.value[trains] - known[ratings.item[trains]],
            fold[ratings.item[trains]],
            n_annotators,
            n_parts,
        )
        rng = np.random.default_rng(self.seed)
        low, high = ratings.scale
        sweeps = Sampler(sums, high - low, rng).sweeps(WEIGHT_DRAWS + self.draws)
        bias, weight = _mean_bias_and_weight(islice(sweeps, WEIGHT_DRAWS))
        # Items without gold (fold UNKNOWN) read the last set, which leaves nothing out.
        part = np.where(fold == UNKNOWN, n_parts, fold)
        row = part[ratings.item] * n_annotators + ratings.annotator
        row_weight = weight.ravel()[row]
        total = total_by(ratings.item, row_weight, n_items)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = row_weight / total[ratings.item]
            score = total_by(ratings.item, share * (ratings.value - bias.ravel()[row]), n_items)
        score[total == 0] = np.nan
        draws = np.empty((self.draws, n_items))
        biases, noises = (np.empty((self.draws, n_annotators)) for _ in range(2))
        for replicate, draw in enumerate(sweeps):
            shift = total_by(ratings.item, share * (draw.bias - bias).ravel()[row], n_items)
            variance = total_by(ratings.item, share**2 * draw.variance.ravel()[row], n_items)
            draws[replicate] = score - shift + np.sqrt(variance) * rng.standard_normal(n_items)
            biases[replicate], noises[replicate] = draw.bias[-1], np.sqrt(draw.variance[-1])
        common = _common_variance(score - known, draws.var(axis=0), fold)[fold]
        draws += np.sqrt(common) * rng.standard_normal(draws.shape)
        return score, draws, self._annotators(ratings, sums.n[-1], biases, noises)

    def _annotators(self, ratings: Ratings, met: FloatArray, bias: FloatArray, noise: FloatArray) -> pl.DataFrame:
        tails = [(1 - self.level) / 2, (1 + self.level) / 2]
        columns = with_interval("bias", bias.mean(axis=0), Interval(*np.quantile(bias, tails, axis=0)))
        columns |= with_interval("noise", np.median(noise, axis=0), Interval(*np.quantile(noise, tails, axis=0)))
        judgments = np.bincount(ratings.annotator, minlength=len(ratings.annotators))
        return pl.DataFrame(
            {
                "annotator": pl.Series(ratings.annotators.ids, dtype=pl.String),
                "judgments": pl.Series(judgments, dtype=pl.Int64),
                "gold_judgments": pl.Series(met.astype(np.int64), dtype=pl.Int64),
            }
            | {name: nullable(values) for name, values in columns.items()}
        )

    def _notes(
        self, ratings: Ratings, known: FloatArray, usable: NDArray[np.bool_], score: FloatArray
    ) -> tuple[str, ...]:
        """Return notes on the accuracy on items with gold, and on annotators who judged no such item."""
        judgments = np.bincount(ratings.item, minlength=len(known))[usable]
        mean = np.bincount(ratings.item, ratings.value, minlength=len(known))[usable] / judgments
        ours, plain = (float(np.sqrt(np.mean((x - known[usable]) ** 2))) for x in (score[usable], mean))
        notes: tuple[str, ...] = (
            f"cross-validated RMSE on {int(usable.sum())} items with gold: {ours:.4g} (plain mean {plain:.4g})",
        )
        unmet = len(ratings.annotators) - len(np.unique(ratings.annotator[usable[ratings.item]]))
        if unmet:
            notes += (
                f"{unmet} annotators judged no item with gold; the population means serve as their bias and noise",
            )
        return notes


def _common_variance(miss: FloatArray, variance: FloatArray, fold: IntArray) -> FloatArray:
    """Return the variance of the error that all annotators share, without each fold in turn; the last is of all.

    It is how much larger the squared misses of items with gold are than their `variance` on average, if they are.
    """
    has_gold = fold != UNKNOWN
    n_parts = int(fold.max()) + 1
    count, excess = (
        total_by(fold[has_gold], weights, n_parts)
        for weights in (np.ones(int(has_gold.sum())), miss[has_gold] ** 2 - variance[has_gold])
    )
    totals = np.append(excess.sum() - excess, excess.sum()) / np.append(count.sum() - count, count.sum())
    return np.asarray(np.maximum(totals, 0.0))


def _mean_bias_and_weight(draws: Iterator[Draw]) -> tuple[FloatArray, FloatArray]:
    """Return the mean of the biases over some draws, and the weights 1 / (σ² + var μ)."""
    first = next(draws)
    count = 1
    total, squares, precision = first.bias.copy(), first.bias**2, 1 / first.variance
    for draw in draws:
        count += 1
        total += draw.bias
        squares += draw.bias**2
        precision += 1 / draw.variance
    bias = total / count
    spread = np.maximum(squares / count - bias**2, 0.0)
    return bias, 1 / (count / precision + spread)
