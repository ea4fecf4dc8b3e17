"""Scores of systems from comparisons, choices or rankings: a latent-scale model of the systems.

Items of one source are only ever compared with each other, so that a scale of items would rest on its prior. The model
is fitted to the systems instead; its standard errors do not assume that judgments are independent (`clustered`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from steelyard.errors import DataError
from steelyard.models.choices.maxdiff import MaxDiff
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.comparisons.latent import UNBOUNDED_TIES, LatentScale, Prepared
from steelyard.models.comparisons.paired import Gaps, expected_share
from steelyard.models.comparisons.paired_model import PairLikelihood
from steelyard.models.comparisons.plackett_luce import PlackettLuce
from steelyard.models.inference.newton import Estimate, inverse, maximise, warn_unless_converged
from steelyard.models.systems.influence import Influence
from steelyard.observations import FloatArray, Observations

DEFAULTS: dict[str, type[LatentScale]] = {
    "comparisons": BradleyTerry,
    "choices": MaxDiff,
    "rankings": PlackettLuce,
}
"""The model of each kind of judgments."""
FALLBACK_PRIOR_SD = 2.0
"""The prior where the judgments alone do not determine finite scores; that of `bradley_terry`."""


@dataclass(frozen=True, slots=True, eq=False)
class Strengths:
    """A fitted latent-scale model of systems."""

    model: LatentScale
    prepared: Prepared
    estimate: Estimate
    influence: Influence
    unit_score: FloatArray
    notes: tuple[str, ...]


def default_model(kind: str) -> LatentScale:
    """Return the default model of a kind of judgments."""
    return DEFAULTS[kind]()


def fit_strengths(observations: Observations, model: LatentScale) -> Strengths:
    """Fit a model to judgments of systems; without a prior where the scores are finite without it.

    A prior would shrink the differences between systems.
    """
    model.check_kind(observations)
    prepared, names = model._prepare(observations), observations.items.ids
    gaps = Gaps.find(*prepared.beats, [names[code] for code in prepared.items])
    sentences = gaps.sentences()
    if not sentences and prepared.is_tie_unbounded():
        sentences = [UNBOUNDED_TIES]
    prior_sd = FALLBACK_PRIOR_SD if sentences or not gaps.finite_without_prior else None
    notes = [f"{sentence}, so the prior determines it" for sentence in sentences]
    model = replace(model, prior_sd=prior_sd)
    prepared = model._prepare(observations)
    estimate = maximise(
        prepared.likelihood, prior_sd=prior_sd, tolerance=model.tolerance, max_iterations=model.max_iterations
    )
    warn_unless_converged(model.name, estimate)
    influence = _influence(prepared, estimate, len(observations), len(names))
    theta = estimate.theta - estimate.theta.mean()
    unit_score = np.full(len(names), np.nan)
    unit_score[prepared.items] = expected_share(theta, lambda d: prepared.share(d, estimate.tie))
    return Strengths(model, prepared, estimate, influence, unit_score, (*notes, *prepared.notes(estimate)))


def _influence(prepared: Prepared, estimate: Estimate, n_rows: int, n_systems: int) -> Influence:
    likelihood, items = prepared.likelihood, prepared.items
    n = likelihood.n_items
    pieces = likelihood.scatter(estimate.theta, estimate.tie)
    width = n + likelihood.n_ties
    rows = sparse.csr_array((pieces.slope, (pieces.row, pieces.item)), shape=(n_rows, width))
    bread = inverse(estimate.matrix(likelihood))[:n]
    bread -= bread.mean(axis=0)
    score = np.full(n_systems, np.nan)
    score[items] = estimate.theta - estimate.theta.mean()
    whole = np.zeros((n_systems, width))
    whole[items] = bread
    return Influence(score, whole, rows)


def refit(strengths: Strengths, counts: FloatArray) -> FloatArray:
    """Fit again to other wins, losses and ties of every pair (3 × pairs); NaN where the search does not converge."""
    likelihood = strengths.prepared.likelihood
    if not isinstance(likelihood, PairLikelihood):
        raise DataError("only comparisons can be resampled by source and annotator.", "Use the default intervals.")
    prior_sd = strengths.model.prior_sd or FALLBACK_PRIOR_SD
    again = maximise(
        likelihood.with_counts(counts), prior_sd=prior_sd, tolerance=3e-3, max_iterations=30, start=strengths.estimate
    )
    theta = np.full(len(strengths.influence.score), np.nan)
    if again.converged:
        theta[strengths.prepared.items] = again.theta - again.theta.mean()
    return theta
