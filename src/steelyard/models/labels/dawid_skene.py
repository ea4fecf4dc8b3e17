"""Dawid–Skene: every annotator has a confusion matrix, learnt together with the true labels (1979)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy import special

from steelyard.models.fit import Fit, Model
from steelyard.models.gold import Gold, with_gold_classes
from steelyard.models.labels.em import GroupedLabels, LabelGroups, check_convergence, climb, resampled_interval
from steelyard.models.labels.observed import ObservedLabels
from steelyard.models.labels.table import (
    Interval,
    annotator_table,
    confusion_columns,
    label_table,
    log_odds_interval,
    need_annotators,
)
from steelyard.models.labels.tally import LabelTally
from steelyard.models.unscored import null_without_evidence
from steelyard.observations import FloatArray, Index, Labels


class EMState(NamedTuple):
    """The state of EM: the posterior of the items, and the sums for the next M step.

    `counts` is (annotator, given, true). `log_likelihood` belongs to the parameters that gave `posterior`; `objective`
    adds the log prior that smoothing amounts to, and never decreases.
    """

    posterior: FloatArray
    counts: FloatArray
    log_likelihood: float = -np.inf
    objective: float = -np.inf


@dataclass(frozen=True, slots=True)
class DawidSkene(Model):
    """Estimate each item's class and each annotator's confusion matrix by EM (Dawid & Skene 1979).

    P(labels of item i, class c) = π_c Π_w θ_w[c, y_iw]. EM starts from the shares of the votes; the M step adds
    `smoothing` to every expected count. `probability` is the posterior at the estimated parameters; its interval
    comes from resampled annotators, or, with `interval = "model"`, from the parameters' approximate posterior.
    Items with gold keep their known class.
    """

    name: ClassVar[str] = "dawid_skene"
    accepts: ClassVar[tuple[str, ...]] = ("labels",)

    smoothing: Annotated[float, Field(ge=0, description="pseudo-count of every cell of a confusion matrix")] = 0.01
    prior: Annotated[
        Literal["estimated", "uniform"],
        Field(description="prior of the classes: estimated from the labels, or uniform"),
    ] = "estimated"
    max_iterations: Annotated[int, Field(ge=1, description="maximum number of EM iterations")] = 500
    tolerance: Annotated[float, Field(ge=0, description="convergence tolerance: gain in log-likelihood per label")] = (
        1e-7
    )
    interval: Annotated[Literal["bootstrap", "model", "none"], Field(description="interval method")] = "bootstrap"
    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=20, description="number of posterior draws or bootstrap replicates")] = 100
    warm_steps: Annotated[
        int, Field(ge=1, description="EM iterations per bootstrap replicate, started from the full fit")
    ] = 5
    seed: Annotated[int, Field(ge=0, description="random seed")] = 0

    @null_without_evidence
    def fit(self, observations: Labels, gold: Gold | None = None) -> Fit:
        """Label every item, and report each annotator's accuracy and confusion."""
        self.check_kind(observations)
        observations = with_gold_classes(observations, gold)
        need_annotators(self.name, observations)
        groups = GroupedLabels.of(self.name, observations, gold)
        return self.solve(ObservedLabels(observations), groups)

    def solve(self, labels: LabelTally, groups: LabelGroups) -> Fit:
        """Run EM on labels that may be anywhere."""
        state, iterations, gap = self.run(groups)
        converged = check_convergence(self.name, iterations, gap, self.tolerance)
        probabilities = groups.shown(state.posterior)
        interval, notes = self._interval(labels.annotators, groups, state, probabilities)
        how = "bootstrap(annotators)" if self.interval == "bootstrap" else "model"
        columns = groups.accuracy_columns(state.posterior, self.level) | confusion_columns(
            labels.classes, np.swapaxes(state.counts, 1, 2), self.smoothing, self.level
        )
        return Fit(
            self.name,
            self.settings(),
            label_table(
                labels, probabilities, interval, how, groups.has_gold, counts=(groups.judgments, groups.annotators)
            ),
            annotator_table(labels.annotators, groups.given.sum(axis=1), columns),
            notes,
            iterations,
            converged,
        )

    def run(self, groups: LabelGroups) -> tuple[EMState, int, float]:
        """Run EM; return where it ended, after how many steps, and the last gain per label."""
        weight = np.ones(groups.n_annotators)
        is_drawn = groups.drawn(weight)
        state = self._start(groups, groups.vote_shares(), weight)
        step = partial(self._step, groups, weight=weight, drawn=is_drawn)
        return climb(step, state, int(groups.judgments.sum()), self.max_iterations, self.tolerance)

    def _start(self, groups: LabelGroups, posterior: FloatArray, weight: FloatArray) -> EMState:
        return EMState(posterior.copy(), groups.expected(posterior) * weight[:, None, None])

    def _step(self, groups: LabelGroups, state: EMState, weight: FloatArray, drawn: NDArray[np.bool_]) -> EMState:
        """Return the next state; the given one's posterior is overwritten."""
        log_confusion = _log_shares(state.counts, self.smoothing)
        # An annotator of weight 2 counts as two people; of weight 0, even an impossible label says nothing.
        weighted = np.where(weight[:, None, None] > 0, weight[:, None, None] * log_confusion, 0.0)
        evidence, counts = groups.step(weighted, self._log_prior(groups, state.posterior[drawn]), state.posterior)
        penalty = self.smoothing * log_confusion.sum() if self.smoothing > 0 else 0.0
        return EMState(
            state.posterior,
            counts * weight[:, None, None],
            evidence,
            evidence + penalty,
        )

    def _log_prior(self, groups: LabelGroups, posterior: FloatArray) -> FloatArray:
        if self.prior == "uniform":
            return np.full(groups.n_classes, -np.log(groups.n_classes))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(posterior.mean(axis=0)))

    def _interval(
        self, annotators: Index, groups: LabelGroups, state: EMState, shown: FloatArray
    ) -> tuple[Interval, tuple[str, ...]]:
        if self.interval == "bootstrap":
            refit = partial(self._refit, groups, state.posterior)
            return resampled_interval(
                annotators, groups, shown, refit, level=self.level, replicates=self.draws, seed=self.seed
            )
        if self.interval == "model":
            return log_odds_interval(shown, *self._moments(groups, state), self.level), ()
        none = np.full(len(shown), np.nan)
        return Interval(none, none), ("intervals were switched off",)

    def _refit(
        self, groups: LabelGroups, posterior: FloatArray, weight: FloatArray, drawn: NDArray[np.bool_]
    ) -> FloatArray:
        state = self._start(groups, posterior, weight)
        for _ in range(self.warm_steps):
            state = self._step(groups, state, weight, drawn)
        return state.posterior

    def _moments(self, groups: LabelGroups, state: EMState) -> tuple[FloatArray, FloatArray]:
        """Return the mean and variance of every item's log-score for every class, the confusion rows being Dirichlet.

        Of log θ[c, k] they are ψ(α_k) − ψ(Σ α) and ψ'(α_k) − ψ'(Σ α). Doubt about the items' classes is left out, so
        the variance is too small; docs/concepts/label-models.md says by how much.
        """
        alpha = state.counts + max(self.smoothing, 0.5)
        moments = [
            groups.summed(special.polygamma(order, alpha) - special.polygamma(order, alpha.sum(axis=1, keepdims=True)))
            for order in (0, 1)
        ]
        log_prior = self._log_prior(groups, state.posterior[groups.judgments > 0])
        return np.maximum(log_prior, -1e3) + moments[0], moments[1]


def _log_shares(counts: FloatArray, smoothing: float) -> FloatArray:
    """Return log θ from (annotator, given, true) counts; a row without any weight is uniform."""
    smoothed = counts + smoothing
    total = smoothed.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(total > 0, smoothed / total, 1 / counts.shape[1])
        return np.asarray(np.log(share))
