"""Calibration of Dawid–Skene's probabilities: a prior shared by all annotators, and a temperature.

The prior of a confusion matrix is learnt from all annotators (empirical Bayes), so that a few labels do not make an
annotator perfect. The temperature softens the posteriors until they predict the labels of held-out annotators best: the
model takes labels to be independent given the class, but annotators err on the same difficult items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from steelyard.models.labels.em import LabelGroups
from steelyard.observations import FloatArray, Index

STRENGTHS = np.geomspace(0.5, 200.0, 25)
"""Candidates for the strength of the prior, in labels per row of a confusion matrix."""
STRENGTH_MEDIAN, STRENGTH_SD = 3.0, 1.0
"""Log-normal prior of the strength. On seven recorded sets it is 1.4 to 6 (and 90 where nobody errs); few labels alone
say little about it, and would make all annotators alike."""
INTERVAL_STRENGTH = 1.5
"""Greatest strength of the prior, per class, that intervals rely on: its estimate is too high where classes are in
doubt, because doubt makes annotators look alike. Chosen for coverage: docs/concepts/label-models.md."""
LEAST_PSEUDO_COUNT = 0.5
"""Pseudo-count in intervals without a learnt prior (Jeffreys)."""
CLASS_PSEUDO_COUNT = 10.0
"""Pseudo-count of every class. On 20 to 50 items, estimated shares of classes otherwise reinforce themselves."""
DEFAULT_ACCURACY, DEFAULT_WEIGHT = 0.7, 2.0
"""Accuracy of annotators before any label is seen, and how many labels it counts as."""
CLASS_WEIGHT = 10.0
"""How many labels the accuracy over all classes counts as in the accuracy of one class."""
HIGHEST_ACCURACY, ABOVE_CHANCE = 0.99, 0.02
"""Bounds of the prior mean of the accuracy: at most the first, and better than chance by the second."""
PRIOR_CELLS = 2_000_000
"""Cells of confusion matrices from which the strength is estimated; more do not make it more precise."""

TEMPERATURES = np.geomspace(0.1, 1.0, 19)
"""Candidates for the exponent of the posteriors."""
FOLDS = 10
"""Number of groups of annotators that are held out in turn."""
TEMPERATURE_ITEMS = 20_000
"""Items from which the temperature is estimated."""
LOWEST_LOG = -700.0
"""Log-probabilities are bounded here, near the smallest double."""


@dataclass(frozen=True, slots=True, eq=False)
class ConfusionPrior:
    """Dirichlet priors: `cells` (given, true) of each row of a confusion matrix, and `classes` of their shares."""

    cells: FloatArray
    classes: float
    is_learnt: bool = False

    @classmethod
    def flat(cls, smoothing: float, n_classes: int) -> ConfusionPrior:
        """Return the prior that adds `smoothing` to every cell, and nothing to the shares of classes."""
        return cls(np.full((n_classes, n_classes), smoothing), 0.0)

    @classmethod
    def learnt(cls, counts: FloatArray, strength: float | None, can_learn: bool) -> ConfusionPrior:
        """Learn the prior from the expected counts (annotator, given, true) of all annotators.

        The mean has the pooled accuracy of each class on its diagonal and is even off it. The strength, unless
        given, is the most probable one, the counts being Dirichlet-multinomial.
        """
        mean = _mean_confusion(counts.sum(axis=0), can_learn)
        strength = _strength(counts, mean) if strength is None else strength
        return cls(strength * mean, CLASS_PSEUDO_COUNT, True)

    @property
    def strength(self) -> float:
        """How many labels the prior of a row counts as."""
        return float(self.cells[:, 0].sum())

    @property
    def interval_cells(self) -> FloatArray:
        """The pseudo-counts that intervals rely on."""
        if not self.is_learnt:
            return np.maximum(self.cells, LEAST_PSEUDO_COUNT)
        return self.cells * min(1.0, INTERVAL_STRENGTH * len(self.cells) / self.strength)

    def log_confusion(self, counts: FloatArray) -> FloatArray:
        """Return log θ from counts (annotator, given, true); a row without any weight is uniform."""
        smoothed = counts + self.cells
        total = smoothed.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(np.where(total > 0, smoothed / total, 1 / counts.shape[1])))

    def log_shares(self, totals: FloatArray) -> FloatArray:
        """Return the logarithms of the classes' shares from their expected numbers of items."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log((totals + self.classes) / (totals.sum() + self.classes * len(totals))))


def _mean_confusion(pooled: FloatArray, can_learn: bool) -> FloatArray:
    n = len(pooled)
    right, total = (pooled.diagonal(), pooled.sum(axis=0)) if can_learn else (np.zeros(n), np.zeros(n))
    overall = (right.sum() + DEFAULT_WEIGHT * DEFAULT_ACCURACY) / (total.sum() + DEFAULT_WEIGHT)
    accuracy = (right + CLASS_WEIGHT * overall) / (total + CLASS_WEIGHT)
    accuracy = np.clip(accuracy, 1 / n + ABOVE_CHANCE, HIGHEST_ACCURACY)
    mean = np.tile((1 - accuracy) / (n - 1), (n, 1))
    np.fill_diagonal(mean, accuracy)
    return mean


def _strength(counts: FloatArray, mean: FloatArray) -> float:
    """Return the most probable strength, rows of counts being Dirichlet-multinomial."""
    step = max(1, counts.size // PRIOR_CELLS)
    counts = counts[::step]
    totals = counts.sum(axis=1)
    filled = counts > 0
    _, given, true = np.nonzero(filled)
    cells, means = counts[filled], mean[given, true]
    totals = totals[totals > 0]
    likelihood = [
        (special.gammaln(s * means + cells) - special.gammaln(s * means)).sum()
        - (special.gammaln(s + totals) - special.gammaln(s)).sum()
        - 0.5 * (np.log(s / STRENGTH_MEDIAN) / STRENGTH_SD) ** 2
        for s in STRENGTHS
    ]
    return float(STRENGTHS[int(np.argmax(likelihood))])


class Temperature(NamedTuple):
    """The exponent of the posteriors, and its standard error."""

    value: float = 1.0
    error: float = 0.0


def choose_temperature(
    groups: LabelGroups, annotators: Index, cells: FloatArray, log_prior: FloatArray, seed: int
) -> Temperature:
    """Return the exponent of the posteriors that predicts the labels of held-out annotators best.

    `cells` are log θ (annotator, given, true), without each label's own contribution. Of every item, the labels of one
    group of annotators are predicted from those of the others: log Σ_c q(c)^t P(held-out labels | c).
    """
    usable = np.flatnonzero((groups.annotators > 1) & ~groups.has_gold)
    usable = usable[:: max(1, len(usable) // TEMPERATURE_ITEMS)]
    if not len(usable):
        return Temperature()
    cells = np.maximum(cells, LOWEST_LOG)
    total = groups.summed(cells)[usable]
    fold = _folds(annotators, seed)
    gain = np.zeros(len(TEMPERATURES))
    for number in range(int(fold.max()) + 1):
        held_out = groups.summed(np.where((fold == number)[:, None, None], cells, 0.0))[usable]
        other = total - held_out
        # Log-probabilities are negative, so that a sum of zero has no terms.
        is_split = (held_out < -1e-9).any(axis=1) & (other < -1e-9).any(axis=1)
        score = log_prior + other[is_split]
        gain += _predictive(score, held_out[is_split])
    best = int(np.argmax(gain))
    weight = np.exp(gain - gain[best])
    error = np.sqrt((weight * (TEMPERATURES - TEMPERATURES[best]) ** 2).sum() / weight.sum())
    return Temperature(float(TEMPERATURES[best]), float(error))


def _predictive(score: FloatArray, held_out: FloatArray) -> FloatArray:
    """Return the log-likelihood of held-out labels for each temperature."""
    # Classes by rows, because sums along few columns are slow.
    score, held_out = np.ascontiguousarray(score.T), np.ascontiguousarray(held_out.T)
    return np.array(
        [(_log_sum(t * score + held_out) - _log_sum(t * score)).sum() for t in TEMPERATURES],
        np.float64,
    )


def _log_sum(score: FloatArray) -> FloatArray:
    """Return log Σ exp over the classes (rows); far faster than SciPy's for few classes."""
    top = score.max(axis=0)
    return np.asarray(top + np.log(np.exp(score - top).sum(axis=0)))


def _folds(annotators: Index, seed: int) -> NDArray[np.int64]:
    """Deal the annotators into groups, by their ids."""
    rank = np.argsort(np.argsort(np.array(annotators.ids)))
    dealt = np.random.default_rng(seed).permutation(len(rank)) % min(FOLDS, len(rank))
    return np.asarray(dealt[rank], np.int64)


def softening_note(temperature: float) -> tuple[str, ...]:
    """Return the note on softened probabilities, if they are."""
    if temperature == 1.0:
        return ()
    return (
        f"probabilities were tempered (exponent {temperature:.2f}), which predicts held-out labels best: "
        "annotators' errors are correlated",
    )


def softened(posterior: FloatArray, temperature: float) -> FloatArray:
    """Raise posteriors to a power, and normalise them."""
    if temperature == 1.0:
        return posterior
    powers = posterior**temperature
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
