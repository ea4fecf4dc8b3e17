"""Gold-calibrated labels: naive Bayes with each annotator's confusion on gold items (Snow et al. 2008, §5.1).

By default, confusion matrices are drawn from their posterior under a population of annotators, and the likelihood is
tempered by what gold items show. The paper's form is `GoldCalibrated.as_published()`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field
from scipy import special

from steelyard.errors import DataError
from steelyard.models.fit import Fit, Model
from steelyard.models.gold import Gold, gold_labels, need_gold, with_gold_classes
from steelyard.models.labels.class_draws import ClassDraws
from steelyard.models.labels.cross_validation import GoldSplit, gold_annotator_table, label_accuracy
from steelyard.models.labels.majority import expected_accuracy
from steelyard.models.labels.observed import ObservedLabels
from steelyard.models.labels.table import label_table, log_odds_interval, need_annotators
from steelyard.models.labels.tally import LabelTally, LeftOut
from steelyard.models.unscored import null_without_evidence
from steelyard.observations import UNKNOWN, FloatArray, IntArray, Labels


@dataclass(frozen=True, slots=True)
class GoldCalibrated(Model):
    """Weight each vote by the annotator's confusion matrix on gold items.

    log P(c | labels) = log π_c + t Σ_w log θ_w[c, y_w] + const. Items with gold are predicted by cross-validation,
    never by their own gold. By default θ_w is drawn from its posterior under a population of annotators, π from that
    of the classes' proportions among gold items, and the exponent t from that given the cross-validated gold items:
    annotators err on the same items, so t is often below 1. Probabilities and intervals are over these draws. With
    `confusion_prior = "none"`, θ_w is the annotator's confusion plus `smoothing`, as published, and the interval is a
    delta method.
    """

    name: ClassVar[str] = "gold_calibrated"
    accepts: ClassVar[tuple[str, ...]] = ("labels",)

    confusion_prior: Annotated[
        Literal["learned", "none"],
        Field(description="prior of confusion matrices: learned from all annotators, or only the smoothing"),
    ] = "learned"
    calibrate: Annotated[bool, Field(description="temper the likelihood by gold items; only with a learned prior")] = (
        True
    )
    smoothing: Annotated[
        float, Field(gt=0, description="pseudo-count of every cell of a confusion matrix, without a learned prior")
    ] = 1.0
    prior: Annotated[
        Literal["gold", "uniform"],
        Field(description="prior of the classes: their proportions among gold items, or uniform"),
    ] = "gold"
    folds: Annotated[int, Field(ge=2, description="number of cross-validation folds over items with gold")] = 20
    disputed: Annotated[
        float,
        Field(gt=0.5, le=1, description="fraction of votes against a gold label above which it is ignored; 1: never"),
    ] = 0.9
    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=20, description="number of posterior draws, with a learned prior")] = 100
    seed: Annotated[int, Field(ge=0, description="random seed of folds and draws")] = 0

    @classmethod
    def as_published(cls, *, seed: int = 0) -> GoldCalibrated:
        """Return the model of Snow et al. (2008): one pseudo-count per cell, equal classes, all gold trusted."""
        return cls(confusion_prior="none", prior="uniform", disputed=1.0, seed=seed)

    @null_without_evidence
    def fit(self, observations: Labels, gold: Gold | None = None) -> Fit:
        """Label every item; `gold` gives the classes of some."""
        self.check_kind(observations)
        return self.solve(ObservedLabels(with_gold_classes(observations, gold)), gold)

    def solve(self, labels: LabelTally, gold: Gold | None) -> Fit:
        """Label every item from counts of the labels."""
        gold_answers = need_gold(self.name, gold)
        need_annotators(self.name, labels)
        codes = gold_labels(self.name, labels, gold_answers)
        split = GoldSplit.of(labels, codes, self.folds, self.seed, self.disputed)
        left_out = labels.left_out(split.trusted, split.fold)
        if self.confusion_prior == "learned":
            sample = ClassDraws.of(labels, left_out, split, self._class_counts(split, labels), self)
            probabilities, interval, method = sample.probabilities, sample.interval, "posterior"
            notes = split.report(labels, probabilities, uses_everyone=True) + sample.notes
        else:
            log_prior = self._log_prior(split, labels)
            probabilities = self.posterior(labels, left_out, log_prior)
            expected, variance = self._moments(left_out)
            interval, method = log_odds_interval(probabilities, log_prior + expected, variance, self.level), "model"
            notes = split.report(labels, probabilities)
        return Fit(
            self.name,
            self.settings(),
            label_table(labels, probabilities, interval, method, counts=labels.counts),
            gold_annotator_table(labels, split.trusted, self.level, self.smoothing),
            notes,
        )

    def posterior(self, labels: LabelTally, left_out: LeftOut, log_prior: FloatArray) -> FloatArray:
        """Return the probability of every class for every item; NaN for items without labels."""
        alpha = left_out.counts + self.smoothing
        log_confusion = np.log(alpha) - np.log(alpha.sum(axis=2, keepdims=True))
        score = log_prior + left_out.summed(log_confusion)
        score[labels.votes.sum(axis=1) == 0] = np.nan
        return np.asarray(special.softmax(score, axis=1))

    def _class_counts(self, split: GoldSplit, labels: LabelTally) -> FloatArray:
        """Return the gold items of every class without each fold (rows), and in the last row all, each plus one."""
        n_classes = len(labels.classes)
        has_gold = split.trusted != UNKNOWN
        total = np.bincount(split.trusted[has_gold], minlength=n_classes)
        cell = split.fold[has_gold].astype(np.int64) * n_classes + split.trusted[has_gold]
        n_folds = int(split.fold.max()) + 1
        own = np.bincount(cell, minlength=n_folds * n_classes).reshape(n_folds, n_classes)
        return np.asarray(np.concatenate([total - own, total[None]]) + 1.0)

    def _log_prior(self, split: GoldSplit, labels: LabelTally) -> FloatArray:
        """Return log π: one row, or with `prior = "gold"` one for each item, its own fold left out."""
        n_classes = len(labels.classes)
        if self.prior == "uniform":
            return np.full((1, n_classes), -np.log(n_classes))
        counts = self._class_counts(split, labels)
        # The fold UNKNOWN is −1, and so reads the last row: all gold.
        return np.asarray(np.log(counts / counts.sum(axis=1, keepdims=True))[split.fold])

    def _moments(self, left_out: LeftOut) -> tuple[FloatArray, FloatArray]:
        """Return the mean and variance of every item's log-likelihood of every class over the posterior of θ.

        Of log θ[c, k] they are ψ(α_k) − ψ(Σ α) and ψ'(α_k) − ψ'(Σ α), α being the counts plus smoothing.
        """
        alpha = left_out.counts + self.smoothing
        total = alpha.sum(axis=2, keepdims=True)
        mean, variance = (special.polygamma(order, alpha) - special.polygamma(order, total) for order in (0, 1))
        return left_out.summed(mean), left_out.summed(variance)


def accuracy_by_annotators(
    labels: Labels,
    gold: Gold,
    sizes: Iterable[int] = range(1, 11),
    *,
    model: GoldCalibrated | None = None,
    samples: int = 20,
    seed: int = 0,
) -> pl.DataFrame:
    """Measure vote and calibrated labels against gold with k labels an item, for each k (Snow et al., Fig. 7).

    Each sample takes k labels of every item with gold at random, and trains and tests within itself. Columns: k,
    samples, majority and calibrated (mean accuracy), gain (their difference), gain_lower and gain_upper (the middle
    95 % over samples; null for one).
    """
    model = model or GoldCalibrated.as_published()
    need_annotators("accuracy_by_annotators", labels)
    codes = gold_labels("accuracy_by_annotators", labels, gold)
    rng = np.random.default_rng(seed)
    rows = []
    for k in sizes:
        if k < 1:
            raise DataError(f"{k} labels per item cannot be sampled.", "Give sizes of 1 or more.")
        accuracies = np.array(
            [_sampled_accuracy(_sample(labels, codes, k, rng), codes, replace(model, seed=s)) for s in range(samples)]
        )
        gain = accuracies[:, 1] - accuracies[:, 0]
        ends = np.quantile(gain, [0.025, 0.975]) if samples > 1 else (None, None)
        rows.append((k, samples, accuracies[:, 0].mean(), accuracies[:, 1].mean(), gain.mean(), ends[0], ends[1]))
    names = ("k", "samples", "majority", "calibrated", "gain", "gain_lower", "gain_upper")
    schema = {name: pl.Int64 if name in {"k", "samples"} else pl.Float64 for name in names}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _sample(labels: Labels, gold: IntArray, k: int, rng: np.random.Generator) -> Labels:
    """Keep k labels of every item with gold, at random; all, where it has fewer."""
    shuffled = rng.permutation(np.flatnonzero(gold[labels.item] != UNKNOWN))
    order = shuffled[np.argsort(labels.item[shuffled], kind="stable")]
    item = labels.item[order]
    first = np.searchsorted(item, item)
    rows: NDArray[np.int64] = order[np.arange(len(order)) - first < k]
    return replace(
        labels,
        item=labels.item[rows],
        label=labels.label[rows],
        annotator=labels.annotator[rows],
        task=labels.task[rows],
    )


def _sampled_accuracy(labels: Labels, codes: IntArray, model: GoldCalibrated) -> tuple[float, float]:
    tally = ObservedLabels(labels)
    judged_items = np.unique(labels.item)
    gold = {labels.items[int(item)]: labels.classes[int(codes[item])] for item in judged_items}
    fit = model.solve(tally, gold)
    columns = [f"p({name})" for name in labels.classes.ids]
    probabilities = fit.scores.select(columns).to_numpy()[judged_items]
    return expected_accuracy(tally.votes[judged_items], codes[judged_items]), label_accuracy(
        probabilities, codes[judged_items]
    )
