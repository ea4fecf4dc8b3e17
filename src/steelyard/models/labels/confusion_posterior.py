"""Posterior draws of annotators' confusion matrices, from their answers to gold items and a population of annotators.

Annotator w labels an item of class c correctly with probability a_wc ~ Beta(κ m_wc, κ (1 − m_wc)), where
logit m_wc = μ_c + τ u_w and u_w ~ N(0, 1) is the annotator's ability: an annotator who is good at one class is probably
good at the others. Wrong labels are distributed over the other classes as Dirichlet(λ o_c). μ, τ, κ, λ and o describe
the population and are estimated from all annotators with their uncertainty, so that a few gold answers make an
annotator neither perfect nor useless.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from steelyard.observations import FloatArray, IntArray

_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_LOG_NODE_WEIGHTS: FloatArray = np.log(_NODE_WEIGHTS / _NODE_WEIGHTS.sum())
_ABILITIES: FloatArray = np.linspace(-2.8, 2.8, 15)
"""Grid of abilities from which those of annotators are drawn."""
_LOWEST = 0.003
"""Mean accuracies stay this far from 0 and 1."""
_ACCURACY, _ACCURACY_SD, _CLASS_SD = float(special.logit(0.7)), 1.0, 0.7
"""Prior of μ: an accuracy of .7, give or take a unit of log-odds, and the standard deviation between classes."""
_ABILITY_SD, _ABILITY_SD_SD = np.log(0.7), 0.7
_STRENGTH, _STRENGTH_SD = np.log(8.0), 1.0
"""Log-normal priors of τ and κ: wide, and centred where abilities differ clearly (accuracies of .53 to .83 for ±1)."""
_CONCENTRATIONS: FloatArray = np.geomspace(0.5, 100.0, 20)
"""Candidates for λ; its prior is log-normal around two labels for each wrong class."""
_MOST_ANNOTATORS = 400
"""Annotators from which the population is estimated; more do not make it clearly more precise."""
_LEAST_CURVATURE = 0.5
_TINY = 1e-12


class PopulationDraws(NamedTuple):
    """Draws of the population: μ (draws, classes), τ, κ and λ (draws), and o (draws, true, wrong classes)."""

    mean: FloatArray
    ability_sd: FloatArray
    strength: FloatArray
    concentration: FloatArray
    wrong: FloatArray


def draw_population(counts: FloatArray, draws: int, seed: int) -> PopulationDraws:
    """Draw the population from confusion counts (annotator, true, given) by a Laplace approximation."""
    n_classes = counts.shape[1]
    counts = counts[counts.sum(axis=(1, 2)) > 0]
    counts = counts[:: max(1, -(-len(counts) // _MOST_ANNOTATORS))]
    right = np.einsum("wcc->wc", counts)
    missed = counts.sum(axis=2) - right
    start = np.concatenate([np.full(n_classes, _ACCURACY), [_ABILITY_SD, _STRENGTH]])
    solution = optimize.minimize(negative_log_posterior, start, (right, missed), method="BFGS", jac=True)
    curvature, axes = np.linalg.eigh(_hessian(solution.x, right, missed))
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal((draws, len(start)))
    sample = solution.x + normal / np.sqrt(np.maximum(curvature, _LEAST_CURVATURE)) @ axes.T
    concentration, wrong = _draw_wrong(counts, draws, rng)
    return PopulationDraws(sample[:, :n_classes], np.exp(sample[:, -2]), np.exp(sample[:, -1]), concentration, wrong)


def negative_log_posterior(x: FloatArray, right: FloatArray, missed: FloatArray) -> tuple[float, FloatArray]:
    """Return −log posterior of (μ, log τ, log κ) and its gradient; abilities are integrated out by quadrature."""
    mean, log_sd, log_strength = x[:-2], x[-2], x[-1]
    sd, strength = np.exp(log_sd), np.exp(log_strength)
    share = special.expit(mean + sd * _NODES[:, None])
    accuracy = _LOWEST + (1 - 2 * _LOWEST) * share
    a, b = strength * accuracy, strength * (1 - accuracy)
    r, m = right[:, None], missed[:, None]
    by_node = (special.betaln(a + r, b + m) - special.betaln(a, b)).sum(axis=2) + _LOG_NODE_WEIGHTS
    total = special.logsumexp(by_node, axis=1)
    weight = np.exp(by_node - total[:, None])[:, :, None]
    both = special.digamma(strength) - special.digamma(strength + r + m)
    to_a = weight * (special.digamma(a + r) - special.digamma(a) + both)
    to_b = weight * (special.digamma(b + m) - special.digamma(b) + both)
    to_mean = (strength * (to_a - to_b)).sum(axis=0) * (1 - 2 * _LOWEST) * share * (1 - share)
    gradient = np.concatenate(
        [
            to_mean.sum(axis=0),
            [(to_mean * sd * _NODES[:, None]).sum(), strength * (to_a * accuracy + to_b * (1 - accuracy)).sum()],
        ]
    )
    centre = mean.mean()
    deviations = (mean - centre) / _CLASS_SD, (centre - _ACCURACY) / _ACCURACY_SD
    scales = (log_sd - _ABILITY_SD) / _ABILITY_SD_SD, (log_strength - _STRENGTH) / _STRENGTH_SD
    prior = 0.5 * ((deviations[0] ** 2).sum() + deviations[1] ** 2 + scales[0] ** 2 + scales[1] ** 2)
    gradient[:-2] -= deviations[0] / _CLASS_SD + deviations[1] / _ACCURACY_SD / len(mean)
    gradient[-2] -= scales[0] / _ABILITY_SD_SD
    gradient[-1] -= scales[1] / _STRENGTH_SD
    return float(prior - total.sum()), -gradient


def _hessian(x: FloatArray, right: FloatArray, missed: FloatArray) -> FloatArray:
    """Return the matrix of second derivatives, by central differences of the gradient."""
    step = 1e-3
    rows = [
        negative_log_posterior(x + move, right, missed)[1] - negative_log_posterior(x - move, right, missed)[1]
        for move in step * np.eye(len(x))
    ]
    matrix = np.array(rows) / (2 * step)
    return np.asarray((matrix + matrix.T) / 2)


def _wrong_counts(counts: FloatArray) -> FloatArray:
    """Return the counts of wrong labels (annotator, true, other class), the other classes in order."""
    n_classes = counts.shape[1]
    return np.asarray(counts[:, ~np.eye(n_classes, dtype=np.bool_)].reshape(-1, n_classes, n_classes - 1))


def _draw_wrong(counts: FloatArray, draws: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw λ from its posterior on the grid, and o from a Dirichlet of all annotators' wrong labels."""
    n_wrong = counts.shape[1] - 1
    cells = _wrong_counts(counts)
    pooled = cells.sum(axis=0) + 1.0
    if n_wrong == 1:
        return np.ones(draws), np.ones((draws, len(pooled), 1))
    share, total = pooled / pooled.sum(axis=1, keepdims=True), cells.sum(axis=2)
    evidence = [
        (special.gammaln(concentration * share + cells) - special.gammaln(concentration * share)).sum()
        - (special.gammaln(concentration + total) - special.gammaln(concentration)).sum()
        - 0.5 * np.log(concentration / (2 * n_wrong)) ** 2
        for concentration in _CONCENTRATIONS
    ]
    concentration = rng.choice(_CONCENTRATIONS, draws, p=special.softmax(np.array(evidence)))
    gamma = np.maximum(rng.standard_gamma(np.repeat(pooled[None], draws, axis=0)), _TINY)
    return concentration, np.asarray(gamma / gamma.sum(axis=2, keepdims=True))


def draw_log_confusions(counts: FloatArray, stream: IntArray, population: PopulationDraws, seed: int) -> FloatArray:
    """Draw log confusion matrices (draw, row of counts, true, given).

    `stream` numbers the random stream of every row: rows with the same number and counts get the same draws, whatever
    the order of the rows.
    """
    draws, n_classes = population.mean.shape
    result = np.empty((draws, len(counts), n_classes, n_classes))
    z = population.mean[:, None] + population.ability_sd[:, None, None] * _ABILITIES[:, None]
    accuracy = _LOWEST + (1 - 2 * _LOWEST) * special.expit(z)
    a, b = population.strength[:, None, None] * accuracy, population.strength[:, None, None] * (1 - accuracy)
    log_prior = -special.betaln(a, b).sum(axis=2) - 0.5 * _ABILITIES**2
    is_wrong = ~np.eye(n_classes, dtype=np.bool_)
    all_wrong = _wrong_counts(counts)
    for row, (cells, wrong) in enumerate(zip(counts, all_wrong, strict=True)):
        rng = np.random.default_rng([seed, int(stream[row])])
        right = cells.diagonal()
        missed = cells.sum(axis=1) - right
        evidence = log_prior + special.betaln(a + right, b + missed).sum(axis=2)
        cumulated = special.softmax(evidence, axis=1).cumsum(axis=1)
        place = np.minimum((cumulated < rng.random((draws, 1))).sum(axis=1), len(_ABILITIES) - 1)
        chosen = np.arange(draws), place
        correct = np.clip(rng.beta(a[chosen] + right, b[chosen] + missed), _TINY, 1 - _TINY)
        gamma = rng.standard_gamma(population.concentration[:, None, None] * population.wrong + wrong)
        gamma = np.maximum(gamma, _TINY)
        others = (1 - correct)[:, :, None] * gamma / gamma.sum(axis=2, keepdims=True)
        result[:, row, is_wrong] = others.reshape(draws, -1)
        result[:, row, ~is_wrong] = correct
    return np.log(result)
