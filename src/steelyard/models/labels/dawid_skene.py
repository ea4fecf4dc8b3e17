"""Dawid–Skene: every annotator has a confusion matrix, learnt together with the true labels (1979)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy import special

from steelyard.models.fit import Fit, Model
from steelyard.models.gold import Gold, with_gold_classes
from steelyard.models.labels.calibration import (
    DEFAULT_ACCURACY,
    LEAST_PSEUDO_COUNT,
    LOWEST_LOG,
    ConfusionPrior,
    Temperature,
    choose_temperature,
    softened,
    softening_note,
)
from steelyard.models.labels.em import GroupedLabels, LabelGroups, check_convergence, climb, resampled_interval
from steelyard.models.labels.observed import ObservedLabels
from steelyard.models.labels.table import (
    Interval,
    annotator_table,
    confusion_columns,
    label_table,
    log_odds_interval,
    need_annotators,
    winners,
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


class Evidence(NamedTuple):
    """The result of EM: posterior by the model and softened, expected counts, sums of squared posteriors, and prior.

    `own` is the average contribution of a label to its cell of the counts.
    """

    estimate: FloatArray
    posterior: FloatArray
    counts: FloatArray
    squares: FloatArray
    own: FloatArray
    prior: ConfusionPrior
    temperature: Temperature


PRIOR_STEPS = 10
"""EM steps in which the prior is learnt; then it is fixed, so that the objective never decreases."""
WEAK_PSEUDO_COUNT, WEAK_PRIOR_STEPS, WEAK_PRIOR_ITEMS = 2.0, 60, 500
"""Pseudo-count of every class in the second fit for intervals, its EM steps, and the items per class up to which the
pseudo-count of the first fit matters."""
STRENGTH_STEPS = 3
"""The prior's strength is learnt in every third of these steps; its mean in all."""


@dataclass(frozen=True, slots=True)
class DawidSkene(Model):
    """Estimate each item's class and each annotator's confusion matrix by EM (Dawid & Skene 1979).

    P(labels of item i, class c) = π_c Π_w θ_w[c, y_iw]. EM starts from the shares of the votes. Rows of θ have a
    Dirichlet prior whose mean and strength are learnt from all annotators. `probability` is the posterior, softened by
    a temperature that predicts the labels of held-out annotators best; its interval comes from the parameters'
    approximate posterior, or, with `interval = "bootstrap"`, from resampled annotators. Items with gold keep their
    known class. The model of 1979 is `confusion_prior = "none"` with `calibrate = false`.
    """

    name: ClassVar[str] = "dawid_skene"
    accepts: ClassVar[tuple[str, ...]] = ("labels",)

    confusion_prior: Annotated[
        Literal["learned", "none"],
        Field(description="prior of confusion matrices: learned from all annotators, or only the smoothing"),
    ] = "learned"
    calibrate: Annotated[
        bool, Field(description="temper the probabilities so that they best predict held-out annotators' labels")
    ] = True
    smoothing: Annotated[
        float, Field(ge=0, description="pseudo-count of every cell of a confusion matrix, without a learned prior")
    ] = 0.01
    prior: Annotated[
        Literal["estimated", "uniform"],
        Field(description="prior of the classes: estimated from the labels, or uniform"),
    ] = "estimated"
    max_iterations: Annotated[int, Field(ge=1, description="maximum number of EM iterations")] = 500
    tolerance: Annotated[float, Field(ge=0, description="convergence tolerance: gain in log-likelihood per label")] = (
        3e-5
    )
    interval: Annotated[Literal["model", "bootstrap", "none"], Field(description="interval method")] = "model"
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
        state, prior, iterations, gap = self._run(groups)
        converged = check_convergence(self.name, iterations, gap, self.tolerance)
        evidence = self._evidence(labels.annotators, groups, state, prior)
        probabilities = groups.shown(evidence.posterior)
        interval, notes = self._interval(labels.annotators, groups, evidence, probabilities)
        how = "bootstrap(annotators)" if self.interval == "bootstrap" else "model"
        columns = groups.accuracy_columns(evidence.posterior, self.level) | confusion_columns(
            labels.classes, np.swapaxes(evidence.counts, 1, 2), prior.cells.T, self.level
        )
        return Fit(
            self.name,
            self.settings(),
            label_table(
                labels, probabilities, interval, how, groups.has_gold, counts=(groups.judgments, groups.annotators)
            ),
            annotator_table(labels.annotators, groups.given.sum(axis=1), columns),
            (*self._notes(groups, evidence.temperature.value), *notes),
            iterations,
            converged,
        )

    def run(self, groups: LabelGroups) -> tuple[EMState, int, float]:
        """Run EM; return where it ended, after how many steps, and the last gain per label."""
        state, _, iterations, gap = self._run(groups)
        return state, iterations, gap

    def _run(self, groups: LabelGroups) -> tuple[EMState, ConfusionPrior, int, float]:
        weight = np.ones(groups.n_annotators)
        is_drawn = groups.drawn(weight)
        state = self._start(groups, groups.vote_shares(), weight)
        prior = ConfusionPrior.flat(self.smoothing, groups.n_classes)
        first = 0
        if self.confusion_prior == "learned":
            can_learn = _overlaps(groups)
            first = min(PRIOR_STEPS, self.max_iterations)
            for number in range(first):
                strength = prior.strength if number % STRENGTH_STEPS else None
                prior = ConfusionPrior.learnt(state.counts, strength, can_learn)
                state = self._step(groups, state, prior, weight, is_drawn)
        step = partial(self._step, groups, prior=prior, weight=weight, drawn=is_drawn)
        size, most = int(groups.judgments.sum()), self.max_iterations - first
        state, steps, gap = climb(step, state, size, most, self.tolerance)
        return state, prior, first + steps, gap

    def _start(self, groups: LabelGroups, posterior: FloatArray, weight: FloatArray) -> EMState:
        return EMState(posterior.copy(), groups.expected(posterior) * weight[:, None, None])

    def _step(
        self,
        groups: LabelGroups,
        state: EMState,
        prior: ConfusionPrior,
        weight: FloatArray,
        drawn: NDArray[np.bool_],
    ) -> EMState:
        """Return the next state; the given one's posterior is overwritten."""
        log_confusion = prior.log_confusion(state.counts)
        log_prior = self._log_prior(groups, state.posterior[drawn], prior)
        # An annotator of weight 2 counts as two people; of weight 0, even an impossible label says nothing.
        weighted = np.where(weight[:, None, None] > 0, weight[:, None, None] * log_confusion, 0.0)
        evidence, counts = groups.step(weighted, log_prior, state.posterior)
        has_prior = prior.cells > 0
        penalty = (prior.cells * log_confusion)[:, has_prior].sum() if has_prior.any() else 0.0
        if prior.classes > 0 and self.prior == "estimated":
            penalty += prior.classes * log_prior.sum()
        return EMState(
            state.posterior,
            counts * weight[:, None, None],
            evidence,
            evidence + penalty,
        )

    def _log_prior(self, groups: LabelGroups, posterior: FloatArray, prior: ConfusionPrior) -> FloatArray:
        if self.prior == "uniform":
            return np.full(groups.n_classes, -np.log(groups.n_classes))
        return prior.log_shares(posterior.sum(axis=0))

    def _evidence(self, annotators: Index, groups: LabelGroups, state: EMState, prior: ConfusionPrior) -> Evidence:
        """Choose the temperature, and gather what the intervals and tables need."""
        squares = groups.expected(state.posterior**2)
        own = squares / np.maximum(state.counts, 1e-300)
        temperature = Temperature()
        log_prior = self._log_prior(groups, state.posterior[groups.judgments > 0], prior)
        if self.calibrate:
            others = np.maximum(state.counts - own, 0.0) + prior.cells
            rows = np.maximum(state.counts.sum(axis=1, keepdims=True) - own, 0.0) + prior.cells.sum(axis=0)
            with np.errstate(divide="ignore", invalid="ignore"):
                cells = np.log(np.where(rows > 0, others / rows, 1 / groups.n_classes))
            temperature = choose_temperature(groups, annotators, cells, log_prior, self.seed)
        if temperature.value == 1.0:
            return Evidence(state.posterior, state.posterior, state.counts, squares, own, prior, temperature)
        posterior = np.where(groups.has_gold[:, None], state.posterior, softened(state.posterior, temperature.value))
        return Evidence(state.posterior, posterior, groups.expected(posterior), squares, own, prior, temperature)

    def _notes(self, groups: LabelGroups, temperature: float) -> tuple[str, ...]:
        if self.confusion_prior == "learned" and not _overlaps(groups):
            return (
                "no item has labels from two annotators, so accuracies cannot be estimated; the probabilities "
                f"assume an accuracy of about {DEFAULT_ACCURACY:.0%}",
            )
        return softening_note(temperature)

    def _interval(
        self, annotators: Index, groups: LabelGroups, evidence: Evidence, shown: FloatArray
    ) -> tuple[Interval, tuple[str, ...]]:
        if self.interval == "bootstrap":
            refit = partial(self._refit, groups, evidence)
            return resampled_interval(
                annotators, groups, shown, refit, level=self.level, replicates=self.draws, seed=self.seed
            )
        if self.interval == "model":
            return self._model_interval(groups, evidence, shown), ()
        none = np.full(len(shown), np.nan)
        return Interval(none, none), ("intervals were switched off",)

    def _refit(
        self, groups: LabelGroups, evidence: Evidence, weight: FloatArray, drawn: NDArray[np.bool_]
    ) -> FloatArray:
        state = self._start(groups, evidence.estimate, weight)
        for _ in range(self.warm_steps):
            state = self._step(groups, state, evidence.prior, weight, drawn)
        return softened(state.posterior, evidence.temperature.value)

    def _model_interval(self, groups: LabelGroups, evidence: Evidence, shown: FloatArray) -> Interval:
        """Return intervals by the delta method, the rows of confusion matrices being Dirichlet.

        Of log θ[c, k] the variance is ψ'(α_k) − ψ'(Σ α). A label of an item whose class has probability q carries q² of
        the information that it would carry if the class were known (Louis 1982), so α sums the squares, without the
        label's own.
        """
        alpha = np.maximum(evidence.squares - evidence.own, 0.0) + evidence.prior.interval_cells
        variance = groups.summed(special.polygamma(1, alpha) - special.polygamma(1, alpha.sum(axis=1, keepdims=True)))
        if self.prior == "estimated":
            information = (evidence.estimate**2).sum(axis=0) + evidence.prior.classes
            variance = variance + special.polygamma(1, np.maximum(information, LEAST_PSEUDO_COUNT))
        score = np.maximum(np.log(np.maximum(evidence.posterior, np.finfo(np.float64).tiny)), LOWEST_LOG)
        value, error = evidence.temperature
        rows, label = np.arange(len(score)), winners(evidence.posterior).label
        others = score.copy()
        others[rows, label] = -np.inf
        # From the other classes, because 1 − p is inexact where p is close to 1.
        log_odds = (score[rows, label] - special.logsumexp(others, axis=1)) / value
        variance = value**2 * variance
        variance[rows, label] += (error * log_odds) ** 2
        interval = log_odds_interval(shown, score, variance, self.level)
        other = self._weakly_pooled(groups, evidence)
        if other is None:
            return interval
        score = np.maximum(np.log(np.maximum(softened(other, value), np.finfo(np.float64).tiny)), LOWEST_LOG)
        second = log_odds_interval(shown, score, variance, self.level)
        return Interval(np.minimum(interval.lower, second.lower), np.maximum(interval.upper, second.upper))

    def _weakly_pooled(self, groups: LabelGroups, evidence: Evidence) -> FloatArray | None:
        """Return the posterior with a weak prior of the classes' shares, if that can make a difference.

        The pseudo-count of the classes draws their shares towards equal ones, and confusion matrices follow. It makes
        labels of small sets more accurate, but intervals must not rely on it.
        """
        prior, strength = evidence.prior, evidence.prior.strength
        is_large = len(groups.gold) > WEAK_PRIOR_ITEMS * groups.n_classes
        if not prior.is_learnt or self.prior == "uniform" or is_large or not _overlaps(groups):
            return None
        weight = np.ones(groups.n_annotators)
        is_drawn = groups.drawn(weight)
        state = self._start(groups, evidence.estimate, weight)
        for _ in range(WEAK_PRIOR_STEPS):
            learnt = ConfusionPrior.learnt(state.counts, strength, can_learn=True)
            state = self._step(groups, state, replace(learnt, classes=WEAK_PSEUDO_COUNT), weight, is_drawn)
        return state.posterior


def _overlaps(groups: LabelGroups) -> bool:
    """Return whether annotators can be checked: by one another's labels, or by gold."""
    return bool((groups.annotators > 1).any() or groups.has_gold.any())
