"""Weighted votes: each annotator's vote counts log(accuracy / (1 − accuracy)) (Snow et al. 2008, §5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field
from scipy import special

from steelyard.models.fit import Fit, Model
from steelyard.models.gold import Gold, gold_labels, need_gold, with_gold_classes
from steelyard.models.labels.cross_validation import GoldSplit, gold_annotator_table
from steelyard.models.labels.observed import ObservedLabels, sum_by_item
from steelyard.models.labels.table import label_table, log_odds_interval, need_annotators, nullable
from steelyard.models.unscored import null_without_evidence
from steelyard.observations import FloatArray, Labels


@dataclass(frozen=True, slots=True)
class WeightedVote(Model):
    """Weight each vote by the annotator's accuracy on gold items, the same for all classes.

    With K classes the weight is log((K − 1) acc / (1 − acc)), which for two is the paper's log(acc / (1 − acc)):
    random annotators get weight 0, and annotators who are mostly wrong a negative weight.
    acc = (right + s) / (all + K s) with s the `smoothing`. Items with gold are predicted by
    cross-validation, never by their own gold.
    """

    name: ClassVar[str] = "weighted_vote"
    accepts: ClassVar[tuple[str, ...]] = ("labels",)

    smoothing: Annotated[float, Field(gt=0, description="pseudo-count of each class in an annotator's accuracy")] = 1.0
    folds: Annotated[int, Field(ge=2, description="number of cross-validation folds over items with gold")] = 20
    disputed: Annotated[
        float,
        Field(gt=0.5, le=1, description="fraction of votes against a gold label above which it is ignored; 1: never"),
    ] = 0.9
    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    seed: Annotated[int, Field(ge=0, description="random seed of the folds")] = 0

    @null_without_evidence
    def fit(self, observations: Labels, gold: Gold | None = None) -> Fit:
        """Label every item; `gold` gives the classes of some."""
        self.check_kind(observations)
        observations = with_gold_classes(observations, gold)
        gold_answers = need_gold(self.name, gold)
        need_annotators(self.name, observations)
        codes = gold_labels(self.name, observations, gold_answers)
        tally = ObservedLabels(observations)
        split = GoldSplit.of(tally, codes, self.folds, self.seed, self.disputed)
        left_out = tally.left_out(split.trusted, split.fold)
        k = len(observations.classes)
        right = left_out.counts.trace(axis1=1, axis2=2) + self.smoothing
        wrong = left_out.counts.sum(axis=(1, 2)) + k * self.smoothing - right
        weight = np.log((k - 1) * right / wrong)
        # The weight's mean and variance over the accuracy's Beta posterior.
        mean = np.log(k - 1) + special.digamma(right) - special.digamma(wrong)
        variance = special.polygamma(1, right) + special.polygamma(1, wrong)
        score = sum_by_item(observations, self._votes(observations, weight[left_out.key]))
        score[np.bincount(observations.item, minlength=len(score)) == 0] = np.nan
        probabilities = np.asarray(special.softmax(score, axis=1))
        expected, spread = (
            sum_by_item(observations, self._votes(observations, x[left_out.key])) for x in (mean, variance)
        )
        interval = log_odds_interval(probabilities, expected, spread, self.level)
        table = label_table(tally, probabilities, interval, "model", counts=tally.counts)
        annotators = gold_annotator_table(tally, split.trusted, self.level, None)
        gold_weight = np.where(
            np.isnan(annotators["accuracy"].to_numpy()), np.nan, weight[: len(observations.annotators)]
        )
        return Fit(
            self.name,
            self.settings(),
            table,
            annotators.with_columns(nullable(gold_weight).alias("weight")),
            split.report(tally, probabilities),
        )

    @staticmethod
    def _votes(labels: Labels, value: FloatArray) -> FloatArray:
        """Put each label's value in the column of its class."""
        votes = np.zeros((len(labels), len(labels.classes)))
        votes[np.arange(len(labels)), labels.label] = value
        return votes
