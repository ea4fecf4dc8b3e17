"""Probabilities of the items' classes over posterior draws of confusion matrices, class proportions and temperature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from steelyard.models.labels.calibration import softening_note
from steelyard.models.labels.confusion_posterior import draw_log_confusions, draw_population
from steelyard.models.labels.cross_validation import GoldSplit
from steelyard.models.labels.table import Interval, winners
from steelyard.models.labels.tally import LabelTally, LeftOut
from steelyard.observations import UNKNOWN, FloatArray, IntArray

_EXPONENTS: FloatArray = 1.1 ** np.arange(-20.0, 6.0)
"""Candidates for the exponent of the likelihood: .15 to 1.61, 1 among them."""
_EXPONENT_SD = 0.5
"""Standard deviation of the exponent's logarithm a priori; its mean is 0: labels are independent given the class."""
_EXPONENT_ITEMS = 2000
"""Gold items from which the exponent is estimated."""
_FEWEST_DRAWS, _MOST_VALUES, _MOST_SUMMED = 20, 50_000_000, 5_000_000
"""Draws for very many items; values of all draws; values that are summed by item in one go."""
_MULTIPLIERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""Odd numbers that mix well: multiplied by them, the numbers of items are divided into parts as if at random."""
_BLOCK = 10_000
"""Items whose draws are summarised in one go."""
_POWERS = (1.0, 0.5, 0.25, 0.1, 0.0)
_LEAST_EFFECTIVE = 0.2
"""Weights of draws are flattened by these powers until their effective number is this fraction of the draws."""


class ClassDrawSettings(Protocol):
    """The settings of the model that matter here."""

    @property
    def prior(self) -> str:
        """Prior of the classes: gold or uniform."""

    @property
    def calibrate(self) -> bool:
        """Whether the likelihood is tempered."""

    @property
    def level(self) -> float:
        """Coverage of the intervals."""

    @property
    def draws(self) -> int:
        """Number of draws."""

    @property
    def seed(self) -> int:
        """Seed of the draws."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassDraws:
    """Probabilities of every class, the interval of the most probable one, and the mean exponent."""

    probabilities: FloatArray
    interval: Interval
    exponent: float

    @property
    def notes(self) -> tuple[str, ...]:
        """The note on tempering, if it is clear."""
        return softening_note(round(self.exponent, 2)) if self.exponent < 0.95 else ()

    @classmethod
    def of(
        cls, labels: LabelTally, left_out: LeftOut, split: GoldSplit, class_counts: FloatArray, model: ClassDrawSettings
    ) -> ClassDraws:
        """Draw; `class_counts` are Dirichlet counts of the classes without each fold, and of all in the last row."""
        size = max(1, labels.votes.size)
        draws = int(np.clip(_MOST_VALUES // size, _FEWEST_DRAWS, model.draws))
        evidence = _evidence(labels, left_out, draws, model.seed)
        log_prior = _log_shares(class_counts, draws, model)
        weight = _exponent_weights(evidence, log_prior, split) if model.calibrate else _plain_weights(split)
        exponent = _spread_draws(weight, draws, model.seed)
        mean_exponent = (weight * _EXPONENTS).sum(axis=1)
        probabilities = np.full(labels.votes.shape, np.nan)
        lower, upper = np.full((2, len(probabilities)), np.nan)
        judged_items = np.flatnonzero(labels.votes.sum(axis=1) > 0)
        for first in range(0, len(judged_items), _BLOCK):
            items = judged_items[first : first + _BLOCK]
            fold, part = split.fold[items], evidence[:, items].astype(np.float64)
            prior = log_prior[fold].swapaxes(0, 1)
            score = prior + exponent[fold].T[:, :, None] * part
            by_draw = np.exp(score - special.logsumexp(score, axis=2)[:, :, None])
            importance = _flattened(special.logsumexp(prior + mean_exponent[fold][:, None] * part, axis=2))
            probabilities[items] = np.einsum("dn,dnc->nc", importance, by_draw)
            top = by_draw[:, np.arange(len(items)), winners(probabilities[items]).label]
            lower[items], upper[items] = _quantiles(top, importance, model.level)
        return cls(probabilities, Interval(lower, upper), float(mean_exponent[-1]))


def _evidence(labels: LabelTally, left_out: LeftOut, draws: int, seed: int) -> NDArray[np.float32]:
    """Return the log-likelihood (draw, item, class) of every item's labels, its own fold's gold left out."""
    n_annotators, n_classes = len(labels.annotators), len(labels.classes)
    rank = _ranks(labels)
    total = left_out.counts[:n_annotators]
    confusions = np.empty((draws, *left_out.counts.shape))
    for fold in np.unique(left_out.fold).tolist():
        keys = np.flatnonzero(left_out.fold == fold)
        counts = total.copy()
        counts[left_out.annotator[keys]] = left_out.counts[keys]
        in_order = counts[np.argsort(rank)]
        population = draw_population(in_order, draws, seed)
        confusions[:, keys] = draw_log_confusions(
            left_out.counts[keys], rank[left_out.annotator[keys]], population, seed
        )
    evidence = np.empty((draws, len(labels.items), n_classes), np.float32)
    step = max(1, _MOST_SUMMED // max(left_out.counts.size, int(labels.votes.sum()) * n_classes))
    for first in range(0, draws, step):
        part = confusions[first : first + step]
        columns = part.transpose(1, 0, 2, 3).reshape(len(left_out.counts), -1, n_classes)
        summed = left_out.summed(columns).reshape(len(labels.items), len(part), n_classes)
        evidence[first : first + step] = summed.swapaxes(0, 1)
    return evidence


def _ranks(labels: LabelTally) -> IntArray:
    """Number the annotators by their labels, so that random streams depend neither on names nor on gold.

    Items are divided into as many parts as there are classes, in several ways; annotators are sorted by their numbers
    of labels in each part. Names decide only where these are equal.
    """
    n_annotators, n_classes = len(labels.annotators), len(labels.classes)
    place = np.argsort(np.argsort(np.array(labels.items.ids))).astype(np.uint64)
    features: list[FloatArray] = [labels.given().astype(np.float64)]
    for multiplier in _MULTIPLIERS:
        part = (((place + np.uint64(1)) * np.uint64(multiplier)) >> np.uint64(33)) % np.uint64(n_classes)
        features.append(labels.confusion(part.astype(np.int32)).reshape(n_annotators, -1))
    order = np.lexsort((np.array(labels.annotators.ids), *np.column_stack(features).T[::-1]))
    return np.argsort(order).astype(np.int32)


def _log_shares(class_counts: FloatArray, draws: int, model: ClassDrawSettings) -> FloatArray:
    """Draw log π (fold, draw, class); the last row is for items without a fold."""
    if model.prior == "uniform":
        return np.full((len(class_counts), draws, class_counts.shape[1]), -np.log(class_counts.shape[1]))
    rows = []
    for counts in class_counts:
        gamma = np.random.default_rng([model.seed, 1]).standard_gamma(np.tile(counts, (draws, 1)))
        rows.append(np.log(np.maximum(gamma, 1e-300) / gamma.sum(axis=1, keepdims=True)))
    return np.array(rows)


def _exponent_weights(evidence: NDArray[np.float32], log_prior: FloatArray, split: GoldSplit) -> FloatArray:
    """Return the posterior of the exponent (fold, candidate) from gold items outside the fold; the last row: all."""
    items = np.flatnonzero((split.trusted != UNKNOWN) & (np.abs(evidence).sum(axis=(0, 2)) > 0))
    items = items[:: max(1, -(-len(items) // _EXPONENT_ITEMS))]
    fold, prior = split.fold[items], log_prior[split.fold[items]].swapaxes(0, 1)
    chosen = evidence[:, items]
    rows = np.arange(len(items))
    gain = np.empty((len(items), len(_EXPONENTS)))
    for number, exponent in enumerate(_EXPONENTS):
        score = special.logsumexp(prior + exponent * chosen, axis=0)
        gain[:, number] = score[rows, split.trusted[items]] - special.logsumexp(score, axis=1)
    total = gain.sum(axis=0)
    others = [total - gain[fold == part].sum(axis=0) for part in range(len(log_prior) - 1)]
    log_weight = np.array([*others, total]) - 0.5 * (np.log(_EXPONENTS) / _EXPONENT_SD) ** 2
    return np.asarray(special.softmax(log_weight, axis=1))


def _plain_weights(split: GoldSplit) -> FloatArray:
    """Return weights that choose an exponent of 1."""
    weight = np.zeros((int(split.fold.max()) + 2, len(_EXPONENTS)))
    weight[:, int((_EXPONENTS == 1).argmax())] = 1.0
    return weight


def _spread_draws(weight: FloatArray, draws: int, seed: int) -> FloatArray:
    """Return exponents (fold, draw): evenly spaced quantiles of their distribution, in random order."""
    place = (np.random.default_rng([seed, 2]).permutation(draws) + 0.5) / draws
    chosen = [np.searchsorted(row.cumsum(), place).clip(max=len(_EXPONENTS) - 1) for row in weight]
    return np.asarray(_EXPONENTS[np.array(chosen)])


def _flattened(log_weight: FloatArray) -> FloatArray:
    """Return normalised weights (draw, item), flattened until enough draws count."""
    least = _LEAST_EFFECTIVE * len(log_weight)
    weight = np.asarray(special.softmax(log_weight, axis=0))
    for power in _POWERS[1:]:
        too_few = 1 / (weight**2).sum(axis=0) < least
        if not too_few.any():
            break
        weight[:, too_few] = special.softmax(power * log_weight[:, too_few], axis=0)
    return weight


def _quantiles(values: FloatArray, weight: FloatArray, level: float) -> Interval:
    """Return the weighted quantiles (1 ∓ level) / 2 of every column."""
    order: IntArray = values.argsort(axis=0).astype(np.int32)
    ordered, sizes = np.take_along_axis(values, order, 0), np.take_along_axis(weight, order, 0)
    middle = sizes.cumsum(axis=0) - sizes / 2
    columns = np.arange(values.shape[1])
    ends = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        above = (middle < tail).sum(axis=0).clip(1, len(values) - 1)
        low, high = middle[above - 1, columns], middle[above, columns]
        share = np.clip((tail - low) / np.maximum(high - low, 1e-12), 0, 1)
        ends.append(ordered[above - 1, columns] * (1 - share) + ordered[above, columns] * share)
    return Interval(*ends)
