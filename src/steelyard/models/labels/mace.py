"""MACE: every annotator either knows the answer or guesses from their own distribution (Hovy et al. 2013)."""

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
from steelyard.models.labels.calibration import choose_temperature, softened, softening_note
from steelyard.models.labels.em import GroupedLabels, check_convergence, climb, resampled_interval
from steelyard.models.labels.kernels import GuessTables, mace_step
from steelyard.models.labels.table import (
    Interval,
    annotator_table,
    label_table,
    need_annotators,
    share_interval,
    total_by,
    with_interval,
)
from steelyard.models.unscored import null_without_evidence
from steelyard.observations import FloatArray, Labels


class Beliefs(NamedTuple):
    """Expected numbers of labels known (annotator) and guessed (annotator, class)."""

    known: FloatArray
    guessed: FloatArray


class MACEState(NamedTuple):
    """The posterior of the items, the expected counts of the annotators, and the bound, which never decreases."""

    posterior: FloatArray
    beliefs: Beliefs
    objective: float = -np.inf


@dataclass(frozen=True, slots=True)
class MACE(Model):
    """Estimate labels and annotators' competence without gold (Hovy, Berg-Kirkpatrick, Vaswani & Hovy 2013).

    Annotator j knows the answer with probability θ_j, and otherwise guesses class k with probability ξ_jk; the prior of
    the classes is uniform. `method = "vb"` is variational Bayes with Beta(½, ½) on θ and Dirichlet(10, …) on ξ;
    "em" adds `smoothing` to the counts. The first start is the majority vote, the others are random; the best is kept.
    `probability` is the posterior, softened until it predicts the labels of held-out annotators best.
    """

    name: ClassVar[str] = "mace"
    accepts: ClassVar[tuple[str, ...]] = ("labels",)

    method: Annotated[Literal["vb", "em"], Field(description="estimation method: variational Bayes or EM")] = "vb"
    restarts: Annotated[
        int, Field(ge=1, description="number of starts: the first from the majority vote, the others random")
    ] = 10
    max_iterations: Annotated[int, Field(ge=1, description="maximum number of iterations per start")] = 500
    tolerance: Annotated[float, Field(ge=0, description="convergence tolerance: gain in the bound per label")] = 1e-7
    competence_prior: Annotated[float, Field(gt=0, description="both parameters of the Beta prior of θ (vb)")] = 0.5
    guess_prior: Annotated[float, Field(gt=0, description="parameter of the Dirichlet prior of ξ (vb)")] = 10.0
    smoothing: Annotated[float, Field(gt=0, description="pseudo-count of every cell (em)")] = 0.01
    calibrate: Annotated[
        bool, Field(description="temper the probabilities so that they best predict held-out annotators' labels")
    ] = True
    interval: Annotated[Literal["bootstrap", "none"], Field(description="interval method")] = "bootstrap"
    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=20, description="number of posterior draws or bootstrap replicates")] = 100
    warm_steps: Annotated[
        int, Field(ge=1, description="iterations per bootstrap replicate, started from the full fit")
    ] = 5
    seed: Annotated[int, Field(ge=0, description="random seed of starts and bootstrap")] = 0

    @null_without_evidence
    def fit(self, observations: Labels, gold: Gold | None = None) -> Fit:
        """Label every item, and report each annotator's competence."""
        self.check_kind(observations)
        observations = with_gold_classes(observations, gold)
        need_annotators(self.name, observations)
        groups = GroupedLabels.of(self.name, observations, gold)
        state, iterations, gap = self.run(groups, observations.annotators.ids)
        converged = check_convergence(self.name, iterations, gap, self.tolerance)
        temperature = self._temperature(groups, observations, state)
        posterior = softened(state.posterior, temperature)
        probabilities = groups.shown(posterior)
        interval, notes = self._interval(observations, groups, state, probabilities, temperature)
        table = label_table(
            observations,
            probabilities,
            interval,
            "bootstrap(annotators)",
            groups.has_gold,
            counts=(groups.judgments, groups.annotators),
        )
        columns = self._competence(groups, state) | groups.accuracy_columns(posterior, self.level)
        notes = (*softening_note(temperature), *notes)
        annotators = annotator_table(observations.annotators, groups.given.sum(axis=1), columns)
        return Fit(self.name, self.settings(), table, annotators, notes, iterations, converged)

    def run(self, groups: GroupedLabels, annotators: tuple[str, ...]) -> tuple[MACEState, int, float]:
        """Run all starts; return where the best ended, after how many steps, and its last gain per label."""
        rng = np.random.default_rng(self.seed)
        runs = [self._climb(groups, self._from_votes(groups))]
        # Random starts are dealt in the order of the ids, so that the order of the judgments does not matter.
        by_id = np.argsort(np.argsort(np.array(annotators)))
        for _ in range(self.restarts - 1):
            draw = rng.random((groups.n_annotators, groups.n_classes + 1))[by_id] + 1.0
            split = groups.given.sum(axis=1, keepdims=True) * draw / draw.sum(axis=1, keepdims=True)
            runs.append(self._climb(groups, Beliefs(split[:, 0], split[:, 1:])))
        return max(runs, key=lambda run: run[0].objective)

    def _climb(self, groups: GroupedLabels, beliefs: Beliefs) -> tuple[MACEState, int, float]:
        weight = np.ones(groups.n_annotators)
        state = MACEState(groups.vote_shares(), beliefs)
        step = partial(self._step, groups, weight=weight)
        return climb(step, state, len(groups.cell), self.max_iterations, self.tolerance)

    def _from_votes(self, groups: GroupedLabels) -> Beliefs:
        """Take an annotator to have known as many labels as the vote bears out, and guessed the rest."""
        right = groups.vote_shares()[groups.item, groups.cell % groups.n_classes]
        n_known = total_by(groups.cell, right, groups.given.size).reshape(groups.given.shape)
        return Beliefs(n_known.sum(axis=1), groups.given - n_known)

    def _step(self, groups: GroupedLabels, state: MACEState, weight: FloatArray) -> MACEState:
        """Return the next state; the given one's posterior is overwritten."""
        log_known, log_guessing, log_guess, prior = self._parameters(state.beliefs)
        guess = log_guessing[:, None] + log_guess
        gain = np.logaddexp(log_known[:, None], guess) - guess
        n_known = np.empty(groups.given.shape)
        posterior = state.posterior
        tables = GuessTables(
            (weight[:, None] * guess).ravel(), (weight[:, None] * gain).ravel(), (-np.expm1(-gain)).ravel()
        )
        log_likelihood = mace_step(groups.cells, tables, posterior, n_known.ravel())
        n_guessed = np.maximum(groups.given - n_known, 0.0)
        beliefs = Beliefs(weight * n_known.sum(axis=1), weight[:, None] * n_guessed)
        return MACEState(posterior, beliefs, log_likelihood + prior)

    def _parameters(self, beliefs: Beliefs) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Return log θ, log(1 − θ) and log ξ (their expectations, for vb), and what the prior adds to the bound."""
        known, guessed = beliefs
        n_classes = guessed.shape[1]
        competence = np.stack([known, guessed.sum(axis=1)], axis=1)
        if self.method == "em":
            s = self.smoothing
            log_competence = np.log(competence + s) - np.log(competence.sum(axis=1, keepdims=True) + 2 * s)
            log_guess = np.log(guessed + s) - np.log(guessed.sum(axis=1, keepdims=True) + n_classes * s)
            prior = s * (log_competence.sum() + log_guess.sum())
        else:
            a, b = competence + self.competence_prior, guessed + self.guess_prior
            log_competence = special.digamma(a) - special.digamma(a.sum(axis=1, keepdims=True))
            log_guess = special.digamma(b) - special.digamma(b.sum(axis=1, keepdims=True))
            prior = -_divergence(a, self.competence_prior, log_competence) - _divergence(b, self.guess_prior, log_guess)
        return log_competence[:, 0], log_competence[:, 1], log_guess, float(prior)

    def _temperature(self, groups: GroupedLabels, labels: Labels, state: MACEState) -> float:
        if not self.calibrate:
            return 1.0
        log_known, log_guessing, log_guess, _ = self._parameters(state.beliefs)
        guess = log_guessing[:, None] + log_guess
        n = groups.n_classes
        cells = np.repeat(guess[:, :, None], n, axis=2)
        cells[:, range(n), range(n)] = np.logaddexp(log_known[:, None], guess)
        return choose_temperature(groups, labels.annotators, cells, np.full(n, -np.log(n)), self.seed).value

    def _competence(self, groups: GroupedLabels, state: MACEState) -> dict[str, FloatArray]:
        """Return each annotator's θ; its interval allows for doubt about which labels were known."""
        known, guessed = state.beliefs.known, state.beliefs.guessed.sum(axis=1)
        extra = self.competence_prior if self.method == "vb" else self.smoothing
        total = known + guessed
        value = np.where(total > 0, (known + extra) / (total + 2 * extra), np.nan)
        log_known, log_guessing, log_guess, _ = self._parameters(state.beliefs)
        odds = np.exp(log_known[:, None] - log_guessing[:, None] - log_guess)
        right = state.posterior[groups.item, groups.cell % groups.n_classes]
        knew = right * (odds / (1 + odds)).ravel()[groups.cell]
        spread = total_by(groups.cell // groups.n_classes, knew * (1 - knew), groups.n_annotators)
        lower, upper = share_interval(known, total, self.level, spread)
        return with_interval("competence", value, Interval(np.fmin(lower, value), np.fmax(upper, value)))

    def _interval(
        self, labels: Labels, groups: GroupedLabels, state: MACEState, shown: FloatArray, temperature: float
    ) -> tuple[Interval, tuple[str, ...]]:
        if self.interval == "none":
            none = np.full(len(shown), np.nan)
            return Interval(none, none), ("intervals were switched off",)
        refit = partial(self._refit, groups, state, temperature)
        return resampled_interval(
            labels.annotators, groups, shown, refit, level=self.level, replicates=self.draws, seed=self.seed
        )

    def _refit(
        self, groups: GroupedLabels, state: MACEState, temperature: float, weight: FloatArray, _drawn: NDArray[np.bool_]
    ) -> FloatArray:
        again = MACEState(
            state.posterior.copy(),
            Beliefs(weight * state.beliefs.known, weight[:, None] * state.beliefs.guessed),
        )
        for _ in range(self.warm_steps):
            again = self._step(groups, again, weight)
        return softened(again.posterior, temperature)


def _divergence(alpha: FloatArray, prior: float, log_mean: FloatArray) -> float:
    """Return the Kullback–Leibler divergence of Dirichlet(alpha) rows from Dirichlet(prior, …), summed over rows."""
    n = alpha.shape[1]
    normaliser = special.gammaln(alpha.sum(axis=1)) - special.gammaln(alpha).sum(axis=1)
    reference = special.gammaln(n * prior) - n * special.gammaln(prior)
    return float((normaliser - reference + ((alpha - prior) * log_mean).sum(axis=1)).sum())
